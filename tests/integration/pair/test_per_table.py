"""A topic a table, on real servers: what goes where, resumed after kills, back in order on the follower and for all."""

import itertools
import json
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from cdc.config.topic_names import Topics
from cdc.consumer.source import reader as kafka_reader
from cdc.consumer.source import record_source
from cdc.consumer.source.reader import KafkaReader
from cdc.consumer.source.record_source import MergedSource, RecordSource, SingleTopic
from cdc.errors import PromiseError
from cdc.kafka.fragments import FRAGMENT_HEADER, Fragments, cut
from cdc.kafka.partitions import backwards
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import after_now, end_offset, records, refused, run_well, running, write_profile
from tests.harness.readable import until_readable
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


class TableTopics:
    """One test's database on the shared leader, its topics (all named after it) and both profiles."""

    def __init__(self, folder: Path, leader: MySql, follower: MySql, kafka: Kafka, name: str, **keys: Any) -> None:
        self.leader, self.follower, self.kafka, self.name = leader, follower, kafka, name
        self._folder = folder
        # Both have it before the capture begins: a fresh follower starts from a copy.
        execute(leader, f"CREATE DATABASE {name}")
        execute(follower, f"CREATE DATABASE {name}")
        self._start = after_now(leader)
        self.producer = self.profile("producer", leader, **keys)
        self.consumer = self.profile("consumer", follower, **keys)

    def profile(self, program: str, server: MySql, **keys: Any) -> Path:
        none = [f"{self.name}.none_{number}" for number in range(keys.pop("excluded", 0))]
        kafka = {"layout": "per_table", "prefix": f"{self.name}.", "topic": self.name} | keys
        filters = {"include_dbs": [self.name], "exclude_tables": none}
        return write_profile(
            self._folder, server, self.kafka, name=program, resource=self.name, kafka=kafka, filters=filters,
            producer={"start": self._start, "message_bytes": 1000},
        )  # fmt: skip

    def execute(self, *statements: str) -> None:
        execute(self.leader, *statements, database=self.name)

    def messages(self, topic: str) -> list[tuple[int, str, dict[str, str], dict[str, Any]]]:
        """(partition, key, headers, value) of a topic's committed records."""
        return read(self.kafka, f"{self.name}.{topic}")

    def topics(self) -> set[str]:
        found = self.kafka.admin().list_topics(timeout=LIMIT_SECONDS).topics
        return {name.removeprefix(f"{self.name}.") for name in found if name.startswith(f"{self.name}.")}


@pytest.fixture
def stage(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, request: pytest.FixtureRequest) -> TableTopics:
    name = request.node.originalname.removeprefix("test_").replace("_", "")[:40] + str(
        getattr(request, "param_index", "")
    )
    return TableTopics(tmp_path, leader, follower, kafka, name, **getattr(request, "param", {}))


def execute(server: MySql, *statements: str, database: str | None = None) -> None:
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def read(kafka: Kafka, topic: str) -> list[tuple[int, str, dict[str, str], dict[str, Any]]]:
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True,
        "isolation.level": "read_committed",
    })  # fmt: skip
    partitions = consumer.list_topics(topic, timeout=LIMIT_SECONDS).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    fragments, found, ended = Fragments(), [], 0
    while ended < len(partitions):
        read = consumer.poll(LIMIT_SECONDS)
        assert read is not None
        if read.error():
            ended += 1
            continue
        message = fragments.whole(read)
        if message is None:
            continue
        headers = {name: json.loads(text) for name, text in message.headers() or [] if name.startswith("mysql_")}
        found.append((message.partition(), (message.key() or b"").decode(), headers, json.loads(message.value())))
    consumer.close()
    return found


