"""A lake keeps, of each partition, the last record that it has read and the last one that a copy wrote."""

from cdc.lake.folder import State
from cdc.lake.new_records import _last_read
from cdc.model.read_record import ReadRecord


def record(sequence: int) -> ReadRecord:
    return ReadRecord(sequence, 2 * sequence, "b.1", 4 * sequence, 7)


def records(**of: int) -> dict[str, ReadRecord]:
    return {f"{name}/0": record(sequence) for name, sequence in of.items()}


def test_the_newest_records_of_each_partition_are_kept() -> None:
    first = _last_read([records(a=5, c=4), records(a=2, c=4)], State())
    assert first == {"a/0": (record(5), record(2)), "c/0": (record(4), record(4))}
    then = _last_read([records(b=7, c=8), records(b=6)], State(read=first))
    assert then == {"a/0": first["a/0"], "b/0": (record(7), record(6)), "c/0": (record(8), record(4))}
    assert _last_read([{}, {}], State(read=then)) == then
