"""LIMITS.md names each known fault of binlog readers once, with tests that are there."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
ROWS = re.findall(r"^\| ([AB]\d+) \| .+ \| (.+) \|$", (TESTS / "LIMITS.md").read_text(encoding="utf-8"), re.M)


def test_every_known_fault_has_its_row() -> None:
    numbers = [f"A{number}" for number in range(1, 25)] + [f"B{number}" for number in range(1, 29)]
    assert [name for name, _ in ROWS] == numbers


@pytest.mark.parametrize(("name", "named"), ROWS, ids=[name for name, _ in ROWS])
def test_the_tests_that_are_named_are_there(name: str, named: str) -> None:
    tests = re.findall(r"`([^`]+)`", named)
    assert tests
    for test in tests:
        file, _, function = test.partition("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert file.startswith("cases/") or f"\ndef {function}(" in text, test
