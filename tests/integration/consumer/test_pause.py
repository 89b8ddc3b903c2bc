"""SIGUSR1 and SIGUSR2, and the commands, on real servers: the consumer pauses between two transactions, says so, and
continues.
"""

import signal
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.harness.outside import health, scrape
from tests.harness.programs import run, run_well, running, write_profile
from tests.harness.topic import Stage, number
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def test_a_pause(tmp_path: Path, stage: Stage, follower: MySql, kafka: Kafka) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    port = free_port()
    write_profile(
        tmp_path,
        follower,
        kafka,
        name=stage.name,
        resource=stage.name,
        metrics={"port": port, "token": "a-token-of-this-test"},
    )

    def send(id_: int) -> None:
        stage.topic.send([stage.topic.add(path, ["id"], [number(id_)], key=["id"])])

    with running("cdc-consumer", stage.profile) as process:
        until(lambda: scrape(port)["cdc_consumer_sequence"] == 1, what="the table")
        assert "running, connection" in run("cdc-consumer", stage.profile, "--status").stdout
        process.send_signal(signal.SIGUSR1)
        until(lambda: scrape(port)["cdc_consumer_paused"] == 1, what="the pause")
        send(1)
        status, checks = health(port)
        assert (status, checks["stream"]["says"][:6]) == (200, "paused")
        until(lambda: "paused, connection" in run("cdc-consumer", stage.profile, "--status").stdout, what="the status")
        # What is in the topic stays there.
        assert stage.execute("SELECT * FROM t") == []
        assert stage.checkpoint() == 1
        process.send_signal(signal.SIGUSR2)
        until(lambda: stage.execute("SELECT * FROM t") == [(1,)], what="the row")
        until(lambda: scrape(port)["cdc_consumer_paused"] == 0, what="the end of the pause")
        for option, said, is_paused in (
            ("--pause", "pauses between two transactions", 1),
            ("--resume", "applies again", 0),
        ):
            assert said in run("cdc-consumer", stage.profile, option).stdout
            until(lambda: scrape(port)["cdc_consumer_paused"] == is_paused, what=option)  # noqa: B023
        # What comes after the large transaction is held back for hours, until the limit is lifted.
        assert "at most 1 rows a second" in run("cdc-consumer", stage.profile, "--rate", "1").stdout
        many = [number(each) for each in range(20, 9020)]
        stage.topic.send([stage.topic.add(path, ["id"], *([each] for each in many), key=["id"])])
        send(13)
        until(lambda: stage.execute("SELECT COUNT(*) FROM t WHERE id >= 20") == [(9000,)], what="the large transaction")
        assert stage.execute("SELECT * FROM t WHERE id = 13") == []
        run_well("cdc-consumer", stage.profile, "--rate", "0")
        until(lambda: stage.execute("SELECT * FROM t WHERE id = 13") == [(13,)], what="no limit")
        until(lambda: scrape(port)["cdc_consumer_paused"] == 0, what="the end of the pause")
        assert "running, connection" in run("cdc-consumer", stage.profile, "--status").stdout
        process.send_signal(signal.SIGUSR1)
        until(lambda: scrape(port)["cdc_consumer_paused"] == 1, what="the second pause")
        send(2)
    # SIGTERM ended it well, while it was paused.
    assert stage.checkpoint() == 4
