"""A follower becomes the leader with the triggers and events, the former leader its follower, and then back again."""

import re
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import run, run_well, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import until
from tests.integration.producer.test_failover import execute

pytestmark = pytest.mark.integration

NAME = "promotion"


def test_there_and_back(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    first, second = mysql_server(server_id=1), mysql_server(server_id=2)
    # Of so many intervals that entries of the commit log are packed.
    numbers = ":".join(map(str, range(1, 15_000, 2)))
    execute(first, f"SET GLOBAL gtid_purged = '+7e11fa47-71ca-11e1-9e33-c80aa9429562:{numbers}'")
    stream = Stream(tmp_path, kafka, first, second, "auto", "")
    execute(first, f"CREATE DATABASE {NAME}", f"USE {NAME}", "CREATE TABLE t (id INT PRIMARY KEY, by_trigger INT)",
            "CREATE TRIGGER doubles BEFORE INSERT ON t FOR EACH ROW SET NEW.by_trigger = 2 * NEW.id",
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO DELETE FROM t",
            "INSERT INTO t (id) VALUES (1)")  # fmt: skip
    stream.replicate()
    with running("cdc-consumer", stream.target):
        until(lambda: "is in use" in stream.promoted(status=2), what="the consumer's lock")
    execute(second, "SET GLOBAL event_scheduler = ON")
    execute(first, f"INSERT INTO {NAME}.t (id) VALUES (2)")
    refused = stream.promoted(status=2)
    assert "the leader takes writes" in refused
    assert "the topic lacks transactions of the leader: " in refused
    assert "event_scheduler is ON" in refused
    assert execute(second, f"SHOW TRIGGERS IN {NAME}") == []

    back = stream.turned()
    execute(second, f"INSERT INTO {NAME}.t (id) VALUES (3)", f"UPDATE {NAME}.t SET by_trigger = 0 WHERE id = 1")
    back.replicate()
    assert content(first, NAME) == content(second, NAME)
    again = back.turned()
    execute(first, f"INSERT INTO {NAME}.t (id) VALUES (4)")
    again.replicate()
    assert content(first, NAME) == content(second, NAME)
    assert execute(second, f"SELECT * FROM {NAME}.t ORDER BY id") == [(1, 0), (2, 4), (3, 6), (4, 8)]


class Stream:
    """The stream from one server to the other, which begins at ``start``; ``copy`` are the GTIDs of a base copy."""

    def __init__(self, folder: Path, kafka: Kafka, leader: MySql, follower: MySql, start: str, copy: str) -> None:
        self._folder, self._kafka, self.leader, self.follower = folder, kafka, leader, follower
        name = f"{NAME}-{len(list(folder.glob('*source.toml')))}"
        tables = {"filters": {"exclude_dbs": ["cdc"]}, "consumer": {"start": copy, "triggers": "drop"}}
        self.source, self.target = (
            write_profile(folder, server, kafka, name=f"{name}-{end}", topic=name, producer={"start": start}, **tables)
            for server, end in ((leader, "source"), (follower, "target"))
        )

    def replicate(self) -> None:
        run_well("cdc-producer", self.source, "--until-current")
        run_well("cdc-consumer", self.target, "--until-current")

    def promoted(self, *, status: int) -> str:
        done = run("cdc-consumer", self.target, "--promote", "--leader", self.source)
        assert done.returncode == status, done
        return done.stdout + done.stderr

    def turned(self) -> "Stream":
        """Promotes the follower; returns the stream in the other direction, as the output describes it."""
        execute(self.leader, "SET GLOBAL read_only = ON")
        execute(self.follower, "SET GLOBAL event_scheduler = OFF")
        self.replicate()
        told = self.promoted(status=0)
        begins, admins = "producer.start = ", "users with CONNECTION_ADMIN or SUPER can write there"
        assert admins in told
        execute(self.leader, "SET GLOBAL super_read_only = ON")
        again = self.promoted(status=0)
        assert admins not in again
        assert "an earlier --promote began here" in again
        assert told.partition(begins)[2] == again.partition(begins)[2]
        found = re.search(r'producer\.start = "([^"]+)"', told)
        assert found, told
        assert [row[0] for row in execute(self.follower, f"SHOW TRIGGERS IN {NAME}")] == ["doubles"]
        assert len(execute(self.follower, f"SHOW EVENTS IN {NAME}")) == 1
        (question,) = re.findall(r"SELECT GTID_SUBTRACT\(.*\)", told)
        assert execute(self.leader, question) == [("",)]
        execute(self.leader, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF",
                f"DROP TRIGGER {NAME}.doubles", f"DROP EVENT {NAME}.e")  # fmt: skip
        return Stream(self._folder, self._kafka, self.follower, self.leader, found[1], found[1])
