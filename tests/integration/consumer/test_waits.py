"""cdc-consumer in layout ``per_table``, and before there is a topic: what it does while Kafka keeps it waiting."""

import json
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from cdc.config.topic_names import Topics
from cdc.consumer.follower.session import lock_name
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.altered.impatient_consumer import SILENT_SECONDS, impatient
from tests.harness.outside import scrape
from tests.harness.programs import RETRY_SECONDS, refused, running, write_profile
from tests.harness.remote_kafka import RemoteKafka
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.topic import Body, LeaderTopic, Stage, number, text
from tests.harness.wait import LIMIT_SECONDS, uncommitted_rows, until

pytestmark = pytest.mark.integration
COLUMNS = ["id", "name"]


@dataclass(frozen=True)
class Table:
    """A leader's only table, which has a topic of its own, and its commit log; all are called ``name``."""

    name: str
    follower: MySql
    profile: Path
    topic: LeaderTopic
    commits: str
    log: Producer

    @classmethod
    def make(cls, folder: Path, follower: MySql, kafka: Kafka, *, name: str) -> Self:
        names = Topics(name, layout="per_table", prefix=f"{name}.")
        admin = kafka.admin()  # kept while the answer is on its way
        admin.create_topics([NewTopic(names.commits, 1, 1)])[names.commits].result(LIMIT_SECONDS)
        keys = {"layout": "per_table", "prefix": f"{name}.", "topic": name}
        profile = write_profile(folder, follower, kafka, name=name, resource=name, kafka=keys)
        topic = LeaderTopic.create(kafka, names.of_table(name, "t"), resource=name)
        made = cls(
            name, follower, profile, topic, names.commits, Producer({"bootstrap.servers": kafka.bootstrap_servers})
        )
        made.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, name LONGTEXT)")
        return made

    def add(self, id_: int, name: str) -> Body:
        return self.topic.add(f"{self.name}/t", COLUMNS, [number(id_), text(name)], key=["id"])

    def send(self, *records: Body) -> None:
        """Send whole records, and say in the commit log that they are out."""
        for record in records:
            self.log.produce(self.topic.name, json.dumps(record).encode())
        entry = {"next_sequence": records[-1]["sequence"] + 1, "counts": {f"{self.topic.name}/0": 1}}
        self.log.produce(self.commits, json.dumps(entry).encode())
        assert self.log.flush(60) == 0

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        with self.follower.root() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def ids(self) -> list[int]:
        return [id_ for (id_,) in self.execute(f"SELECT id FROM {self.name}.t ORDER BY id")]

    def holder(self) -> int | None:
        """The connection of the consumer that is at work."""
        ((found,),) = self.execute(f"SELECT IS_USED_LOCK('{lock_name(self.name)}')")
        return None if found is None else int(found)


def test_kafka_and_the_follower_are_away_at_once(
    tmp_path: Path, follower: MySql, kafka_at_a_distance: RemoteKafka
) -> None:
    """In the midst of a large transaction, of which parts are executed: they are read anew once Kafka is back."""
    kafka = kafka_at_a_distance
    table = Table.make(tmp_path, follower, kafka, name="both_away")
    records = table.topic.transaction([table.add(id_, "x" * 900_000) for id_ in range(12)])
    table.send(*records[:-1])
    with impatient(table.profile) as log:
        # Its own tables are made before the start: a transaction then is that of the rows.
        until(
            lambda: " start " in log.read_text() and uncommitted_rows(follower, table.holder() or 0) > 4,
            what="a part of the transaction",
        )
        kafka.kill()
        table.execute(f"KILL {table.holder()}")
        until(
            lambda: 'waiting for a server error="Kafka cannot be reached' in log.read_text(), what="the wait for Kafka"
        )
        kafka.start()
        table.send(records[-1])
        until(lambda: table.ids() == list(range(12)), what="all rows")
    assert "no longer waiting" in log.read_text()


