"""Records into Kafka, exactly once: they commit in one Kafka transaction with their entry of the commit log."""

import math
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self
from zlib import crc32

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from cdc.errors import Disconnected, PromiseError
from cdc.position import Position
from cdc.producer import commit_log
from cdc.producer.commit_log import Entry
from cdc.producer.kafka_topics import KafkaTopics, translated
from cdc.producer.router import Headers
from cdc.producer.router import Message as RecordMessage
from cdc.producer.settlement import AFTER, SHOWN, Settled, settle
from cdc.producer.spread import Spread
from cdc.service import LIBRDKAFKA
from cdc.topics import PER_TABLE

__all__ = ["KafkaSink"]

_ANSWER_SECONDS = 10.0
_STOP_SECONDS = 3.0
_QUEUE_KB = 65_536
_HEADERS_KB = 1_024  # a record has little beside its value
_NEVER = math.inf
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

    ``rolled_back`` names the topics in which Kafka had left a transaction without its end; ``shown`` is the newest of
    the binlog's other events that is out, or will be with the open transaction. ``begun_at`` is when the open Kafka
    transaction began (``time.monotonic()``), infinity while none is open; ``records`` and ``bytes`` are what is in it.
    """

    def __init__(
        self,
        producer: Producer,
        reports: _Reports,
        topics: KafkaTopics,
        settled: Settled,
        *,
        resource: str,
        stop: threading.Event,
    ) -> None:
        self._producer = producer
        self._reports = reports
        self._topics = topics
        self._names = topics.names
        self._resource = resource
        self._stop = stop
        self.entry = settled.entry
        self.rolled_back = settled.rolled_back
        self._out = settled.out
        self.shown = settled.shown
        ours = {topic for topic, _ in settled.entry.partitions} if settled.entry else set()
        # A topic may be known by its records alone: it was made in the transaction that Kafka has half ended.
        ours |= {topics.names.topic, *settled.ahead}
        self._spread = Spread(settled.entry, open_topic=lambda name: topics.claim(name, ours=name in ours))
        self.begun_at = _NEVER
        self.records = 0
        self.bytes = 0
        self._committed_at = -_NEVER

    @classmethod
    def open(
        cls,
        properties: dict[str, Any],
        topics: KafkaTopics,
        *,
        resource: str,
        instance: str,
        reopening: bool,
        stop: threading.Event,
    ) -> Self:
        """Take over ``topics`` from whatever producer wrote there before; ``instance`` names this process.

        A process that is ``reopening`` stops instead (PromiseError) when another one has taken over from it. Raises
        Disconnected where the brokers do not answer, UserError where topics and commit log do not belong together.
        """
        topic, commits = topics.names.topic, topics.names.commits
        reports = _Reports()
        settings = {
            "transactional.id": f"cdc-producer:{topic}:{resource}",
            "compression.type": "lz4",
            "queue.buffering.max.kbytes": _queue_kb(properties.get("message.max.bytes", 0)),
            "delivery.report.only.error": True,
            "on_delivery": reports.on_delivery,
            "error_cb": reports.on_error,
        }
        try:
            topics.require()
            if reopening:
                _require_own(next(commit_log.entries(properties, topic=commits, resource=resource), None), instance)
            producer = Producer(settings | properties, logger=LIBRDKAFKA)
            # Fences an older producer and ends its open transaction, so what is read below cannot change any more.
            producer.init_transactions(_ANSWER_SECONDS)
            topics.require_matching(next(commit_log.entries(properties, topic=commits, resource=resource), None))
            settled = settle(properties, producer, topics, resource=resource)
        except KafkaException as error:
            raise translated(error, topic) from None
        reports.lost = ""
        return cls(producer, reports, topics, settled, resource=resource, stop=stop)

    def write(self, messages: Iterable[RecordMessage]) -> None:
        """Add records to the open Kafka transaction, each in a partition of its topic, which is created where missing.

        Raises PromiseError for one that is too large, UserError for a topic that is not ours.
        """
        for message in messages:
            topic, key, value, time_ms, headers = message
            if self.begun_at == _NEVER:
                self._begin()
            if not self._out or not self._is_out(message):
                self._produce(topic, key, value, time_ms, headers, self._spread.place(topic))
            self.records += 1
            self.bytes += len(value)

    def show(self, message: RecordMessage, position: Position) -> None:
        """Add one of the binlog's other events, at ``position``, to the open Kafka transaction.

        Its headers tell a settlement what else is out by then, without a search for the record before it.
        """
        if self.begun_at == _NEVER:
            self._begin()
        self._spread.opened(message.topic)
        if position.offset:
            self.shown = position
        marks: Headers = [(AFTER, str(self._spread.next_sequence - 1)), (SHOWN, str(self.shown or ""))]
        # What the leader makes up for the connection has no time; 1970 would be over any retention.
        time_ms = message.time_ms or int(time.time() * 1000)
        self._produce(message.topic, message.key, message.value, time_ms, [*message.headers, *marks], 0)
        self.records += 1
        self.bytes += len(message.value)

    def _is_out(self, message: RecordMessage) -> bool:
        """Whether readers can see the record already (module settlement); then it is only counted."""
        sum_ = self._out.pop(self._spread.next_sequence, None)
        if sum_ is None:
            return False
        if sum_ != crc32(message.value):
            raise PromiseError(
                f"record {self._spread.next_sequence} is out already, but with another content",
                where=f"topic {message.topic}, record {message.value[:160].decode('utf-8', 'replace')}…",
                hint="run the version and the settings of before until that transaction is through",
            )
        self._spread.place(message.topic)
        return True

    def commit(self, entry: Entry) -> None:
        """Commit what was written, and ``entry`` with it: a crash leaves both or neither."""
        if self.begun_at == _NEVER:
            self._begin()
        last = self._spread.last() if self._names.layout == PER_TABLE else {}
        entry = replace(entry, counts=self._spread.counts(), last=last, shown=self.shown)
        now_ms = int(time.time() * 1000)
        self._produce(self._names.commits, self._resource.encode(), entry.to_json(), now_ms, [], 0)
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
                    raise translated(error, self._names.topic) from None
        self.entry = entry
        self._committed_at = time.monotonic()
        self.begun_at, self.records, self.bytes = _NEVER, 0, 0

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
            raise Disconnected(f"a broker went away: {self._reports.lost}", where=f"topic {self._names.topic}")

    def close(self) -> None:
        """Drop what is not committed, so that readers need not wait for it to time out; what is, they see by then."""
        if self.begun_at == _NEVER:
            self._await_readers()
            return
        self.begun_at = _NEVER
        try:
            self._producer.purge()
            self._producer.abort_transaction(_STOP_SECONDS)
        except KafkaException:
            # The next producer's init_transactions aborts it; nothing of it can be read before.
            return

    def _await_readers(self) -> None:
        """Wait until readers can see the last commit: who starts one when we have ended must not miss it."""
        self._producer.poll(0)
        late = time.monotonic() - self._committed_at > _ANSWER_SECONDS
        if self.entry is None or late or self._reports.lost:
            return
        # It is committed, so where the brokers can't tell, or take long, nobody needs to wait for them.
        with suppress(KafkaException):
            self._topics.unended([*self.entry.partitions, (self._names.commits, 0)])

    def _begin(self) -> None:
        # A transaction begun after a broker was away would take one along that lost its end.
        self.check()
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise translated(error, self._names.topic) from None
        self.begun_at = time.monotonic()

    def _produce(self, topic: str, key: bytes, value: bytes, time_ms: int, headers: Headers, partition: int) -> None:
        give_up, alone = 0.0, False
        while True:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=time_ms, headers=headers)
                return
            except BufferError:
                if alone:
                    raise _size_error(topic, key, value) from None
                # The brokers are slower than the leader: wait for room.
                give_up = give_up or time.monotonic() + _ANSWER_SECONDS
                self._producer.poll(0.1)
                alone = not len(self._producer)
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
        hint="raise message.max.bytes in [kafka.librdkafka] and max.message.bytes of the topic above that size, and "
        "queue.buffering.max.kbytes in [kafka.librdkafka] where that is set",
    )


def _queue_kb(largest: object) -> int:
    """What may wait in librdkafka: a record of ``largest`` bytes, the profile's, must find room in it."""
    # What is no number librdkafka refuses by the property's name.
    return max(_QUEUE_KB, int(str(largest)) // 1024 + _HEADERS_KB) if str(largest).isdecimal() else _QUEUE_KB


def _require_own(entry: Entry | None, instance: str) -> None:
    """Raise PromiseError where another process has written to the commit log since this one did."""
    if entry is not None and entry.instance != instance:
        raise PromiseError(
            "another cdc-producer has taken over this topic",
            hint="run one cdc-producer for each leader and topic",
        )
