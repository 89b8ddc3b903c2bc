"""Filters that were changed between two runs of the producer, as the commit log says them."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cdc.kafka import commit_log
from cdc.model.commit_entry import Entry
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import run_well, write_profile
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


def test_the_commit_log_says_the_filters(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """What becomes of the tables stands in tests/cases/filters/tables_let_in_later.sql."""

    def profile(**filters: list[str]) -> Path:
        return write_profile(tmp_path, leader, kafka, name=NAME, filters=filters, producer={"start": "now"})

    closed = {"include_dbs": [NAME], "exclude_tables": [f"{NAME}.out"]}
    run_well("cdc-producer", profile(**closed), "--until-current")
    begun = newest(kafka)
    execute(leader, f"CREATE DATABASE {NAME}", *(f"CREATE TABLE {NAME}.{table} (i INT)" for table in ("a", "b", "out")))
    run_well("cdc-producer", profile(**closed), "--until-current")
    # A database that is let in, and has no tables.
    begun_sequence = newest(kafka).next_sequence
    execute(leader, f"CREATE DATABASE {NAME}_empty")
    wider = {"include_dbs": [f"{NAME}*"], "exclude_tables": [f"{NAME}.out"]}
    run_well("cdc-producer", profile(**wider), "--until-current")
    assert newest(kafka).filters == wider
    assert newest(kafka).next_sequence == begun_sequence + 1
    before = newest(kafka)
    opened = {"include_dbs": [NAME]}
    run_well("cdc-producer", profile(**opened), "--until-current", "--accept-filters")
    # A copy that becomes a follower (consumer.start) must have what came before.
    assert newest(kafka).origin == before.gtid_set != begun.origin
    execute(leader, f"INSERT INTO {NAME}.out VALUES (2)")
    run_well("cdc-producer", profile(**opened), "--until-current")
    assert newest(kafka).origin == before.gtid_set
    # What an entry of before does not say can't be compared; from then on it can.
    without_filters(kafka)
    run_well("cdc-producer", profile(include_dbs=[NAME], exclude_tables=[f"{NAME}.b"]), "--until-current")
    said = run_well("cdc-producer", profile(**opened), "--until-current")
    assert f"newly_included={NAME}.b " in said
    assert f"copied a table table={NAME}.b " in said
