"""Finds the commit log's entry that agrees with the records that readers can see, and rolls back transactions without
an end.

A broker that restarts may take a transaction for complete without having written its end marker to all topics (seen
with Kafka 4.3.1: a coordinator that finds a partition without a leader assumes that it was deleted, and logs "can be
skipped"). In a topic without the end marker, readers don't see the transaction's records, and the next transaction of
the same producer would commit or abort them together with its own records. So this module aborts the transaction before
anything is written. Then it compares the entries with the records that readers can see.

With several topics, readers may see the transaction's records in one topic and not in another topic. The producer must
then continue after an earlier entry, before which no record is missing in any topic. The records after this entry are
written again, except for the records that readers already see. To find these, the newest visible record of each
partition is enough: records are written to a partition in the order of their sequences, and not while a former
transaction is open in it, so all earlier records of the partition are visible, too.

A commit that the network delays may arrive when the next transaction has begun, and end the next transaction early.
Readers then see a part of its records, although no entry counts them. This module finds these records in the same way;
they come after the newest entry.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple, overload
from zlib import crc32

from confluent_kafka import Message, Producer

from cdc.config.topic_names import SINGLE, Topics
from cdc.errors import Disconnected, PromiseError, UserError
from cdc.kafka import commit_log
from cdc.kafka.fragments import Begun, Fragment, stamp_of
from cdc.kafka.partitions import backwards, begin_offsets, newest, unended
from cdc.model.commit_entry import Entry, Mark
from cdc.model.position import Partition, Position, partition_name, partition_of
from cdc.producer.large_rows import LargeText
from cdc.producer.sink.debezium_marks import debezium_partitions, debezium_visible
from cdc.producer.sink.entry_agreement import Neighbour, agrees
from cdc.producer.sink.epoch_marks import all_marks
from cdc.producer.sink.gap_check import entry_before, lost_record, require_each, require_no_gap
from cdc.producer.sink.message_heads import AFTER, SHOWN, head_of, header_of, sequence_of
from cdc.producer.sink.record_parts import COPIED, HEAD_BYTES, binlog_place
from cdc.producer.sink.topic_admin import TopicAdmin

__all__ = [
    "Recovered",
    "recover",
    "require_chunks_before",
    "require_ended",
    "since_last_start",
    "true_entry",
    "without_types",
]

_ANSWER_SECONDS = 10.0
_ANEW = "name a new topic in kafka.topic and give the follower a fresh copy of the leader"
_EXPIRED = 1 << 63
_OPERATION = b',"operation":{'
_TYPES = re.compile(rb',"types":\[(?:"(?:[^"\\]|\\.)*"(?:, ?)?)*\]')
# Maximum number of records without an entry. A few Kafka transactions of the largest size contain so many records, and
# their checksums fit into memory.
_MOST_UNANNOUNCED = 4_000_000
_MOST_SEARCHED = 1_000  # messages that are searched for a record of a copy


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of a recovery. ``entry`` is the entry to continue after; None if nothing was ever committed.
    ``rolled_back`` are the topics in which a transaction was rolled back.

    ``visible_checksums`` contains the records after the entry that readers already see: it maps their sequences to
    their CRC-32. ``visible_places`` maps the sequences of these records, if known, to their places in the leader's
    binlog (``binlog_place``). ``ahead`` maps the partitions with such records to the newest sequence in the partition.
    ``shown`` is the position of the newest event message that readers can see. ``begun`` contains the records that
    readers can see only in part: it maps the sequence of each record to the record's newest visible fragment with its
    bytes.
    ``visible_chunks`` contains the chunks among the visible records, since they can't be read again: it maps the
    sequence to the topic and the header COPIED. ``marks`` are the topic's marks with their offsets; a mark is the first
    message of a producer that writes without Kafka transactions. ``rewritten`` counts the records that the newest
    committed entry counts and that readers can't see.
    """

    entry: Entry | None
    rolled_back: list[str] = field(default_factory=list)
    visible_checksums: dict[int, int] = field(default_factory=dict)
    shown: Position | None = None
    ahead: dict[Partition, int] = field(default_factory=dict)
    visible_chunks: dict[int, tuple[str, str]] = field(default_factory=dict)
    begun: dict[int, Begun] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()
    rewritten: int = 0
    visible_places: dict[int, tuple[tuple[int, int], int]] = field(default_factory=dict)


