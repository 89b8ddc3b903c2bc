"""Which entry of the commit log stands for what readers can see, also where Kafka left a transaction without an end.

A broker that restarts may take a transaction for complete without having written its end into all topics (seen with
Kafka 4.3.1: a coordinator that finds a partition without a leader takes it for deleted, "can be skipped"). Nobody can
read the records of such a transaction there, and the next one of the same producer would end it together with itself,
whichever way that one ends. So before anything is written, it is ended here, by rolling it back: what readers can see
then decides which entry is true.

With several topics, readers may see the transaction's records in one and not in another. Then the true entry is one
from before it, below which nothing is missing anywhere. What follows is written again, but for the records that can be
seen. A partition gets its records in the order of their sequences, and none while a transaction hangs in it, so
whoever sees its newest record sees all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from zlib import crc32

from confluent_kafka import Message, Producer

from cdc.config.topic_names import SINGLE, Topics
from cdc.errors import Disconnected, PromiseError, UserError
from cdc.kafka import commit_log
from cdc.kafka.partitions import backwards, begin_offsets, newest
from cdc.model.commit_entry import Entry
from cdc.model.partition import Partition, partition_name
from cdc.model.position import Position
from cdc.model.record import Record
from cdc.producer.sink.topic_admin import TopicAdmin, hanging

__all__ = ["AFTER", "SHOWN", "Recovered", "recover", "true_entry"]

# Headers of the binlog's other events: the newest sequence that is out by then, and the newest event with a position.
AFTER, SHOWN = "cdc_after", "cdc_shown"
_ANSWER_SECONDS = 10.0
_EXPIRED = 1 << 63


@dataclass(frozen=True, slots=True)
class Recovered:
    """Where to go on: after ``entry``, None where nothing was ever committed. ``rolled_back`` are topics.

    ``out`` are records that readers can see already although they come after the entry: CRC-32 by sequence.
    ``shown`` is the newest of the binlog's other events that they can see. ``ahead`` are the topics that hold ``out``.
    """

    entry: Entry | None
    rolled_back: list[str] = field(default_factory=list)
    visible_checksums: dict[int, int] = field(default_factory=dict)
    shown: Position | None = None
    ahead: frozenset[str] = frozenset()


def recover(properties: dict[str, Any], producer: Producer, topics: TopicAdmin, *, resource: str) -> Recovered:
    """End what hangs in the topics of the leader ``resource``, and find out what readers can see.

    ``producer`` has no open transaction. Raises PromiseError where no entry stands for the records that readers can
    see, Disconnected where a transaction of something else is open in the topics, or the brokers do not answer,
    UserError for records of another leader. KafkaException as the producer does.
    """
    commits = topics.names.commits
    committed = next(commit_log.entries(properties, topic=commits, resource=resource), None)
    anyhow = next(commit_log.entries(properties, topic=commits, resource=resource, committed=False), None)
    partitions = _written(topics, committed, anyhow)
    left = hanging(properties, [*partitions, (commits, 0)])
    # Compared also when nothing hangs: it may have been rolled back just before a crash.
    visible = _visible(properties, partitions, left, resource)
    every = commit_log.entries(properties, topic=commits, resource=resource, committed=False)
    # Without such an entry there may be none to find, in a topic of any length.
    events = (committed is not None and committed.shown) or (anyhow is not None and anyhow.shown)
    shown = _shown(properties, _event_topics(topics.names, committed, anyhow)) if events else None
    entry = true_entry(visible, shown, chain([committed] if committed else [], every), topics.names)
    if left:
        _roll_back(producer, left)
        if topics.unended(left):
            raise Disconnected(
                "a transaction of something else is open",
                where=f"topics {' and '.join(sorted({topic for topic, _ in left}))}",
                hint="only one cdc-producer may write there; kafka-transactions.sh finds and aborts such transactions",
            )
    next_sequence = entry.next_sequence if entry else 0
    out = _out(properties, visible, next_sequence, resource)
    ahead = frozenset(topic for (topic, _), last in visible.items() if next_sequence <= last < _EXPIRED)
    return Recovered(entry, sorted({topic for topic, _ in left}), out, shown, ahead)


def _written(topics: TopicAdmin, *entries: Entry | None) -> list[Partition]:
    """Every partition that may have been written to."""
    known = {place for entry in entries if entry for place in entry.partitions}
    if topics.names.layout == SINGLE:
        known.add((topics.names.topic, 0))
    known.update(place for topic in topics.suspects for place in topics.partitions(topic))
    return sorted(known)


def _visible(
    properties: dict[str, Any], partitions: list[Partition], left: list[Partition], resource: str
) -> dict[Partition, int]:
    """The newest sequence that readers can see in each partition, _EXPIRED where retention has removed all of them."""
    seen = {place: _sequence(message, resource) for place, message in newest(properties, partitions).items()}
    begins = begin_offsets(properties, [place for place in partitions if place not in seen and place not in left])
    return seen | {place: _EXPIRED for place, begin in begins.items() if begin > 0}


def _event_topics(names: Topics, *entries: Entry | None) -> set[Partition]:
    """Where the binlog's other events are: by the entries, since the prefix may be another one by now."""
    return {place for entry in entries if entry for place in entry.partitions if names.is_events(place[0])}