def test_the_connection_is_kept_while_a_record_can_not_be_read(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """Another's open transaction hides what comes after it in the topic of a table."""
    table = Table.make(tmp_path, follower, kafka, name="read_later")
    table.send(*table.topic.transaction([table.add(1, "a")]))
    other = Producer({
        "bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "hides", "transaction.timeout.ms": 600_000,
    })  # fmt: skip
    other.init_transactions()
    with impatient(table.profile):
        until(lambda: table.ids() == [1], what="the first row")
        before = table.holder()
        other.begin_transaction()
        other.produce(table.topic.name, b"")
        other.flush()
        table.send(*table.topic.transaction([table.add(2, "b")]))
        time.sleep(SILENT_SECONDS + 2)
        assert (table.holder(), table.ids()) == (before, [1])
        other.abort_transaction()
        until(lambda: table.ids() == [1, 2], what="the second row")
        assert table.holder() == before


def test_kafka_is_away_while_the_topic_is_awaited(
    tmp_path: Path, follower: MySql, kafka_at_a_distance: RemoteKafka
) -> None:
    """And once more when all is applied: then nobody knows whether there is more, so it is not "0 seconds behind"."""
    kafka, log, port = kafka_at_a_distance, tmp_path / "log", free_port()
    profile = write_profile(
        tmp_path, follower, kafka, name="awaited_long", resource="awaited_long", metrics={"port": port}
    )
    with log.open("w") as stderr, running("cdc-consumer", profile, stderr=stderr) as process:
        until(lambda: "waiting for the topic" in log.read_text(), what="the wait for the topic")
        kafka.kill()
        until(lambda: "Kafka cannot be reached" in log.read_text(), what="the wait for Kafka")
        kafka.start()
        LeaderTopic.create(kafka, "awaited_long", resource="awaited_long")
        until(lambda: scrape(port).get("cdc_consumer_behind_seconds") == 0, what="the topic's end")
        kafka.kill()
        until(lambda: scrape(port)["cdc_consumer_behind_seconds"] > 0, what="that there may be more")
        assert scrape(port)["cdc_consumer_waiting"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_follower_that_is_offline_or_gives_no_more_connections(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    """Both are an administrator's doing and pass: neither refuses a row or a statement."""
    stage = Stage.make(tmp_path, follower, kafka, name="offline")
    path, log = stage.create_table("t", "(i INT)"), tmp_path / "log"
    stage.apply()

    def root(statement: str) -> None:
        with follower.root() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def waits_with(code: int) -> bool:
        return f"MySQL error {code})" in log.read_text()

    # The server counts connections only while there is a limit: the consumer's first one must find it.
    root("ALTER USER fluvio@'%' WITH MAX_USER_CONNECTIONS 1")
    with log.open("w") as stderr, running("cdc-consumer", stage.profile, stderr=stderr):
        try:
            until(lambda: " start " in log.read_text(), what="the start")
            stage.topic.send([stage.topic.query("ALTER TABLE t ADD j INT", ("AlterTable", path), database=stage.name)])
            until(lambda: waits_with(1226), what="the statement's own connection is refused")
            root("ALTER USER fluvio@'%' WITH MAX_USER_CONNECTIONS 0")
            until(lambda: stage.checkpoint() == 2, what="the statement")
            root("SET GLOBAL offline_mode = ON")
            stage.topic.send([stage.topic.add(path, ["i", "j"], [number(1), number(2)])])
            until(lambda: waits_with(3032), what="the server takes no users")
        finally:
            root("ALTER USER fluvio@'%' WITH MAX_USER_CONNECTIONS 0")
            root("SET GLOBAL offline_mode = OFF")
        until(lambda: stage.checkpoint() == 3, what="the row")
    assert stage.execute("SELECT i, j FROM t") == [(1, 2)]


def test_a_statement_that_waits_for_a_reader(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """For consumer.retry_seconds, without starting over; the log tells once for whom."""
    follower = mysql_server("--performance-schema=ON")
    stage = Stage.make(tmp_path, follower, kafka, name="reader")
    path, log = stage.create_table("t", "(i INT)"), tmp_path / "log"
    stage.apply()
    stage.topic.send([stage.topic.query("ALTER TABLE t ADD j INT", ("AlterTable", path), database=stage.name)])
    patience = (
        "SELECT VARIABLE_VALUE FROM performance_schema.variables_by_thread JOIN performance_schema.threads "
        "USING (THREAD_ID) WHERE VARIABLE_NAME = 'lock_wait_timeout' AND PROCESSLIST_INFO LIKE 'ALTER TABLE t ADD%'"
    )
    with follower.root(database=stage.name, autocommit=False) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT * FROM t")
        held_by = f"connection {reader.thread_id()} of root@localhost holds reader.t"
        short = write_profile(
            tmp_path, follower, kafka, name="short", resource="reader", topic="reader", consumer={"retry_seconds": 3}
        )
        line = refused("cdc-consumer", short, status=4)
        assert "gave up after 3 s" in line
        assert f"(MySQL error 1205), after 3 s: {held_by}; at the batch after sequence 1; hint: another" in line
        with log.open("w") as stderr, running("cdc-consumer", stage.profile, stderr=stderr):
            until(lambda: "statement waits" in log.read_text(), what="the log line")
            with follower.root() as other, other.cursor() as asks:
                asks.execute(patience)
                assert asks.fetchall() == ((str(RETRY_SECONDS),),)
            reader.rollback()
            until(lambda: stage.checkpoint() == 2, what="the statement")
    assert log.read_text().count("statement waits") == 1
    assert f'state="Waiting for table metadata lock" held_by="{held_by}" seconds={RETRY_SECONDS}' in log.read_text()