def recover(properties: dict[str, Any], producer: Producer, topics: TopicAdmin, *, resource: str) -> Recovered:
    """Rolls back open transactions in the topics of the leader ``resource``, and finds out which records readers can
    see.

    ``producer`` has no open transaction. Raises PromiseError if no entry agrees with the records that readers can see,
    Disconnected if another client's transaction is open in the topics or the brokers do not answer, UserError for
    records of another leader, and the KafkaExceptions of the producer.
    """
    commits = topics.names.commits
    committed = next(commit_log.entries(properties, topic=commits, resource=resource), None)
    uncommitted = next(commit_log.entries(properties, topic=commits, resource=resource, committed=False), None)
    topics.suspects -= {topic for entry in (committed, uncommitted) if entry for topic, _ in entry.partitions}
    partitions = _written(topics, committed, uncommitted)
    beside = debezium_partitions(topics, committed, uncommitted)
    open_in = unended(properties, [*partitions, *beside, (commits, 0)])
    # With marks, open transactions are aborted before anything is read: a mark (module kafka.fragments) in a
    # transaction without an end can't be found, and readers will never obey it.
    has_marks = committed is not None and bool(committed.marks)
    if open_in and has_marks:
        _roll_back(producer, open_in)
        require_ended(topics, open_in)
    # Entries are compared also when no transaction is open: a transaction may have been rolled back just before a
    # crash.
    marks = all_marks(topics, committed, resource)
    counting = _Counting(properties, marks)
    visible, begun = _visible(counting, partitions, open_in, resource, topics.suspects)
    every = commit_log.entries(properties, topic=commits, resource=resource, committed=False)
    shown = _shown(properties, topics.names, [each for each in (committed, uncommitted) if each is not None])
    # Incomplete records are left out, since an entry counts only complete records.
    whole = {partition: sequence - (sequence in begun) for partition, sequence in visible.items()}
    with_debezium = whole | debezium_visible(topics, beside, expired=_EXPIRED)
    found = since_last_start(every, committed)
    entry = true_entry(
        with_debezium, shown, found, topics.names, is_about=counting.agreement(committed, resource, topics.names)
    )
    if open_in and not has_marks:
        _roll_back(producer, open_in)
        require_ended(topics, open_in)
    counting.require_no_gap(entry, every, resource)
    next_sequence = entry.next_sequence if entry else 0
    checksums, chunks, places = _visible_records(counting, visible, next_sequence, resource)
    if topics.names.layout == SINGLE:
        require_each(next_sequence, {*checksums, *chunks}, topics.names.topic)
    counts_more = committed is not None and _copied(committed) > _copied(entry) + len(chunks)
    lost = committed if committed and counts_more and _has_lost(topics, committed, whole, resource) else None
    require_chunks_before(entry, chunks, begun, counted=lost)
    ahead = {partition: last for partition, last in visible.items() if next_sequence <= last < _EXPIRED}
    rolled_back = sorted({topic for topic, _ in open_in})
    unseen = _unseen(next_sequence, committed, (*checksums, *chunks))
    return Recovered(entry, rolled_back, checksums, shown, ahead, chunks, begun, marks, unseen, places)


def require_ended(topics: TopicAdmin, partitions: list[Partition]) -> None:
    """Raises Disconnected if a transaction has no end in one of ``partitions``, even after some seconds."""
    if topics.unended(partitions):
        raise Disconnected(
            "a transaction of another client is open",
            code="CDC-KAFKA-TRANSACTION-OPEN",
            where=f"topics {' and '.join(sorted({topic for topic, _ in partitions}))}",
            hint="only one cdc-producer may write there; kafka-transactions.sh finds and aborts such transactions",
        )


