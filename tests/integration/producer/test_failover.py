"""Another server takes the leader's place, and the first comes back: the stream goes on, or says why it can't."""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from tests.harness.programs import change_profile, end_offset, records, refused, run_well, running, write_profile
from tests.harness.relay import Relay
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

Profile = Callable[..., Path]


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def insert(server: MySql, *numbers: int) -> None:
    execute(server, *(f"INSERT INTO d.a VALUES ({number}, 'x')" for number in numbers))


def replicate(server: MySql, *, source: MySql) -> None:
    """Make ``server`` a native replica of ``source``."""
    execute(
        server,
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port}, SOURCE_USER='{USER}', "
        f"SOURCE_PASSWORD='{PASSWORD}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1",
        "START REPLICA",
    )


def catch_up(server: MySql, *, source: MySql) -> None:
    """Wait until ``server`` has all transactions of ``source``."""
    ((executed,),) = execute(source, "SELECT @@GLOBAL.gtid_executed")
    assert execute(server, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', {LIMIT_SECONDS})") == [(0,)]


def promote(server: MySql) -> None:
    execute(server, "STOP REPLICA", "RESET REPLICA ALL")


@pytest.fixture
def pair(mysql_server: MySqlFactory) -> tuple[MySql, MySql]:
    """A leader with ``d.a``, and its replica."""
    first, second = mysql_server(server_id=1), mysql_server("--binlog-row-event-max-size=3072", server_id=2)
    # Other files and offsets than the first has, and rows cut into other events.
    execute(second, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    replicate(second, source=first)
    execute(first, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY, t CHAR(96))")
    return first, second


@pytest.fixture
def profile(tmp_path: Path, kafka: Kafka, request: pytest.FixtureRequest) -> Profile:
    """The test's profile with a server's address, or another given as ``port``; the topic stays the same."""
    topic = request.node.originalname[5:65]

    def write(server: MySql, *, record_bytes: int = 2_000, **database: Any) -> Path:
        producer = {"commit_bytes": 100_000, "record_bytes": record_bytes}
        name = f"{topic}-{server.server_id}"
        return write_profile(tmp_path, server, kafka, name=name, topic=topic, producer=producer, database=database)

    return write


def keys(path: Path) -> list[int]:
    """The keys in the topic, which must have neither gap nor repeat."""
    found = records(path)
    assert [record.sequence for record in found] == list(range(len(found)))
    return [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]


def test_there_and_back_again(pair: tuple[MySql, MySql], profile: Profile) -> None:
    first, second = pair
    insert(first, 1, 2)
    run_well("cdc-producer", profile(first), "--until-current")
    insert(first, 3)
    catch_up(second, source=first)
    first.kill()
    promote(second)
    insert(second, 4, 5)
    run_well("cdc-producer", profile(second), "--until-current")
    assert keys(profile(second)) == [1, 2, 3, 4, 5]

    first.start()
    replicate(first, source=second)
    insert(second, 6)
    catch_up(first, source=second)
    second.kill()
    promote(first)
    insert(first, 7)
    run_well("cdc-producer", profile(first), "--until-current")
    assert keys(profile(first)) == [1, 2, 3, 4, 5, 6, 7]


def test_behind_the_same_address_while_it_runs(pair: tuple[MySql, MySql], profile: Profile) -> None:
    first, second = pair
    path = profile(first)
    run_well("cdc-producer", path, "--until-current")
    with running("cdc-producer", path) as process:
        insert(first, *range(10))
        until(lambda: keys(path) == list(range(10)), what="what the first leader wrote")
        catch_up(second, source=first)
        first.kill()
        promote(second)
        second.stop()
        second.port = first.port
        second.start()
        insert(second, *range(10, 20))
        until(lambda: keys(path) == list(range(20)), what="what the second leader wrote")
        assert process.poll() is None


def test_a_replica_that_lacks_what_is_out_is_refused(pair: tuple[MySql, MySql], profile: Profile) -> None:
    first, second = pair
    insert(first, 1)
    catch_up(second, source=first)
    promote(second)
    insert(first, 2)
    run_well("cdc-producer", profile(first), "--until-current")
    insert(second, 3)
    line = refused("cdc-producer", profile(second), "--until-current")
    assert "lost binlogs or was replaced" in line
    assert keys(profile(first)) == [1, 2]


def cut_off(path: Path, kafka: Kafka, topic: str, relay: Relay) -> None:
    """Kill a producer, which reads through ``relay``, when a part of a large transaction more is out."""
    before = end_offset(kafka, topic)
    relay.slowly = 0.005  # so that the kill comes in time, however fast the machine is
    with running("cdc-producer", path) as process:
        until(lambda: end_offset(kafka, topic) > before + 50, what="a part of it")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not records(path)[-1].last, "killed too late: the transaction was already through"


def test_a_transaction_that_is_half_out_goes_on_at_another_server(
    pair: tuple[MySql, MySql], profile: Profile, kafka: Kafka, mysql_server: MySqlFactory, tmp_path: Path
) -> None:
    """The replica cuts its rows into other events, and the producer then has another record size, twice."""
    first, second = pair
    path = profile(first)
    topic = "a_transaction_that_is_half_out_goes_on_at_another_server"
    run_well("cdc-producer", path, "--until-current")
    values = ", ".join(f"({number}, REPEAT('x', 90))" for number in range(20_000))
    execute(first, f"INSERT INTO d.a VALUES {values}")
    with Relay(first.port) as relay:
        cut_off(profile(first, port=relay.port), kafka, topic, relay)
    with profile(first).open("a") as file:
        file.write('[filters]\nexclude_tables = ["d.b"]\n')
    assert "partially committed, with other filters" in refused("cdc-producer", path, "--until-current")
    catch_up(second, source=first)
    promote(second)
    first.kill()
    with Relay(second.port) as relay:
        cut_off(profile(second, port=relay.port, record_bytes=1_100), kafka, topic, relay)
    run_well("cdc-producer", profile(second, record_bytes=5_000), "--until-current")
    insert(second, 20_000)
    run_well("cdc-producer", path := profile(second), "--until-current")
    assert keys(path) == list(range(20_001))
    sizes = {len(record.rows) for record in records(path)}
    assert max(sizes) > 30, "the record size did not change"
    follower = mysql_server(server_id=3)
    target = write_profile(tmp_path, follower, kafka, name="target", topic=topic)
    run_well("cdc-consumer", target, "--until-current")
    checksum = "SELECT COUNT(*), SUM(CRC32(CONCAT(i, ' ', t))) FROM {}.a"
    assert execute(follower, checksum.format("d")) == execute(second, checksum.format("d"))


@pytest.mark.newer("RESET BINARY LOGS AND GTIDS")
def test_binlogs_that_are_numbered_anew(mysql_server: MySqlFactory, profile: Profile) -> None:
    """A dump was loaded in place: the files begin again, and the history before them is only named."""
    leader = mysql_server(server_id=1)
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY, t CHAR(96))", *["FLUSH BINARY LOGS"] * 3)
    insert(leader, 1, 2)
    path = profile(leader)
    run_well("cdc-producer", path, "--until-current")
    ((executed,),) = execute(leader, "SELECT @@GLOBAL.gtid_executed")
    execute(leader, "RESET BINARY LOGS AND GTIDS", f"SET GLOBAL gtid_purged = '{executed}'")
    insert(leader, 3)
    run_well("cdc-producer", path, "--until-current")
    assert keys(path) == [1, 2, 3]
    insert(leader, 4)
    run_well("cdc-producer", path, "--until-current")
    assert keys(path) == [1, 2, 3, 4]


def leader_uuid(server: MySql) -> str:
    ((uuid,),) = execute(server, "SELECT @@server_uuid")
    return str(uuid)


def test_a_leader_put_back_to_an_older_state(mysql_server: MySqlFactory, profile: Profile, tmp_path: Path) -> None:
    """It gives the same GTIDs to other transactions, under the same UUID."""
    leader = mysql_server(server_id=1)
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY, t CHAR(96))")
    leader.stop()
    shutil.copytree(leader.data, tmp_path / "copy")
    leader.start()
    insert(leader, *range(5))
    path = profile(leader)
    run_well("cdc-producer", path, "--until-current")
    leader.stop()
    shutil.rmtree(leader.data)
    shutil.copytree(tmp_path / "copy", leader.data)
    leader.start()
    insert(leader, 10)
    # As many as before, and small ones: by its GTIDs alone it is where it was.
    for number in range(4, 8):
        execute(leader, f"SET gtid_next = '{leader_uuid(leader)}:{number}'", "BEGIN", "COMMIT")
    line = refused("cdc-producer", path, "--until-current")
    assert "the leader lost binlogs: " in line
    assert keys(path) == list(range(5))


