"""How fast tables are read: so many rows a second, and not while the leader is busy, a replica or follower behind."""

import threading
import time
from collections.abc import Callable
from typing import Any

from cdc.producer.copy_pace.followers import Followers
from cdc.producer.copy_pace.replicas import Replicas

__all__ = ["Pace"]

_LOOK_SECONDS = 0.5


class Pace:
    """No more than ``rows_per_second``, nothing while more than ``threads_running`` threads of the server run (0 stands
    for any number) or one of the leader's ``replicas`` is behind, and nothing that ``followers`` are not ready for.

    ``log(event, **fields)`` is called when it begins to wait for the server, and when it goes on.
    """

    def __init__(
        self,
        *,
        rows_per_second: int,
        threads_running: int,
        followers: Followers,
        replicas: Replicas,
        log: Callable[..., None],
    ) -> None:
        self.followers = followers
        self._replicas = replicas
        self._rows_per_second = rows_per_second
        self._threads_running = threads_running
        self._log = log
        self._next_at = 0.0
        self._stopped = threading.Event()

    def most(self, rows: int) -> int:
        """At most ``rows``, and no more than may be read in a second: a limit is for each second, not on average."""
        return min(rows, self._rows_per_second or rows)

    def await_turn(self, cursor: Any, *, until: threading.Event | None = None) -> None:
        """Wait until more may be read, or for the end, or ``until`` then; ``cursor`` is the server's.

        Raises pymysql's errors.
        """
        end = until or self._stopped
        end.wait(max(0.0, self._next_at - time.monotonic()))
        self.followers.wait(end)
        self._replicas.wait(end)
        waits = False
        while self._threads_running and not end.is_set():
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Threads_running'")
            running = int(cursor.fetchone()[1])
            if running <= self._threads_running:
                break
            if not waits:
                self._log("the copy waits for the leader", threads_running=running)
            waits = True
            end.wait(_LOOK_SECONDS)
        if waits:
            self._log("the copy goes on")

    def read(self, rows: int) -> None:
        """So many were read."""
        if self._rows_per_second:
            self._next_at = max(self._next_at, time.monotonic()) + rows / self._rows_per_second

    def stop(self) -> None:
        """End all waiting."""
        self._stopped.set()

    def close(self) -> None:
        """Close the connections to replicas, once nothing is read any more."""
        self._replicas.close()
