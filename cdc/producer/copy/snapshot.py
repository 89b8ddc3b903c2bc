"""The snapshot of a table that is copied as a whole, and whether it is the table at a place of the stream. Pure.

A snapshot sees some of the transactions in the binlog, in no certain order. Those that were executed before it, it sees
for certain (``seen``). What it may see besides is before the binlog's end of just after it. So where the stream has
reached that end, and nothing else in it has changed the table since the snapshot was asked for, what the snapshot shows
is the table there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cdc.model.gtid import GtidSet
from cdc.producer.copy.pending import Table
from cdc.producer.decode.changes import Begin, Change, Whole

__all__ = ["Changers", "Snapshot", "is_exact"]

_MOST = 100_000


def is_exact(changers: Iterable[str | None], seen: GtidSet) -> bool:
    """Whether each of the transactions that changed the table is ``seen``; None stands for any."""
    return all(gtid is not None and gtid in seen for gtid in changers)


class Changers:
    """The transactions of the stream that changed a table since it was asked for, as many as can be kept."""

    def __init__(self) -> None:
        self.gtids: set[str | None] = set()

    def note(self, gtid: str | None) -> None:
        """A transaction has changed the table; None for one without a name, which no snapshot sees for certain."""
        self.gtids.add(gtid if len(self.gtids) < _MOST else None)


@dataclass(slots=True)
class Snapshot:
    """How far the copy of a table as a whole is: so many ``tries`` since ``began``, or, once one of these was exact, so
    many ``pieces`` (None before). ``tables`` are those that must not change from then on until all pieces are written.
    """

    tables: frozenset[Table]
    began: float
    tries: int = 0
    told: float = 0.0
    pieces: int | None = None
    waits: bool = False  # the stream, for the pieces

    def may_end_with(self, change: Change) -> bool:
        """Whether the snapshot may not be the table any more once ``change`` has come: it begins a transaction which
        changes one of the tables, or of which it is not known yet what it changes."""
        if type(change) is Whole:
            return any(rows.table.names in self.tables for rows in change.rows)
        return type(change) is Begin
