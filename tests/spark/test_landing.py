"""Audits whose messages are landed in a folder: the verdict is that of the topics, also once retention has cut them."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.pipeline import audit_topics
from cdc.spark.report.outcome import Audit
from cdc.spark.state.coverage import identity
from cdc.spark.state.landing import Landing
from cdc.spark.state.store import StateStore
from cdc.spark.topics import Replication
from tests.checks.told import told
from tests.generators.random_streams import RandomStreams
from tests.generators.streams import Table, both, replicate
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import own_name
from tests.harness.seed import SEED
from tests.spark.test_state import GrowingTopics

pytestmark = pytest.mark.spark

TOY = Table("db/toy", ["id", "name"], ["id"])


def landed(pair: GrowingTopics, folder: Path, state: StateStore | None = None) -> Audit:
    with closing(Landing.open(pair.spark, folder)) as landing:
        return audit_topics(pair.spark, Replication(pair.profiles), pair.folder / "landed", state, landing=landing)


@pytest.mark.parametrize("fragmented", [in_long_runs(False), True])
def test_the_verdict_is_that_of_topics_that_retention_has_not_cut(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, fragmented: bool
) -> None:
    streams = RandomStreams(f"{SEED} landed {fragmented}", steps=60, settled=20, keys=40, unlogged=0.05)
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path), fragmented=fragmented)
    first, *_, last = streams.cuts(3)
    pair.grow(streams.leader, streams.follower, first)
    landed(pair, tmp_path / "a lånding+%41 [1]")
    pair.grow(streams.leader, streams.follower, last)
    whole = pair.from_the_start()
    ends = json.loads((tmp_path / "a lånding+%41 [1]/landing.json").read_text())
    for side in (LEADER, FOLLOWER):
        ((_, end),) = ends[side]["ranges"].values()
        pair.topics[side].expire(end)
    for _ in range(2):
        assert told(landed(pair, tmp_path / "a lånding+%41 [1]")) == told(whole), SEED


def test_a_state_goes_on_beside_landed_messages(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """Retention has passed what the state covers, of the topics: the landed messages begin where they did."""
    leader, follower = both([TOY.add((1, "ball"))], [TOY.add((2, "bone"))])
    pair, covered = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path)), 0
    for number in (3, 4):
        pair.grow(leader, follower)
        with closing(StateStore.open(spark, tmp_path / "state", identity(pair.profiles, None))) as state:
            audit = landed(pair, tmp_path / "landing", state)
        assert (audit.verdict, audit.leader.records) == ("no drift", number - 1)
        for side in (LEADER, FOLLOWER):
            pair.topics[side].expire()
        leader.transaction(TOY.add((number, "rope")))
        replicate(follower, [TOY.add((number, "rope"))], before=number - 2)
        assert covered < audit.leader.records
        covered = audit.leader.records


def test_messages_behind_the_last_landed_record_may_be_others_now(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    """Brokers lost what was behind it: the end of its transaction, or such ends and records in their place."""
    leader, follower = both([TOY.add((1, "ball"))], [TOY.add((2, "bone"))])
    pair, folder = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path)), tmp_path / "landing"
    pair.grow(leader, follower)
    assert landed(pair, folder).verdict == "no drift"
    pretend_ends(folder, further=2)
    assert landed(pair, folder).verdict == "no drift"
    leader.transaction(TOY.add((3, "rope")))
    replicate(follower, [TOY.add((3, "rope"))], before=1)
    pair.grow(leader, follower)
    pretend_ends(folder, further=1)
    whole = told(pair.from_the_start())
    for _ in range(2):
        assert told(landed(pair, folder)) == whole


def pretend_ends(folder: Path, *, further: int) -> None:
    """Has the landed messages end later, as if ends of Kafka transactions had been there."""
    tree = json.loads((folder / "landing.json").read_text())
    for side in (LEADER, FOLLOWER):
        ranges = tree[side]["ranges"]
        tree[side]["ranges"] = {name: (begin, end + further) for name, (begin, end) in ranges.items()}
    (folder / "landing.json").write_text(json.dumps(tree))


def test_what_the_landed_messages_do_not_go_with_is_refused(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    leader, follower = both([TOY.add((1, "ball"))], [TOY.add((2, "bone"))])
    pair, folder = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path)), tmp_path / "landing"
    pair.grow(leader, follower)
    assert landed(pair, folder).verdict == "no drift"
    other = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path) + "_other")
    other.grow(leader, follower)
    with pytest.raises(UserError, match="was deleted, and perhaps created again, since it was landed"):
        landed(other, folder)
    leader.transaction(TOY.add((3, "rope")))
    leader.transaction(TOY.add((4, "ring")))
    pair.grow(leader, follower)
    pair.topics[LEADER].expire()
    with pytest.raises(UserError, match="the topic begins at offset"):
        landed(pair, folder)
    first = Landing.open(spark, folder)
    with pytest.raises(UserError, match="another audit uses the folder"):
        Landing.open(spark, folder)
    first.close()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(UserError, match="holds other files and no landed messages"):
        Landing.open(spark, tmp_path / "full")


def test_landed_messages_that_are_missing_are_told(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """A part that landing.json does not list was left by a kill, and is written again."""
    leader, follower = both([TOY.add((1, "ball"))])
    pair, folder = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path)), tmp_path / "landing"
    (folder / "leader-1").mkdir(parents=True)
    (folder / "leader-1" / "part-0.parquet").write_bytes(b"cut")
    pair.grow(leader, follower)
    assert landed(pair, folder).verdict == "no drift"
    next((folder / "follower-1").glob("*.parquet")).unlink()
    with pytest.raises(UserError, match="files of follower-1 are missing or changed"):
        landed(pair, folder)
    (folder / "landing.json").write_text("{")
    with pytest.raises(UserError, match=r"cannot read landing\.json"):
        Landing.open(spark, folder)
