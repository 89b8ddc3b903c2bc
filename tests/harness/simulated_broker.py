"""A model of a Kafka broker with two topics, for simulations alone: what it does to a request, a seed decides.

It takes a request, or takes it and its answer is lost, or it comes late: at any later moment, when its client has long
gone on. The client may end at each of its requests but those with records of an open transaction. Where asked to, the
broker loses the end of a log, as after the election of a leader that lags behind. As in Kafka 4, a transactional id has
one epoch and a batch outside of a transaction is refused, but a commit carries no number of its transaction: librdkafka
knows none (KIP-890).
"""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from cdc.model.position import Partition

__all__ = ["Broker", "Client", "Ended"]


class Ended(BaseException):
    """The program that sent this request was killed."""


class Written(NamedTuple):
    """A place of a log: a message, or the end of a producer's transaction. Messages without transactions have the
    producer -1; of the others only one at a time has a transaction, and the next end of any ends what is open."""

    producer: int
    message: Message | None
    is_commit: bool = False


@dataclass
class Broker:
    """``troubles`` is the chance of a trouble for each request."""

    chance: random.Random
    troubles: float
    logs: dict[Partition, list[Written]] = field(default_factory=dict)
    epoch: int = 0  # of the only transactional id, which is the number of its producer, too
    open_in: set[Partition] = field(default_factory=set)
    late: list[Callable[[], object]] = field(default_factory=list)
    ended: bool | None = None  # how the newest transaction of this epoch has ended: true with a commit
    ids: int = 0
    numbers: dict[int, int] = field(default_factory=dict)  # the next batch of each idempotent producer

    def request(self, work: Callable[[], None]) -> None:
        """Sends one request. Raises Ended, or KafkaException if its answer is lost or ``work`` raises it."""
        self.deliver_some()
        if self.chance.random() >= self.troubles:
            work()
            return
        kind = self.chance.randrange(6)
        if kind in (0, 1):  # it comes late; the client does, or does not, send it again over a new connection
            self.late.append(work)
            if kind == 1:
                work()
                return
        elif kind in (2, 3):
            work()
        if kind in (0, 2, 4):
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        raise Ended

    def deliver_some(self) -> None:
        """Has some of the late requests, in any order."""
        while self.late and self.chance.random() < 0.3:
            work = self.late.pop(self.chance.randrange(len(self.late)))
            with suppress(KafkaException):  # the answer goes nowhere
                work()

    def begin_epoch(self) -> int:
        """InitProducerId: aborts what is open, and fences all before."""
        self._end(False)
        self.epoch += 1
        self.ended = None
        return self.epoch

    def end(self, epoch: int, *, commit: bool) -> None:
        """EndTxn. Where nothing is open the same was done before; after the other end it is refused
        (TransactionCoordinator.endTransaction of Kafka).
        """
        self._require(epoch)
        if not self.open_in and self.ended is not commit:
            raise KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE))
        self._end(commit)

    def _end(self, commit: bool) -> None:
        self.ended = commit
        for partition in sorted(self.open_in):
            self.logs[partition].append(Written(self.epoch, None, commit))
        self.open_in = set()

    def add_partition(self, epoch: int, partition: Partition) -> None:
        self._require(epoch)
        self.open_in.add(partition)

    def append(self, epoch: int, partition: Partition, message: Message) -> None:
        """Produce within a transaction."""
        self._require(epoch)
        if partition not in self.open_in:
            raise KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE))
        self.logs[partition].append(Written(epoch, message))

    def append_plain(self, producer: int, number: int, batch: list[tuple[Partition, Message]]) -> None:
        """Produce without transactions: each batch of a producer once, in order."""
        expected = self.numbers.get(producer, 0)
        if number > expected:
            raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER))
        if number == expected:
            self.numbers[producer] = number + 1
            for partition, message in batch:
                self.logs[partition].append(Written(-1, message))

    def _require(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED))

    def lose_some(self, partition: Partition) -> None:
        """Loses the end of a log, which it had acknowledged; connections are lost with what was on its way."""
        log = self.logs[partition]
        del log[max(0, len(log) - self.chance.randint(1, 8)) :]
        self.late = []

    def end_offset(self, partition: Partition, *, committed: bool) -> int:
        log = self.logs[partition]
        if not committed:
            return len(log)
        ended = next((at for at in reversed(range(len(log))) if log[at].message is None), -1)
        return next((at for at in range(ended + 1, len(log)) if log[at].producer >= 0), len(log))

    def messages(self, partition: Partition, *, committed: bool, begin: int = 0) -> list[Message]:
        """The messages from an offset on, each with its offset."""
        return [*self._from_end(partition, committed=committed, begin=begin)][::-1]

    def _from_end(
        self, partition: Partition, *, committed: bool, begin: int = 0, end: int | None = None
    ) -> Iterator[Message]:
        """The messages from before ``end`` down to ``begin``, each with its offset, the newest first."""
        log, is_commit = self.logs[partition], False
        for at in range(self.end_offset(partition, committed=committed) - 1, begin - 1, -1):
            each = log[at]
            if each.message is None:
                is_commit = each.is_commit
            elif (end is None or at < end) and (each.producer < 0 or not committed or is_commit):
                yield _at(each.message, partition, at)

    def windows(
        self, _: Any, partition: Partition, offsets: tuple[int, int], *, pick: Any, first: int, group: str
    ) -> Iterator[Any]:
        """``cdc.kafka.partitions.windows``."""
        begin, end = offsets
        assert end <= len(self.logs[partition]), "Kafka has no such offset"
        while end > begin:
            start = max(begin, end - first)
            found = self.messages(partition, committed=True, begin=start)
            yield from [pick(each) for each in reversed(found) if (each.offset() or 0) < end]
            end, first = start, first * 8

    def backwards(
        self, _: Any, partition: Partition, *, committed: bool = True, end: int | None = None, pick: Any = None
    ) -> Iterator[Any]:
        """``cdc.kafka.partitions.backwards``."""
        found = self._from_end(partition, committed=committed, end=end)
        return map(pick, found) if pick else found

    def newest(self, _: Any, partitions: list[Partition]) -> dict[Partition, Message]:
        """``cdc.kafka.partitions.newest``."""
        found = {each: next(self._from_end(each, committed=True), None) for each in partitions}
        return {each: message for each, message in found.items() if message is not None}

    def unended(self, _: Any, partitions: list[Partition]) -> list[Partition]:
        """``cdc.kafka.partitions.unended``."""
        return [each for each in partitions if self.end_offset(each, committed=True) < len(self.logs[each])]


