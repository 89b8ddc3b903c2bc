"""The record: one Kafka message, one Query or one rows event of the leader, as JSON (DESIGN.md, "The record")."""

import json
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, unquote

from cdc.errors import PromiseError
from cdc.position import Position
from cdc.values import Value

__all__ = ["OPERATIONS", "Record", "Row", "Uri", "is_event"]

OPERATIONS = frozenset({"Query", "Add", "Update", "Delete"})
_SCHEME = "flv://"


@dataclass(frozen=True, slots=True)
class Uri:
    """``flv://<resource>/<database>[/<table>]``; names are percent-encoded in text and keep their case."""

    resource: str
    database: str
    table: str | None = None

    def __str__(self) -> str:
        names = (self.resource, self.database) if self.table is None else (self.resource, self.database, self.table)
        return _SCHEME + "/".join(quote(name, safe="") for name in names)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError where ``text`` is not such a URI."""
        if not text.startswith(_SCHEME):
            raise ValueError(f"not an {_SCHEME} URI: {text!r}")
        names = [unquote(name, errors="strict") for name in text[len(_SCHEME) :].split("/")]
        if len(names) not in (2, 3):
            raise ValueError(f"not an {_SCHEME}resource/database[/table] URI: {text!r}")
        return cls(*names)


@dataclass(frozen=True, slots=True)
class Row:
    """One row's images, a value per column; an Add has no before, a Delete has no after."""

    before: list[Value] | None
    after: list[Value] | None


@dataclass(frozen=True, slots=True)
class Record:
    """A parsed record. ``key`` is None for a keyless table; ``flags`` are MySQL's flags of the rows event."""

    uri: Uri
    sequence: int
    position: Position
    transaction: str
    index: int
    last: bool
    ts_us: int
    operation: str
    query: str = ""
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] | None = None
    rows: tuple[Row, ...] = ()
    flags: int = 0
    context: dict[str, Any] | None = None
    affects: tuple[dict[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Read one message's value; ``where`` (topic, partition, offset) is for the error.

        Raises PromiseError where the message is not a record: skipping it would lose a change.
        """
        try:
            return cls._from_json(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PromiseError(
                f"not a record ({type(error).__name__}: {error}): {text[:80]!r}",
                where=where,
                hint="something else writes to this topic; give the producer a topic of its own",
            ) from None

    @classmethod
    def _from_json(cls, body: dict[str, Any]) -> Self:
        ((operation, content),) = body["operation"].items()
        if operation not in OPERATIONS:
            raise ValueError(f"unknown operation {operation!r}")
        columns = tuple(body.get("columns", ()))
        rows = () if operation == "Query" else _rows(operation, content["rows"], width=len(columns))
        return cls(
            uri=Uri.parse(body["uri"]),
            sequence=int(body["sequence"]),
            position=Position(body["bn_file"]["fileName"], int(body["bn_file"]["offset"])),
            transaction=body["transaction"]["id"],
            index=int(body["transaction"]["index"]),
            last=bool(body["transaction"]["last"]),
            ts_us=int(body["transaction"]["ts_us"]),
            operation=operation,
            query=content if operation == "Query" else "",
            columns=columns,
            key=tuple(body["key"]) if "key" in body else None,
            rows=rows,
            flags=int(body.get("flags", 0)),
            context=body.get("context"),
            affects=tuple(body.get("affects", ())),
        )


def is_event(text: bytes) -> bool:
    """Whether a message of ``mysql_binlog_events`` is one of the binlog's other events, which nobody has to apply."""
    try:
        body = json.loads(text)
    except ValueError:
        return False
    return isinstance(body, dict) and "event" in body and "sequence" not in body


def _rows(operation: str, rows: list[dict[str, Any]], *, width: int) -> tuple[Row, ...]:
    if operation == "Add":
        images = tuple(Row(None, row["cols"]) for row in rows)
    elif operation == "Delete":
        images = tuple(Row(row["cols"], None) for row in rows)
    else:
        images = tuple(Row(row["before_cols"], row["after_cols"]) for row in rows)
    for row in images:
        for image in (row.before, row.after):
            if image is not None and len(image) != width:
                raise ValueError(f"a row of {len(image)} values for {width} columns")
    return images
