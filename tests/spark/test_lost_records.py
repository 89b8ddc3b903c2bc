"""Brokers lose records that a lake and an audit with a state have read: these are in the topic again, at other offsets,
or an error says that others are in their place.
"""

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.errors import CdcError, PromiseError, UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.pipeline import audit_topics
from cdc.spark.report.outcome import Audit
from cdc.spark.state.coverage import identity
from cdc.spark.state.store import StateStore
from cdc.spark.topics import Replication
from tests.harness.pair import Pair
from tests.harness.programs import change_profile, run_well
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory
from tests.integration.pair.test_lost_records import MODES, TABLES, insert
from tests.spark.test_lake import Opened

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.long]

TOPICS = ("lost-0", "lost_a-0", "lost_b-0", "lost.commits-0", "mysql_binlog_events-0")


@pytest.mark.parametrize(("mode", "before"), [*product(MODES, ("few", "many"))])
def test_what_is_written_again_is_read_once(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_broker: KafkaFactory, spark: SparkSession, mode: str, before: str
) -> None:
    """``before``: into how many Kafka transactions the records went that are lost; then there are more or fewer, so
    that the same offsets have earlier or later records.

    `make test` has tests/unit/kafka/test_places.py.
    """
    broker = kafka_broker()
    pair, readers = made(tmp_path, mysql_server, broker, mode), Readers(spark, tmp_path)
    readers.read(pair)
    kept_topics(broker, tmp_path)
    write(pair, range(2, 8), few=before == "few")
    pair.replicate()
    readers.read(pair)
    put_back(broker, tmp_path)
    errors = readers.errors(pair)
    assert codes(errors) <= {"CDC-READ-RECORDS-LOST", "CDC-LAKE-AHEAD"}, errors
    write(pair, range(8, 10), few=before != "few")
    write(pair, range(10, 13), few=True)
    pair.replicate()
    for _ in range(2):
        readers.read(pair)


@pytest.mark.parametrize("mode", MODES)
def test_a_chunk_that_was_read_again_is_refused(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_broker: KafkaFactory, spark: SparkSession, mode: str
) -> None:
    """`make test` has tests/unit/kafka/test_places.py."""
    broker = kafka_broker()
    pair, readers = made(tmp_path, mysql_server, broker, mode), Readers(spark, tmp_path)
    readers.read(pair)
    kept_topics(broker, tmp_path)
    run_well("cdc-producer", pair.source, "--until-current", "--copy", "lost.a")
    pair.replicate()
    readers.read(pair)
    put_back(broker, tmp_path)
    run_well("cdc-producer", pair.source, "--until-current", "--copy", "lost.a")
    write(pair, range(2, 5), few=True)
    assert codes(readers.errors(pair)) == {"CDC-READ-RECORDS-REPLACED"}
    Readers(spark, tmp_path / "anew").read_lake(pair)


def made(folder: Path, servers: MySqlFactory, broker: Kafka, mode: str) -> Pair:
    settings: dict[str, Any] = {"kafka": MODES[mode]}
    pair = Pair.make(
        folder, servers(server_id=1), servers(server_id=2), broker, name="lost", source=settings, target=settings
    )
    pair.on_leader("CREATE DATABASE lost", *(f"CREATE TABLE {table} (i INT PRIMARY KEY)" for table in TABLES))
    insert(pair, 1)
    pair.replicate()
    return pair


def write(pair: Pair, numbers: range, *, few: bool) -> None:
    """Inserts rows, which go into few Kafka transactions, or each into its own."""
    insert(pair, *numbers)
    change_profile(pair.source, producer={"commit_records": 10_000 if few else 1})
    run_well("cdc-producer", pair.source, "--until-current")


def kept_topics(broker: Kafka, folder: Path) -> None:
    for name in TOPICS:
        if (path := broker.folder / "data" / name).exists():
            ignored = shutil.ignore_patterns("*.index", "*.timeindex")
            shutil.copytree(path, folder / "earlier" / name, ignore=ignored)


def put_back(broker: Kafka, folder: Path) -> None:
    broker.stop()
    for path in (folder / "earlier").iterdir():
        shutil.rmtree(broker.folder / "data" / path.name)
        shutil.copytree(path, broker.folder / "data" / path.name)
    broker.start()


def codes(errors: list[CdcError]) -> set[str]:
    return {error.code for error in errors}


class Readers:
    """A lake, and an audit with a state, that go on."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def read(self, pair: Pair) -> None:
        """Both read on, and are right."""
        self.read_lake(pair)
        audit = self.audit(pair)
        assert audit.verdict == "no drift", audit.reasons

    def errors(self, pair: Pair) -> list[CdcError]:
        """The errors with which both end."""
        found = []
        for reader in (self.read_lake, self.audit):
            with pytest.raises((UserError, PromiseError)) as told:
                reader(pair)
            found.append(told.value)
        return found

    def read_lake(self, pair: Pair) -> None:
        lake = Opened(self.spark, pair.source, self.folder / "lake", "parquet")
        try:
            lake.advance()
            for table in TABLES:
                with pair.leader.root() as connection, connection.cursor() as cursor:
                    cursor.execute(f"SELECT i FROM {table} ORDER BY i")
                    assert sorted(lake.lines(table.replace(".", "/"))) == sorted(cursor.fetchall())
        finally:
            lake.folder.close()

    def audit(self, pair: Pair) -> Audit:
        run_well("cdc-producer", pair.capture, "--until-current")
        profiles, consumer = {LEADER: load(pair.source), FOLLOWER: load(pair.capture)}, load(pair.target)
        state = StateStore.open(self.spark, self.folder / "state", identity(profiles, consumer))
        try:
            return audit_topics(self.spark, Replication(profiles, consumer), self.folder / "report", state)
        finally:
            state.close()
