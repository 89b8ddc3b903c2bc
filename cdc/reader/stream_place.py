"""Defines the places of a stream in a leader's topics, between which its transactions are read in batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, Self

from confluent_kafka import KafkaException, Message

from cdc.config.profile import Profile
from cdc.errors import Disconnected, PromiseError, UserError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import question_error
from cdc.kafka.fragments import Fragment, stamp_of
from cdc.kafka.partitions import (
    OPEN_TRANSACTION_SECONDS,
    await_ends,
    backwards,
    begin_offsets,
    end_offsets,
    newest_within,
)
from cdc.kafka.topics import known_topics
from cdc.model.commit_entry import Commits
from cdc.model.position import partition_name, partition_of
from cdc.model.record import Record, is_event
from cdc.reader.records import Records, Transaction, transaction_of

__all__ = ["StreamPlace", "transactions_between"]


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """The place after the transaction that ends with ``sequence``; -1 is the place before the oldest transaction.

    ``offsets`` maps the names of partitions to offsets before which there is no later record; a partition that is
    missing is read from its beginning.
    """

    sequence: int = -1
    offsets: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the place as the dictionary that Spark stores."""
        return {"sequence": self.sequence, "offsets": dict(self.offsets)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads what ``to_json`` has returned."""
        return cls(int(body["sequence"]), {str(name): int(at) for name, at in body["offsets"].items()})

    def newest(self, profile: Profile) -> "StreamPlace":
        """Returns the place after the newest transaction that can be read as a whole; this place if there is no later
        one.

        Raises UserError if the commit log has no entry, and if Kafka refuses a request or does not answer, Disconnected
        if a transaction stays open.
        """
        kafka = profile.kafka
        properties, commits = kafka.properties() | {"log_level": 0}, kafka.topics().commits
        try:
            newest = newest_commits(properties, commits) if known_topics(properties, [commits]) else None
            if newest is None:
                # A stream that goes on must not take this for its beginning: a broker may not know its topics yet.
                raise UserError(
                    "the topics have no records yet, or a broker that has just started does not know them",
                    code="CDC-STREAM-NO-TOPIC",
                    where=f"topic {commits} at {kafka.bootstrap_servers}",
                    hint="start cdc-producer, which creates the topics, then the stream",
                )
            sequence = newest.next_sequence - 1 - newest.of_open
            if sequence <= self.sequence:
                return self
            if not await_ends(properties, newest.partitions, seconds=OPEN_TRANSACTION_SECONDS):
                raise Disconnected(
                    f"a transaction has been open for {OPEN_TRANSACTION_SECONDS:.0f} s",
                    code="CDC-KAFKA-TRANSACTION-OPEN",
                    where=f"the topics that {commits} names",
                    hint="start cdc-producer, which ends the transaction",
                )
            return StreamPlace(sequence, self._offsets(properties, newest, sequence))
        except KafkaException as error:
            raise question_error(error.args[0], kafka.properties(), where=f"topic {kafka.topic}") from None

    def _offsets(self, properties: Mapping[str, Any], newest: Commits, sequence: int) -> dict[str, int]:
        """Finds offsets before which there is no record behind ``sequence``. Records that no entry counts yet may be
        visible: without Kafka transactions, of a transaction that is committed in parts, and after a late commit.
        """
        epoch = max((mark.epoch for mark in newest.marks), default=0)
        begins, ends = begin_offsets(properties, newest.partitions), end_offsets(properties, newest.partitions)
        former = {each: max(begins[each], self.offsets.get(partition_name(each), 0)) for each in newest.partitions}
        last = newest_within(properties, {each: (former[each], ends[each]) for each in newest.partitions})
        offsets = {}
        for partition in newest.partitions:
            message = last.get(partition)
            if message is None or _is_read(message, epoch, sequence):
                offsets[partition_name(partition)] = ends[partition] if message else former[partition]
                continue
            # Within an epoch the sequences of a partition only grow.
            found = backwards(properties, partition, end=ends[partition], pick=partial(_read_at, epoch, sequence))
            before = takewhile(lambda place: place[0] >= former[partition], found)  # noqa: B023 - it ends in this round
            at = next((offset for offset, is_read in before if is_read), former[partition] - 1)
            offsets[partition_name(partition)] = at + 1
        return offsets


def _is_read(message: Message, epoch: int, sequence: int) -> bool:
    """Whether a message is a record up to ``sequence`` that the newest producer, of this ``epoch``, has written."""
    value, stamp, fragment = message.value() or b"", stamp_of(message), Fragment.of(message)
    if stamp.is_mark or stamp.epoch != epoch or (fragment is None and is_event(value)):
        return False
    found = fragment.sequence if fragment else Record.parse(value, where=f"topic {message.topic()}").sequence
    return found <= sequence


def _read_at(epoch: int, sequence: int, message: Message) -> tuple[int, bool]:
    return message.offset() or 0, _is_read(message, epoch, sequence)


def transactions_between(profile: Profile, begin: StreamPlace, end: StreamPlace) -> Iterator[Transaction]:
    """Yields the transactions after the place ``begin`` through the place ``end``, each once and in order. If ``begin``
    is within a transaction, its rest comes; if retention has removed a part of the oldest one, it is left out.

    Raises the errors of iterating over Records, and PromiseError if the topics end before ``end``, or ``end`` is before
    ``begin``.
    """
    since = None if begin.sequence < 0 else begin.sequence + 1
    begins = {partition_of(name): offset for name, offset in begin.offsets.items()}
    reached, held = begin.sequence, list[Record]()
    if reached == end.sequence:
        return
    for record in Records(profile, since=since, follow=False, begins=begins) if reached < end.sequence else ():
        if held or not record.index or since is not None:
            held.append(record)
        if record.last:
            if held:
                yield transaction_of(held)
            reached, held = record.sequence, []
        if reached >= end.sequence:
            return
    raise PromiseError(
        f"the topics end with sequence {min(reached, end.sequence)}, before {max(reached, end.sequence)}, which the "
        "stream has read or was to read",
        code="CDC-TOPIC-READ-GONE",
        where=f"topic {profile.kafka.topic}",
        hint="retention or the brokers have removed records: begin a new stream, with a checkpoint of its own and "
        "since= a sequence that is there",
    )
