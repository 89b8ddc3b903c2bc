"""``--check`` of both programs: all that prevents their work is listed at once, and nothing is written anywhere."""

import re
from pathlib import Path
from typing import Any

import pytest

from cdc.config.profile import load
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.pair import Pair
from tests.harness.programs import own_name, run, running
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def listed(program: str, *arguments: str | Path) -> tuple[int, str]:
    """The exit status and the list, which has one line for each item, and nothing on standard error."""
    done = run(program, *arguments, "--check")
    assert done.stderr == ""
    assert all(line.startswith(("ok  ", "note  ", "problem  ")) for line in done.stdout.splitlines()[:-1])
    return done.returncode, done.stdout


def codes(text: str) -> list[str]:
    return re.findall(r"^problem  \[(.*?)\]", text, re.M)


def state(pair: Pair, kafka: Kafka) -> Any:
    """What a program would change: transactions of both servers, tables, the pair's topics and groups. Other tests use
    the broker at the same time.
    """
    admin, name = kafka.admin(), load(pair.source).kafka.topic
    found: list[Any] = [sorted(topic for topic in admin.list_topics().topics if topic.startswith(name))]
    found.append(sorted(g.group_id for g in admin.list_consumer_groups().result().valid if name in g.group_id))
    for server in (pair.leader, pair.follower):
        with server.root() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_executed")
            found += cursor.fetchall()
            cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES ORDER BY 1, 2")
            found += cursor.fetchall()
    return found


def test_all_that_prevents_replication_is_listed_and_mended_as_it_says(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    name = own_name(tmp_path)
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, filters={"include_dbs": [name]})
    consumer = (pair.target, "--leader", pair.source)
    pair.on_leader(f"CREATE DATABASE {name}")
    before = state(pair, kafka)
    status, said = listed("cdc-consumer", *consumer)
    assert (status, codes(said)) == (2, ["CDC-TOPIC-MISSING"] * 2)
    status, said = listed("cdc-producer", pair.source)
    assert (status, codes(said), "the stream begins at" in said) == (0, [], True)
    assert state(pair, kafka) == before
    pair.on_leader(
        "CREATE TABLE a (id INT PRIMARY KEY, n VARCHAR(9) CHARACTER SET latin1, g INT AS (id + 1), KEY k (n, g))",
        "CREATE TABLE b (id INT PRIMARY KEY, a INT, CONSTRAINT f FOREIGN KEY (a) REFERENCES a (id), CHECK (a > 0))",
        "CREATE TABLE c (id INT PRIMARY KEY)",
        database=name,
    )
    pair.replicate()
    with running("cdc-consumer", pair.target):  # which holds the follower's lock
        until(
            lambda: ", connection " in run("cdc-consumer", pair.target, "--status").stdout,
            seconds=60,
            what="the consumer",
        )
        status, said = listed("cdc-consumer", *consumer)
    assert (status, codes(said), "definitions of 3 tables" in said) == (0, [], True)
    pair.on_follower(
        "ALTER TABLE a MODIFY n VARCHAR(20), DROP KEY k, DROP g, ADD extra INT",
        "ALTER TABLE b DROP CONSTRAINT f, DROP PRIMARY KEY, COMMENT 'other'",
        "DROP TABLE c",
        "CREATE TABLE d (i INT) ENGINE = MyISAM",
        "CREATE TRIGGER before_a BEFORE INSERT ON a FOR EACH ROW SET NEW.n = 'q'",
        "SET GLOBAL log_bin_trust_function_creators = OFF",
        database=name,
    )
    try:
        before = state(pair, kafka)
        status, said = listed("cdc-consumer", *consumer)
        assert state(pair, kafka) == before
        assert (status, codes(said)) == (2, [
            "CDC-FOLLOWER-SETTINGS", "CDC-FOLLOWER-TRIGGERS", "CDC-FOLLOWER-ENGINE", *["CDC-CHECK-DEFINITION"] * 4,
        ])  # fmt: skip
        for statement in re.findall(r"hint: on the follower: (ALTER .*)", said):
            pair.on_follower(statement)
        left = [line for line in listed("cdc-consumer", *consumer)[1].splitlines() if "CDC-CHECK" in line]
        assert [f"{name}.c is missing" in line or f"{name}.d is not on" in line for line in left] == [True, True], left
    finally:
        pair.on_follower("SET GLOBAL log_bin_trust_function_creators = ON")


def test_what_does_not_answer_is_listed_too(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    wrong = {"kafka": {"bootstrap_servers": "127.0.0.1:1"}, "database": {"password": "a-wrong-password"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=own_name(tmp_path), source=wrong, target=wrong)
    for program, profile, expected in (
        ("cdc-producer", pair.source, ["CDC-LEADER-REFUSES", "CDC-KAFKA-GONE"]),
        ("cdc-consumer", pair.target, ["CDC-FOLLOWER-GRANTS", "CDC-KAFKA-NO-ANSWER"]),
    ):
        status, said = listed(program, profile)
        assert (status, codes(said)) == (2, expected)
