"""cdc-seed: a follower made of the topics alone is as the leader was, and cdc-consumer and cdc-audit go on with it."""

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.seed.pipeline import Loaded, run
from cdc.service.retry import Retry
from cdc.spark.input.one_part import set_tiny
from tests.checks.compare import content, numbers_given_twice
from tests.harness.pair import Pair
from tests.harness.programs import records, run_well
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.spark, pytest.mark.integration]

HISTORY = (
    "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) UNIQUE, price DECIMAL(10, 2), day DATE)",
    "INSERT INTO orders VALUES (1, 'a', 1.5, '2026-01-01'), (2, 'é\"\\\\', NULL, '2026-01-02'), (3, 'c', -2, NULL)",
    "UPDATE orders SET id = 4, name = 'd' WHERE id = 3", "DELETE FROM orders WHERE id = 1",
    "INSERT INTO orders VALUES (1, 'again', 7, NULL)", "UPDATE orders SET price = price + 1 WHERE id = 2",
    # Numbers of rows that are gone are not given again.
    "INSERT INTO orders VALUES (90, 'gone', 7, NULL)", "DELETE FROM orders WHERE id = 90",
    "ALTER TABLE orders ADD COLUMN note VARCHAR(30) DEFAULT (CONCAT('made ', 'so')), MODIFY price DECIMAL(12, 1)",
    "INSERT INTO orders (id, name) VALUES (5, 'e')",
    "CREATE TABLE parts (id INT, at INT, order_id INT, twice INT AS (at * 2) STORED, PRIMARY KEY (id, at))",
    "INSERT INTO parts (id, at, order_id) VALUES (1, 1, 1), (1, 2, 2), (2, 1, 4)",
    "ALTER TABLE parts ADD FOREIGN KEY (order_id) REFERENCES orders (id)",
    "UPDATE orders SET name = 'parent, later' WHERE id = 4",
    "CREATE TABLE bare (n INT, t TEXT)",
    "INSERT INTO bare VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL)", "DELETE FROM bare WHERE n = 1 LIMIT 1",
    "CREATE TABLE emptied (n INT PRIMARY KEY)", "INSERT INTO emptied VALUES (1)", "TRUNCATE TABLE emptied",
    "INSERT INTO emptied VALUES (2)", "RENAME TABLE emptied TO filled", "CREATE TABLE never (n INT PRIMARY KEY)",
    "CREATE TABLE dropped (n INT PRIMARY KEY)", "INSERT INTO dropped VALUES (1)", "DROP TABLE dropped",
    "CREATE TABLE selected (PRIMARY KEY (n)) SELECT n FROM bare WHERE t IS NULL",
    "CREATE VIEW cheap AS SELECT id FROM orders WHERE price < 2",
    "CREATE PROCEDURE nothing() SELECT 1",
)  # fmt: skip


def seed(pair: Pair, spark: SparkSession, *, at: int | str | None = None) -> Loaded | None:
    stop = threading.Event()
    retry = Retry(seconds=30, log=lambda *_, **__: None, stop=stop)
    return run(lambda: spark, load(pair.source), load(pair.target), at=at, retry=retry, stop=stop)


@pytest.fixture
def pair(
    tmp_path: Path,
    servers: tuple[MySql, MySql],
    mysql_server: MySqlFactory,
    kafka: Kafka,
    request: pytest.FixtureRequest,
) -> Pair:
    """The leader of these tests, and a follower of the test's own, which is empty."""
    name = request.node.originalname[5:45]
    return Pair.make(
        tmp_path, servers[0], mysql_server(server_id=7), kafka, name=name, source={"filters": {"include_dbs": [name]}}
    )


def test_a_follower_of_the_topics_alone(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    database = "a_follower_of_the_topics_alone"
    pair.on_leader(f"CREATE DATABASE {database}", f"USE {database}", *HISTORY)
    run_well("cdc-producer", pair.source, "--until-current")
    set_tiny(spark, records=0)
    loaded = seed(pair, spark)
    assert loaded is not None
    assert content(pair.follower, database) == content(pair.leader, database)
    assert not numbers_given_twice(pair.follower, records(pair.source))
    pair.on_leader(
        "INSERT INTO orders (name) VALUES ('next')", "UPDATE orders SET price = 0", "DELETE FROM bare LIMIT 1",
        "ALTER TABLE bare ADD COLUMN more INT", "INSERT INTO parts (id, at, order_id) VALUES (7, 7, 5)",
        database=database,
    )  # fmt: skip
    assert "conflicts=0" in pair.replicate()
    assert content(pair.follower, database) == content(pair.leader, database)
    audit = pair.audit(spark, tmp_path / "report")
    assert audit.exit_status == 0, audit
    assert not audit.foreign_writes
