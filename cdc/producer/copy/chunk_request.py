"""A chunk request in flight: rows read from the leader, merged with the changes that came in the stream since the
request.

The SELECT of a chunk sees some of the transactions that are committed after the request, and the producer can't know
which ones. All transactions that it may have missed come in the stream after the request. If such a transaction changes
a row, the row is taken from the stream: the SELECT saw the same version of the row, or an older one.

A snapshot of a table that is copied as a whole sees a subset of the binlog's transactions, not necessarily the oldest.
It certainly sees the transactions that were executed before it (``seen``). All other transactions that it may see are
before the end of the binlog, which is read right after the snapshot is taken. So if the stream has reached that end,
and ``seen`` contains all its transactions that changed the table since the request, the snapshot shows the table as it
is at that point.
"""

import json
import re
import select
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdc.model.gtid import GtidSet
from cdc.producer.copy.chunk_reader import ReadChunk
from cdc.producer.copy.definition import TableDefinition
from cdc.producer.copy.keys import Keys
from cdc.producer.copy.reader import Answer, Reader, Wanted
from cdc.producer.copy.state import Pending, Table
from cdc.producer.decode.changes import Begin, Change, Chunk, ColumnDetails, Rows, RowsTransaction
from cdc.producer.large_rows import LargeText

__all__ = [
    "Changers",
    "ChunkRequest",
    "ChunkRequests",
    "Overrun",
    "Place",
    "Snapshot",
    "Window",
    "chunk_of",
    "following",
    "is_exact",
    "merged",
]

_MOST = 100_000


def is_exact(changers: Iterable[str | None], seen: GtidSet) -> bool:
    """Whether ``seen`` contains all transactions that changed the table. None in ``changers`` stands for an unknown
    transaction.
    """
    return all(gtid is not None and gtid in seen for gtid in changers)


class Changers:
    """The transactions of the stream that changed a table since it was requested, up to a limit."""

    def __init__(self) -> None:
        self.gtids: set[str | None] = set()

    def note(self, gtid: str | None) -> None:
        """Notes that the transaction ``gtid`` has changed the table. None means a transaction without a GTID: it is
        never certain that a snapshot sees such a transaction.
        """
        self.gtids.add(gtid if len(self.gtids) < _MOST else None)


@dataclass(slots=True)
class Snapshot:
    """The progress of a table that is copied as a whole, from one snapshot, because it has no usable key.

    A snapshot is exact if it shows the table as it is at one point of the stream. ``tries`` counts the snapshots since
    ``began``. ``pieces`` counts the chunks of the exact snapshot that are written; it is None until a snapshot is
    exact. From then on, changes of ``tables`` must wait until all pieces are written.
    """

    tables: frozenset[Table]
    began: float
    tries: int = 0
    told: float = 0.0
    pieces: int | None = None
    waits: bool = False  # whether the stream waits for the pieces

    def may_end_with(self, change: Change) -> bool:
        """Whether ``change`` may make the snapshot outdated: it is a transaction that changes one of the tables, or the
        beginning of a transaction that may change one of them."""
        if type(change) is RowsTransaction:
            return any(rows.table.names in self.tables for rows in change.rows)
        return type(change) is Begin


_LIMIT = 64_000_000  # the most bytes of changes that are kept while a chunk is read


class Overrun(Exception):
    """Raised when a chunk must be read again, for example because its table has more changes than can be kept."""


# The keys between which a chunk's rows are, as JSON texts of their values; None is the beginning or the end of a table.
Bounds = tuple[Sequence[str] | None, Sequence[str] | None]


class Window:
    """The changes of one table since a chunk of the table was requested."""

    def __init__(self) -> None:
        self._changes: list[tuple[str, list[bytes] | list[LargeText]]] = []
        self._size = 0

    def note(self, operation: str, rows: list[bytes] | list[LargeText]) -> None:
        """Keeps the JSON texts of changed ``rows``."""
        self._size += sum(map(len, rows))
        if self._size > _LIMIT:
            self._changes.clear()
        else:
            self._changes.append((operation, rows))

    def lose(self) -> None:
        """Notes a change that is not known: the chunk can't be computed from the changes, and must be read again."""
        self._changes.clear()
        self._size = _LIMIT + 1

    def apply(self, rows: list[str], key: Sequence[int], bounds: Bounds = (None, None)) -> list[str]:
        """Applies all changes to the chunk's ``rows``, JSON texts; ``key`` contains the indexes of the key's columns,
        ``bounds`` the keys between which the rows were read.

        Raises Overrun.
        """
        if self._size > _LIMIT:
            raise Overrun
        changes = ((operation, json.loads(bytes(row))) for operation, texts in self._changes for row in texts)
        return merged(rows, key, changes, bounds)


