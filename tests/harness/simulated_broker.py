"""A model of Kafka brokers, for simulations alone: what they do to a request, a seed decides.

They take a request, or take it and its answer is lost, or it comes late: at any later moment, when its client has long
gone on. The client may end at each of its requests but those with records of an open transaction. The end of a
transaction gets into one partition after the other, and into some of them never where a broker restarts meanwhile.
Where asked to, the brokers lose the end of a log, as after the election of a leader that lags behind, and with it what
they knew of the producers of those batches. As in Kafka 4, a transactional id has one epoch and a batch outside of a
transaction is refused, but a commit carries no number of its transaction: librdkafka knows none (KIP-890).
"""

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from cdc.kafka.topics import KnownTopic
from cdc.model.position import Partition

__all__ = ["Broker", "Client", "Ended", "Written"]

_TRANSACTIONAL = 0  # the id of the producer with the only transactional id


class Ended(BaseException):
    """The program that sent this request was killed."""


class Batch(NamedTuple):
    """The number of a batch, as the brokers compare it: of a producer, and its epoch."""

    producer: int
    epoch: int
    number: int


class Written(NamedTuple):
    """A place of a log: a message, or the end of a producer's transaction. Messages without transactions have the
    producer -1; of the others only one at a time has a transaction, and the next end of any ends what is open."""

    producer: int
    message: Message | None
    is_commit: bool = False
    batch: Batch | None = None


class Late(NamedTuple):
    """A request that is on its way, to the leader of a partition or to the coordinator."""

    work: Callable[[], object]
    partition: Partition | None


