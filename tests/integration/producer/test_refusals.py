"""Each mistake of a user ends cdc-producer in one line that says what, where and the way out, with exit status 2."""

import json
import subprocess
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cdc.config.topic_names import PER_TABLE, Topics
from cdc.errors import UserError
from cdc.kafka import commit_log
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.kafka_transactions import BatchSize
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import BIN, refused, run_well, write_profile
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[kafka", "broken TOML"),
        ('[kafka]\ntopik = "t"', "'topic'"),
        ('[database]\nport = "3080"', "is not a whole number"),
        ("[database]\nport = 70000", "out of range"),
        ('resume_file = "f"', "the position is in Kafka"),
        ("[fluvio]", "rename the table"),
    ],
)
@pytest.mark.parametrize("program", ["cdc-producer", "cdc-consumer", "cdc-tail"])
def test_a_profile_with_a_mistake(tmp_path: Path, program: str, text: str, said: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    line = refused(program, path)
    assert said in line
    assert "p.toml" in line


@pytest.mark.parametrize("program", ["cdc-producer", "cdc-consumer", "cdc-tail"])
def test_no_such_profile(program: str) -> None:
    assert "no such file: nowhere.toml" in refused(program, "nowhere.toml")


def test_the_topic_of_another_leader(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    run_well(
        "cdc-producer",
        write_profile(tmp_path, leader, kafka, name="one", topic="taken", producer={"start": "now"}),
        "--until-current",
    )
    other = write_profile(tmp_path, leader, kafka, name="two", topic="taken", resource="two")
    assert "another leader, 'taken'" in refused("cdc-producer", other)


def test_two_producers_that_meet_a_new_topic_at_the_same_moment(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    paths = [
        write_profile(tmp_path, leader, kafka, name=name, topic="met", resource=name, producer={"start": "now"})
        for name in ("one", "two")
    ]
    begun = [
        subprocess.Popen([BIN / "cdc-producer", path, "--until-current"], stderr=subprocess.PIPE) for path in paths
    ]
    said = [process.communicate(timeout=LIMIT_SECONDS)[1].decode() for process in begun]
    refusals = [text for process, text in zip(begun, said, strict=True) if process.returncode == 2]
    assert refusals, said
    assert all("another leader" in text for text in refusals)


def test_two_leaders_that_found_a_commit_log_empty_see_each_other(kafka: Kafka) -> None:
    properties, names = {"bootstrap.servers": kafka.bootstrap_servers}, ("one", "two")
    topics = TopicAdmin(properties, Topics("both"), partitions=1, replicas=1, retention_hours=0)
    sinks = [
        KafkaSink.open(
            topics,
            BatchSize(16_000_000),
            resource=name,
            instance=name,
            reopening=False,
            stop=threading.Event(),
        )
        for name in names
    ]
    for sink in sinks:
        assert sink.entry is None
        sink.commit(Entry(0, Position("binlog.000001", 4), "", ""))
    for name in names:
        with pytest.raises(UserError, match="another leader"):
            topics.require_alone(name)


def test_a_topic_without_its_commit_log(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    path = write_profile(tmp_path, leader, kafka, name="lost", producer={"start": "now"})
    run_well("cdc-producer", path, "--until-current")
    execute(leader, "CREATE DATABASE lost")
    run_well("cdc-producer", path, "--until-current")
    admin = kafka.admin()
    admin.delete_topics(["lost.commits"])["lost.commits"].result(LIMIT_SECONDS)
    until(
        lambda: "lost.commits" not in admin.list_topics(timeout=LIMIT_SECONDS).topics, what="the end of the commit log"
    )
    assert "has records but no commit log" in refused("cdc-producer", path)


def test_a_topic_that_was_deleted(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    path = write_profile(tmp_path, leader, kafka, name="vanished", producer={"start": "now"})
    run_well("cdc-producer", path, "--until-current")
    execute(leader, "CREATE DATABASE vanished")
    run_well("cdc-producer", path, "--until-current")
    admin = kafka.admin()
    admin.delete_topics(["vanished"])["vanished"].result(LIMIT_SECONDS)
    until(lambda: "vanished" not in admin.list_topics(timeout=LIMIT_SECONDS).topics, what="the topic's end")
    assert "it was deleted or emptied" in refused("cdc-producer", path)


def test_a_commit_log_of_a_newer_version(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    keys = {"resource": "newer", "topic": "newer", "kafka": {"layout": PER_TABLE, "prefix": "newer."}}
    path = write_profile(tmp_path, leader, kafka, name="newer", producer={"start": "now"}, **keys)
    run_well("cdc-producer", path, "--until-current")
    target = write_profile(tmp_path, follower, kafka, name="newer-follower", **keys)
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    entry = next(commit_log.entries(properties, topic="newer.commits", resource="newer"))
    producer = Producer(properties)
    producer.produce("newer.commits", json.dumps(json.loads(entry.to_json()) | {"version": 99, "more": 1}), b"newer")
    assert producer.flush(LIMIT_SECONDS) == 0
    for program, profile in (("cdc-producer", path), ("cdc-consumer", target), ("cdc-tail", path)):
        line = refused(program, profile)
        assert "written by a newer cdc" in line
        assert "topic newer.commits, offset" in line
        assert "upgrade" in line