class _Placed(NamedTuple):
    """A message: the ``sequence`` of its record, how many records copies had written up to it, if a copy wrote it
    (``copied``), and the record's transaction and place, if the message has its beginning.
    """

    sequence: int
    copied: int | None
    record: Neighbour | None


class _Counting:
    """Reads the messages of partitions, except marks and void messages (module kafka.fragments).

    ``marks`` are the marks of the only partition, if records are or were written there without Kafka transactions.
    """

    def __init__(self, properties: Mapping[str, Any], marks: tuple[Mark, ...]) -> None:
        self.properties = properties
        self._marks = marks

    def backwards(self, partition: Partition) -> Iterator[Message]:
        """Returns the messages of ``partition``, newest first; of fragments only the head of a record is left."""
        messages = backwards(self.properties, partition, pick=head_of)
        return filter(self._counts, messages)

    def places(self, resource: str, partition: Partition) -> Iterator[tuple[int, int, int]]:
        """Returns the sequence of each message in ``partition``, newest first, the number of the fragment, and how many
        the record has.
        """
        for message in self.backwards(partition):
            if header_of(message, AFTER) is None:
                fragment = Fragment.of(message)
                yield sequence_of(message, resource), *((fragment.number, fragment.total) if fragment else (0, 1))

    def require_no_gap(self, entry: Entry | None, older: Iterable[Entry], resource: str) -> None:
        """Raises PromiseError if the newest records that ``entry`` counts are not all there (module gap_check)."""
        before = entry_before(entry, older)
        if entry is not None and before is not None:
            require_no_gap(before, entry, places=partial(self.places, resource), is_cut=self.is_cut)

    def agreement(self, committed: Entry | None, resource: str, names: Topics) -> Callable[[Entry], bool]:
        """Returns a function that finds out whether an entry may be about the records that readers see. The newest
        ``committed`` entry is.
        """

        def is_about(entry: Entry) -> bool:
            has_one = names.layout == SINGLE
            newest = [name for name, last in entry.last.items() if last == entry.next_sequence - 1]
            named = [f"{names.topic}/0"] if has_one else newest
            if entry == committed or len(named) != 1:
                return True
            last: Neighbour | None = None
            following: Neighbour | None = None
            for number, each in enumerate(self._neighbours(partition_of(*named), resource)):
                if each.sequence >= entry.next_sequence:
                    following = each.record or following
                    continue
                last = last or each.record
                # With several partitions, another one may have the newest record of a copy.
                if each.copied is not None or number > _MOST_SEARCHED or (last and not has_one):
                    return agrees(entry, last, following, copied=each.copied if has_one else None)
            return agrees(entry, last, following, copied=None)

        return is_about

    def _neighbours(self, partition: Partition, resource: str) -> Iterator["_Placed"]:
        """Yields what ``agreement`` compares of each message, newest first. The messages themselves are not kept."""

        def placed(message: Message) -> _Placed | None:
            if not self._counts(message) or header_of(message, AFTER) is not None:
                return None
            copied, record = (
                header_of(message, COPIED),
                Neighbour.of((head_of(message).value() or b"")[:HEAD_BYTES]),
            )
            written = None if copied is None else int(json.loads(copied)["written"])
            return _Placed(sequence_of(message, resource), written, record)

        found = backwards(self.properties, partition, pick=placed)
        return (each for each in found if each is not None)

    def is_cut(self, partition: Partition) -> bool:
        """Whether retention has removed records of ``partition``."""
        return begin_offsets(self.properties, [partition])[partition] > 0

    def newest(self, partitions: list[Partition]) -> dict[Partition, Message]:
        """Returns the newest message of each partition, with its value; a partition without messages is absent."""
        if not self._marks:
            return newest(self.properties, partitions)
        each = {place: next(filter(self._counts, backwards(self.properties, place)), None) for place in partitions}
        return {place: message for place, message in each.items() if message is not None}

    def _counts(self, message: Message) -> bool:
        stamp, offset = stamp_of(message), message.offset() or 0
        is_void = any(mark.epoch > stamp.epoch and 0 <= mark.offset < offset for mark in self._marks)
        return not stamp.is_mark and not is_void


