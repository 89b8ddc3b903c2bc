"""A history of one leader, its producers, brokers, and a follower with its consumers, decided by a seed: sink,
recovery, reader, merge, assembler and checkpoint are ours; the brokers and the follower's server are models.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message as KafkaMessage

from cdc.config.topic_names import PER_TABLE, SINGLE, Topics
from cdc.consumer.source.assembler import Batch, DeferErrors, assemble, batches
from cdc.consumer.source.reader import KafkaReader
from cdc.consumer.source.record_source import MergedSource, RecordSource, SingleTopic
from cdc.consumer.startup import Startup
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.errors import CdcError, Disconnected, PromiseError
from cdc.kafka import commit_log, errors
from cdc.kafka.fragments import Fragments
from cdc.model.commit_entry import Entry
from cdc.model.position import Partition, Position
from cdc.model.record import Record, Uri
from cdc.producer.sink import epoch_marks, kafka_transactions, recovery, topic_admin
from cdc.producer.sink.kafka_sink import KafkaSink, Replaced
from cdc.producer.sink.kafka_transactions import BatchSize
from cdc.producer.sink.record_parts import COPIED, Message
from cdc.producer.sink.topic_admin import TopicAdmin
from tests.harness import simulated_reader
from tests.harness.simulated_broker import Broker, Client, Ended

__all__ = ["History", "Kind"]

_TRANSACTIONS = 8
_TABLES = ("a", "b", "c")
_FILE = "binlog.000001"
_ATTEMPTS = 6
_WAITS = 100
# The errors that report a loss, or of a chunk of which readers see no more than a part, or only what is behind it.
_LOST = {
    "Session": {"CDC-TOPIC-RECORDS-LOST", "CDC-TOPIC-WITHOUT-COMMIT-LOG", "CDC-TOPIC-RECORDS-DIFFER",
                "CDC-TOPIC-NOT-OWN", "CDC-RECORD-INVALID", "CDC-COMMIT-LOG-INVALID"},
    "Follower": {"CDC-FOLLOWER-AHEAD", "CDC-FOLLOWER-BEHIND-RETENTION", "CDC-TOPIC-GAP", "CDC-TOPIC-OFFSET-GONE",
                 "CDC-TOPIC-OTHER-RECORDS", "CDC-TOPIC-OTHER-CHUNK", "CDC-RECORD-FRAGMENTS", "CDC-RECORD-INVALID",
                 "CDC-COMMIT-LOG-INVALID"},
}  # fmt: skip
_LOST_CHUNKS = {"Session": {"CDC-TOPIC-RECORDS-LOST"}, "Follower": {"CDC-TOPIC-GAP"}}
_NEVER: Any = SimpleNamespace(is_set=lambda: False)


@dataclass(frozen=True)
class Kind:
    """What may happen in a history. ``plain`` is true without Kafka transactions; ``chunks`` is the number of the
    copy's chunks.

    ``lost`` is the chance at each request that brokers lose the ends of logs: of ``records``, of the commit log
    (``commits``), or of both. Where producers and consumers do not run ``through`` a loss, those that run end first.
    With ``xa`` some leader transactions are of XA: their rows were logged when they were prepared, in another binlog.
    """

    layout: str = SINGLE
    plain: bool = False
    chunks: int = 0
    lost: float = 0.0
    records: bool = True
    commits: bool = False
    through: bool = False
    xa: bool = False


class SimulatedTopics(TopicAdmin):
    """Topics that are created at once, with the settings that they need."""

    def __init__(self, broker: Broker, names: Topics, *, transactional: bool, partitions: int) -> None:
        super().__init__({"bootstrap.servers": "none"}, names, partitions=partitions, replicas=1, retention_hours=0)
        self.transactional = transactional
        self.times: Any = SimpleNamespace(stamp=lambda _, time_ms: time_ms)
        self._broker = broker

    def require(self) -> None:
        self._create(dict.fromkeys(self.names.first, 1))

    def unended(self, partitions: list[Partition]) -> list[Partition]:
        self._broker.write_ends()  # it waits for seconds
        return self._broker.unended({}, partitions)

    def _create(self, partitions: Any) -> None:
        self._broker.create(partitions)

    def _require_kept(self, names: set[str], known: Any) -> None:
        pass


class History:
    """A history of the ``kind``. ``errors`` counts the errors with which programs have ended, by program and code.
    Without Kafka transactions, entries of the commit log come after ``entry_seconds``.
    """

    def __init__(self, seed: int, patch: pytest.MonkeyPatch, kind: Kind) -> None:
        self.kind = kind
        self.chance = chance = random.Random(seed)
        self.broker = Broker(chance, troubles=chance.choice([0.02, 0.1, 0.3]), disturb=self._lose_some)
        self.broker.slow_ends = chance.choice([0.0, 0.3])
        self.names = Topics("t", kind.layout)
        self.partitions = chance.randint(1, 2)
        sizes = [chance.randint(1, 3) for _ in range(_TRANSACTIONS)]
        self.leader = [(number, index, index == size - 1) for number, size in enumerate(sizes) for index in range(size)]
        # A table is created when some transactions are over, and its topic with its first record.
        self.tables = [chance.choice(_TABLES[: 1 + number * len(_TABLES) // _TRANSACTIONS * 2 + 1]) for number, _, _
                       in self.leader]  # fmt: skip
        of_xa = random.Random(f"{seed} XA")
        self.prepared = {number for number in range(_TRANSACTIONS) if kind.xa and of_xa.random() < 0.4}
        self.message_bytes = chance.choice([8_000_000, 1000])  # with the least, each record is several fragments
        self.partial = chance.choice([0.0, 0.3])  # the chance of a commit amid a leader transaction
        self.applied: list[Record] = []
        self.checkpoint: Checkpoint | None = None
        self.instances = 0
        self.errors: Counter[tuple[str, str]] = Counter()
        self.losses = self.read = 0
        self.outcome = ("", "")
        self._programs: list[Session | Follower] = []
        self._patch(patch)

    def _patch(self, patch: pytest.MonkeyPatch) -> None:
        broker, chance = self.broker, self.chance
        for module in (recovery, epoch_marks, commit_log):
            patch.setattr(module, "backwards", broker.backwards)
        for module in (recovery, topic_admin):
            patch.setattr(module, "newest", broker.newest)
            patch.setattr(module, "unended", broker.unended)
        patch.setattr(topic_admin, "end_offsets", broker.end_offsets)
        patch.setattr(topic_admin, "known_topics", broker.known_topics)
        patch.setattr(errors, "reason", lambda _: None)  # asks real brokers why they do not answer
        for module in (recovery, epoch_marks, topic_admin):
            patch.setattr(module, "begin_offsets", lambda _, places: dict.fromkeys(places, 0))
        patch.setattr(kafka_transactions, "Producer", lambda settings, logger: Client(broker, settings))
        self.entry_seconds = chance.choice([-1.0, 1e9])
        simulated_reader.patched(broker, patch)

    def _lose_some(self) -> None:
        if not self.kind.lost or self.chance.random() >= self.kind.lost:
            return
        log = (self.names.commits, 0)
        there = [each for each in self.broker.logs if (self.kind.commits if each == log else self.kind.records)]
        some = [each for each in there if self.chance.random() < 0.5]
        if not some:
            return
        self.losses += 1
        self.broker.lose_some(some)
        if not self.kind.through:
            self._programs.clear()  # programs that can't know of the loss start again
            raise Ended

    def message(self, sequence: int, at: int) -> Message:
        """The record of the leader's change number ``at``."""
        number, index, last = self.leader[at]
        rows = [{"cols": [{"String": "x" * 1500 * (at % 2)}]}]
        transaction = {"id": self._id(number), "index": index, "last": last, "ts_us": 1}
        place = Position("binlog.000000" if number in self.prepared else _FILE, 5 + 2 * at)
        return self._message(sequence, at, place, transaction, {"Add": {"rows": rows}})

    def _id(self, number: int) -> str:
        """The id of a leader transaction: without GTIDs, an XA transaction has the place of its XA COMMIT."""
        if number not in self.prepared:
            return f"u:{number}"
        return f"{_FILE}:{5 + 2 * next(at for at, (of, _, _) in enumerate(self.leader) if of == number)}"

    def chunk(self, sequence: int, at: int, number: int) -> Message:
        """A chunk as it is read now; its header has the number of those that are written then."""
        rows = [{"cols": [{"String": f"{self.chance.random()}" + "x" * self.chance.choice([0, 1500])}]}]
        self.read += 1
        transaction = {"id": f"copy:{number}", "index": 0, "last": True, "ts_us": 1 + self.read}
        operation = {"Copy": {"after": None, "upto": None, "rows": rows}}
        message = self._message(sequence, at, Position(_FILE, 4 + 2 * at), transaction, operation)
        return message._replace(headers=[(COPIED, json.dumps({"written": number + 1}).encode())])

    def _message(
        self, sequence: int, at: int, position: Position, transaction: dict[str, Any], operation: dict[str, Any]
    ) -> Message:
        table = self.tables[min(at, len(self.tables) - 1)]
        uri, place = str(Uri("r", "d", table)), {"fileName": position.file, "offset": position.offset}
        body: dict[str, Any] = {"uri": uri, "sequence": sequence, "bn_file": place, "transaction": transaction}
        body |= {"columns": ["i"], "key": ["i"], "operation": operation}
        text = json.dumps(body, separators=(",", ":")).encode()
        return Message(self.names.of_table("d", table), uri.encode(), text, 0, [])

    def entry(self, following: int, at: int, written: int, instance: str) -> Entry:
        copy = {"written": written} if written else None
        return Entry(following, Position(_FILE, 4 + 2 * at), "", "u", instance=instance, copy=copy)

    def session(self) -> "Session":
        self.instances += 1
        return Session(self, f"i{self.instances}")

    def run(self) -> None:
        """Runs it, and judges: raises AssertionError for a fault that no error reports."""
        programs = self._programs
        for _ in range(40):
            kinds = Counter(type(each) for each in programs)
            if not kinds[Session] or self.chance.random() < 0.1:
                programs.append(self.session())  # those before it are not ended: they were paused
            if not kinds[Follower] or self.chance.random() < 0.05:
                programs.append(Follower(self))
            self._step(self.chance.choice(programs[-4:]))
            if self.chance.random() < 0.02:
                self.broker.restart()
        # All goes well from here on, but for what is late.
        self.broker.troubles, self.broker.slow_ends, self.broker.disturb = 0.0, 0.0, lambda: None
        producer = self._finish_producer()
        while self.broker.late or self.broker.unwritten:
            self.broker.deliver_some()
        if not producer:
            self.require_whole_or_told()
        consumer = self._finish_consumer()
        self.outcome = producer, consumer
        assert self.losses or producer or not consumer, consumer
        if not producer and not consumer:
            self.require_once()

    def _step(self, program: "Session | Follower") -> None:
        try:
            ended = not program.step()
        except Ended:
            ended = True
        except CdcError as error:
            self._note(program, error)
            ended = True
        if ended and program in self._programs:
            self._programs.remove(program)

    def _note(self, program: "Session | Follower", error: CdcError) -> None:
        """Counts an error with which a program ends. Raises it where nothing can be lost."""
        name = type(program).__name__
        # A run to the present end does not wait for a record that the producer writes again.
        is_early = error.code == "CDC-TOPIC-GAP" and isinstance(program, Follower) and program.until_current
        if is_early and self.kind.layout == PER_TABLE:
            return
        if error.code not in (_LOST[name] if self.losses else _LOST_CHUNKS[name] if self.kind.chunks else ()):
            raise error
        assert error.hint, f"no way out: {error}"
        self.errors[name, error.code] += 1

    def _finish_producer(self) -> str:
        """Lets a producer write the rest; returns the code of the error with which it ends, if any."""
        last, error = self.session(), None
        for _ in range(200):
            if last.at_end:
                return ""
            try:
                if not last.step():
                    last = self.session()
            except CdcError as found:
                self._note(last, found)
                if error is not None and error.code == found.code:
                    return found.code
                error, last = found, self.session()
        raise AssertionError("the producer does not come to an end")

    def _finish_consumer(self) -> str:
        """Lets consumers apply the rest; returns the code of the error with which the last one ends, if any."""
        code = ""
        for _ in range(_ATTEMPTS):
            last, code = Follower(self, until_current=True, may_end=False), ""
            try:
                # One that finds a transaction without an end waits for the producer, which rolls it back.
                code = "" if any(not last.step() for _ in range(_WAITS)) else "waits"
            except CdcError as found:
                self._note(last, found)
                code = found.code
        return code

    @property
    def loses_chunks(self) -> bool:
        """Whether brokers have lost something, and perhaps a chunk with the entries that count it, or the end of a
        transaction in one of several topics.
        """
        return bool(self.losses and self.kind.chunks and (self.kind.commits or self.kind.layout == PER_TABLE))

    def require_prefix(self) -> None:
        """The follower has applied whole transactions of the leader, each once, in order."""
        changes = [(record.transaction, record.index, record.last) for record in self.applied if not record.of_copy]
        assert changes == [(self._id(number), *rest) for number, *rest in self.leader][: len(changes)]
        assert not changes or changes[-1][2], f"half of a transaction is applied: {changes[-1]}"
        chunks = [record.transaction for record in self.applied if record.of_copy]
        assert chunks == [f"copy:{number}" for number in range(len(chunks))]
        assert [record.sequence for record in self.applied] == list(range(len(self.applied)))

    def require_once(self) -> None:
        """The follower has applied each change and each chunk once, in order, and just what readers see now."""
        self.require_prefix()
        # Where brokers lost a mark while producers ran, a new reader may take records for void that this one had
        # applied before: that reader stops at a gap.
        may_be_void = self.losses and self.kind.plain and self.kind.through
        assert self.applied == self.shown() or may_be_void, "the follower has applied other records than readers see"
        assert self.is_complete(self.applied), f"applied {len(self.applied)} of {len(self.leader)} changes"

    def require_whole_or_told(self) -> None:
        """Readers see each record, in order. Where brokers lost records while programs ran, or a chunk together with
        the entries that count it, a reader of the whole topic ends with an error instead.
        """
        if not self.loses_chunks and not (self.losses and self.kind.through and self.kind.records):
            self.require_whole()
            return
        applied, checkpoint, self.applied, self.checkpoint = self.applied, self.checkpoint, [], None
        try:
            if not self._finish_consumer():
                self.require_once()
        finally:
            self.applied, self.checkpoint = applied, checkpoint

    def require_whole(self) -> None:
        """Readers see each record, in order."""
        shown = self.shown()
        assert [record.sequence for record in shown] == list(range(len(shown))), (
            f"no error reports a gap: {[record.sequence for record in shown]}, {self.errors}"
        )
        assert self.is_complete(shown), f"readers see {len(shown)} of {len(self.leader)} changes"

    def is_complete(self, records: list[Record]) -> bool:
        changes = sum(not record.of_copy for record in records)
        return changes == len(self.leader) and len(records) - changes == self.kind.chunks

    def shown(self) -> list[Record]:
        """Returns the records of all topics as a plain reader sees them, in the order of their numbers."""
        newest = next(commit_log.entries({}, topic=self.names.commits, resource="r"))
        found = list[Record]()
        for place in self.broker.logs:
            if place[0] != self.names.commits:
                whole = Fragments(lambda _: newest.marks).all_whole(self.broker.messages(place, committed=True))
                found += [self.parsed(each) for each in whole]
        # A reader drops a record that it has had.
        return [each for each, _ in groupby(sorted(found, key=lambda record: record.sequence))]

    @staticmethod
    def parsed(message: KafkaMessage) -> Record:
        return Record.parse(message.value() or b"", where="here")


