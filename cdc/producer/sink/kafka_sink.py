"""Writes messages in Kafka transactions: commits records together with the entry of the commit log that counts them."""

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Self

from confluent_kafka import KafkaException

from cdc.config.topic_names import PER_TABLE
from cdc.errors import CdcError, Disconnected, PromiseError
from cdc.kafka.errors import open_error
from cdc.kafka.fragments import FRAGMENT_HEADER, Begun, cut, cut_blocks, rest
from cdc.model.commit_entry import Entry, Mark
from cdc.model.position import Position
from cdc.producer.large_rows import LargeText
from cdc.producer.large_rows import checksum as checksum_of
from cdc.producer.sink.debezium_sink import DebeziumSink
from cdc.producer.sink.epoch_marks import located
from cdc.producer.sink.kafka_transactions import NEVER, BatchSize, KafkaTransactions
from cdc.producer.sink.message_heads import AFTER, SHOWN
from cdc.producer.sink.plain_writes import PlainWrites, recovered, stamp, write_mark
from cdc.producer.sink.record_parts import HEAD_BYTES, Headers, Message, binlog_place
from cdc.producer.sink.recovery import Recovered, require_ended, without_types
from cdc.producer.sink.router import Partitioner
from cdc.producer.sink.topic_admin import TopicAdmin, require_counted
from cdc.service.process import described

__all__ = ["KafkaSink", "Replaced", "await_successor"]

_ANSWER_SECONDS = 10.0
_SUCCESSOR_SECONDS = 5.0
_POLL_SECONDS = 0.2
_QUOTED_BYTES = 160
_ENTRY_SECONDS = 1.0  # seconds between two entries of the commit log without Kafka transactions
_BROKER_SECONDS, _PLAIN_SECONDS, _COPYING_SECONDS = 0.002, 0.0005, 0.02
_SECONDS_PER_RECORD = 20e-6
_MAX_GATHER_SECONDS = 0.05


class Replaced(PromiseError):
    """Another producer has taken over the topics since this process wrote to them."""


