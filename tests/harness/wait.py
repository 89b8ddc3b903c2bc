"""Waiting for a condition, with an end."""

import time
from collections.abc import Callable

LIMIT_SECONDS = 600  # only against hangs: on a busy machine an audit alone takes two minutes


def until(condition: Callable[[], object], *, seconds: float = LIMIT_SECONDS, what: str) -> None:
    """Ask until the answer is true; fails with ``what`` after ``seconds``."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