def test_each_table_has_its_topic_and_the_follower_the_order(stage: TableTopics) -> None:
    stage.execute(
        "CREATE TABLE a (i INT PRIMARY KEY, t TEXT)",
        "CREATE TABLE b (i INT PRIMARY KEY)",
        "CREATE TABLE c (t TEXT)",
        "BEGIN",
        "INSERT INTO a VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO b VALUES (1)",
        "UPDATE a SET t = 'zwei' WHERE i = 2",
        "INSERT INTO c VALUES ('x'), ('x')",
        "COMMIT",
        "ALTER TABLE b ADD COLUMN n INT DEFAULT 5",
        "INSERT INTO b VALUES (2, 2)",
        "RENAME TABLE c TO d",
        "INSERT INTO d VALUES ('y')",
        "DROP TABLE IF EXISTS a, nothing",
    )
    run_well("cdc-producer", stage.producer, "--until-current")
    name = stage.name
    assert stage.topics() >= {f"{name}_{table}" for table in "abcd"} | {"mysql_binlog_events"}

    operations = {
        topic: [next(iter(value["operation"])) for _, _, _, value in stage.messages(topic)]
        for topic in (f"{name}_a", f"{name}_b", f"{name}_c", f"{name}_d", "mysql_binlog_events")
    }
    assert operations == {
        f"{name}_a": ["Query", "Add", "Update"],
        f"{name}_b": ["Query", "Add", "Query", "Add"],
        f"{name}_c": ["Query", "Add"],
        f"{name}_d": ["Add"],
        "mysql_binlog_events": ["Query", "Query"],
    }
    _, key, headers, value = stage.messages(f"{name}_a")[1]
    assert key == value["uri"] == f"flv://{name}/{name}/a"
    assert headers["mysql_binlog_headers"]["event_type"] == 30
    assert [record.sequence for record in records(stage.producer)] == list(range(12))

    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, name) == content(stage.follower, name)
    stage.execute("INSERT INTO b VALUES (3, 3)", "CREATE TABLE e (i INT PRIMARY KEY)", "INSERT INTO e VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, name) == content(stage.follower, name)


@pytest.mark.parametrize("stage", [{"partitions": 3, "excluded": 1_500}], indirect=True)
def test_partitions_are_merged_again(stage: TableTopics) -> None:
    """Also where the commit log's entries are so large that they are packed."""
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)", "CREATE TABLE b (i INT PRIMARY KEY)")
    for number in range(10):
        stage.execute(f"INSERT INTO a VALUES ({number})", f"UPDATE a SET i = i + 100 WHERE i = {number}")
    stage.execute("INSERT INTO b VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    held = stage.messages(f"{stage.name}_a")
    assert {partition for partition, *_ in held} == {0, 1, 2}
    assert sorted(value["sequence"] for _, _, _, value in held) == [0, *range(2, 22)]
    assert [record.sequence for record in records(stage.producer)] == list(range(23))
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)
    newest = next(backwards({"bootstrap.servers": stage.kafka.bootstrap_servers}, (f"{stage.name}.commits", 0)))
    assert json.loads(newest.value() or b"").keys() == {"version", "next_sequence", "packed"}


@pytest.mark.long
def test_a_running_pair_meets_new_tables_and_kills(stage: TableTopics) -> None:
    """New topics in the middle of a run, both programs killed at any moment: the follower ends as the leader.

    In `make test` test_crash.test_random_kills has both, with a topic for each table.
    """
    enough = threading.Event()

    def load() -> None:
        for number in itertools.count():
            table = f"t{number % 12}"
            stage.execute(
                f"CREATE TABLE IF NOT EXISTS {table} (i INT PRIMARY KEY, t TEXT)",
                "BEGIN",
                # Every fifth record is several messages.
                *(
                    f"INSERT INTO t{other} VALUES ({number}, REPEAT('ü', {2000 * (number % 5 == 0)}))"
                    for other in range(min(number, 11) + 1)
                ),
                "COMMIT",
            )
            if enough.is_set() and number > 12:
                return

    with threading_of(load):
        try:
            for _ in range(4):
                killed_after_some_commits(stage)
        finally:
            enough.set()
    run_well("cdc-producer", stage.producer, "--until-current")
    found = records(stage.producer)
    assert [record.sequence for record in found] == list(range(len(found)))
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)


