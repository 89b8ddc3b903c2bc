"""Records into Kafka, exactly once: they commit in one Kafka transaction with their entry of the commit log."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from cdc.errors import Disconnected, PromiseError
from cdc.producer import commit_log
from cdc.producer.commit_log import Entry
from cdc.producer.kafka_topics import require_matching, require_topics, translated
from cdc.producer.router import Headers
from cdc.producer.router import Message as RecordMessage
from cdc.producer.settlement import settled_entry
from cdc.producer.topic_tail import end_offset
from cdc.service import LIBRDKAFKA

__all__ = ["KafkaSink"]

_ANSWER_SECONDS = 10.0
_STOP_SECONDS = 3.0
_MEMORY_KB = 65_536
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


class KafkaSink:
    """One transactional producer. ``entry`` is what the commit log said when it was opened; None: nothing yet.

    ``rolled_back`` names the topics in which Kafka had left a transaction without its end.
    """

    def __init__(
        self,
        producer: Producer,
        reports: _Reports,
        *,
        topic: str,
        resource: str,
        entry: Entry | None,
        stop: threading.Event,
    ) -> None:
        self._producer = producer
        self._reports = reports
        self._topic = topic
        self._resource = resource
        self._stop = stop
        self.entry = entry
        self._counts = dict(entry.counts) if entry else {}
        self._begun_at: float | None = None
        self.rolled_back: list[str] = []
        self.records = 0
        self.bytes = 0

    @classmethod
    def open(
        cls,
        properties: dict[str, Any],
        *,
        topic: str,
        replicas: int,
        resource: str,
        instance: str,
        reopening: bool,
        stop: threading.Event,
    ) -> Self:
        """Take over ``topic`` from whatever producer wrote there before; ``instance`` names this process.

        A process that is ``reopening`` stops instead (PromiseError) when another one has taken over from it. Raises
        Disconnected where the brokers do not answer, UserError where topic and commit log do not belong together.
        """
        reports = _Reports()
        settings = {
            "transactional.id": f"cdc-producer:{topic}:{resource}",
            "compression.type": "lz4",
            "queue.buffering.max.kbytes": _MEMORY_KB,
            "delivery.report.only.error": True,
            "on_delivery": reports.on_delivery,
            "error_cb": reports.on_error,
        }
        commits = f"{topic}.commits"
        try:
            require_topics(properties, topic, replicas=replicas)
            if reopening:
                _require_own(next(commit_log.entries(properties, topic=commits, resource=resource), None), instance)
            producer = Producer(settings | properties, logger=LIBRDKAFKA)
            # Fences an older producer and ends its open transaction, so what is read below cannot change any more.
            producer.init_transactions(_ANSWER_SECONDS)
            newest = next(commit_log.entries(properties, topic=commits, resource=resource), None)
            require_matching(topic, newest, end=end_offset(properties, topic, committed=False))
            entry, rolled_back = settled_entry(properties, producer, topic=topic, commits=commits, resource=resource)
        except KafkaException as error:
            raise translated(error, topic) from None
        reports.lost = ""
        sink = cls(producer, reports, topic=topic, resource=resource, entry=entry, stop=stop)
        sink.rolled_back = rolled_back
        return sink

    @property
    def age(self) -> float:
        """For how many seconds the open Kafka transaction has been open; 0.0 when none is."""
        return 0.0 if self._begun_at is None else time.monotonic() - self._begun_at

    def write(self, messages: Iterable[RecordMessage]) -> None:
        """Add records to the open Kafka transaction. Raises PromiseError for one that is too large."""
        for message in messages:
            if self._begun_at is None:
                self._begin()
            self._produce(*message)
            self.records += 1
            self.bytes += len(message.value)
            partition = f"{message.topic}/0"
            self._counts[partition] = self._counts.get(partition, 0) + 1

    def commit(self, entry: Entry) -> None:
        """Commit what was written, and ``entry`` with it: a crash leaves both or neither."""
        if self._begun_at is None:
            self._begin()
        entry = replace(entry, counts=dict(self._counts))
        now_ms = int(time.time() * 1000)
        self._produce(f"{self._topic}.commits", self._resource.encode(), entry.to_json(), now_ms, [])
        give_up = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                self._producer.commit_transaction(1.0)
                break
            except KafkaException as error:
                self._raise_refused()
                if self._stop.is_set():
                    give_up = min(give_up, time.monotonic() + _STOP_SECONDS)
                if not error.args[0].retriable() or time.monotonic() > give_up:
                    raise translated(error, self._topic) from None
        self.entry = entry
        self._begun_at, self.records, self.bytes = None, 0, 0

    def _raise_refused(self) -> None:
        """Raise what a delivery report said: it is the reason why the transaction fails."""
        self._producer.poll(0)
        if self._reports.refused:
            raise self._reports.refused

    def check(self) -> None:
        """Raise Disconnected where a broker went away, even if it is back.

        It may have left the last transaction without its end (module settlement): a new sink finds and mends that.
        """
        self._producer.poll(0)
        if self._reports.lost:
            raise Disconnected(f"a broker went away: {self._reports.lost}", where=f"topic {self._topic}")

    def close(self) -> None:
        """Drop what is not committed, so that readers need not wait for it to time out."""
        if self._begun_at is None:
            return
        self._begun_at = None
        try:
            self._producer.purge()
            self._producer.abort_transaction(_STOP_SECONDS)
        except KafkaException:
            # The next producer's init_transactions aborts it; nothing of it can be read before.
            return

    def _begin(self) -> None:
        # A transaction begun after a broker was away would take one along that lost its end.
        self.check()
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise translated(error, self._topic) from None
        self._begun_at = time.monotonic()

    def _produce(self, topic: str, key: bytes, value: bytes, time_ms: int, headers: Headers) -> None:
        give_up = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                self._producer.produce(topic, value, key, timestamp=time_ms, headers=headers)
                return
            except BufferError:
                # The brokers are slower than the leader: wait for room.
                self._producer.poll(0.1)
                if time.monotonic() > give_up:
                    raise Disconnected("the brokers take no records", where=f"topic {topic}") from None
            except KafkaException as error:
                if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise _size_error(topic, key, value) from None
                self._raise_refused()
                raise translated(error, topic) from None


def _size_error(topic: str, key: bytes, value: bytes) -> PromiseError:
    return PromiseError(
        f"a record of {str(key, 'utf-8')} has {len(value)} bytes, more than Kafka takes",
        where=f"topic {topic}, record {value[:160].decode('utf-8', 'replace')}…",
        hint="raise message.max.bytes in [kafka.librdkafka] and max.message.bytes of the topic above that size",
    )


def _require_own(entry: Entry | None, instance: str) -> None:
    """Raise PromiseError where another process has written to the commit log since this one did."""
    if entry is not None and entry.instance != instance:
        raise PromiseError(
            "another cdc-producer has taken over this topic",
            hint="run one cdc-producer for each leader and topic",
        )
