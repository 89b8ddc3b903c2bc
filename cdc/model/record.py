"""Parses a record: the JSON of one statement or of one rows event of the leader (docs/record-format.md)."""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Any, NamedTuple, Self

import orjson

from cdc.errors import PromiseError
from cdc.large_rows import LargeRecord
from cdc.model.names import Uri
from cdc.model.position import Position
from cdc.model.values import Value

__all__ = [
    "COPY",
    "OPERATIONS",
    "REPAIR",
    "SKIPPED",
    "KeyRange",
    "Record",
    "Row",
    "Uri",
    "is_event",
    "position_in_head",
    "time_in_head",
]

SKIPPED = "Skipped"  # the record of an event that the producer left out, because the operator named it with --skip
# A chunk of a table: either all rows in a range of keys on the leader or, for a table without a usable key, a part of
# the rows in one snapshot (called a piece).
COPY = "Copy"
# A chunk of chosen keys has this name in Kafka. So readers that know only ranges do not mistake it for a chunk of a
# range.
REPAIR = "Repair"
OPERATIONS = frozenset({"Query", "Add", "Update", "Delete", COPY, REPAIR, SKIPPED})


_WITHOUT_ROWS = ("Query", SKIPPED)
_OF_COPY = "copy:"  # the id of a transaction that the producer made for a table copy begins with this text

_LARGE = 4_000_000  # bytes
# This pattern matches only the real key, because inside a JSON string the quotes would be escaped with backslashes.
_POSITION = re.compile(rb'"bn_file":\s*(\{[^{}]*\})')
_TIME = re.compile(rb'"transaction":\s*\{[^{}]*"ts_us":\s*(\d+)')
_LARGE_BLOB = re.compile(rb'\{"Blob":"([A-Za-z0-9+/=]{1000000,})"\}')

# The cache helps because a stream names few tables, each in many records.
_uri = lru_cache(maxsize=10_000)(Uri.parse)


def position_in_head(text: bytes, *, where: str) -> Position:
    """Reads the leader position of a record from ``text``, the first bytes of its JSON.

    ``where`` is used only in the error. Raises PromiseError if ``text`` does not contain the position.
    """
    found = _POSITION.search(text)
    if found is None:
        raise PromiseError(f"not the beginning of a record: {text[:80]!r}", code="CDC-RECORD-INVALID", where=where)
    body = orjson.loads(found[1])
    return Position(body["fileName"], int(body["offset"]))


def time_in_head(text: bytes) -> int | None:
    """Reads the time in a record's transaction (``ts_us``) from ``text``, the first bytes of its JSON; None if it is
    not in them.
    """
    found = _TIME.search(text)
    return None if found is None else int(found[1])


class Row(NamedTuple):
    """The images of one row, with a value for each column. The row of an Add has no ``before``, and the row of a Delete
    has no ``after``.
    """

    before: list[Value] | None
    after: list[Value] | None


class KeyRange(NamedTuple):
    """The keys that a chunk covers: the keys after the key ``after``, up to and including the key ``through``. None
    means the table's beginning or end.

    ``collations`` contains, for each column of the key, the collation that orders the column on the leader, or None for
    a column without a collation. It is None if the record contains no collations. If ``piece`` is set, the chunk has no
    range: it is one of the pieces (numbered from 0) that together contain all rows of the table, and ``after`` and
    ``through`` are empty keys, or None. If ``keys`` is set, the chunk covers exactly these keys, and ``after`` and
    ``through`` are None.
    """

    after: list[Value] | None
    through: list[Value] | None
    collations: tuple[str | None, ...] | None = None
    piece: int | None = None
    keys: tuple[list[Value], ...] | None = None


# Creates a Row as Row() does, but without calling a Python function.
_row: Callable[[tuple[list[Value] | None, list[Value] | None]], Row] = partial(tuple.__new__, Row)


