"""cdc-consumer killed at each named point of a statement on its way through the ledger, for each class of statement."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.altered.killed_consumer import POINTS
from tests.checks.compare import content
from tests.harness.programs import records, run, run_well, write_profile

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


def test_kills_at_named_points(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = "ddl_points"
    databases = [f"{name}_{number}" for number in range(ROUNDS)]
    filters = {"include_dbs": databases}
    producer = write_profile(
        tmp_path, leader, kafka, name=name, resource=name, filters=filters, producer={"start": "now"}
    )
    consumer = write_profile(tmp_path, follower, kafka, name=f"{name}_consumer", resource=name, topic=name)
    run_well("cdc-producer", producer, "--until-current")
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
        done = run("killed_consumer", consumer, point, str(record.sequence))
        assert done.returncode == -signal.SIGKILL, f"{point} of {record.query}: {done.stderr}"
        killed[point] += 1
    run_well("cdc-consumer", consumer, "--until-current")
    assert killed.total() > len(statements) / 2
    print(f"{killed.total()} kills:", ", ".join(f"{count} {point}" for point, count in sorted(killed.items())))
    for database in databases:
        assert content(follower, database) == content(leader, database)


def applied(follower: MySql, resource: str) -> int:
    """The sequence that the follower says is applied, -1 before the first."""
    with follower.connect() as connection, connection.cursor() as cursor:
        if not cursor.execute("SHOW DATABASES LIKE 'cdc'"):
            return -1
        cursor.execute(f"SELECT MAX(sequence) FROM cdc.checkpoint WHERE resource = '{resource}'")
        ((sequence,),) = cursor.fetchall()
        return -1 if sequence is None else int(sequence)
