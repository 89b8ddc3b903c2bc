"""How long transactions took, by stage: against a count by hand, and with what is not known any more left out."""

import statistics
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.model.gtid import former_gtid
from cdc.spark.lag import SCHEMA, WHOLE, Transit, intervals, lag, transit
from tests.generators.frames import frame_of
from tests.generators.streams import Stream, Table, checkpoint, follower_stream, query
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

TOY = Table("flvDb/toy", ["id", "name"], ["id"])
PET = Table("flvDb/pet", ["id", "name"], ["id"])


def history() -> tuple[Stream, Stream]:
    """Three leader transactions that reach the follower in two: after 1.5 s, 0.5 s and 10 ms."""
    leader, follower = Stream(), follower_stream()
    for at, table in enumerate([TOY, TOY, PET]):
        leader.transaction(table.add((at, "x")), ts_us=1_000_000 * at)
    follower.transaction(TOY.add((0, "x")), TOY.add((1, "x")), checkpoint(-1, 1), ts_us=1_500_000)
    follower.transaction(PET.add((2, "x")), checkpoint(1, 2), ts_us=2_010_000)
    return leader, follower


def test_lag_counts_from_the_first_commit_that_covers_a_transaction(judged: Judge) -> None:
    told = judged(*history()).lag
    assert told is not None
    assert (told.transactions, told.first_us, told.last_us) == (3, 0, 2_000_000)
    assert set(told.stages) == {WHOLE}
    whole = told.stages[WHOLE]
    assert (whole.total.transactions, whole.total.p50_us, whole.total.max_us) == (3, 500_000, 1_500_000)
    assert [count for low, high, count in whole.histogram] == [1, 1, 1]
    assert all(
        low <= us < high for (low, high, _), us in zip(whole.histogram, (10_000, 500_000, 1_500_000), strict=True)
    )
    assert [stretch.lag.max_us for stretch in whole.over_time] == [1_500_000, 500_000, 10_000]
    # 2 s in at most 64 stretches of a power of two each.
    assert told.stretch_us == 32_768
    assert all(
        0 <= at - stretch.from_us < told.stretch_us
        for at, stretch in zip((0, 1_000_000, 2_000_000), whole.over_time, strict=True)
    )
    assert [(each.table, each.stages[WHOLE].transactions) for each in told.tables] == [
        ("flvDb.toy", 2),
        ("flvDb.pet", 1),
    ]


def test_each_stage_counts_what_is_known_of_it(judged: Judge) -> None:
    # Of the leader's log what brought 0 is gone; the follower's says of both commits when they were in Kafka.
    arrived = [("leader", 0, 2, 2_004_000), ("follower", 2, 5, 1_540_000), ("follower", 5, 99, 2_020_000)]
    told = judged(*history(), arrived=arrived).lag
    assert told is not None
    total = {name: stage.total for name, stage in told.stages.items()}
    assert {name: (each.transactions, each.p50_us, each.max_us) for name, each in total.items()} == {
        "leader to Kafka": (2, 504_000, 1_004_000),
        # The leader's entry is younger than the follower's commit: clocks that differ, told as they come out.
        "Kafka to follower": (2, -249_000, 6_000),
        "follower to Kafka": (3, 40_000, 40_000),
        WHOLE: (3, 500_000, 1_500_000),
    }
    assert told.stages["Kafka to follower"].histogram[0][:2] == (-524_288, -370_728)


