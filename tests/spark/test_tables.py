"""A leader's tables on Spark: what the topic tells of a table at a moment is what the server held then."""

import pytest
from pyspark.sql import SparkSession

from cdc.spark import table
from tests.harness.pair import Pair
from tests.harness.programs import run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_a_table_is_what_the_server_has(pair: Pair, spark: SparkSession) -> None:
    database = "a_table_is_what_the_server_has"
    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10, 2), day DATE)",
        "INSERT INTO orders VALUES (1, 'a', 1.5, '2026-01-01'), (2, 'é\"\\\\', NULL, '2026-01-02'), (3, 'c', -2, NULL)",
        "UPDATE orders SET id = 4, name = 'd' WHERE id = 3", "DELETE FROM orders WHERE id = 1",
        "INSERT INTO orders VALUES (1, 'again', 7, NULL)", "UPDATE orders SET price = price + 1",
        "CREATE TABLE bare (n INT, t TEXT)",
        "INSERT INTO bare VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL)", "DELETE FROM bare WHERE n = 1 LIMIT 1",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    orders = table(spark, pair.source, f"{database}.orders")
    assert orders.dtypes == [("id", "int"), ("name", "string"), ("price", "decimal(10,2)"), ("day", "date")]
    assert sorted(map(tuple, orders.selectExpr("id", "name", "string(price)", "string(day)").collect())) == [
        (1, "again", "8.00", None), (2, 'é"\\', None, "2026-01-02"), (4, "d", "-1.00", None),
    ]  # fmt: skip
    bare = table(spark, str(pair.source), f"{database}.bare")
    assert sorted(map(tuple, bare.collect())) == [(1, "x"), (1, "x"), (2, None)]
