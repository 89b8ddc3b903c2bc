"""The offsets of the consumer group, by which others see how far a follower is."""

from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from cdc.config.profile import load
from cdc.kafka.follower_places import FollowerPlaces, group_of
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import end_offset, run_well, running, write_profile
from tests.harness.topic import Stage, number
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def test_a_follower_that_has_applied_all_is_seen_to(
    tmp_path: Path, stage: Stage, follower: MySql, kafka: Kafka
) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    database = load(stage.profile).database
    address = f"{database.ip_or_host}:{database.port}"
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    places = FollowerPlaces(properties, resource=stage.name, topic=stage.name)
    admin, group = AdminClient(properties), group_of(stage.name, address)

    def offset() -> int:
        (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        return max((each.offset for each in answer.result().topic_partitions), default=-1)

    def send(id_: int) -> None:
        stage.topic.send([stage.topic.add(path, ["id"], [number(id_)], key=["id"])])

    send(0)
    with running("cdc-consumer", stage.profile):
        for id_ in range(1, 4):
            send(id_)  # one after the other within a moment: the last ones wait until the next commit
        last = stage.topic.next_sequence - 1
        until(lambda: places.look() == {address: last}, what="the place of the follower")
        until(
            lambda: offset() == end_offset(kafka, stage.name) - 1, what="the offset"
        )  # the end of a Kafka transaction
    write_profile(tmp_path, follower, kafka, name=stage.name, resource=stage.name, consumer={"delay_seconds": 1})
    for table in ("u", "v"):
        stage.create_table(table, "(id INT PRIMARY KEY)")
        send(4 if table == "u" else 5)  # two batches of rows, and two of a statement
    run_well("cdc-consumer", stage.profile, "--until-current")
    assert offset() == end_offset(kafka, stage.name) - 1
    until(lambda: places.look() == {}, what="no place of a follower that is to stay behind")