def test_names_that_collide_or_that_kafka_forbids(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """The prefix is that of the commit log, too: all names are as they are without one, and no other test has them."""
    leader, follower, prefix = mysql_server(server_id=1), mysql_server(server_id=2), "collide."
    long = "я" * 64
    names = [("a", "b_c"), ("a_b", "c"), ("a", "B_c"), ("a", "b.c"), ("a", "é x"), (long, long), ("a", "commits")]
    for database, table in names:
        execute(leader, f"CREATE DATABASE IF NOT EXISTS `{database}`", f"CREATE TABLE `{database}`.`{table}` (i INT)")
        execute(leader, f"INSERT INTO `{database}`.`{table}` VALUES ({len(table)})")
    keys = {"topic": f"{prefix}a", "resource": "a", "kafka": {"layout": "per_table", "prefix": prefix}}
    source = write_profile(tmp_path, leader, kafka, name="source", **keys)
    target = write_profile(tmp_path, follower, kafka, name="target", **keys)
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    found = kafka.admin().list_topics(timeout=LIMIT_SECONDS).topics
    topics = [name.removeprefix(prefix) for name in found if name.startswith(prefix)]
    assert len(topics) == len(names) + 2
    assert {"a_b_c", "a_B_c", "a.commits", "mysql_binlog_events"} < set(topics)
    for database in ("a", "a_b", long):
        assert content(leader, database) == content(follower, database)


def test_another_leaders_topics_are_refused(stage: TableTopics, mysql_server: MySqlFactory, tmp_path: Path) -> None:
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    other = mysql_server()
    execute(other, f"CREATE DATABASE {stage.name}", f"CREATE TABLE {stage.name}.a (i INT PRIMARY KEY)")
    keys = {
        "layout": "per_table",
        "prefix": f"{stage.name}.",
        "topic": f"{stage.name}-2",
        "tables": [f"{stage.name}.*"],
    }
    path = write_profile(tmp_path, other, stage.kafka, name="other", resource="other", kafka=keys)
    line = refused("cdc-producer", path, "--until-current")
    assert "messages that this producer did not write" in line
    assert "kafka.prefix" in line
    assert {value["uri"].split("/")[2] for *_, value in stage.messages(f"{stage.name}_a")} == {stage.name}


def test_a_topic_that_is_lost_or_of_another_layout_is_refused(stage: TableTopics) -> None:
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    run_well("cdc-consumer", stage.consumer, "--until-current")
    single = stage.profile("single", stage.leader, layout="single")
    assert "another layout" in refused("cdc-producer", single, "--until-current")
    topic = f"{stage.name}.{stage.name}_a"
    admin = stage.kafka.admin()
    admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
    until(lambda: topic not in admin.list_topics(timeout=LIMIT_SECONDS).topics, what="the topic's end")
    assert "it was deleted" in refused("cdc-producer", stage.producer, "--until-current")
    assert "deleted, or created again" in refused("cdc-consumer", stage.consumer, "--until-current")
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT_SECONDS)
    assert "deleted or emptied" in refused("cdc-producer", stage.producer, "--until-current")
    assert "deleted, or created again" in refused("cdc-consumer", stage.consumer, "--until-current")


def test_a_gap_stops_the_consumer(stage: TableTopics) -> None:
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)", "CREATE TABLE b (i INT PRIMARY KEY)")
    stage.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    admin = stage.kafka.admin()
    place = TopicPartition(f"{stage.name}.{stage.name}_a", 0, 1)
    (deleted,) = admin.delete_records([place]).values()
    deleted.result(LIMIT_SECONDS)
    line = refused("cdc-consumer", stage.consumer, "--until-current", status=3)
    assert "a gap: sequence 0 is committed, but in no topic" in line