def test_the_server_that_takes_writes_is_the_leader(pair: tuple[MySql, MySql], profile: Profile) -> None:
    first, second = pair
    execute(second, "SET PERSIST super_read_only = ON")
    path = profile(first, hosts=[f"127.0.0.1:{second.port}"])
    log = path.with_suffix(".log")
    run_well("cdc-producer", path, "--until-current")
    with log.open("w") as errors, running("cdc-producer", path, stderr=errors) as process:
        insert(first, *range(10))
        until(lambda: keys(path) == list(range(10)), what="what the first leader wrote")
        catch_up(second, source=first)
        first.kill()
        until(lambda: "it has read_only" in log.read_text(), what="a wait for a leader")
        promote(second)
        execute(second, "SET PERSIST super_read_only = OFF", "SET PERSIST read_only = OFF")
        insert(second, *range(10, 20))
        until(lambda: keys(path) == list(range(20)), what="what the second leader wrote")
        # They change places again while the producer is connected, and nothing breaks its connection.
        first.start()
        replicate(first, source=second)
        execute(second, "SET PERSIST super_read_only = ON")
        catch_up(first, source=second)
        promote(first)
        insert(first, 20)
        until(lambda: keys(path) == list(range(21)), what="what the first leader wrote again")
        assert process.poll() is None
    # Both take writes, as after a failover by mistake.
    execute(second, "SET PERSIST super_read_only = OFF", "SET PERSIST read_only = OFF")
    change_profile(path, producer={"retry_seconds": 0})
    line = refused("cdc-producer", path, "--until-current", status=4)
    assert f"several servers take writes: {USER}@127.0.0.1:{first.port}, {USER}@127.0.0.1:{second.port}" in line
    execute(second, "SET PERSIST super_read_only = ON")
    # Two addresses may lead to one server.
    change_profile(path, database={"hosts": [f"localhost:{first.port}", f"127.0.0.1:{second.port}"]})
    insert(first, 21)
    run_well("cdc-producer", path, "--until-current")
    assert keys(path) == list(range(22))
