"""What comes before a fault of the stream is dealt with first, and the fault is never lost."""

from collections.abc import Iterator

import pytest

from cdc.consumer.source.intact import Intact
from cdc.errors import PromiseError


def broken(count: int) -> Iterator[int]:
    yield from range(count)
    raise PromiseError("a gap")


def test_the_fault_comes_after_the_items() -> None:
    items = Intact(broken(3))
    assert list(items) == [0, 1, 2]
    with pytest.raises(PromiseError, match="a gap"):
        items.check_end()


def test_a_sound_stream_ends_well() -> None:
    items = Intact(range(3))
    assert list(items) == [0, 1, 2]
    items.check_end()


def test_other_errors_are_not_put_off() -> None:
    with pytest.raises(ZeroDivisionError):
        list(Intact(1 // each for each in [1, 0]))
