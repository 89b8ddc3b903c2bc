"""The transactions that a SELECT on a MariaDB leader sees, compared with its binlog."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cdc.errors import UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog.leader import end_of_binlog
from cdc.producer.flavor import mariadb_leader
from cdc.producer.flavor.mariadb_leader import Visibility, begin_snapshot
from cdc.sandbox.server.mysql import MySql
from tests.harness.mariadb import on
from tests.harness.wait import until

pytestmark = pytest.mark.integration

XID = "X'78',X'',1"
NONE: frozenset[str] = frozenset()


@pytest.fixture
def cursor(mariadb: MySql) -> Iterator[Any]:
    with on(mariadb) as cursor:
        cursor.execute("CREATE DATABASE seen")
        cursor.execute("CREATE TABLE seen.t (id INT PRIMARY KEY)")
        yield cursor
        cursor.execute("DROP DATABASE seen")


@pytest.fixture
def prepared(mariadb: MySql, cursor: Any) -> Iterator[None]:
    """An XA transaction that is prepared."""
    with on(mariadb, "seen") as other:
        for statement in ("XA START 'x'", "INSERT INTO t VALUES (7)", "XA END 'x'", "XA PREPARE 'x'"):
            other.execute(statement)
        yield
        other.execute("XA COMMIT 'x'")


def end_of(cursor: Any) -> Position:
    return Position(*end_of_binlog(cursor))


def count(cursor: Any) -> int:
    cursor.execute("SELECT COUNT(*) FROM seen.t")
    return int(cursor.fetchone()[0])


def test_a_transaction_that_is_logged_but_not_visible_is_awaited(mariadb: MySql, cursor: Any) -> None:
    """It waits for a semi-synchronous replica, and a dump has it already."""
    settings = "enabled", "wait_no_slave", "timeout", "wait_point"
    for name, value in zip(settings, ("ON", "ON", 2000, "AFTER_SYNC"), strict=True):
        cursor.execute(f"SET GLOBAL rpl_semi_sync_master_{name} = {value}")
    before = end_of(cursor)
    try:
        with on(mariadb) as other, ThreadPoolExecutor() as pool:
            inserted = pool.submit(other.execute, "INSERT INTO seen.t VALUES (1)")
            until(lambda: end_of(cursor) > before, what="the row is logged")
            assert count(cursor) == 0
            assert Visibility("maria", threading.Event()).await_all(cursor, end_of(cursor), NONE)
            assert count(cursor) == 1
            inserted.result()
    finally:
        for name in settings:
            cursor.execute(f"SET GLOBAL rpl_semi_sync_master_{name} = DEFAULT")


@pytest.mark.usefixtures("prepared")
def test_a_prepared_transaction_counts_as_visible_only_if_the_stream_has_it_as_prepared(
    cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the server it looks like one that has ended in the binlog, and not in the table."""
    visibility = Visibility("maria", threading.Event())
    monkeypatch.setattr(mariadb_leader, "_XA_SECONDS", 0.05)
    assert visibility.await_all(cursor, end_of(cursor), frozenset({XID}))
    assert not visibility.await_all(cursor, end_of(cursor), NONE)
    # It may be logged only later than the stream has read.
    monkeypatch.setattr(mariadb_leader, "_PATIENCE_SECONDS", 0)
    begin = Position(end_of(cursor).file, 4)
    assert not visibility.await_all(cursor, begin, NONE)
    with pytest.raises(UserError, match=f"nothing can be copied while the XA transaction {XID} is prepared"):
        visibility.await_all(cursor, end_of(cursor), NONE)


def test_a_snapshot_certainly_sees_all_that_was_logged_before_it(cursor: Any) -> None:
    cursor.execute("SET SESSION gtid_domain_id = 4")
    cursor.execute("INSERT INTO seen.t VALUES (1)")
    cursor.execute("SELECT @@last_gtid")
    gtid = cursor.fetchone()[0]
    seen = GtidSet.parse(begin_snapshot(cursor, ""))
    cursor.execute("COMMIT")
    assert gtid in seen
    assert f"4-7-{int(gtid.split('-')[2]) + 1}" not in seen


@pytest.mark.usefixtures("prepared")
def test_amid_xa_transactions_a_snapshot_certainly_sees_only_what_was_awaited(cursor: Any) -> None:
    assert begin_snapshot(cursor, "0-7:1-3") == "0-7:1-3"
    cursor.execute("COMMIT")
