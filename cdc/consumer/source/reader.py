"""Connects to the brokers, reads committed messages from given offsets, and requests topics and their offsets.

The offsets of applied records are committed to the consumer group (``GroupOffsets``) only for outside observers; the
consumer itself never reads these offsets.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition

from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import CdcError, Disconnected, PromiseError, ServerGone
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import NO_TOPIC, brokers_gone, is_transient, read_error, settings_refused, unreachable
from cdc.kafka.follower_places import place_note
from cdc.kafka.fragments import Fragment, Fragments, epoch_at, first_whole_sequence, stamp_of
from cdc.kafka.partitions import (
    FIRST,
    backwards,
    begin_offsets,
    end_offsets,
    newest_within,
    oldest,
    require_others_empty,
    windows,
)
from cdc.kafka.places import Place, place_of
from cdc.kafka.topics import admin_client, known_topics
from cdc.model.commit_entry import Commits, Mark
from cdc.model.position import Partition
from cdc.model.record import Record, is_event
from cdc.service.logs import event

__all__ = ["GroupOffsets", "KafkaReader", "Topic", "note_of"]

# Seconds between two commits, and between two that follow a chunk: a producer that copies tables waits for these. Tools
# that show the lag poll much less often.
_COMMIT_SECONDS = 0.2
_CHUNK_COMMIT_SECONDS = 0.05


def note_of(topic: str, *, delayed: bool) -> Callable[[int], str]:
    """Returns a function that computes the metadata of committed offsets from the newest applied sequence of ``topic``.

    If the follower is ``delayed`` on purpose, the metadata are empty, so that no table copy waits for it.
    """
    return (lambda _: "") if delayed else partial(place_note, topic)


class GroupOffsets:
    """Commits offsets for the group of ``consumer``. This program never reads these offsets; it resumes from the
    follower's checkpoint.

    ``note(sequence)`` returns the metadata to commit while ``sequence`` is the newest applied sequence.
    """

    def __init__(self, consumer: Consumer, *, note: Callable[[int], str]) -> None:
        self._consumer = consumer
        self._note = note
        self._committed_at = 0.0
        self._waiting: dict[TopicIdPartition, TopicPartition] = {}

    def commit(
        self, offsets: Mapping[TopicIdPartition, int], *, sequence: int | None = None, chunk: bool = False
    ) -> None:
        """Commits the offsets after record ``sequence``, but at most every 0.2 s, or every 0.05 s if the record is a
        ``chunk`` of a table copy.

        Offsets that must wait are committed by a later call, even if that call contains no offsets. The method does not
        wait for the broker's answer.
        """
        note = "" if sequence is None else self._note(sequence)
        for partition, at in offsets.items():
            self._waiting[partition] = TopicPartition(partition.topic, partition.number, at, note)
        if time.monotonic() - self._committed_at > (_CHUNK_COMMIT_SECONDS if chunk else _COMMIT_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Commits the waiting offsets now."""
        if self._waiting:
            self._committed_at = time.monotonic()
            self._consumer.commit(offsets=list(self._waiting.values()), asynchronous=True)
            self._waiting.clear()