def merged(
    rows: list[str], key: Sequence[int], changes: Iterable[tuple[str, dict[str, Any]]], bounds: Bounds = (None, None)
) -> list[str]:
    """Applies ``changes`` to ``rows``; each change is an operation and the row as an object of the record format.

    Leaves out changed rows that are certainly outside of the chunk's range, since followers have them from the changes
    already, and must not meet them twice. That is certain for a row that existed all the time, and was not read, and
    for a row whose key is outside of ``bounds`` by numbers. Other rows outside of the range may be in the result.
    """
    last: dict[str, list[Any] | None] = {}
    appeared: set[str] = set()  # the rows that did not exist at some time since the request
    for operation, row in changes:
        before = row.get("before_cols") if operation == "Update" else row["cols"] if operation == "Delete" else None
        after = row.get("after_cols") if operation == "Update" else row["cols"] if operation == "Add" else None
        gone, come = (None if image is None else _identity(image, key) for image in (before, after))
        if gone is not None:
            last[gone] = None
        if come is not None:
            last[come] = after
        appeared.update(identity for identity in (gone, come) if identity is not None and gone != come)
    if not last:
        return rows
    read = set()
    kept = []
    for text, identity in zip(rows, _identities(rows, key, last), strict=True):
        if identity in last:
            read.add(identity)
        else:
            kept.append(text)
    low, high = (_numbers(end) for end in bounds)
    for identity, image in last.items():
        if image is None or (identity not in read and identity not in appeared):
            continue
        if identity in read or _may_be_between(low, _numbers([_text(image[at]) for at in key]), high):
            kept.append(_text({"cols": image}))
    return kept


def _may_be_between(low: list[int] | None, key: list[int] | None, high: list[int] | None) -> bool:
    """Whether a key may be between two others; None stands for a key whose order is not that of its numbers."""
    return key is None or not ((low is not None and key <= low) or (high is not None and key > high))


def _numbers(key: Sequence[str] | None) -> list[int] | None:
    """Returns the numbers in the JSON texts of a key, None if some of its columns are no integers."""
    found = [_INTEGER.fullmatch(value) for value in key or ()]
    return [int(value[1]) for value in found if value] if found and all(found) else None


def _identities(rows: list[str], key: Sequence[int], wanted: Collection[str]) -> Iterable[str]:
    """Returns the identity of each row. For a row that is not ``wanted`` it may be another text that is not wanted
    either.

    Usually the key are the first columns, and integers: then a row is recognized by how its text begins.
    """
    first = list(range(len(key)))
    if list(key) != first or not all(map(_INTEGERS.fullmatch, wanted)):
        return [_identity(_first_values(row, max(key) + 1), key) for row in rows]
    begins = len(_COLUMNS)
    ends = [begins - 1] * len(rows)
    for _ in first:
        ends = [row.find("}", end + 1) for row, end in zip(rows, ends, strict=True)]
    known = {identity[1:-1]: identity for identity in wanted}  # without the brackets
    return [known.get(row[begins : end + 1], "") for row, end in zip(rows, ends, strict=True)]


def _first_values(row: str, count: int) -> list[Any]:
    """Parses the first ``count`` values of a row that was read. Each row of a chunk is looked up by its key, and most
    keys come first, so the other values are not parsed.
    """
    values, at = [], len(_COLUMNS)
    for _ in range(count):
        value, end = _parse_at(row, at)
        values.append(value)
        at = end + 1  # after the comma
    return values


def _identity(image: list[Any], key: Sequence[int]) -> str:
    return _text([image[at] for at in key])


_INTEGER = re.compile(r'\{"(?:Signed|Unsigned)Integer":(-?[0-9]+)\}')
_INTEGERS = re.compile(rf"\[{_INTEGER.pattern}(?:,{_INTEGER.pattern})*\]")
_COLUMNS = '{"cols":['  # the text with which ``row_text`` begins each row
_parse_at = json.JSONDecoder().raw_decode
_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


# The next request: a table and the key after which its rows are wanted, or a table and the keys of the wanted rows. If
# all three are None, the statements that create the tables are requested.
Place = tuple[Table | None, tuple[str, ...] | None, Keys | None]

