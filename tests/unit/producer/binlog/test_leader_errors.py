"""What becomes of a leader's errors: where it is away, the producer waits for it."""

import pymysql
import pytest

from cdc.consumer.errors import UNREACHABLE
from cdc.errors import Disconnected, UserError
from cdc.producer.binlog.leader import translated


@pytest.mark.parametrize("code", sorted(UNREACHABLE))
def test_the_leader_is_away_with_what_a_follower_is_away_with(code: int) -> None:
    assert isinstance(translated(pymysql.OperationalError(code, "text"), "leader"), Disconnected)


def test_a_connection_that_has_broken_before_is_told() -> None:
    error = translated(pymysql.InterfaceError(0, ""), "leader")
    assert isinstance(error, Disconnected)
    assert "the leader cannot be reached: the connection is closed" in str(error)


def test_a_refused_statement_is_the_users() -> None:
    assert isinstance(translated(pymysql.ProgrammingError(1064, "syntax"), "leader"), UserError)