def test_a_transaction_that_kafka_ended_in_some_topics_only_is_completed(stage: TableTopics) -> None:
    """Readers see a part of a transaction: what is missing is written again, and what they see is not."""
    shadow = {"topic": f"{stage.name}-shadow", "prefix": f"{stage.name}-shadow."}
    other = stage.profile("shadow", stage.leader, **shadow)
    run_well("cdc-producer", other, "--until-current")
    stage.execute(
        "CREATE TABLE a (i INT PRIMARY KEY, t TEXT)", "CREATE TABLE b (i INT PRIMARY KEY)", "INSERT INTO b VALUES (0)"
    )
    for path in (stage.producer, other):
        run_well("cdc-producer", path, "--until-current")
    # A second stream of the same leader has the very messages that ours would have next.
    before = {topic: len(raw(stage.kafka, topic)) for topic in tables(stage, shadow["prefix"])}
    insert = "INSERT INTO a VALUES (1, REPEAT('x', 3000))"  # several messages
    stage.execute("BEGIN", insert, "INSERT INTO b VALUES (1)", "UPDATE a SET i = 2", "COMMIT")
    run_well("cdc-producer", other, "--until-current")
    seen, hidden = (raw(stage.kafka, topic)[before[topic] :] for topic in tables(stage, shadow["prefix"]))
    assert len(seen) > 8
    entry = entry_of(stage, shadow)
    ours = tables(stage, f"{stage.name}.")
    leave_half(stage, seen={ours[0]: seen}, hidden={ours[1]: hidden, f"{stage.name}.commits": [entry]})
    assert [len(raw(stage.kafka, topic)) for topic in ours] == [1 + len(seen), 2]

    stage.execute("INSERT INTO a VALUES (3, '')")
    run_well("cdc-producer", stage.producer, "--until-current")
    found = records(stage.producer)
    assert [record.sequence for record in found] == list(range(7))
    assert sum(len(raw(stage.kafka, topic)) for topic in ours) == 5 + len(seen)
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)


def test_a_transaction_that_kafka_ended_in_a_new_topic_only_is_completed(stage: TableTopics) -> None:
    """No entry of the commit log that counts names the topic, yet what is in it is ours."""
    shadow = {"topic": f"{stage.name}-shadow", "prefix": f"{stage.name}-shadow."}
    other = stage.profile("shadow", stage.leader, **shadow)
    run_well("cdc-producer", other, "--until-current")
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)", "INSERT INTO a VALUES (0)")
    for path in (stage.producer, other):
        run_well("cdc-producer", path, "--until-current")
    stage.execute("INSERT INTO a VALUES (1)", "CREATE TABLE b (i INT PRIMARY KEY)", "INSERT INTO b VALUES (1)")
    run_well("cdc-producer", other, "--until-current")
    hidden, seen = (raw(stage.kafka, topic) for topic in tables(stage, shadow["prefix"]))
    entry = entry_of(stage, shadow)
    ours = tables(stage, f"{stage.name}.")
    admin = stage.kafka.admin()
    admin.create_topics([NewTopic(ours[1], 1, 1)])[ours[1]].result(LIMIT_SECONDS)
    leave_half(stage, seen={ours[1]: seen}, hidden={ours[0]: hidden[2:], f"{stage.name}.commits": [entry]})
    assert [len(raw(stage.kafka, topic)) for topic in ours] == [2, 2]

    run_well("cdc-producer", stage.producer, "--until-current")
    assert [record.sequence for record in records(stage.producer)] == list(range(5))
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)


