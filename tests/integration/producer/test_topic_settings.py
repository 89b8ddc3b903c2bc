"""Topics that were there before cdc-producer: it refuses those that would lose what is written to them."""

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from cdc.config import profile
from cdc.config.topic_names import Topics
from cdc.errors import Disconnected, PromiseError
from cdc.kafka import topics as topic_times
from cdc.kafka.partitions import newest
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.copy.requests import write_request
from cdc.producer.sink import topic_admin
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.kafka_transactions import BatchSize
from cdc.producer.sink.record_parts import Message
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import begin_now, json_lines, records, refused, run_well, write_profile
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


def create(kafka: Kafka, name: str, **settings: str) -> None:
    config = {key.replace("_", "."): value for key, value in settings.items()}
    kafka_admin = kafka.admin()
    kafka_admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(LIMIT_SECONDS)


def configure(kafka: Kafka, command: str) -> None:
    """Do what the kafka-configs.sh command in a line says."""
    words = command.partition("kafka-configs.sh ")[2].split()
    topic = words[words.index("--entity-name") + 1]
    settings = [each.partition("=") for each in words[words.index("--add-config") + 1].rstrip(';)"').split(",")]
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, _, value in settings]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = kafka.admin()
    admin.incremental_alter_configs([resource])[resource].result(LIMIT_SECONDS)
    # The controller answers before the broker has them.
    wanted = {key: value for key, _, value in settings}.items()
    until(lambda: wanted <= settings_of(kafka, topic).items(), what=f"{dict(wanted)} of {topic}")


def settings_of(kafka: Kafka, topic: str) -> dict[str, str]:
    resource, admin = ConfigResource(ResourceType.TOPIC, topic), kafka.admin()
    return {
        key: entry.value for key, entry in admin.describe_configs([resource])[resource].result(LIMIT_SECONDS).items()
    }


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_topics_that_lose_what_is_written_there(tmp_path: Path, leader: MySql, kafka: Kafka, layout: str) -> None:
    name = f"kept-{layout}".replace("_", "-")
    database = name.replace("-", "")
    table = name if layout == "single" else f"{database}_a"
    create(kafka, f"{name}.commits", cleanup_policy="compact,delete")
    path = write_profile(
        tmp_path, leader, kafka, name=name, filters={"include_dbs": [database]}, kafka={"layout": layout},
        producer={"start": "now"},
    )  # fmt: skip
    line = refused("cdc-producer", path, "--until-current")
    assert "the commit log would expire" in line
    configure(kafka, line)
    create(kafka, table, cleanup_policy="compact")
    with leader.connect() as connection, connection.cursor() as cursor:
        if layout == "per_table":
            run_well("cdc-producer", path, "--until-current")
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"CREATE TABLE {database}.a (i INT PRIMARY KEY)")
        line = refused("cdc-producer", path, "--until-current")
        assert f"topic {table}, setting cleanup.policy" in line
        configure(kafka, line)
        log = run_well("cdc-producer", path, "--until-current")
        assert "the topic's records expire sooner than the profile's retention_hours" in log
        assert f"topic={table}" in log
        cursor.execute(f"INSERT INTO {database}.a VALUES (1)")
        run_well("cdc-producer", path, "--until-current")
    assert [row.after for record in records(path) for row in record.rows] == [[{"SignedInteger": 1}]]
    # A topic that is changed once it has records is found, too.
    configure(kafka, f"kafka-configs.sh --entity-name {table} --add-config cleanup.policy=compact")
    assert "the topic is compacted" in refused("cdc-producer", path, "--until-current")


