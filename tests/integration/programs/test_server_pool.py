"""The servers that tests use one after the other: nothing is left of the test before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.mysql import MySql
from tests.harness.server_pool import ServerPool, state_of

pytestmark = pytest.mark.integration

# Statements whose effect a test may leave behind, each with one that takes the effect back.
LEFT = {
    "CREATE USER somebody": "DROP USER somebody",
    "GRANT BINLOG_ADMIN ON *.* TO fluvio": "REVOKE BINLOG_ADMIN ON *.* FROM fluvio",
    "SET GLOBAL binlog_row_metadata = MINIMAL": "SET GLOBAL binlog_row_metadata = FULL",
    "XA START 'a'; INSERT INTO d.t VALUES (1); XA END 'a'; XA PREPARE 'a'": "XA ROLLBACK 'a'",
    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1'": "RESET REPLICA ALL",
    "CREATE TABLESPACE space ADD DATAFILE 'space.ibd'": "DROP TABLESPACE space",
    "SET PERSIST_ONLY max_connections = 90": "",  # the file stays
}


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[ServerPool]:
    made = ServerPool(tmp_path)
    yield made
    made.close()


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def test_a_server_is_given_again_as_a_new_one_or_not_at_all(pool: ServerPool) -> None:
    first = pool.mysql(server_id=1)
    server = first.server
    execute(server, "CREATE DATABASE `a``b`", "CREATE TABLE `a``b`.t (i INT PRIMARY KEY)", "FLUSH BINARY LOGS")
    left_open = server.root(database="a`b")
    with left_open.cursor() as cursor:
        cursor.execute("LOCK TABLES t WRITE")
    new = state_of(server)
    execute(
        server, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {server.port}", "START REPLICA",
        "SET GLOBAL binlog_row_metadata = MINIMAL", "SET GLOBAL binlog_stmt_cache_size = 4096",
    )  # fmt: skip
    pool.give_back(first)
    second = pool.mysql(server_id=7)
    left_open.close()
    assert second.server is server
    assert execute(server, "SELECT @@server_id, @@gtid_executed") == [(7, "")]
    assert ("a`b",) not in execute(server, "SHOW DATABASES")
    assert [row[2] for row in execute(server, "SHOW BINLOG EVENTS")] == ["Format_desc", "Previous_gtids"]
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.t (i INT)")
    assert state_of(server) == new
    for left, back in LEFT.items():
        execute(server, *left.split("; "))
        assert state_of(server) != new, left
        if back:
            execute(server, back)
            assert state_of(server) == new, back
    pool.give_back(second)
    assert not server.running()