def test_a_consumer_waits_for_what_the_producer_writes_again(stage: TableTopics) -> None:
    """An entry of the commit log is visible, and the records of one topic that it counts are rolled back."""
    shadow = {"topic": f"{stage.name}-shadow", "prefix": f"{stage.name}-shadow."}
    other = stage.profile("shadow", stage.leader, **shadow)
    run_well("cdc-producer", other, "--until-current")
    stage.execute(
        "CREATE TABLE a (i INT PRIMARY KEY)", "CREATE TABLE b (i INT PRIMARY KEY)", "INSERT INTO b VALUES (0)"
    )
    for path in (stage.producer, other):
        run_well("cdc-producer", path, "--until-current")
    before = {topic: len(raw(stage.kafka, topic)) for topic in tables(stage, shadow["prefix"])}
    stage.execute("BEGIN", "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)", "UPDATE a SET i = 2", "COMMIT")
    run_well("cdc-producer", other, "--until-current")
    seen, hidden = (raw(stage.kafka, topic)[before[topic] :] for topic in tables(stage, shadow["prefix"]))
    ours = tables(stage, f"{stage.name}.")
    leave_half(
        stage, seen={ours[0]: seen, f"{stage.name}.commits": [entry_of(stage, shadow)]}, hidden={ours[1]: hidden}
    )

    log = stage.consumer.with_suffix(".log")
    with log.open("w") as errors, running("cdc-consumer", stage.consumer, stderr=errors) as consumer:
        until(
            lambda: consumer.poll() is not None or "waiting for cdc-producer" in log.read_text(),
            what="the consumer's wait",
        )
        run_well("cdc-producer", stage.producer, "--until-current")
        until(
            lambda: (
                consumer.poll() is not None or content(stage.leader, stage.name) == content(stage.follower, stage.name)
            ),
            what="the records on the follower",
        )
        assert consumer.poll() is None, log.read_text()


def tables(stage: TableTopics, prefix: str) -> list[str]:
    return [f"{prefix}{stage.name}_{table}" for table in "ab"]


Raw = tuple[bytes | None, bytes, Any]


def raw(kafka: Kafka, topic: str) -> list[Raw]:
    """Key, value and headers of a topic's committed messages in its first partition."""
    found = backwards({"bootstrap.servers": kafka.bootstrap_servers}, (topic, 0))
    return [(message.key(), message.value() or b"", message.headers()) for message in found][::-1]


def entry_of(stage: TableTopics, shadow: dict[str, str]) -> Raw:
    """The newest entry of the shadow's commit log, as ours would be."""
    (*_, (key, value, headers)) = raw(stage.kafka, f"{shadow['topic']}.commits")
    return key, value.replace(shadow["prefix"].encode(), f"{stage.name}.".encode()), headers


def leave_half(stage: TableTopics, *, seen: dict[str, list[Raw]], hidden: dict[str, list[Raw]]) -> None:
    """What a broker leaves that lost some of a transaction's ends: ``seen`` is committed, ``hidden`` has no end."""
    name = f"cdc-producer:{stage.name}:{stage.name}"
    producer = Producer({"bootstrap.servers": stage.kafka.bootstrap_servers, "transactional.id": name})
    producer.init_transactions()
    for topics in (seen, hidden):
        producer.begin_transaction()
        for topic, messages in topics.items():
            for key, value, headers in messages:
                producer.produce(topic, value, key, headers=headers or [])
        producer.flush()
        if topics is seen:
            producer.commit_transaction()


