"""A MariaDB leader is replaced by its replica, which goes on in its place; another server is refused."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pymysql
import pytest
import toml

from cdc.config.profile import load
from cdc.errors import Disconnected, UserError
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.flavor.mariadb_history import with_history
from cdc.producer.flavor.mariadb_leader import inspect_leader
from cdc.producer.pipeline import start_of
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql, maria_db
from tests.checks.sequences import broken_places
from tests.generators.maria_history import maria_history
from tests.harness.mariadb import logged_gtids, maria_pair, on, rows
from tests.harness.pair import Pair
from tests.harness.programs import records, refused, run_well, running
from tests.harness.relay import Relay
from tests.harness.seed import SEED
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

HISTORY = 600  # deeds


@pytest.fixture
def pair(mariadb: MySql, follower: MySql, kafka: Kafka, tmp_path: Path) -> Pair:
    pair = maria_pair(tmp_path, mariadb, follower, kafka)
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)", database="maria")
    return pair


@pytest.fixture
def replica(pair: Pair, tmp_path: Path) -> Iterator[MySql]:
    """A replica of the pair's leader, with its whole history."""
    server = maria_db(tmp_path / "replica", server_id=8, find=pair.leader._find).start()
    try:
        with on(server) as cursor:
            cursor.execute(
                f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {pair.leader.port}, "
                f"MASTER_USER = '{USER}', MASTER_PASSWORD = '{PASSWORD}', MASTER_USE_GTID = slave_pos"
            )
            cursor.execute("START SLAVE")
        yield server
    finally:
        server.kill()


def await_replica(pair: Pair, replica: MySql) -> None:
    """Waits until the replica has all that the leader has, and stops it."""
    with on(pair.leader) as cursor:
        cursor.execute("SELECT @@gtid_binlog_pos")
        position = cursor.fetchone()[0]
    with on(replica) as cursor:
        cursor.execute("SELECT MASTER_GTID_WAIT(%s, 120)", (position,))
        assert cursor.fetchone()[0] == 0
        cursor.execute("STOP SLAVE")


def moved_to(pair: Pair, server: MySql) -> Pair:
    """The pair with ``server`` as its leader: the profile names another address, nothing else."""
    profile = toml.loads(pair.source.read_text())
    profile["database"]["port"] = server.port
    pair.source.write_text(toml.dumps(profile))
    return Pair(server, pair.follower, pair.source, pair.target, pair.capture)


