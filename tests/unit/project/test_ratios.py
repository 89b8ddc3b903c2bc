"""What fell by more than a tenth since it was recorded is named."""

import json
from pathlib import Path

import pytest

from bench.ratios import RECORDED, best_of, note, worse

RECORDED_ONES = {"apply": {"ratio": 2.0, "measured": "2026-11-28"}, "copy": {"ratio": 1.0, "measured": "2026-11-27"}}


def test_the_best_of_several_runs_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "found.jsonl"
    note("apply", 9.0)  # no file is named yet
    monkeypatch.setenv("CDC_BENCH_RATIOS", str(file))
    for name, ratio in (("apply", 1.5), ("apply", 1.9), ("apply", 1.7), ("new", 3.0)):
        note(name, ratio)
    assert best_of(file.read_text().splitlines()) == {"apply": 1.9, "new": 3.0}


def test_what_is_worse_is_named() -> None:
    assert worse({"apply": 1.81, "copy": 0.91, "new": 0.1}, RECORDED_ONES) == []
    assert worse({"apply": 1.79, "copy": 0.89}, RECORDED_ONES) == [
        "apply: 1.79, and 2.00 on 2026-11-28",
        "copy: 0.89, and 1.00 on 2026-11-27",
    ]


def test_the_recorded_ones_can_be_read() -> None:
    for name, each in json.loads(RECORDED.read_text()).items():
        assert worse({name: each["ratio"] / 2}, {name: each})
