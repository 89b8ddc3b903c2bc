"""Work beside other work."""

import threading

import pytest

from cdc.spark.input.small_data import in_background


def test_both_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2)
    with in_background(lambda: meeting.wait(10)) as number:
        assert {meeting.wait(10), number()} == {0, 1}


def test_what_the_work_raises_is_raised_where_its_result_is_asked_for() -> None:
    def fails() -> int:
        raise ValueError("no number")

    with pytest.raises(ValueError, match="no number"), in_background(fails) as number:
        number()


def test_the_work_has_ended_where_the_block_fails() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.wait(10)
        ended.set()

    with pytest.raises(KeyError), in_background(work):
        begun.set()
        raise KeyError
    assert ended.is_set()
