"""Tables of a MariaDB leader that are copied into the stream: the follower gets its rows, whatever happens."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import toml
from confluent_kafka import KafkaException

from cdc.errors import UserError
from cdc.producer.flavor.mariadb_leader import inspect_leader
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql, maria_db
from tests.harness.mariadb import VALUES, maria_pair, on, rows, types_of
from tests.harness.pair import Pair
from tests.harness.programs import end_offset, refused, run_well, running
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

SHARED = {"filters": {"include_dbs": ["maria"]}}
_TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, pad VARCHAR(300) DEFAULT 'abc')",
    "CREATE TABLE named (name VARCHAR(40), part DECIMAL(6,2), u INT, PRIMARY KEY (name, part), UNIQUE (u))",
    "CREATE TABLE bare (n INT, f FLOAT, j JSON)",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE own (u UUID PRIMARY KEY DEFAULT UUID(), n INT, i INET6 DEFAULT '::1', t TEXT COMPRESSED)",
)
_FILL = (
    "INSERT INTO t (id, n) SELECT seq, 0 FROM seq_0_to_999",
    "INSERT INTO named SELECT CONCAT(IF(seq % 2, 'é', 'E'), seq), seq / 10, seq FROM seq_0_to_999",
    "INSERT INTO bare SELECT seq DIV 20, seq / 3, '{\"a\":  1}' FROM seq_0_to_999",
    "INSERT INTO parent SELECT seq FROM seq_1_to_999",
    "INSERT INTO child SELECT seq, seq FROM seq_1_to_999",
    # Some versions of UUID are not in the order of their texts.
    "INSERT INTO own SELECT CONCAT(LPAD(id, 8, 0), '-0000-', id % 9, '000-9', LPAD(9, 15, 0)), id, '::1', pad FROM t",
)


@contextmanager
def written_to(leader: MySql) -> Iterator[None]:
    """Clients change the tables meanwhile, one of them with XA transactions."""
    stop, seed = threading.Event(), random.Random(1)

    def ordinary(number: int) -> list[str]:
        return [
            f"REPLACE INTO t (id, n) VALUES ({number}, {number})",
            f"DELETE FROM t WHERE id = {seed.randrange(1000)}",
            f"UPDATE IGNORE t SET id = id + 10000 WHERE id = {seed.randrange(500)}",
            f"INSERT IGNORE INTO named VALUES ('É{number}', {number / 100}, {number})",
            f"INSERT IGNORE INTO parent VALUES ({number})",
            f"INSERT IGNORE INTO child SELECT {number}, MAX(id) FROM parent",
            f"INSERT INTO bare VALUES ({number % 50}, {number} / 7, NULL)",
            f"UPDATE own SET i = '1::{number}' WHERE n = {number % 500}",
            f"DELETE FROM own WHERE n = {number // 2}",
            f"INSERT INTO own (n, t) VALUES ({number}, REPEAT('y', {number}))",
            f"DELETE FROM bare WHERE n = {seed.randrange(50)} LIMIT 1",
        ]

    def in_xa(number: int) -> list[str]:
        changed = [f"UPDATE t SET n = -1 WHERE id = {number}", f"INSERT INTO bare VALUES ({number}, 1, NULL)"]
        return ["XA START 'x'", *changed, "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"]

    def write(statements: Callable[[int], list[str]]) -> None:
        with leader.root(database="maria", autocommit=True) as connection, connection.cursor() as cursor:
            while not stop.wait(0.02):
                for statement in statements(seed.randrange(1000)):
                    cursor.execute(statement)

    writers = [threading.Thread(target=write, args=(each,)) for each in (ordinary, in_xa)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def started(pair: Pair, **producer: Any) -> None:
    """Sets keys of the table ``producer`` in the producer's profile."""
    profile = toml.loads(pair.source.read_text())
    profile["producer"] = profile.get("producer", {}) | producer
    pair.source.write_text(toml.dumps(profile))


def messages(kafka: Kafka, topic: str) -> int:
    """The number of messages in the topic; 0 if it does not exist yet."""
    try:
        return end_offset(kafka, topic)
    except KafkaException:
        return 0


@pytest.fixture
def pair(mariadb: MySql, follower: MySql, kafka: Kafka, tmp_path: Path) -> Pair:
    return maria_pair(tmp_path, mariadb, follower, kafka, source=SHARED, target=SHARED)