def _shown(properties: dict[str, Any], partitions: set[Partition]) -> Position | None:
    """The newest of the binlog's other events with a position that readers can see."""
    found = []
    for partition in partitions:
        marks = (_mark(message, SHOWN) for message in backwards(properties, partition))
        text = next((mark for mark in marks if mark is not None), None)
        found += [Position.parse(text)] if text else []
    return max(found, key=lambda position: position.place, default=None)


def _mark(message: Message, name: str) -> str | None:
    """A header of ours; None in records, which have none."""
    found = dict(message.headers() or []).get(name)
    return str(found, "utf-8") if isinstance(found, bytes) else None


def _sequence(message: Message, resource: str) -> int:
    after = _mark(message, AFTER)
    if after is not None:
        return int(after)
    place = f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"
    record = Record.parse(message.value() or b"", where=place)
    if record.uri.resource != resource:
        raise UserError(
            f"the topic holds the records of another leader, {record.uri.resource!r}",
            where=place,
            hint="set kafka.prefix to tell the leaders' topics apart, and give the follower a fresh copy of the leader",
        )
    return record.sequence


def true_entry(
    visible: Mapping[Partition, int], shown: Position | None, entries: Iterator[Entry], names: Topics
) -> Entry | None:
    """The entry with the most records below which all can be seen.

    One that was not committed is as true as one that was: it says where in the binlog the records before a sequence
    end, and that never changes.
    """
    top = max((sequence for sequence in visible.values() if sequence != _EXPIRED), default=-1)
    found: Entry | None = None
    announced, entry = -1, None
    for entry in entries:
        announced = max(announced, entry.next_sequence - 1)
        better = found is None or entry.next_sequence > found.next_sequence
        if better and _all_visible(entry, visible, names) and _all_shown(entry, shown):
            found = entry
        if found is not None and announced >= top:
            return found
    if entry is None and top < 0:
        return None
    raise PromiseError(
        f"no entry of the commit log stands for the records up to sequence {top}",
        where=f"topic {names.commits}",
        hint="name a new topic in kafka.topic and give the follower a fresh copy of the leader",
    )


def _all_visible(entry: Entry, visible: Mapping[Partition, int], names: Topics) -> bool:
    seen = {partition_name(place): sequence for place, sequence in visible.items()}
    # The one partition of layout "single" has every record, so its entries do not say so.
    single = {f"{names.topic}/0": entry.next_sequence - 1} if names.layout == SINGLE else {}
    return all(seen.get(name, -1) >= last for name, last in (entry.last or single).items())


def _all_shown(entry: Entry, shown: Position | None) -> bool:
    # Retention may have removed all events, which are for people to read and not worth a stop.
    return entry.shown is None or shown is None or entry.shown.place <= shown.place


def _out(
    properties: dict[str, Any], visible: Mapping[Partition, int], next_sequence: int, resource: str
) -> dict[int, int]:
    found = {}
    for place, newest_sequence in visible.items():
        if newest_sequence < next_sequence or newest_sequence == _EXPIRED:
            continue
        for message in backwards(properties, place):
            sequence = _sequence(message, resource)
            if sequence < next_sequence:
                break
            if _mark(message, AFTER) is None:
                found[sequence] = crc32(message.value() or b"")
    return found


def _roll_back(producer: Producer, partitions: list[Partition]) -> None:
    """Abort a transaction in each of ``partitions``: its end is the end of what hangs there before it."""
    producer.begin_transaction()
    for topic, number in partitions:
        producer.produce(topic, b"", b"", partition=number)
    # Sent before it is aborted, or there would be nothing to end.
    producer.flush(_ANSWER_SECONDS)
    producer.abort_transaction(_ANSWER_SECONDS)
