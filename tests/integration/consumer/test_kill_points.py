"""cdc-consumer killed at each named point of a statement on its way through the ledger, for each class of statement."""

import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.altered.killed_consumer import POINTS
from tests.checks.compare import content
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import begin_now, records, run, run_well, schema_rights, write_profile

pytestmark = [pytest.mark.integration, pytest.mark.crash]

# Each round meets each statement at another point; with as many as there are points it is every pair.
ROUNDS = int(os.environ.get("CDC_DDL_ROUNDS", "1"))

STATEMENTS = """\
CREATE DATABASE {0}
CREATE TABLE {0}.t (id INT PRIMARY KEY, n INT)
INSERT INTO {0}.t VALUES (1, 1), (2, 2)
ALTER TABLE {0}.t ADD COLUMN a INT DEFAULT 3
UPDATE {0}.t SET n = 5 WHERE id = 1
RENAME TABLE {0}.t TO {0}.u
INSERT INTO {0}.u VALUES (3, 3, 3)
CREATE TABLE {0}.copied SELECT * FROM {0}.u
CREATE TABLE {0}.emptied LIKE {0}.u
INSERT INTO {0}.emptied VALUES (1, 1, 1)
TRUNCATE TABLE {0}.emptied
INSERT INTO {0}.emptied VALUES (2, 2, 2)
RENAME TABLE {0}.u TO {0}.x, {0}.emptied TO {0}.u, {0}.x TO {0}.emptied
CREATE INDEX i ON {0}.copied (n)
CREATE VIEW {0}.v AS SELECT id FROM {0}.copied
CREATE PROCEDURE {0}.p() SELECT 1
CREATE FUNCTION {0}.f() RETURNS INT DETERMINISTIC RETURN 1
CREATE TABLE {0}.parts (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10))
INSERT INTO {0}.parts VALUES (5)
ALTER TABLE {0}.parts ADD PARTITION (PARTITION b VALUES LESS THAN (20))
INSERT INTO {0}.parts VALUES (15)
ALTER TABLE {0}.parts DROP PARTITION a
DROP INDEX i ON {0}.copied
DROP FUNCTION {0}.f
CREATE TABLE {0}.gone_a (i INT)
CREATE TABLE {0}.gone_b (i INT)
DROP TABLE {0}.gone_a, {0}.gone_b
ALTER DATABASE {0} CHARACTER SET latin1
INSERT INTO {0}.u VALUES (9, 9, 9)"""


@pytest.mark.parametrize("privileges", [in_long_runs("server"), "schema"])
def test_kills_at_named_points(privileges: str, tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """Also with a user who may not assign GTIDs, so that the follower's binlog shows what was executed, and with one
    kind of user after the other, so that each finds what the other has begun: that has kills of both.
    """
    name = f"ddl_points_{privileges}"
    databases = [f"{name}_{number}" for number in range(ROUNDS)]
    filters = {"include_dbs": databases}
    producer = write_profile(
        tmp_path, leader, kafka, name=name, resource=name, filters=filters, producer={"start": "now"}
    )
    consumers = [
        write_profile(tmp_path, follower, kafka, name=f"{name}_{kind}", resource=name, topic=name, **target)
        for kind, target in (("server", {}), ("schema", schema_rights(follower, r"`ddl\_points\_%`")))
    ]
    begin_now(producer, leader)
    with leader.connect() as connection, connection.cursor() as cursor:
        for database in databases:
            for statement in STATEMENTS.format(database).splitlines():
                cursor.execute(statement)
    run_well("cdc-producer", producer, "--until-current")
    statements = [record for record in records(producer) if record.operation == "Query"]
    killed: Counter[str] = Counter()
    for number, record in enumerate(statements):
        turn = number // (len(statements) // ROUNDS)
        point = POINTS[(number + turn) % len(POINTS)]
        # Ends of statements that follow one another commit together: a kill after that commit leaves none for the next.
        if record.sequence <= applied(follower, name):
            continue
        # Two kills with one user, then two with the other: each finds what itself or the other has left.
        consumer = consumers[number // 2 % 2 if privileges == "schema" else 0]
        done = run("killed_consumer", consumer, point, str(record.sequence))
        assert done.returncode == -signal.SIGKILL, f"{point} of {record.query}: {done.stderr}"
        killed[point] += 1
    run_well("cdc-consumer", consumers[0], "--until-current")
    assert killed.total() > len(statements) / 2
    print(f"{killed.total()} kills:", ", ".join(f"{count} {point}" for point, count in sorted(killed.items())))
    for database in databases:
        assert without_definers(content(follower, database)) == without_definers(content(leader, database))


def without_definers(found: object) -> str:
    """The content of a database in which views and routines differ in nothing but whose rights they have."""
    text = re.sub(r"DEFINER=`[^`]*`@`[^`]*`| *SQL SECURITY (?:DEFINER|INVOKER)(?:\\n)?", "", repr(found))
    return text.replace("cdc_writer@%", "fluvio@%")


def applied(follower: MySql, resource: str) -> int:
    """The sequence that the follower says is applied, -1 before the first."""
    with follower.connect() as connection, connection.cursor() as cursor:
        if not cursor.execute("SHOW DATABASES LIKE 'cdc'"):
            return -1
        cursor.execute(f"SELECT MAX(sequence) FROM cdc.checkpoint WHERE resource = '{resource}'")
        ((sequence,),) = cursor.fetchall()
        return -1 if sequence is None else int(sequence)
