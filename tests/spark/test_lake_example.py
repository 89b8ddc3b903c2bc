"""The SQL in examples/ that keeps a model of a lake up to date: it runs as written, and counts each change once."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness.pair import Pair
from tests.harness.programs import run_well
from tests.spark.test_lake import Opened

pytestmark = [pytest.mark.spark, pytest.mark.integration]

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders_by_state.sql"


@pytest.mark.long
def test_a_model_of_a_lake(pair: Pair, lake_spark: SparkSession, tmp_path: Path) -> None:
    """`make test` has test_lake.test_a_lake_follows_its_leader."""
    database, path = "a_model_of_a_lake", tmp_path / "lake"
    text = EXAMPLE.read_text(encoding="utf-8").replace("`lake/", f"`{path}/").replace("/shop/", f"/{database}/")
    statements = [each for each in text.split(";\n") if each.strip()]
    model = f"SELECT state, orders FROM delta.`{path}/models/orders_by_state` WHERE orders != 0"
    for times, sql, expected in (
        (1, ("CREATE TABLE orders (id INT PRIMARY KEY, state ENUM('new', 'paid'))",
          "INSERT INTO orders VALUES (1, 'new'), (2, 'new'), (3, 'paid'), (4, NULL)"), {"new": 2, "paid": 1}),
        (2, ("UPDATE orders SET state = 'paid' WHERE id = 1", "DELETE FROM orders WHERE id = 2",
          "UPDATE orders SET id = 5 WHERE id = 3"), {"paid": 2}),
    ):  # fmt: skip
        pair.on_leader(*sql, database=database)
        run_well("cdc-producer", pair.source, "--until-current")
        lake = Opened(lake_spark, pair.source, path, "delta")
        lake.advance()
        lake.folder.close()
        for _ in range(times):
            for statement in statements:
                lake_spark.sql(statement)
            assert dict(map(tuple, lake_spark.sql(model).collect())) == expected