class KafkaSink:
    """Writes the records of one producer, from its takeover of the topics to its end.

    With ``plain`` the sink writes records without Kafka transactions. It then writes at most one entry of the commit
    log per second, each in a Kafka transaction of its own. The records of a table copy are always committed together
    with their entry, since the copied rows can't be read again. A batch contains everything that is written from one
    ``commit`` to the next.

    ``entry`` is the newest entry of the commit log, None if there is none. ``rolled_back`` names the topics in which a
    transaction without an end was found. ``rewritten`` counts the committed records that readers can't see any more.
    ``shown`` is the position of the newest event message that is committed or in the open batch. ``records`` and
    ``bytes`` count the messages in the open batch and their bytes. ``debezium``, if it is set, writes Debezium's
    messages beside the records.
    """

    def __init__(
        self,
        transactions: KafkaTransactions,
        topics: TopicAdmin,
        recovered: Recovered,
        *,
        resource: str,
        plain: PlainWrites | None = None,
    ) -> None:
        self._transactions = transactions
        self._plain = plain
        self._open: KafkaTransactions = plain or transactions
        self._owed: Entry | None = None
        self._kept = _kept(recovered.entry)
        self._marks = recovered.marks
        self._stamp: Headers = stamp(self._marks)
        self._topics = topics
        self._names = topics.names
        self._resource = resource
        self.entry = recovered.entry
        self.rolled_back = recovered.rolled_back
        self.rewritten = recovered.rewritten
        self._already_visible = recovered.visible_checksums
        self._visible_chunks = recovered.visible_chunks
        self._visible_places = {place: sequence for sequence, place in recovered.visible_places.items()}
        self.shown = recovered.shown
        # Records that readers already see, although no entry counts them, may have been written as fragments, so the
        # next entry must announce fragments. Without transactions a reader may see any record before the entry that
        # counts it.
        self._fragmented = bool(
            plain or recovered.visible_checksums or (recovered.entry and recovered.entry.fragmented)
        )
        self._ahead = recovered.ahead
        self._begun = recovered.begun
        self._partitioner = _partitioner(topics, recovered)
        self.debezium: DebeziumSink | None = None
        self.records = 0
        self.bytes = 0
        self._committed_at = -NEVER

    @classmethod
    def open(
        cls,
        topics: TopicAdmin,
        batch_size: BatchSize,
        *,
        resource: str,
        instance: str,
        reopening: bool,
        stop: threading.Event,
    ) -> Self:
        """Takes over ``topics`` from any producer that wrote to them before; ``instance`` names this process.

        ``reopening`` is true if this process has written to the topics before. Raises Replaced if another process has
        taken over since then, Disconnected if the brokers do not answer, and UserError if topics and commit log do not
        belong together.
        """
        topic = topics.names.topic
        try:
            topics.require()
            if reopening:
                _require_own(topics.newest_entry(resource), instance, began_after=topics.began_after)
            transactions, found = _taken_over(topics, batch_size, resource=resource, instance=instance, stop=stop)
            if not reopening:
                topics.began_after = found.entry
            plain = None
            if not topics.transactional:
                plain = PlainWrites.open(topics.properties, batch_size, topic=topic, resource=resource, stop=stop)
                plain.times = topics.times
        except KafkaException as error:
            raise open_error(error, topic, topics.properties, answered=reopening) from None
        transactions.forget_lost_brokers()
        return cls(transactions, topics, found, resource=resource, plain=plain)

    @property
    def begun_at(self) -> float:
        """The time at which the open batch began (``time.monotonic()``), infinity while no batch is open."""
        return self._open.begun_at

    @property
    def is_heartbeat_due(self) -> bool:
        return self.debezium is not None and self.debezium.heartbeat_is_due

    @property
    def is_full(self) -> bool:
        """Whether the open batch has as many bytes as a Kafka transaction may contain now."""
        return self.bytes >= self._transactions.batch_size.bytes

    def write(self, messages: Iterable[Message]) -> None:
        """Adds records to the open batch, each to a partition of its topic; creates missing topics.

        Raises PromiseError for a record that is too large, and UserError for a topic that another client writes to.
        """
        batch, partitioner = self._open, self._partitioner
        for message in messages:
            topic, key, value, time_ms, headers = message
            if batch.begun_at == NEVER:
                batch.begin()
            partition = partitioner.next_partition(topic)
            if not self._already_visible or not self._is_visible(message, partition):
                if len(value) > batch.message_bytes:
                    self._write_fragments(message, partition)
                else:
                    whole = bytes(value) if isinstance(value, LargeText) else value
                    marked = [*headers, *self._stamp] if self._stamp else headers
                    batch.produce(topic, key, whole, time_ms, marked, partition)
            if self.debezium is not None:
                self.bytes += self.debezium.write(message, partitioner.next_sequence, batch)
            partitioner.count(topic, partition)
            self.records += 1
            self.bytes += len(value)

    def write_with_entry(self, messages: Iterable[Message]) -> None:
        """Writes messages in a Kafka transaction, even with ``plain``: they must become visible together with the next
        entry or not at all.
        """
        if self._open is self._plain:
            if self.begun_at != NEVER:
                # The plain records are committed first, so that the records of the transaction come after them in the
                # topic.
                self._open.commit(self.bytes)
            self._open = self._transactions
        self.write(messages)

    def _write_fragments(self, message: Message, partition: int, *, after: Begun | None = None) -> None:
        """Splits a record that is too large for one message into fragments, and adds them to ``partition``; if
        ``after`` is set, adds only the fragments after that fragment.

        Raises PromiseError if ``after`` is not a fragment of the same record.
        """
        topic, key, value, time_ms, headers = message
        self._fragmented = True
        sequence, size = self._partitioner.next_sequence, self._open.message_bytes
        fragments = (
            cut(value, size, sequence=sequence)
            if isinstance(value, bytes)
            else cut_blocks(value.blocks, size, sequence=sequence)
        )
        if after is not None:
            fragments = rest(fragments, after, where=f"topic {topic}, partition {partition}")
        for mark, fragment in fragments:
            try:
                marked: Headers = [*headers, *self._stamp, (FRAGMENT_HEADER, mark)]
                self._open.produce(topic, key, fragment, time_ms, marked, partition)
            except PromiseError as error:
                # Complete transactions are committed before an error ends the stream; the first fragments of this
                # record must not be committed.
                self._open.spoil(error)
                raise

    @property
    def has_visible(self) -> bool:
        """Whether readers can already see some of the next records, since an earlier run has written them."""
        return bool(self._already_visible or self._visible_chunks)

    @property
    def visible_chunk(self) -> str | None:
        """Returns the state of the copy after the record with the next sequence, if readers can already see that
        record; else None.
        """
        return self._visible_chunks.get(self._partitioner.next_sequence, ("", None))[1]

    def count_chunk(self) -> None:
        """Counts the record that ``visible_chunk`` describes, so that the sink does not write it again."""
        if self.debezium is not None:
            self.debezium.require_no_chunk(self._partitioner.next_sequence)
        topic, _ = self._visible_chunks.pop(self._partitioner.next_sequence)
        self._partitioner.count(topic, self._partitioner.next_partition(topic))
        self.records += 1

    @property
    def has_one_topic(self) -> bool:
        """Whether all records go to one topic, which exists from the start."""
        return self._names.layout != PER_TABLE

    def has_ready(self, topics: set[str]) -> bool:
        """Whether all ``topics`` are open, so that records can be written without delay."""
        return self._partitioner.knows(topics)

    def make_ready(self, topics: set[str]) -> None:
        """Creates missing ``topics``. To be called while no transaction is open: creating topics may take longer than a
        transaction may last.

        Raises UserError for a topic that another client writes to, and Disconnected.
        """
        self._partitioner.open(topics)

    def write_event(self, message: Message, position: Position) -> None:
        """Adds ``message`` to the open Kafka transaction. The message is about the binlog event at ``position``, which
        is part of no record.

        The headers of the message name the newest record and event written so far, so that a recovery need not search
        for them.
        """
        self._partitioner.opened(message.topic)
        if self.begun_at == NEVER:
            self._open.begin()
        if position.offset:
            self.shown = position
        marks: Headers = [(AFTER, str(self._partitioner.next_sequence - 1)), (SHOWN, str(self.shown or ""))]
        # Events that the leader generates only for the connection have the time 0, and a message of 1970 would be older
        # than any retention.
        time_ms = message.time_ms or int(time.time() * 1000)
        value = bytes(message.value)
        self._open.produce(message.topic, message.key, value, time_ms, [*message.headers, *marks], 0)
        self.records += 1
        self.bytes += len(value)

    def _is_visible(self, message: Message, partition: int) -> bool:
        """Whether readers can see the record already (module recovery), so that it is counted and not written."""
        sequence, topic = self._partitioner.next_sequence, message.topic
        checksum = self._already_visible.pop(sequence, None)
        if checksum is None:
            self._require_next(message)
            if sequence < (last := self._ahead.get((topic, partition), -1)):
                raise PromiseError(
                    f"readers see record {last} already, but not record {sequence}, which comes before it",
                    code="CDC-TOPIC-RECORDS-LOST",
                    where=f"topic {topic}, partition {partition}",
                    hint="name a new topic in kafka.topic and give the follower a fresh copy of the leader",
                )
            return False
        value = message.value
        plain = without_types(value)
        if checksum not in (checksum_of(plain), checksum_of(value)):
            begin = bytes(message.value)[:_QUOTED_BYTES].decode("utf-8", "replace")
            raise PromiseError(
                f"record {self._partitioner.next_sequence} is committed already, but with another content",
                code="CDC-TOPIC-RECORDS-DIFFER",
                where=f"topic {message.topic}, record {begin}…",
                hint="run against the same server, with the version and the settings that wrote it, until that "
                "transaction is complete; if the brokers lost records, name a new topic in kafka.topic and give the "
                "follower a fresh copy of the leader",
            )
        if sequence in self._begun:
            same = message if checksum == checksum_of(value) else message._replace(value=plain)
            self._write_fragments(same, partition, after=self._begun.pop(sequence))
        return True

    def _require_next(self, message: Message) -> None:
        """Raises PromiseError if readers see the record of ``message`` under a higher sequence than it would get: then
        a record of a copy, which came before it, is lost. The leader's record would be in the topics twice.

        Places are not compared by their order: the rows of an XA transaction have that of its XA PREPARE.
        """
        if not self._visible_places:
            return
        value, following = message.value, self._partitioner.next_sequence
        own = binlog_place(value[:HEAD_BYTES] if isinstance(value, bytes) else value.head(HEAD_BYTES))
        visible = -1 if own is None else self._visible_places.get(own, -1)
        if visible > following:
            raise PromiseError(
                f"readers see record {visible} already, but not all that a copy wrote before it",
                code="CDC-TOPIC-RECORDS-LOST",
                where=f"topic {message.topic}, record {following}",
                hint="name a new topic in kafka.topic and give the follower a fresh copy of the leader",
            )

    def commit(self, entry: Entry) -> None:
        """Commits the written records and ``entry`` together: a crash leaves both or neither.

        Without Kafka transactions, readers see the records at once, and the entry at most a second after the entry
        before it.
        """
        if self.debezium is not None:
            self._complete(self.debezium)
        last = self._partitioner.last() if self._names.layout == PER_TABLE else {}
        counts = self._partitioner.counts()
        entry = replace(
            entry, counts=counts, last=last, shown=self.shown, fragmented=self._fragmented, marks=self._marks,
            debezium=dict(self.debezium.newest) if self.debezium is not None else {},
        )  # fmt: skip
        if self.debezium is not None and entry.partial is not None:
            entry = replace(entry, debezium_partial=self.debezium.committed_part(entry.partial.transaction))
        if self._open is self._plain:
            if self.begun_at != NEVER:
                self._open.commit(self.bytes)
            self._owed = entry
            if self._is_due() or _kept(entry) != self._kept:
                self._write_entry(entry)
        else:
            self._write_entry(entry)
            if self._plain is not None:
                # The next records must not be written after a transaction without an end marker, even if the broker
                # counts that transaction as ended.
                require_ended(self._topics, [(self._names.topic, 0)])
        self.entry = entry
        self.records = self.bytes = 0
        self._open = self._plain or self._transactions

    def _complete(self, debezium: DebeziumSink) -> None:
        """Writes the messages of Debezium's that belong to the open Kafka transaction and are not in it yet."""
        debezium.write_held(self._open)
        if debezium.heartbeat_is_due:
            if self.begun_at == NEVER:
                self._open.begin()
            debezium.write_heartbeat(self._open)

    def _write_entry(self, entry: Entry) -> None:
        """Commits ``entry`` with the records of the open Kafka transaction, if there are any."""
        if self._transactions.begun_at == NEVER:
            self._transactions.begin()
        now_ms = int(time.time() * 1000)
        self._transactions.produce(self._names.commits, self._resource.encode(), entry.to_json(), now_ms, [], 0)
        self._transactions.commit(0 if self._open is self._plain else self.bytes)
        self._owed, self._kept = None, _kept(entry)
        self._committed_at = time.monotonic()

    def _is_due(self) -> bool:
        """Whether an entry is waiting to be written, and the newest written entry is more than a second old."""
        return self._owed is not None and time.monotonic() - self._committed_at > _ENTRY_SECONDS

    def start(self, entry: Entry) -> None:
        """Commits the entry from which the stream continues.

        Raises UserError if another producer has found the commit log empty at the same time.
        """
        is_first = self.entry is None
        if self.entry is None or self.entry.server_uuid != entry.server_uuid:
            self.shown = None  # the positions of another server can't be compared
            self._visible_places = {}
        self._open = self._transactions
        self.commit(entry)
        if is_first:
            self._topics.require_alone(self._resource)
        if self._plain is not None and not self._marks:
            # The mark is written after the entry: a topic with a mark and no entry would look like another client's
            # topic.
            written, mark, partition = self.entry or entry, Mark(1, -1), (self._names.topic, 0)
            write_mark(self._transactions, self._topics, mark, self._resource, written)
            following = written.next_sequence
            self._marks = located(
                self._topics.properties, partition, [mark], next_sequence=following, resource=self._resource
            )
            self._stamp = stamp(self._marks)

    def check(self) -> None:
        """Raises Disconnected if a broker was away at any time, even if it is back now. Writes the entry that is due,
        if any.
        """
        self._transactions.check()
        if self._plain is not None:
            self._plain.check()
        if self._owed is not None and self.begun_at == NEVER and self._is_due():
            self._write_entry(self._owed)

    def pause_seconds(self, records: int, *, copying: bool = False) -> float:
        """Returns the number of seconds to pause after a commit of ``records`` while the leader sends no more events,
        so that events gather. ``copying`` is true if the commit has changes of the leader while tables are copied.

        For a moment after a broker has reported a commit, it is still busy with the end of the transaction; a client
        that begins the next transaction in that time must ask again, 20 ms later. A longer pause, after many records,
        makes the next batches larger: their cost depends on their number, not on their size. While tables are copied,
        followers apply changes late anyway, behind chunks, and the CPU time of small batches is the copy's.
        """
        least = _COPYING_SECONDS if copying else _BROKER_SECONDS if self._plain is None else _PLAIN_SECONDS
        return least + min(records * _SECONDS_PER_RECORD, _MAX_GATHER_SECONDS)

    def close(self) -> None:
        """Aborts an open transaction, so that readers need not wait for its timeout; if none is open, waits until
        readers can see the last transaction.

        Never raises.
        """
        if is_open := self.begun_at != NEVER:
            self._open.abort()
        if self._owed is not None:
            with suppress(KafkaException, CdcError):
                self._write_entry(self._owed)
        if not is_open:
            self._await_readers()

    def _await_readers(self) -> None:
        """Waits until readers can see the last commit: a reader that starts after this process has ended must not miss
        it."""
        late = time.monotonic() - self._committed_at > _ANSWER_SECONDS
        if self.entry is None or late:
            return
        # The transaction is committed. If the brokers do not answer in time, or another producer has taken over, there
        # is nothing to wait for.
        with suppress(KafkaException, CdcError):
            self._transactions.check()
            self._topics.unended([*self.entry.partitions, (self._names.commits, 0)])


