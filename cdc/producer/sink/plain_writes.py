"""Writes records without Kafka transactions: the brokers show each record as soon as they have stored it. Each start of
a producer first writes an epoch mark.

librdkafka's idempotent producer keeps the order within a partition and writes no message twice in one session. Messages
of a former session that arrive late are void (module kafka.fragments).
"""

import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from confluent_kafka import KafkaException

from cdc.errors import Disconnected
from cdc.kafka import fragments
from cdc.kafka.errors import client_error, write_error
from cdc.model.commit_entry import Entry, Mark
from cdc.producer.sink.kafka_transactions import NEVER, BatchSize, KafkaTransactions, client
from cdc.producer.sink.record_parts import Headers
from cdc.producer.sink.recovery import Recovered, recover, require_ended
from cdc.producer.sink.topic_admin import TopicAdmin

__all__ = ["PlainWrites", "recovered", "stamp", "write_mark"]

# Writes epoch marks to the topic, and stamps the records after a mark. After a mark, records of former starts are void.
#
# A topic has marks once a producer without Kafka transactions has written to it: records of a former start may still be
# on their way to the brokers. See module kafka.fragments.


def recovered(transactions: KafkaTransactions, topics: TopicAdmin, *, resource: str, instance: str) -> Recovered:
    """Runs ``recover``. If this or an earlier start writes without Kafka transactions, also writes a mark, after which
    late records of earlier starts are void. Raises the errors of ``recover``.
    """
    found = recover(topics.properties, transactions.producer, topics, resource=resource)
    if topics.transactional and not found.marks:
        return found
    if topics.newest_entry(resource) is None:
        # No mark is written before the first entry: a topic with a mark and no entry would look like another client's.
        return found
    # Records without transactions may still arrive from another process, or over a former connection. Behind the mark
    # they are void; the records that arrived before the mark are read now.
    transactions.forget_lost_brokers()
    number = max((mark.epoch for mark in found.marks), default=0) + 1
    assert found.entry is not None
    entry = replace(found.entry, marks=found.marks, instance=instance)
    write_mark(transactions, topics, Mark(number, -1), resource, entry)
    again = recover(topics.properties, transactions.producer, topics, resource=resource)
    true = again.entry and replace(again.entry, instance=found.entry.instance)
    return replace(again, entry=true, rewritten=found.rewritten)


def write_mark(transactions: KafkaTransactions, topics: TopicAdmin, mark: Mark, resource: str, entry: Entry) -> None:
    """Commits ``mark`` and ``entry`` in one Kafka transaction. Raises Disconnected if one of the two topics still has
    an open transaction afterwards.
    """
    names, now_ms = topics.names, int(time.time() * 1000)
    # Because of ``marks`` and ``fragmented`` in this entry, readers check the epoch of each message after the mark, and
    # join fragments (records that were written as several messages).
    entry = replace(entry, marks=(*entry.marks, mark), fragmented=True)
    transactions.begin()
    transactions.produce(names.topic, resource.encode(), None, now_ms, stamp((mark,)), 0)
    transactions.produce(names.commits, resource.encode(), entry.to_json(), now_ms, [], 0)
    transactions.commit(0)
    require_ended(topics, [(names.topic, 0), (names.commits, 0)])


def stamp(marks: tuple[Mark, ...]) -> Headers:
    """Returns the headers of the messages after ``marks``: one header with the newest epoch, which is the number of
    this start of a producer without Kafka transactions; none if there are no marks.
    """
    return [(fragments.EPOCH_HEADER, str(marks[-1].epoch))] if marks else []


_FLUSH_SECONDS = 0.2
_REFUSED = "if this happens again, set kafka.transactions = true: the error then names the record that is refused"
_LINGER_MS = 5  # milliseconds between two sends; a flush sends waiting messages at once


class PlainWrites(KafkaTransactions):
    """Writes batches without Kafka transactions: a batch begins with its first message, and ends when the brokers have
    stored all of its messages.
    """

    @classmethod
    def open(
        cls, properties: dict[str, Any], batch_size: BatchSize, *, topic: str, resource: str, stop: threading.Event
    ) -> Self:
        """Connects to the brokers. Without transactions, Kafka does not fence an older producer. Raises
        KafkaException.
        """
        # These settings override all others, since exactly-once depends on them. Without a transaction, a message that
        # librdkafka gives up would leave a gap before the messages that follow.
        required = {"enable.idempotence": True, "acks": "all", "enable.gapless.guarantee": True}
        producer, reports = client(properties, batch_size, settings={"linger.ms": _LINGER_MS}, required=required)
        return cls(producer, reports, batch_size, topic=topic, limit=NEVER, stop=stop)

    def begin(self) -> None:
        """Begins a batch. Raises Disconnected, as all methods below do."""
        self.check()
        self.begun_at = time.monotonic()

    def commit(self, size: int) -> None:
        """Waits until the brokers have stored the added messages, which have ``size`` bytes. Raises PromiseError if
        they refuse a message."""
        started, deadline = time.monotonic(), self._deadline()
        while left := self._flushed():
            self.raise_refused()
            if deadline.is_over(left):
                self.batch_size.failed()
                raise Disconnected(
                    "the brokers accept no records", code="CDC-BROKER-GONE", where=f"topic {self._topic}"
                )
        self.raise_refused()
        self.begun_at = NEVER
        self.batch_size.committed(size, time.monotonic() - started)

    def raise_refused(self) -> None:
        """Raises the error of the first message that was not delivered: without a transaction, nothing else shows that
        a message is lost.
        """
        super().raise_refused()
        if self._reports.failed:
            raise write_error(KafkaException(self._reports.failed), self._topic)

    def _flushed(self) -> int:
        """Sends the waiting messages; returns the number of messages that the brokers do not have yet."""
        try:
            return self.producer.flush(_FLUSH_SECONDS)
        except (KafkaException, SystemError) as error:
            found = client_error(error, self._topic)
            found.hint = found.hint or _REFUSED
            raise found from None

    def abort(self) -> None:
        """Drops the unsent messages; the next sink continues after the messages that readers see. Never raises."""
        self.begun_at = NEVER
        with suppress(KafkaException, SystemError):
            self.producer.purge()
            self.producer.poll(0)
