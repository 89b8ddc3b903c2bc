"""What an operator may skip: a sequence that is due and refused, and nothing else."""

import pytest

from cdc.consumer.state.skips import Skips
from cdc.errors import UserError


def test_what_has_been_applied_is_refused() -> None:
    with pytest.raises(UserError, match="record 5 has been applied or skipped already: the follower is at sequence 7"):
        Skips([9, 5]).check_start(7, following=20)


def test_what_is_not_out_is_refused() -> None:
    with pytest.raises(UserError, match="there is no record 20 in the topic: the next one will be 20"):
        Skips([20]).check_start(7, following=20)
    Skips([20]).check_start(7, following=None)


def test_what_was_taken_is_told_once_it_is_applied() -> None:
    skips = Skips([9, 12])
    skips.used.add(9)
    skips.check_applied(11)
    with pytest.raises(UserError, match="the follower has applied record 12"):
        skips.check_applied(12)


def test_what_never_came_is_told_at_the_end() -> None:
    skips = Skips([9])
    skips.used.add(9)
    skips.check_end(9)
    with pytest.raises(UserError, match="there is no record 9 in the topic: the last is 8"):
        skips.check_end(8)


def test_without_any_nothing_is_checked() -> None:
    skips = Skips()
    assert not skips
    skips.check_start(7, following=0)
    skips.check_applied(7)
    skips.check_end(7)
