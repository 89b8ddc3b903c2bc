"""Decides whether an entry of the commit log is about the records that readers see. Pure.

Brokers that lose entries of the commit log (an unclean election) may leave one that was rolled back, and that counts
records under other numbers: chunks of a copy are written whenever they arrive. The records next to the number up to
which an entry counts show it: those before have been read from the binlog, those behind have not.
"""

import re
from contextlib import suppress
from typing import NamedTuple, Self

from cdc.model.commit_entry import Entry
from cdc.model.gtid import GtidSet, is_gtid
from cdc.model.position import Position
from cdc.producer.sink.record_parts import binlog_place

__all__ = ["Neighbour", "agrees"]

_TRANSACTION = re.compile(rb'"transaction":\{"id":"([^"]*)"')
_OF_COPY = "copy:"


class Neighbour(NamedTuple):
    """A record next to the place of an entry: its ``transaction`` and its ``place`` in the leader's binlog."""

    transaction: str
    place: tuple[int, int]

    @classmethod
    def of(cls, head: bytes) -> Self | None:
        """Reads a record from the beginning of its JSON; None if that does not show its place."""
        found, place = _TRANSACTION.search(head), binlog_place(head)
        return cls(found[1].decode(), place[0]) if found and place else None


def agrees(entry: Entry, last: Neighbour | None, following: Neighbour | None, *, copied: int | None) -> bool:
    """Whether the ``last`` record that ``entry`` counts, and the ``following`` one, may be those that it is about.

    ``copied`` is the number that the newest record of a copy before that place has: so many records copies had written
    by then. What is None is unknown, and contradicts nothing.
    """
    if copied is not None and copied != int((entry.copy or {}).get("written", 0)):
        return False
    if entry.partial is not None:
        return last is None or last.transaction == entry.partial.transaction
    if last is not None and not last.transaction.startswith(_OF_COPY) and not _has_read(entry, last):
        return False
    is_change = following is not None and not following.transaction.startswith(_OF_COPY)
    return following is None or not is_change or not _has_read(entry, following)


def _has_read(entry: Entry, record: Neighbour) -> bool:
    """Whether the producer had read the record's transaction when it wrote ``entry``: its GTID is in the entry or, on a
    leader without GTIDs, the transaction begins before the entry's position.
    """
    if is_gtid(record.transaction):
        return record.transaction in GtidSet.parse(entry.gtid_set)
    place = record.place
    with suppress(ValueError):
        # Rows of an XA transaction have the place of its XA PREPARE; its id is the place of its XA COMMIT.
        place = Position.parse(record.transaction).place
    return place < entry.position.place
