"""consumer.delay_seconds and rows_per_second on real servers: rows arrive late, and nothing takes that for a fault."""

import signal
import time
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.harness.outside import health, scrape
from tests.harness.programs import run_well, running, write_profile
from tests.harness.topic import Stage, number
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


def test_a_transaction_is_held_until_it_is_due(tmp_path: Path, stage: Stage, follower: MySql, kafka: Kafka) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    port = free_port()

    def delay(seconds: int) -> None:
        tables = {"consumer": {"delay_seconds": seconds}, "metrics": {"port": port}}
        write_profile(tmp_path, follower, kafka, name=stage.name, resource=stage.name, **tables)

    def send(id_: int, *, committed: float) -> None:
        (record,) = stage.topic.transaction([stage.topic.add(path, ["id"], [number(id_)], key=["id"])])
        record["transaction"]["ts_us"] = int(committed * 1e6)
        stage.topic.send_raw(record)

    delay(2)
    now = time.time()
    send(1, committed=now)
    run_well("cdc-consumer", stage.profile, "--until-current")  # it waits for what is there
    assert time.time() > now + 2
    assert stage.execute("SELECT * FROM t") == [(1,)]
    delay(1000)
    send(2, committed=time.time() - 2000)
    send(3, committed=time.time() - 10)
    with running("cdc-consumer", stage.profile) as process:
        until(lambda: 0 < scrape(port)["cdc_consumer_held_seconds"] <= 990, what="the wait")
        samples, (status, checks) = scrape(port), health(port)
        assert status == 200
        assert "the next transaction is held for another " in checks["stream"]["says"]
        assert samples["cdc_consumer_waiting"] == 0
        assert samples["cdc_consumer_behind_seconds"] >= 10
        assert stage.execute("SELECT * FROM t") == [(1,), (2,)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_SECONDS) == 0  # before the transaction is due
    assert stage.checkpoint() == 3


def test_rows_go_no_faster_than_the_limit(tmp_path: Path, stage: Stage, follower: MySql, kafka: Kafka) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    for id_ in range(100):
        stage.topic.send([stage.topic.add(path, ["id"], [number(id_)], key=["id"])])
    write_profile(tmp_path, follower, kafka, name=stage.name, resource=stage.name, consumer={"rows_per_second": 40})
    begun = time.monotonic()
    run_well("cdc-consumer", stage.profile, "--until-current")
    assert time.monotonic() - begun > 1.9  # half a second's rows go ahead
    assert stage.execute("SELECT COUNT(*) FROM t") == [(100,)]
