"""A topic a table, on real servers: what goes where, resumed after kills, back in order on the follower and for all."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import MySql
from tests.compare import content
from tests.programs import records, run_well, write_profile

pytestmark = pytest.mark.integration


class Stage:
    """One test's database on the shared leader, its topics (all named after it) and both profiles."""

    def __init__(self, folder: Path, leader: MySql, follower: MySql, kafka: Kafka, name: str, **keys: Any) -> None:
        self.leader, self.follower, self.kafka, self.name = leader, follower, kafka, name
        self._folder = folder
        # Both have it before the capture begins: a fresh follower starts from a copy.
        execute(leader, f"CREATE DATABASE {name}")
        execute(follower, f"CREATE DATABASE {name}")
        self.producer = self.profile("producer", leader, **keys)
        run_well("cdc-producer", self.producer, "--until-current")
        self.consumer = self.profile("consumer", follower, **keys)

    def profile(self, program: str, server: MySql, **keys: Any) -> Path:
        kafka = {"layout": "per_table", "prefix": f"{self.name}.", "topic": self.name} | keys
        filters = {"include_dbs": [self.name]}
        return write_profile(
            self._folder, server, self.kafka, name=program, resource=self.name, kafka=kafka, filters=filters,
            producer={"start": "now"},
        )  # fmt: skip

    def execute(self, *statements: str) -> None:
        execute(self.leader, *statements, database=self.name)

    def messages(self, topic: str) -> list[tuple[int, str, dict[str, str], dict[str, Any]]]:
        """(partition, key, headers, value) of a topic's committed messages, as any Kafka reader gets them."""
        return read(self.kafka, f"{self.name}.{topic}")

    def topics(self) -> set[str]:
        found = self.kafka.admin().list_topics(timeout=10).topics
        return {name.removeprefix(f"{self.name}.") for name in found if name.startswith(f"{self.name}.")}


@pytest.fixture
def stage(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, request: pytest.FixtureRequest) -> Stage:
    name = request.node.originalname.removeprefix("test_").replace("_", "")[:40]
    return Stage(tmp_path, leader, follower, kafka, name, **getattr(request, "param", {}))


def execute(server: MySql, *statements: str, database: str | None = None) -> None:
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def read(kafka: Kafka, topic: str) -> list[tuple[int, str, dict[str, str], dict[str, Any]]]:
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True,
        "isolation.level": "read_committed",
    })  # fmt: skip
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found, ended = [], 0
    while ended < len(partitions):
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            ended += 1
            continue
        headers = {name: json.loads(text) for name, text in message.headers() or []}
        found.append((message.partition(), (message.key() or b"").decode(), headers, json.loads(message.value())))
    consumer.close()
    return found


def test_each_table_has_its_topic_and_the_follower_the_order(stage: Stage) -> None:
    stage.execute(
        "CREATE TABLE a (i INT PRIMARY KEY, t TEXT)",
        "CREATE TABLE b (i INT PRIMARY KEY)",
        "CREATE TABLE c (t TEXT)",
        "BEGIN",
        "INSERT INTO a VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO b VALUES (1)",
        "UPDATE a SET t = 'zwei' WHERE i = 2",
        "INSERT INTO c VALUES ('x'), ('x')",
        "COMMIT",
        "ALTER TABLE b ADD COLUMN n INT DEFAULT 5",
        "INSERT INTO b VALUES (2, 2)",
        "RENAME TABLE c TO d",
        "INSERT INTO d VALUES ('y')",
        "DROP TABLE IF EXISTS a, nothing",
    )
    run_well("cdc-producer", stage.producer, "--until-current")
    name = stage.name
    assert stage.topics() >= {f"{name}_{table}" for table in "abcd"} | {"mysql_binlog_events"}

    operations = {
        topic: [next(iter(value["operation"])) for _, _, _, value in stage.messages(topic)]
        for topic in (f"{name}_a", f"{name}_b", f"{name}_c", f"{name}_d", "mysql_binlog_events")
    }
    assert operations == {
        f"{name}_a": ["Query", "Add", "Update"],
        f"{name}_b": ["Query", "Add", "Query", "Add"],
        f"{name}_c": ["Query", "Add"],
        f"{name}_d": ["Add"],
        "mysql_binlog_events": ["Query", "Query"],
    }
    _, key, headers, value = stage.messages(f"{name}_a")[1]
    assert key == value["uri"] == f"flv://{name}/{name}/a"
    assert headers["mysql_binlog_headers"]["event_type"] == 30
    assert [record.sequence for record in records(stage.producer)] == list(range(12))

    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, name) == content(stage.follower, name)
    stage.execute("INSERT INTO b VALUES (3, 3)", "CREATE TABLE e (i INT PRIMARY KEY)", "INSERT INTO e VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, name) == content(stage.follower, name)
