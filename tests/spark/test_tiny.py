"""A tiny audit, which keeps all it computes in one partition: without shuffles, and with the same verdict."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.spark.input import one_part
from tests.generators.streams import Table, tutorial
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

PET = Table("flvDb/pet", ["name", "owner", "birth", "last_vaccine"])


@pytest.fixture
def stages(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Callable[[], list[int]]]:
    """The number of stages of each job so far in the test."""
    context, group = spark.sparkContext, request.node.name
    context.setJobGroup(group, group)

    def counted() -> list[int]:
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in sorted(tracker.getJobIdsForGroup(group))]
        return [len(job.stageIds) for job in jobs if job is not None]

    yield counted
    context.setLocalProperty("spark.jobGroup.id", "")


def test_a_tiny_audit_shuffles_only_to_bring_both_topics_together(
    judged: Judge, stages: Callable[[], list[int]]
) -> None:
    assert judged(*tutorial()).verdict == "no drift"
    first, *others = stages()
    assert (first, set(others)) == (2, {1})


@pytest.mark.parametrize("limit", ["_RECORDS", "_ROWS", "_BYTES"])
def test_a_larger_audit_tells_the_same(
    judged: Judge, stages: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    leader, follower = tutorial()
    follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
    tiny = judged(leader, follower)
    before = stages()
    monkeypatch.setattr(one_part, limit, 1)
    larger = judged(leader, follower)
    assert (tiny.verdict, tiny.tables, tiny.drifted, tiny.lag) == (
        larger.verdict, larger.tables, larger.drifted, larger.lag,
    )  # fmt: skip
    assert tiny.drifted_rows == 1
    assert sum(stages()) > 2.4 * sum(before)


def test_cached_data_is_all_of_a_plan(spark: SparkSession) -> None:
    frame = one_part.cached(spark.range(3).select((F.col("id") * 2).alias("twice")))
    try:
        assert twice(frame) == [0, 2, 4]
        assert frame._jdf.queryExecution().analyzed().toString().strip().startswith("InMemoryRelation")
    finally:
        spark.catalog.clearCache()


def test_cached_data_that_is_lost_is_computed_again(spark: SparkSession) -> None:
    computed = spark.sparkContext.accumulator(0)
    numbers = spark.sparkContext.parallelize(range(3), 1)
    rows = numbers.map(lambda number: (computed.add(1), (number * 2,))[1])
    frame = one_part.cached(spark.createDataFrame(rows, "twice INT"))
    try:
        assert (twice(frame), twice(frame), computed.value) == ([0, 2, 4], [0, 2, 4], 3)
        lose_blocks(spark)
        assert (twice(frame), computed.value) == ([0, 2, 4], 6)
        spark.catalog.clearCache()
        assert (twice(frame), computed.value) == ([0, 2, 4], 9)
    finally:
        spark.catalog.clearCache()


def twice(frame: DataFrame) -> list[int]:
    return sorted(row.twice for row in frame.collect())


def lose_blocks(spark: SparkSession) -> None:
    """As if the executor was lost with what it cached: Spark still takes the data for cached."""
    assert spark._jvm is not None
    blocks = spark._jvm.org.apache.spark.SparkEnv.get().blockManager()
    for each in spark.sparkContext._jsc.getPersistentRDDs():
        blocks.removeRdd(each)
