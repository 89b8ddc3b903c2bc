"""Runs the Kafka transactions of one producer, one after the other: begins, fills, commits and aborts them.

``BatchSize`` adapts the size of Kafka transactions to the speed of commits, up to the profile's limit.
"""

import math
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from cdc.config.profile import MESSAGE_BYTES
from cdc.errors import Disconnected, PromiseError
from cdc.kafka.errors import DISCONNECTED, RECORD_REFUSED, client_error, write_error
from cdc.kafka.topics import TopicTimes, any_time_hint
from cdc.producer.sink.record_parts import Headers
from cdc.service.logs import LIBRDKAFKA

__all__ = ["LIMIT", "NEVER", "BatchSize", "KafkaTransactions", "Reports", "client"]

_MIN_BYTES = 65_536
# A slower commit halves the size of batches; a commit that takes less than a tenth of this time may double it.
_SLOW_SECONDS = 10.0
_FIRST_PATIENCE, _MAX_PATIENCE = 10.0, 40.0


class BatchSize:
    """The size of Kafka transactions, for the life of the process. ``bytes`` is the current limit, ``limit`` is the
    profile's limit.

    ``message_bytes`` is the largest size of one message (profile key producer.message_bytes).

    ``patience`` is the number of seconds after which brokers that accept no bytes count as away. It grows when commits
    fail, since on a slow network a single message may take long.
    """

    def __init__(self, limit: int, message_bytes: int = 8_000_000) -> None:
        self._limit = limit
        self.message_bytes = message_bytes
        self.bytes = limit
        self.patience = _FIRST_PATIENCE

    def failed(self) -> None:
        """Adapts the limit and the patience after a commit that the brokers did not accept in time."""
        self._halve()
        self.patience = min(2 * self.patience, _MAX_PATIENCE)

    def committed(self, size: int, seconds: float) -> None:
        """Adapts the limit and the patience after a commit of ``size`` bytes that took ``seconds``.

        A size far below the limit, such as the size of a session's first entry, shows nothing about the network.
        """
        if seconds > _SLOW_SECONDS:
            self._halve()
        elif seconds < _SLOW_SECONDS / 10 and 2 * size >= self.bytes:
            self.bytes = min(2 * self.bytes, self._limit)
            self.patience = max(self.patience / 2, _FIRST_PATIENCE)

    def _halve(self) -> None:
        self.bytes = min(self._limit, max(_MIN_BYTES, self.bytes // 2))


NEVER = math.inf
_ANSWER_SECONDS = 10.0
_STOP_SECONDS = 3.0
_TIMEOUT_MS = 60_000  # the default of librdkafka's transaction.timeout.ms
_USABLE_PART_OF_TIMEOUT = 0.8  # after this part of the timeout, the brokers are about to end the transaction
_LINGER_MS = 50
_QUEUE_KB = 65_536
_HEADERS_KB = 1_024  # room for the key and the headers of a record
LIMIT = "message.max.bytes"
_KEY_BYTES, _LEAST_BYTES = 4_096, 1_000
_BOOTSTRAP = re.compile(r"\S+/bootstrap: ")


@dataclass
class Reports:
    """Keeps the errors that librdkafka reports in its callbacks. The callbacks run while we call librdkafka's
    functions. ``properties`` are the properties of the producer. ``failed`` is the reason why the first undelivered
    message was not delivered.
    """

    properties: Mapping[str, Any]
    refused: PromiseError | None = None
    failed: KafkaError | None = None
    lost: str = ""

    def on_delivery(self, error: KafkaError, message: Message) -> None:
        topic, value = message.topic() or "", message.value() or b""
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            hint = (
                f"{_command(self.properties, topic, len(value))} (or set producer.message_bytes to less than it takes)"
            )
            self.refused = _size_error(topic, message.key() or b"", value, "the topic", hint)
        elif error.code() in RECORD_REFUSED:
            self.refused = PromiseError(
                f"Kafka refuses a record: {error.str()}",
                code="CDC-KAFKA-REFUSES-RECORD",
                where=f"topic {topic}, record {value[:160].decode('utf-8', 'replace')}…",
                hint=any_time_hint(self.properties["bootstrap.servers"], topic)
                if error.code() == KafkaError.INVALID_TIMESTAMP
                else "change the topic's settings so that it accepts the record",
            )
        self.failed = self.failed or error

    def on_error(self, error: KafkaError) -> None:
        # Some brokers in the profile may be away. Until librdkafka knows which broker answers at an address, it sends
        # nothing there that belongs to a transaction.
        if error.code() in DISCONNECTED and not _BOOTSTRAP.match(error.str()):
            self.lost = error.str()


class _Deadline:
    """A deadline: it passes at ``end``, some seconds after a stop, or if the queue has not shrunk for ``patience``
    seconds.
    """

    def __init__(self, queued: int, patience: float, end: float, stop: threading.Event) -> None:
        self._queued = queued
        self._patience = patience
        self._end = end
        self._stop = stop
        self._stop_by = NEVER
        self._since = time.monotonic()

    def is_over(self, queued: int) -> bool:
        now = time.monotonic()
        if queued < self._queued:
            self._queued, self._since = queued, now
        if self._stop.is_set():
            self._stop_by = min(self._stop_by, now + _STOP_SECONDS)
        return now > min(self._since + self._patience, self._end, self._stop_by)


class KafkaTransactions:
    """The transactions of one producer. ``begun_at`` is the time at which the open transaction began
    (``time.monotonic()``), and NEVER while no transaction is open.

    If another producer has fenced this producer, the next call fails, whichever call it is; so the errors of all calls
    are translated here. ``topic`` is the topic that errors name. ``times`` returns for each record a timestamp that its
    topic accepts. ``batch_size`` is adapted to the speed of the brokers. A value with more than ``message_bytes`` must
    be written as fragments.
    """

    def __init__(
        self,
        producer: Producer,
        reports: Reports,
        batch_size: BatchSize,
        *,
        topic: str,
        limit: float,
        stop: threading.Event,
    ) -> None:
        self.producer = producer
        self.batch_size = batch_size
        self._limit = limit
        self._reports = reports
        self._topic = topic
        self._stop = stop
        # librdkafka's limit applies to value and key together, and a key of two names can have some 1500 bytes.
        largest = int(reports.properties[LIMIT]) - _KEY_BYTES
        self.message_bytes = max(_LEAST_BYTES, min(batch_size.message_bytes, largest))
        self.begun_at = NEVER
        self.times = TopicTimes(reports.properties["bootstrap.servers"])

    @classmethod
    def open(
        cls, properties: dict[str, Any], batch_size: BatchSize, *, topic: str, resource: str, stop: threading.Event
    ) -> Self:
        """Fences an older producer of the same topic and leader, and ends its transaction. Raises KafkaException."""
        # A commit sends waiting messages at once. With librdkafka's default of 5 ms, batches of a large transaction
        # are sent before they are full; this takes a tenth of the producer's CPU time.
        settings = {"linger.ms": _LINGER_MS}
        # If the profile set another id, a second producer of the same topic and leader would not be fenced.
        required = {"transactional.id": f"cdc-producer:{topic}:{resource}", "allow.auto.create.topics": False}
        producer, reports = client(properties, batch_size, settings=settings, required=required)
        # Until librdkafka is connected, it looks for the transaction coordinator only every 500 ms.
        producer.list_topics(topic, timeout=_ANSWER_SECONDS)
        producer.init_transactions(_ANSWER_SECONDS)
        timeout_ms = str(properties.get("transaction.timeout.ms", _TIMEOUT_MS))
        limit = int(timeout_ms if timeout_ms.isdecimal() else _TIMEOUT_MS) / 1000 * _USABLE_PART_OF_TIMEOUT
        return cls(producer, reports, batch_size, topic=topic, limit=limit, stop=stop)

    def forget_lost_brokers(self) -> None:
        """Forgets the brokers that were away until now: the recovery has already repaired what their absence caused."""
        self._reports.lost = ""

    def begin(self) -> None:
        """Begins a transaction. Raises Disconnected, as all methods below do."""
        # If a broker was away, an earlier transaction may still be open on it; a new transaction would also end that
        # transaction.
        self.check()
        try:
            self.producer.begin_transaction()
        except KafkaException as error:
            raise write_error(error, self._topic) from None
        self.begun_at = time.monotonic()

    def produce(
        self, topic: str, key: bytes | None, value: bytes | None, time_ms: int, headers: Headers, partition: int
    ) -> None:
        """Adds a message to the open transaction. Raises PromiseError for a message that Kafka refuses."""
        deadline: _Deadline | None = None
        is_only = False
        time_ms = self.times.stamp(topic, time_ms)
        while True:
            try:
                self.producer.produce(topic, value, key, partition, timestamp=time_ms, headers=headers)
                return
            except BufferError:
                if is_only:
                    raise self._too_large(topic, key or b"", value or b"") from None
                # The brokers are slower than the leader, so the producer waits for room in the queue.
                deadline = deadline or self._deadline()
                self._poll(0.1)
                is_only = not len(self.producer)
                if deadline.is_over(len(self.producer)):
                    self.batch_size.failed()
                    raise Disconnected(
                        "the brokers accept no records", code="CDC-BROKER-GONE", where=f"topic {topic}"
                    ) from None
            except KafkaException as error:
                if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise self._too_large(topic, key or b"", value or b"") from None
                self.raise_refused()
                raise write_error(error, topic) from None

    def commit(self, size: int) -> None:
        """Commits the added messages, which have ``size`` bytes. Raises PromiseError if Kafka refuses a message."""
        self.raise_refused()
        started, deadline = time.monotonic(), self._deadline()
        while True:
            try:
                self.producer.commit_transaction(1.0)
                break
            except KafkaException as error:
                self.raise_refused()
                if not error.args[0].retriable() or deadline.is_over(len(self.producer)):
                    self.batch_size.failed()
                    raise write_error(error, self._topic) from None
        self.begun_at = NEVER
        self.batch_size.committed(size, time.monotonic() - started)

    def spoil(self, error: PromiseError) -> None:
        """Makes a commit of the open transaction raise ``error``: the transaction lacks the record that ``error`` is
        about.
        """
        self._reports.refused = self._reports.refused or error

    def _deadline(self) -> "_Deadline":
        return _Deadline(len(self.producer), self.batch_size.patience, self.begun_at + self._limit, self._stop)

    def abort(self) -> None:
        """Aborts the open transaction, so that readers need not wait for its timeout. Never raises."""
        self.begun_at = NEVER
        try:
            self.producer.purge()
            self.producer.abort_transaction(_STOP_SECONDS)
        except KafkaException:
            # The next producer's init_transactions aborts the transaction; until then, readers see none of its records.
            return

    def check(self) -> None:
        """Raises Disconnected if a broker went away, even if it has returned.

        The broker may have left the last transaction without an end; a new sink finds and repairs such a transaction
        (module recovery).
        """
        self._poll()
        if self._reports.lost:
            raise Disconnected(
                f"a broker went away: {self._reports.lost}", code="CDC-BROKER-GONE", where=f"topic {self._topic}"
            )

    def raise_refused(self) -> None:
        """Raises the error of a delivery report, which is the reason why the transaction fails."""
        self._poll()
        if self._reports.refused:
            raise self._reports.refused

    def _too_large(self, topic: str, key: bytes, value: bytes) -> PromiseError:
        """Returns the error for a record that librdkafka does not accept."""
        hint = (
            f"in [kafka.librdkafka], raise queue.buffering.max.kbytes and {LIMIT} above that size, or leave them out; "
            "or set producer.message_bytes to less"
        )
        return _size_error(topic, key, value, "librdkafka", hint)

    def _poll(self, seconds: float = 0.0) -> None:
        """Runs the callbacks. Raises errors that are fatal to librdkafka's producer, such as being fenced."""
        try:
            self.producer.poll(seconds)
        except (KafkaException, SystemError) as error:
            raise client_error(error, self._topic) from None


def _size_error(topic: str, key: bytes, value: bytes, who: str, hint: str) -> PromiseError:
    return PromiseError(
        f"a message of {str(key, 'utf-8')} has {len(value)} bytes, more than {who} accepts",
        code="CDC-MESSAGE-TOO-LARGE",
        where=f"topic {topic}, record {value[:160].decode('utf-8', 'replace')}…",
        hint=hint,
    )


def _command(properties: Mapping[str, Any], topic: str, size: int) -> str:
    """Returns the shell command that makes ``topic`` accept a message of ``size`` bytes, and all other messages of the
    producer.
    """
    largest = max(size + _HEADERS_KB * 1024, int(properties[LIMIT]))
    return (
        f"kafka-configs.sh --bootstrap-server {properties['bootstrap.servers']} --alter --entity-type topics "
        f"--entity-name {topic} --add-config max.message.bytes={largest}"
    )


def client(
    properties: Mapping[str, Any], batch_size: BatchSize, *, settings: Mapping[str, Any], required: Mapping[str, Any]
) -> tuple[Producer, Reports]:
    """Creates librdkafka's producer and its reports. The profile's ``properties`` override ``settings``; ``required``
    overrides both.
    """
    properties = {LIMIT: MESSAGE_BYTES} | dict(properties)
    reports = Reports(properties)
    # One message of the largest size must fit into the queue.
    queue_kb = max(_QUEUE_KB, batch_size.message_bytes // 1024 + _HEADERS_KB)
    usual = {"compression.type": "lz4", "queue.buffering.max.kbytes": queue_kb, **settings}
    always = {
        **required,
        "delivery.report.only.error": True,
        "on_delivery": reports.on_delivery,
        "error_cb": reports.on_error,
    }
    return Producer(usual | properties | always, logger=LIBRDKAFKA), reports