def test_a_leader_with_history_becomes_a_follower_under_writes_and_kills(pair: Pair, kafka: Kafka) -> None:
    """Begins with a copy by itself, since the first binlogs are purged; a table is altered meanwhile. Then tables that
    drifted are copied again.
    """
    topic = pair.source.stem.removesuffix("-source")
    pair.on_leader("SET sql_mode = ''", types_of(pair.leader), VALUES, *_TABLES, *_FILL, database="maria")
    pair.on_leader(
        "CREATE VIEW z_view AS SELECT id FROM t",
        "CREATE VIEW a_view AS SELECT id FROM z_view",
        "CREATE FUNCTION two() RETURNS INT DETERMINISTIC RETURN 2",
        "CREATE TABLE checked (id INT PRIMARY KEY, n INT, CHECK (n > 0))",
        "CREATE TABLE checked_too (id INT PRIMARY KEY, n INT, CHECK (n > 1))",
        "FLUSH BINARY LOGS",
        database="maria",
    )
    with on(pair.leader) as cursor:
        cursor.execute("SHOW MASTER STATUS")
        cursor.execute(f"PURGE BINARY LOGS TO '{cursor.fetchone()[0]}'")
    with written_to(pair.leader):
        for kill in range(2):
            with running("small_chunks", "100", pair.source) as producer:
                written = messages(kafka, topic)
                until(lambda before=written: messages(kafka, topic) > before + 3, what="the copy continues")
                producer.kill()
                producer.wait()
            pair.on_leader(f"ALTER TABLE t ADD COLUMN late{kill} INT DEFAULT {kill}", database="maria")
        run_well("cdc-producer", pair.source, "--until-current")
    pair.on_leader("DELETE FROM parent WHERE id < 100", database="maria")
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)
    assert len(rows(pair.follower)["t"]) > 700
    with on(pair.follower, "maria") as cursor:
        cursor.execute("SELECT two(), COUNT(*) > 700 FROM a_view")
        assert cursor.fetchone() == (2, 1)
    pair.on_follower(
        "USE maria", "DELETE FROM t LIMIT 50", "DELETE FROM bare LIMIT 9",
        "UPDATE types SET v = '', uu = NULL, i6 = '::2' WHERE id = 1", "UPDATE own SET t = 'z' LIMIT 9",
    )  # fmt: skip
    with written_to(pair.leader):
        run_well("cdc-producer", pair.source, "--copy", "maria.*")
        run_well("small_chunks", "100", pair.source, "--until-current")
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)


def test_a_copy_begins_behind_an_xa_transaction_that_was_prepared_before_it(pair: Pair) -> None:
    """Its rows, which the producer can't read, are not in the stream but in the copy."""
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", database="maria")
    pair.on_leader("XA START 'x'", "INSERT INTO t VALUES (2)", "XA END 'x'", "XA PREPARE 'x'", database="maria")
    started(pair, start="copy")
    before = queries_for_xa(pair.leader)
    with running("cdc-producer", pair.source, "--until-current") as producer:
        # There is a query each 10 ms: longer than the copy waits before it goes on with the stream.
        until(lambda: queries_for_xa(pair.leader) > before + 250, what="the copy waits for the XA transaction")
        pair.on_leader("XA COMMIT 'x'")
        _, log = producer.communicate(timeout=LIMIT_SECONDS)
    assert producer.returncode == 0, log
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader) == {"t": [(1,), (2,)]}


def queries_for_xa(leader: MySql) -> int:
    """How often the leader was queried for its prepared XA transactions."""
    with on(leader) as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Com_xa_recover'")
        return int(cursor.fetchone()[1])


# Tables that MySQL does not have, and why they are not copied.
_OWN = {
    "CREATE TABLE a (u UUID PRIMARY KEY) PARTITION BY RANGE COLUMNS (u) (PARTITION p VALUES LESS THAN (MAXVALUE))": (
        "its partitions are in MariaDB's order of UUID or INET"
    ),
    "CREATE SEQUENCE c": "it is a SEQUENCE of MariaDB",
    "CREATE TABLE d (id INT PRIMARY KEY) WITH SYSTEM VERSIONING": "it is a SYSTEM VERSIONED of MariaDB",
    "CREATE TABLE e (id INT PRIMARY KEY) ENGINE=Aria": "its engine is Aria",
}


def test_tables_that_mysql_does_not_have_are_left_out_by_name(pair: Pair) -> None:
    pair.on_leader(*_OWN, "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)", database="maria")
    started(pair, start="copy")
    log = run_well("cdc-producer", pair.source, "--until-current")
    for table, why in zip("acde", _OWN.values(), strict=True):
        assert any(f"table=maria.{table} " in line and why in line for line in log.splitlines()), log
    pair.replicate()
    assert set(rows(pair.follower)) == {"t"}
    assert rows(pair.follower)["t"] == [(1, 1)]
    line = refused("cdc-producer", pair.source, "--copy", "maria.d")
    assert "maria.d: it is a SYSTEM VERSIONED of MariaDB" in line


def test_a_leader_that_shows_a_group_of_transactions_one_by_one_is_refused(mariadb: MySql, tmp_path: Path) -> None:
    """Its Binlog_snapshot_position is ahead of what a SELECT sees, so that a copy would lack rows."""
    option = "--binlog-optimize-thread-scheduling=OFF"
    server = maria_db(tmp_path, server_id=8, find=mariadb._find, extra_args=(option,)).start()
    settings = {"host": "127.0.0.1", "port": server.port, "user": USER, "password": PASSWORD}
    try:
        with pytest.raises(UserError, match="binlog_optimize_thread_scheduling is OFF; start the server with"):
            inspect_leader(settings, name="leader")
    finally:
        server.kill()