def await_successor(topics: TopicAdmin, *, resource: str, instance: str, stop: threading.Event) -> None:
    """Waits some seconds for the first entry of the producer that has fenced this process; ``instance`` names this
    process.

    If this process opened a sink before that entry exists, it would fence the other producer.
    """
    give_up = time.monotonic() + _SUCCESSOR_SECONDS
    while not stop.is_set() and time.monotonic() < give_up:
        with suppress(KafkaException, Disconnected):
            newest = topics.newest_entry(resource)
            if newest is not None and newest.instance != instance:
                return
        stop.wait(_POLL_SECONDS)


def _taken_over(
    topics: TopicAdmin, batch_size: BatchSize, *, resource: str, instance: str, stop: threading.Event
) -> tuple[KafkaTransactions, Recovered]:
    """Fences any older producer, ends the transactions that are open in ``topics``, and finds out what readers see.
    Raises KafkaException and the errors of ``recovered``.
    """
    first: Recovered | None = None
    while True:
        # From here on an older producer is fenced: nothing that is read below can change any more.
        transactions = KafkaTransactions.open(
            topics.properties, batch_size, topic=topics.names.topic, resource=resource, stop=stop
        )
        transactions.times = topics.times
        ends = topics.require_matching(topics.newest_entry(resource))
        found = recovered(transactions, topics, resource=resource, instance=instance)
        require_counted(found.entry, ends)
        first = first or found
        if not found.rolled_back:
            return transactions, replace(found, rolled_back=first.rolled_back, rewritten=first.rewritten)
        # The request that has ended the open transactions may come once more, and late. With this producer's epoch it
        # would end a transaction of ours, in some partitions only; the next epoch fences it.


