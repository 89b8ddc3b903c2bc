"""Landed messages are read with all marks of replaced producers, also those that the commit log has no more."""

from cdc.model.commit_entry import Mark
from cdc.spark.input.spans import Span
from cdc.spark.state.landing import Landed


def test_marks_that_retention_has_passed_count_for_what_is_landed() -> None:
    landed = Landed(ranges={"t/0": (0, 9)}, marks={"1": 0, "2": 4})
    span = landed.within(Span({("t", 0): (6, 9)}, 7, True, (Mark(3, 8), Mark(4, -1))))
    assert span.marks == (Mark(1, 0), Mark(2, 4), Mark(3, 8))
    assert (span.partitions, span.limit, span.fragmented) == ({("t", 0): (0, 9)}, 7, True)


def test_a_topic_with_transactions_has_no_marks() -> None:
    span = Landed(ranges={"t/0": (2, 9)}).within(Span({("t", 0): (6, 9)}))
    assert (span.marks, span.fragmented, span.partitions) == ((), False, {("t", 0): (2, 9)})
