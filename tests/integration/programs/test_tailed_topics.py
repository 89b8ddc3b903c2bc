"""``cdc-tail`` of many topics: the leader's order, in bounded memory, over a record that is nowhere."""

import itertools
import json
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import toml
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewTopic

import cdc
from cdc.config.topic_names import PER_TABLE, SINGLE, Topics
from cdc.errors import PromiseError
from cdc.kafka.fragments import FRAGMENT_HEADER, cut
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.reader.tailed_topics import TailedTopics
from cdc.sandbox.server.kafka import Kafka
from tests.harness.programs import BIN, run
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

RECORDS, MISSING = 400, 150
MOST_BYTES = 20_000


def two_topics(kafka: Kafka, name: str) -> tuple[Topics, list[str]]:
    """Creates the topics of two tables, and their commit log."""
    names = Topics(name, layout=PER_TABLE)
    topics = [names.of_table(name, table) for table in "ab"]
    made = kafka.admin()  # without this name the client would end before the topics are there
    for created in made.create_topics([NewTopic(each, 1) for each in (names.commits, *topics)]).values():
        created.result(LIMIT_SECONDS)
    return names, topics


def test_what_waits_for_its_turn_is_bounded_and_a_gap_is_passed(kafka: Kafka) -> None:
    names, topics = two_topics(kafka, "tailed")
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    # As ours, in order: a batch that a broker refuses, since it has not heard of the topic yet, would come in late.
    producer = Producer(properties | {"enable.idempotence": True})
    for sequence in range(RECORDS):
        # One topic has the first half and the last record, so the other one is far ahead of it.
        topic = topics[RECORDS // 2 <= sequence < RECORDS - 1]
        if sequence != MISSING:
            producer.produce(topic, record(sequence))
    counts = {f"{topic}/0": 1 for topic in topics}
    entry = Entry(RECORDS, Position("binlog.000001", 4), "", "", counts=counts)
    producer.produce(names.commits, entry.to_json(), b"r")
    assert producer.flush(LIMIT_SECONDS) == 0
    consumer = Consumer(properties | {"group.id": "tailed", "enable.partition.eof": True})
    tailed = TailedTopics(consumer, properties, names, last=None, most_bytes=MOST_BYTES)
    shown, most = [], 0
    give_up = time.monotonic() + LIMIT_SECONDS
    while len(shown) < RECORDS - 1 and time.monotonic() < give_up:
        shown += [json.loads(value)["sequence"] for value, _ in tailed.next(0.2)]
        most = max(most, tailed.waiting_bytes)
    # The binlog's other events have a topic of their own.
    producer.produce(topics[0], b'{"uri":"flv://r","bn_file":{},"event":{"Stop":{}}}')
    assert producer.flush(LIMIT_SECONDS) == 0
    with pytest.raises(PromiseError, match="not a record"):
        while time.monotonic() < give_up:
            list(tailed.next(0.2))
    consumer.close()
    assert shown == [sequence for sequence in range(RECORDS) if sequence != MISSING]
    assert MOST_BYTES < most < MOST_BYTES + 2000


def test_a_record_whose_transaction_has_not_ended_everywhere_is_waited_for(kafka: Kafka) -> None:
    """A later record of another topic can be read before it."""
    names, topics = two_topics(kafka, "waited_for")
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    early, late = (
        Producer(properties | {"enable.idempotence": True}),
        Producer(properties | {"transactional.id": "waited_for"}),
    )
    for topic, sequence in ((topics[0], 0), (topics[1], 1), (topics[1], 3)):
        early.produce(topic, record(sequence))
    early.produce(names.commits, Entry(4, Position("b.1", 4), "", "", counts=dict.fromkeys(
        (f"{topic}/0" for topic in topics), 2)).to_json(), b"r")  # fmt: skip
    assert early.flush(LIMIT_SECONDS) == 0
    late.init_transactions(LIMIT_SECONDS)
    late.begin_transaction()
    late.produce(topics[0], record(2))
    assert late.flush(LIMIT_SECONDS) == 0
    consumer = Consumer(
        properties | {"group.id": "waited_for", "enable.partition.eof": True, "isolation.level": "read_committed"}
    )
    tailed = TailedTopics(consumer, properties, names, last=None)
    shown = list[int]()

    def read() -> int:
        shown.extend(json.loads(value)["sequence"] for value, _ in tailed.next(0.2))
        return tailed.waiting_bytes

    until(read, what="the record behind the missing one")
    for _ in range(5):
        read()
    assert (shown, tailed.at_end) == ([0, 1], False)
    late.commit_transaction(LIMIT_SECONDS)
    until(lambda: read() == 0 and tailed.at_end, what="the missing record")
    consumer.close()
    assert shown == [0, 1, 2, 3]


def test_commit_times_that_are_not_in_the_order_of_sequences_are_no_gap(tmp_path: Path, kafka: Kafka) -> None:
    """Of two transactions that commit at the same time the second one may have the earlier time, in another topic."""
    names, topics = two_topics(kafka, "inverted")
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    producer, now_ms = Producer(properties | {"enable.idempotence": True}), int(time.time() * 1000)
    for sequence, (topic, age_ms) in enumerate([(0, 500_000), (1, 500_000), (0, 1000), (1, 1100), (1, 900)]):
        time_ms = now_ms - age_ms
        producer.produce(topics[topic], record(sequence, time_ms * 1000), timestamp=time_ms)
    entry = Entry(5, Position("binlog.000001", 4), "", "", counts={f"{topic}/0": 1 for topic in topics})
    producer.produce(names.commits, entry.to_json(), b"r")
    assert producer.flush(LIMIT_SECONDS) == 0
    profile = tmp_path / "inverted.toml"
    of_kafka = {"bootstrap_servers": kafka.bootstrap_servers, "topic": "inverted", "layout": PER_TABLE}
    profile.write_text(toml.dumps({"mysql_resource_name": "r", "kafka": of_kafka}))
    since = datetime.fromtimestamp((now_ms - 1050) / 1000, UTC)
    assert [each.sequence for each in cdc.records(profile, since=since)] == [2, 3, 4]


@pytest.mark.parametrize("layout", [SINGLE, PER_TABLE])
@pytest.mark.parametrize("last", [0, 1])
def test_new_records_are_shown_whatever_was_asked_of_the_old_ones(
    tmp_path: Path, kafka: Kafka, layout: str, last: int
) -> None:
    names = Topics(f"followed_{last}_{layout}", layout=layout)
    topic = names.of_table(f"followed{last}", "a")
    admin = kafka.admin()
    for created in admin.create_topics([NewTopic(name, 1) for name in (names.commits, topic)]).values():
        created.result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for sequence in range(3):
        # The newest one is more messages than the program reads at first.
        for mark, fragment in cut(record(sequence), 1200 if sequence < 2 else 8, sequence=sequence):
            producer.produce(topic, fragment, headers=[(FRAGMENT_HEADER, mark)])
    entry = Entry(3, Position("binlog.000001", 4), "", "", counts={f"{topic}/0": 3})
    producer.produce(names.commits, entry.to_json(), b"r")
    assert producer.flush(LIMIT_SECONDS) == 0

    path, out = tmp_path / "tail.toml", tmp_path / "out"
    settings = {"bootstrap_servers": kafka.bootstrap_servers, "topic": names.topic, "layout": layout}
    path.write_text(toml.dumps({"kafka": settings}))
    newest = [line.partition(" ")[0] for line in run("cdc-tail", path, "-n", str(last)).stdout.splitlines()]
    assert newest == ["2"][:last]
    new = itertools.count(3)

    def shown() -> list[str]:
        # Again and again, since nobody can see from when on the program waits.
        producer.produce(topic, record(next(new)))
        producer.flush(10)
        return out.read_text().splitlines()

    with out.open("w") as file:
        tail = subprocess.Popen([BIN / "cdc-tail", path, "-n", str(last), "-f"], stdout=file)
        try:
            until(lambda: len(shown()) > last + 2, what="new records")
        finally:
            tail.terminate()
            tail.wait(LIMIT_SECONDS)
    assert "flv://r/tailed/a" in out.read_text()


def record(sequence: int, ts_us: int = 0) -> bytes:
    body = {
        "uri": "flv://r/tailed/a", "sequence": sequence, "bn_file": {"fileName": "binlog.000001", "offset": 4},
        "transaction": {"id": "t", "index": 0, "last": True, "ts_us": ts_us}, "columns": ["t"],
        "operation": {"Add": {"rows": [{"cols": [{"String": "x" * 900}]}]}},
    }  # fmt: skip
    return json.dumps(body).encode()
