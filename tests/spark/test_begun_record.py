"""A record of which readers see only the first fragments, as an early commit leaves it: audit and lake wait for it."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.kafka.fragments import cut
from cdc.producer.sink.recovery import without_types
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.pipeline import audit_topics
from cdc.spark.topics import Replication
from tests.harness.pair import Pair
from tests.harness.programs import json_lines, run_well, write_profile
from tests.integration.pair.test_early_commit import show
from tests.spark.test_lake import Opened

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_a_begun_record(pair: Pair, spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    name, own = "a_begun_record", {"producer": {"message_bytes": 1000}, "filters": {"include_dbs": ["a_begun_record"]}}
    source = write_profile(tmp_path, pair.leader, kafka, name="source", topic=name, **own)
    model = write_profile(tmp_path, pair.leader, kafka, name="model", topic=f"{name}_model", resource=name, **own)
    pair.on_leader(
        "CREATE TABLE a (i INT PRIMARY KEY, t TEXT)", "INSERT INTO a VALUES (1, REPEAT('w', 5000))", database=name
    )
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", pair.target, "--until-current")
    announced = len(json_lines(source))
    pair.on_leader(
        "BEGIN", "INSERT INTO a VALUES (2, REPEAT('x', 5000))", "INSERT INTO a VALUES (3, 'y')", "COMMIT", database=name
    )
    # What the record will be: a producer of its own writes it into another topic.
    run_well("cdc-producer", model, "--until-current")
    line = next(line for line in json_lines(model) if "xxxxx" in line)
    assert json.loads(line)["sequence"] == announced
    parts = list(cut(without_types(line.encode()), 1000, sequence=announced))[:3]
    marks, lines = [mark for mark, _ in parts], [(name, part.decode()) for _, part in parts]
    show(kafka, name, lines, headers=marks, uri=f"flv://{name}/{name}/a")
    lake = Opened(spark, source, tmp_path / "lake", "parquet")
    try:
        assert lake.advance().sequence == announced - 1
        run_well("cdc-producer", pair.capture, "--until-current")
        profiles = {LEADER: load(source), FOLLOWER: load(pair.capture)}
        assert audit_topics(spark, Replication(profiles), tmp_path / "report").verdict == "no drift"
        run_well("cdc-producer", source, "--until-current")
        assert lake.advance().records == 2
        assert sorted(lake.rows(f"{name}/a")) == [(1, "w" * 5000), (2, "x" * 5000), (3, "y")]
    finally:
        lake.folder.close()
