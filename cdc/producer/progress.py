"""Computes the commit log's next entry from the changes: the place up to which the leader's binlog has been read."""

import time
from dataclasses import replace

from cdc.model.commit_entry import Entry, Partial
from cdc.model.gtid import GtidSet
from cdc.model.position import Position, file_number
from cdc.producer.decode.changes import (
    Begin,
    Change,
    Commit,
    Copied,
    CopyState,
    PositionAdvanced,
    Prepared,
    RowsTransaction,
)

__all__ = ["Progress"]

_QUIET_SECONDS = 5.0  # seconds between two commits of the position while no change passes the filters


class Progress:
    """Tracks the progress of the stream, from ``entry`` on.

    An unchanged position is committed every ``alive_seconds``, as a sign of life. ``transactions`` counts the
    transactions read to their end, ``through_us`` is the commit time of the newest of these transactions. ``copy`` is
    the state of table copies.
    """

    def __init__(self, entry: Entry, *, alive_seconds: float = 60.0) -> None:
        self._entry = entry
        self._alive_seconds = alive_seconds
        self._gtids = GtidSet.parse(entry.gtid_set)
        self._gtids_complete = entry.gtids_complete
        self._prepared = dict(entry.prepared)
        self._open: Begin | None = None
        self._partial = entry.partial
        self.copy = entry.copy
        self._committed_at = time.monotonic()
        self._moved = self.is_due_at_once = False
        self._file, self._offset = entry.position.file, entry.position.offset
        self.transactions = 0
        self.through_us: int | None = None

    def note(self, change: Change) -> None:
        """Advances the progress by ``change``."""
        if type(change) is RowsTransaction:  # the fast path comes first because nearly all changes take it
            (name, gtid, self.through_us, *_), _, file, end = change
            self._executed(gtid)
            self._ended(name)
            self.transactions += 1
            self._advance(file, end)
        elif isinstance(change, Begin):
            self._open = change
            # A transaction without a GTID is in no GTID set, so the next transactions can't be requested by GTIDs.
            self._gtids_complete = self._gtids_complete and change.gtid is not None
        elif isinstance(change, Commit):
            if self._open is not None:
                self.through_us = self._open.commit_us
                if self._open.gtid is not None:
                    self._gtids.add(self._open.gtid)
                self._ended(self._open.transaction)
            if change.xid is not None:
                self._prepared.pop(change.xid, None)
            self.transactions += 1
            self._open = None
            self._advance(change.end.file, change.end.offset)
        elif isinstance(change, Prepared):
            self._executed(change.location.gtid)
            self._prepared[change.xid] = change.location
            self._advance(change.end.file, change.end.offset)
        elif isinstance(change, PositionAdvanced):
            self._advance(change.end.file, change.end.offset)
        elif isinstance(change, CopyState):
            self._copies(change)
        elif isinstance(change, Copied):
            self._copies(change.state)

    def _copies(self, state: CopyState) -> None:
        self.copy, self.is_due_at_once = state.entry, self.is_due_at_once or state.at_once
        if state.filters is not None:
            # The topic lacks the earlier changes of objects that pass the filters only from now on. So a base copy with
            # which a new follower begins must contain all transactions up to here (``origin``).
            origin = self.gtid_text or self._entry.origin
            self._entry = replace(self._entry, filters=state.filters.listed(), origin=origin)

    def _executed(self, gtid: str | None) -> None:
        """Adds the GTID of a transaction that is read to its end."""
        if gtid is None:
            # A transaction without a GTID is in no GTID set, so the next transactions can't be requested by GTIDs.
            self._gtids_complete = False
        else:
            self._gtids.add(gtid)

    def _ended(self, transaction: str) -> None:
        # After a failover, the new leader may have other transactions before the partially committed transaction. If
        # one of them passes the filters, the router stops the stream.
        if self._partial is not None and self._partial.transaction == transaction:
            self._partial = None

    def _advance(self, file: str, offset: int) -> None:
        # With GTIDs the leader begins to send at the start of a file and leaves out the transactions that are
        # replicated already; the position must not go back then.
        if (offset > self._offset) if file == self._file else (file_number(file) > file_number(self._file)):
            self._file, self._offset, self._moved = file, offset, True

    @property
    def position(self) -> Position:
        """The position up to which the binlog is read, at the end of a transaction."""
        return Position(self._file, self._offset)

    def read_without(self, gtid: str | None) -> GtidSet | None:
        """Returns the GTIDs of all transactions read except the transaction ``gtid``. Returns None if ``gtid`` is None
        or if some transactions have no GTID.
        """
        return self._gtids.without(gtid) if gtid and self._gtids_complete else None

    @property
    def prepared(self) -> frozenset[str]:
        """The XA transactions that are prepared, but not ended, at this point of the stream."""
        return frozenset(self._prepared)

    @property
    def gtid_text(self) -> str:
        """The GTIDs of all transactions read to their end."""
        return str(self._gtids)

    def has_executed(self, gtids: str) -> bool:
        """Whether all transactions of the GTID set ``gtids`` have been read to their end."""
        return GtidSet.parse(gtids).issubset(self._gtids)

    @property
    def filters(self) -> dict[str, list[str]] | None:
        """The filters that hold at this point of the stream, in the form of ``Filters.listed``."""
        return self._entry.filters

    @property
    def has_partial(self) -> bool:
        """Whether only a part of a transaction is committed, so that the rest of this transaction must come next."""
        return self._partial is not None

    @property
    def has_prepared(self) -> bool:
        """Whether XA transactions are prepared: their events are decoded only when they commit."""
        return bool(self._prepared)

    @property
    def transaction(self) -> str:
        """The name of the open transaction: its GTID, or its position. Empty between transactions."""
        return self._open.transaction if self._open is not None else ""

    @property
    def between_transactions(self) -> bool:
        return self._open is None

    def is_stale(self, now: float) -> bool:
        """Whether another commit is due, because the last commit is too old at the time ``now`` (``time.monotonic()``).

        After a ``CopyState`` with ``at_once`` a commit is due at once.
        """
        return self.is_due_at_once or now - self._committed_at > (
            _QUIET_SECONDS if self._moved else self._alive_seconds
        )

    def has_reached(self, target: Position) -> bool:
        """Whether everything before ``target`` has been read, up to the end of a transaction."""
        if self._open is not None or (self._file == target.file and self._offset < target.offset):
            return False
        return file_number(self._file) >= file_number(target.file)

    def entry(self, *, next_sequence: int, partial: Partial | None = None) -> Entry:
        """Builds the entry to commit now. Its position is after the last complete transaction; ``partial`` is the part
        of an open transaction that is in the same commit.
        """
        # A transaction that was partially committed before remains so until its end has been read again.
        partial = partial or self._partial
        self._committed_at, self._moved, self.is_due_at_once = time.monotonic(), False, False
        return replace(
            self._entry,
            next_sequence=next_sequence,
            position=self.position,
            gtid_set=str(self._gtids),
            partial=partial,
            gtids_complete=self._gtids_complete,
            prepared=dict(self._prepared),
            copy=self.copy,
        )
