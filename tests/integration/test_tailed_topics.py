"""``cdc-tail`` of many topics: the leader's order, in bounded memory, over a record that is nowhere."""

import json
import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewTopic

from cdc.position import Position
from cdc.producer.commit_log import Entry
from cdc.sandbox.kafka import Kafka
from cdc.tailed_topics import TailedTopics
from cdc.topics import PER_TABLE, Topics

pytestmark = pytest.mark.integration

RECORDS, MISSING = 400, 150
MOST_BYTES = 20_000


def test_what_waits_for_its_turn_is_bounded_and_a_gap_is_passed(kafka: Kafka) -> None:
    names = Topics("tailed", layout=PER_TABLE)
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    topics = [names.of_table("tailed", table) for table in "ab"]
    made = kafka.admin()
    for created in made.create_topics([NewTopic(name, 1) for name in (names.commits, *topics)]).values():
        created.result(30)
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
    assert producer.flush(30) == 0
    consumer = Consumer(properties | {"group.id": "tailed", "enable.partition.eof": True})
    tailed = TailedTopics(consumer, properties, names, last=None, most_bytes=MOST_BYTES)
    shown, most = [], 0
    give_up = time.monotonic() + 60
    while len(shown) < RECORDS - 1 and time.monotonic() < give_up:
        shown += [json.loads(value)["sequence"] for value, _ in tailed.next(0.2)]
        most = max(most, tailed.waiting_bytes)
    consumer.close()
    assert shown == [sequence for sequence in range(RECORDS) if sequence != MISSING]
    assert MOST_BYTES < most < MOST_BYTES + 2000


def record(sequence: int) -> bytes:
    body = {
        "uri": "flv://r/tailed/a", "sequence": sequence, "bn_file": {"fileName": "binlog.000001", "offset": 4},
        "transaction": {"id": "t", "index": 0, "last": True, "ts_us": 0}, "columns": ["t"],
        "operation": {"Add": {"rows": [{"cols": [{"String": "x" * 900}]}]}},
    }  # fmt: skip
    return json.dumps(body).encode()
