"""The commands ``--pause`` and ``--resume`` on real servers: the producer pauses between two transactions, shows it,
and continues.
"""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.harness.outside import health, scrape
from tests.harness.programs import begin_now, change_profile, records, run, run_well, running, write_profile
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def told(profile: Path, command: str) -> str:
    return run("cdc-producer", profile, command).stdout


def test_a_pause(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    name, port = "pausedproducer", free_port()
    profile = write_profile(tmp_path, leader, kafka, name=name, filters={"include_dbs": [name]})
    # An entry shows each second that the producer is alive; no other one of the topic may take over in a pause.
    alive = {"alive_seconds": 1, "heartbeat_seconds": 1, "start": "now"}
    change_profile(profile, metrics={"port": port, "token": "a-token-of-this-test"}, producer=alive)
    begin_now(profile, leader)

    def figure(figure: str) -> float:
        return scrape(port)[f"cdc_producer_{figure}"]

    def insert(*statements: str) -> None:
        with leader.root(database=name) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()

    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    with running("cdc-producer", profile) as process:
        until(lambda: scrape(port).get("cdc_producer_next_sequence") == 2, what="the table")
        assert "pauses between two transactions" in told(profile, "--pause")
        until(lambda: figure("paused") == 1, what="the pause")
        insert("INSERT INTO t VALUES (1), (2)", "INSERT INTO t VALUES (3)")
        status, checks = health(port)
        assert (status, checks["stream"]["says"][:6]) == (200, "paused")
        assert "leader" not in checks
        commits = figure("commit_seconds_count")
        until(lambda: figure("commit_seconds_count") > commits + 1, what="entries that show it alive")
        assert figure("next_sequence") == 2
        assert len(records(profile)) == 2
        assert "reads again" in told(profile, "--resume")
        until(lambda: figure("next_sequence") == 4, what="the rows")
        until(lambda: figure("paused") == 0, what="the end of the pause")
        told(profile, "--pause")
        until(lambda: figure("paused") == 1, what="the second pause")
        insert("INSERT INTO t VALUES (4)")
    # SIGTERM ended it well, while it was paused; the next start is not paused, and nothing is lost or repeated.
    assert process.returncode == 0
    run_well("cdc-producer", profile, "--until-current")
    assert [record.sequence for record in records(profile)] == [0, 1, 2, 3, 4]
