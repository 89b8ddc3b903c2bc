"""Columns are compared by their names in any case. What servers store is in integration/consumer/test_leader_types."""

import pytest

from cdc.consumer.plan.column_fit import misfits


@pytest.mark.parametrize(
    ("there", "here", "found"),
    [
        ({"d": "decimal(5,2)"}, {"D": "decimal(5,1)"}, {"d": ("decimal(5,2)", "decimal(5,1)")}),
        ({"d": "decimal(5,2)"}, {"D": "decimal(5,2)"}, {}),
        ({"d": "decimal(5,2)"}, {"e": "int"}, {}),
        ({"f": "float"}, {"f": "float(7,2)"}, {}),
        # The server would round 1.2345: the consumer prevents that by the name.
        ({"f": "float"}, {"F": "float(7,2)"}, {"f": ("float", "float(7,2)")}),
        ({"f": "double"}, {"F": "double(7,2) unsigned"}, {"f": ("double", "double(7,2) unsigned")}),
        ({"f": "float"}, {"F": "float unsigned"}, {}),
    ],
)
def test_misfits(there: dict[str, str], here: dict[str, str], found: dict[str, tuple[str, str]]) -> None:
    assert misfits(there, here) == found
