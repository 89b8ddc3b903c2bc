"""cdc-producer where little or nothing moves: quiet leaders, brokers that stay away, commit logs that are not whole.

``CDC_AWAY_SECONDS=180`` keeps servers away for that long.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from cdc.kafka import commit_log
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import position
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import end_offset, records, refused, run_well, running, write_profile
from tests.harness.remote_kafka import RemoteKafka
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

AWAY_SECONDS = float(os.environ.get("CDC_AWAY_SECONDS", "3"))


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def profile_of(folder: Path, leader: MySql, kafka: Kafka, name: str, **producer: object) -> Path:
    """Only the database ``name``, which has a table ``a``; all until now is in the topic, unless it starts now."""
    execute(leader, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.a (i INT PRIMARY KEY)")
    path = write_profile(folder, leader, kafka, name=name, filters={"include_dbs": [name]}, producer=producer)
    run_well("cdc-producer", path, "--until-current")
    return path


def entries(kafka: Kafka, topic: str) -> list[Entry]:
    """The commit log, newest first."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    return list(commit_log.entries(settings, topic=f"{topic}.commits", resource=topic))


def end_of(leader: MySql) -> Position:
    return Position(*position(leader))


def test_what_a_quiet_producer_has_passed_can_be_purged(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    leader = mysql_server()
    path = profile_of(tmp_path, leader, kafka, "quiet")
    execute(leader, "CREATE DATABASE other", "CREATE TABLE other.a (i INT)")

    def caught_up() -> bool:
        return entries(kafka, "quiet")[0].position == end_of(leader)

    with running("cdc-producer", path) as process:
        for write in ("INSERT INTO other.a VALUES (1)", "DO 0"):
            # Filtered out, then nothing at all: both leave files behind that nobody needs.
            execute(leader, "FLUSH BINARY LOGS", write, "FLUSH BINARY LOGS")
            until(caught_up, what="the position of the leader in the commit log")
        assert len(entries(kafka, "quiet")) < 20
        execute(leader, f"PURGE BINARY LOGS TO '{end_of(leader).file}'")
        process.send_signal(signal.SIGKILL)
        process.wait()
    execute(leader, "INSERT INTO quiet.a VALUES (1)")
    run_well("cdc-producer", path, "--until-current")
    assert [record.sequence for record in records(path)] == [0, 1, 2]


@pytest.mark.parametrize("away", ["broker", in_long_runs("leader")])
def test_a_server_that_stays_away(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_at_a_distance: RemoteKafka, away: str
) -> None:
    """In `make test` test_monitor.test_the_producers_health has a leader that goes and comes back."""
    leader, kafka = mysql_server(), kafka_at_a_distance
    path = profile_of(tmp_path, leader, kafka, "away", retry_seconds=int(AWAY_SECONDS) + 60)
    server = kafka if away == "broker" else leader
    with running("cdc-producer", path) as process:
        execute(leader, "INSERT INTO away.a VALUES (-1)")
        until(lambda: len(records(path)) == 3, what="what was there before")
        server.kill()
        back_at = time.monotonic() + AWAY_SECONDS
        written = 0
        while time.monotonic() < back_at:
            if away == "broker":
                execute(leader, f"INSERT INTO away.a VALUES ({written})")
                written += 1
            time.sleep(0.05)  # each of these is a session of its own
            assert process.poll() is None
        server.start()
        execute(leader, f"INSERT INTO away.a VALUES ({written})")
        until(lambda: len(records(path)) == 3 + written + 1, what="what was written meanwhile")
        assert process.poll() is None
    found = records(path)
    assert [record.sequence for record in found] == list(range(len(found)))
    rows = [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]
    assert rows == list(range(-1, written + 1))


@pytest.mark.parametrize("away", [in_long_runs("broker"), "leader"])
def test_a_server_that_stays_away_for_too_long(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_at_a_distance: RemoteKafka, away: str
) -> None:
    """In `make test` test_consumer.test_it_gives_up_when_a_server_stays_away has a broker."""
    leader, kafka = mysql_server(), kafka_at_a_distance
    path = profile_of(tmp_path, leader, kafka, "stays_gone", retry_seconds=2)
    with running("cdc-producer", path) as process:
        execute(leader, "INSERT INTO stays_gone.a VALUES (1)")
        until(lambda: len(records(path)) == 3, what="the row")
        (kafka if away == "broker" else leader).kill()
        assert process.wait(LIMIT_SECONDS) == 4
        assert process.stderr is not None
        last = process.stderr.read().splitlines()[-1]
    assert last.startswith("cdc-producer: [CDC-GAVE-UP] gave up after 2 s")


def configure(kafka: Kafka, topic: str, settings: dict[str, str]) -> None:
    """Set settings of a topic."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    for key, value in settings.items():
        resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET))
    admin = kafka.admin()
    admin.incremental_alter_configs([resource])[resource].result(LIMIT_SECONDS)


@pytest.fixture
def cleaner_in_haste(kafka: Kafka) -> Iterator[None]:
    """The shared broker looks for logs to compact five times a second instead of four times a minute."""
    every, admin = "log.cleaner.backoff.ms", kafka.admin()
    for operation in (AlterConfigOpType.SET, AlterConfigOpType.DELETE):
        resource = ConfigResource(ResourceType.BROKER, "1")
        resource.add_incremental_config(ConfigEntry(every, "200", incremental_operation=operation))
        admin.incremental_alter_configs([resource])[resource].result(LIMIT_SECONDS)
        if operation == AlterConfigOpType.SET:
            yield


def test_a_commit_log_of_which_only_the_newest_is_left(
    tmp_path: Path, leader: MySql, kafka: Kafka, cleaner_in_haste: None
) -> None:
    path = profile_of(tmp_path, leader, kafka, "compacted", start="now")
    often = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "max.compaction.lag.ms": "100"}
    configure(kafka, "compacted.commits", often)
    for number in range(5):
        execute(leader, f"INSERT INTO compacted.a VALUES ({number})")
        run_well("cdc-producer", path, "--until-current")
    written = end_offset(kafka, "compacted.commits")
    until(lambda: len(entries(kafka, "compacted")) < written // 4, what="compaction")
    execute(leader, "INSERT INTO compacted.a VALUES (5)")
    run_well("cdc-producer", path, "--until-current")
    found = records(path)
    assert [record.sequence for record in found] == list(range(len(found)))
    assert [row.after for record in found for row in record.rows] == [[{"SignedInteger": n}] for n in range(6)]


def emptied(kafka: Kafka, topic: str) -> None:
    """Delete all that is in the commit log, as a retention set by mistake does."""
    configure(kafka, f"{topic}.commits", {"cleanup.policy": "delete"})
    admin = kafka.admin()
    place = TopicPartition(f"{topic}.commits", 0, end_offset(kafka, f"{topic}.commits"))
    admin.delete_records([place])[place].result(LIMIT_SECONDS)


def restored(kafka: Kafka, topic: str) -> None:
    """Put an old entry in place of the commit log, as a restored backup does."""
    old = entries(kafka, topic)[-1]
    admin, name = kafka.admin(), f"{topic}.commits"
    admin.delete_topics([name])[name].result(LIMIT_SECONDS)
    until(lambda: name not in admin.list_topics(timeout=LIMIT_SECONDS).topics, what="the topic's end")
    admin.create_topics([NewTopic(name, 1, 1, config={"cleanup.policy": "compact"})])[name].result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    producer.produce(name, old.to_json(), topic.encode())
    assert producer.flush(LIMIT_SECONDS) == 0


def test_a_commit_log_as_it_was_is_gone_on_from(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """What readers see already is compared, and counted."""
    path = profile_of(tmp_path, leader, kafka, "restored", start="now")
    for number in range(2):
        execute(leader, f"INSERT INTO restored.a VALUES ({number})")
        run_well("cdc-producer", path, "--until-current")
    restored(kafka, "restored")
    execute(leader, "INSERT INTO restored.a VALUES (2)")
    run_well("cdc-producer", path, "--until-current")
    found = records(path)
    assert [record.sequence for record in found] == list(range(len(found)))
    assert [row.after for record in found for row in record.rows] == [[{"SignedInteger": n}] for n in range(3)]


def test_it_never_starts_over_where_the_commit_log_is_lost(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    path = profile_of(tmp_path, leader, kafka, "emptied", start="now")
    execute(leader, "INSERT INTO emptied.a VALUES (0)")
    run_well("cdc-producer", path, "--until-current")
    before = records(path)
    emptied(kafka, "emptied")
    line = refused("cdc-producer", path, "--until-current")
    assert "no commit log" in line
    assert "new topic" in line
    assert records(path) == before


def test_two_producers_of_the_same_names_with_a_server_id_each(
    tmp_path: Path, leader: MySql, kafka: Kafka, kafka_broker: KafkaFactory
) -> None:
    """One leader for two Kafka clusters: it ends the older of two dumps that name themselves alike."""
    (tmp_path / "second").mkdir()
    one = profile_of(tmp_path, leader, kafka, "alike", start="now", server_id=11)
    settings = {"filters": {"include_dbs": ["alike"]}, "producer": {"start": "now", "server_id": 12}}
    two = write_profile(tmp_path / "second", leader, kafka_broker(), name="alike", **settings)
    run_well("cdc-producer", two, "--until-current")
    with running("cdc-producer", one) as first, running("cdc-producer", two) as second:
        for number in range(3):
            execute(leader, f"INSERT INTO alike.a VALUES ({number})")
            until(lambda rows=number + 1: len(records(one)) == len(records(two)) == rows, what="the row in both")
        dumps = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' ORDER BY id"
        until(lambda: len(execute(leader, dumps)) == 2, what="the end of the dumps of those who have gone")
        before = execute(leader, dumps)
        time.sleep(2)
        assert execute(leader, dumps) == before
        assert first.poll() is second.poll() is None
