"""Throttles table copies by a rate of rows, the load of the leader, the lag of its replicas, and the backlog of
followers.

Each throttle holds back the next chunk for its own reason: reading the leader may slow its replicas down, and a
follower with too many copied rows to apply applies other changes late.

The copy does not wait for every follower. A follower for which it waits is called **active**. A follower becomes active
when its position advances. It ceases to be active when it has chunks to apply but makes no progress for
PATIENCE_SECONDS, since it is then paused, busy or far behind. It becomes active again once its backlog is within the
limit."""

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pymysql
from confluent_kafka import KafkaException

from cdc.config.profile import ServerAddress
from cdc.kafka.follower_places import FollowerPlaces
from cdc.producer.binlog.leader import first_known
from cdc.service.mysql_connection import connected

__all__ = ["PATIENCE_SECONDS", "Ahead", "Followers", "LeaderLoad", "Replicas", "RowRate", "Throttle", "Throttles"]


class Throttle(Protocol):
    """The interface of a throttle: it makes the reading of a chunk wait while one condition is not met, such as a
    maximum load of the leader.
    """

    def wait(self, end: threading.Event, leader: Any) -> None:
        """Waits until a chunk may be read or ``end`` is set; ``leader`` is a cursor on the leader. Raises pymysql's
        errors."""


_REPLICA_LOOK_SECONDS = 1.0
# The timeouts are short, since a query must not delay the program's end.
_TIMEOUTS = {"connect_timeout": 2, "read_timeout": 3, "write_timeout": 3}
# The first statement reports Seconds_Behind_Source; the second, for MySQL before 8.0.22, reports Seconds_Behind_Master.
_STATUS = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")


