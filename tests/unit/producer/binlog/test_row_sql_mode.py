"""Which modes of the leader's session go with its rows, and under which the follower writes them."""

import pytest

from cdc.consumer.literals import own_variables
from cdc.producer.binlog.events import row_mode

USUAL = 1 << 23 | 1 << 24


def begin(*variables: bytes) -> bytes:
    """A Query event with these status variables."""
    found = b"".join(variables)
    head = bytes(4) + b"\x02" + bytes(14)
    return head + bytes(4 + 4 + 1 + 2) + len(found).to_bytes(2, "little") + found + b"\0BEGIN"


def sql_mode(bits: int) -> bytes:
    return b"\x01" + bits.to_bytes(8, "little")


FLAGS = b"\x00" + bytes(4)


@pytest.mark.parametrize(
    ("bits", "mode"),
    [
        (USUAL, None),
        (USUAL | 1 << 5 | 1 << 21 | 1 << 26 | 1 << 30, None),  # MySQL's default, with what only forbids
        (0, ""),
        (1 << 21, ""),
        (USUAL | 1 << 32, "NO_ZERO_IN_DATE,NO_ZERO_DATE,TIME_TRUNCATE_FRACTIONAL"),
        (1 << 6 | 1 << 25 | 1 << 31, "NO_UNSIGNED_SUBTRACTION,ALLOW_INVALID_DATES,PAD_CHAR_TO_FULL_LENGTH"),
        (USUAL | 1 << 33 | 1 << 60, None),  # known and unknown ones that compute nothing
    ],
)
def test_the_modes_that_compute(bits: int, mode: str | None) -> None:
    for _ in range(2):  # the second time it is known
        assert row_mode(begin(FLAGS, sql_mode(bits), b"\x06\x03std")) == mode


def test_variables_in_another_order() -> None:
    assert row_mode(begin(sql_mode(1 << 32), FLAGS)) == "TIME_TRUNCATE_FRACTIONAL"
    assert row_mode(begin(FLAGS)) is None


def test_what_refuses_and_what_takes() -> None:
    modes = "NO_ZERO_DATE,PAD_CHAR_TO_FULL_LENGTH"
    assert own_variables.strict(modes, adds=True) == f"STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,{modes}"
    assert own_variables.strict(modes, adds=False) == "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ZERO_DATE"
    assert own_variables.lax("", adds=True) == "NO_AUTO_VALUE_ON_ZERO"
    assert own_variables.permissive(modes, adds=False) == own_variables.LAX
    assert not own_variables.needs_comparison("NO_ZERO_DATE")
    assert own_variables.needs_comparison("TIME_TRUNCATE_FRACTIONAL")
    with pytest.raises(ValueError, match="not the sql_mode"):
        own_variables.strict("'; DROP TABLE t", adds=True)
