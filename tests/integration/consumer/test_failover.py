"""A replica takes the follower's place, at the same address, before it has got everything."""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from tests.harness.programs import running
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
