"""Columns are compared by their names in any case. What servers store is in integration/consumer/test_leader_types."""

import pytest

from cdc.consumer.plan.column_fit import misfits

UUID = "char(36) character set ascii"


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
        # The types that UUID, INET4 and INET6 of MariaDB have on a follower: a row from before an ALTER.
        ({"c": UUID}, {"C": UUID}, {}),
        ({"c": UUID}, {"c": "varchar(39) character set ascii"}, {"c": (UUID, "varchar(39) character set ascii")}),
        ({"c": UUID}, {"c": "binary(16)"}, {"c": (UUID, "binary(16)")}),
        ({"c": "binary(16)"}, {"c": UUID}, {"c": ("binary(16)", UUID)}),
        ({"c": UUID}, {"c": "char(36) character set utf8mb4"}, {}),
    ],
)
def test_misfits(there: dict[str, str], here: dict[str, str], found: dict[str, tuple[str, str]]) -> None:
    assert misfits(there, here) == found
