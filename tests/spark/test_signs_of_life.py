"""A capture that is dead is no verdict, and one of an idle server is not taken for dead."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.spans import newest_entry_us
from cdc.spark.job.options import Terms
from cdc.spark.pipeline import audit_topics
from cdc.spark.topics import Replication
from tests.generators.streams import CommitLog
from tests.harness.pair import Pair
from tests.harness.programs import records, run_well, running
from tests.harness.wait import until

pytestmark = pytest.mark.spark


def newest(profile: Path) -> int:
    settings = load(profile)
    found = newest_entry_us(settings.kafka, resource=settings.mysql_resource_name)
    assert found is not None
    return found


def test_a_dead_capture_is_no_verdict_and_an_idle_server_is_not_dead(
    spark: SparkSession, pair: Pair, kafka: Kafka, tmp_path: Path
) -> None:
    database = load(pair.source).mysql_resource_name
    pair.on_leader(f"CREATE TABLE {database}.toy (id INT PRIMARY KEY)", f"INSERT INTO {database}.toy VALUES (1)")
    pair.replicate()
    for profile in (pair.source, pair.capture):
        run_well("cdc-producer", profile, "--until-current")
    # From here on nobody reads the follower's binlog, and the leader's is read on.
    pair.on_follower(f"DELETE FROM {database}.toy")
    pair.on_leader(f"INSERT INTO {database}.toy VALUES (2)")
    pair.source.write_text(pair.source.read_text().replace("[producer]", "[producer]\nalive_seconds = 1"))
    # As if the newest entry were of yesterday.
    capture = load(pair.capture)
    log = CommitLog(kafka.bootstrap_servers, capture.kafka.topic, resource=capture.mysql_resource_name, there=True)
    log.write(len(records(pair.capture)), age_seconds=86_400)
    with running("cdc-producer", pair.source):
        before = newest(pair.source)
        # Entries that it writes on an idle leader.
        for _ in range(3):
            until(lambda before=before: newest(pair.source) > before, what="a sign of life of the leader's producer")
            before = newest(pair.source)
        profiles = {LEADER: load(pair.source), FOLLOWER: load(pair.capture)}
        audit = audit_topics(spark, Replication(profiles), tmp_path / "after", terms=Terms(max_age=3_600))
    assert (audit.verdict, audit.exit_status, audit.drifted_rows) == ("could not judge", 2, 0)
    (reason,) = audit.reasons
    assert reason.startswith(f"the commit log of the follower's topic {database}-follower is ")
    assert (audit.behind_records, audit.leader.newest_us is not None) == (1, True)
    assert audit.behind_seconds is not None
    assert 0 < audit.behind_seconds < 600
    told = (tmp_path / "after/report.html").read_text()
    assert "1 record is in the leader&#39;s topic that the follower has not applied" in told
