"""Each test has a name of its own for topics and databases, also one that ran before with other parameters."""

from pathlib import Path

import pytest

from tests.harness.programs import own_name

_TAKEN: set[str] = set()


@pytest.mark.parametrize("number", range(3))
def test_no_two_tests_have_the_same_name(tmp_path: Path, number: int) -> None:
    name = own_name(tmp_path)
    assert name not in _TAKEN, number
    _TAKEN.add(name)