_CASCADES = ',"cascades":true'
# Flags of a rows event which mean that foreign keys were off, or that their changes were logged, too (class
# Rows_event).
_NOTHING_UNLOGGED = 0x02 | 0x10


@dataclass(slots=True)
class ChunkRequest:
    """A chunk request: what was requested (``wanted``), when (``at``, monotonic), which changes came since, and the
    ``answer`` (None until it arrives).

    ``cascading`` are tables with changes that may have cascaded through foreign keys; ``columns`` are the table's
    columns and key in the records of its changes.
    """

    wanted: Wanted
    window: Window = field(default_factory=Window)
    changers: Changers = field(default_factory=Changers)
    cascading: set[Table] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    at: float = field(default_factory=time.monotonic)
    answer: Answer | None = None

    def note(self, rows: Rows, gtid: str | None) -> None:
        """Notes a change by the transaction ``gtid``."""
        if rows.table.names == self.wanted.table:
            self.window.note(rows.operation, rows.rows)
            self.changers.note(gtid)
            self.columns.add(rows.table.columns_json)
        if rows.operation != "Add" and not rows.flags & _NOTHING_UNLOGGED:
            self.cascading.add(rows.table.names)

    def may_cascade(self, answer: Answer) -> bool:
        """Whether a foreign key may have changed the table's rows without an event in the binlog."""
        return not self.cascading.isdisjoint(answer.follows)

    def is_exact(self, answer: Answer) -> bool:
        """Whether the snapshot in ``answer`` shows the table as it is at this point of the stream."""
        return answer.seen is not None and not self.may_cascade(answer) and is_exact(self.changers.gtids, answer.seen)


