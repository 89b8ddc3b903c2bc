"""Partitions that somebody added to a topic with a total order: all goes on in the first one while they are empty."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType
from confluent_kafka.cimpl import TopicPartition

from cdc.config.profile import load
from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.input.spans import span
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, refused, run_well
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_added_partitions(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, layout: str) -> None:
    name = f"added_{layout}"
    own = {"kafka": {"layout": layout, "prefix": f"{name}."}, "filters": {"include_dbs": [name]}}
    own["producer"] = {"start": "now"}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=own, target=own)
    begin_now(pair.source, leader)
    pair.on_leader(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (i INT PRIMARY KEY)")
    pair.replicate()
    admin = kafka.admin()
    topics = load(pair.source).kafka.topics().first
    written = topics[-1]
    for answer in admin.create_partitions([NewPartitions(topic, 3) for topic in topics]).values():
        answer.result(LIMIT_SECONDS)
    pair.on_leader(f"INSERT INTO {name}.t VALUES (1), (2)")
    for program, profile in (("cdc-producer", pair.source), ("cdc-consumer", pair.target)):
        assert "partitions that stay unused" in run_well(program, profile, "--until-current")
    assert content(leader, name) == content(follower, name)
    assert "partitions that stay unused" in run_well("cdc-tail", pair.source)
    assert {number for _, number in span(load(pair.source).kafka).partitions} == {0}
    # What something else writes there is found, and named.
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(written, b"lie", b"key", partition=2)
    assert producer.flush(LIMIT_SECONDS) == 0
    problem = "partition 2 of the topic has messages, and only partition 0 keeps the leader's order"
    for program, profile, *options in (
        ("cdc-producer", pair.source, "--until-current"), ("cdc-producer", pair.source, "--dry-run"),
        ("cdc-consumer", pair.target, "--until-current"), ("cdc-tail", pair.source),
    ):  # fmt: skip
        assert f"{problem}; at topic {written}, partition 2, offsets 0 to 0" in refused(program, profile, *options)
    with pytest.raises(UserError, match=problem):
        span(load(pair.source).kafka)
    # The way out of the hint; a compacted topic must allow deletion first.
    configured(kafka, written, "compact,delete" if layout == "per_table" else "delete")
    place = TopicPartition(written, 2, 1)
    admin.delete_records([place])[place].result(LIMIT_SECONDS)
    configured(kafka, written, "compact" if layout == "per_table" else "delete")
    pair.on_leader(f"INSERT INTO {name}.t VALUES (3)")
    pair.replicate()
    assert content(leader, name) == content(follower, name)


def configured(kafka: Kafka, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource, admin = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry]), kafka.admin()
    admin.incremental_alter_configs([resource])[resource].result(LIMIT_SECONDS)