_LOG = logging.getLogger("cdc.consumer")
_ASK_SECONDS = 10.0
_MOST_MESSAGES = 1000
# By default librdkafka fetches 64 MB in advance, which is more memory than everything else needs, and then fetches
# nothing for a second; the follower would have to wait. librdkafka reports the end of a partition after the third empty
# answer of a broker. With the default of 500 ms per answer, a short run with --until-current would take twice as long.
_FETCH = {"queued.max.messages.kbytes": 16_000, "fetch.queue.backoff.ms": 10, "fetch.wait.max.ms": 100}
_LOOK_SECONDS = 1.0
# librdkafka 2 reports no error if a topic is deleted while the client is at the topic's end, so the consumer checks
# this itself.
_TOPICS_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. A later topic with the same name has another ``id``. ``ranges`` maps each partition to two offsets: the
    offset of its first record, and the offset after its last committed record.
    """

    name: str
    id: str
    ranges: dict[int, tuple[int, int]]


class KafkaReader:
    """Reads assigned partitions. ``properties`` are librdkafka's, from the profile.

    The consumer group ``group``, and the metadata that ``note`` returns for the applied sequence, are for outside
    observers only. ``commits`` is the topic of the commit log.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str,
        group: str,
        properties: Mapping[str, Any],
        retry_seconds: float,
        commits: str,
        note: Callable[[int], str] = lambda _: "",
    ) -> None:
        self._servers = bootstrap_servers
        self._group = group
        self._retry_seconds = retry_seconds
        self._down_since: float | None = None
        self._looked_at = time.monotonic()
        self._unseen: set[str] = set()
        self._last_error = ""
        self._answered = False
        self._commits = commits
        self._fragments = Fragments(self._marks, on_disk=True)
        # The log of librdkafka is for its developers. Whatever matters to users is reported as an error.
        self._connection = {"log_level": 2, **properties, "bootstrap.servers": bootstrap_servers}
        # The settings on which correctness depends come last, so that they override the settings in the profile.
        settings = {
            **_FETCH,
            **self._connection,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            "enable.partition.eof": True,
            "error_cb": self._on_error,
        }
        try:
            self._consumer = Consumer(settings, logger=logging.getLogger("cdc.consumer.kafka"))
        except KafkaException as error:
            raise settings_refused(error.args[0]) from None
        self.offsets = GroupOffsets(self._consumer, note=note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing is not necessary, since the consumer is not a member of a group. If the brokers are unreachable,
        # close() of librdkafka 2.16 may wait forever for the answer to a commit.
        if not self.away:
            self._consumer.close()

    def topic(self, name: str) -> Topic | None:
        """Returns the topic; None if it does not exist. Raises Unreachable if the brokers can't be reached."""
        return self.topics([name]).get(name)

    def ordered_topic(self, name: str) -> Topic | None:
        """Returns the topic with only its first partition, which contains all records in order. Partitions that were
        added later must be empty.

        Raises UserError if an added partition is not empty, Unreachable if the brokers can't be reached.
        """
        topic = self.topic(name)
        if topic is None:
            return None
        require_others_empty(name, topic.ranges)
        return replace(topic, ranges={FIRST: topic.ranges[FIRST]})

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Returns the topics in ``names`` that exist. Raises Unreachable if the brokers can't be reached."""
        try:
            found = self._described(names)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from None
        self._answered = True
        return found

    def topics_now(self, names: Collection[str]) -> dict[str, Topic] | None:
        """Returns the result of ``topics``; None if the brokers do not answer now."""
        try:
            return self._described(names) if names else {}
        except KafkaException:
            # The caller tries again; ``check_brokers`` decides when the brokers have been unreachable for too long.
            return None

    def _described(self, names: Collection[str]) -> dict[str, Topic]:
        found: dict[str, Topic] = {}
        # This request comes first, because it fails immediately if no broker answers.
        self._consumer.list_topics(self._commits, timeout=_ASK_SECONDS)
        # The time limit is part of the request. If ``result()`` had a time limit, it would raise an exception that is
        # not Kafka's.
        with admin_client(self._connection) as admin:
            asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=_ASK_SECONDS) if names else {}
        for name, answer in asked.items():
            try:
                described = answer.result()
            except KafkaException as error:
                if error.args[0].code() not in NO_TOPIC:
                    raise
            else:
                numbers = [each.id for each in described.partitions]
                found[name] = Topic(name, str(described.topic_id), dict.fromkeys(numbers, (0, 0)))
        partitions = [(name, number) for name, topic in found.items() for number in topic.ranges]
        # The offsets of all topics are requested together, since each request takes a tenth of a second.
        begins, ends = begin_offsets(self._connection, partitions), end_offsets(self._connection, partitions)
        for name, number in partitions:
            found[name].ranges[number] = begins[name, number], ends[name, number]
        return found

    def commits(self, topic: str, *, which: Callable[..., Commits | None] = newest_commits) -> Commits | None:
        """Returns the newest entry of the commit log ``topic``, or the entry that ``which`` selects. Raises Unreachable
        if the brokers can't be reached.
        """
        try:
            return which({**self._connection, "group.id": self._group}, topic)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from None
        except Disconnected as error:
            raise brokers_gone(str(error), self._servers) from None

    def _marks(self, _: Partition) -> tuple[Mark, ...]:
        """Returns the marks of a partition (module kafka.fragments); only one partition can have marks. Raises the
        errors of ``commits``."""
        newest = self.commits(self._commits)
        return newest.marks if newest else ()

    def first_sequence(self, topic: str, commits: str) -> int | None:
        """Returns the sequence of the oldest complete record in the only partition of ``topic``. If the partition is
        empty, returns the sequence of the next record.

        Returns None if the next sequence is unknown, because the commit log ``commits`` does not exist. Raises
        Unreachable if the brokers can't be reached, PromiseError for a message that is not a record.
        """
        try:
            own = {**self._connection, "group.id": self._group}
            message = oldest(own, (topic, 0), passes=lambda each: not stamp_of(each).is_mark)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from None
        except Disconnected as error:
            raise brokers_gone(str(error), self._servers) from None
        if message is not None:
            return first_whole_sequence(message)
        newest = self.commits(commits) if self.topic(commits) else None
        return newest.next_sequence if newest else None

    def places(self, topic: Topic, *, before: int, number: int = FIRST) -> Iterator[Place]:
        """Yields the places of the records in the partition ``number`` of ``topic`` before the offset ``before``,
        newest first.

        Must be called before ``begin``. Raises Unreachable if the brokers can't be reached, PromiseError for a message
        that is not a record.
        """
        low, high = topic.ranges[number]
        partition, offsets = (topic.name, number), (low, min(before, high))
        found = windows(self._consumer, partition, offsets, pick=place_of, first=1, group=self._group)
        try:
            yield from self._not_void(found, partition)
        except Disconnected as error:
            raise brokers_gone(str(error), self._servers) from None

    def _not_void(self, places: Iterable[Place | None], partition: Partition) -> Iterator[Place]:
        marks = None
        for place in places:
            if place is None:
                continue
            if place.epoch and marks is None:
                marks = self._marks(partition)
            if not place.epoch or place.epoch >= epoch_at(marks or (), place.offset):
                yield place

    def place_before(self, offsets: Mapping[TopicIdPartition, int], sequence: int) -> Place | None:
        """Returns the place of the record ``sequence`` before the ``offsets`` in one of the partitions; None if there
        is no such record. May be called after ``begin``.

        Raises Unreachable if the brokers can't be reached, PromiseError for a message that is not a record.
        """
        own = {**self._connection, "group.id": self._group}
        for (topic, number, _), offset in offsets.items():
            try:
                found = backwards(own, (topic, number), end=offset, pick=place_of)
                newest = next(
                    (each for each in self._not_void(found, (topic, number)) if each.sequence <= sequence), None
                )
            except KafkaException as error:
                raise self._unreachable(error.args[0]) from None
            except Disconnected as error:
                raise brokers_gone(str(error), self._servers) from None
            if newest is not None and newest.sequence == sequence:
                return newest
        return None

    def newest_places(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[Partition, Place]:
        """Returns the place of the newest message in a range of offsets of each partition; the result lacks those whose
        newest message does not begin a record. Raises Unreachable if the brokers can't be reached, PromiseError for a
        message that is not a record.
        """
        found = self._newest(ranges) if ranges else {}
        return {each: place for each, message in found.items() if (place := place_of(message))}

    def newest_sequences(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[Partition, int]:
        """Returns the sequence of the newest message in a range of offsets of each partition; the result lacks those
        whose newest message is no record. Raises Unreachable if the brokers can't be reached, PromiseError for a
        message that is not a record.
        """
        found = self._newest(ranges)
        return {each: newest for each, message in found.items() if (newest := _sequence_of(message)) is not None}

    def _newest(self, ranges: Mapping[Partition, tuple[int, int]]) -> dict[Partition, Message]:
        try:
            return newest_within({**self._connection, "group.id": self._group}, ranges)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from None
        except Disconnected as error:
            raise brokers_gone(str(error), self._servers) from None

    def written(self, partitions: Collection[TopicIdPartition]) -> dict[TopicIdPartition, int] | None:
        """Returns the offset after the last message of each partition, including uncommitted messages; None if the
        brokers do not answer now.
        """
        try:
            ends = end_offsets(
                self._connection, [(partition.topic, partition.number) for partition in partitions], committed=False
            )
        except KafkaException:
            # The caller tries again; ``check_brokers`` decides when the brokers have been unreachable for too long.
            return None
        return {partition: ends[partition.topic, partition.number] for partition in partitions}

    def begin(self, offsets: Mapping[TopicIdPartition, int]) -> None:
        """Begins to read these partitions, each from its offset on, and stops reading all other partitions."""
        self._consumer.unassign()
        self.assign(offsets)

    def assign(self, offsets: Mapping[TopicIdPartition, int]) -> None:
        """Begins to read these partitions, each from its offset on, in addition to the partitions that are already
        read.
        """
        self._fragments.forget((partition.topic, partition.number) for partition in offsets)
        self._consumer.incremental_assign(
            [TopicPartition(partition.topic, partition.number, offset) for partition, offset in sorted(offsets.items())]
        )

    def leave(self, partitions: Collection[TopicIdPartition]) -> None:
        """Stops reading these partitions until they are assigned again.

        The methods ``pause`` and ``resume`` of librdkafka are not used: if a resume soon follows a pause, librdkafka
        skips messages that it has already fetched (librdkafka #5591 describes how it drops an operation).
        """
        self._consumer.incremental_unassign(
            [TopicPartition(partition.topic, partition.number) for partition in partitions]
        )

    def messages(self, wait: float) -> list[Message]:
        """Returns the complete messages that have arrived; waits at most ``wait`` seconds for the first message. Raises
        the errors of ``Fragments``.
        """
        first = self._consumer.poll(wait)
        if first is None:
            return []
        if first.error() is None:
            self._answers()
        return self._fragments.all_whole([first, *self._consumer.consume(_MOST_MESSAGES, timeout=0)])

    def at_end(self, message: Message) -> bool:
        """Whether ``message`` reports that a partition was read to its end.

        Raises PromiseError or UserError if the message reports another error and librdkafka does not recover from it by
        itself.
        """
        error = message.error()
        if error is None:
            return False
        if error.code() == KafkaError._PARTITION_EOF:
            self._answers()
            return True
        self._check(error, f"topic {message.topic()} on {self._servers}" if message.topic() else self._servers)
        return False

    @property
    def away(self) -> bool:
        """Whether no broker has answered since the last connection was lost, so that there may be more messages in
        Kafka."""
        return self._down_since is not None

    def check_brokers(self) -> None:
        """Raises ServerGone if the brokers have been unreachable for more than ``retry_seconds``."""
        if self._down_since is None:
            return
        try:
            # If the topic is idle, no messages arrive, so a request is sent to find out whether the brokers answer
            # again.
            self._consumer.list_topics(self._commits, timeout=_LOOK_SECONDS)
        except KafkaException as error:
            if time.monotonic() - self._down_since < self._retry_seconds:
                return
            raise ServerGone(
                f"Kafka cannot be reached: {self._last_error or error.args[0].str()}",
                code="CDC-CONSUMER-NO-KAFKA",
                where=self._servers,
                hint=f"tried for {self._retry_seconds:.0f} s (consumer.retry_seconds); start again when it is up",
            ) from None
        self._answers()

    def check_topics(self, names: Iterable[str]) -> None:
        """Raises PromiseError if one of the topics was missing at two checks in a row."""
        if time.monotonic() - self._looked_at < _TOPICS_SECONDS:
            return
        wanted = set(names)
        try:
            self._consumer.list_topics(self._commits, timeout=_LOOK_SECONDS)  # fails at once if no broker answers
            known = known_topics(self._connection, wanted)
        except KafkaException:
            # The caller tries again; ``check_brokers`` decides when the brokers have been unreachable for too long.
            return
        self._looked_at = time.monotonic()
        # A topic must be missing at two checks, because a broker that has just started might not know all topics yet.
        before, self._unseen = self._unseen, wanted - known.keys()
        gone = sorted(before & self._unseen)
        if gone:
            raise PromiseError(
                "the topic was deleted while reading",
                code="CDC-TOPIC-DELETED",
                where=f"topic {gone[0]} on {self._servers}",
                hint="start again, so that the checkpoint is checked; if the topic exists, check the ACLs",
            )

    def _answers(self) -> None:
        if self._down_since is not None:
            away = round(time.monotonic() - self._down_since, 1)
            event(_LOG, "kafka answers again", servers=self._servers, seconds=away)
            self._down_since = None

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_error = error.str()
        elif self._down_since is None:
            self._down_since = time.monotonic()
            reason = self._last_error or error.str()
            event(_LOG, "kafka unreachable", level=logging.WARNING, servers=self._servers, reason=reason)

    def _check(self, error: KafkaError, where: str) -> None:
        found = read_error(error, where, group=self._group)
        if found is not None:
            raise found
        if not is_transient(error):
            raise PromiseError(f"reading the topic failed: {error.str()}", code="CDC-TOPIC-DELETED", where=where)

    def _unreachable(self, error: KafkaError) -> CdcError:
        return read_error(error, self._servers, group=self._group) or unreachable(
            error, self._servers, properties=self._connection, answered=self._answered
        )


def _sequence_of(message: Message) -> int | None:
    value, fragment = message.value() or b"", Fragment.of(message)
    if fragment is not None:
        return fragment.sequence
    where = f"{message.topic()}/{message.partition()}/{message.offset()}"
    return None if is_event(value) else Record.parse(value, where=where).sequence