def _require_own(entry: Entry | None, instance: str, *, began_after: Entry | None) -> None:
    """Raises Replaced if another process has written the newest ``entry`` of the commit log since this process began
    to write after the entry ``began_after``.
    """
    if entry is None or entry.instance == instance or _is_from_before(entry, began_after):
        return
    raise Replaced(
        f"another cdc-producer has taken over this topic: {described(entry.instance)}",
        code="CDC-PRODUCER-REPLACED",
        hint="end that one first, or leave this one ended; no supervisor may start it again (docs/operations.md)",
    )


def _is_from_before(entry: Entry, began_after: Entry | None) -> bool:
    """Whether ``entry`` is not newer than ``began_after``. If it is the newest one nevertheless, the brokers have lost
    the entries of this process (an unclean election), and no other process has taken over.
    """
    # A successor is another process, and counts at least as many records, unless it has gone back since the brokers
    # have lost some. Then it is fenced, finds the entry of this process and ends: one of the two goes on.
    if began_after is None:
        return False
    same = entry.instance == began_after.instance and entry.next_sequence == began_after.next_sequence
    return same or entry.next_sequence < began_after.next_sequence


def _partitioner(topics: TopicAdmin, recovered: Recovered) -> Partitioner:
    """Returns the partitioner that continues after ``recovered``, with all topics of the commit log open."""
    known = [topic for topic, _ in recovered.entry.partitions] if recovered.entry else []
    # A topic without an entry in the commit log may also be ours: readers may see records in it although the entry of
    # their Kafka transaction was lost.
    ours = {topics.names.topic, *known, *(topic for topic, _ in recovered.ahead)}
    partitioner = Partitioner(recovered.entry, open_topics=lambda names: topics.claim(names, ours=ours))
    # Opens all topics in one call: one call for each of thousands of tables would delay each new connection.
    partitioner.open(known)
    return partitioner


def _kept(entry: Entry | None) -> tuple[object, ...]:
    """Returns the fields of an entry that can't be restored from the binlog; records that depend on these fields must
    not be visible before the entry."""
    return (entry.copy, entry.filters, entry.server_uuid) if entry else ()