class Session:
    """A producer's process, which goes on a step at a time."""

    def __init__(self, history: History, instance: str) -> None:
        self._history = history
        self._instance = instance
        self._sink: KafkaSink | None = None
        self._opened = False
        self._topics = SimulatedTopics(
            history.broker, history.names, transactional=not history.kind.plain, partitions=history.partitions
        )
        self._next = self._at = self._written = 0
        self.at_end = False

    def step(self) -> bool:
        """Opens the sink, or writes a leader transaction and perhaps commits; false where the process has ended."""
        try:
            self._open() if self._sink is None else self._write(self._sink)
        except (Ended, Replaced):
            return False
        except Disconnected:
            return self._closed()
        except PromiseError:
            self._commit_complete()
            raise
        return True

    def _commit_complete(self) -> None:
        """Commits what is whole before an error ends the process, as ``Stream`` does."""
        sink = self._sink
        if sink is not None and (not self._at or self._history.leader[self._at - 1][2]):
            with suppress(Disconnected, Ended):
                self._commit(sink)

    def _open(self) -> None:
        history = self._history
        size = BatchSize(16_000_000, history.message_bytes)
        sink = KafkaSink.open(
            self._topics, size, resource="r", instance=self._instance, reopening=self._opened, stop=_NEVER
        )
        entry = replace(sink.entry or history.entry(0, 0, 0, ""), instance=self._instance)
        sink.start(entry)
        self._opened = True
        self._sink, self._next, self._at = sink, entry.next_sequence, (entry.position.offset - 4) // 2
        self._written = int((entry.copy or {}).get("written", 0))

    def _write(self, sink: KafkaSink) -> None:
        history = self._history
        self._copy(sink)
        while self._at < len(history.leader):
            self._put(sink, history.message(self._next, self._at), sink.write)
            self._at += 1
            if history.leader[self._at - 1][2]:
                break
            if history.chance.random() < history.partial:
                self._commit(sink)
        self._copy(sink)
        at_end = self._at == len(history.leader) and self._written == history.kind.chunks
        if at_end or history.chance.random() < 0.6:
            self._commit(sink)
            sink.check()
        self.at_end = at_end

    def _put(self, sink: KafkaSink, message: Message, write: Any) -> None:
        if not sink.has_one_topic and not sink.has_ready({message.topic}):
            if sink.records:
                self._commit(sink)
            sink.make_ready({message.topic})
        write([message])
        self._next += 1

    def _commit(self, sink: KafkaSink) -> None:
        sink.commit(self._history.entry(self._next, self._at, self._written, self._instance))

    def _copy(self, sink: KafkaSink) -> None:
        """Goes on after the chunks that readers see already, and writes others, as ``Interleaver`` does."""
        history = self._history
        if self._at and not history.leader[self._at - 1][2]:
            return  # amid a leader transaction, of which an earlier session has written the beginning
        while (text := sink.visible_chunk) is not None:
            self._written = json.loads(text)["written"]
            sink.count_chunk()
            self._next += 1
        while not sink.has_visible and self._written < history.kind.chunks and history.chance.random() < 0.4:
            self._put(sink, history.chunk(self._next, self._at, self._written), sink.write_with_entry)
            self._written += 1

    def _closed(self) -> bool:
        """The process connects again, as another one would."""
        try:
            if self._sink is not None:
                self._sink.close()
        except Ended:
            return False
        self._sink = None
        return self._history.chance.random() < 0.5


