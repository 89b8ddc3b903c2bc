"""Transactions of nothing but rows, decoded at once: their events in, one ``Whole`` each out.

The decoding part of the fast path (``cdc.producer.binlog.fast_path``). A transaction that can't be decoded here is
decoded event by event by the decoder, which then reports an error at the position of the event that has it.
"""

import re
from collections.abc import Sequence
from struct import error as StructError

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction, flat
from cdc.producer.binlog.gtid_event import gtid, named
from cdc.producer.binlog.row_sql_mode import row_mode
from cdc.producer.decode.changes import Begin, Whole
from cdc.producer.decode.table_cache import TableCache

__all__ = ["BEGIN", "UNREADABLE", "WholeTransactions", "end_of_rows_only", "start_of_incomplete"]

BEGIN = b"\0BEGIN"  # the end of a Query event that begins a transaction
# What readers of events raise for bytes that are not as they must be.
UNREADABLE = (ValueError, LookupError, StructError, RuntimeError, OverflowError)
# Event types, one byte each. A transaction of rows: GTID, Query, table maps and rows, Xid.
_ROWS_ONLY = re.compile(rb"[\x21\x22\x2a]\x02(?:\x13+[\x1e-\x20\x27]+)+\x10")
# The start of such a transaction at the end of a chunk.
_INCOMPLETE = re.compile(rb"[\x21\x22\x2a](?:\x02\x13[\x13\x1e-\x20\x27]*)?\Z")
_LONGEST_INCOMPLETE = 1_000_000  # bytes
_new = tuple.__new__  # Whole(…) itself takes twice as long


class WholeTransactions:
    """Decodes transactions of rows with ``tables``, the table maps known so far."""

    def __init__(self, tables: TableCache) -> None:
        self._tables = tables

    def of_simple(self, transaction: SimpleTransaction) -> Whole | None:
        """The decoded ``transaction``; None where its table map is new or something in it can't be read."""
        _, gtid_event, begin, _, _, _, file, end = transaction
        if not begin.endswith(BEGIN):
            return None
        try:
            gtid, commit_us = named(gtid_event)
            mode = row_mode(begin)
            rows = self._tables.rows_of(transaction)
        except (PromiseError, *UNREADABLE):
            return None
        if rows is None:
            return None
        name = gtid or str(transaction.events()[0].position)
        return _new(Whole, (_new(Begin, (name, gtid, commit_us, mode)), rows, file, end))

    def of_events(self, events: Sequence[RawEvent]) -> Whole | None:
        """The decoded transaction of ``events``, which ``end_of_rows_only`` has found; None as in ``of_simple``."""
        if not events[1].data.endswith(BEGIN):
            return None
        found = []
        self._tables.forget_ids()
        try:
            for event in events[2:-1]:
                if event[0] == et.TABLE_MAP:
                    self._tables.map(event)
                elif event[5] is not None:
                    return None  # on disk: each such row is written before the next is read
                elif (rows := self._tables.rows(event)) is not None:
                    found.append(rows)
            name, commit_us = gtid(events[0])
            mode = row_mode(events[1].data)
        except (PromiseError, *UNREADABLE):
            return None
        last = events[-1]
        return Whole(Begin(name or str(events[0].position), name, commit_us, mode), found, last.file, last.end)


def end_of_rows_only(types: bytes, at: int) -> int | None:
    """The index after the transaction of rows that starts at ``types[at]``; None where none starts there, or not all of
    it is in ``types``, the types of consecutive events."""
    found = _ROWS_ONLY.match(types, at)
    return found.end() if found else None


def start_of_incomplete(events: Sequence[RawEvent | SimpleTransaction], types: bytes) -> int:
    """The index in ``events`` from which they are the start of a transaction of rows; their number where there is none.

    Such a start can wait for the rest, since it could not be committed before that. One of more than 1 MB does not
    wait: it is not worth its memory.
    """
    found = _INCOMPLETE.search(types)
    if found and sum(each.size for each in flat(events[found.start() :])) < _LONGEST_INCOMPLETE:
        return found.start()
    return len(events)
