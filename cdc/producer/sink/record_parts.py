"""Splits the rows of an event into records of limited size, and writes the part of a record after its sequence.

Also builds the records of a copy: each is a transaction of its own, without a GTID.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple, TypeVar

from cdc.model.position import Position
from cdc.model.record import Uri
from cdc.producer.decode.changes import Chunk, Creation, Rows, TableShape
from cdc.producer.large_rows import LargeText
from cdc.sql.effects import Effect

__all__ = [
    "COPIED",
    "COPYING",
    "HEAD_BYTES",
    "RECORD",
    "Headers",
    "Message",
    "Part",
    "Place",
    "ToldTypes",
    "affects",
    "binlog_place",
    "chunk_body",
    "copied_message",
    "creation_body",
    "encoded",
    "is_large",
    "joined",
    "json_text",
    "rows_body",
    "split",
]


COPYING = '"copying":true,'  # marks a record of a table that is being copied

# docs/record-format.md explains bn_file, transaction and the other fields.
RECORD = (
    '{"uri":"%s","sequence":%d,"bn_file":{"fileName":"%s","offset":%d},'
    '"transaction":{"id":"%s","index":%d,"last":%s,"ts_us":%d},'
)
# The header of a chunk's message that contains the state of the copy after the chunk, in the form of the commit log's
# entries.
COPIED = "cdc_copy"
_SLICE = 1 << 20  # characters
_MAX_CHANGED = 10_000


Headers = list[tuple[str, str | bytes | None]]
RowsText = TypeVar("RowsText", bytes, bytes | LargeText)


# The beginning of RECORD; a GTID and the name of a binlog's file need no escapes.
_PLACE = re.compile(rb'"bn_file":\{"fileName":"([^"]*)","offset":(\d+)\},"transaction":\{"id":"[^"]*","index":(\d+),')
HEAD_BYTES = 8_192  # enough for the beginning of any record: a URI has at most 1 200 bytes


def binlog_place(head: bytes) -> tuple[tuple[int, int], int] | None:
    """Returns the place of a record in the leader's binlog, by which the records of one server can be compared: the
    place of its event, and its index in the transaction. ``head`` is the beginning of the record's JSON. None if the
    place is not in it.
    """
    found = _PLACE.search(head)
    return None if found is None else (Position(found[1].decode(), int(found[2])).place, int(found[3]))


class Message(NamedTuple):
    """A record as it is sent to Kafka: topic, key, value and headers; ``time_ms`` is the leader's commit time."""

    topic: str
    key: bytes
    value: bytes | LargeText
    time_ms: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class Part:
    """A record before it has a sequence and an index in its transaction: the router adds both when it knows whether the
    record is the last in its transaction.

    ``rows`` counts its rows, 1 for a statement; ``newest`` is the checksum of its last row (``router.row_sum``), and
    ``unordered`` the sum of the checksums of its rows if their order depends on the server.
    """

    topic: str
    uri: str
    position: Position
    body: tuple[str | bytes | LargeText, ...]
    header: bytes
    rows: int
    newest: int
    unordered: int = 0


def is_large(changes: list[Rows], record_bytes: int) -> bool:
    """Whether one of the rows events may have to be split (``split``)."""
    for _, _, _, rows, _ in changes:  # noqa: SIM110  a generator would take as long as the whole record
        if len(rows) > 1 and sum(map(len, rows)) + len(rows) > record_bytes:
            return True
    return False


def split(rows: list[bytes] | list[LargeText], record_bytes: int) -> Iterator[list[bytes | LargeText]]:
    """Divides ``rows`` into parts of at most ``record_bytes``, or of one row if that row is larger."""
    size = 0
    part: list[bytes | LargeText] = []
    for row in rows:
        length = len(row)
        if part and size + length > record_bytes:
            yield part
            size, part = 0, []
        part.append(row)
        size += length + 1
    yield part


class ToldTypes:
    """Decides which records contain their table's column types: the table's first record, and the first record after
    each statement on the table, since the statement may have changed the table.

    ``statements`` counts the statements in the stream. At each record of a table, this number is stored in the table's
    ``told``. The next record contains the types if a statement on the table has a higher number.
    """

    def __init__(self) -> None:
        self.statements = 0
        self._changed: dict[tuple[str, str], int] = {}
        self._all = 0

    def forget(self, effects: Iterable[Effect]) -> None:
        """Forgets which records contained types, for the tables whose types a statement with these ``effects`` may have
        changed.
        """
        self.statements += 1
        for effect in effects:
            if effect.action.endswith("Database") or len(self._changed) > _MAX_CHANGED:
                self._changed.clear()
                self._all = self.statements
            elif effect.action.endswith(("Table", "Index")) and effect.name is not None:
                names = [(effect.database, effect.name), *([effect.to] if effect.to else [])]
                self._changed.update(dict.fromkeys(names, self.statements))

    def columns(self, table: TableShape) -> str:
        """Returns the JSON about the columns in the next record of ``table``: their names, and their types if a record
        must contain them.
        """
        known, table.told = table.told, self.statements
        is_told = known >= max(self._changed.get(table.names, 0), self._all)
        return table.columns_json if is_told else table.columns_json + table.types_json


