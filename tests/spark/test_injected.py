"""What can go wrong between two real servers, done to them on purpose: the audit must see it and name the cause."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import MySql
from cdc.spark import causes
from cdc.spark.lag import STAGES
from cdc.spark.page import page
from cdc.spark.report import to_json
from tests.fix_sandbox import MySqlFactory
from tests.html_page import Page
from tests.json_schema import SCHEMA, faults
from tests.programs import refused, run_well, write_profile
from tests.spark.pair import Pair

EVIDENCE = {
    ("written", "different", 1): ("follower transaction ", " at binlog.000001:", " UTC: changed name"),
    ("written", "missing", 2): (" UTC: removed it",),
    ("emptied", "missing", 1): ("only the follower has: TRUNCATE TABLE emptied (transaction ",),
    ("clashing", "missing", 1): ("Duplicate entry '5'", "removed id=1"),
    ("keyless", "extra", "Jill"): ("did not find it", "the row is not there", "though the follower's log has it"),
    ("lost", "different", 1): ("the leader's change at binlog.000001:", "is not in the follower's log, which is past"),
    ("short", "missing", 5): ("was skipped by an operator: the follower refuses a row", "Data too long"),
    ("wide", "different", 2): ("only the follower has: ALTER TABLE wide ADD COLUMN more",),
}

pytestmark = [pytest.mark.spark, pytest.mark.integration]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MySql, MySql]]:
    """A leader and a follower whose binlogs hold nothing but what this module did, from their beginning."""
    pair = tuple(MySql(tmp_path_factory.mktemp(name), server_id=at) for at, name in ((1, "leader"), (2, "follower")))
    try:
        yield pair[0].start(), pair[1].start()
    finally:
        for server in pair:
            server.kill()


@pytest.fixture
def pair(tmp_path: Path, servers: tuple[MySql, MySql], kafka: Kafka, request: pytest.FixtureRequest) -> Pair:
    """Both servers with an empty database that is called as the test is."""
    name = request.node.originalname[5:45]
    filters = {"include_dbs": [f"{name}*"]}
    made = Pair.make(
        tmp_path, *servers, kafka, name=name, source={"filters": filters},
        capture={"filters": {"include_dbs": [f"{name}*", "cdc"]}},
    )  # fmt: skip
    made.on_leader(f"CREATE DATABASE {name}")
    return made


def test_every_cause(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    name = "every_cause"
    tables = ("written", "lost", "short", "alike", "wide", "emptied", "dropped")
    pair.on_leader(
        *(f"CREATE TABLE {table} (id INT PRIMARY KEY, name VARCHAR(20))" for table in tables),
        "CREATE TABLE clashing (id INT PRIMARY KEY, u INT UNIQUE)",
        "CREATE TABLE keyless (name VARCHAR(20))",
        "CREATE TABLE barren (id INT)",
        *(f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two'), (3, 'three')" for table in tables),
        "INSERT INTO clashing VALUES (1, 1), (2, 2)",
        "INSERT INTO keyless VALUES ('Jack'), ('Jill'), ('Spot')",
        database=name,
    )
    pair.replicate()
    pair.on_follower(
        "UPDATE written SET name = 'uno' WHERE id = 1",
        "DELETE FROM written WHERE id = 2",
        "INSERT INTO written VALUES (4, 'four')",
        "UPDATE keyless SET name = 'Jackie' WHERE name = 'Jack'",
        "UPDATE clashing SET u = 5 WHERE id = 1",
        "ALTER TABLE short MODIFY name VARCHAR(5)",
        "ALTER TABLE wide ADD COLUMN more INT DEFAULT 7",
        "TRUNCATE TABLE emptied",
        "DROP TABLE dropped, barren",
        "CREATE TABLE own (id INT)",
        "CREATE TABLE passing (id INT)",
        "DROP TABLE passing",
        "SET SESSION sql_log_bin = 0",
        "UPDATE keyless SET name = 'Jane' WHERE name = 'Jill'",
        database=name,
    )
    pair.pass_over(f"UPDATE {name}.lost SET name = 'eins' WHERE id = 1")
    pair.pass_over(f"CREATE TABLE {name}.never (id INT)")
    pair.on_leader(
        "INSERT INTO clashing VALUES (3, 5)",
        "DELETE FROM keyless WHERE name = 'Jill'",
        "UPDATE wide SET name = 'zwei' WHERE id = 2",
        "INSERT INTO short VALUES (4, 'four'), (5, 'longer')",
        database=name,
    )
    line = refused_consumer(pair)
    pair.replicate("--skip", line.rpartition(" ")[2])
    audit = pair.audit(spark, tmp_path)
    assert list(faults(json.loads(to_json(audit)), SCHEMA)) == []
    assert Page(page(audit)).faults == []
    # Nothing of the commit logs is compacted yet, so all stages are known; each clock is this machine's.
    assert audit.lag is not None
    assert set(audit.lag.stages) == set(STAGES)
    assert all(stage.total.p50_us > -1_000 for stage in audit.lag.stages.values())
    assert (audit.verdict, audit.reasons) == ("drift", [])
    found = {(row.table, row.kind, told(row.identity)): row for row in audit.drifted}
    assert {place: row.cause for place, row in found.items()} == {
        ("clashing", "missing", 1): causes.CONFLICT,
        **{("dropped", "missing", number): causes.SCHEMA for number in (1, 2, 3)},
        **{("emptied", "missing", number): causes.FOREIGN for number in (1, 2, 3)},
        ("keyless", "missing", "Jack"): causes.FOREIGN,
        ("keyless", "extra", "Jackie"): causes.FOREIGN,
        ("keyless", "extra", "Jill"): causes.MISMATCH,
        ("lost", "different", 1): causes.MISSING,
        ("short", "missing", 4): causes.SKIPPED,
        ("short", "missing", 5): causes.SKIPPED,
        ("wide", "different", 2): causes.SCHEMA,
        ("written", "different", 1): causes.FOREIGN,
        ("written", "missing", 2): causes.FOREIGN,
        ("written", "extra", 4): causes.FOREIGN,
    }
    for (table, kind, row), words in EVIDENCE.items():
        assert all(word in found[table, kind, row].evidence for word in words), found[table, kind, row].evidence
    assert {each.name: each.evidence.rpartition(" (")[0] for each in audit.schema} == {
        "barren": "only the follower has: DROP TABLE `dropped`,`barren` /* generated by server */",
        "dropped": "only the follower has: DROP TABLE `dropped`,`barren` /* generated by server */",
        "never": f"only the leader has: CREATE TABLE {name}.never (id INT)",
        "own": "only the follower has: CREATE TABLE own (id INT)",
        "short": "only the follower has: ALTER TABLE short MODIFY name VARCHAR(5)",
        "wide": "only the follower has: ALTER TABLE wide ADD COLUMN more INT DEFAULT 7",
    }
    assert "CREATE TABLE passing (id INT)" in {write.statement for write in audit.foreign}


# Each is run on one side only, on tables whose names begin with @.
STATEMENTS = {
    "made": ("CREATE TABLE @made (id INT)",),
    "gone": ("DROP TABLE @gone",),
    "moved": ("RENAME TABLE @moved TO @elsewhere",),
    "swapped": ("RENAME TABLE @swapped TO @between, @swop TO @swapped, @between TO @swop",),
    "added": ("ALTER TABLE @added ADD COLUMN more INT",),
    "fewer": ("ALTER TABLE @fewer DROP COLUMN name",),
    "recalled": ("ALTER TABLE @recalled RENAME COLUMN name TO title",),
    "retyped": ("ALTER TABLE @retyped MODIFY name VARCHAR(99)",),
    "reordered": ("ALTER TABLE @reordered MODIFY name VARCHAR(20) FIRST",),
    "rekeyed": ("ALTER TABLE @rekeyed DROP PRIMARY KEY",),
    "anew": ("DROP TABLE @anew", "CREATE TABLE @anew (id INT PRIMARY KEY, name VARCHAR(20))"),
    "parted": ("ALTER TABLE @parted DROP PARTITION p0",),
    "exchanged": ("ALTER TABLE @exchanged EXCHANGE PARTITION p0 WITH TABLE @partner",),
    "indexed": ("CREATE INDEX i ON @indexed (name)",),
}


def test_every_statement_on_one_side_only(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    name = "every_statement_on_one_side_only"
    pair.on_leader(*tables_for("f"), *tables_for("l"), database=name)
    for side in "fl":
        pair.on_leader(f"CREATE DATABASE {name}_{side}", f"CREATE TABLE {name}_{side}.inside (id INT)")
        pair.on_leader(f"INSERT INTO {name}_{side}.inside VALUES (1)")
    pair.replicate()
    statements = [*(sql for sqls in STATEMENTS.values() for sql in sqls), f"DROP DATABASE {name}_@"]
    pair.on_follower(*(on_side("f", sql) for sql in statements), database=name)
    pair.pass_over(*(on_side("l", sql) for sql in statements), database=name)
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.reasons) == ("drift", [])
    shapes = {*STATEMENTS, "elsewhere", "swop", "partner"}
    assert {(each.database, each.name) for each in audit.schema} == {
        *((name, f"{side}_{table}") for side in "fl" for table in shapes),
        *((f"{name}_{side}", inside) for side in "fl" for inside in (None, "inside")),
    }
    assert {each.cause for each in audit.schema} == {row.cause for row in audit.drifted} == {causes.SCHEMA}
    lost = {"gone", "moved", "elsewhere", "swapped", "swop", "anew"}
    assert {row.table for row in audit.drifted} == {"inside", *(f"{side}_{table}" for side in "fl" for table in lost)}


def on_side(side: str, sql: str) -> str:
    """The statement on this side's objects."""
    return sql.replace("_@", f"_{side}").replace("@", f"{side}_")


