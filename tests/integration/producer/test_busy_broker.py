"""A broker that takes its time: what is committed can be read when a sink is closed, and no question waits for ever."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from cdc.config.topic_names import Topics
from cdc.consumer.source import reader as kafka_reader
from cdc.consumer.source.reader import KafkaReader
from cdc.errors import Disconnected, Fenced, UserError
from cdc.kafka import partitions
from cdc.kafka.partitions import backwards, begin_offsets, between, connected, end_offsets, led, unended
from cdc.kafka.topics import admin_client
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.model.record import Record
from cdc.producer.copy.requests import waiting
from cdc.producer.copy.state import Pending
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.kafka_transactions import BatchSize
from cdc.producer.sink.record_parts import Message
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.harness.programs import records, run_well, write_profile
from tests.harness.relay import END_TRANSACTION, LIST_OFFSETS, Relay
from tests.harness.server_fixtures import KafkaFactory
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

SLOW_ROWS = 500  # of 4 kB


def topics_of(kafka: Kafka, name: str) -> TopicAdmin:
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    return TopicAdmin(properties, Topics(name), partitions=1, replicas=1, retention_hours=0)


def test_readers_see_all_once_a_sink_is_closed(kafka: Kafka) -> None:
    """The broker writes a transaction's ends after it has said that it commits, often some milliseconds later."""
    topics, properties = topics_of(kafka, "closed"), {"bootstrap.servers": kafka.bootstrap_servers}
    stop = threading.Event()
    sink = KafkaSink.open(topics, BatchSize(16_000_000), resource="r", instance="i", reopening=False, stop=stop)
    for number in range(20):
        sink.write([Message("closed", b"r", b"{}", 0, [])])
        sink.commit(Entry(number + 1, Position("binlog.000001", 4 + number), "", "", counts={"closed/0": number + 1}))
        sink.close()
        assert not unended(properties, [("closed", 0), ("closed.commits", 0)]), number


def test_new_topics_take_messages_once_they_are_claimed(kafka: Kafka) -> None:
    """Of a transaction into a topic whose broker is named as leader, but is not yet, the first messages can be lost."""
    topics, names = topics_of(kafka, "claimed"), {f"claimed.{number}" for number in range(100)}
    assert topics.claim(names, ours=set()) == dict.fromkeys(names, 1)
    assert led({"bootstrap.servers": kafka.bootstrap_servers}, [(name, 0) for name in names]) == {
        (name, 0) for name in names
    }


def test_a_sink_that_is_fenced_says_so_in_whatever_it_does_next(kafka: Kafka) -> None:
    """librdkafka raises what is fatal out of any call, those that only let callbacks run among them."""
    topics = topics_of(kafka, "fenced")
    entry = Entry(0, Position("binlog.000001", 4), "", "")

    def sink() -> KafkaSink:
        return KafkaSink.open(
            topics,
            BatchSize(16_000_000),
            resource="r",
            instance="i",
            reopening=False,
            stop=threading.Event(),
        )

    def write(sink: KafkaSink) -> None:
        for _ in range(LIMIT_SECONDS * 100):
            sink.write([Message("fenced", b"r", b"{}", 0, [])])
            time.sleep(0.01)

    def look(sink: KafkaSink) -> None:
        for _ in range(LIMIT_SECONDS * 100):
            sink.check()
            time.sleep(0.01)

    def commit(sink: KafkaSink) -> None:
        time.sleep(0.5)
        sink.commit(entry)

    for deed in (write, look, commit, lambda sink: sink.commit(entry)):
        first = sink()
        first.commit(entry)
        second = sink()
        first.write([Message("fenced", b"r", b"{}", 0, [])])
        with pytest.raises(Fenced, match="another one has taken over"):
            deed(first)
        with pytest.raises(Disconnected):
            first.write([Message("fenced", b"r", b"{}", 0, [])])
        first.close()
        second.close()


