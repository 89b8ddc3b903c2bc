"""Compares the ratios of a run of benchmarks with those that were recorded before, and names what became worse.

    CDC_BENCH_RATIOS=found.jsonl python bench/producer.py --shapes rows,single
    python bench/ratios.py found.jsonl [--keep]

A ratio is the peer's seconds divided by ours in the same run, so that the speed of the machine cancels out, and a
larger one is better. With CDC_BENCH_RATIOS each benchmark appends its ratios to that file; of several of one name the
best counts, since other work on the machine only makes a ratio worse. ``bench/ratios.json`` has the recorded ones with
the day on which they were measured. The exit status is 1 if one of those is now more than 10 % lower. ``--keep``
records what was found instead, and leaves the others as they are.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["best_of", "note", "worse"]

RECORDED = Path(__file__).with_name("ratios.json")
_TOLERATED = 0.9  # of a recorded ratio; measured again on the same machine, most differ by less


def note(name: str, ratio: float) -> None:
    """Appends a ratio to the file that the environment names, if it names one."""
    if file := os.environ.get("CDC_BENCH_RATIOS"):
        with Path(file).open("a", encoding="utf-8") as found:
            found.write(json.dumps({"name": name, "ratio": ratio}) + "\n")


def best_of(lines: Iterable[str]) -> dict[str, float]:
    """The best ratio of each name among the lines that ``note`` has written."""
    best: dict[str, float] = {}
    for each in map(json.loads, lines):
        best[each["name"]] = max(each["ratio"], best.get(each["name"], 0.0))
    return best


def worse(found: Mapping[str, float], recorded: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each ratio that is more than 10 % lower than the recorded one."""
    return [
        f"{name}: {ratio:.2f}, and {recorded[name]['ratio']:.2f} on {recorded[name]['measured']}"
        for name, ratio in sorted(found.items())
        if name in recorded and ratio < _TOLERATED * recorded[name]["ratio"]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("found", type=Path)
    parser.add_argument("--keep", action="store_true", help="record what was found")
    options = parser.parse_args()
    found = best_of(options.found.read_text(encoding="utf-8").splitlines())
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    if options.keep:
        today = datetime.now(UTC).date().isoformat()
        recorded |= {name: {"ratio": round(ratio, 3), "measured": today} for name, ratio in found.items()}
        RECORDED.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name, ratio in sorted(found.items()):
        before = f"{recorded[name]['ratio']:8.2f}" if name in recorded else f"{'new':>8}"
        print(f"{name:60}{ratio:8.2f}{before}")
    fallen = worse(found, recorded)
    for each in fallen:
        print(f"WORSE: {each}")
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main())
