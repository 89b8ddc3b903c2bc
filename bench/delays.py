"""Measures the delay of the leader's changes on the way to Kafka and the follower, by the metrics of producer and
consumer.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.request import urlopen

__all__ = ["Delay", "watched_delay", "worst"]

LOOK_SECONDS = 0.25
METRIC = re.compile(r"^cdc_(?:producer|consumer)_(\w+) (\S+)", re.MULTILINE)


class Delay(NamedTuple):
    """Delays from a commit on the leader: ``ms`` to Kafka on average, and ``seconds`` to the follower at most."""

    ms: float
    seconds: float


@contextmanager
def watched_delay(ports: tuple[int, int]) -> Iterator[list[Delay]]:
    """The delays in each ``LOOK_SECONDS`` of the block; ``ports`` serve the metrics of producer and consumer."""
    delays: list[Delay] = []
    end = threading.Event()

    def watch() -> None:
        before = 0.0, 0.0
        while not end.wait(LOOK_SECONDS):
            source, target = map(metrics, ports)
            count, total = source.get("delay_seconds_count", 0.0), source.get("delay_seconds_sum", 0.0)
            if count > before[0]:
                mean = (total - before[1]) / (count - before[0])
                delays.append(Delay(mean * 1e3, target.get("behind_seconds", 0.0)))
                before = count, total

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield delays
    finally:
        end.set()
        thread.join()


def metrics(port: int) -> dict[str, float]:
    """The metrics of a program by name; empty before it answers and after its end."""
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        return {name: float(value) for name, value in METRIC.findall(page.read().decode())}
    return {}


def worst(delays: Sequence[Delay]) -> str:
    if not delays:
        return f"{'':13}"
    return f"{max(each.ms for each in delays):6.0f}{max(each.seconds for each in delays):7.1f}"
