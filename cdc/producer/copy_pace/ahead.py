"""Chunks that are written and followers' places in; which follower a copy has to wait for out. Pure but for the time.

A follower counts once it has been seen to move, so not one whose consumer does not run. It counts no more once it has
been waited for, in all, so long that it should have applied a chunk and has not: it is paused, or busy with something
else, or was far behind before. It counts again when it has come close. So a copy is held back by what applies chunks,
and by nothing else for longer than that.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["PATIENCE_SECONDS", "Ahead"]

PATIENCE_SECONDS = 30.0
_MOST_MARKS = 10_000
_STEP_SECONDS = 1.0  # where no one looks for longer, nothing has waited


class _Mark(NamedTuple):
    """The ``size`` of all chunks up to that with this ``sequence``, in bytes."""

    sequence: int
    size: int


@dataclass(slots=True)
class _Follower:
    """``applied`` are bytes of chunks, ``waited`` the seconds since there was more to apply and nothing of it was."""

    sequence: int
    applied: int
    moved: bool = False
    given_up: bool = False
    waited: float = 0.0

    @property
    def counts(self) -> bool:
        return self.moved and not self.given_up


class Ahead:
    """``limit`` is how many bytes of chunks a follower that counts may lack before the next one is read."""

    def __init__(self, limit: int, *, now: float) -> None:
        self._limit = limit
        self._marks: list[_Mark] = []
        self._size = 0  # of all chunks
        self._followers: dict[str, _Follower] = {}
        self._looked_at = now

    @property
    def counted(self) -> frozenset[str]:
        """The followers that count."""
        return frozenset(name for name, follower in self._followers.items() if follower.counts)

    def written(self, sequence: int, size: int) -> None:
        """A chunk of so many bytes is in the stream."""
        self._size += size
        self._marks.append(_Mark(sequence, self._size))
        if len(self._marks) > 2 * _MOST_MARKS:
            # Who has not applied those is so far behind that it makes no difference how far.
            del self._marks[:_MOST_MARKS]

    def seen(self, name: str, sequence: int) -> None:
        """The follower ``name`` has applied everything up to ``sequence``."""
        applied = self._applied(sequence)
        follower = self._followers.setdefault(name, _Follower(sequence, applied))
        follower.moved = follower.moved or sequence > follower.sequence
        if applied > follower.applied or applied == self._size:
            follower.waited = 0.0
            follower.given_up = follower.given_up and applied < self._size - self._limit
        follower.sequence, follower.applied = sequence, applied

    def awaited(self, now: float) -> str | None:
        """The follower that is to apply more before the next chunk is read; None where it may be read now."""
        passed, self._looked_at = min(now - self._looked_at, _STEP_SECONDS), now
        for follower in self._followers.values():
            if follower.applied < self._size:
                follower.waited += passed
                follower.given_up = follower.given_up or follower.waited > PATIENCE_SECONDS
        behind = [
            (follower.applied, name)
            for name, follower in self._followers.items()
            if follower.counts and follower.applied < self._size - self._limit
        ]
        return min(behind)[1] if behind else None

    def _applied(self, sequence: int) -> int:
        at = bisect_right(self._marks, sequence, key=lambda mark: mark.sequence)
        return self._marks[at - 1].size if at else 0
