"""Reads the records of topics as docs/record-format.md has it for other readers, without any module of ``cdc``."""

import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

__all__ = ["PlainPartition", "PlainReader", "plain_consumer"]


class PlainPartition:
    """Makes records of the messages of one partition; ``void`` counts those of producers that were replaced."""

    def __init__(self) -> None:
        self.void = 0
        self._newest_mark = 0
        self._parts: list[bytes] = []

    def take(self, message: Message) -> dict[str, Any] | None:
        """The record, as JSON, that the partition's next message ends; None if it ends none."""
        headers, value = dict(message.headers() or ()), message.value()
        epoch = int(headers.get("cdc_epoch", b"0"))
        if value is None:
            self._newest_mark = max(self._newest_mark, epoch)
            return None
        if epoch < self._newest_mark:
            self.void += 1
            return None
        _, number, total, _ = map(int, headers.get("cdc_fragment", b"0 0 1 0").split())
        # A record that a producer began is written on by the next one.
        self._parts[number:] = [value]
        return json.loads(b"".join(self._parts)) if number == total - 1 else None


class PlainReader:
    """Reads all partitions of ``topics`` to their ends, in one go.

    ``records`` are the records as JSON, in the order of their sequences; ``void`` counts the messages of producers that
    were replaced.
    """

    def __init__(self, servers: str, topics: list[str]) -> None:
        self.records: list[dict[str, Any]] = []
        self.void = 0
        consumer = plain_consumer(servers)
        known = consumer.list_topics(timeout=30).topics
        for topic in topics:
            for number in known[topic].partitions:
                partition = PlainPartition()
                taken = map(partition.take, _messages(consumer, TopicPartition(topic, number, 0)))
                self.records += [record for record in taken if record]
                self.void += partition.void
        consumer.close()
        self.records.sort(key=lambda record: int(record["sequence"]))  # stable: one that comes twice stays so


def plain_consumer(servers: str) -> Consumer:
    """A client that reads what is committed, and keeps no offsets."""
    return Consumer(
        {
            "bootstrap.servers": servers, "group.id": "plain", "isolation.level": "read_committed",
            "enable.auto.commit": False, "auto.offset.reset": "earliest", "enable.partition.eof": True,
        }
    )  # fmt: skip


def _messages(consumer: Consumer, partition: TopicPartition) -> Iterator[Message]:
    consumer.assign([partition])
    while True:
        message = consumer.poll(30)
        assert message is not None, "no answer"
        if message.error() is not None:
            return
        yield message
