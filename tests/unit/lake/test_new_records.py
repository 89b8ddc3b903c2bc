"""A lake keeps, of each partition, the last record that it has read and the last one that a copy wrote."""

from typing import Any

from cdc.lake.folder import State
from cdc.lake.new_records import _last_read
from cdc.model.read_record import ReadRecord


def record(sequence: int) -> ReadRecord:
    return ReadRecord(sequence, 2 * sequence, "b.1", 4 * sequence, 7)


def row(partition: str, last: int | None, copied: int | None) -> Any:
    of = {"last_read": last, "last_copied": copied}
    return {"partition": partition, **{name: at if at is None else tuple(record(at)) for name, at in of.items()}}


def test_the_newest_records_of_each_partition_are_kept() -> None:
    first = _last_read([row("a/0", 3, 2), row("a/0", 5, None), row("b/0", None, None), row("c/0", 4, 4)], State())
    assert first == {"a/0": (record(5), record(2)), "c/0": (record(4), record(4))}
    then = _last_read([row("b/0", 7, 6), row("c/0", 8, None)], State(read=first))
    assert then == {"a/0": first["a/0"], "b/0": (record(7), record(6)), "c/0": (record(8), record(4))}
    assert _last_read([], State(read=then)) == then
