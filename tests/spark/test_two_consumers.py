"""Two streams of one leader, each with a database, onto one follower at the same time: killed, compared, audited."""

import random
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, own_name, running
from tests.harness.seed import SEED

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.crash]

KILLS, DEEDS, IDS = 12, 1_500, 200


def work(leader: MySql, database: str) -> None:
    """Transactions of a session in one database, with a statement here and there."""
    chance = random.Random(f"{SEED} {database}")
    with leader.connect(database=database, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, k INT UNIQUE)")
        for deed in range(DEEDS):
            id_, n = chance.randrange(IDS), chance.randrange(10**6)
            cursor.execute(chance.choice([
                f"REPLACE INTO t (id, n, k) VALUES ({id_}, {n}, {n})",
                f"UPDATE t SET n = n + 1 WHERE id % 7 = {id_ % 7}",
                f"UPDATE IGNORE t SET k = {n % IDS} WHERE id = {id_}",
                f"DELETE FROM t WHERE id = {id_}",
            ]))  # fmt: skip
            if deed % 300 == 0:
                cursor.execute(f"ALTER TABLE t ADD COLUMN c{deed} INT DEFAULT {deed}")


@pytest.mark.long
def test_two_consumers_at_once(tmp_path: Path, spark: SparkSession, servers: tuple[MySql, MySql], kafka: Kafka) -> None:
    """In `make test` test_two_streams has what connects two streams."""
    chance = random.Random(SEED)
    pairs: dict[str, Pair] = {}
    for name in (f"{own_name(tmp_path)}_{part}" for part in "ab"):
        filters, capture = ({"filters": {"include_dbs": databases}} for databases in ([name], [name, "cdc"]))
        pairs[name] = Pair.make(
            tmp_path, *servers, kafka, name=name, producer={"start": "now"},
            source=filters, target=filters, capture=capture,
        )  # fmt: skip
        begin_now(pairs[name].source, servers[0])
        begin_now(pairs[name].capture, servers[1])
        pairs[name].on_leader(f"CREATE DATABASE {name}")
    load = [threading.Thread(target=work, args=(servers[0], name)) for name in pairs]
    for thread in load:
        thread.start()
    with ExitStack() as producers:
        for pair in pairs.values():
            producers.enter_context(running("cdc-producer", pair.source))
        for _ in range(KILLS):
            with ExitStack() as both:
                consumers = [both.enter_context(running("cdc-consumer", pair.target)) for pair in pairs.values()]
                threading.Event().wait(chance.random() * 2)  # until the kill, at any moment
                for process in chance.sample(consumers, chance.randint(1, 2)):
                    process.send_signal(signal.SIGKILL)
                    process.wait()
        for thread in load:
            thread.join()
    for name, pair in pairs.items():
        pair.replicate()
        assert content(pair.follower, name) == content(pair.leader, name), f"CDC_SEED={SEED}"
    for name, pair in pairs.items():
        audit = pair.audit(spark, tmp_path / f"{name}-report", consumer=True)
        found = audit.verdict, audit.reasons, audit.foreign
        assert found == ("no drift", [], []), f"CDC_SEED={SEED}"
