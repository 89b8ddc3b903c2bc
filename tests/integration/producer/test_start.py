"""Servers that are away when the programs start: these wait, and go on once all are there. What a start asks for."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from cdc.producer.flavor.mariadb_leader import inspect_leader
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from tests.harness.programs import records, running, write_profile
from tests.harness.remote_kafka import RemoteKafka
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_servers_that_come_after_the_programs(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_at_a_distance: RemoteKafka
) -> None:
    """First the server, which is the follower too, and in offline mode for a while (error 3032), then Kafka."""
    leader, kafka = mysql_server(), kafka_at_a_distance
    path = write_profile(tmp_path, leader, kafka, name="started_late")
    apply = write_profile(tmp_path, leader, kafka, name="nothing_to_apply")
    leader.kill()
    kafka.kill()
    with ExitStack() as opened:
        logs = {}
        for program, profile in (("cdc-producer", path), ("cdc-consumer", apply)):
            logs[program] = tmp_path / f"{program}.log"
            opened.enter_context(running(program, profile, stderr=opened.enter_context(logs[program].open("w"))))

        def say(words: str, *programs: str) -> None:
            for program in programs or logs:
                until(lambda program=program: words in logs[program].read_text(), what=f"{program}: {words}")

        say("waiting for a server")
        leader.start()
        say("Kafka")
        execute(leader, "SET GLOBAL offline_mode = ON")
        say("offline mode", "cdc-producer")
        execute(leader, "SET GLOBAL offline_mode = OFF", "CREATE DATABASE late")
        kafka.start()
        say("replicating", "cdc-producer")
        say("waiting for the topic", "cdc-consumer")
        until(lambda: records(path), what="the record")


def test_collations_are_asked_for_once_in_a_start(leader: MySql) -> None:
    """Another server at the same address, or another version of it, may number them otherwise."""
    settings = {"host": "127.0.0.1", "port": leader.port, "user": USER, "password": PASSWORD}
    found = inspect_leader(settings, name="leader")
    before = replace(found, collations={1: ("of", "before")})

    def collations(**differs: str) -> dict[int, tuple[str, str]]:
        return inspect_leader(settings, name="leader", before=replace(before, **differs)).collations

    assert len(found.collations) > 200
    assert collations() == before.collations
    assert collations(server_uuid="another") == collations(version="9.0.1") == found.collations