def _written(topics: TopicAdmin, *entries: Entry | None) -> list[Partition]:
    """Returns all partitions to which records may have been written."""
    known = {partition for entry in entries if entry for partition in entry.partitions}
    if topics.names.layout == SINGLE:
        known.add((topics.names.topic, 0))
    known.update(partition for topic in topics.suspects for partition in topics.partitions(topic))
    return sorted(known)


def _visible(
    counting: _Counting, partitions: list[Partition], unended: list[Partition], resource: str, suspects: set[str]
) -> tuple[dict[Partition, int], dict[int, Begun]]:
    """Returns the newest sequence that readers can see in each partition, _EXPIRED if retention has removed all
    records. Also maps the sequence of each incomplete record to its newest fragment.

    ``suspects`` are topics in which another client may have written. There, messages that are not this leader's records
    are ignored now; the topic is refused before it is written to.
    """
    seen: dict[Partition, int] = {}
    begun: dict[int, Begun] = {}
    for partition, message in counting.newest(partitions).items():
        with suppress(*([UserError, PromiseError] if partition[0] in suspects else [])):
            seen[partition] = sequence_of(message, resource)
            fragment = Fragment.of(message)
            if fragment is not None and fragment.number < fragment.total - 1:
                begun[fragment.sequence] = Begun(fragment, message.value() or b"")
    empty = [partition for partition in partitions if partition not in seen and partition not in unended]
    begins = begin_offsets(counting.properties, empty)
    return seen | {partition: _EXPIRED for partition, begin in begins.items() if begin > 0}, begun


def _unseen(next_sequence: int, committed: Entry | None, visible: Collection[int]) -> int:
    """Returns the number of records from ``next_sequence`` on that the ``committed`` entry counts and that are not
    visible.
    """
    end = committed.next_sequence if committed else 0
    return max(0, end - next_sequence - sum(sequence < end for sequence in visible))


def _has_lost(topics: TopicAdmin, entry: Entry, whole: Mapping[Partition, int], resource: str) -> bool:
    """Whether the brokers have lost a record that the committed ``entry`` counts: it is not in the topics, not even in
    a transaction that was rolled back. Readers may have seen such a record.

    ``whole`` maps the partitions to their newest complete visible records.
    """
    names, properties = topics.names, topics.properties
    single = {f"{names.topic}/0": entry.next_sequence - 1} if names.layout == SINGLE else {}
    for name, last in (entry.last or single).items():
        topic, _, number = name.rpartition("/")
        partition = topic, int(number)
        if whole.get(partition, -1) >= last:
            continue
        messages = backwards(properties, partition, committed=False, pick=head_of)
        there = (sequence_of(each, resource) for each in messages if each.key() and not stamp_of(each).is_mark)
        if next(there, -1) < last:
            return True
    return False


def _shown(properties: dict[str, Any], names: Topics, entries: Collection[Entry]) -> Position | None:
    """Returns the position of the newest event message that readers can see.

    The topics of event messages are taken from the ``entries``, since the profile's prefix of topics may have been
    changed since then.
    """
    # If no entry counts event messages, there might be none at all, and the search would read the whole topic.
    if not any(entry.shown for entry in entries):
        return None
    partitions = {each for entry in entries for each in entry.partitions if names.is_events(each[0])}
    found = []
    for partition in partitions:
        marks = backwards(properties, partition, pick=lambda message: header_of(message, SHOWN))
        text = next((mark for mark in marks if mark is not None), None)
        found += [Position.parse(text)] if text else []
    return max(found, key=lambda position: position.place, default=None)


