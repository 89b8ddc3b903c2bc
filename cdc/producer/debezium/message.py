"""Defines a message in Debezium's format, and the texts of its schemas around the payload. Pure."""

from typing import Any, NamedTuple

import orjson

__all__ = ["DebeziumMessage", "Headers", "Heads", "rendered"]

Headers = list[tuple[str, str | bytes | None]]


class DebeziumMessage(NamedTuple):
    """A message; ``value`` is None in a tombstone, ``key`` is None for a table without a key."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers


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


def rendered(key: dict[str, Any], value: dict[str, Any]) -> Heads:
    """Renders the schemas of keys and values, once for all messages that have them."""
    of_key, of_value = (b'{"schema":' + orjson.dumps(schema) + b',"payload":' for schema in (key, value))
    return Heads(of_key, of_value, b"}")
