"""Two streams of one leader, each with a database, onto one follower: what connects them is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, change_profile, own_name, run_well, stopped

pytestmark = pytest.mark.integration

ACROSS, LIKE = "CDC-FOLLOWER-KEY-ACROSS-STREAMS", "CDC-FOLLOWER-LIKE-ACROSS-STREAMS"


@pytest.fixture
def pairs(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> list[Pair]:
    """The streams of the databases ``…_a``, with a parent table and its first row on both sides, and ``…_b``."""
    found = []
    for part in "ab":
        name = f"{own_name(tmp_path)}_{part}"
        tables: dict[str, Any] = {"filters": {"include_dbs": [name]}, "producer": {"start": "now"}}
        found.append(Pair.make(tmp_path, leader, follower, kafka, name=name, **tables))
        begin_now(found[-1].source, leader)
    one, other = found
    one.on_leader(f"CREATE DATABASE {name_of(one)}", f"CREATE DATABASE {name_of(other)}")
    one.on_leader("CREATE TABLE parent (id INT PRIMARY KEY)", "INSERT INTO parent VALUES (1)", database=name_of(one))
    for pair in found:
        pair.replicate()
    return found


def name_of(pair: Pair) -> str:
    return pair.source.stem.removesuffix("-source")


def rows(server: MySql, pair: Pair, table: str) -> Any:
    return content(server, name_of(pair))[table]["rows"]


def test_a_foreign_key_between_them_stops_both_until_it_is_dropped(pairs: list[Pair]) -> None:
    one, other = pairs
    key = f"CONSTRAINT k FOREIGN KEY (p) REFERENCES {name_of(one)}.parent (id) ON DELETE CASCADE"
    other.on_leader(
        f"CREATE TABLE child (id INT PRIMARY KEY, p INT, {key})", "INSERT INTO child VALUES (1, 1)",
        database=name_of(other),
    )  # fmt: skip
    drop = f"ALTER TABLE `{name_of(other)}`.`child` DROP FOREIGN KEY `k`"
    one.on_leader("INSERT INTO parent VALUES (2)", database=name_of(one))
    # A producer that knows the other's profile refuses the key before anything is written.
    change_profile(one.source, producer={"beside": [str(other.source)]})
    assert "CDC-STREAMS-FOREIGN-KEY" in stopped("cdc-producer", one.source, "--until-current", status=2)[0]
    change_profile(one.source, producer={"beside": []})
    for pair in (other, one):
        run_well("cdc-producer", pair.source, "--until-current")
        line, _ = stopped("cdc-consumer", pair.target, "--until-current", status=3)
        assert ACROSS in line
        assert drop in line
    one.on_follower("SET sql_log_bin = 0", drop)
    one.on_leader("DELETE FROM parent WHERE id = 2", database=name_of(one))
    for pair, table in ((one, "parent"), (other, "child")):
        pair.replicate()
        assert rows(pair.follower, pair, table) == rows(pair.leader, pair, table)


def test_a_table_like_one_of_the_other_stream_is_made_by_hand(pairs: list[Pair]) -> None:
    one, other = pairs
    other.on_leader(
        f"CREATE TABLE t LIKE {name_of(one)}.parent", "INSERT INTO t VALUES (3)", database=name_of(other)
    )  # fmt: skip
    run_well("cdc-producer", other.source, "--until-current")
    line, _ = stopped("cdc-consumer", other.target, "--until-current", status=3)
    assert LIKE in line
    other.on_follower("CREATE TABLE t (id INT PRIMARY KEY)", database=name_of(other))
    other.replicate("--skip", line.rpartition("--skip ")[2].strip())
    assert content(other.follower, name_of(other)) == content(other.leader, name_of(other))


def test_a_consumer_without_filters_warns_beside_another_stream(pairs: list[Pair]) -> None:
    assert "the follower has other streams, too" not in pairs[0].replicate()
    change_profile(pairs[0].target, filters={"include_dbs": []})
    assert "the follower has other streams, too" in pairs[0].replicate()