@pytest.mark.long
def test_a_slow_link_carries_what_is_larger_than_it_takes_in_ten_seconds(
    tmp_path: Path, leader: MySql, kafka_broker: KafkaFactory
) -> None:
    """Nothing fails while the brokers still take records, however long one Kafka transaction takes. `make test` has
    the large transactions of test_large.py, over a link that is as fast as any."""
    port = free_port()
    with Relay(port) as relay:
        kafka = kafka_broker(port=port, settings={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay.port}"})
        plain = {"compression.type": "none", "batch.size": 50_000, "socket.send.buffer.bytes": 65_536}
        path = write_profile(
            tmp_path, leader, kafka, name="slow_link", filters={"include_dbs": ["slow_link"]},
            kafka={"librdkafka": plain}, producer={"start": "now", "record_bytes": 20_000},
        )  # fmt: skip
        run_well("cdc-producer", path, "--until-current")
        with leader.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE slow_link")
            cursor.execute("CREATE TABLE slow_link.a (i INT PRIMARY KEY, t VARCHAR(4000))")
            rows = ",".join(f"({number}, REPEAT('x', 4000))" for number in range(SLOW_ROWS))
            cursor.execute(f"INSERT INTO slow_link.a VALUES {rows}")
        relay.uphill = 0.006  # 160 kB/s: what takes the link half as long again as used to be waited for
        began = time.monotonic()
        log = run_well("cdc-producer", path, "--until-current")
        assert time.monotonic() - began > 10
        assert "waiting for a server" not in log
        relay.uphill = 0.0
        values = [row.after[0]["SignedInteger"] for record in records(path) for row in record.rows if row.after]
        assert values == list(range(SLOW_ROWS))


@contextmanager
def stopped(kafka: Kafka) -> Iterator[None]:
    """The broker's process holds still."""
    os.kill(kafka.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(kafka.process.pid, signal.SIGCONT)


@pytest.fixture
def relayed(kafka_broker: KafkaFactory) -> Iterator[tuple[Relay, Kafka]]:
    """The way to a broker that clients have no other way to, and the broker."""
    port = free_port()
    with Relay(port) as relay:
        advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay.port}"}
        yield relay, kafka_broker(port=port, settings=advertised)


def test_what_a_cut_connection_leaves_behind(relayed: tuple[Relay, Kafka], monkeypatch: pytest.MonkeyPatch) -> None:
    """No offset is taken from it, and a commit that comes late, and ends the next transaction, is recovered from. At
    last the broker hangs: it is away."""
    relay, kafka = relayed
    properties = {"bootstrap.servers": f"127.0.0.1:{relay.port}"}
    topics = TopicAdmin(properties, Topics("cut"), partitions=1, replicas=1, retention_hours=0)
    topics.require()
    no_offset_is_taken(relay, properties, ("cut", 0))
    a_late_commit_is_recovered_from(relay, topics)
    a_broker_that_hangs_is_away(kafka, monkeypatch)


def no_offset_is_taken(relay: Relay, properties: dict[str, Any], place: tuple[str, int]) -> None:
    """librdkafka answers with the offset -1001 then, and without an error."""
    for ask in (begin_offsets, end_offsets):
        relay.kafka_cut = LIST_OFFSETS
        assert ask(properties, [place]) == {place: 0}
        assert relay.kafka_cut is None
    relay.kafka_cut = LIST_OFFSETS
    assert led(properties, [place]) == set()
    until(lambda: led(properties, [place]) == {place}, what="the next connection")
    relay.forget()


def a_late_commit_is_recovered_from(relay: Relay, topics: TopicAdmin) -> None:
    """librdkafka sends a commit again over a new connection; then the first one arrives, in the next transaction."""

    def opened() -> KafkaSink:
        size, stop = BatchSize(16_000_000), threading.Event()
        return KafkaSink.open(topics, size, resource="r", instance="i", reopening=False, stop=stop)

    def message(sequence: int) -> Message:
        uri, place = "flv://r/d/t", {"fileName": "binlog.000001", "offset": 4 + sequence}
        transaction = {"id": f"u:{sequence}", "index": 0, "last": True, "ts_us": 1}
        body = {"uri": uri, "sequence": sequence, "bn_file": place, "transaction": transaction, "columns": ["i"]}
        body["operation"] = {"Add": {"rows": [{"cols": [{"SignedInteger": sequence}]}]}}
        return Message("cut", uri.encode(), json.dumps(body).encode(), 0, [])

    def entry(following: int) -> Entry:
        return Entry(following, Position("binlog.000001", 4 + following), "", "u", instance="i")

    sink = opened()
    sink.start(entry(0))
    sink.write([message(0)])
    relay.kafka_cut = END_TRANSACTION
    sink.commit(entry(1))
    assert relay.has_late
    sink.write([message(1), message(2)])
    sink._transactions.producer.flush()
    relay.deliver()
    until(lambda: end_offsets(topics.properties, [("cut", 0)])["cut", 0] == 5, what="the early end")
    with pytest.raises(Disconnected):
        sink.write([message(3)])
        sink._transactions.producer.flush()
        sink.write([message(4)])
    sink.close()
    sink = opened()
    assert sink.entry is not None
    assert sink.entry.next_sequence == 1
    sink.start(sink.entry)
    sink.write([message(number) for number in range(1, 4)])
    sink.commit(entry(4))
    sink.close()
    found = [Record.parse(each.value() or b"", where="").sequence for each in backwards(topics.properties, ("cut", 0))]
    assert found == [3, 2, 1, 0]


def a_broker_that_hangs_is_away(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    with stopped(kafka), pytest.raises(Disconnected, match="Kafka does not answer"):
        topics_of(kafka, "late")._create({"late": 1})

    class HangsAfterwards(Consumer):
        """The broker answers the first question and hangs before the next."""

        def list_topics(self, *arguments: Any, **named: Any) -> Any:
            answer = super().list_topics(*arguments, **named)
            os.kill(kafka.process.pid, signal.SIGSTOP)
            return answer

    monkeypatch.setattr(kafka_reader, "Consumer", HangsAfterwards)
    servers = kafka.bootstrap_servers
    with KafkaReader(
        bootstrap_servers=servers, group="g", properties={}, retry_seconds=1, commits="t.commits"
    ) as reader:
        try:
            with pytest.raises(UserError, match="Kafka cannot be reached"):
                reader.topic("late")
        finally:
            os.kill(kafka.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("limit", [1, 2_000, 1_000_000])
def test_messages_are_read_backwards_whatever_their_sizes(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """The newest messages of a window that is too large are kept, and the others are read again."""
    monkeypatch.setattr(partitions, "_WINDOW_BYTES", limit)
    producer, topic = Producer({"bootstrap.servers": kafka.bootstrap_servers}), f"sizes{limit}"
    topics_of(kafka, topic)._create({topic: 1})
    values = [b"%d " % n + bytes(900 if n % 40 < 5 else 5) for n in range(200)]
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush()
    found = [each.value() for each in backwards({"bootstrap.servers": kafka.bootstrap_servers}, (topic, 0))]
    assert found == values[::-1]


def test_an_admin_client_is_lent_again_unless_it_failed(kafka: Kafka) -> None:
    properties = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "lent"}
    with admin_client(properties) as first, admin_client(properties) as second:
        assert first is not second
    with admin_client(properties) as again:
        assert again is first
    with pytest.raises(KafkaException), admin_client(properties) as failing:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))
    with admin_client(properties) as other:
        assert other is not failing


def test_what_is_gone_from_a_topic_is_reported_and_not_passed_over(kafka: Kafka) -> None:
    """librdkafka would go on at the end, so that a producer that starts could miss its newest entry."""
    place, properties = ("gone", 0), {"bootstrap.servers": kafka.bootstrap_servers}
    topics_of(kafka, "gone").claim({"gone"}, ours=set())
    producer = Producer(properties)
    for number in range(20):
        producer.produce("gone", json.dumps({"tables": [["d", f"t{number}"]]}), "r")
    producer.flush()
    with admin_client(properties) as admin:
        admin.delete_records([TopicPartition(*place, 10)])[TopicPartition(*place)].result()
    for begin, end in ((5, 20), (30, 40)):
        consumer = connected(properties, committed=True)
        with pytest.raises(Disconnected, match="the messages to read next are gone from the topic"):
            list(between(consumer, {place: begin}, {place: end}))
        consumer.close()
    # Requests of copies that are still there are taken up, although earlier ones are gone.
    found = waiting(properties, "gone", resource="r", pending=Pending(requests=5))
    assert [request.tables for request in found] == [[("d", f"t{number}")] for number in range(10, 20)]