def tables_for(side: str) -> Iterator[str]:
    """A table with rows for each of the statements, so that each can be run on it alone."""
    halves = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (99))"
    for table in {*STATEMENTS, "swop", "partner"} - {"made"}:
        parts = halves if table in ("parted", "exchanged") else ""
        yield f"CREATE TABLE {side}_{table} (id INT PRIMARY KEY, name VARCHAR(20)) {parts}"
        yield f"INSERT INTO {side}_{table} VALUES ({3 if table == 'swop' else 1}, 'one')"


def told(identity: dict[str, str]) -> object:
    """The one value of a row's identity."""
    ((_, value),) = identity.items()
    ((_, content),) = json.loads(value).items()
    return content


def refused_consumer(pair: Pair) -> str:
    """What the consumer says of the record that it refuses, which ends in the record's sequence."""
    run_well("cdc-producer", pair.source, "--until-current")
    return refused("cdc-consumer", pair.target, "--until-current", status=3)


def test_foreign_keys_that_only_the_follower_logs(
    mysql_server: MySqlFactory, servers: tuple[MySql, MySql], kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    leader = mysql_server("--innodb-native-foreign-keys=ON")  # logs as before 9.6
    pair = Pair.make(
        tmp_path, leader, servers[1], kafka, name="older", capture={"filters": {"include_dbs": ["older", "cdc"]}}
    )
    child = "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE {} ON UPDATE CASCADE)"
    pair.on_leader("CREATE DATABASE older")
    pair.on_leader(
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        f"CREATE TABLE child {child.format('CASCADE')}",
        f"CREATE TABLE orphan {child.format('SET NULL')}",
        "SET foreign_key_checks = 0",
        "INSERT INTO child VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO orphan VALUES (1, 1)",
        "INSERT INTO parent VALUES (1), (2), (3)",
        database="older",
    )
    pair.replicate()
    pair.on_leader("DELETE FROM parent WHERE id = 1", "UPDATE parent SET id = 20 WHERE id = 2", database="older")
    pair.replicate()
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.reasons, audit.drifted) == ("no drift", [], [])
    pair.on_follower("DELETE FROM parent WHERE id = 20", database="older")
    audit = pair.audit(spark, tmp_path)
    assert {(row.table, row.cause) for row in audit.drifted} == {("parent", causes.FOREIGN), ("child", causes.FOREIGN)}


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
    audit = made.audit(spark, tmp_path, consumer=True)
    assert (audit.verdict, audit.reasons) == ("no drift", [])
    assert [table.table for table in audit.tables] == ["kept"]
    made.on_follower("INSERT INTO kept VALUES (2)", "CREATE TABLE aside (id INT)", database="theirs")
    audit = made.audit(spark, tmp_path, consumer=True)
    assert [(row.database, row.table, row.cause) for row in audit.drifted] == [(name, "kept", causes.FOREIGN)]
    assert audit.schema == []


