"""Waiting for Kafka outside of the stream of records, while the follower's session is kept."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cdc.errors import Disconnected, Unreachable
from cdc.service.retry import Retry

__all__ = ["Patience"]

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Patience:
    """``retry`` says for how long; ``keep`` is called all the while, and ``stop`` ends it."""

    retry: Retry
    keep: Callable[[], object]
    stop: threading.Event

    def ask(self, question: Callable[[], Answer]) -> Answer | None:
        """What the brokers answer, once they are there; None where ``stop`` is set. Raises ServerGone."""
        waited = False
        while not self.stop.is_set():
            try:
                answer = question()
            except Unreachable as error:
                self.keep()
                self.retry.wait(Disconnected(error.what, where=error.where, hint=error.hint))
                waited = True
            else:
                if waited:
                    self.retry.connected()
                return answer
        return None

    def pause(self, seconds: float) -> None:
        """Wait before asking again what was answered."""
        self.retry.answered()
        self.keep()
        self.stop.wait(seconds)
