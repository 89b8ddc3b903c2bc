"""Defines a record that a reader has read, as its state keeps it to compare it with the topics later. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from cdc.model.position import Position

__all__ = ["ReadRecord", "newest_record", "newest_records"]


class ReadRecord(NamedTuple):
    """A record that a reader has read: its ``sequence``, the ``offset`` of its first message, its position in the
    leader's binlog (``file`` and ``at``), and its time: of its commit, or at which a chunk was read.
    """

    sequence: int
    offset: int
    file: str
    at: int
    ts_us: int

    def is_same(self, sequence: int, position: Position, ts_us: int | None) -> bool:
        """Whether a record with this sequence, position and time (None if it is unknown) is this one. A chunk that was
        read again has another time.
        """
        return (self.sequence, self.file, self.at) == (sequence, *position) and ts_us in (self.ts_us, None)


def newest_record(known: Sequence[ReadRecord], found: Sequence[Any] | None) -> tuple[ReadRecord, ...]:
    """Returns the newer of the record in ``known`` and the one with the fields ``found``; empty if there is neither."""
    return tuple(sorted([*known, *([] if found is None else [ReadRecord(*found)])])[-1:])


def newest_records(
    known: Sequence[ReadRecord], last: Sequence[Any] | None, copied: Sequence[Any] | None
) -> tuple[ReadRecord, ...]:
    """Returns a partition's last record and, if a table copy wrote some there, the last one of those. ``known`` are
    those of earlier runs, ``last`` and ``copied`` the fields of this run's.
    """
    return (*newest_record(known[:1], last), *newest_record(known[1:], copied))
