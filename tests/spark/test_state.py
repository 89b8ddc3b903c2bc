"""The law of the state: audits one after the other, each from what the last one kept, tell what one over all tells."""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.profile import Kafka as KafkaProfile
from cdc.profile import Profile
from cdc.sandbox.kafka import Kafka
from cdc.spark.audit import audit_topics
from cdc.spark.report import Audit
from cdc.spark.state import Covered, State, identity
from cdc.spark.survey import Contents
from cdc.spark.topics import FOLLOWER, LEADER
from tests.spark.random_streams import RandomStreams
from tests.spark.streams import GrowingTopic, Stream, Table, both, query

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("CDC_SEED", str(random.randrange(1 << 32))))
STREAMS = int(os.environ.get("CDC_STATE_STREAMS", "2"))
CUTS = 5
TOY = Table("db/toy", ["id", "name"], ["id"])


def profiles(kafka: Kafka, name: str) -> dict[str, Profile]:
    resources = {LEADER: "mysql-srv1", FOLLOWER: "mysql-srv1-follower"}
    return {
        side: Profile(
            mysql_resource_name=resource,
            kafka=KafkaProfile(bootstrap_servers=kafka.bootstrap_servers, topic=f"{name}-{side}"),
        )
        for side, resource in resources.items()
    }


class Pair:
    """Two growing topics, audited from their beginning and on from a state."""

    def __init__(self, spark: SparkSession, kafka: Kafka, folder: Path, name: str) -> None:
        self.spark, self.folder = spark, folder
        self.profiles = profiles(kafka, name)
        self.topics = {
            side: GrowingTopic(kafka.bootstrap_servers, each.kafka.topic) for side, each in self.profiles.items()
        }

    def grow(self, leader: Stream, follower: Stream, upto: tuple[int, int] | None = None) -> None:
        ends = upto or (len(leader.messages), len(follower.messages))
        for side, stream, end in zip((LEADER, FOLLOWER), (leader, follower), ends, strict=True):
            self.topics[side].grow(stream.messages, end)

    def from_the_start(self) -> Audit:
        return audit_topics(self.spark, self.profiles, None, self.folder / "whole")

    def on_from(self, state: Path) -> Audit:
        opened = State.open(self.spark, state, identity(self.profiles, None))
        try:
            return audit_topics(self.spark, self.profiles, None, self.folder / "stepwise", opened)
        finally:
            opened.close()


def told(audit: Audit) -> dict[str, Any]:
    """All that the report has of it, lists of equals in any order."""
    body = asdict(replace(audit, audited_at=""))
    return {name: sorted(map(repr, each)) if isinstance(each, list) else each for name, each in body.items()}


@pytest.mark.parametrize("number", range(STREAMS))
def test_audits_over_cuts_tell_what_one_audit_tells(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, number: int
) -> None:
    streams = RandomStreams(f"{SEED} {number}", steps=160)
    pair, which = Pair(spark, kafka, tmp_path, f"{tmp_path.name}"), f"CDC_SEED={SEED}, stream {number}"
    judged = 0
    for cut in streams.cuts(CUTS):
        pair.grow(streams.leader, streams.follower, cut)
        stepwise, whole = pair.on_from(tmp_path / "state"), pair.from_the_start()
        assert told(stepwise) == told(whole), f"{which}, cut at {cut}"
        judged += whole.sequence is not None
    assert judged, which
    assert whole.foreign_writes, which
