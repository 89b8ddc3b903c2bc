"""The Kafka transactions of one producer: begun, filled, committed or dropped, and what their errors mean."""

import math
import threading
import time
from dataclasses import dataclass
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from cdc.errors import Disconnected, PromiseError
from cdc.producer.kafka_topics import translated
from cdc.producer.router import Headers
from cdc.service import LIBRDKAFKA

__all__ = ["NEVER", "KafkaTransactions"]

NEVER = math.inf
_ANSWER_SECONDS = 10.0
_STOP_SECONDS = 3.0
_QUEUE_KB = 65_536
_HEADERS_KB = 1_024  # a record has little beside its value
_NOT_TAKEN = frozenset({KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD, KafkaError.RECORD_LIST_TOO_LARGE})


@dataclass(slots=True)
class _Reports:
    """What librdkafka tells in its callbacks, which run inside of our calls."""

    refused: PromiseError | None = None
    lost: str = ""

    def on_delivery(self, error: KafkaError, message: Message) -> None:
        topic, value = message.topic() or "", message.value() or b""
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self.refused = _size_error(topic, message.key() or b"", value)
        elif error.code() in _NOT_TAKEN:
            self.refused = PromiseError(
                f"Kafka refuses a record: {error.str()}",
                where=f"topic {topic}, record {value[:160].decode('utf-8', 'replace')}…",
                hint="change the topic's settings so that it takes the record, or the leader's clock",
            )

    def on_error(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
            self.lost = error.str()


class KafkaTransactions:
    """One after the other. ``begun_at`` is when the open one began (``time.monotonic()``), NEVER while none is open.

    A producer that another one has fenced fails in whichever call comes next, those that only ask among them: each is
    translated here. ``topic`` is the one that errors name.
    """

    def __init__(self, producer: Producer, reports: _Reports, *, topic: str, stop: threading.Event) -> None:
        self.producer = producer
        self._reports = reports
        self._topic = topic
        self._stop = stop
        self.begun_at = NEVER

    @classmethod
    def open(cls, properties: dict[str, Any], *, topic: str, resource: str, stop: threading.Event) -> Self:
        """Fence an older producer of the same names, and end its open transaction. Raises KafkaException."""
        reports = _Reports()
        settings = {
            "transactional.id": f"cdc-producer:{topic}:{resource}",
            "compression.type": "lz4",
            "queue.buffering.max.kbytes": _queue_kb(properties.get("message.max.bytes", 0)),
            "delivery.report.only.error": True,
            "on_delivery": reports.on_delivery,
            "error_cb": reports.on_error,
        }
        producer = Producer(settings | properties, logger=LIBRDKAFKA)
        producer.init_transactions(_ANSWER_SECONDS)
        return cls(producer, reports, topic=topic, stop=stop)

    def forget(self) -> None:
        """Brokers that were away by now do not matter: what that leaves behind is settled."""
        self._reports.lost = ""

    def begin(self) -> None:
        """Raises Disconnected, as all do that follow."""
        # A transaction begun after a broker was away would take one along that lost its end.
        self.check()
        try:
            self.producer.begin_transaction()
        except KafkaException as error:
            raise translated(error, self._topic) from None
        self.begun_at = time.monotonic()

    def produce(self, topic: str, key: bytes, value: bytes, time_ms: int, headers: Headers, partition: int) -> None:
        """Add a message to the open transaction. Raises PromiseError for one that Kafka does not take."""
        give_up, alone = 0.0, False
        while True:
            try:
                self.producer.produce(topic, value, key, partition, timestamp=time_ms, headers=headers)
                return
            except BufferError:
                if alone:
                    raise _size_error(topic, key, value) from None
                # The brokers are slower than the leader: wait for room.
                give_up = give_up or time.monotonic() + _ANSWER_SECONDS
                self._poll(0.1)
                alone = not len(self.producer)
                if time.monotonic() > give_up:
                    raise Disconnected("the brokers take no records", where=f"topic {topic}") from None
            except KafkaException as error:
                if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise _size_error(topic, key, value) from None
                self._raise_refused()
                raise translated(error, topic) from None

    def commit(self) -> None:
        """Commit what was produced. Raises PromiseError where Kafka does not take a message of it."""
        give_up = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                self.producer.commit_transaction(1.0)
                break
            except KafkaException as error:
                self._raise_refused()
                if self._stop.is_set():
                    give_up = min(give_up, time.monotonic() + _STOP_SECONDS)
                if not error.args[0].retriable() or time.monotonic() > give_up:
                    raise translated(error, self._topic) from None
        self.begun_at = NEVER

    def drop(self) -> None:
        """Abort the open transaction, so that readers need not wait for it to time out."""
        self.begun_at = NEVER
        try:
            self.producer.purge()
            self.producer.abort_transaction(_STOP_SECONDS)
        except KafkaException:
            # The next producer's init_transactions aborts it; nothing of it can be read before.
            return

    def check(self) -> None:
        """Raise Disconnected where a broker went away, even if it is back.

        It may have left the last transaction without its end (module settlement): a new sink finds and mends that.
        """
        self._poll()
        if self._reports.lost:
            raise Disconnected(f"a broker went away: {self._reports.lost}", where=f"topic {self._topic}")

    def _raise_refused(self) -> None:
        """Raise what a delivery report said: it is the reason why the transaction fails."""
        self._poll()
        if self._reports.refused:
            raise self._reports.refused

    def _poll(self, seconds: float = 0.0) -> None:
        """Let the callbacks run. What is fatal to librdkafka's producer, such as being fenced, comes out here too."""
        try:
            self.producer.poll(seconds)
        except KafkaException as error:
            raise translated(error, self._topic) from None


def _size_error(topic: str, key: bytes, value: bytes) -> PromiseError:
    return PromiseError(
        f"a record of {str(key, 'utf-8')} has {len(value)} bytes, more than Kafka takes",
        where=f"topic {topic}, record {value[:160].decode('utf-8', 'replace')}…",
        hint="raise message.max.bytes in [kafka.librdkafka] and max.message.bytes of the topic above that size, and "
        "queue.buffering.max.kbytes in [kafka.librdkafka] where that is set",
    )


def _queue_kb(largest: object) -> int:
    """What may wait in librdkafka: a record of ``largest`` bytes, the profile's, must find room in it."""
    # What is no number librdkafka refuses by the property's name.
    return max(_QUEUE_KB, int(str(largest)) // 1024 + _HEADERS_KB) if str(largest).isdecimal() else _QUEUE_KB
