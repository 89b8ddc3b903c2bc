"""The places of changes are in the order of the stream, and have the record and the row in them."""

import pytest
from pyspark.sql import SparkSession

from cdc.spark.input.small_data import local_frame
from cdc.spark.streams.row_places import HIGHEST_SEQUENCE, MOST_ROWS, PLACE, row_at, sequence_at, steps

pytestmark = pytest.mark.spark

EDGES = [(0, 0), (0, 1), (0, MOST_ROWS - 1), (1, 0), (7, 5), (HIGHEST_SEQUENCE, 0), (HIGHEST_SEQUENCE, MOST_ROWS - 1)]


def test_places(spark: SparkSession) -> None:
    rows = local_frame(spark, [{"sequence": at, "row": row} for at, row in EDGES], "sequence BIGINT, row INT")
    places = rows.selectExpr("sequence", "row", f"{PLACE} AS removed", f"{PLACE} + 1 AS added")
    found = places.selectExpr(
        "sequence", "row", "removed", "added",
        *(f"{of(name)} AS {name}_{called}" for name in ("removed", "added")
          for called, of in (("sequence", sequence_at), ("row", row_at))),
    ).collect()  # fmt: skip
    assert [(each["sequence"], each["row"]) for each in sorted(found, key=lambda each: int(each["removed"]))] == EDGES
    numbers = [each[name] for each in found for name in ("removed", "added")]
    assert len(set(numbers)) == len(numbers) and min(numbers) >= 0
    for each in found:
        for name in ("removed", "added"):
            assert (each[f"{name}_sequence"], each[f"{name}_row"]) == (each["sequence"], each["row"])


def test_a_change_of_the_identity_is_two_steps(spark: SparkSession) -> None:
    """Where one of both is NULL, as of a row that is inserted, it is one."""
    of = steps("old != new", removed="concat('-', old)", added="concat('+', new)", both="coalesce(new, old)")
    ids = [("a", "b"), ("a", "a"), (None, "b"), ("a", None)]
    rows = local_frame(spark, [{"old": old, "new": new} for old, new in ids], "old STRING, new STRING")
    found = {(row["old"], row["new"]): row["steps"] for row in rows.selectExpr("*", f"{of} AS steps").collect()}
    assert found == {("a", "b"): ["-a", "+b"], ("a", "a"): ["a"], (None, "b"): ["b"], ("a", None): ["a"]}
