"""Of many messages those at the places that are asked for are read, and no others."""

import random

import pytest
from pyspark.sql import SparkSession

from cdc.seed.fold import values_at
from cdc.spark.input.small_data import local_frame
from tests.harness.seed import SEED

pytestmark = pytest.mark.spark

BUCKET = 1 << 15
EDGES = [0, 1, 7, 8, BUCKET - 2, BUCKET - 1, BUCKET, BUCKET + 1, 3 * BUCKET - 1, 3 * BUCKET, (1 << 40) + 5]


def test_the_values_at_places(spark: SparkSession) -> None:
    chance = random.Random(SEED)
    offsets = sorted({*EDGES, *(chance.randrange(4 * BUCKET) for _ in range(300))})
    there = [(partition, offset) for partition in ("a/0", "a/1", "b/0") for offset in offsets]
    wanted = {place for place in there if place[0] != "b/0" and chance.random() < 0.5}
    messages = [
        {"partition": partition, "offset": offset, "value": f"{partition} {offset}"} for partition, offset in there
    ]
    # A place may be asked for twice, and one that is gone is not found.
    asked = [*wanted, *list(wanted)[:5], ("a/0", 2 * BUCKET * BUCKET)]
    places = [{"partition": partition, "offset": offset} for partition, offset in asked]
    found = values_at(
        local_frame(spark, messages, "partition STRING, offset BIGINT, value STRING"),
        local_frame(spark, places, "partition STRING, offset BIGINT"),
    ).collect()
    assert sorted(map(tuple, found)) == sorted((*place, f"{place[0]} {place[1]}") for place in wanted), SEED