def true_entry(
    visible: Mapping[Partition, int],
    shown: Position | None,
    entries: Iterator[Entry],
    names: Topics,
    *,
    is_about: Callable[[Entry], bool] = lambda _: True,
) -> Entry | None:
    """Finds the newest of ``entries`` whose records are all ``visible``; the producer can continue after it. Returns
    None if nothing was ever committed.

    The entry need not be committed. An entry maps a sequence to the place in the binlog where the records before this
    sequence end. Only a new start of a producer can change that place, and ``since_last_start`` leaves out the entries
    that may be wrong after such a start.

    ``is_about`` is false for an entry that contradicts the records next to its place (module entry_agreement).

    It is possible that the newest records have no entry, because a late commit shows a part of a transaction before its
    entry is written. Raises PromiseError if there is no such entry at all, or if millions of records have no entry.
    """
    top = max((sequence for sequence in visible.values() if sequence != _EXPIRED), default=-1)
    found: Entry | None = None
    announced, entry = -1, None
    for entry in entries:
        announced = max(announced, entry.next_sequence - 1)
        better = found is None or entry.next_sequence > found.next_sequence
        if better and _all_visible(entry, visible, names) and _all_shown(entry, shown) and is_about(entry):
            found = entry
        if found is not None and announced >= top:
            return found
    if found is not None and top - found.next_sequence < _MOST_UNANNOUNCED:
        return found
    if entry is None and top < 0:
        return None
    raise PromiseError(
        f"no entry of the commit log agrees with the records up to sequence {top}",
        code="CDC-TOPIC-RECORDS-LOST",
        where=f"topic {names.commits}",
        hint=_ANEW,
    )


def since_last_start(entries: Iterable[Entry], committed: Entry | None) -> Iterator[Entry]:
    """Yields the newest ``committed`` entry, and then ``entries``, newest first, without the entries that may
    contradict it.

    Each start of a producer commits an entry before it writes. So an entry that is older than the ``committed`` entry
    and counts more records was rolled back before a later start. That start may have numbered the records after it in
    another way, since chunks of a copy are written whenever they arrive.
    """
    if committed is None:
        yield from entries
        return
    yield committed
    is_older = False
    for entry in entries:
        is_older = is_older or entry == committed
        if not is_older or entry.next_sequence <= committed.next_sequence:
            yield entry


def _all_visible(entry: Entry, visible: Mapping[Partition, int], names: Topics) -> bool:
    seen = {partition_name(partition): sequence for partition, sequence in visible.items()}
    # In layout "single" one partition contains all records, and entries do not contain its newest sequence.
    single = {f"{names.topic}/0": entry.next_sequence - 1} if names.layout == SINGLE else {}
    # Debezium's messages count only if their topics exist and have the profile's prefix.
    debezium = {name: last for name, last in entry.debezium.items() if name in seen}
    return all(seen.get(name, -1) >= last for name, last in ((entry.last or single) | debezium).items())


def _all_shown(entry: Entry, shown: Position | None) -> bool:
    # Retention may have removed all event messages. Only people read them, so their loss is no reason to stop.
    return entry.shown is None or shown is None or entry.shown.place <= shown.place


