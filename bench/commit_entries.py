"""Measures the size of an entry of the commit log, as JSON and as it is written: ``python -m bench.commit_entries``."""

import json
from dataclasses import asdict, replace
from random import Random

from cdc.model.commit_entry import Entry
from cdc.model.position import Position

_UUID = "5f6a0f4e-0000-11ee-8000-000000000001"
_WORDS = ("order", "item", "customer", "log", "audit", "invoice", "event", "session", "user", "product")


def with_intervals(count: int, random: Random) -> Entry:
    """An entry whose GTID set has so many intervals of one GTID each, most of them near one another."""
    numbers, number = [], 0
    for _ in range(count):
        number += random.choice((2, 2, 2, 3, 4, 5, 8, 20))
        numbers.append(str(number))
    return Entry(7, Position("binlog.000001", 4), f"{_UUID}:{':'.join(numbers)}", _UUID)


def with_partitions(count: int, random: Random) -> Entry:
    """An entry of so many topics with names of 35 characters or so."""
    names = [
        f"mysql-srv1.shop-{random.choice(_WORDS)}-{random.randrange(1000)}_{random.choice(_WORDS)}_{number}/0"
        for number in range(count)
    ]
    counts = {name: random.randrange(100_000) for name in names}
    last = {name: random.randrange(1_000_000_000) for name in names}
    return replace(with_intervals(1, random), counts=counts, last=last)


def main() -> None:
    """Prints a line for each kind and size."""
    random = Random(1)
    for what, kind, sizes in (
        ("GTID intervals", with_intervals, (1_000, 20_000, 130_000)),
        ("partitions", with_partitions, (100, 1_000, 10_000)),
    ):
        for count in sizes:
            entry = kind(count, random)
            whole = len(json.dumps(asdict(entry), separators=(",", ":")))
            print(f"{count:7} {what:14} {whole:9,} bytes as JSON, {len(entry.to_json()):9,} as written")


if __name__ == "__main__":
    main()
