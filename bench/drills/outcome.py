"""The outcome of a drill: how long a change was under way after each kill, and what was lost or repeated."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.drills.load import Load, ids
from cdc import records
from cdc.sandbox.server.mysql import MySql

__all__ = ["Outcome"]


@dataclass
class Outcome:
    """What one kind of kill has led to. ``away`` are the seconds from each kill until a row that was committed after it
    was on the follower."""

    killed: str
    away: list[float] = field(default_factory=list)
    rows: int = 0
    lost: int = 0
    records: int = 0
    repeated: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing was lost or repeated."""
        return bool(self.away) and not self.lost and not self.repeated

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Adds the seconds of the block, which begins with a kill and ends with a new row on the follower."""
        begun = time.monotonic()
        yield
        self.away.append(time.monotonic() - begun)

    def count(self, load: Load, follower: MySql, source: Path) -> None:
        """Compares what was acknowledged, what the leader has, what the follower has, and what the topic has.

        ``source`` is the profile of a producer. A row is lost if its commit was acknowledged to a client, or if the
        leader has it, and the leader or the follower lacks it; or if the topic lacks its record.
        """
        here, there = ids(load.leader), ids(follower)
        found = list(records(source))
        sequences = [record.sequence for record in found]
        sent = [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]
        expected = set(here) | set(load.acknowledged)
        self.rows, self.records = len(here), len(found)
        self.lost = sum(len(expected - set(each)) for each in (here, there, sent))
        self.lost += len(set(range(len(found))) - set(sequences))
        self.repeated = sum(len(each) - len(set(each)) for each in (here, there, sent, sequences))
        self.repeated += len(set(there) - set(here)) + len(set(sent) - set(here))

    def __str__(self) -> str:
        return (
            f"{self.killed}: {len(self.away)} kills, seconds away: {percentiles(self.away)}; "
            f"{self.lost} lost and {self.repeated} repeated of {self.rows:,} rows and {self.records:,} records"
        )


def percentiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    shown = [f"p{share} {ordered[min(len(ordered) - 1, len(ordered) * share // 100)]:.1f}" for share in (50, 99)]
    return ", ".join([*shown, f"max {ordered[-1]:.1f}"]) if ordered else "none"
