"""Defines the changes in a stream: rows and their tables, statements, bounds of transactions, new positions, and the
chunks of table copies.

The module also contains the errors for events that can't be replicated.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from cdc.config.filters import Filters
from cdc.errors import PromiseError
from cdc.model.commit_entry import PreparedXa
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.event_types import ROWS, UPDATES
from cdc.producer.binlog.events import ROWS_EXTRA_AT, ROWS_EXTRA_LENGTH_BYTES, RawEvent
from cdc.producer.large_rows import LargeColumn, LargeText
from cdc.sql.effects import ANY_DATABASE, Effect
from cdc.sql.row_condition import Matches
from cdc.sql.text import is_lost
from cdc.sql.tokens import excerpt

__all__ = [
    "Begin",
    "Beginning",
    "Change",
    "Chunk",
    "ColumnDetails",
    "Commit",
    "Copied",
    "CopyState",
    "Creation",
    "Damaged",
    "Held",
    "Idle",
    "OtherEvent",
    "PositionAdvanced",
    "Prepared",
    "Refused",
    "RowDecoder",
    "Rows",
    "RowsTransaction",
    "ShapeCache",
    "Statement",
    "Structure",
    "Table",
    "TableShape",
    "nameless",
    "not_closed",
    "passed_over",
    "refused_statement",
    "unknown_event",
    "unreadable",
]

Table = tuple[str, str]  # database and name
_VERB = re.compile("^(Create|Alter|Drop|Rename|Truncate|Maintain)")
_UNKNOWN_STATEMENT = (
    "run it on the follower by hand, then start a new topic there, or report the statement so that it can be added"
)


class Damaged(PromiseError):
    """Raised for events in an order that no binlog can contain. An operator can't solve this by skipping an event."""


def nameless(event: RawEvent) -> Damaged:
    return Damaged(
        "a transaction has no GTID event",
        code="CDC-EVENT-NO-GTID",
        where=str(event.position),
        hint="the leader must be MySQL 8.0 or newer",
    )


def not_closed(event: RawEvent) -> Damaged:
    return Damaged(
        "a transaction begins before the previous one has ended",
        code="CDC-EVENT-DAMAGED",
        where=str(event.position),
        hint="the leader's binlog is damaged: give the producer a new topic and the follower a fresh copy",
    )


def unreadable(event: RawEvent, error: Exception) -> PromiseError:
    return PromiseError(
        f"event {event.type} ({et.NAMES.get(event.type, 'unknown')}) cannot be read: {error!r}",
        code="CDC-EVENT-UNKNOWN",
        where=str(event.position),
        hint="this leader writes events that this version of cdc does not know",
    )


def unknown_event(event: RawEvent) -> PromiseError:
    name = et.NAMES.get(event.type, "unknown")
    return PromiseError(
        f"event {event.type} ({name}) is not supported, and ignoring it would lose a change",
        code="CDC-EVENT-UNKNOWN",
        where=str(event.position),
        hint=et.FATAL.get(event.type, "this leader writes events that this version of cdc does not know"),
    )


def refused_statement(kind: str, text: str, event: RawEvent) -> PromiseError:
    """Returns the error for a statement that can't be replicated because of its ``kind``."""
    quoted = excerpt(text)
    if kind == "dml":
        return PromiseError(
            f"a change was logged as a statement, not as rows: {quoted}",
            code="CDC-EVENT-STATEMENT-FORMAT",
            where=str(event.position),
            hint="some session runs with another binlog_format: SET PERSIST binlog_format = ROW on the leader",
        )
    if kind in ("rollback", "rollback to"):
        return PromiseError(
            "a transaction was rolled back, in part or as a whole, after rows of it were logged",
            code="CDC-EVENT-NON-TRANSACTIONAL",
            where=str(event.position),
            hint="use InnoDB tables only; a MariaDB also logs rows that were rolled back with a temporary table: if "
            "you skip this event, remove these rows from the follower, since the leader does not have them",
        )
    return PromiseError(
        f"the statement is not known, so what it affects is not known: {quoted}",
        code="CDC-STATEMENT-UNKNOWN",
        where=str(event.position),
        hint=_UNKNOWN_STATEMENT,
    )