def _visible_records(
    counting: _Counting, visible: Mapping[Partition, int], next_sequence: int, resource: str
) -> tuple[dict[int, int], dict[int, tuple[str, str]], dict[int, tuple[tuple[int, int], int]]]:
    """Returns the checksums and the chunks of the records from ``next_sequence`` on that readers can see, and the
    places of the records in the leader's binlog (``Recovered``).
    """
    found: dict[int, int] = {}
    places: dict[int, tuple[tuple[int, int], int]] = {}
    chunks: dict[int, tuple[str, str]] = {}
    for partition, newest_sequence in visible.items():
        if newest_sequence < next_sequence or newest_sequence == _EXPIRED:
            continue
        parts = Counter[tuple[int, int]]()
        for message in counting.backwards(partition):
            sequence, fragment = sequence_of(message, resource), Fragment.of(message)
            if sequence < next_sequence:
                break
            if fragment is not None:
                parts[sequence, fragment.total] += 1
            if (copied := header_of(message, COPIED)) is not None:
                chunks[sequence] = partition[0], copied
            elif header_of(message, AFTER) is None:
                found[sequence] = fragment.checksum if fragment else crc32(without_types(message.value() or b""))
                if place := binlog_place((message.value() or b"")[:HEAD_BYTES]):
                    places[sequence] = place
        # The rest of the newest record may still be written.
        halved = [sequence for (sequence, total), count in parts.items() if count != total]
        if lost := [sequence for sequence in halved if sequence != newest_sequence]:
            raise lost_record(f"record {min(lost)} is there only in part", partition[0])
    return found, chunks, places


@overload
def without_types(record: bytes) -> bytes: ...
@overload
def without_types(record: LargeText) -> LargeText: ...
def without_types(record: bytes | LargeText) -> bytes | LargeText:
    """Returns the JSON of a record without the types of its columns. The producer writes these types again after each
    start, so they do not count in a comparison.
    """
    if isinstance(record, LargeText):
        head = list(takewhile(lambda piece: isinstance(piece, bytes), record.pieces))
        return LargeText.joined([without_types(bytes(LargeText(head))), LargeText(record.pieces[len(head) :])])
    before, operation, rest = record.partition(_OPERATION)
    return _TYPES.sub(b"", before, count=1) + operation + rest


def _copied(entry: Entry | None) -> int:
    """Returns the number of chunks and statements of copies that the entry counts."""
    return int(((entry and entry.copy) or {}).get("written", 0))


def require_chunks_before(
    entry: Entry | None,
    chunks: Mapping[int, tuple[str, str]],
    begun: Collection[int] = (),
    *,
    counted: Entry | None = None,
) -> None:
    """Raises PromiseError if records of table copies after ``entry`` are lost. Readers may have seen some of the lost
    records. A lost chunk can't be replaced: if it were read from the leader again, its rows would be newer than the
    chunks after it.

    ``chunks`` are the records of copies that readers can see. Each contains the number of records that copies have
    written up to and including this record; entries of the commit log contain this number, too. Records are lost if
    fewer are visible than the numbers in ``chunks`` and in the entry ``counted`` require. Records are also lost if only
    the first fragments of a chunk are visible; the sequences of such chunks are in ``begun``.
    """
    before = _copied(entry)
    written = max([before, _copied(counted), *(json.loads(copied)["written"] for _, copied in chunks.values())])
    if halved := chunks.keys() & set(begun):
        raise PromiseError(
            f"the last fragments of record {min(halved)}, which a copy wrote, are lost: readers see a part of a Kafka "
            "transaction",
            code="CDC-TOPIC-RECORDS-LOST",
            where=f"topic {chunks[min(halved)][0]}",
            hint=_ANEW,
        )
    if lost := max(0, written - before - len(chunks)):
        raise PromiseError(
            f"{lost} records of a copy after sequence {entry.next_sequence - 1 if entry else -1} are lost, of which "
            "readers may have seen a part",
            code="CDC-TOPIC-RECORDS-LOST",
            where=f"topic {chunks[max(chunks)][0]}" if chunks else "all topics",
            hint=_ANEW,
        )


def _roll_back(producer: Producer, partitions: list[Partition]) -> None:
    """Aborts a transaction in each of ``partitions``: its end marker also ends the open transaction before it."""
    producer.begin_transaction()
    for topic, number in partitions:
        producer.produce(topic, b"", b"", partition=number)
    # The messages are sent before the abort: without a message in the partition, there would be no end marker.
    producer.flush(_ANSWER_SECONDS)
    producer.abort_transaction(_ANSWER_SECONDS)
