"""Reads the records of topics as docs/record-format.md has it for other readers, without any module of ``cdc``."""

import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

__all__ = ["PlainReader"]


class PlainReader:
    """Reads all partitions of ``topics`` to their ends, in one go.

    ``records`` are the records as JSON, in the order of their sequences; ``void`` counts the messages of producers that
    were replaced.
    """

    def __init__(self, servers: str, topics: list[str]) -> None:
        self.records: list[dict[str, Any]] = []
        self.void = 0
        settings = {
            "bootstrap.servers": servers, "group.id": "plain", "isolation.level": "read_committed",
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "enable.partition.eof": True,
        }  # fmt: skip
        consumer = Consumer(settings)
        known = consumer.list_topics(timeout=30).topics
        for topic in topics:
            for number in known[topic].partitions:
                self._add(_messages(consumer, TopicPartition(topic, number, 0)))
        consumer.close()
        self.records.sort(key=lambda record: int(record["sequence"]))  # stable: one that comes twice stays so

    def _add(self, messages: Iterator[Message]) -> None:
        newest_mark, parts = 0, list[bytes]()
        for message in messages:
            headers, value = dict(message.headers() or ()), message.value()
            epoch = int(headers.get("cdc_epoch", b"0"))
            if value is None:
                newest_mark = max(newest_mark, epoch)
                continue
            if epoch < newest_mark:
                self.void += 1
                continue
            _, number, total, _ = map(int, headers.get("cdc_fragment", b"0 0 1 0").split())
            # A record that a producer began is written on by the next one.
            parts[number:] = [value]
            if number == total - 1:
                self.records.append(json.loads(b"".join(parts)))


def _messages(consumer: Consumer, partition: TopicPartition) -> Iterator[Message]:
    consumer.assign([partition])
    while True:
        message = consumer.poll(30)
        assert message is not None, "no answer"
        if message.error() is not None:
            return
        yield message