@dataclass
class Broker:
    """``troubles`` is the chance of a trouble for each request; ``disturb`` is called before each, and may lose
    records.
    """

    chance: random.Random
    troubles: float
    logs: dict[Partition, list[Written]] = field(default_factory=dict)
    disturb: Callable[[], None] = lambda: None
    slow_ends: float = 0.0  # the chance that the end of a transaction does not get into a partition at once
    epoch: int = 0  # of the only transactional id, which is the number of its producer, too
    open_in: set[Partition] = field(default_factory=set)
    late: list[Late] = field(default_factory=list)
    unwritten: list[tuple[Partition, Written]] = field(default_factory=list)  # ends of the newest transaction
    ended: bool | None = None  # how the newest transaction of this epoch has ended: true with a commit
    ids: int = 0
    known: dict[tuple[Partition, int], Batch] = field(default_factory=dict)  # the newest batch of each producer
    truncated: dict[Partition, list[int]] = field(default_factory=dict)  # the ends that elections have left
    away: int = 0  # how often a broker went away: clients notice

    def create(self, partitions: Mapping[str, int]) -> None:
        for name, count in partitions.items():
            for number in range(count):
                self.logs.setdefault((name, number), [])

    def known_topics(self, _: Any, names: Collection[str]) -> dict[str, KnownTopic]:
        """``cdc.kafka.topics.known_topics``."""
        found: dict[str, dict[int, Any]] = {}
        for name, number in self.logs:
            if name in names:
                found.setdefault(name, {})[number] = None
        return {name: KnownTopic("id", partitions) for name, partitions in found.items()}

    def request(self, work: Callable[[], None], partition: Partition | None = None) -> None:
        """Sends one request. Raises Ended, or KafkaException if its answer is lost or ``work`` raises it."""
        self.deliver_some()
        self.disturb()
        if self.chance.random() >= self.troubles:
            work()
            return
        kind = self.chance.randrange(6)
        if kind in (0, 1):  # it comes late; the client does, or does not, send it again over a new connection
            self.late.append(Late(work, partition))
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
        while self.unwritten and self.chance.random() < 0.3:
            self._write_end(self.chance.randrange(len(self.unwritten)))
        while self.late and self.chance.random() < 0.3:
            late = self.late.pop(self.chance.randrange(len(self.late)))
            with suppress(KafkaException):  # the answer goes nowhere
                late.work()

    def begin_epoch(self) -> int:
        """InitProducerId: aborts what is open, and fences all before."""
        self.write_ends()
        self._end(False)
        self.write_ends()
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
            self.unwritten.append((partition, Written(self.epoch, None, commit)))
        self.open_in = set()
        if not self.slow_ends or self.chance.random() >= self.slow_ends:
            self.write_ends()

    def write_ends(self) -> None:
        """Writes the ends of the newest transaction into all its partitions; no other one begins before."""
        while self.unwritten:
            self._write_end(0)

    def _write_end(self, at: int) -> None:
        partition, end = self.unwritten.pop(at)
        self.logs[partition].append(end)

    def restart(self) -> None:
        """A broker restarts, and takes some ends of transactions as written."""
        self.unwritten = [each for each in self.unwritten if self.chance.random() < 0.5]
        self.away += 1

    def add_partition(self, epoch: int, partition: Partition) -> None:
        self._require(epoch)
        self.write_ends()
        self.open_in.add(partition)

    def append(self, partition: Partition, message: Message, batch: Batch) -> None:
        """Produce within a transaction."""
        self._require(batch.epoch)
        if partition not in self.open_in:
            raise KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE))
        if self._is_next(partition, batch):
            self.logs[partition].append(Written(batch.epoch, message, batch=batch))

    def append_plain(self, partition: Partition, messages: list[Message], batch: Batch) -> None:
        """Produce without transactions: each batch of a producer once, in order."""
        if self._is_next(partition, batch):
            self.logs[partition] += [Written(-1, message, batch=batch) for message in messages]

    def _is_next(self, partition: Partition, batch: Batch) -> bool:
        """Whether the batch is new. A producer that is unknown in the partition may begin with any number
        (ProducerAppendInfo.checkSequence of Kafka), and so a loss that took all of it leaves a hole.
        """
        before = self.known.get((partition, batch.producer))
        if before is not None:
            expected = before.number + 1 if before.epoch == batch.epoch else 0
            if batch.number > expected:
                raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER))
            if batch.number < expected:
                return False
        self.known[partition, batch.producer] = batch
        return True

    def _require(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED))

    def lose_some(self, partitions: Collection[Partition]) -> None:
        """Loses the ends of these logs, which had been acknowledged; so is what was on its way to their leader."""
        for partition in partitions:
            log = self.logs[partition]
            left = max(0, len(log) - self.chance.randint(1, 8))
            while 0 < left < len(log) and log[left].batch is not None and log[left - 1].batch == log[left].batch:
                left -= 1  # a batch is lost as a whole
            if left == len(log):
                continue
            del log[left:]
            self.truncated.setdefault(partition, []).append(left)
            for known in [each for each in self.known if each[0] == partition]:
                del self.known[known]
            self.known |= {(partition, each.batch.producer): each.batch for each in log if each.batch is not None}
        self.late = [late for late in self.late if late.partition not in partitions]
        self.away += 1

    def end_offset(self, partition: Partition, *, committed: bool) -> int:
        log = self.logs[partition]
        if not committed:
            return len(log)
        ended = next((at for at in reversed(range(len(log))) if log[at].message is None), -1)
        return next((at for at in range(ended + 1, len(log)) if log[at].producer >= 0), len(log))

    def end_offsets(self, _: Any, partitions: Collection[Partition], *, committed: bool = True) -> dict[Partition, int]:
        """``cdc.kafka.partitions.end_offsets``."""
        return {each: self.end_offset(each, committed=committed) for each in partitions}

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

    def newest(self, _: Any, partitions: Collection[Partition]) -> dict[Partition, Message]:
        """``cdc.kafka.partitions.newest``."""
        found = {each: next(self._from_end(each, committed=True), None) for each in partitions}
        return {each: message for each, message in found.items() if message is not None}

    def newest_within(self, _: Any, ranges: Mapping[Partition, tuple[int, int]]) -> dict[Partition, Message]:
        """``cdc.kafka.partitions.newest_within``."""
        found = {each: next(self._from_end(each, committed=True, end=end), None) for each, (_, end) in ranges.items()}
        begins = {each: begin for each, (begin, _) in ranges.items()}
        return {
            each: message
            for each, message in found.items()
            if message is not None and (message.offset() or 0) >= begins[each]
        }

    def oldest(self, _: Any, partition: Partition, *, passes: Callable[[Message], bool]) -> Message | None:
        """``cdc.kafka.partitions.oldest``."""
        return next(filter(passes, self.messages(partition, committed=True)), None)

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
    """A producer of librdkafka's, transactional or idempotent, at the ``broker``. ``notices`` is false for one that
    does not notice brokers that go away, since it had no connection to them.
    """

    def __init__(self, broker: Broker, settings: Mapping[str, Any], *, notices: bool = True) -> None:
        self._broker = broker
        self._transactional = "transactional.id" in settings
        self._on_error = settings.get("error_cb", lambda _: None)
        self._notices = notices
        self._away = broker.away
        self._epoch = 0
        self._added: set[Partition] = set()
        self._waiting: list[tuple[Partition, Message]] = []
        if not self._transactional:
            broker.ids += 1
        self._id = _TRANSACTIONAL if self._transactional else broker.ids
        self._numbers: dict[Partition, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def poll(self, _: float = 0) -> int:
        if self._away != self._broker.away:
            self._away = self._broker.away
            if self._notices:
                self._on_error(KafkaError(KafkaError._TRANSPORT, "a broker went away"))
        return 0

    def list_topics(self, topic: str, timeout: float = 0) -> None:
        pass

    def init_transactions(self, _: float = 0) -> None:
        answers: list[int] = []
        self._broker.request(lambda: answers.append(self._broker.begin_epoch()))
        self._epoch, self._numbers = answers[0], {}  # the answer to a request that comes late goes nowhere

    def begin_transaction(self) -> None:
        self._added = set()

    def produce(
        self, topic: str, value: bytes | None, key: bytes = b"", partition: int = 0, *, timestamp: int = 0,
        headers: Any = None,
    ) -> None:  # fmt: skip
        message = Message(topic=topic, partition=partition, key=key, value=value, headers=headers or [])
        self._waiting.append(((topic, partition), message))

    def _batch(self, partition: Partition) -> Batch:
        number = self._numbers.get(partition, 0)
        self._numbers[partition] = number + 1
        return Batch(self._id, self._epoch, number)

    def flush(self, _: float = 0) -> int:
        waiting, broker = self._waiting, self._broker
        self._waiting = []
        if not self._transactional:
            while waiting:
                some = waiting[: broker.chance.randint(1, len(waiting))]
                waiting, partition = waiting[len(some) :], some[0][0]
                self._send(partition, [message for _, message in some], self._batch(partition))
            return 0
        for partition, message in waiting:
            if partition not in self._added:
                broker.request(lambda place=partition: broker.add_partition(self._epoch, place))  # type: ignore[misc]
                self._added.add(partition)
            # A request that waits for its answer is not sent twice with the same number of its batch.
            broker.deliver_some()
            broker.disturb()
            broker.append(partition, message, self._batch(partition))
        return 0

    def _send(self, partition: Partition, messages: list[Message], batch: Batch) -> None:
        self._broker.request(lambda: self._broker.append_plain(partition, messages, batch), partition)

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
