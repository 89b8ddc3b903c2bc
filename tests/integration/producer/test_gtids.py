"""Transactions by name: GTIDs with tags, and XA transactions, whose rows count when they commit, on real servers."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.leader_settings import gtid_options
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import records, run_well, write_profile
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.integration

SOURCE = "11111111-2222-3333-4444-555555555555"


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def values(profile: Path) -> list[int]:
    """The first column of all rows that were added."""
    return [row.after[0]["SignedInteger"] for record in records(profile) for row in record.rows if row.after]


def tagged(gtids: Iterable[str], *, first: int) -> list[str]:
    return [
        statement
        for number, gtid in enumerate(gtids, first)
        for statement in (f"SET gtid_next = '{gtid}'", f"INSERT INTO d.t VALUES ({number})")
    ]


@pytest.mark.newer("GTIDs with a tag")
def test_gtids_with_a_tag_name_their_transactions_and_the_place_to_go_on(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    leader = mysql_server(server_id=1)
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.t (i BIGINT PRIMARY KEY)")
    profile = write_profile(tmp_path, leader, kafka, name="tagged")
    names = [f"{SOURCE}:a:1", f"{SOURCE}:a_tag_of_32_characters_012345678:70000", f"{SOURCE}:a:9000000000"]
    execute(leader, *tagged(names, first=1), "SET gtid_next = AUTOMATIC", "INSERT INTO d.t VALUES (4)")
    run_well("cdc-producer", profile, "--until-current")
    assert [record.transaction for record in records(profile)][2:5] == names
    # A commit time that a replica keeps is one more field of the event; a new file starts with the tagged set.
    later = ["SET original_commit_timestamp = 1700000000123456", *tagged([f"{SOURCE}:a:2", f"{SOURCE}:b:1"], first=5)]
    execute(leader, "FLUSH BINARY LOGS", *later)
    run_well("cdc-producer", profile, "--until-current")
    assert values(profile) == [1, 2, 3, 4, 5, 6]
    assert [record.transaction for record in records(profile)][-2:] == [f"{SOURCE}:a:2", f"{SOURCE}:b:1"]
    fresh = write_profile(tmp_path, leader, kafka, name="tagged_now", producer={"start": "now"})
    run_well("cdc-producer", fresh, "--until-current")
    execute(leader, *tagged([f"{SOURCE}:b:2"], first=7))
    run_well("cdc-producer", fresh, "--until-current")
    assert values(fresh) == [7]
    assert all(record.ts_us > 1_700_000_000_123_456 for record in records(profile)), "the time of another server"


@pytest.mark.parametrize("gtid_mode", ["ON", in_long_runs("OFF")])
def test_a_prepared_transaction_outlives_stops_of_all(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, gtid_mode: str
) -> None:
    leader = mysql_server(*gtid_options(gtid_mode), server_id=1)
    profile = write_profile(tmp_path, leader, kafka, name=f"prepared_{gtid_mode}")
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.t (i BIGINT PRIMARY KEY)")
    for name, value in (("a", 1), ("b", 2)):
        execute(
            leader,
            f"XA START '{name}'",
            f"INSERT INTO d.t VALUES ({value})",
            f"XA END '{name}'",
            f"XA PREPARE '{name}'",
        )
        run_well("cdc-producer", profile, "--until-current")
    execute(leader, "INSERT INTO d.t VALUES (3)", "FLUSH BINARY LOGS")
    run_well("cdc-producer", profile, "--until-current")
    leader.stop()
    leader.start()
    execute(leader, "XA COMMIT 'b'", "INSERT INTO d.t VALUES (4)", "XA ROLLBACK 'a'", "INSERT INTO d.t VALUES (5)")
    run_well("cdc-producer", profile, "--until-current")
    assert values(profile) == [3, 2, 4, 5]