@pytest.mark.parametrize("stage", [{"events": True}, in_long_runs({"events": True, "layout": "single"})], indirect=True)
def test_the_binlogs_other_events_are_shown_once_each(stage: TableTopics) -> None:
    # Events alone may be out before any record is.
    execute(stage.leader, "FLUSH BINARY LOGS")
    run_well("cdc-producer", stage.producer, "--until-current")
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)")
    for number in range(3):
        stage.execute(f"INSERT INTO a VALUES ({number})", "FLUSH BINARY LOGS", "SET binlog_rows_query_log_events = ON",
                      f"UPDATE a SET i = i + 10 WHERE i = {number}")  # fmt: skip
        with running("cdc-producer", stage.producer) as producer:
            until(lambda number=number: len(records(stage.producer)) == 3 + 2 * number, what="the changes")
            producer.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
            producer.wait()
    run_well("cdc-producer", stage.producer, "--until-current")

    shown = [value for _, _, _, value in stage.messages("mysql_binlog_events") if "event" in value]
    assert all(value["uri"] == f"flv://{stage.name}" and "sequence" not in value for value in shown)
    placed = [
        (value["bn_file"]["fileName"], value["bn_file"]["offset"]) for value in shown if value["bn_file"]["offset"]
    ]
    assert len(placed) == len(set(placed))
    assert placed == sorted(placed)
    # Before the first transaction that is ours, the leader sends its file's head alone.
    first = next(
        (value["bn_file"]["fileName"], value["bn_file"]["offset"]) for value in shown if "Gtid" in value["event"]
    )
    assert set(server_events(stage.leader, first=first)) <= set(placed)
    kinds = {next(iter(value["event"])) for value in shown}
    assert {"Rotate", "FormatDescription", "PreviousGtids", "Gtid", "Xid", "RowsQuery"} <= kinds
    (rows_query, *_) = [value["event"]["RowsQuery"] for value in shown if "RowsQuery" in value["event"]]
    assert rows_query == {"length": 1 + len("UPDATE a SET i = i + 10 WHERE i = 0")}
    assert [record.sequence for record in records(stage.producer)] == list(range(7))
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)


@pytest.mark.parametrize("stage", [in_long_runs({"events": True}), {"events": True, "layout": "single"}], indirect=True)
def test_another_prefix_and_back(stage: TableTopics) -> None:
    execute(stage.leader, "FLUSH BINARY LOGS")
    layout = {"layout": "single"} if "single" in stage.producer.read_text() else {}
    for number, prefix in enumerate(["", "", "other.", "other.", "", ""]):
        prefixed = stage.profile("producer", stage.leader, events=True, prefix=f"{stage.name}.{prefix}", **layout)
        # Events alone may be out before any record is.
        if number:
            stage.execute(f"CREATE TABLE t{number} (i INT)")
        execute(stage.leader, "FLUSH BINARY LOGS")
        run_well("cdc-producer", prefixed, "--until-current")
        assert [record.sequence for record in records(prefixed)] == list(range(number))
    for prefix in ("", "other."):
        assert [value for _, _, _, value in stage.messages(f"{prefix}mysql_binlog_events") if "event" in value]


def server_events(server: MySql, *, first: tuple[str, int]) -> Iterator[tuple[str, int]]:
    """Where the server says that its events of the kinds that are shown begin, from ``first`` on."""
    kinds = {b"Rotate", b"Format_desc", b"Previous_gtids", b"Gtid", b"Xid", b"Rows_query"}
    # What other tests wrote need not be text.
    with server.root(use_unicode=False) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        for file in [row[0].decode() for row in cursor.fetchall()]:
            if file < first[0]:
                continue
            cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
            yield from ((file, row[1]) for row in cursor.fetchall() if row[2] in kinds and (file, row[1]) >= first)


@pytest.mark.parametrize("stage", [{}, {"layout": "single"}], indirect=True)
def test_a_message_that_is_no_record_is_cut_off(stage: TableTopics) -> None:
    """It stops both programs until it is deleted, with what every follower has applied before it."""
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    topic = stage.name if "single" in stage.producer.read_text() else f"{stage.name}.{stage.name}_a"
    stranger = Producer({"bootstrap.servers": stage.kafka.bootstrap_servers})
    stranger.produce(topic, b"hello")
    stranger.flush()
    for program, profile in (("cdc-producer", stage.producer), ("cdc-consumer", stage.consumer)):
        line = refused(program, profile, "--until-current", status=3)
        assert "not a record" in line
        assert "kafka-delete-records.sh" in line
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)
    admin = stage.kafka.admin()
    (cut,) = admin.delete_records([TopicPartition(topic, 0, OFFSET_END)]).values()
    cut.result(LIMIT_SECONDS)
    stage.execute("INSERT INTO a VALUES (2)")
    run_well("cdc-producer", stage.producer, "--until-current")
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)


