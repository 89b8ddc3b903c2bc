"""Selects the part of the tests that only `make test-long` runs: tests, and cases of tests, that prove by mass what
others prove once.

``CDC_LONG=1`` lets them run. The docstring of a test marked ``long`` names the test that stays in `make test`.
"""

import os
from typing import Any

import pytest

__all__ = ["LONG", "in_long_runs"]

LONG = os.environ.get("CDC_LONG") == "1"


def in_long_runs(*values: Any) -> Any:
    """Values for ``pytest.mark.parametrize`` that only long runs try."""
    return pytest.param(*values, marks=pytest.mark.long)
