"""What the decoder hands to the router: changed rows, statements, the ends of transactions, and mere progress."""

from dataclasses import dataclass
from typing import Any, Protocol

from cdc.position import Position
from cdc.producer.ddl import Effect
from cdc.producer.events import RawEvent

__all__ = ["Begin", "Change", "Commit", "Idle", "Moved", "RowDecoder", "Rows", "Statement", "TableShape"]


class RowDecoder(Protocol):
    """Generated for one table map: row images of ``data`` from ``at`` as the JSON text of each row."""

    def __call__(self, data: bytes, at: int) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table as of one table map: its names and the JSON text that all its records share."""

    database: str
    name: str
    columns_json: str
    insert: RowDecoder
    update: RowDecoder


@dataclass(frozen=True, slots=True)
class Begin:
    """A leader transaction begins: its id (GTID, or file:offset without GTIDs) and commit time in µs."""

    transaction: str
    gtid: str | None
    commit_us: int


@dataclass(frozen=True, slots=True)
class Rows:
    """One rows event: ``operation`` is Add, Update or Delete; ``rows`` the JSON text of each row."""

    event: RawEvent
    table: TableShape
    operation: str
    rows: list[str]
    flags: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One Query event that changes objects: its text, what it does and the session context it needs."""

    event: RawEvent
    database: str
    text: str
    effects: tuple[Effect, ...]
    context: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Commit:
    """The transaction is complete; ``end`` is the position after it."""

    end: Position


@dataclass(frozen=True, slots=True)
class Moved:
    """The leader's log is read up to ``end``, and nothing there concerns us."""

    end: Position


@dataclass(frozen=True, slots=True)
class Idle:
    """The leader has nothing more to send right now."""


Change = Begin | Rows | Statement | Commit | Moved | Idle
