"""Requests: tables to copy or to stop, in the order in which they were made, and keys whose rows are to be sent again.

A request for keys is taken up, by the offset behind it in the state, once all of its rows are in the stream. Those for
tables do not wait for it, since statements in the stream rename what is to be copied, and not what waits. After a crash
all that comes after the offset starts over: rows are the leader's as of their place in the stream, so a second time
does no harm.
"""

from collections import deque
from collections.abc import Callable, Iterable

from cdc.producer.copy.chunk import Keys
from cdc.producer.copy.progress_log import Notices
from cdc.producer.copy.requests import Request
from cdc.producer.copy.state import Pending

__all__ = ["Repairs"]


class Repairs:
    """The requests that are not taken up yet."""

    def __init__(self) -> None:
        self._waiting: deque[Request] = deque()
        self._early: set[tuple[str, int]] = set()  # which of them were done before keys that were asked for before
        self._sent = 0  # of the first request's keys
        self._before = Pending()  # the state that a run before has left in the stream

    @property
    def keys(self) -> Keys | None:
        """The keys that are next, None where there are none."""
        keys = self._waiting[0].keys if self._waiting else None
        return keys and keys._replace(values=keys.values[self._sent :])

    def add(self, requests: Iterable[Request]) -> None:
        """Note new requests, without those that a run before has taken up."""
        self._waiting += [request for request in requests if not _is_taken(request, self._before)]
        self._before = Pending()  # only once: without ids of topics the topic may be created again

    def next_state(self, pending: Pending, wants_table: Callable[[str, str], bool], notices: Notices) -> Pending | None:
        """The state once one more request is taken up; None where there is none but for keys whose rows come first.

        A request for keys of a table that ``wants_table``, the filters, leaves out is left out.
        """
        if not self._waiting:
            return None
        request = self._waiting[0]
        if request.keys is not None:
            if not wants_table(*request.keys.table):
                notices.filtered(request.keys.table)
                return self.leave_out(pending)
            early = next((each for each in self._waiting if each.keys is None and not self._is_early(each)), None)
            if early is None:
                return None
            self._early.add((early.topic_id, early.offset))
            state = _done(early, pending, wants_table, notices)
            return state.taken_up(pending.requests, pending.requests_topic)
        self._waiting.popleft()
        if self._is_early(request):
            self._early.remove((request.topic_id, request.offset))
            return pending.taken_up(request.offset, request.topic_id)
        return _done(request, pending, wants_table, notices)

    def after(self, pending: Pending, count: int) -> Pending:
        """The state once the rows of the next ``count`` keys are in the stream."""
        request = self._waiting[0]
        assert request.keys is not None
        is_last = self._sent + count >= len(request.keys.values)
        repaired = pending.repaired()
        return repaired.taken_up(request.offset, request.topic_id) if is_last else repaired

    def sent(self, count: int) -> None:
        """The rows of the next ``count`` keys are in the stream."""
        self._sent += count
        keys = self._waiting[0].keys
        if keys is None or self._sent >= len(keys.values):
            self._end_first()

    def leave_out(self, pending: Pending) -> Pending:
        """The state without what is left of the first request."""
        request = self._end_first()
        return pending.taken_up(request.offset, request.topic_id)

    def adopt(self, pending: Pending) -> None:
        """Begin again with the requests that a run before, which left the state ``pending``, has not taken up."""
        self._before, self._sent = pending, 0
        self._early.clear()
        self._waiting = deque(request for request in self._waiting if not _is_taken(request, pending))

    def _is_early(self, request: Request) -> bool:
        return (request.topic_id, request.offset) in self._early

    def _end_first(self) -> Request:
        self._sent = 0
        return self._waiting.popleft()


def _done(request: Request, pending: Pending, wants_table: Callable[[str, str], bool], notices: Notices) -> Pending:
    """The state once a request for tables is taken up."""
    if request.stop:
        state = pending.stopped(request.tables, requests=request.offset, topic=request.topic_id)
        notices.stopped(request.tables, pending, state)
        return state
    asked = pending.asked(request.tables, requests=request.offset, topic=request.topic_id)
    state = asked.wanted(wants_table)
    notices.asked(len(request.tables), state)
    return state


def _is_taken(request: Request, pending: Pending) -> bool:
    return request.topic_id == pending.requests_topic and request.offset <= pending.requests
