"""What people do while tables are copied: other filters, another leader, foreign keys, unlogged statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import json_lines, own_name, refused, run, run_well, running, write_profile
from tests.harness.replica import Replica
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import until

pytestmark = pytest.mark.integration

_SLOW = {"start": "copy", "copy_rows_per_second": 1}
_COLUMNS = "id INT PRIMARY KEY, n INT"
_ROWS = 60  # of the table amid whose copy something is done: far more than are read meanwhile


@dataclass(frozen=True)
class Copy:
    """A copy of a leader that begins slowly, so that something can be done amid it."""

    folder: Path
    follower: MySql
    kafka: Kafka
    name: str

    def pair(self, leader: MySql, **source: Any) -> Pair:
        """The profiles for ``leader``; ``source`` are tables of the producer's."""
        filters = {"filters": {"include_dbs": [self.name]}}
        tables = filters | {"producer": {"start": "copy"}} | source
        return Pair.make(self.folder, leader, self.follower, self.kafka, name=self.name, source=tables, target=filters)

    def fill(self, leader: MySql, large: str, **definitions: str) -> None:
        """Tables of two rows, and the ``large`` one amid whose copy something is done."""
        made = [f"CREATE TABLE {table} ({columns})" for table, columns in definitions.items()]
        rows = [f"INSERT INTO {table} VALUES {_values(_ROWS if table == large else 2)}" for table in definitions]
        self.pair(leader).on_leader(f"CREATE DATABASE {self.name}", f"USE {self.name}", *made, *rows)

    @contextmanager
    def amid(self, leader: MySql, table: str) -> Iterator[Pair]:
        """The producer runs, and is amid the copy of ``table``."""
        pair = self.pair(leader, producer=_SLOW)
        with running("cdc-producer", pair.source):
            until(lambda: f"{self.name}.{table}: under way" in _status(pair), what=f"the copy of {table} is under way")
            yield pair

    def finish(self, leader: MySql, **source: Any) -> None:
        """The rest of the copy, at full speed; the follower is equal then."""
        self.pair(leader, **source).replicate()
        assert content(self.follower, self.name) == content(leader, self.name)


def _status(pair: Pair) -> str:
    return run("cdc-producer", pair.source, "--copy-status").stdout


def _values(count: int) -> str:
    return ", ".join(f"({number}, {count - number})" for number in range(1, count + 1))


@pytest.fixture
def copy(tmp_path: Path, follower: MySql, kafka: Kafka) -> Copy:
    """Named after the test."""
    return Copy(tmp_path, follower, kafka, own_name(tmp_path))


def test_a_foreign_key_is_added(copy: Copy, leader: MySql) -> None:
    copy.fill(leader, "parent", child="p INT PRIMARY KEY, n INT", parent=_COLUMNS)
    with copy.amid(leader, "parent") as pair:
        pair.on_leader(
            f"INSERT INTO child VALUES ({_ROWS}, 0)", "ALTER TABLE child ADD FOREIGN KEY (p) REFERENCES parent (id)",
            database=copy.name,
        )  # fmt: skip
        until(lambda: "ADD FOREIGN KEY" in "".join(json_lines(pair.source)), what="the statement's record")
    copy.finish(leader)


def test_another_rate_by_a_command(copy: Copy, leader: MySql) -> None:
    """At the rate of the profile the copy would take hours."""
    copy.fill(leader, "b", b=_COLUMNS)
    metrics = {"port": free_port(), "token": "a-token-of-this-test"}
    pair = copy.pair(leader, producer=_SLOW, metrics=metrics)
    pair.on_leader("INSERT INTO b SELECT x.id * 1000 + y.id, 0 FROM b x, b y", database=copy.name)
    with running("cdc-producer", pair.source):
        until(lambda: f"{copy.name}.b: under way" in _status(pair), what="the copy is under way")
        assert "copied without a limit" in run("cdc-producer", pair.source, "--copy-rate", "0").stdout
        until(lambda: "nothing is to be copied" in _status(pair), what="the end of the copy")
    copy.finish(leader)


