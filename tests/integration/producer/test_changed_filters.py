"""Filters that were changed between two runs of the producer: what they let in is never a silent gap in the topic."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cdc.kafka import commit_log
from cdc.model.commit_entry import Entry
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import records, refused, run_well, write_profile
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration

NAME = "opened"


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def without_filters(kafka: Kafka) -> None:
    """Put an entry into the commit log as it was before entries said the filters."""
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    body = json.loads(newest(kafka).to_json())
    assert body.pop("filters") == {"include_dbs": [NAME]}
    producer = Producer(properties)
    producer.produce(f"{NAME}.commits", json.dumps(body), NAME.encode())
    assert producer.flush(LIMIT_SECONDS) == 0


def newest(kafka: Kafka) -> Entry:
    """The newest entry of the commit log."""
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    return next(commit_log.entries(properties, topic=f"{NAME}.commits", resource=NAME))


def test_tables_that_are_let_in_later(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    def profile(user: str = "", **filters: list[str]) -> Path:
        keys = {"filters": filters, "producer": {"start": "now"}}
        database = {"user": user, "password": "x"} if user else {}
        return write_profile(tmp_path, leader, kafka, name=NAME, database=database, **keys)

    closed = {"include_dbs": [NAME], "exclude_tables": [f"{NAME}.out*"]}
    run_well("cdc-producer", profile(**closed), "--until-current")
    begun = newest(kafka)
    execute(leader, "SET sql_log_bin = 0", "CREATE USER IF NOT EXISTS opens IDENTIFIED BY 'x'")
    execute(leader, "SET sql_log_bin = 0", "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO opens")
    execute(leader, f"CREATE DATABASE {NAME}", *(f"CREATE TABLE {NAME}.{table} (i INT)" for table in ("a", "b")))
    execute(leader, *(f"CREATE TABLE {NAME}.out{number:02} (i INT)" for number in range(11)))
    execute(leader, f"CREATE TABLE {NAME}.out11 (i INT) ENGINE=MyISAM")
    execute(leader, f"INSERT INTO {NAME}.out03 VALUES (1)", f"INSERT INTO {NAME}.a VALUES (1)")
    run_well("cdc-producer", profile(**closed), "--until-current")

    opened = {"include_dbs": [NAME]}
    # What can't be copied is refused by name.
    line = refused("cdc-producer", profile(**opened), "--until-current")
    assert f"1 of 12: {NAME}.out11: its engine is MyISAM" in line
    assert f"exclude_tables was ['{NAME}.out*'], is []" in line
    assert f"{NAME}.out00, {NAME}.out01" in line
    assert f"{NAME}.out09 and 2 more, 12 in all" in line
    assert f"{NAME}.out10" not in line
    assert f"{NAME}.a" not in line
    assert "--accept-filters" in line
    # Who sees no tables can't say that there is none.
    line = refused("cdc-producer", profile("opens", **opened), "--until-current")
    assert "GRANT SELECT ON *.*" in line
    # The way back.
    run_well("cdc-producer", profile(**closed), "--until-current")
    # Nothing is there that was left out, or less passes.
    nothing = profile(**closed | {"exclude_tables": [f"{NAME}.out*", f"{NAME}.none"]})
    assert "newly_included=none" in run_well("cdc-producer", nothing, "--until-current")
    assert 'newly_included="none that exists"' in run_well("cdc-producer", profile(**closed), "--until-current")
    # A database that is let in is told of as well where it has no tables.
    begun_sequence = newest(kafka).next_sequence
    execute(leader, f"CREATE DATABASE {NAME}_empty")
    with_empty = profile(include_dbs=[f"{NAME}*"], exclude_tables=[f"{NAME}.out*"])
    assert f"newly_included={NAME}_empty " in run_well("cdc-producer", with_empty, "--until-current")
    assert newest(kafka).filters == {"include_dbs": [f"{NAME}*"], "exclude_tables": [f"{NAME}.out*"]}
    assert newest(kafka).next_sequence == begun_sequence + 1
    # The way on: the first start asks, later ones need not.
    before = newest(kafka)
    said = run_well("cdc-producer", profile(**opened), "--until-current", "--accept-filters")
    assert "the filters were changed" in said
    assert f"{NAME}.out09 and 2 more" in said
    # A copy that becomes a follower (consumer.start) must have what came before.
    assert newest(kafka).origin == before.gtid_set != begun.origin
    execute(leader, f"INSERT INTO {NAME}.out03 VALUES (2)")
    assert "filters" not in run_well("cdc-producer", profile(**opened), "--until-current")
    assert newest(kafka).origin == before.gtid_set
    rows = [(record.uri.table, row.after) for record in records(profile(**opened)) for row in record.rows]
    assert rows == [("a", [{"SignedInteger": 1}]), ("out03", [{"SignedInteger": 2}])]
    # What an entry of before does not say can't be compared; from then on it can.
    without_filters(kafka)
    run_well("cdc-producer", profile(include_dbs=[NAME], exclude_tables=[f"{NAME}.b"]), "--until-current")
    said = run_well("cdc-producer", profile(**opened), "--until-current")
    assert f"newly_included={NAME}.b " in said
    assert f"copied a table table={NAME}.b " in said
