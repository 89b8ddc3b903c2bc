"""Defines a message in Debezium's format, and the texts of its schemas around the payload. Pure."""

import json
from typing import Any, NamedTuple, Self

import orjson

__all__ = ["DebeziumMessage", "Headers", "Heads", "RowChange", "payload_text", "rendered"]

Headers = list[tuple[str, str | bytes | None]]


class Heads(NamedTuple):
    """The beginnings of keys and values up to the payload, which contain the schemas; empty without schemas. ``end``
    follows the payload.
    """

    key: bytes = b""
    value: bytes = b""
    end: bytes = b""

    def of_key(self, payload: bytes) -> bytes:
        return self.key + payload + self.end

    def of_value(self, payload: bytes) -> bytes:
        return self.value + payload + self.end if self.end else payload


class RowChange(NamedTuple):
    """A message's payload before it becomes text: the change of a row, with the texts around it."""

    payload: dict[str, Any]
    heads: Heads

    @property
    def operation(self) -> str:
        return str(self.payload["op"])

    @property
    def before(self) -> dict[str, Any] | None:
        image: dict[str, Any] | None = self.payload["before"]
        return image

    @property
    def after(self) -> dict[str, Any] | None:
        image: dict[str, Any] | None = self.payload["after"]
        return image

    def of(self, operation: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Self:
        """Returns the change with another operation and other images, of the same event."""
        return self._replace(payload=self.payload | {"op": operation, "before": before, "after": after})


class DebeziumMessage(NamedTuple):
    """A message; ``value`` is None in a tombstone, ``key`` is None for a table without a key. ``change`` is what
    ``value`` states about a row, if messages of a row may be merged.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    change: RowChange | None = None


def payload_text(payload: dict[str, Any]) -> bytes:
    """Returns ``payload`` as JSON."""
    try:
        return orjson.dumps(payload)
    except (TypeError, ValueError):  # a number above 64 bits
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def rendered(key: dict[str, Any], value: dict[str, Any]) -> Heads:
    """Renders the schemas of keys and values, once for all messages that have them."""
    of_key, of_value = (b'{"schema":' + orjson.dumps(schema) + b',"payload":' for schema in (key, value))
    return Heads(of_key, of_value, b"}")
