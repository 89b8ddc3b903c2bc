"""How many rows a table's first chunk has: as the leader's estimate of the table allows, from 500 to 5000."""

import pytest

from cdc.producer.copy.reader import _first_rows
from cdc.producer.copy.requests import Estimate


@pytest.mark.parametrize(
    ("estimate", "rows"),
    [
        (None, 500),
        (Estimate(0, 0), 500),
        (Estimate(0, 16_384), 500),
        (Estimate(4000, 1_600_000), 1000),
        (Estimate(4000, 16_384), 5000),
        (Estimate(10, 1_600_000), 500),
    ],
)
def test_rows_of_a_first_chunk(estimate: Estimate | None, rows: int) -> None:
    assert _first_rows(estimate) == rows
