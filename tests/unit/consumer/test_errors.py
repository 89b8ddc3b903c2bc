"""Server errors that pass by themselves, or once an administrator has made room, are retried; others refuse a row."""

import pytest

from cdc.consumer.errors import HINTS, TRANSIENT, Denied, Interrupted, Refused, server_error


@pytest.mark.parametrize(
    "code",
    [3, 20, 1021, 1026, 1040, 1114, 1129, 1135, 1180, 1203, 1205, 1206, 1213, 1226, 1290, 1317, 1637, 3032, 3168, 3169],
)
def test_errors_that_pass_are_retried(code: int) -> None:
    assert isinstance(server_error(code, "not now", connection_failed=False), Interrupted)


@pytest.mark.parametrize("code", [1038, 1054, 1062, 1153, 1197, 1264, 1406, 1598, 3098])
def test_errors_that_stay_until_somebody_changes_something_are_refusals(code: int) -> None:
    assert isinstance(server_error(code, "never", connection_failed=False), Refused)


def test_an_account_without_the_grant_is_denied() -> None:
    assert isinstance(server_error(1045, "Access denied", connection_failed=False), Denied)


def test_a_closed_connection_is_retried() -> None:
    error = server_error(0, "", connection_failed=True)
    assert isinstance(error, Interrupted)
    assert error.code == 0


def test_only_errors_that_are_retried_have_hints_for_the_wait() -> None:
    assert HINTS.keys() <= TRANSIENT
