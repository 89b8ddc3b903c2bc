"""Requests are taken up once, in their order; a request for tables needs not wait for the rows of an earlier one."""

from typing import Any

from cdc.producer.copy.keys import Keys
from cdc.producer.copy.progress_log import ProgressLog
from cdc.producer.copy.requests import Request, RequestQueue
from cdc.producer.copy.state import Pending

T, U = ("d", "t"), ("d", "u")


def of_keys(count: int, offset: int) -> Request:
    return Request([], offset, "id", keys=Keys(T, ("id",), tuple((str(number),) for number in range(count))))


def log(events: list[str]) -> ProgressLog:
    return ProgressLog(lambda event, **_: events.append(event))


def state(queue: RequestQueue, pending: Pending, *, left_out: Any = None) -> Pending | None:
    return queue.next_state(pending, lambda *table: table != left_out, log([]))


def test_a_request_for_keys_is_taken_up_with_its_last_rows() -> None:
    queue = RequestQueue()
    queue.add([of_keys(3, 5)])
    pending = Pending()
    assert state(queue, pending) is None
    assert queue.keys is not None and len(queue.keys.values) == 3
    partly = queue.after(pending, 2)
    assert (partly.repairs, partly.written, partly.requests, partly.requests_topic) == (1, 1, 0, "")
    queue.sent(2)
    assert queue.keys is not None and queue.keys.values == (("2",),)
    whole = queue.after(partly, 1)
    assert (whole.repairs, whole.requests, whole.requests_topic) == (2, 5, "id")
    queue.sent(1)
    assert queue.keys is None


def test_rows_that_are_left_out_are_taken_up() -> None:
    queue = RequestQueue()
    queue.add([of_keys(1, 5), of_keys(1, 6)])
    events: list[str] = []
    found = queue.next_state(Pending(), lambda *_: False, log(events))
    assert found is not None and (found.requests, found.requests_topic) == (5, "id")
    assert events == ["the filters leave out a table whose rows were to be sent again"]
    queue.leave_out(found)
    assert queue.keys is None


def test_tables_do_not_wait_for_the_rows_of_an_earlier_request() -> None:
    """The state says that the request was processed only once the earlier one was, too."""
    queue = RequestQueue()
    queue.add([of_keys(1, 5), Request([U], 6, "id")])
    early = state(queue, Pending(requests=4, requests_topic="id"))
    assert early is not None and (early.again, early.requests, early.requests_topic) == ((U,), 4, "id")
    assert state(queue, early) is None
    after = queue.after(early, 1)
    queue.sent(1)
    last = state(queue, after)
    assert last is not None and (last.again, last.requests, last.requests_topic) == ((U,), 6, "id")
    assert state(queue, last) is None


def test_what_an_earlier_run_has_taken_up_is_not_taken_up_again() -> None:
    queue = RequestQueue()
    queue.adopt(Pending(requests=5, requests_topic="id"))
    queue.add([Request([T], 5, "id"), Request([U], 6, "id")])
    found = state(queue, Pending())
    assert found is not None and (found.again, found.requests) == ((U,), 6)
    # A topic that was created again has the same offsets for other requests.
    other = RequestQueue()
    other.adopt(Pending(requests=5, requests_topic="id"))
    other.add([Request([T], 1, "id2")])
    found = state(other, Pending())
    assert found is not None and (found.again, found.requests_topic) == ((T,), "id2")
