"""Where the follower is, what is for it and what its log shows: never a false alarm, never a false "no drift"."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.spark.compare import row_drift
from tests.harness.pair import Pair
from tests.harness.programs import run_well, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_what_the_consumer_leaves_out(pair: Pair, spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    name = "what_the_consumer_leaves_out"
    made = Pair.make(
        tmp_path, pair.leader, pair.follower, kafka, name=f"{name}_",
        source={"filters": {"include_dbs": [name]}},
        target={"filters": {"exclude_tables": [f"{name}.aside"]}, "renames": {name: "theirs"}},
        capture={"filters": {"include_dbs": ["theirs", "cdc"]}},
    )  # fmt: skip
    for table in ("kept", "aside"):
        made.on_leader(f"CREATE TABLE {table} (id INT)", f"INSERT INTO {table} VALUES (1)", database=name)
    made.replicate()
    audit = made.audit(spark, tmp_path)
    assert audit.verdict == "could not judge"
    # Only the row that was written on the follower is drift, not the table that the consumer leaves out.
    made.on_follower("INSERT INTO kept VALUES (2)", "CREATE TABLE aside (id INT)", database="theirs")
    audit = made.audit(spark, tmp_path, consumer=True)
    assert (audit.verdict, audit.reasons, audit.schema) == ("drift", [], [])
    assert [(each.table, each.leader_rows, each.follower_rows) for each in audit.tables] == [("kept", 1, 2)]
    assert [(row.database, row.table, row.cause) for row in audit.drifted] == [(name, "kept", row_drift.FOREIGN)]


def test_where_the_follower_is(mysql_server: MySqlFactory, spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    name = "where_the_follower_is"
    # The shared servers write no redo log: one that is restarted loses counters of its dictionary.
    pair = Pair.make(tmp_path, mysql_server(server_id=1), mysql_server(server_id=2), kafka, name=name)
    pair.on_leader(f"CREATE DATABASE {name}")
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY, name CHAR(9))", "INSERT INTO t VALUES (1, 'a')", database=name)
    pair.replicate()
    # Behind: the leader has gone on, and changed what the follower has.
    pair.on_leader("UPDATE t SET name = 'b'", "INSERT INTO t VALUES (2, 'b')", database=name)
    # And killed in the midst of a batch, and the follower was restarted since.
    run_well("cdc-producer", pair.source, "--until-current")
    killed(pair)
    pair.follower.stop()
    pair.follower.start()
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.sequence, audit.leader.last) == ("no drift", 2, 4)
    # Exactly at the end.
    pair.replicate()
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.sequence) == ("no drift", 4)


def test_logs_that_do_not_show_all(
    mysql_server: MySqlFactory, spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    name = "logs"
    pair = Pair.make(tmp_path, mysql_server(server_id=1), mysql_server(server_id=2), kafka, name=name)
    pair.on_leader(f"CREATE DATABASE {name}")
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)", database=name)
    pair.replicate()
    run_well("cdc-producer", pair.capture, "--until-current")
    # A capture that begins when the first binlogs are purged has not seen what was applied by then.
    pair.on_follower("FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
    late = replace(pair, capture=write_profile(
        tmp_path, pair.follower, kafka, name="late", resource="late", producer={"start": "oldest"}
    ))  # fmt: skip
    pair.on_leader("UPDATE t SET id = 4 WHERE id = 1", database=name)
    pair.replicate()
    audit = late.audit(spark, tmp_path)
    assert audit.verdict == "could not judge"
    assert "begins when the follower was at sequence 2 of the leader already" in audit.reasons[0]
    # A checkpoint that moved while the binlog was off does not show how.
    pair.on_leader("DELETE FROM t WHERE id = 2", "DELETE FROM t WHERE id = 3", database=name)
    run_well("cdc-producer", pair.source, "--until-current")
    move = f"UPDATE cdc.checkpoint SET sequence = sequence + 1, leader_file = NULL WHERE resource = '{name}'"
    pair.on_follower("SET sql_log_bin = 0", move)
    pair.replicate()
    audit = pair.audit(spark, tmp_path)
    assert audit.verdict == "could not judge"
    assert "does not show how the follower came from sequence 3 of the leader to 4" in audit.reasons[0]


def killed(pair: Pair) -> None:
    """A consumer that is killed when it has sent rows, and no COMMIT yet."""
    command = [sys.executable, "-c", _KILLED, str(pair.target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


_KILLED = """
import os, signal, sys
from cdc.consumer import __main__ as program, startup
from cdc.consumer.follower.session import Session

class Killed(Session):
    def send(self, packet, *more):
        if any(b"`where_the" in part for part in packet):
            super().send([part for part in packet if part != b"COMMIT"], *more)
            os.kill(os.getpid(), signal.SIGKILL)
        super().send(packet, *more)

assert startup.Session is Session
startup.Session = Killed
sys.argv = ["cdc-consumer", sys.argv[1], "--until-current"]
sys.exit(program.main())
"""


def test_a_checkpoint_that_went_back(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    """Until it is there again there is no verdict; then the rows count as they are, and what wrote is named."""
    name = "a_checkpoint_that_went_back"
    statements = ["CREATE TABLE t (id INT PRIMARY KEY)", *(f"INSERT INTO t VALUES ({n})" for n in range(4))]
    pair.on_leader(*statements, database=name)
    run_well("cdc-producer", pair.source, "--until-current")
    run_well("cdc-consumer", pair.target, "--until", "4")
    columns = "sequence, offsets, leader_file, leader_offset, leader_gtid, leader_ts_us"
    with pair.follower.root(database="cdc") as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM checkpoint WHERE resource = '{name}'")
        (before,) = cursor.fetchall()
    pair.replicate()
    pair.on_follower("DELETE FROM t WHERE id > 2", database=name)
    moved = ", ".join(f"{column} = {value!r}" for column, value in zip(columns.split(", "), before, strict=True))
    # As an earlier version went back, which had a table for that: neither is a write of something else.
    table = "CREATE TABLE IF NOT EXISTS cdc.rewinds (resource VARCHAR(255) PRIMARY KEY, upto BIGINT)"
    back = [
        f"UPDATE cdc.checkpoint SET {moved} WHERE resource = '{name}'",
        f"INSERT INTO cdc.rewinds VALUES ('{name}', 5)",
    ]
    pair.on_follower(table, "BEGIN", *back, "COMMIT")
    audit = pair.audit(spark, tmp_path)
    assert audit.verdict == "could not judge"
    assert "went back from sequence 5 to 4: until it is there again" in audit.reasons[0]
    pair.on_follower("SET sql_log_bin = 0", "DROP TABLE cdc.rewinds")  # others' captures have this database, too
    pair.replicate()
    audit = pair.audit(spark, tmp_path)
    assert (audit.reasons, audit.drifted, audit.sequence, audit.foreign_writes) == ([], [], 5, 1)
