"""A decoder of a leader's events, and its changes in a short form."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from cdc.model.commit_entry import PreparedXa
from cdc.model.position import Position
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.packets import SimpleTransaction
from cdc.producer.decode.changes import Begin, Change, Commit, Idle, Refused, Rows, RowsTransaction
from cdc.producer.decode.decoder import Decoder, XaTransactions
from cdc.producer.decode.table_cache import TableCache
from tests.generators.binlog_events import COMMIT_US, FILE, UUID

Chunk = Sequence[RawEvent | SimpleTransaction]
Content = tuple[str, str, tuple[str, ...], int]


def tables(**options: Any) -> TableCache:
    """The tables of a leader; any question about values fails the test."""
    usual: dict[str, Any] = {
        "wants_table": lambda database, table: not table.startswith("left_out"),
        "collations": {},
        "allow_differences": pytest.fail,
        "equal_members": pytest.fail,
    }
    return TableCache(**usual | options)


class Leader:
    """A decoder with its log, and the events that it may read again; ``options`` are those of its tables."""

    def __init__(
        self, again: Iterable[RawEvent] = (), *, other_events: bool = False, folds_names: bool = False, **options: Any
    ) -> None:
        self.logged: list[tuple[str, dict[str, Any]]] = []
        self.read: list[PreparedXa] = []
        self.decoder = Decoder(
            tables(**options),
            xa=XaTransactions({}, read_again=lambda place: self.read.append(place) or again),
            log=lambda event, **fields: self.logged.append((event, fields)),
            other_events=other_events,
            folds_names=folds_names,
        )

    def decode(self, *chunks: Chunk) -> list[Change]:
        return [*map(without_query, self.decoder.decode(chunks))]


def decoded(*chunks: Chunk) -> list[Change]:
    """The changes of events that arrive in these chunks."""
    return Leader().decode(*chunks)


def without_query(change: Change) -> Change:
    """The change as if its transaction had no Query event at its beginning, which no test writes out."""
    if isinstance(change, Begin):
        return change._replace(query=b"")
    if isinstance(change, RowsTransaction):
        return change._replace(begin=change.begin._replace(query=b""))
    return change


def kinds(changes: Iterable[Any]) -> list[str]:
    """The names of the changes."""
    return [type(each).__name__ for each in changes]


def refusal(changes: Iterable[Change]) -> Refused:
    """The only Refused among the changes."""
    (found,) = (each for each in changes if isinstance(each, Refused))
    return found


def plain(changes: Iterable[Change]) -> list[Any]:
    """The changes without those that only mark time, whole transactions by their parts, rows by their content."""
    found: list[Any] = []
    for change in changes:
        if isinstance(change, RowsTransaction):
            found += [change.begin, *map(content, change.rows), Commit(Position(change.file, change.end))]
        elif isinstance(change, Rows):
            found.append(content(change))
        elif not isinstance(change, Idle):
            found.append(change)
    return found


def content(rows: Rows) -> Content:
    """Table, operation, texts of the rows, and flags."""
    return rows.table.name, rows.operation, tuple(row.decode() for row in rows.rows), rows.flags


def added(*values: int, table: str = "t") -> Content:
    """The content of new rows of one INT."""
    return table, "Add", tuple(f'{{"cols":[{{"SignedInteger":{value}}}]}}' for value in values), 0


def begin(number: int = 1, mode: str | None = "") -> Begin:
    """The beginning of the transaction with this number."""
    return Begin(f"{UUID}:{number}", f"{UUID}:{number}", COMMIT_US, mode)


def commit(event: RawEvent, xid: str | None = None) -> Commit:
    """The end of a transaction by this event."""
    return Commit(Position(FILE, event.end), xid)