def test_retention_in_the_topic_of_a_quiet_table(stage: TableTopics) -> None:
    stage.execute("CREATE TABLE a (i INT PRIMARY KEY)", "CREATE TABLE b (i INT PRIMARY KEY)")
    stage.execute("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
    run_well("cdc-producer", stage.producer, "--until-current")
    run_well("cdc-consumer", stage.consumer, "--until-current")

    def cut(table: str) -> None:
        admin, topic = stage.kafka.admin(), f"{stage.name}.{stage.name}_{table}"
        for done in admin.delete_records([TopicPartition(topic, 0, OFFSET_END)]).values():
            done.result(LIMIT_SECONDS)

    cut("a")
    stage.execute("INSERT INTO b VALUES (2)")
    run_well("cdc-producer", stage.producer, "--until-current")
    run_well("cdc-consumer", stage.consumer, "--until-current")
    assert content(stage.leader, stage.name) == content(stage.follower, stage.name)
    stage.execute("INSERT INTO a VALUES (2)", "INSERT INTO b VALUES (3)")
    run_well("cdc-producer", stage.producer, "--until-current")
    cut("a")
    line = refused("cdc-consumer", stage.consumer, "--until-current", status=3)
    assert "sequence 5 is committed, but in no topic" in line


def test_a_topic_that_is_far_ahead_is_paused(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Topics("ahead", layout="per_table", prefix="ahead.")
    first, second = names.of_table("d", "a"), names.of_table("d", "b")
    # Whichever is read first has to wait for the other.
    held = {first: [*range(4000), *range(12_000, 16_000)], second: [*range(4000, 12_000)]}
    written(kafka, names, held)
    monkeypatch.setattr(record_source, "_MOST_BYTES", 50_000)
    with reader(kafka) as connection:
        source = record_source.MergedSource(connection, names)
        topic = source.topic()
        assert topic is not None
        source.start(topic, {}, sequence=0, until_current=True)
        found, most = [], 0
        for located in source.records(threading.Event()):
            most = max(most, source._merged.waiting_bytes)
            if located is not None:
                found.append(located.record.sequence)
    assert found == list(range(16_000))
    # Two lists of messages more than the limit, at most, one of each topic: 1001 messages of less than 230 bytes.
    assert 50_000 < most < 50_000 + 2 * 1001 * 230


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_what_is_read_ahead_ends_where_it_is_to_end(kafka: Kafka, layout: str) -> None:
    """The follower is slow, so that there is always more here than was given out."""
    names = Topics(f"ends_{layout}", layout="per_table", prefix=f"ends_{layout}.")
    topic = names.of_table("d", "a")
    written(kafka, names, {topic: [*range(6000)]})

    def given_out(stop_at: int, end: int | None = None) -> list[int]:
        with reader(kafka) as connection:
            source: RecordSource = (
                SingleTopic(connection, topic) if layout == "single" else MergedSource(connection, names)
            )
            main = source.topic()
            assert main is not None
            if end is not None:
                main = replace(main, ranges={0: (0, end)})
            source.start(main, {}, sequence=0, until_current=end is not None)
            found, stop = [], threading.Event()
            for located in source.records(stop):
                while source.read_ahead():
                    pass
                if located is not None:
                    found.append(located.record.sequence)
                if len(found) == stop_at:
                    stop.set()
            return found

    assert given_out(1500) == list(range(1500))
    if layout == "single":  # of many topics the commit log says where the end is
        assert given_out(6000, end=3000) == list(range(3000))


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_a_topic_that_is_deleted_while_it_is_quiet(kafka: Kafka, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_reader, "_TOPICS_SECONDS", 0.5)
    names = Topics(f"deleted_{layout}", layout="per_table", prefix=f"deleted_{layout}.")
    topic = names.of_table("d", "a")
    written(kafka, names, {topic: [0]})
    with reader(kafka) as connection:
        source: RecordSource = SingleTopic(connection, topic) if layout == "single" else MergedSource(connection, names)
        main = source.topic()
        assert main is not None
        source.start(main, {}, sequence=0, until_current=False)
        found = source.records(threading.Event())
        until(lambda: next(found) is not None, what="the record")
        until(lambda: next(found) is None, what="the topic's end")
        admin = kafka.admin()
        admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
        with pytest.raises(PromiseError, match=f"the topic was deleted while reading; at topic {topic} on"):
            until(lambda: next(found) is not None, what="the topic to be missed")


def reader(kafka: Kafka) -> KafkaReader:
    servers = kafka.bootstrap_servers
    return KafkaReader(bootstrap_servers=servers, group="reader", properties={}, retry_seconds=10, commits="none")


def written(kafka: Kafka, names: Topics, held: dict[str, list[int]]) -> None:
    """Topics with records of these sequences, and a commit log that speaks of them."""
    admin = kafka.admin()
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in (*held, names.commits)]).values():
        made.result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": names.topic})
    producer.init_transactions()
    producer.begin_transaction()
    for topic, sequences in held.items():
        for sequence in sequences:
            record = {
                "uri": "flv://srv/d/t",
                "sequence": sequence,
                "bn_file": {"fileName": "binlog.000001", "offset": 4},
                "transaction": {"id": f"u:{sequence + 1}", "index": 0, "last": True, "ts_us": 0},
                "columns": [],
                "operation": {"Add": {"rows": []}},
            }
            value = json.dumps(record).encode()
            # From some way on, some as several messages.
            for mark, fragment in cut(
                value, 80 if sequence > 3000 and sequence % 50 == 0 else len(value), sequence=sequence
            ):
                producer.produce(topic, fragment, headers=[(FRAGMENT_HEADER, mark)])
                producer.poll(0)
    entry = {"next_sequence": sum(map(len, held.values())), "counts": {f"{topic}/0": 1 for topic in held}}
    producer.produce(names.commits, json.dumps(entry).encode())
    producer.commit_transaction()
    until_readable(admin, *held, names.commits)


