"""Keeps the events of prepared XA transactions until their commit, when they become changes.

XA PREPARE is logged as a transaction of its own: GTID, XA START, the rows, XA END, XA_prepare. XA COMMIT or XA ROLLBACK
is another transaction, without rows, perhaps days later (MySQL manual, "XA Transactions"; MySQL source, class
XA_prepare_event). Until XA COMMIT or XA ROLLBACK, a small number of rows is kept in memory; a large number, and all
rows after a restart, are read from the leader again.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from struct import Struct

from cdc.errors import PromiseError
from cdc.model.commit_entry import PreparedXa
from cdc.producer.binlog.events import HEADER_BYTES, RawEvent

__all__ = ["XaTransactions", "xid_of"]

# An XA_prepare event contains: whether the transaction commits in one phase (1), the format of the xid (4), the lengths
# of the xid's two parts (4 + 4), and then these two parts.
_XA_PREPARE = Struct("<BIII")
_MAX_KEPT = 16_000_000  # bytes; the limit for the kept events of all prepared transactions together
_XID = re.compile(r"XA\s+\w+\s+(X'[0-9a-f]*',X'[0-9a-f]*',\d+)\s*", re.IGNORECASE)


class XaTransactions:
    """The prepared XA transactions by xid. ``read_again`` reads the events of a transaction from the leader a second
    time.
    """

    def __init__(
        self, prepared: Mapping[str, PreparedXa], *, read_again: Callable[[PreparedXa], Iterable[RawEvent]]
    ) -> None:
        self._prepared = dict(prepared)
        self._read_again = read_again
        self._kept: dict[str, list[RawEvent]] = {}
        self._bytes = 0
        self._open: list[RawEvent] | None = None
        self._location: PreparedXa | None = None

    @property
    def is_open(self) -> bool:
        """Whether the next events belong to an XA transaction."""
        return self._location is not None

    def start(self, location: PreparedXa) -> None:
        """Handles XA START at ``location``: from now on, the events of this transaction are kept."""
        self._location, self._open = location, []

    def keep(self, event: RawEvent) -> None:
        """Keeps a table map or rows event of the open XA transaction, unless the kept events take too much memory."""
        if self._open is None:
            return
        self._open.append(event)
        self._bytes += event.size
        if self._bytes > _MAX_KEPT:
            self._drop(self._open)
            self._open = None

    def prepare(self, event: RawEvent) -> tuple[str, PreparedXa, bool]:
        """Handles XA_prepare; returns the open transaction's xid and location, and whether it commits at once, in one
        phase."""
        if self._location is None:
            raise PromiseError(
                "an XA transaction is prepared that never started",
                code="CDC-XA-BEFORE-START",
                where=str(event.position),
            )
        location, held = self._location, self._open
        self._location = self._open = None
        in_one_phase, form, gtrid, bqual = _XA_PREPARE.unpack_from(event.data, HEADER_BYTES)
        data = event.data[HEADER_BYTES + _XA_PREPARE.size :]
        xid = f"X'{data[:gtrid].hex()}',X'{data[gtrid : gtrid + bqual].hex()}',{form}"
        self._prepared[xid] = location
        if held is not None:
            self._kept[xid] = held
        return xid, location, bool(in_one_phase)

    def committed(self, xid: str, event: RawEvent) -> Iterable[RawEvent]:
        """Returns the table maps and rows of the XA transaction that ``event`` commits. Raises PromiseError if this
        transaction is unknown.
        """
        location = self._prepared.pop(xid, None)
        if location is None:
            raise PromiseError(
                f"XA transaction {xid} commits, but it was prepared before the producer's start",
                code="CDC-XA-BEFORE-START",
                where=str(event.position),
                hint="start where no XA transaction is prepared: a new topic and a fresh copy of the leader",
            )
        held = self._kept.pop(xid, None)
        if held is None:
            return self._read_again(location)
        self._drop(held)
        return held

    def sql_mode(self, xid: str) -> str | None:
        """Returns the sql_mode with which the rows of a prepared transaction were logged. The session that commits the
        transaction may have another sql_mode.
        """
        location = self._prepared.get(xid)
        return location and location.sql_mode

    def rolled_back(self, xid: str) -> None:
        """Drops the prepared transaction ``xid``. An unknown transaction is ignored: it was prepared before the
        producer's start.
        """
        self._prepared.pop(xid, None)
        self._drop(self._kept.pop(xid, []))

    def _drop(self, events: list[RawEvent]) -> None:
        self._bytes -= sum(event.size for event in events)


def xid_of(statement: str) -> str:
    """Extracts the xid from an XA statement of the binlog, in the form that ``prepare`` returns. Raises ValueError if
    the statement contains no xid.
    """
    found = _XID.match(statement)
    if found is None:
        raise ValueError(f"an XA statement without an xid: {statement[:80]}")
    return found[1].replace("X'", "x'").lower().replace("x'", "X'")