def joined(rows: list[bytes | LargeText]) -> bytes | LargeText:
    """Joins ``rows`` with commas."""
    in_memory = [row for row in rows if isinstance(row, bytes)]
    if len(in_memory) == len(rows):
        return b",".join(in_memory)
    pieces = [part for row in rows for part in (b",", row)]
    return LargeText.joined(pieces[1:])


def rows_body(columns: str, flags: int, mode: str | None, operation: str, rows: RowsText) -> tuple[str, RowsText, str]:
    """Builds the part of a record that follows the sequence: ``columns`` (JSON text), flags, sql_mode and the joined
    JSON ``rows``.

    ``mode`` is the transaction's sql_mode (``events.row_mode``). Returns the part in three pieces, since the rows may
    be large.
    """
    context = f',"flags":{flags}' if flags else ""
    if mode is not None:
        context += f',"sql_mode":"{mode}"'
    return f'{columns}{context},"operation":{{"{operation}":{{"rows":[', rows, "]}}"


def affects(effects: Iterable[Effect], resource: str) -> str:
    """Returns the effects of a statement on the leader ``resource`` as JSON text, in the form that the statement's
    record contains.
    """
    found = []
    for effect in effects:
        names = (effect.database,) if effect.name is None else (effect.database, effect.name)
        affect = {"action": effect.action, "uri": str(Uri(resource, *names))}
        if effect.to is not None:
            affect["to"] = str(Uri(resource, *effect.to))
        if effect.like is not None:
            affect["like"] = str(Uri(resource, *effect.like))
        found.append(affect)
    return json_text(found)


def json_text(value: object) -> str:
    """Writes ``value`` as JSON as in records: without blanks, and with letters of any language unescaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encoded(pieces: Sequence[str | bytes | LargeText]) -> bytes | LargeText:
    """Joins the pieces in UTF-8; makes no other copy of a large piece."""
    in_memory = [piece for piece in pieces if not isinstance(piece, LargeText)]
    if len(in_memory) < len(pieces):
        return LargeText.joined(pieces)
    buffer = BytesIO()
    for piece in in_memory:
        if isinstance(piece, bytes):
            buffer.write(piece)
            continue
        for begin in range(0, len(piece), _SLICE):
            buffer.write(piece[begin : begin + _SLICE].encode())
    return buffer.getvalue()


_NO_FOREIGN_KEY_CHECKS = 2  # a flag of rows events


def chunk_body(chunk: Chunk) -> tuple[str, ...]:
    """Builds the part of a chunk's record that follows the sequence, in pieces."""
    name, ends = "Copy", f'"after":{_key(chunk.after)},"upto":{_key(chunk.upto)}'
    if chunk.keys is not None:
        name, ends = "Repair", f'"keys":[{",".join(map(_key, chunk.keys))}]'
    if chunk.piece is not None:
        ends = f'"piece":{chunk.piece},{ends}'
    else:
        ends += f',"collations":{json.dumps(chunk.collations)}'
    head = f',"flags":{_NO_FOREIGN_KEY_CHECKS},"operation":{{"{name}":{{{ends},"rows":['
    return chunk.columns_json, head, ",".join(chunk.rows), "]}}"


def _key(bound: tuple[str, ...] | None) -> str:
    return "null" if bound is None else f'{{"cols":[{",".join(bound)}]}}'


def creation_body(creation: Creation, *, resource: str, ts_us: int) -> tuple[str, ...]:
    """Builds a record with the statement that creates a copied object, without its beginning (the sequence). The
    statement was read on the leader ``resource`` at the time ``ts_us``.
    """
    exact = {} if creation.exact is None else {"Bytes": b64encode(creation.exact).decode("ascii")}
    query = json_text({"Query": creation.text} | exact)
    context = json_text(creation.context | {"timestamp_us": ts_us})
    return COPYING, f'"operation":{query},"context":{context},"affects":{affects(creation.effects, resource)}'


class Place(NamedTuple):
    """The place of a copied record in the stream: its sequence, the ``position`` of the stream in the binlog, and the
    time of reading.
    """

    sequence: int
    position: Position
    ts_us: int


def copied_message(topic: str, uri: str, body: tuple[str, ...], place: Place, state: str) -> Message:
    """Builds the record of a copy, with ``body`` after the sequence; ``state`` is the state of the copy after this
    record."""
    (sequence, position, ts_us), last = place, "true"
    head = RECORD % (uri, sequence, *position, f"copy:{sequence}", 0, last, ts_us)
    return Message(topic, uri.encode(), encoded((head, *body, "}")), ts_us // 1000, [(COPIED, state)])