def test_a_topic_for_small_messages_is_named_with_the_command(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    create(kafka, "small", max_message_bytes="1048588")
    keys = {"filters": {"include_dbs": ["small"]}, "producer": {"start": "now"}}
    path = write_profile(tmp_path, leader, kafka, name="small", **keys)
    begin_now(path, leader)
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE small")
        cursor.execute("CREATE TABLE small.a (i INT PRIMARY KEY, t LONGTEXT)")
        # Text that does not compress: the brokers' limit is for what is sent.
        cursor.execute("INSERT INTO small.a VALUES (1, %s)", (Random(1).randbytes(1_500_000).hex(),))
    line = refused("cdc-producer", path, "--until-current", status=3)
    assert "bytes, more than the topic accepts" in line
    assert "(or set producer.message_bytes to less than it takes)" in line
    assert "small/a" in line
    configure(kafka, line)
    run_well("cdc-producer", path, "--until-current")
    assert [len(text) > 3_000_000 for text in json_lines(path)] == [False, False, True]
    # The other way out.
    create(kafka, "smaller", max_message_bytes="1048588")
    keys["producer"] = {"start": "oldest", "message_bytes": 1_000_000}
    path = write_profile(tmp_path, leader, kafka, name="smaller", **keys)
    run_well("cdc-producer", path, "--until-current")
    assert [len(text) > 3_000_000 for text in json_lines(path)] == [False, False, True]


def test_min_insync_replicas_of_topics_that_are_created(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    limits = {"start": "now"}
    path = write_profile(tmp_path, leader, kafka, name="insync", kafka={"min_insync_replicas": 1}, producer=limits)
    run_well("cdc-producer", path, "--until-current")
    for topic in ("insync", "insync.commits"):
        assert settings_of(kafka, topic)["min.insync.replicas"] == "1"
    path = write_profile(tmp_path, leader, kafka, name="insync", kafka={"min_insync_replicas": 2}, producer=limits)
    assert "kafka.min_insync_replicas" in refused("cdc-producer", path, "--until-current")


HOUR_MS = 3_600_000
AFTER = "message.timestamp.after.max.ms"


def written(kafka: Kafka, topic: str, time_ms: int) -> int:
    """Write a record of this time through a producer's sink; the time that it has in the topic."""
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    topics = TopicAdmin(properties, Topics(topic), partitions=1, replicas=1, retention_hours=0)
    sink: KafkaSink | None = None
    while sink is None:
        with suppress(Disconnected):  # the brokers may be ending the transaction of the former one still
            stop, size = threading.Event(), BatchSize(16_000_000)
            sink = KafkaSink.open(topics, size, resource="r", instance="i", reopening=False, stop=stop)
    try:
        start = sink.entry or Entry(0, Position("binlog.000001", 4), "", "u", instance="i")
        sink.start(start)
        uri, place = f"flv://r/d/{topic}", '{"fileName":"binlog.000001","offset":4}'
        head = f'{{"uri":"{uri}","sequence":{start.next_sequence},"bn_file":{place},"transaction":'
        body = f'{head}{{"id":"u:1","index":0,"last":true,"ts_us":1}},"operation":{{"Query":"x"}},"affects":[]}}'
        sink.write([Message(topic, uri.encode(), body.encode(), time_ms, [])])
        sink.commit(Entry(start.next_sequence + 1, Position("binlog.000001", 4), "", "u", instance="i"))
    finally:
        sink.close()
    return int(newest(properties, [(topic, 0)])[topic, 0].timestamp()[1])


def test_topics_take_records_of_any_time(
    tmp_path: Path, leader: MySql, kafka: Kafka, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader's clock may be ahead, of which Kafka 4 takes an hour, and its binlogs may be old."""
    logging.getLogger("cdc").propagate = True
    ahead = int(time.time() * 1000) + 5 * HOUR_MS
    assert written(kafka, "any_time", ahead) == ahead
    assert not caplog.records, caplog.text
    write_request(profile.load(write_profile(tmp_path, leader, kafka, name="any_time")).kafka, "r", [("d", "t")])
    for topic in ("any_time", "any_time.commits", "any_time.copies"):
        assert settings_of(kafka, topic)[AFTER] == str(2**63 - 1), topic
    # Topics that were there: what is too far away gets the nearest time that they take.
    create(kafka, "any_time-there", message_timestamp_before_max_ms=str(HOUR_MS))
    assert 0 < ahead - written(kafka, "any_time-there", ahead) - 4 * HOUR_MS < HOUR_MS
    logged = caplog.records[-1]
    assert "the nearest accepted time" in logged.getMessage()
    assert 0 < written(kafka, "any_time-there", 1) - ahead + 6 * HOUR_MS < HOUR_MS
    configure(kafka, logged.__dict__["fields"]["hint"])
    assert written(kafka, "any_time-there", ahead) == ahead
    # Only the operator can help if the brokers' clock is too far from that of the producer's machine. The topic
    # still takes the mark with which the broker ends a transaction: without it no producer would get on, ever.
    hour = str(HOUR_MS)
    create(kafka, "any_time-never", message_timestamp_before_max_ms=hour, message_timestamp_after_max_ms=hour)
    with monkeypatch.context() as clock, pytest.raises(PromiseError, match="Kafka refuses a record") as refused_:
        monotonic = {"monotonic": time.monotonic}
        clock.setattr(topic_times, "time", SimpleNamespace(time=lambda: time.time() + 10 * HOUR_MS / 1000, **monotonic))
        written(kafka, "any_time-never", ahead)
    configure(kafka, refused_.value.hint)
    assert written(kafka, "any_time-never", ahead) == ahead
    # Brokers before Kafka 3.6 do not know the settings.
    monkeypatch.setattr(topic_admin, "ANY_TIME", {"message.timestamp.of.tomorrow": "1"})
    assert 0 < ahead - written(kafka, "any_time-older", ahead) - 4 * HOUR_MS < HOUR_MS