def killed_after_some_commits(stage: TableTopics) -> None:
    with running("cdc-producer", stage.producer) as producer, running("cdc-consumer", stage.consumer) as consumer:
        before = end_offset_of(stage)
        until(lambda: end_offset_of(stage) > before + 3, what="commits")
        for process in (producer, consumer):
            process.send_signal(signal.SIGKILL)
            process.wait()


def end_offset_of(stage: TableTopics) -> int:
    return end_offset(stage.kafka, f"{stage.name}.commits")


@contextmanager
def threading_of(work: Callable[[], None]) -> Iterator[None]:
    """``work`` in a thread, to its end."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        yield
        future.result()


def test_a_transaction_over_many_new_tables(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """All topics are made before the Kafka transaction begins, which Kafka would end before one by one were through."""
    tables, name = 200, "manynew"
    path = write_profile(
        tmp_path, leader, kafka, name=name, resource=name, filters={"include_dbs": [name]},
        kafka={"layout": "per_table", "prefix": name, "librdkafka": {"transaction.timeout.ms": 4000}},
        producer={"start": "now", "retry_seconds": 5},
    )  # fmt: skip
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        for number in range(tables):
            cursor.execute(f"CREATE TABLE {name}.t{number} (i INT PRIMARY KEY)")
        run_well("cdc-producer", path, "--until-current")
        for row in range(2):
            cursor.execute("BEGIN")
            for number in range(tables):
                cursor.execute(f"INSERT INTO {name}.t{number} VALUES ({row})")
            cursor.execute("COMMIT")
            # The second time all of them are known from the commit log.
            assert "waiting for a server" not in run_well("cdc-producer", path, "--until-current")
    found = records(path)
    assert [record.sequence for record in found] == list(range(2 * tables))
    assert [record.uri.table for record in found] == 2 * [f"t{number}" for number in range(tables)]
