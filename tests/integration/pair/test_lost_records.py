"""Brokers that lose acknowledged records, as after an unclean election of a leader: what they had is put back to an
earlier state. The producer writes them again from the leader's binlog, which does not have the rows of a copy.
"""

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.harness.long_runs import in_long_runs
from tests.harness.pair import Pair
from tests.harness.programs import refused, run_well
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory

pytestmark = pytest.mark.integration

TABLES = ("lost.a", "lost.b")
MODES: dict[str, dict[str, Any]] = {
    "single": {}, "plain": {"transactions": False}, "per_table": {"layout": "per_table"},
}  # fmt: skip
LOST = {
    "records": ("lost-0", "lost_a-0"),
    "log": ("lost.commits-0",),
    "copy": ("lost-0", "lost_a-0"),
    "both": ("lost-0", "lost_a-0", "lost_b-0", "lost.commits-0"),
}
CASES = [case for case in product(MODES, LOST, (True, False)) if case != ("single", "records", True)]


@pytest.mark.parametrize(
    ("mode", "lost", "applied"), [("single", "records", True), *(in_long_runs(*case) for case in CASES)]
)
def test_a_broker_that_has_lost_acknowledged_records(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_broker: KafkaFactory, mode: str, lost: str, applied: bool
) -> None:
    """``applied``: the follower has applied what is lost."""
    broker, settings = kafka_broker(), {"kafka": MODES[mode]}
    pair = Pair.make(
        tmp_path, mysql_server(server_id=1), mysql_server(server_id=2), broker, name="lost",
        source=settings, target=settings,
    )  # fmt: skip
    pair.on_leader("CREATE DATABASE lost", *(f"CREATE TABLE {table} (i INT PRIMARY KEY)" for table in TABLES))
    insert(pair, 1)
    pair.replicate()
    partitions = [broker.folder / "data" / name for name in LOST[lost]]
    partitions = [each for each in partitions if each.exists()]
    for each in partitions:
        # The indexes of a running broker have 10 MB each, and a broker creates missing ones when it starts.
        shutil.copytree(each, tmp_path / "earlier" / each.name, ignore=shutil.ignore_patterns("*.index", "*.timeindex"))
    insert(pair, *range(2, 8))
    run_well("cdc-producer", pair.source, "--until-current", *(["--copy", "lost.a"] if lost == "copy" else []))
    if applied:
        run_well("cdc-consumer", pair.target, "--until-current")
    broker.stop()
    for each in partitions:
        shutil.rmtree(each)
        shutil.copytree(tmp_path / "earlier" / each.name, each)
    broker.start()

    insert(pair, 8)
    if lost == "copy":
        line = refused("cdc-producer", pair.source, "--until-current", status=3)
        assert "1 records of a copy after sequence 4 are lost" in line
    # With a topic a table, the record that was applied last is in a topic that has lost nothing.
    if applied and (lost == "copy" or (lost == "records" and mode != "per_table")):
        assert "CDC-FOLLOWER-AHEAD" in refused("cdc-consumer", pair.target, "--until-current")
    if lost == "copy":
        return
    pair.replicate()
    assert rows(pair.follower) == rows(pair.leader) == [(number,) for number in range(1, 9)] * 2


def insert(pair: Pair, *numbers: int) -> None:
    pair.on_leader(*(f"INSERT INTO {table} VALUES ({number})" for number in numbers for table in TABLES))


def rows(server: Any) -> list[tuple[int]]:
    with server.root() as connection, connection.cursor() as cursor:
        found = []
        for table in TABLES:
            cursor.execute(f"SELECT i FROM {table} ORDER BY i")
            found += cursor.fetchall()
        return found


@pytest.mark.long
@pytest.mark.parametrize("mode", ["single", "per_table"])
def test_a_follower_of_a_chunk_that_was_read_again_is_refused_and_goes_on_once_the_table_is_copied(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_broker: KafkaFactory, mode: str
) -> None:
    """The time of the chunk is changed on the follower, as if the topic had another one under its number.

    `make test` has test_a_broker_that_has_lost_acknowledged_records, and pure tests of the comparison.
    """
    settings = {"kafka": MODES[mode]}
    pair = Pair.make(
        tmp_path, mysql_server(server_id=1), mysql_server(server_id=2), kafka_broker(), name="lost",
        source=settings, target=settings,
    )  # fmt: skip
    pair.on_leader("CREATE DATABASE lost", *(f"CREATE TABLE {table} (i INT PRIMARY KEY)" for table in TABLES))
    insert(pair, 1)
    run_well("cdc-producer", pair.source, "--until-current", "--copy", "lost.a")
    run_well("cdc-consumer", pair.target, "--until-current")
    insert(pair, 2)
    pair.replicate()
    with pair.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE cdc.chunks SET ts_us = ts_us + 1")
        assert cursor.rowcount == 1
        cursor.execute("DELETE FROM lost.a WHERE i = 1")  # what such a follower may lack
        connection.commit()
    insert(pair, 3)
    run_well("cdc-producer", pair.source, "--until-current")
    assert "CDC-TOPIC-OTHER-CHUNK" in refused("cdc-consumer", pair.target, "--until-current", status=3)
    run_well("cdc-producer", pair.source, "--until-current", "--copy", "lost.a")
    with pair.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM `cdc`.`chunks` WHERE resource='lost'")
        connection.commit()
    run_well("cdc-consumer", pair.target, "--until-current")
    assert rows(pair.follower) == rows(pair.leader) == [(number,) for number in range(1, 4)] * 2
