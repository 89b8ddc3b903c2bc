"""Errors of the server that pass by themselves, or once somebody has made room, are no refusals of a row."""

import pymysql
import pytest

from cdc.consumer.follower.session import Interrupted, Refused, _meaning
from cdc.consumer.server_errors import HINTS, TRANSIENT


@pytest.mark.parametrize(
    "code",
    [3, 20, 1021, 1026, 1040, 1114, 1129, 1135, 1180, 1203, 1205, 1206, 1213, 1226, 1290, 1317, 1637, 3032, 3168, 3169],
)
def test_what_passes(code: int) -> None:
    assert isinstance(_meaning(pymysql.OperationalError(code, "not now")), Interrupted)


@pytest.mark.parametrize("code", [1038, 1054, 1062, 1153, 1197, 1264, 1406, 1598, 3098])
def test_what_stays_until_somebody_changes_something(code: int) -> None:
    assert isinstance(_meaning(pymysql.OperationalError(code, "never")), Refused)


def test_hints_are_of_what_is_waited_for() -> None:
    assert HINTS.keys() <= TRANSIENT