def _at(message: Message, partition: Partition, offset: int) -> Message:
    # A new one, since readers change the values of those they get.
    return Message(
        topic=partition[0], partition=partition[1], offset=offset, key=message.key(), value=message.value(),
        headers=message.headers(),
    )  # fmt: skip


class Client:
    """A producer of librdkafka's, transactional or idempotent, at the ``broker``."""

    def __init__(self, broker: Broker, settings: Mapping[str, Any]) -> None:
        self._broker = broker
        self._transactional = "transactional.id" in settings
        self._epoch = 0
        self._added: set[Partition] = set()
        self._waiting: list[tuple[Partition, Message]] = []
        broker.ids += 1
        self._id, self._number = broker.ids, 0

    def __len__(self) -> int:
        return len(self._waiting)

    def poll(self, _: float = 0) -> int:
        return 0

    def list_topics(self, topic: str, timeout: float = 0) -> None:
        pass

    def init_transactions(self, _: float = 0) -> None:
        answers: list[int] = []
        self._broker.request(lambda: answers.append(self._broker.begin_epoch()))
        self._epoch = answers[0]  # the answer to a request that comes late goes nowhere

    def begin_transaction(self) -> None:
        self._added = set()

    def produce(
        self, topic: str, value: bytes | None, key: bytes = b"", partition: int = 0, *, timestamp: int = 0,
        headers: Any = None,
    ) -> None:  # fmt: skip
        message = Message(topic=topic, partition=partition, key=key, value=value, headers=headers or [])
        self._waiting.append(((topic, partition), message))

    def flush(self, _: float = 0) -> int:
        batch, broker = self._waiting, self._broker
        self._waiting = []
        if not self._transactional:
            while batch:
                some = batch[: broker.chance.randint(1, len(batch))]
                batch, number = batch[len(some) :], self._number
                self._number += 1
                broker.request(lambda number=number, some=some: broker.append_plain(self._id, number, some))  # type: ignore[misc]
            return 0
        epoch = self._epoch
        for partition, message in batch:
            if partition not in self._added:
                broker.request(lambda place=partition: broker.add_partition(epoch, place))  # type: ignore[misc]
                self._added.add(partition)
            # A request that waits for its answer is not sent twice with the same number of its batch.
            broker.deliver_some()
            broker.append(epoch, partition, message)
        return 0

    def commit_transaction(self, _: float = 0) -> None:
        self.flush()
        epoch, broker = self._epoch, self._broker
        if self._added:
            broker.request(lambda: broker.end(epoch, commit=True))

    def abort_transaction(self, _: float = 0) -> None:
        epoch, broker = self._epoch, self._broker
        broker.request(lambda: broker.end(epoch, commit=False))

    def purge(self) -> None:
        self._waiting = []
