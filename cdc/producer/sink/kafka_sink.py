"""Records into Kafka, exactly once: they commit in one Kafka transaction with their entry of the commit log."""

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self
from zlib import crc32

from confluent_kafka import KafkaException

from cdc.config.topic_names import PER_TABLE
from cdc.errors import CdcError, Disconnected, PromiseError
from cdc.kafka.errors import open_error
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.sink.batch_size import Batch
from cdc.producer.sink.kafka_transactions import NEVER, KafkaTransactions
from cdc.producer.sink.partitioner import Spread
from cdc.producer.sink.recovery import AFTER, SHOWN, Settled, settle
from cdc.producer.sink.router import Headers
from cdc.producer.sink.router import Message as RecordMessage
from cdc.producer.sink.topic_admin import KafkaTopics

__all__ = ["KafkaSink", "await_successor"]

_ANSWER_SECONDS = 10.0
_SUCCESSOR_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 0.2


class KafkaSink:
    """One transactional producer. ``entry`` is what the commit log said when it was opened; None: nothing yet.

    ``rolled_back`` names the topics in which Kafka had left a transaction without its end; ``shown`` is the newest of
    the binlog's other events that is out, or will be with the open transaction. ``records`` and ``bytes`` are what
    is in that.
    """

    def __init__(
        self,
        transactions: KafkaTransactions,
        topics: KafkaTopics,
        settled: Settled,
        *,
        resource: str,
    ) -> None:
        self._transactions = transactions
        self._topics = topics
        self._names = topics.names
        self._resource = resource
        self.entry = settled.entry
        self.rolled_back = settled.rolled_back
        self._out = settled.out
        self.shown = settled.shown
        ours = {topic for topic, _ in settled.entry.partitions} if settled.entry else set()
        # A topic may be known by its records alone: it was made in the transaction that Kafka has half ended.
        ours |= {topics.names.topic, *settled.ahead}
        self._spread = Spread(settled.entry, open_topics=lambda names: topics.claim(names, ours=ours))
        # All that are known in one go: one by one, thousands of tables would keep each new connection waiting.
        self._spread.open([topic for topic, _ in settled.entry.partitions] if settled.entry else [])
        self.records = 0
        self.bytes = 0
        self._committed_at = -NEVER

    @classmethod
    def open(
        cls,
        properties: dict[str, Any],
        topics: KafkaTopics,
        *,
        resource: str,
        instance: str,
        reopening: bool,
        batch: Batch,
        stop: threading.Event,
    ) -> Self:
        """Take over ``topics`` from whatever producer wrote there before; ``instance`` names this process.

        A process that is ``reopening`` stops instead (PromiseError) when another one has taken over from it. Raises
        Disconnected where the brokers do not answer, UserError where topics and commit log do not belong together.
        """
        topic = topics.names.topic
        try:
            topics.require()
            if reopening:
                _require_own(topics.newest_entry(resource), instance)
            # From here on what is read below cannot change any more: an older producer is fenced.
            transactions = KafkaTransactions.open(properties, batch, topic=topic, resource=resource, stop=stop)
            topics.require_matching(topics.newest_entry(resource))
            settled = settle(properties, transactions.producer, topics, resource=resource)
        except KafkaException as error:
            raise open_error(error, topic, properties, answered=reopening) from None
        transactions.forget()
        return cls(transactions, topics, settled, resource=resource)

    @property
    def begun_at(self) -> float:
        """When the open Kafka transaction began (``time.monotonic()``), infinity while none is open."""
        return self._transactions.begun_at

    @property
    def is_full(self) -> bool:
        """Whether as many bytes are written as the link takes in one Kafka transaction."""
        return self.bytes >= self._transactions.batch.bytes

    def write(self, messages: Iterable[RecordMessage]) -> None:
        """Add records to the open Kafka transaction, each in a partition of its topic, which is created where missing.

        Raises PromiseError for one that is too large, UserError for a topic that is not ours.
        """
        transactions = self._transactions
        for message in messages:
            topic, key, value, time_ms, headers = message
            if transactions.begun_at == NEVER:
                transactions.begin()
            if not self._out or not self._is_out(message):
                transactions.produce(topic, key, value, time_ms, headers, self._spread.place(topic))
            self.records += 1
            self.bytes += len(value)

    @property
    def has_one_topic(self) -> bool:
        """Whether all records go to the topic that is there from the start."""
        return self._names.layout != PER_TABLE

    def has_ready(self, topics: set[str]) -> bool:
        """Whether all of these topics can be written to at once."""
        return self._spread.knows(topics)

    def make_ready(self, topics: set[str]) -> None:
        """Create the topics where missing. To be called while nothing is written: it may take longer than Kafka lets a
        transaction be open. Raises UserError for one that is not ours, Disconnected.
        """
        self._spread.open(topics)

    def show(self, message: RecordMessage, position: Position) -> None:
        """Add one of the binlog's other events, at ``position``, to the open Kafka transaction.

        Its headers tell a settlement what else is out by then, without a search for the record before it.
        """
        self._spread.opened(message.topic)
        if self.begun_at == NEVER:
            self._transactions.begin()
        if position.offset:
            self.shown = position
        marks: Headers = [(AFTER, str(self._spread.next_sequence - 1)), (SHOWN, str(self.shown or ""))]
        # What the leader makes up for the connection has no time; 1970 would be over any retention.
        time_ms = message.time_ms or int(time.time() * 1000)
        self._transactions.produce(message.topic, message.key, message.value, time_ms, [*message.headers, *marks], 0)
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
                hint="run against the server, with the version and the settings of before, until that transaction is "
                "through",
            )
        self._spread.place(message.topic)
        return True

    def commit(self, entry: Entry) -> None:
        """Commit what was written, and ``entry`` with it: a crash leaves both or neither."""
        if self.begun_at == NEVER:
            self._transactions.begin()
        last = self._spread.last() if self._names.layout == PER_TABLE else {}
        entry = replace(entry, counts=self._spread.counts(), last=last, shown=self.shown)
        now_ms = int(time.time() * 1000)
        self._transactions.produce(self._names.commits, self._resource.encode(), entry.to_json(), now_ms, [], 0)
        self._transactions.commit(self.bytes)
        self.entry = entry
        self._committed_at = time.monotonic()
        self.records = self.bytes = 0

    def check(self) -> None:
        """Raise Disconnected where a broker went away, even if it is back."""
        self._transactions.check()

    def close(self) -> None:
        """Drop what is not committed, so that readers need not wait for it to time out; what is, they see by then."""
        if self.begun_at == NEVER:
            self._await_readers()
        else:
            self._transactions.drop()

    def _await_readers(self) -> None:
        """Wait until readers can see the last commit: who starts one when we have ended must not miss it."""
        late = time.monotonic() - self._committed_at > _ANSWER_SECONDS
        if self.entry is None or late:
            return
        # It is committed, so where the brokers can't tell, or take long, or another producer has taken over, nobody
        # needs to wait for them.
        with suppress(KafkaException, CdcError):
            self._transactions.check()
            self._topics.unended([*self.entry.partitions, (self._names.commits, 0)])


def await_successor(topics: KafkaTopics, *, resource: str, instance: str, stop: threading.Event) -> None:
    """Wait a moment for the first entry of the producer that has fenced this one, the process ``instance``.

    To open a sink before that would fence it in turn.
    """
    give_up = time.monotonic() + _SUCCESSOR_SECONDS
    while not stop.is_set() and time.monotonic() < give_up:
        with suppress(KafkaException, Disconnected):
            newest = topics.newest_entry(resource)
            if newest is not None and newest.instance != instance:
                return
        stop.wait(_ASK_AGAIN_SECONDS)


def _require_own(entry: Entry | None, instance: str) -> None:
    """Raise PromiseError where another process has written to the commit log since this one did."""
    if entry is not None and entry.instance != instance:
        raise PromiseError(
            "another cdc-producer has taken over this topic",
            hint="run one cdc-producer for each leader and topic",
        )