# The class is not frozen, because creating a frozen object takes three times as long.
@dataclass(slots=True)
class Record:
    """A parsed record. ``key`` is None for a table without a key; ``flags`` are MySQL's flags of the rows event.

    ``exact`` contains the bytes of a statement, in the character set of its ``context``, if they can't be restored from
    ``query``. ``sql_mode`` is the mode under which the rows were written, None for the usual mode. For an event that
    the producer left out, ``query`` contains the event and the reason, and ``affects`` lists the objects that the event
    may have changed. ``types`` are the types of the columns, if the record contains them. ``has_stored`` is true if
    large BLOBs of its rows may be in a file instead of in memory (``StoredBlob``).
    """

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
    rows: Sequence[Row] = ()
    flags: int = 0
    context: dict[str, Any] | None = None
    affects: tuple[dict[str, Any], ...] = ()
    sql_mode: str | None = None
    exact: bytes | None = None
    range: KeyRange | None = None
    copying: bool = False
    types: tuple[str, ...] = ()
    has_stored: bool = False

    @property
    def of_copy(self) -> bool:
        """Whether the record belongs to a table copy. If so, the producer made it, and it belongs to no transaction of
        the leader.
        """
        return self.transaction.startswith(_OF_COPY)

    def emptied(self) -> "Record":
        """Returns the record without rows and without effect. The result has no range either, because a chunk without
        rows would make followers empty its range.
        """
        return replace(self, operation="Add" if self.range else self.operation, rows=(), range=None)

    @classmethod
    def parse(cls, text: bytes | LargeRecord, *, where: str) -> Self:
        """Parses the value of a message. ``where`` (topic, partition, offset) is used only in errors.

        Raises PromiseError if the value is not a record, because skipping the message could lose a change.
        """
        try:
            if isinstance(text, LargeRecord):
                return cls._from_stored(text)
            return cls._from_json(orjson.loads(text) if len(text) < _LARGE else _large(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PromiseError(
                f"not a record ({type(error).__name__}: {error}): "
                f"{(text.text if isinstance(text, LargeRecord) else text)[:80]!r}",
                code="CDC-RECORD-INVALID",
                where=where,
                hint="something else writes to this topic: end it; when every follower has applied what comes before, "
                "delete the partition's records up to and with this one (kafka-delete-records.sh)",
            ) from None

    @classmethod
    def _from_stored(cls, text: LargeRecord) -> Self:
        body = text.body()
        record = cls._from_json(_large(text.whole()) if body is None else body)
        record.has_stored = body is not None
        return record

    @classmethod
    def _from_json(cls, body: dict[str, Any]) -> Self:
        (operation, content), *more = body["operation"].items()
        if operation not in OPERATIONS:
            raise ValueError(f"unknown operation {operation!r}")
        position, transaction = body["bn_file"], body["transaction"]
        columns = tuple(body.get("columns", ()))
        return cls(
            _uri(body["uri"]),
            int(body["sequence"]),
            Position(position["fileName"], int(position["offset"])),
            transaction["id"],
            int(transaction["index"]),
            bool(transaction["last"]),
            int(transaction["ts_us"]),
            COPY if operation == REPAIR else operation,
            _query(operation, content),
            columns,
            tuple(body["key"]) if "key" in body else None,
            () if operation in _WITHOUT_ROWS else _rows(operation, content["rows"], width=len(columns)),
            int(body.get("flags", 0)),
            body.get("context"),
            tuple(body.get("affects", ())),
            body.get("sql_mode"),
            _exact(operation, dict(more)) if more else None,
            _range(operation, content, body.get("key")) if operation in (COPY, REPAIR) else None,
            "copying" in body and _flag(body["copying"]),
            tuple(body["types"]) if "types" in body else (),
        )


def _large(text: bytes) -> Any:
    """Parses a large record. Its large BLOBs are cut out first, since the JSON parser would copy them."""
    found: list[str] = []

    def taken(match: re.Match[bytes]) -> bytes:
        found.append(str(memoryview(text)[match.start(1) : match.end(1)], "ascii"))
        return b'{"Blob":"#%d"}' % (len(found) - 1)

    body: dict[str, Any] = orjson.loads(_LARGE_BLOB.sub(taken, text))
    waiting = {f"#{number}": content for number, content in enumerate(found)}
    found.clear()
    for row in body["operation"][next(iter(body["operation"]))]["rows"] if waiting else ():
        for value in chain.from_iterable(row.values()):
            if isinstance(value, dict) and value.get("Blob") in waiting:
                value["Blob"] = waiting.pop(value["Blob"])
    # Some texts that look like large BLOBs were not found among the values; they may be parts of a JSON document.
    return orjson.loads(text) if waiting else body


def _query(operation: str, content: Any) -> str:
    if operation == SKIPPED:
        return f"{content['event']} at {content['place']}: {content['reason']}"
    return content if operation == "Query" else ""


def _exact(operation: str, more: dict[str, str]) -> bytes:
    if operation != "Query" or more.keys() != {"Bytes"}:
        raise ValueError(f"unknown content of the operation: {', '.join(more)}")
    return b64decode(more["Bytes"], validate=True)


def _range(operation: str, content: dict[str, Any], key: list[str] | None) -> KeyRange:
    collations, piece = content.get("collations"), content.get("piece")
    if piece is None and not key:
        raise ValueError("a range of no key")
    width = len(key or ()) if piece is None else 0
    after = through = keys = None
    if operation == REPAIR:
        keys = tuple(each["cols"] for each in content["keys"])
        if not keys or piece is not None:
            raise ValueError("no keys")
    else:
        after, through = [None if content[end] is None else content[end]["cols"] for end in ("after", "upto")]
    for found in (after, through, collations, *(keys or ())):
        if found is not None and len(found) != width:
            raise ValueError(f"{len(found)} values for a key of {width} columns")
    if piece is not None and (after is None) != (int(piece) == 0):
        raise ValueError(f"piece {piece} is not where it says")
    return KeyRange(after, through, None if collations is None else tuple(collations), piece, keys)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"neither true nor false: {value!r}")
    return value


def is_event(text: bytes) -> bool:
    """Whether a message of ``mysql_binlog_events`` contains a binlog event that belongs to no record, so that no
    consumer applies it.
    """
    try:
        body = orjson.loads(text)
    except ValueError:
        return False
    return isinstance(body, dict) and "event" in body and "sequence" not in body


def _rows(operation: str, rows: list[dict[str, Any]], *, width: int) -> tuple[Row, ...]:
    before: Iterable[list[Value] | None] = repeat(None)
    after: Iterable[list[Value] | None] = repeat(None)
    if operation in ("Add", COPY, REPAIR):
        after = _images(rows, "cols", width)
    elif operation == "Delete":
        before = _images(rows, "cols", width)
    else:
        before, after = _images(rows, "before_cols", width), _images(rows, "after_cols", width)
    return tuple(map(_row, zip(before, after, strict=False)))


def _images(rows: list[dict[str, Any]], name: str, width: int) -> list[list[Value]]:
    images = [row[name] for row in rows]
    for size in map(len, images):
        if size != width:
            raise ValueError(f"a row of {size} values for {width} columns")
    return images