class Follower:
    """A consumer's process, which goes on a step at a time."""

    def __init__(self, history: History, *, until_current: bool = False, may_end: bool = True) -> None:
        self._history = history
        self.until_current = until_current or history.chance.random() < 0.3
        self._may_end = may_end
        self._batches: Iterator[Batch | None] | None = None
        self._transactions: DeferErrors[Any] | None = None
        self._waiting: list[Record] = []
        self._at: Checkpoint | None = None

    def step(self) -> bool:
        """Opens the topics, or applies some batches; false where the process has ended."""
        if self._batches is None:
            return self._open()
        assert self._transactions is not None
        for batch in self._batches:
            if batch is None:
                return not self._may_end or not self._dies()
            if not self._apply(batch):
                return False
        self._transactions.reraise()
        return False

    def _open(self) -> bool:
        history = self._history
        names = history.names
        reader = KafkaReader(bootstrap_servers="none", group="g", properties={}, retry_seconds=0, commits=names.commits)
        is_many = names.layout == PER_TABLE
        source: RecordSource = MergedSource(reader, names) if is_many else SingleTopic(reader, names.topic)
        topic = source.topic()
        if topic is None:
            return False
        profile: Any = SimpleNamespace(kafka=SimpleNamespace(topics=lambda: names))
        nothing: Any = None
        startup = Startup(profile, reader, nothing, nothing, source, nothing)
        there = history.checkpoint or Checkpoint("r", topic.name, topic.id)
        self._at = startup.continued(there, topic)
        source.start(topic, self._at.offsets, sequence=self._at.sequence + 1, until_current=self.until_current)
        size = history.chance.choice([1000, 2_000_000])
        located = source.records(_NEVER)
        assembled = assemble(located, resource="r", next_sequence=self._at.sequence + 1, size=size)
        self._transactions = DeferErrors(assembled)
        self._batches = batches(self._transactions, rows=history.chance.choice([1, 4]))
        return True

    def _apply(self, batch: Batch) -> bool:
        """Rows and checkpoint in one transaction of the follower; false where the process has ended. Another consumer
        may have moved the checkpoint meanwhile.
        """
        history, at = self._history, self._at
        assert at is not None
        self._waiting += batch.records
        if not batch.ends:
            return True
        if self._dies() or at.sequence != (history.checkpoint.sequence if history.checkpoint else -1):
            return False
        history.applied += self._waiting
        self._waiting = []
        self._at = history.checkpoint = at.advanced(last=batch.last, offsets=batch.offsets)
        # In one of several topics, a lost chunk's number may come again behind records that are read before it.
        if not history.loses_chunks:
            history.require_prefix()
        return not self._dies()

    def _dies(self) -> bool:
        return self._may_end and self._history.chance.random() < 0.1
