"""The commit log: a compacted topic beside the records' topic in which the producer commits its position with them."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from cdc.errors import Disconnected, PromiseError, UserError
from cdc.position import Position
from cdc.service import LIBRDKAFKA

__all__ = ["Entry", "Partial", "end_offset", "read"]

_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Partial:
    """A leader transaction of which ``records`` are out, because it is larger than one Kafka transaction.

    ``cut`` names what decides how its rows are cut into records; with other settings the count would mean others.
    """

    transaction: str
    records: int
    cut: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What is out: everything before ``position`` (and in ``gtid_set``), which is every sequence below the next.

    ``counts`` are the records per ``topic/partition``; ``instance`` names the producer process that wrote the entry.
    """

    next_sequence: int
    position: Position
    gtid_set: str
    server_uuid: str
    partial: Partial | None = None
    counts: dict[str, int] = field(default_factory=dict)
    instance: str = ""

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Raises PromiseError where ``text`` is not an entry; ``where`` is its topic and offset."""
        try:
            body: dict[str, Any] = json.loads(text)
            body["position"] = Position(**body["position"])
            body["partial"] = body["partial"] and Partial(**body["partial"])
            return cls(**body)
        except (ValueError, KeyError, TypeError) as error:
            raise PromiseError(
                f"not an entry of the commit log ({error}): {text[:80]!r}",
                where=where,
                hint="something else writes to this topic; start over with a new one",
            ) from None


def read(properties: dict[str, Any], *, topic: str, resource: str) -> Entry | None:
    """The newest committed entry in ``topic``; None where it is empty. ``properties`` are librdkafka's.

    Raises UserError where another leader's entries are there, Disconnected where the brokers do not answer.
    """
    consumer = _consumer(properties)
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        newest = None
        while (message := consumer.poll(_ANSWER_SECONDS)) is not None:
            error = message.error()
            if error is None:
                where = f"topic {topic}, offset {message.offset()}"
                _require_own(str(message.key() or b"", "utf-8", "replace"), resource=resource, topic=topic)
                newest = Entry.parse(message.value() or b"", where=where)
            elif error.code() == KafkaError._PARTITION_EOF:
                return newest
            else:
                raise Disconnected(f"the commit log cannot be read: {error.str()}", where=f"topic {topic}")
        raise Disconnected(f"no answer within {_ANSWER_SECONDS:.0f} s", where=f"topic {topic}")
    finally:
        consumer.close()


def end_offset(properties: dict[str, Any], topic: str) -> int:
    """The offset after the topic's newest message. Raises KafkaException where the brokers do not answer."""
    consumer = _consumer(properties)
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_ANSWER_SECONDS)
        return int(end)
    finally:
        consumer.close()


def _consumer(properties: dict[str, Any]) -> Consumer:
    own = {
        "group.id": "cdc-commit-log",  # librdkafka asks for one; nothing is ever committed under it
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,  # the end of the topic is what is asked for: no use in waiting there for more
    }
    return Consumer(properties | own, logger=LIBRDKAFKA)


def _require_own(key: str, *, resource: str, topic: str) -> None:
    if key != resource:
        raise UserError(
            f"the topic holds the records of another leader, {key!r}",
            where=f"topic {topic}",
            hint="set mysql_resource_name to that name, or kafka.topic to a topic of its own",
        )