def passed_over(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Returns the effects that the record of a skipped statement contains. If bytes of a name could not be decoded, a
    table is replaced by its database, and a database by ``ANY_DATABASE``.
    """
    found: dict[Effect, None] = {}
    for effect in effects:
        action = _VERB.sub("Skip", effect.action).replace("Index", "Table")
        for database, name in ((effect.database, effect.name), *([effect.to] if effect.to is not None else [])):
            if is_lost(database):
                return (ANY_DATABASE,)
            known = name is None or not is_lost(name)
            found[Effect(action, database, name) if known else Effect("SkipDatabase", database)] = None
    return tuple(found) or (ANY_DATABASE,)


_ENTRY_BYTES = 300  # bytes of a dict entry and its key, without the key's content


class RowDecoder(Protocol):
    """Decodes the rows in ``data`` from the offset ``at`` on; returns the JSON text of each row, in UTF-8. Each decoder
    is generated for one table map.
    """

    def __call__(self, data: bytes, at: int) -> list[bytes]: ...


class ColumnDetails(NamedTuple):
    """What records do not contain of a table's columns: the places of those that are NOT NULL, and of those of the type
    POINT, and the ``members`` of an ENUM or SET whose values are numbers in records, by place.
    """

    not_null: frozenset[int] = frozenset()
    points: frozenset[int] = frozenset()
    members: tuple[tuple[int, tuple[str, ...]], ...] = ()


class TableShape:
    """A table as one table map describes it: its names, the JSON text common to all its records, and its ``width``, the
    number of columns.

    ``decoders`` maps each type of rows event to its decoder, ``rows_at`` maps each type to the offset of the rows in an
    event without extra data. ``types_json`` contains the types of the columns, ``told`` is the number of statements in
    the stream before the table's last record (``sink.record_parts.ToldTypes``). ``large_columns`` returns the readers
    of the columns of an event on disk, ``details`` what records do not contain. ``matches`` decides which rows pass the
    filters; it is None if all rows pass. ``complete_images``
    contains the known byte strings that precede an event's rows if the images have all columns; all tables with the
    same width share this set. ``size`` is an estimate of the memory that this object takes, in bytes.
    """

    __slots__ = (
        "columns_json",
        "complete_images",
        "decoders",
        "details",
        "large_columns",
        "matches",
        "names",
        "rows_at",
        "size",
        "told",
        "types_json",
        "width",
    )

    def __init__(
        self,
        database: str,
        name: str,
        columns_json: str,
        decoders: dict[int, RowDecoder],
        width: int,
        types_json: str = "",
    ) -> None:
        self.names = database, name
        self.columns_json = columns_json
        self.types_json = types_json
        self.told = -1
        self.details: Callable[[], ColumnDetails] = ColumnDetails
        self.large_columns: Callable[[], Sequence[LargeColumn]] = tuple
        self.decoders = decoders
        self.matches: Matches | None = None
        self.width = width
        self.rows_at, self.complete_images = _layout(width)
        self.size = 0

    @property
    def database(self) -> str:
        return self.names[0]

    @property
    def name(self) -> str:
        return self.names[1]

    @property
    def keyed(self) -> bool:
        """Whether the table's records contain a key."""
        return '"key":[' in self.columns_json  # a name can't contain this text, since its quotes are escaped


@lru_cache(maxsize=4096)  # the largest number of columns of a table
def _layout(width: int) -> tuple[Mapping[int, int], set[bytes]]:
    bitmap = (width + 7) // 8
    # The empty extra data is followed by the number of columns as a length-encoded integer, and by a bitmap of the
    # columns for each image of a row.
    start = ROWS_EXTRA_AT + ROWS_EXTRA_LENGTH_BYTES + (1 if width < 251 else 3)
    return {kind: start + (2 if kind in UPDATES else 1) * bitmap for kind in ROWS}, set()


class ShapeCache(dict[bytes, TableShape | None]):
    """Maps the description of a table, which is the content of its table map, to its TableShape. ``cache[description]``
    raises KeyError for a new description.

    The least recently used shapes are dropped, in two generations: the newest shapes are in the dict itself. When the
    dict takes half of ``limit`` bytes, it becomes the old generation and the previous old generation is dropped; a
    shape that is found in the old generation moves back. So the usual look-up costs no more than the look-up in a dict.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._size = 0
        self._old: dict[bytes, TableShape | None] = {}

    def __missing__(self, description: bytes) -> TableShape | None:
        shape = self._old.pop(description)
        self.add(description, shape)
        return shape

    def add(self, description: bytes, shape: TableShape | None) -> None:
        """Adds the shape of a new ``description``; the shape is None for a table that the filters leave out."""
        self[description] = shape
        self.grow(_ENTRY_BYTES + len(description) + (shape.size if shape else 0))

    def grow(self, size: int) -> None:
        """Counts ``size`` more bytes; to be called when a shape that is in use needs more memory than when it was
        added.
        """
        self._size += size
        if self._size > self._limit // 2:
            self._old = dict(self)
            self.clear()
            self._size = 0


class Begin(NamedTuple):
    """The beginning of a leader transaction: its id (GTID, or file:offset without GTIDs) and commit time in µs.

    ``sql_mode`` contains the modes that affect generated columns (``events.row_mode``); None means MySQL's default.
    ``query`` is the Query event that begins the transaction; it is empty if the transaction has another beginning.
    """

    transaction: str
    gtid: str | None
    commit_us: int
    sql_mode: str | None = None
    query: bytes = b""


class Rows(NamedTuple):
    """One rows event: ``operation`` is Add, Update or Delete; ``rows`` contains the JSON text of each row, in UTF-8.

    If the event is on disk, the rows are of type LargeText.
    """

    event: RawEvent
    table: TableShape
    operation: str
    rows: list[bytes] | list[LargeText]
    flags: int


class RowsTransaction(NamedTuple):
    """A complete transaction that contains only rows; it replaces a Begin, all Rows and a Commit.

    ``file`` and ``end`` are the position after the transaction.
    """

    begin: Begin
    rows: list[Rows]
    file: str
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One Query event that changes objects: its text, its effects and the session context it needs.

    ``unreadable`` is the reason why the text can't be sent to followers; it is empty if the text can be sent. If it is
    not empty, bytes of names may be lost, because they could not be decoded (``cdc.sql.text``). ``exact`` contains the
    statement's bytes in the character set of the context, if ``text`` is not enough to restore them. ``copies`` are the
    tables that must be copied again after the statement, since followers that execute the statement get other rows than
    the leader; ``unlike`` is the reason.
    """

    event: RawEvent
    database: str
    text: str
    effects: tuple[Effect, ...]
    context: dict[str, Any]
    unreadable: str = ""
    exact: bytes | None = None
    copies: tuple[Table, ...] = ()
    unlike: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """An event that can't be replicated, with the ``effects`` that it may have had.

    ``error`` stops the stream if any of these effects passes the filters. The operator can skip the event; the events
    after it are decoded as usual. ``text`` is the part of a statement that may be logged. ``fires`` is true if the
    event is a statement that wrote rows: triggers may have written further rows, which are not in the binlog. If
    ``copies`` names tables, the event is skipped without the operator, and these tables are copied again.
    """

    event: RawEvent
    error: PromiseError
    effects: tuple[Effect, ...]
    text: str = ""
    fires: bool = False
    copies: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a transaction that commits; ``end`` is the position after it. If the transaction commits or rolls back
    an XA transaction, ``xid`` is the id of the XA transaction.
    """

    end: Position
    xid: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The end of an XA transaction that is prepared, but not committed yet. ``location`` is the place of its rows in
    the binlog: they are needed when the transaction commits.
    """

    xid: str
    location: PreparedXa
    end: Position


@dataclass(frozen=True, slots=True)
class PositionAdvanced:
    """Reports that the binlog was read up to ``end``, and contained no change since the previous position."""

    end: Position


class OtherEvent(NamedTuple):
    """An event that is not part of any record. The producer writes a message about it to the topic of event
    messages.
    """

    event: RawEvent


@dataclass(frozen=True, slots=True)
class Idle:
    """The leader has no more events at the moment. ``inside`` is true if a transaction is open; then the rest of its
    events will arrive soon.
    """

    inside: bool


class Chunk(NamedTuple):
    """The rows of ``table`` with keys after ``after`` and up to ``upto``, as JSON texts; each of the two bounds
    contains the JSON texts of the key's values.

    If ``after`` is None the chunk begins with the table's first row; if ``upto`` is None it ends with the table's last
    row. ``columns_json`` names the columns in the table's records, ``collations`` are the collations of the key's
    columns, None for a column without collation. ``ts_us`` is the time of reading.

    If ``piece`` is set (a number from 0), the table is copied as a whole, and all pieces together contain its rows.
    Then each bound is None or an empty tuple. If ``keys`` is set, the chunk contains the rows with these keys, and has
    no bounds.

    ``types_json`` contains the types of the columns, also if ``columns_json`` does not.
    """

    table: Table
    columns_json: str
    collations: tuple[str | None, ...]
    after: tuple[str, ...] | None
    upto: tuple[str, ...] | None
    rows: list[str]
    ts_us: int
    piece: int | None = None
    keys: tuple[tuple[str, ...], ...] | None = None
    types_json: str = ""
    details: ColumnDetails = ColumnDetails()


class Creation(NamedTuple):
    """A statement that creates an object, its effects, and the session context that it needs, as in ``Statement``."""

    text: str
    effects: tuple[Effect, ...]
    context: dict[str, Any]
    exact: bytes | None = None


class Structure(NamedTuple):
    """The base tables of a leader, ordered so that foreign keys refer to earlier tables, and the statements that create
    all objects.

    ``invalid`` are views that can't be created, since a table that they select from no longer exists. ``left_out`` are
    the views, routines, triggers and events that name columns which are left out.
    """

    tables: list[Table]
    creations: list[Creation]
    invalid: list[Table]
    left_out: tuple[Table, ...] = ()


class Beginning(NamedTuple):
    """The statements that create the leader's objects, as of ``ts_us``, and the ``filters`` that hold from this point
    of the stream on.

    ``filters`` is None if they did not change.
    """

    structure: Structure
    ts_us: int
    filters: Filters | None = None


class CopyState(NamedTuple):
    """The state of the table copies, from this point of the stream on.

    ``entry`` is the state as the commit log's entries contain it. ``incomplete`` are the tables whose copy has not
    ended: the records of these tables are marked. ``filters`` hold from here on; None means that the former filters
    still hold. If ``at_once`` is true, the state is committed without waiting for more records.
    """

    entry: dict[str, Any] | None
    incomplete: frozenset[Table]
    filters: Filters | None = None
    at_once: bool = False


class Copied(NamedTuple):
    """The ``content`` that a copy writes between two transactions; ``position`` is the position in the binlog after the
    first of these two.

    ``state`` is the state of the copies after ``content``; ``header`` is the same state as a text, for the headers of
    the copied records.
    """

    content: Chunk | Beginning
    position: Position
    header: str
    state: CopyState


class Held(NamedTuple):
    """A pause: the next change is held back for a moment, in which written records may be committed."""


_Transaction = Begin | Rows | Statement | Refused | Commit | Prepared | RowsTransaction
Change = _Transaction | PositionAdvanced | Idle | OtherEvent | CopyState | Copied | Held
