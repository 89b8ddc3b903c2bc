"""The ids that earlier audits covered: one that came before is never called new, and those of a server are few."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc.spark.streams import transactions
from cdc.spark.streams.transactions import (
    IdRange,
    TransactionIds,
    all_new,
    id_ranges,
    ids_from_json,
    ids_to_json,
    with_ranges,
)
from tests.generators.frames import frame_of
from tests.harness.long_runs import LONG
from tests.harness.seed import SEED

pytestmark = pytest.mark.spark

ENDS = {"leader": 10**9, "follower": 10**9}
ODD = ["copy:5", "copy:05", "copy: 5", "copy:-5", "a", "", "7", "a:tag:7", "a:7:", "a:99999999999999999999", "ü:7\n8"]


def found(spark: SparkSession, ids: Sequence[str], *, side: str = "leader", records: int = 0) -> list[IdRange] | None:
    rows = [(side, each, at) for at, each in enumerate(ids)]
    frame = frame_of(spark, rows, "side STRING, transaction STRING, final BIGINT")
    answer: Any = id_ranges(frame, records=records).result()
    return answer


@pytest.mark.parametrize("records", [0, 10**6])
def test_an_id_that_came_before_is_never_new(spark: SparkSession, records: int) -> None:
    chance = Random(SEED)
    ids = [*ODD, *(f"{chance.choice('ab')}:{number}" for number in chance.sample(range(3000), 300))]
    chance.shuffle(ids)
    known = ids_from_json(ids_to_json(with_ranges({}, found(spark, ids[:200], records=records), ENDS)))
    later = [*ids[200:], *chance.sample(ids, 30)]
    later = [*(later if LONG else chance.sample(later, 25)), "a:3001", "a:3002", "c:1"]
    new = {each for each in later if all_new(known, found(spark, [each], records=records))}
    assert not new & set(ids[:200]), f"CDC_SEED={SEED}"
    if not records:  # Of few transactions each id is known.
        assert new == set(later) - set(ids[:200]), f"CDC_SEED={SEED}"
    assert "c:1" in new
    assert all_new(known, found(spark, ids[:200], side="follower", records=records)), "the other side's are its own"


def test_a_servers_ids_are_one_interval_and_those_not_covered_none(spark: SparkSession) -> None:
    ranges = found(spark, [f"a:{number}" for number in range(1, 5001)], records=5000)
    assert with_ranges({}, ranges, ENDS) == {("leader", "a:"): [(1, 5000)]}
    of_mariadb = found(spark, [f"0-7-{number}" for number in range(1, 51)])
    assert with_ranges({}, of_mariadb, ENDS) == {("leader", "0-7-"): [(1, 50)]}
    known = with_ranges({}, found(spark, [f"a:{number}" for number in range(1, 101)]), {"leader": 49})
    assert known == {("leader", "a:"): [(1, 50)]}
    assert with_ranges(known, found(spark, ["a:51", "a:60"]), ENDS) == {("leader", "a:"): [(1, 51), (60, 60)]}


def test_too_many_prefixes_are_not_known(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_MOST_RANGES", 3)
    assert found(spark, ["a", "b", "c", "d"]) is None
    ranges = found(spark, ["a", "b"])
    known = with_ranges(with_ranges({}, ranges, ENDS), found(spark, ["c", "d"]), ENDS)
    assert known is None
    assert ids_from_json(ids_to_json(None)) is None
    assert not all_new(None, ranges)
    assert not all_new({}, None)
    assert with_ranges({}, None, ENDS) is None


NUMBERS = st.lists(st.integers(0, 200), max_size=60)


@given(NUMBERS, NUMBERS, st.integers(1, 5))
def test_many_intervals_become_few_that_leave_none_out(before: list[int], later: list[int], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions, "_MOST_INTERVALS", most)
        known: TransactionIds | None = {}
        for part in (before[::2], before[1::2]):
            known = with_ranges(known, [IdRange("leader", "a:", each, each, 0) for each in part], ENDS)
    assert known is not None
    intervals = known.get(("leader", "a:"), [])
    assert len(intervals) <= most
    assert [*intervals] == sorted(intervals)
    new = {each for each in later if all_new(known, [IdRange("leader", "a:", each, each, 0)])}
    assert not new & set(before)
    assert new == {each for each in later if not any(first <= each <= last for first, last in intervals)}
