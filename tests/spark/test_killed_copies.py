"""SIGKILL of every part at random moments while tables are copied and repaired: the follower is equal, and the audit
says so."""

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.checks.sequences import broken_places
from tests.harness.killed_history import KilledHistory
from tests.harness.pair import Pair
from tests.harness.programs import BIN, records, run_well
from tests.harness.seed import SEED
from tests.harness.supervised import Supervised

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.crash]

KILLS = int(os.environ.get("CDC_COPY_KILLS", "1"))
_OF_A_HISTORY = 10


def test_random_kills_during_copies(
    tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Few kills are of the two programs, beside servers that other tests share; many are of the servers, too."""
    servers, killed = _servers(request)
    done: Counter[str] = Counter()
    for number in range(-(-KILLS // _OF_A_HISTORY)):
        name, began = f"killed_{SEED}_{number}", time.monotonic()
        history, pair = _history(tmp_path, name, servers, killed)
        history.run(min(KILLS, _OF_A_HISTORY), rows=300 if killed else 30, log=tmp_path / name)
        run_well("small_chunks", str(history.rows), pair.source, "--until-current")
        run_well("cdc-consumer", pair.target, "--until-current")
        found = records(pair.source)
        here, there = content(pair.leader, name), content(pair.follower, name)
        differences = [each for each in here | there if here.get(each) != there.get(each)] + broken_places(found)
        audit = pair.audit(spark, tmp_path / f"{name}-report", consumer=True)
        done += history.done + Counter(record.operation for record in found)
        with capsys.disabled():
            print(f"\n{name}: {dict(history.done)}, {audit.verdict}, {time.monotonic() - began:.0f} s", flush=True)
        assert differences == [], f"CDC_SEED={SEED}"
        assert (audit.verdict, audit.reasons, audit.under_copy) == ("no drift", [], []), f"CDC_SEED={SEED}: {audit}"
        for server in (pair.leader, pair.follower):
            with server.root() as connection, connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
    with capsys.disabled():
        print(f"{KILLS} kills, {dict(done)} (CDC_SEED={SEED})")


def _servers(request: pytest.FixtureRequest) -> tuple[tuple[MySql, MySql, Kafka], dict[str, MySql | Kafka]]:
    """Leader, follower and broker, and those of them that may be killed."""
    if KILLS < _OF_A_HISTORY:
        return (*request.getfixturevalue("servers"), request.getfixturevalue("kafka")), {}
    server, broker = (request.getfixturevalue(name) for name in ("mysql_server", "kafka_broker"))
    own = server(server_id=1), server(server_id=2), broker()
    return own, dict(zip(("leader", "follower", "broker"), own, strict=True))


def _history(
    folder: Path, name: str, servers: tuple[MySql, MySql, Kafka], killed: dict[str, MySql | Kafka]
) -> tuple[KilledHistory, Pair]:
    chance = random.Random(f"{SEED} {name}")
    per_table = {"layout": "per_table", "prefix": f"{name}.", "partitions": 2}
    ours: dict[str, Any] = {"filters": {"include_dbs": [name]}, "kafka": chance.choice([{}, per_table])}
    pace = {"start": "copy", "copy_rows_per_second": chance.choice([0, 300, 1000])}
    batches = {"batch_rows": chance.choice([1, 50, 5000]), "connections": chance.choice([1, 2])}
    pair = Pair.make(
        folder, *servers, name=name, source=ours | {"producer": pace},
        target=ours | {"consumer": batches | {"schema": f"cdc_{name}"}},
        capture={"filters": {"include_dbs": [name, f"cdc_{name}"]}},
    )  # fmt: skip
    return KilledHistory(pair, name=name, seed=f"{SEED} {name}", servers=killed), pair


@pytest.mark.long
def test_random_kills_during_repairs(tmp_path: Path, pair: Pair, kafka: Kafka, spark: SparkSession) -> None:
    """`make test` has the kills of test_random_kills_during_copies, whose chunks go the way of repairs, and repairs
    without kills in test_copied_leader.test_drifted_rows_are_repaired."""
    name, chance = "random_kills_during_repairs", random.Random(SEED)
    filters = {"filters": {"include_dbs": [name]}, "producer": {"copy_rows_per_second": 40}}
    pair = Pair.make(
        tmp_path, pair.leader, pair.follower, kafka, name=f"{name}2", source=filters,
        capture={"filters": {"include_dbs": [name, "cdc"]}},
    )  # fmt: skip
    pair.on_leader(
        "CREATE TABLE k (id INT PRIMARY KEY, n INT, UNIQUE (n))",
        "INSERT INTO k WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, i FROM n",
        "CREATE TABLE bare (n INT)", "INSERT INTO bare SELECT n DIV 2 FROM k WHERE n < 200",
        database=name,
    )  # fmt: skip
    pair.replicate()
    for number in range(max(KILLS // 20, 1)):
        pair.on_follower(
            "DELETE FROM k WHERE id % 17 = 1", f"UPDATE IGNORE k SET n = -id - {number} WHERE id % 13 = 2",
            "INSERT IGNORE INTO k SELECT id + 5000, -5000 - id FROM k WHERE id % 19 = 3 AND id < 5000",
            "DELETE FROM bare LIMIT 5",
            database=name,
        )  # fmt: skip
        report = tmp_path / f"report{number}"
        assert pair.audit(spark, report).verdict == "drift"
        run_well("cdc-repair", pair.source, "--report", report)
        _kill_programs(pair, tmp_path, chance, kills=min(KILLS, 20), database=name)
        pair.replicate()
        assert any(record.range and record.range.keys for record in records(pair.source))
        assert content(pair.follower, name) == content(pair.leader, name), f"CDC_SEED={SEED}"
        again = pair.audit(spark, tmp_path / f"again{number}")
        assert (again.verdict, again.reasons, again.drifted_rows) == ("no drift", [], 0), f"CDC_SEED={SEED}"


def _kill_programs(pair: Pair, folder: Path, chance: random.Random, *, kills: int, database: str) -> None:
    """Kill producer and consumer at random moments, while the leader's rows change."""
    small = [sys.executable, "-m", "tests.altered.small_chunks", "5", pair.source]
    producer = Supervised(small, folder / "producer.log")
    consumer = Supervised([BIN / "cdc-consumer", pair.target], folder / "consumer.log")
    with producer.running(), consumer.running():
        for number in range(kills):
            time.sleep(chance.uniform(0.5, 2.0))
            pair.on_leader(
                f"UPDATE k SET n = -n WHERE id % 11 = {number % 11}",
                f"DELETE FROM k WHERE id = {chance.randrange(900)}",
                f"UPDATE IGNORE k SET id = {chance.randrange(1800)} WHERE id = {chance.randrange(900)}",
                "UPDATE bare SET n = n + 1 WHERE n % 7 = 3", database=database,
            )  # fmt: skip
            (consumer if number % 2 else producer).kill()
            assert not producer.broken, producer.broken
            assert not consumer.broken, consumer.broken