def test_a_replica_goes_on_in_the_place_of_its_leader(pair: Pair, replica: MySql) -> None:
    run_well("cdc-producer", pair.source, "--until-current")
    await_replica(pair, replica)
    pair.on_leader("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    pair.on_leader("XA START 'x'", "INSERT INTO t VALUES (2, 2)", "XA END 'x'", "XA PREPARE 'x'", database="maria")
    pair.on_leader("SET gtid_domain_id = 3", "INSERT INTO t VALUES (3, 3)", database="maria")
    run_well("cdc-producer", pair.source, "--until-current")
    # It lacks the last two transactions.
    line = refused("cdc-producer", moved_to(pair, replica).source, "--until-current")
    assert "CDC-LEADER-REPLACED" in line
    assert "a replica that has executed all replicated transactions" in line
    with on(replica) as cursor:
        cursor.execute("START SLAVE")
    pair.on_leader("INSERT INTO t VALUES (4, 4)", database="maria")
    await_replica(pair, replica)
    promoted = moved_to(pair, replica)
    promoted.on_leader("FLUSH BINARY LOGS", "INSERT INTO maria.t VALUES (5, 5)", "XA COMMIT 'x'")
    promoted.replicate()
    assert rows(pair.follower) == rows(replica) == {"t": [(number, number) for number in range(1, 6)]}
    promoted.on_leader("UPDATE maria.t SET n = -n")
    run_well("cdc-producer", pair.source, "--copy", "maria.t")
    promoted.replicate()
    assert rows(pair.follower) == rows(replica)
    assert broken_places(records(pair.source)) == []
    pair.on_leader("XA COMMIT 'x'")


def test_domains_in_another_order_are_sent_once(pair: Pair, replica: MySql) -> None:
    """The place at which the leader ended is no place in the new leader's binlog."""
    run_well("cdc-producer", pair.source, "--until-current")
    await_replica(pair, replica)
    number = int(logged_gtids(pair.leader)[-1].split("-")[2])
    first, other, later = (
        f"SET gtid_domain_id = 0; SET server_id = 7, gtid_seq_no = {number + 1}; INSERT INTO t VALUES (10, 1)",
        "SET gtid_domain_id = 3; SET server_id = 7, gtid_seq_no = 1; INSERT INTO t VALUES (11, 1)",
        f"SET gtid_domain_id = 0; SET server_id = 7, gtid_seq_no = {number + 2}; INSERT INTO t VALUES (12, 1)",
    )
    pair.on_leader(*first.split("; "), *other.split("; "), database="maria")
    run_well("cdc-producer", pair.source, "--until-current")
    promoted = moved_to(pair, replica)
    promoted.on_leader(*first.split("; "), *later.split("; "), *other.split("; "), database="maria")
    run_well("cdc-producer", pair.source, "--until-current")
    promoted.on_leader("INSERT INTO maria.t VALUES (13, 1)")
    promoted.replicate()
    told = list(dict.fromkeys(record.transaction for record in records(pair.source)))
    assert told[-4:] == [f"0-7-{number + 1}", "3-7-1", f"0-7-{number + 2}", f"0-8-{number + 3}"]
    assert rows(pair.follower) == rows(replica)
    assert broken_places(records(pair.source)) == []
    # A producer that ended before the transaction of the other domain asks for what it lacks, too.
    with on(replica) as cursor:
        cursor.execute("SHOW BINLOG EVENTS")
        ends = [(row[0], int(row[4])) for row in cursor.fetchall() if row[2] == "Xid"]
    database = load(pair.source).database
    leader = inspect_leader(database.settings(), name=str(database))
    entry = Entry(9, Position(*ends[-3]), f"0-7:1-{number + 2},3-7:1", leader.server_uuid)
    again = partial(with_history, database.settings(), leader, begins=False)
    assert again(entry) == replace(entry, position=Position(leader.logs[0][0], 0))
    assert again(again(entry)) == again(entry)
    for gtids in (f"0-7:1-{number + 1},3-7:1", f"0-7:1-{number + 2},3-7:2", f"3-7:1,5-7:{number}"):
        with pytest.raises(UserError, match="the leader lost binlogs or was replaced"):
            again(replace(entry, gtid_set=gtids))
    # A stream can't begin beyond 4 GB in a binlog, for which MariaDB names no GTIDs.
    with pytest.raises(UserError) as refused:
        with_history(database.settings(), leader, replace(entry, position=Position(ends[0][0], 1 << 33)), begins=True)
    assert "FLUSH BINARY LOGS" in refused.value.hint
    # The address may lead to another server by the time of this question.
    with pytest.raises(Disconnected, match="another server answers there now, with server_id 8 and not 9"):
        start_of(load(pair.source), replace(leader, server_id=9), entry, {}, stop=threading.Event())


@pytest.mark.long
def test_a_random_history_is_as_on_a_replica_of_its_own(pair: Pair, replica: MySql) -> None:
    """`make test` has test_mariadb.test_types_and_ordinary_statements."""
    taken = 0
    with pair.leader.root(database="maria", charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        for statement in maria_history(SEED, HISTORY):
            with suppress(pymysql.MySQLError):
                cursor.execute(statement)
                taken += 1
        cursor.execute("COMMIT")
    assert taken > HISTORY / 2
    pair.replicate()
    await_replica(pair, replica)
    assert len(records(pair.source)) > HISTORY / 2
    assert rows(pair.follower) == rows(pair.leader) == rows(replica)


def test_rows_of_another_server_at_the_leaders_address_are_not_copied(pair: Pair, replica: MySql) -> None:
    """A proxy, or a name, leads new connections to a replica that is behind, while the stream is still the leader's."""
    run_well("cdc-producer", pair.source, "--until-current")
    await_replica(pair, replica)
    with Relay(pair.leader.port) as relay:
        profile = toml.loads(pair.source.read_text())
        profile["database"]["port"] = relay.port
        pair.source.write_text(toml.dumps(profile))
        with running("cdc-producer", pair.source) as producer:
            pair.on_leader("INSERT INTO maria.t VALUES (2, 2)")
            until(lambda: len(records(pair.source)) == 4, what="the row is in the topic")
            relay.server = replica.port
            run_well("cdc-producer", pair.source, "--copy", "maria.t")
            _, log = producer.communicate(timeout=LIMIT_SECONDS)
    assert "another server answers there now, with server_id 8 and not 7" in log
    assert "CDC-LEADER-REPLACED" in log
    moved_to(pair, pair.leader).replicate()
    assert rows(pair.follower) == rows(pair.leader) == {"t": [(1, 1), (2, 2)]}


def test_a_domain_that_the_leader_has_deleted_does_not_stop_the_stream(pair: Pair) -> None:
    pair.on_leader("SET gtid_domain_id = 3", "INSERT INTO t VALUES (2, 2)", database="maria")
    pair.on_leader("FLUSH BINARY LOGS", "INSERT INTO maria.t VALUES (3, 3)")
    run_well("cdc-producer", pair.source, "--until-current")
    with on(pair.leader) as cursor:
        cursor.execute("SHOW MASTER STATUS")
        cursor.execute(f"PURGE BINARY LOGS TO '{cursor.fetchone()[0]}'")
        cursor.execute("FLUSH BINARY LOGS DELETE_DOMAIN_ID = (3)")
        cursor.execute("SELECT @@gtid_binlog_state")
        assert "3-" not in cursor.fetchone()[0]
    for number in (4, 5):
        pair.on_leader(f"INSERT INTO maria.t VALUES ({number}, {number})")
        pair.replicate()
    assert rows(pair.follower) == rows(pair.leader)
    assert broken_places(records(pair.source)) == []


def test_a_copy_made_of_a_replica_is_attached_by_its_gtids(
    pair: Pair, replica: MySql, kafka: Kafka, tmp_path: Path
) -> None:
    """To a new stream, and to one that has gone on meanwhile. The leader has another server's transactions, too."""
    pair.on_leader("SET server_id = 6", "INSERT INTO t VALUES (2, 2)", database="maria")
    run_well("cdc-producer", pair.source, "--until-current")
    await_replica(pair, replica)
    with on(replica) as cursor:
        cursor.execute("SELECT @@gtid_slave_pos")
        position = cursor.fetchone()[0]
    pair.on_leader("INSERT INTO maria.t VALUES (3, 3)")
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_follower(
        "CREATE DATABASE maria",
        "CREATE TABLE maria.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO maria.t VALUES (1, 1), (2, 2)",
    )
    begun(pair.target, "consumer", position)
    run_well("cdc-consumer", pair.target, "--until-current")
    assert rows(pair.follower) == rows(pair.leader)
    new = Pair.make(tmp_path, pair.leader, pair.follower, kafka, name="new")
    begun(new.source, "producer", position)
    pair.on_follower("DROP DATABASE cdc", "DELETE FROM maria.t WHERE id = 3")
    new.replicate()
    assert rows(pair.follower) == rows(pair.leader)
    earlier = Pair.make(tmp_path, pair.leader, pair.follower, kafka, name="earlier")
    begun(earlier.source, "producer", "0-9-77")
    assert "CDC-LEADER-REPLACED" in refused("cdc-producer", earlier.source, "--until-current")


def begun(profile: Path, program: str, position: str) -> None:
    """Sets the key start of the ``program`` in the profile."""
    keys = toml.loads(profile.read_text())
    keys[program] = keys.get(program, {}) | {"start": position}
    profile.write_text(toml.dumps(keys))
