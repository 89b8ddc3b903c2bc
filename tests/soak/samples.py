"""Memory, open files and delays of the programs, once a minute, and what they show of a growth."""

import csv
import re
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Self
from urllib.request import urlopen

__all__ = ["Sample", "Samples", "growth", "percentile_of"]

_BUCKET = re.compile(r'^cdc_consumer_delay_seconds_bucket\{le="([^"]+)"\} (\S+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """One process in one minute of a piece: resident memory in MB, of that what is not of files, and its open files."""

    minute: float
    process: str
    memory: float
    private: float
    files: int

    @classmethod
    def of(cls, minute: float, process: str, pid: int) -> Self:
        status = Path(f"/proc/{pid}/status").read_text()
        memory, private = (
            int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]
            for name in ("VmRSS", "RssAnon")
        )
        return cls(minute, process, memory, private, len(list(Path(f"/proc/{pid}/fd").iterdir())))


class Samples:
    """The samples of a piece, also written to ``file`` as CSV, and the consumer's p99 of each minute in ms."""

    def __init__(self, file: Path, *, metrics_port: int) -> None:
        self.found: list[Sample] = []
        self.delays: list[float] = []
        self._file = file
        self._port = metrics_port
        self._begun = time.monotonic()
        self._buckets: dict[float, float] = {}

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self._begun) / 60

    def take(self, processes: Mapping[str, int]) -> None:
        """Samples all ``processes``, by their pids."""
        new = [Sample.of(self.minutes, name, pid) for name, pid in processes.items()]
        self.found += new
        with suppress(OSError), urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as page:
            buckets = {float(edge): float(count) for edge, count in _BUCKET.findall(page.read().decode())}
            if self._buckets:
                added = [(edge, count - self._buckets.get(edge, 0)) for edge, count in sorted(buckets.items())]
                self.delays.append(percentile_of(added, 0.99) * 1e3)
            self._buckets = buckets
        with self._file.open("a", newline="") as file:
            delay = f"{self.delays[-1]:.1f}" if self.delays else ""
            csv.writer(file).writerows([*(getattr(each, key.name) for key in fields(each)), delay] for each in new)

    def lines(self, *, settle_minutes: float) -> list[str]:
        """What each process shows from ``settle_minutes`` on, and how the delays went."""
        lines = []
        for name in dict.fromkeys(each.process for each in self.found):
            own = [each for each in self.found if each.process == name]
            late = [each for each in own if each.minute >= settle_minutes]
            files = [each.files for each in late]
            lines.append(
                f"{name}: {late[0].memory:.1f} MB after {late[0].minute:.0f} min, {late[-1].memory:.1f} in the end, "
                f"{growth([(each.minute, each.private) for each in late]) * 60:+.2f} MB/h; "
                f"{min(files)} to {max(files)} open files"
                if len(late) > 1
                else f"{name}: too short a time"
            )
        third = len(self.delays) // 3
        if third:
            first, last = median(self.delays[:third]), median(self.delays[-third:])
            lines.append(f"p99 of the delay of a minute: {first:.0f} ms in the first third, {last:.0f} in the last")
        return lines


def growth(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line of least squares through ``points``; 0 for one point."""
    count = len(points)
    mean_x, mean_y = (sum(each[axis] for each in points) / count for axis in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def percentile_of(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """The value below which ``share`` of a histogram is: upper edges with cumulative counts, as Prometheus has them.

    It is interpolated within its bucket, as ``histogram_quantile`` does; 0 for an empty histogram.
    """
    total = buckets[-1][1] if buckets else 0
    if not total:
        return 0.0
    at = bisect_left([count for _, count in buckets], share * total)
    low, before = buckets[at - 1] if at else (0.0, 0.0)
    edge, count = buckets[at]
    return low if edge == float("inf") else low + (edge - low) * (share * total - before) / (count - before)