def test_filters_leave_a_table_out_and_let_it_in_again(copy: Copy, leader: MySql) -> None:
    copy.fill(leader, "b", a=_COLUMNS, b=_COLUMNS)
    with copy.amid(leader, "b"):
        pass
    narrow = copy.pair(leader, filters={"include_tables": [f"{copy.name}.a"]})
    narrow.on_leader("UPDATE b SET n = -n", "UPDATE a SET n = 7", "DELETE FROM b WHERE id < 3", database=copy.name)
    narrow.replicate()
    copy.finish(leader)


def test_a_replica_becomes_the_leader(copy: Copy, mysql_server: MySqlFactory) -> None:
    leader, server = mysql_server(server_id=1), mysql_server(server_id=3)
    replica = Replica.make(leader, server)
    copy.fill(leader, "b", a=_COLUMNS, b=_COLUMNS)
    with copy.amid(leader, "b") as pair:
        pair.on_leader(
            f"UPDATE b SET id = id + 1000 WHERE id IN (1, {_ROWS})", "DELETE FROM b WHERE id = 2", database=copy.name
        )
    replica.catch_up()
    leader.kill()
    promoted = copy.pair(server)
    promoted.on_leader("STOP REPLICA", "UPDATE b SET id = id - 1000 WHERE id > 1000", database=copy.name)
    copy.finish(server)


def test_the_key_is_changed_by_a_statement_that_is_not_logged(copy: Copy, leader: MySql) -> None:
    """As people alter a table on all servers one after the other."""
    copy.fill(leader, "b", a=_COLUMNS, b="id INT PRIMARY KEY, n INT NOT NULL")
    unlogged = "SET sql_log_bin = 0", "ALTER TABLE b DROP PRIMARY KEY, ADD PRIMARY KEY (n)"
    with copy.amid(leader, "b") as pair:
        run_well("cdc-consumer", pair.target, "--until-current")
        pair.on_leader(*unlogged, database=copy.name)
        copied = len(json_lines(pair.source))
        until(lambda: len(json_lines(pair.source)) > copied + 2, what="chunks by the new key")
    assert "another key on the follower" in refused("cdc-consumer", pair.target, "--until-current", status=3)
    pair.on_follower(*unlogged, database=copy.name)
    copy.finish(leader)


@pytest.mark.long
def test_a_follower_that_lacks_rows_is_not_promoted(copy: Copy, leader: MySql) -> None:
    """`make test` has test_promotion.test_there_and_back."""
    copy.fill(leader, "b", b=_COLUMNS)
    with copy.amid(leader, "b") as pair:
        run_well("cdc-consumer", pair.target, "--until-current")
    lost = write_profile(copy.folder, leader, copy.kafka, name="lost", topic=copy.name, database={"port": free_port()})
    refusal = f"[CDC-PROMOTION-NOT-YET] a copy of tables has not ended, so rows may be missing: {copy.name}.b"
    # Other reasons against a promotion stay.
    assert refusal in run("cdc-consumer", pair.target, "--promote", "--leader", pair.source).stdout
    assert refusal in run("cdc-consumer", pair.target, "--promote").stdout
    assert refusal not in run("cdc-consumer", pair.target, "--promote", "--leader", lost).stdout
    copy.finish(leader)
    assert refusal not in run("cdc-consumer", pair.target, "--promote").stdout


def test_a_table_is_renamed_into_the_filters(copy: Copy, leader: MySql) -> None:
    copy.fill(leader, "b", a=_COLUMNS, b=_COLUMNS)
    outside = f"{copy.name}_outside"
    with copy.amid(leader, "b") as pair:
        pass
    pair.on_leader(
        f"CREATE DATABASE {outside}", f"CREATE TABLE {outside}.x (id INT PRIMARY KEY)",
        f"INSERT INTO {outside}.x VALUES (1)", f"RENAME TABLE {outside}.x TO {copy.name}.x",
        f"INSERT INTO {copy.name}.x VALUES (2)",
    )  # fmt: skip
    assert "leave out its new name" in refused("cdc-producer", pair.source, "--until-current", status=3)
    without = copy.pair(leader, filters={"include_dbs": [copy.name], "exclude_tables": [f"{copy.name}.x"]})
    run_well("cdc-producer", without.source, "--until-current")
    copy.finish(leader)
