"""Debezium's messages read by others, with the code in docs/debezium.md."""

import random
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.clickhouse import clickhouse_rows
from tests.harness.flink import flink_rows
from tests.harness.programs import begin_now, own_name, run_well, write_profile
from tests.harness.seed import SEED

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.long]

PAGE = (Path(__file__).parents[2] / "docs" / "debezium.md").read_text()
DEEDS = 400


def block(marker: str, kafka: Kafka, topic: str) -> str:
    """The example of the page that has ``marker``, for another topic and other servers."""
    blocks = re.findall(r"^```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (text,) = [each for each in blocks if marker in each]
    return str(text).replace("shop.shop.orders", topic).replace("localhost:9092", kafka.bootstrap_servers)


def work(leader: MySql, table: str) -> list[tuple[str, ...]]:
    """Changes the table at random; returns what its cities have in the end."""
    chance = random.Random(f"{SEED} readers")
    with leader.root(autocommit=True) as connection, connection.cursor() as cursor:
        for _ in range(DEEDS):
            id_, city, amount = chance.randint(1, 60), chance.choice("abcde"), chance.randint(-(10**6), 10**6) / 100
            cursor.execute(chance.choice([
                f"REPLACE INTO {table} VALUES ({id_}, '{city}', {amount})",
                f"UPDATE {table} SET amount = amount + {amount} WHERE city = '{city}'",
                f"UPDATE {table} SET city = '{city}' WHERE id = {id_}",
                f"UPDATE IGNORE {table} SET id = id + 1 WHERE id = {id_}",
                f"DELETE FROM {table} WHERE id = {id_}",
            ]))  # fmt: skip
        cursor.execute(f"SELECT city, COUNT(*), SUM(amount) FROM {table} GROUP BY city ORDER BY city")
        return [tuple(map(str, row)) for row in cursor.fetchall()]


@pytest.mark.parametrize("schemas", [False, True], ids=["plain", "schemas"])
def test_an_aggregate_of_the_messages_is_that_of_the_table(
    tmp_path: Path, servers: tuple[MySql, MySql], kafka: Kafka, spark: SparkSession, schemas: bool
) -> None:
    """In `make test` integration/producer/test_debezium.py::test_messages_beside_the_records has the messages."""
    leader, name = servers[0], own_name(tmp_path)
    profile = write_profile(
        tmp_path, leader, kafka, name=name, topic=name, kafka={"format": ["cdc", "debezium"]},
        filters={"include_dbs": [name]}, producer={"start": "now"},
        debezium={"topic_prefix": f"{name}.dbz", "decimal_handling_mode": "string", "schemas_enable": schemas},
    )  # fmt: skip
    begin_now(profile, leader)
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(
            f"CREATE TABLE {name}.orders (id INT PRIMARY KEY, city VARCHAR(20), amount DECIMAL(10, 2) DEFAULT 0)"
        )
    expected = work(leader, f"{name}.orders")
    run_well("cdc-producer", profile, "--until-current")
    topic = f"{name}.dbz.{name}.orders"
    create, query = block("'debezium-json'", kafka, topic).strip().removesuffix(";").split(";\n")
    if schemas:
        create = create.replace("'debezium-json'", "'debezium-json', 'debezium-json.schema-include' = 'true'")
    assert flink_rows(tmp_path, [create, query]) == expected
    if not schemas:
        names: dict[str, Any] = {"spark": spark}
        exec(block("from_json", kafka, topic), names)
        assert sorted(tuple(map(str, row)) for row in names["totals"].collect()) == expected
        statements = block("ENGINE = Kafka", kafka, topic).strip().removesuffix(";").split(";\n")
        tables, view, query = statements[:2], statements[2], statements[3]
        insert = re.sub(r"^CREATE MATERIALIZED VIEW \w+ TO (\w+) AS", r"INSERT INTO \1", view)
        assert clickhouse_rows(tmp_path, tables, view=insert, query=query, until=expected) == expected
