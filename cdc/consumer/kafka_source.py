"""The leader's topic as records with their places: read committed, from where the follower's checkpoint says.

The consumer group is never asked for a place. Offsets are committed to it for lag tools alone.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from cdc.consumer.assembler import Located
from cdc.errors import CdcError, PromiseError, ServerGone, UserError
from cdc.record import Record
from cdc.service import event

__all__ = ["KafkaSource", "Topic"]

_LOG = logging.getLogger("cdc.consumer")
_ASK_SECONDS = 10.0
_POLL_SECONDS = 0.2
_MOST_MESSAGES = 1000
_COMMIT_SECONDS = 1.0
_NO_TOPIC = frozenset({
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
})  # fmt: skip
_LOST_PLACE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_REFUSED = frozenset({
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the brokers have it: its id, which a topic of the same name made later does not share, and for each
    partition the offsets of its first record and past its last committed one."""

    name: str
    id: str
    ranges: dict[int, tuple[int, int]]


class KafkaSource:
    """A consumer of one topic. ``properties`` are librdkafka's, from the profile; ``group`` is for lag tools."""

    def __init__(
        self, *, bootstrap_servers: str, topic: str, group: str, properties: Mapping[str, Any], retry_seconds: float
    ) -> None:
        self._servers = bootstrap_servers
        self._topic = topic
        self._retry_seconds = retry_seconds
        self._down_since: float | None = None
        self._committed_at = 0.0
        self._last_error = ""
        # librdkafka's own log is for its developers; what matters comes as errors.
        self._connection = {"log_level": 2, **properties, "bootstrap.servers": bootstrap_servers}
        # Ours come last: the promises rest on them.
        settings = self._connection | {
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "error_cb": self._on_error,
        }
        try:
            self._consumer = Consumer(settings, logger=logging.getLogger("cdc.consumer.kafka"))
        except KafkaException as error:
            raise UserError(
                f"Kafka settings are refused: {error.args[0].str()}",
                where="profile key kafka.librdkafka",
                hint="the names and values are librdkafka's, see its CONFIGURATION.md",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def topic(self) -> Topic | None:
        """The topic, or None where there is none. Raises UserError where the brokers can't be reached."""
        try:
            found = self._consumer.list_topics(self._topic, timeout=_ASK_SECONDS).topics[self._topic]
            if found.error is not None and found.error.code() in _NO_TOPIC:
                return None
            admin = AdminClient(self._connection, logger=logging.getLogger("cdc.consumer.kafka"))
            described = admin.describe_topics(TopicCollection([self._topic]))[self._topic].result(_ASK_SECONDS)
            ranges = {
                number: self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=_ASK_SECONDS)
                for number in found.partitions
            }
        except KafkaException as error:
            if error.args[0].code() in _NO_TOPIC:
                return None
            raise self._unreachable(error.args[0]) from None
        return Topic(self._topic, str(described.topic_id), ranges)

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read each partition from its offset on, in order."""
        self._consumer.assign(
            [TopicPartition(self._topic, partition, offset) for partition, offset in sorted(offsets.items())]
        )

    def records(self, stop: threading.Event, *, until: Mapping[int, int] | None) -> Iterator[Located | None]:
        """Records in topic order; None whenever there is no more right now. Ends when ``stop`` is set or, where given,
        all partitions are read up to their offset in ``until``.

        Raises PromiseError for a message that is no record or a place that is gone, ServerGone where the brokers stay
        away, UserError for what the brokers refuse.
        """
        behind = {partition for partition, end in (until or {}).items() if end > 0}
        wait = 0.0
        while not stop.is_set() and (until is None or behind):
            messages = self._messages(wait)
            for message in messages:
                error = message.error()
                if error is None:
                    yield self._located(message)
                    partition, offset = _place(message)
                    # Under a steady load the end of the partition may never be met.
                    if until is not None and offset + 1 >= until[partition]:
                        behind.discard(partition)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._down_since = None
                    partition, offset = _place(message)
                    if until is not None and offset >= until[partition]:
                        behind.discard(partition)
                else:
                    self._check(error)
            # Only when there is nothing more at once is it worth waiting: what has come can be applied meanwhile.
            wait = 0.0 if messages else _POLL_SECONDS
            if not messages:
                self._check_brokers()
                yield None

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Show the group how far we are, at most once a second, without waiting for it."""
        if time.monotonic() - self._committed_at > _COMMIT_SECONDS:
            self._committed_at = time.monotonic()
            places = [TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()]
            self._consumer.commit(offsets=places, asynchronous=True)

    def _messages(self, wait: float) -> list[Message]:
        """What is here now, after ``wait`` seconds for the first. To wait for a full list would cost latency."""
        first = self._consumer.poll(wait)
        if first is None:
            return []
        return [first, *self._consumer.consume(_MOST_MESSAGES, timeout=0)]

    def _located(self, message: Message) -> Located:
        partition, offset = _place(message)
        record = Record.parse(message.value() or b"", where=f"{self._topic}/{partition}/{offset}")
        return Located(partition, offset, record)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_error = error.str()
        elif self._down_since is None:
            self._down_since = time.monotonic()
            event(_LOG, "kafka unreachable", level=logging.WARNING, servers=self._servers, reason=error.str())

    def _check(self, error: KafkaError) -> None:
        """Raises what an error in the stream of messages means; those that librdkafka mends itself mean nothing."""
        code, where = error.code(), f"topic {self._topic} on {self._servers}"
        if code in _LOST_PLACE or code in _NO_TOPIC:
            raise PromiseError(
                f"the place in the topic is gone while reading: {error.str()}",
                where=where,
                hint="retention has cut the topic or it was deleted; start again for a check against the checkpoint",
            )
        if code in _REFUSED:
            raise UserError(f"Kafka refuses: {error.str()}", where=where, hint="check kafka.librdkafka and the ACLs")
        if not (error.retriable() or code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)):
            raise PromiseError(f"reading the topic failed: {error.str()}", where=where)

    def _check_brokers(self) -> None:
        if self._down_since is None or time.monotonic() - self._down_since < self._retry_seconds:
            return
        try:
            # A quiet topic shows no sign of life, so only a question tells whether the brokers are back.
            self._consumer.list_topics(self._topic, timeout=5)
        except KafkaException as error:
            raise ServerGone(
                f"Kafka cannot be reached: {error.args[0].str()}",
                where=self._servers,
                hint=f"tried for {self._retry_seconds:.0f} s (consumer.retry_seconds); start again when it is up",
            ) from None
        self._down_since = None

    def _unreachable(self, error: KafkaError) -> CdcError:
        self._consumer.poll(0)  # the reason comes by callback, which only a poll delivers
        reason = f"{error.str()} ({self._last_error})" if self._last_error else error.str()
        return UserError(
            f"Kafka cannot be reached: {reason}",
            where=f"{self._servers} (profile key kafka.bootstrap_servers)",
            hint="start the broker, or mend the address",
        )


def _place(message: Message) -> tuple[int, int]:
    return message.partition() or 0, message.offset() or 0
