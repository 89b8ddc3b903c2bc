"""What `make test-long` runs beyond `make test`: tests, and cases of tests, that prove by mass what others prove once.

``CDC_LONG=1`` lets them run. A test that is marked ``long`` says in its docstring which one stays in `make test`.
"""

import os
from typing import Any

import pytest

__all__ = ["LONG", "in_long_runs"]

LONG = os.environ.get("CDC_LONG") == "1"


def in_long_runs(*values: Any) -> Any:
    """Values for ``pytest.mark.parametrize`` that only long runs try."""
    return pytest.param(*values, marks=pytest.mark.long)
