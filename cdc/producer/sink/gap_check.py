"""Checks that readers see all of the newest records, and not just the newest record of each partition.

A partition's leader takes the first batch of a producer that it does not know, and of a new epoch, whatever is before
it. Brokers that lose records (an unclean election) while a producer runs can thus leave a gap before records that they
took later. The producer connects again when a broker went away, so the gap is near the end.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice, pairwise, takewhile

from cdc.errors import PromiseError
from cdc.model.commit_entry import Entry
from cdc.model.position import Partition, partition_of

__all__ = ["entry_before", "lost_record", "require_each", "require_no_gap"]

_RECORDS = 1000  # so many records are checked
_ENTRIES = 10_000  # so many entries of the commit log are searched for the one before these records
_MOST_PARTITIONS = 100  # a start must not last for minutes
_ANEW = "name a new topic in kafka.topic and give the follower a fresh copy of the leader"


def entry_before(entry: Entry | None, older: Iterable[Entry]) -> Entry | None:
    """Returns one of the ``older`` entries, newest first, that counts some 1 000 records less than ``entry``, or the
    oldest one; an entry of no records if the stream has no more. Returns None if it does not show how many records each
    partition got from then on.
    """
    if entry is None:
        return None
    before = entry
    if entry.next_sequence <= _RECORDS:
        older = [replace(entry, next_sequence=0, counts={})]
    for each in islice(older, _ENTRIES):
        # An older entry that counts as many was rolled back, or its records were: the next one has the same numbers.
        if each.next_sequence < before.next_sequence:
            before = each
        if entry.next_sequence - before.next_sequence >= _RECORDS:
            break
    written = entry.next_sequence - before.next_sequence
    return before if written and sum(_written(before, entry).values()) == written else None


def _written(before: Entry, entry: Entry) -> dict[str, int]:
    return {name: count - before.counts.get(name, 0) for name, count in entry.counts.items()}


def require_no_gap(
    before: Entry,
    entry: Entry,
    *,
    places: Callable[[Partition], Iterator[tuple[int, int, int]]],
    is_cut: Callable[[Partition], bool],
) -> None:
    """Raises PromiseError unless readers see each record once that was written after the entry ``before`` and that
    ``entry`` counts. ``places`` returns the sequence of each message in a partition, newest first, the number of the
    fragment, and how many the record has; ``is_cut`` is true for a partition of which retention has removed records.
    """
    several = [(name, written) for name, written in _written(before, entry).items() if written]
    elsewhere = set[int]()
    for name, written in islice(several, _MOST_PARTITIONS):
        partition = partition_of(name)
        newer = list(takewhile(lambda place: place[0] >= before.next_sequence, places(partition)))
        parts = Counter((sequence, total) for sequence, _, total in newer if sequence < entry.next_sequence)
        found = {sequence for (sequence, total), count in parts.items() if count == total}
        repeated = next((newest for newest, older in pairwise(newer) if older[:2] >= newest[:2]), None)
        if repeated is not None:
            # The end of a rolled-back transaction is lost, and the end of the next one has committed its records.
            raise _lost(f"readers see another record before record {repeated[0]}, or that record twice", partition)
        if twice := found & elsewhere:
            raise _lost(f"readers see record {min(twice)} here and in another partition", partition)
        elsewhere |= found
        if len(found) < written and not is_cut(partition):
            range_ = f"{before.next_sequence} to {entry.next_sequence - 1}"
            raise _lost(f"readers see {len(found)} of {written} records from sequence {range_}", partition)


def require_each(next_sequence: int, visible: Collection[int], topic: str) -> None:
    """Raises PromiseError if a record from ``next_sequence`` on is missing before a later one that is ``visible``. All
    records are in one partition of ``topic``.
    """
    missing = next((each for each in range(next_sequence, max(visible, default=-1)) if each not in visible), None)
    if missing is not None:
        raise lost_record(f"record {missing} is missing, and later ones are there", topic)


def lost_record(what: str, topic: str) -> PromiseError:
    """Returns the error for a record that the brokers have lost, or a part of it."""
    return PromiseError(
        f"{what}: the brokers have lost it", code="CDC-TOPIC-RECORDS-LOST", where=f"topic {topic}", hint=_ANEW
    )


def _lost(what: str, partition: Partition) -> PromiseError:
    return PromiseError(
        f"{what}: the brokers have lost the others",
        code="CDC-TOPIC-RECORDS-LOST",
        where=f"topic {partition[0]}, partition {partition[1]}",
        hint=_ANEW,
    )