def test_statements_count_from_the_follower_s_own_transaction(judged: Judge) -> None:
    leader, follower = Stream(), follower_stream()
    leader.transaction(query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb")), ts_us=1_000)
    follower.transaction(
        query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb")),
        gtid=former_gtid("mysql-srv1", 0),
        ts_us=3_000,
    )
    follower.transaction(checkpoint(-1, 0), ts_us=9_000)
    told = judged(leader, follower).lag
    assert told is not None
    assert told.stages[WHOLE].total.max_us == 2_000
    assert [each.table for each in told.tables] == ["flvDb"]


def test_quantiles_of_many_transactions_are_right_to_five_percent(spark: SparkSession) -> None:
    lengths = some_lengths(20_000)
    took = transit(took_so_long(spark, lengths), arrivals(spark), upto=len(lengths) - 1)
    assert took is not None
    told = lag(took)
    assert told is not None
    stage = told.stages[WHOLE]
    for found, wanted in ((stage.total, lengths), (told.tables[0].stages[WHOLE], None)):
        wanted = wanted or lengths[0 if told.tables[0].table == "d.even" else 1 :: 2]
        exact = statistics.quantiles(wanted, n=100, method="inclusive")
        for us, at in ((found.p50_us, 49), (found.p95_us, 94), (found.p99_us, 98)):
            assert us == pytest.approx(exact[at], rel=0.05, abs=128)
        assert found.max_us == max(wanted)
    assert sum(count for *_, count in stage.histogram) == len(lengths)
    assert 32 <= len(stage.over_time) <= 65
    assert sum(stretch.lag.transactions for stretch in stage.over_time) == len(lengths)


def test_what_is_counted_piece_by_piece_is_what_is_counted_at_once(spark: SparkSession) -> None:
    lengths = some_lengths(5_000)
    transactions = took_so_long(spark, lengths).persist()
    whole = transit(transactions, arrivals(spark), upto=len(lengths) - 1)
    pieces: Transit | None = None
    ends = sorted({0, 1, *Random(8).sample(range(len(lengths)), 3), len(lengths) - 1})
    for after, upto in zip([-1, *ends], ends, strict=False):
        pieces = transit(transactions, arrivals(spark), after=after, upto=upto, before=pieces)
    assert whole is not None
    assert pieces is not None
    assert lag(pieces) == lag(whole)
    # Nothing new: what there was.
    assert transit(transactions, arrivals(spark), after=ends[-1], upto=ends[-1], before=pieces) is pieces


def some_lengths(count: int) -> list[int]:
    random = Random(7)
    return [round(random.lognormvariate(9, 2)) - 500 for _ in range(count)]


def arrivals(spark: SparkSession) -> DataFrame:
    """Nothing is known of Kafka."""
    return frame_of(spark, [], SCHEMA)


def took_so_long(spark: SparkSession, lengths: list[int]) -> DataFrame:
    """Transactions, one a millisecond, each applied by itself after so many µs."""
    rows = [("leader", at, 1_000 * at, ["d.even" if at % 2 == 0 else "d.odd"]) for at in range(len(lengths))]
    leader = frame_of(spark, rows, "side STRING, final BIGINT, ts_us BIGINT, tables ARRAY<STRING>")
    # No order of time: what each transaction took is by chance.
    applied = [("follower", at, 1_000 * at + us, at - 1, at) for at, us in enumerate(lengths)]
    follower = frame_of(spark, applied, "side STRING, final BIGINT, ts_us BIGINT, since BIGINT, upto BIGINT")
    return leader.unionByName(follower, allowMissingColumns=True).selectExpr(
        "*",
        "'whole' AS state",
        "IF(side = 'follower', 'applied', NULL) AS kind",
        "CAST(final AS STRING) AS transaction",
    )


def test_a_commit_log_that_was_compacted_says_nothing_of_what_is_gone(spark: SparkSession) -> None:
    entries = [(0, 3), (2, 3), (4, 8), (16, 30), (18, 31)]  # offset, next sequence; an entry and its end take two
    rows = [("leader", offset, after, 1_000 * offset) for offset, after in entries]
    found = intervals(frame_of(spark, rows, "side STRING, offset BIGINT, next BIGINT, at_us BIGINT"))
    assert sorted(map(tuple, found.collect())) == [
        ("leader", -1, 2, 0, 0),
        ("leader", 2, 7, 4_000, 4),
        ("leader", 29, 30, 18_000, 18),
    ]
