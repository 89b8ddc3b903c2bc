"""Holds a copy back while a follower that keeps up with it has too much of it to apply: other changes would be late."""

import logging
import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaException

from cdc.kafka.follower_places import FollowerPlaces
from cdc.producer.copy_pace.ahead import PATIENCE_SECONDS, Ahead

__all__ = ["Followers"]

_LOOK_SECONDS = 0.05
_TELL_SECONDS = 600.0  # between two warnings that the brokers do not tell the places


class Followers:
    """A chunk is read when no follower that counts (``Ahead``) lacks more than ``limit`` bytes of chunks; 0: always.

    ``log(event, **fields)`` is called when a follower begins or ceases to count, and where places can't be read: what
    is known of a follower holds then, and soon it counts no more. ``waits_for`` is the one that a chunk waits for now.
    """

    def __init__(self, places: FollowerPlaces, *, limit: int, log: Callable[..., None]) -> None:
        self._places = places
        self._log = log
        self._limit = limit
        self._ahead = Ahead(limit, now=time.monotonic())
        self._lock = threading.Lock()  # the stream writes chunks while another thread reads the next ones
        self._counted: frozenset[str] = frozenset()
        self._refused_at: float | None = None
        self.waits_for: str | None = None

    def written(self, sequence: int, size: int) -> None:
        """A chunk with so many bytes is in the stream."""
        with self._lock:
            self._ahead.written(sequence, size)

    def wait(self, end: threading.Event) -> None:
        """Wait until the next chunk may be read, or for ``end``."""
        if not self._limit:
            return
        while (name := self._awaited()) is not None and not end.is_set():
            self.waits_for = name
            end.wait(_LOOK_SECONDS)
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
                    "the copy can't tell how far followers are", level=logging.WARNING, why=error.args[0].str(),
                    hint="it waits for none meanwhile; where an ACL is missing, allow DESCRIBE on the consumer groups",
                )  # fmt: skip
            return None
        if places is not None and self._refused_at is not None:
            self._refused_at = None
            self._log("the copy can tell again how far followers are")
        return places
