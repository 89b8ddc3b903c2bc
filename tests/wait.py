"""Waiting for a condition, with an end."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], *, seconds: float = 60.0, what: str) -> None:
    """Ask until the answer is true; fails with ``what`` after ``seconds``."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