def test_where_the_follower_is(pair: Pair, spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    name = "where_the_follower_is"
    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY, name CHAR(200))", "INSERT INTO t VALUES (1, 'a')", database=name
    )
    pair.replicate()
    # Behind: the leader has gone on, and changed what the follower has.
    pair.on_leader("UPDATE t SET name = 'b'", "INSERT INTO t VALUES (2, 'b')", database=name)
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.sequence, audit.leader.last) == ("no drift", 2, 4)
    # Killed in the midst of a batch, and the follower was restarted since.
    insert = (
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 3 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, i FROM n"
    )
    pair.on_leader(insert, "UPDATE t SET name = CONCAT(name, 'x')", database=name)
    run_well("cdc-producer", pair.source, "--until-current")
    killed(pair)
    pair.follower.stop()
    pair.follower.start()
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.reasons) == ("no drift", [])
    assert audit.sequence < audit.leader.last
    # Exactly at the end.
    pair.replicate()
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.sequence) == ("no drift", audit.leader.last)
    # A capture that begins when the first binlogs are purged has not seen what was applied by then.
    pair.on_follower("FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
    late = replace(pair, capture=write_profile(
        tmp_path, pair.follower, kafka, name=f"{name}_late", resource="late", producer={"start": "oldest"},
        filters={"include_dbs": [name, "cdc"]},
    ))  # fmt: skip
    pair.on_leader("UPDATE t SET name = 'c' WHERE id = 1", database=name)
    pair.replicate()
    audit = late.audit(spark, tmp_path)
    assert audit.verdict == "could not judge"
    assert "begins when the follower was at sequence" in audit.reasons[0]
    # A checkpoint that moved while the binlog was off has not shown how.
    pair.on_leader("DELETE FROM t WHERE id = 2", database=name)
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_follower(
        "SET sql_log_bin = 0", f"UPDATE cdc.checkpoint SET sequence = sequence + 1 WHERE resource = '{name}'"
    )
    pair.on_leader("DELETE FROM t WHERE id = 3", database=name)
    pair.replicate()
    audit = pair.audit(spark, tmp_path)
    assert audit.verdict == "could not judge"
    assert "does not show how the follower came from sequence" in audit.reasons[0]


def killed(pair: Pair) -> None:
    """A consumer that is killed when it has sent rows, and no COMMIT yet."""
    command = [sys.executable, "-c", _KILLED, str(pair.target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


_KILLED = """
import os, signal, sys
from cdc.consumer import __main__ as program, pipeline
from cdc.consumer.session import Session

class Killed(Session):
    def send(self, packet):
        if any(b"INSERT INTO `where" in part for part in packet):
            super().send([part for part in packet if part != b"COMMIT"])
            os.kill(os.getpid(), signal.SIGKILL)
        super().send(packet)

pipeline.Session = Killed
sys.argv = ["cdc-consumer", sys.argv[1], "--until-current"]
sys.exit(program.main())
"""
