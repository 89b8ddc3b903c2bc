"""Writes records without Kafka transactions: the brokers show each record as soon as they have stored it.

librdkafka's idempotent producer keeps the order within a partition and writes no message twice in one session. Messages
of a former session that arrive late are void (module kafka.epochs).
"""

import threading
import time
from contextlib import suppress
from typing import Any, Self

from confluent_kafka import KafkaException

from cdc.errors import Disconnected
from cdc.kafka.errors import client_error, write_error
from cdc.producer.sink.kafka_transactions import NEVER, BatchSize, KafkaTransactions, client

__all__ = ["PlainWrites"]

_FLUSH_SECONDS = 0.2
_REFUSED = "where it comes again, set kafka.transactions = true, with which the record that the brokers refuse is named"
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