class ChunkRequests:
    """The requests that were sent to a reader and are not done yet, in order. ``open_reader`` starts the reader at the
    first request.

    ``unwanted`` counts the answers that have not arrived yet for withdrawn requests.
    """

    def __init__(self, open_reader: Callable[[], Reader]) -> None:
        self._open_reader = open_reader
        self._reader: Reader | None = None
        self._asked: deque[ChunkRequest] = deque()
        self.unwanted = 0

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def first(self) -> ChunkRequest | None:
        """The oldest request, None if there is none."""
        return self._asked[0] if self._asked else None

    @property
    def last(self) -> ChunkRequest | None:
        """The newest request, None if there is none."""
        return self._asked[-1] if self._asked else None

    @property
    def wake(self) -> int | None:
        """A file descriptor that becomes readable once there is an answer; None if nothing is being read."""
        return self._reader.wake if self._reader else None

    def ask(self, wanted: Wanted) -> None:
        """Sends the request ``wanted`` to the reader."""
        if self._reader is None:
            self._reader = self._open_reader()
        self._reader.ask(wanted)
        self._asked.append(ChunkRequest(wanted))

    def pop(self) -> ChunkRequest:
        """Removes the oldest request, which is done, and returns it."""
        return self._asked.popleft()

    def receive(self) -> None:
        """Receives the answers that have arrived. Raises the errors of reading: Disconnected and UserError."""
        while self._reader is not None and (answer := self._reader.answer()) is not None:
            if self.unwanted:
                self.unwanted -= 1
                continue
            next(asked for asked in self._asked if asked.answer is None).answer = answer

    def note(self, rows: Rows, gtid: str | None) -> None:
        """Notes, in all requests, that the transaction ``gtid`` has changed ``rows``."""
        for asked in self._asked:
            asked.note(rows, gtid)

    def note_unknown(self, tables: Collection[Table] = ()) -> None:
        """Notes that an event that the decoder can't decode may have changed rows of ``tables`` or, if ``tables`` is
        empty, of any table. The requested rows of these tables must be read again.
        """
        for asked in self._asked:
            if not tables or asked.wanted.table in tables:
                asked.changers.note(None)
                asked.window.lose()

    def take_back(self) -> None:
        """Withdraws all requests."""
        self.unwanted += sum(asked.answer is None for asked in self._asked)
        self._asked.clear()
        if self._reader is not None:
            self._reader.forget()

    @property
    def waits_for(self) -> str | None:
        """The name of the follower that the reader waits for at the moment; None if it waits for no follower."""
        return self._reader.waits_for if self._reader else None

    def written(self, sequence: int, size: int) -> None:
        """Reports to the reader that the chunk for the oldest request was written; see ``Reader.written``."""
        if self._reader is not None:
            self._reader.written(sequence, size)

    def hurry(self, *, hurried: bool) -> None:
        """Informs the reader whether the stream waits for an answer."""
        if self._reader is not None:
            (self._reader.hurried.set if hurried else self._reader.hurried.clear)()

    def wait(self, seconds: float) -> None:
        """Waits until there is an answer, for at most ``seconds``."""
        if self._reader is not None:
            select.select([self._reader.wake], [], [], seconds)

    def close(self) -> None:
        """Ends the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._asked.clear()
        self.unwanted = 0


def following(
    pending: Pending, snapshot: Snapshot | None, keys: Keys | None, last: ChunkRequest | None
) -> Place | None:
    """Returns what is to be requested after the request ``last``: rows of the table that is copied now or, if ``last``
    has read the rest of them, of the next one; or the rows with ``keys``. Returns None if this is known only when
    ``last`` is done.

    The rows with ``keys`` come before the next chunk of a table, but not between two pieces of a snapshot.
    """
    is_piece = snapshot is not None and snapshot.pieces is not None
    # No other request comes between the pieces of a table.
    if keys is not None and not is_piece:
        # Keys are requested alone, so that the next request continues at the end of the chunks before it.
        return None if last else (keys.table, None, keys)
    if last is None:
        return pending.current, () if is_piece else None if snapshot else pending.after or None, None
    newest = last.answer
    if newest is None or newest.chunk is None or last.wanted.table != pending.current:
        return None
    if newest.chunk.upto is not None:
        return pending.current, newest.chunk.upto, None
    return (pending.tables[1], None, None) if len(pending.tables) > 1 else None


def chunk_of(asked: ChunkRequest, answer: Answer, *, piece: int | None) -> Chunk:
    """Builds the chunk from the rows that were read and the changes since the request; ``piece`` numbers the pieces of
    a snapshot.

    Raises Overrun if the rows have to be read again: too much changed, or a foreign key may have changed rows without a
    trace in the binlog.
    """
    definition, read = answer.definition, answer.chunk
    if definition is None or read is None or asked.may_cascade(answer):
        raise Overrun
    if piece is not None:
        if asked.changers.gtids:
            raise Overrun  # can't happen: the table's changes wait until all pieces are written
        return _piece_of(definition, read, piece, answer)
    if asked.columns - {definition.columns_json}:
        # An ALTER that was not logged has changed the columns: the rows that were read and the streamed changes have
        # different columns.
        raise Overrun
    columns = [column.name for column in definition.columns]
    bounds = (None, None) if asked.wanted.keys is not None else (asked.wanted.after, read.upto)
    rows = asked.window.apply(read.rows, [columns.index(name) for name in definition.key], bounds)
    return _part_of(definition, (asked.wanted.after, read.upto), rows, answer)


def _part_of(
    definition: TableDefinition,
    bounds: tuple[tuple[str, ...] | None, tuple[str, ...] | None],
    rows: list[str],
    answer: Answer,
) -> Chunk:
    """Builds the chunk of the rows between two ``bounds`` of the table's key, or of the rows with the requested
    keys."""
    table = definition.database, definition.name
    collations = tuple(column.collation for column in definition.key_columns)
    columns = definition.columns_json + ("" if bounds[0] else _first_only(definition, answer))
    chunk = Chunk(table, columns, collations, *bounds, rows, answer.ts_us, keys=answer.keys)
    return chunk._replace(types_json=definition.types_json, details=_details(definition))


def _piece_of(definition: TableDefinition, read: ReadChunk, number: int, answer: Answer) -> Chunk:
    """Builds the chunk for piece ``number`` of a table that is read in one snapshot."""
    table, after = (definition.database, definition.name), None if number == 0 else ()
    columns = definition.columns_json + ("" if number else _first_only(definition, answer))
    chunk = Chunk(table, columns, (), after, read.upto, read.rows, answer.ts_us, piece=number)
    return chunk._replace(types_json=definition.types_json, details=_details(definition))


def _details(definition: TableDefinition) -> ColumnDetails:
    return ColumnDetails(
        frozenset(at for at, column in enumerate(definition.columns) if not column.nullable),
        frozenset(at for at, column in enumerate(definition.columns) if column.type == "point"),
    )


def _first_only(definition: TableDefinition, answer: Answer) -> str:
    """Returns the fields that only the first chunk of a copy contains: the types of the columns, and the mark that
    foreign keys may change rows without a record.
    """
    return definition.types_json + (_CASCADES if answer.follows else "")
