"""What is shown of copies, by the states that the commit log has."""

from cdc.producer.copy.keys import Keys
from cdc.producer.copy.requests import Estimate, Request, State, follower_lines, lines
from cdc.producer.copy.state import Pending

A, B, C = ("d", "a"), ("d", "b"), ("d", "c")
SIZES = {A: Estimate(10, 100), B: Estimate(1000, 2_000_000), C: Estimate(500, 0)}


def _lines(*states: State, asked: list[Request] | None = None) -> list[str]:
    return list(lines(states, asked or [], SIZES, now=103))[1:]


def test_the_speed_is_that_of_the_current_table() -> None:
    told = _lines(
        State(100, Pending(again=(B, C), after=("9",), rows=500)),
        State(98, Pending(again=(B, C), after=("3",), rows=100)),
        State(97, Pending(again=(A, B, C), after=("1",), rows=7)),
    )
    assert told == [
        "d.a: done",
        "d.b: under way, 500 of about 1,000 rows, 200 rows/s, about 0.4 MB/s and 2 s left",
        "d.c: asked, about 500 rows",
        "2 tables left, about 5 s at this speed",
    ]


def test_a_copy_that_begins_again_has_no_speed_yet() -> None:
    begun, before = Pending(again=(B,)), Pending(again=(B,), after=("9",), rows=500)
    assert _lines(State(100, begun), State(98, before)) == ["d.b: under way, 0 of about 1,000 rows"]


def test_what_was_taken_back_is_not_done() -> None:
    stopped, before = Pending(requests=2, requests_topic="t"), Pending(again=(B,), requests=1, requests_topic="t")
    assert _lines(State(100, stopped), State(98, before)) == ["nothing is to be copied"]


def test_a_table_that_is_gone_is_not_done() -> None:
    assert _lines(State(100, Pending(written=1)), State(98, Pending(again=(("d", "x"),)))) == [
        "d.x: gone, or renamed",
        "nothing is to be copied",
    ]


def test_requests_that_nobody_has_taken_up_are_named() -> None:
    assert _lines(State(100, Pending()), asked=[Request([A], 1), Request([B], 2, stop=True)]) == [
        "d.a: asked, no producer has taken it up yet",
        "d.b: to be stopped, no producer has taken it up yet",
    ]
    keys = Keys(C, ("id",), (("1",), ("2",)))
    assert _lines(State(100, Pending()), asked=[Request([], 1, keys=keys)]) == [
        "d.c: 2 rows to be repaired, not done yet"
    ]


def test_followers_are_shown_with_what_they_have_to_apply() -> None:
    assert list(follower_lines({"g:3306": 99, "f:3306": 8099, "h:3306": 8100}, 8100)) == [
        "follower f:3306: has applied all",
        "follower g:3306: 8,000 records to apply",
        "follower h:3306: has applied all",
    ]