class Replicas:
    """Holds back chunks until each replica at ``addresses`` reports that it is at most ``seconds`` behind, in its
    Seconds_Behind_Source.

    A replica that can't be reached, or does not replicate, may be any time behind: the copy waits for it as well.
    ``settings`` are pymysql's arguments for the leader; the same user logs in to the replicas. ``log(event, **fields)``
    is called when a wait begins, when its reason changes, and when it ends.
    """

    def __init__(
        self, addresses: Sequence[ServerAddress], settings: dict[str, Any], *, seconds: int, log: Callable[..., None]
    ) -> None:
        self._addresses = addresses
        self._settings = settings | _TIMEOUTS | {"cursorclass": pymysql.cursors.DictCursor, "autocommit": True}
        self._seconds = seconds
        self._log = log
        self._connections: dict[ServerAddress, Any] = {}
        self._looked_at = float("-inf")

    def wait(self, end: threading.Event, leader: Any) -> None:
        """Waits while a replica is too far behind (``Throttle.wait``); queries each replica at most once a second."""
        if not self._addresses or time.monotonic() < self._looked_at + _REPLICA_LOOK_SECONDS:
            return
        told = None
        while not end.is_set() and (found := self._behind()):
            address, why, known = found
            if told != (address, known or why):
                self._tell(address, why, known=known)
                told = address, known or why
            end.wait(_REPLICA_LOOK_SECONDS)
        if told and not end.is_set():
            self._log("the copy continues")
        self._looked_at = time.monotonic()

    def close(self) -> None:
        """Closes the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _tell(self, address: ServerAddress, why: str, *, known: bool) -> None:
        if known:
            self._log("the copy waits for a replica", replica=str(address), why=why)
            return
        hint = "the copy continues once the replica answers and replicates; or remove it from producer.copy_replicas"
        self._log("the copy waits for a replica", level=logging.WARNING, replica=str(address), why=why, hint=hint)

    def _behind(self) -> tuple[ServerAddress, str, bool] | None:
        """Returns the first replica that is behind, the reason, and whether the lag is known; None if no replica is
        behind.
        """
        for address in self._addresses:
            try:
                seconds = self._lag(address)
            except (pymysql.MySQLError, OSError) as error:
                self._connections.pop(address, None)
                return address, f"it can't be asked: {error.args[-1] if error.args else error}", False
            if seconds is None:
                return address, "it does not replicate", False
            if seconds > self._seconds:
                return address, f"it is {seconds} s behind", True
        return None

    def _lag(self, address: ServerAddress) -> int | None:
        """Returns the largest lag of all the replica's channels in seconds; None if a channel is stopped, or there is
        no channel."""
        if address not in self._connections:
            self._connections[address] = connected(**self._settings | {"host": address.host, "port": address.port})
        with self._connections[address].cursor() as cursor:
            channels = first_known(cursor, *_STATUS)
        lags = [row.get("Seconds_Behind_Source", row.get("Seconds_Behind_Master")) for row in channels]
        return max(lags) if lags and None not in lags else None


PATIENCE_SECONDS = 30.0
_MOST_MARKS = 10_000
_STEP_SECONDS = 1.0  # seconds; more time between two checks does not count, since no chunk was waiting


class _Mark(NamedTuple):
    """The ``size`` in bytes of all chunks up to and including the chunk with this ``sequence``."""

    sequence: int
    size: int


@dataclass(slots=True)
class _Follower:
    """A follower: ``applied`` is the number of bytes of chunks that it has applied, ``waited`` is the number of seconds
    without progress while it had chunks to apply."""

    sequence: int
    applied: int
    moved: bool = False
    given_up: bool = False
    waited: float = 0.0

    @property
    def counts(self) -> bool:
        return self.moved and not self.given_up


class Ahead:
    """Decides which follower a copy waits for, from the sequences of the written chunks and the sequence up to which
    each follower has applied the stream.

    The next chunk is read only if each active follower has at most ``limit`` bytes of chunks to apply. A follower is
    active while it makes progress (see the module's docstring).
    """

    def __init__(self, limit: int, *, now: float) -> None:
        self._limit = limit
        self._marks: list[_Mark] = []
        self._size = 0  # bytes of all chunks
        self._followers: dict[str, _Follower] = {}
        self._looked_at = now

    @property
    def counted(self) -> frozenset[str]:
        """The names of the active followers: the followers for which the copy waits if they are behind."""
        return frozenset(name for name, follower in self._followers.items() if follower.counts)

    def written(self, sequence: int, size: int) -> None:
        """Counts a chunk of ``size`` bytes as written; ``sequence`` is the sequence of its last record."""
        self._size += size
        self._marks.append(_Mark(sequence, self._size))
        if len(self._marks) > 2 * _MOST_MARKS:
            # A follower that has not applied these chunks is over the limit anyway: its exact backlog does not matter.
            del self._marks[:_MOST_MARKS]

    def seen(self, name: str, sequence: int) -> None:
        """Notes that the follower ``name`` has applied everything up to ``sequence``."""
        applied = self._applied(sequence)
        follower = self._followers.setdefault(name, _Follower(sequence, applied))
        follower.moved = follower.moved or sequence > follower.sequence
        if applied > follower.applied or applied == self._size:
            follower.waited = 0.0
            follower.given_up = follower.given_up and applied < self._size - self._limit
        follower.sequence, follower.applied = sequence, applied

    def awaited(self, now: float) -> str | None:
        """Returns the follower that must apply more before the next chunk is read; None if the chunk may be read
        now.
        """
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


_FOLLOWER_LOOK_SECONDS = 0.02
_TELL_SECONDS = 600.0  # seconds between two warnings that the followers' places can't be read


class Followers:
    """Holds back chunks while an active follower has more than ``limit`` bytes of chunks to apply; a limit of 0
    disables this throttle. A follower is active while it makes progress (``Ahead``).

    ``log(event, **fields)`` is called when a follower becomes active or inactive, and when the followers' places
    can't be read: then the last known places are used, and soon no follower is active. ``waits_for`` is the follower
    that a chunk waits for now.
    """

    def __init__(self, places: FollowerPlaces, *, limit: int, log: Callable[..., None]) -> None:
        self._places = places
        self._log = log
        self._limit = limit
        self._ahead = Ahead(limit, now=time.monotonic())
        self._lock = threading.Lock()  # the stream writes chunks while another thread reads the next chunks
        self._counted: frozenset[str] = frozenset()
        self._refused_at: float | None = None
        self.waits_for: str | None = None

    def written(self, sequence: int, size: int) -> None:
        """Counts a chunk of ``size`` bytes as written; ``sequence`` is the sequence of its last record."""
        with self._lock:
            self._ahead.written(sequence, size)

    def wait(self, end: threading.Event, leader: Any) -> None:
        """Waits while an active follower has too many bytes of chunks to apply; see ``Throttle.wait``."""
        if not self._limit:
            return
        while (name := self._awaited()) is not None and not end.is_set():
            self.waits_for = name
            end.wait(_FOLLOWER_LOOK_SECONDS)
        self.waits_for = None

    def _awaited(self) -> str | None:
        places = self._look()
        with self._lock:
            for name, sequence in (places or {}).items():
                self._ahead.seen(name, sequence)
            awaited, counted = self._ahead.awaited(time.monotonic()), self._ahead.counted
        before, self._counted = self._counted, counted
        for name in sorted(counted - before):
            self._log("the copy keeps close to a follower", follower=name)
        for name in sorted(before - counted):
            why = f"it has applied no chunk for {PATIENCE_SECONDS:.0f} s"
            self._log("the copy does not wait for a follower any more", follower=name, why=why)
        return awaited

    def _look(self) -> dict[str, int] | None:
        try:
            places = self._places.look()
        except KafkaException as error:
            if self._refused_at is None or time.monotonic() > self._refused_at + _TELL_SECONDS:
                self._refused_at = time.monotonic()
                self._log(
                    "the progress of followers can't be read", level=logging.WARNING, why=error.args[0].str(),
                    hint="the copy waits for none now; if an ACL is missing, allow DESCRIBE on the consumer groups",
                )  # fmt: skip
            return None
        if places is not None and self._refused_at is not None:
            self._refused_at = None
            self._log("the progress of followers can be read again")
        return places


class RowRate:
    """Limits copying to ``rows_per_second``; 0 means no limit."""

    def __init__(self, rows_per_second: int = 0) -> None:
        self._rows_per_second = rows_per_second
        self._next_at = 0.0

    def change(self, rows_per_second: int) -> None:
        """Limits copying to ``rows_per_second`` from the next chunk on; another thread may call it."""
        self._rows_per_second = rows_per_second

    def most(self, rows: int) -> int:
        """Returns ``rows``, or the limit for one second if it is lower: so the limit holds in each single second, not
        only on average.
        """
        return min(rows, self._rows_per_second or rows)

    def read(self, rows: int) -> None:
        """Counts ``rows`` that were read."""
        if limit := self._rows_per_second:
            self._next_at = max(self._next_at, time.monotonic()) + rows / limit

    def wait(self, end: threading.Event, leader: Any) -> None:
        """Waits until the rate allows the next chunk; see ``Throttle.wait``."""
        end.wait(max(0.0, self._next_at - time.monotonic()))


_LOAD_LOOK_SECONDS = 0.5


class LeaderLoad:
    """Holds back chunks while more than ``threads_running`` threads of the leader run; 0 means no limit.

    ``log(event, **fields)`` is called when a wait begins and ends.
    """

    def __init__(self, threads_running: int, *, log: Callable[..., None]) -> None:
        self._threads_running = threads_running
        self._log = log

    def wait(self, end: threading.Event, leader: Any) -> None:
        """Waits while too many threads of the leader run; see ``Throttle.wait``."""
        waits = False
        while self._threads_running and not end.is_set():
            leader.execute("SHOW GLOBAL STATUS LIKE 'Threads_running'")
            running = int(leader.fetchone()[1])
            if running <= self._threads_running:
                break
            if not waits:
                self._log("the copy waits for the leader", threads_running=running)
            waits = True
            end.wait(_LOAD_LOOK_SECONDS)
        if waits:
            self._log("the copy continues")


class Throttles:
    """All throttles of a copy. The next chunk is read once no throttle holds it back."""

    def __init__(self, *, rate: RowRate, followers: Followers, replicas: Replicas, load: LeaderLoad) -> None:
        self.rate = rate
        self.followers = followers
        self._replicas = replicas
        self._in_order: tuple[Throttle, ...] = (rate, followers, replicas, load)
        self._stopped = threading.Event()

    def await_turn(self, leader: Any, *, until: threading.Event | None = None) -> None:
        """Waits until a chunk may be read. The wait ends early when ``until`` is set or, without ``until``, when
        ``stop`` is called. ``leader`` is a cursor on the leader.

        Raises pymysql's errors.
        """
        for throttle in self._in_order:
            throttle.wait(until or self._stopped, leader)

    def stop(self) -> None:
        """Ends all waits."""
        self._stopped.set()

    def close(self) -> None:
        """Closes the connections to replicas; to be called once nothing is read any more."""
        self._replicas.close()
