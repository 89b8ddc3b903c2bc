"""A replica takes the follower's place, at the same address, before it has got everything."""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import USER, MySql
from tests.harness.programs import run, running
from tests.harness.relay import Relay
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.topic import Stage, number
from tests.harness.wait import until
from tests.integration.producer.test_failover import catch_up, execute, promote, replicate

pytestmark = pytest.mark.integration


def test_a_replica_that_lacks_the_last_commits(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """Rows and a statement: they are read again, as they would be at a start, and nothing comes twice."""
    first, second = mysql_server(server_id=1), mysql_server(server_id=2)
    replicate(second, source=first)
    log = tmp_path / "log"
    with Relay(first.port) as relay, log.open("w") as stderr:
        stage = Stage.make(tmp_path, first, kafka, name="lagging_replica", database={"port": relay.port})
        path = stage.create_table("t", "(i INT)")

        def add(value: int, columns: str = "i") -> None:
            stage.topic.send([stage.topic.add(path, list(columns), [number(value)] * len(columns))])

        def reached() -> int:
            ((sequence,),) = execute(second, "SELECT sequence FROM cdc.checkpoint")
            return int(sequence)

        add(1)
        with running("cdc-consumer", stage.profile, stderr=stderr) as process:
            until(lambda: " start " in log.read_text() and stage.checkpoint() == 2, what="the first row")
            catch_up(second, source=first)
            execute(second, "STOP REPLICA SQL_THREAD", "SET GLOBAL super_read_only = ON")
            add(2)
            until(lambda: stage.checkpoint() == 3, what="what the replica has not executed yet")
            relay.server = second.port
            relay.strand()
            until(lambda: "MySQL error 1290" in log.read_text(), what="the replica, which nobody may write to")
            execute(second, "START REPLICA SQL_THREAD")
            catch_up(second, source=first)
            until(lambda: "sequence=3 lost=0" in log.read_text(), what="it has executed it by itself")
            # Nothing was committed there: back to the first.
            relay.server = first.port
            relay.strand()
            promote(second)
            execute(second, "SET GLOBAL read_only = OFF")  # and super_read_only, which had set it, with it
            add(3)
            alter = "ALTER TABLE t ADD j INT"
            stage.topic.send([stage.topic.query(alter, ("AlterTable", path), database=stage.name)])
            add(4, "ij")
            until(lambda: stage.checkpoint() == 6, what="what the replica lacks")
            relay.server = second.port
            first.kill()
            until(lambda: process.poll() is not None or reached() == 6, what="the same, again")
            assert process.poll() is None, log.read_text()
            add(5, "ij")
            until(lambda: reached() == 7, what="what comes next")
    found = execute(second, f"SELECT i, j FROM {stage.name}.t ORDER BY i")
    assert found == [(1, None), (2, None), (3, None), (4, 4), (5, 5)]
    assert "sequence=3 lost=3" in log.read_text()


def test_the_replica_that_takes_writes_is_the_follower(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    """A switchover, then a failover to a server that lacks the last row, which is read again; never to one of two."""
    first, second = mysql_server(server_id=1), mysql_server(server_id=2)
    replicate(second, source=first)
    hosts = {"hosts": [f"127.0.0.1:{second.port}"]}
    stage = Stage.make(tmp_path, first, kafka, name="follower_hosts", database=hosts)
    path, log = stage.create_table("t", "(i INT)"), tmp_path / "log"

    def add(value: int) -> None:
        stage.topic.send([stage.topic.add(path, ["i"], [number(value)])])

    def has(server: MySql, *values: int) -> bool:
        return execute(server, f"SELECT i FROM {stage.name}.t ORDER BY i") == [(value,) for value in values]

    execute(second, "SET PERSIST super_read_only = ON")
    with log.open("w") as stderr, running("cdc-consumer", stage.profile, stderr=stderr) as process:
        add(1)
        until(lambda: " start " in log.read_text() and stage.checkpoint() == 2, what="the first row")
        # Our user may write under read_only, and must not.
        execute(first, "GRANT CONNECTION_ADMIN ON *.* TO fluvio", "SET PERSIST read_only = ON")
        catch_up(second, source=first)
        promote(second)
        execute(second, "SET PERSIST super_read_only = OFF", "SET PERSIST read_only = OFF")
        until(lambda: "has read_only now" in log.read_text(), what="the switchover")
        add(2)
        until(lambda: has(second, 1, 2), what="the second row")
        assert f"{USER}@127.0.0.1:{second.port}" in run("cdc-consumer", stage.profile, "--status").stdout
        replicate(first, source=second)
        catch_up(first, source=second)
        execute(first, "STOP REPLICA", "SET PERSIST super_read_only = ON")
        add(3)
        until(lambda: has(second, 1, 2, 3), what="the row that the replica lacks")
        second.kill()
        until(lambda: "no server takes writes" in log.read_text(), what="a wait for a follower")
        promote(first)
        execute(first, "SET PERSIST super_read_only = OFF", "SET PERSIST read_only = OFF")
        until(lambda: has(first, 1, 2, 3), what="the third row, again")
        # The former one comes back as it was.
        second.start()
        cut(first)
        until(lambda: "several servers take writes: " in log.read_text(), what="neither is taken")
        execute(second, "SET PERSIST super_read_only = ON")
        add(4)
        until(lambda: has(first, 1, 2, 3, 4), what="the fourth row")
        assert process.poll() is None
    assert has(second, 1, 2, 3)


def cut(server: MySql) -> None:
    """Ends the consumer's connections."""
    for (connection,) in execute(server, f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{USER}'"):
        execute(server, f"KILL {connection}")
