"""A tiny audit, which keeps all it computes in one partition: without shuffles, and with the same verdict."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.spark.input import small_data
from cdc.spark.input.small_data import Query, run_batched
from tests.generators.streams import Table, both, checkpoint, query, tutorial
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


def test_a_tiny_audit_has_four_jobs_and_shuffles_only_to_bring_both_topics_together(
    judged: Judge, stages: Callable[[], list[int]]
) -> None:
    """The jobs read the records with statements and the ledger, the follower's place, the digests, and the lag. The
    audit finds that the follower is a faithful copy.
    """
    audit = judged(*tutorial())
    assert stages() == [2, 1, 1, 1]
    assert (audit.verdict, audit.exit_status, audit.sequence) == ("no drift", 0, 8)
    assert [(t.table, t.leader_rows, t.follower_rows) for t in audit.tables] == [("pet", 2, 2)]
    assert audit.tables[0].leader_checksum == audit.tables[0].follower_checksum
    assert audit.foreign_writes == 0
    assert audit.lag is not None
    assert (audit.lag.transactions, audit.breaks, sum(audit.discontinuities.values())) == (9, [], 0)


def test_a_copy_costs_a_tiny_audit_one_job(judged: Judge, stages: Callable[[], list[int]]) -> None:
    """The job looks for lost chunks. The job that reads statements also finds where copies begin and end."""
    toy = Table("db/toy", ["id", "name"], ["id"])
    leader, follower = both([query("CREATE TABLE toy (…)", "db", ("CreateTable", "db/toy"))], [toy.add((1, "a"))])
    leader.transaction(toy.chunk(None, None, (1, "a"), (2, "b")), gtid="copy:33333333-3333-3333-3333-333333333333:1")
    # The checkpoint contains the leader's last transaction, which is not the copy's.
    follower.transaction(toy.add((2, "b")), checkpoint(1, 2, names=f"{leader.uuid}:2"))
    audit = judged(leader, follower)
    assert stages() == [2, 1, 1, 1, 1]
    assert (audit.verdict, audit.reasons, audit.breaks) == ("no drift", [], [])
    assert [(t.table, t.leader_rows, t.follower_rows) for t in audit.tables] == [("toy", 2, 2)]


def test_queries_with_different_results_run_as_one(
    spark: SparkSession, stages: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, nothing = spark.range(3), spark.range(0).selectExpr("array(id, NULL) AS many", "'x' AS text")
    queries = [
        Query(numbers.selectExpr("id", "IF(id = 1, NULL, id) AS some"), lambda rows: [tuple(row) for row in rows]),
        Query(nothing, len),
        Query(numbers.selectExpr("NULL AS nothing", "struct(id) AS of"), lambda rows: {row.of.id for row in rows}),
    ]
    wanted = [[(0, 0), (1, None), (2, 2)], 0, {0, 1, 2}]
    small_data.set_tiny(spark, records=9)
    assert (run_batched(*queries), run_batched(*queries[:1]), run_batched()) == (wanted, wanted[:1], [])
    assert len(stages()) == 2
    monkeypatch.setattr(small_data, "_RECORDS", 1)
    small_data.set_tiny(spark, records=9)
    assert run_batched(*queries) == wanted


@pytest.mark.long
def test_a_larger_audit_tells_the_same(
    judged: Judge, stages: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make test` has test_agreement.test_digests_first_or_every_row_folded_the_audit_is_the_same."""
    leader, follower = tutorial()
    follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
    tiny = judged(leader, follower)
    before = stages()
    monkeypatch.setattr(small_data, "_RECORDS", 1)
    larger = judged(leader, follower)
    assert (tiny.verdict, tiny.tables, tiny.drifted, tiny.lag) == (
        larger.verdict, larger.tables, larger.drifted, larger.lag,
    )  # fmt: skip
    assert tiny.drifted_rows == 1
    assert sum(stages()) > 2.4 * sum(before)


def test_what_many_records_or_rows_or_bytes_make_larger(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    read = spark.range(9).persist()
    read.count()
    try:
        for limit, is_tiny in ((None, True), ("_RECORDS", False), ("_ROWS", False), ("_BYTES", False)):
            with monkeypatch.context() as patched:
                if limit:
                    patched.setattr(small_data, limit, 1)
                small_data.set_tiny(spark, records=2, rows=2, read=read)
            assert (small_data.in_one_part(spark.range(9, numPartitions=2)).rdd.getNumPartitions() == 1) == is_tiny, (
                limit
            )
            assert (spark.conf.get("spark.sql.codegen.wholeStage") == "false") == is_tiny
    finally:
        read.unpersist()
        small_data.set_tiny(spark, records=0)


def test_cached_data_is_all_of_a_plan(spark: SparkSession) -> None:
    frame = small_data.cached(spark.range(3).select((F.col("id") * 2).alias("twice")))
    try:
        assert twice(frame) == [0, 2, 4]
        assert frame._jdf.queryExecution().analyzed().toString().strip().startswith("InMemoryRelation")
    finally:
        spark.catalog.clearCache()


def test_cached_data_that_is_lost_is_computed_again(spark: SparkSession) -> None:
    computed = spark.sparkContext.accumulator(0)
    numbers = spark.sparkContext.parallelize(range(3), 1)
    rows = numbers.map(lambda number: (computed.add(1), (number * 2,))[1])
    frame = small_data.cached(spark.createDataFrame(rows, "twice INT"))
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
