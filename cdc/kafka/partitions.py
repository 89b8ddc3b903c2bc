"""Requests the first and last offsets of partitions from Kafka, reads their oldest and newest messages, and checks that
only the first partition of a topic has messages.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, overload

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from cdc.errors import CdcError, Disconnected, UserError
from cdc.kafka.errors import NOT_AUTHORIZED, denied
from cdc.kafka.topics import admin_client, known_topics, topics_shown
from cdc.model.position import Partition
from cdc.service.logs import LIBRDKAFKA, event

__all__ = [
    "FIRST",
    "OPEN_TRANSACTION_SECONDS",
    "await_ends",
    "backwards",
    "begin_offsets",
    "between",
    "connected",
    "end_offsets",
    "known_ranges",
    "last_fitting",
    "led",
    "newest",
    "newest_within",
    "oldest",
    "require_first_only",
    "require_others_empty",
    "time_offsets",
    "unended",
    "windows",
]

OPEN_TRANSACTION_SECONDS = 70.0  # the brokers abort a transaction that stays open for 60 s
_ENDS_SECONDS = 0.1
_ANSWER_SECONDS = 10.0
_ASK_AGAIN_SECONDS = 0.1
_FIRST_WINDOW = 16
# The most bytes of values that are kept of one window. A chunk of a table copy has 800 kB, and a window may have
# thousands of messages.
_WINDOW_BYTES = 16_000_000
_WINDOW_MESSAGES = 65_536
_QUEUED_KB = 8_192  # what librdkafka reads ahead, which by default is 64 MB
_GROUP = "cdc-producer"
_SPECS: Any = OffsetSpec
_NO_SUCH = -1  # Kafka's answer contains this offset if all messages are older than the requested time
_LOST = -1001
Picked = TypeVar("Picked")
_NO_LEADER_YET = frozenset({
    KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH, KafkaError._NOENT,
})  # fmt: skip


def begin_offsets(properties: Mapping[str, Any], partitions: Collection[Partition]) -> dict[Partition, int]:
    """Returns the offset of the oldest message in each partition. ``properties`` are librdkafka's. Raises
    KafkaException.
    """
    return _offsets(properties, partitions, _SPECS.earliest(), committed=True)


def end_offsets(
    properties: Mapping[str, Any], partitions: Collection[Partition], *, committed: bool = True
) -> dict[Partition, int]:
    """Requests the offset after each partition's newest message. If ``committed`` is true and a transaction is open,
    the returned offset is at most the offset at which this transaction begins.

    Raises KafkaException if the brokers do not answer, or if a partition does not exist.
    """
    return _offsets(properties, partitions, _SPECS.latest(), committed=committed)


def time_offsets(
    properties: Mapping[str, Any], partitions: Collection[Partition], time_ms: int
) -> dict[Partition, int]:
    """Returns for each partition an offset before which all messages are older than ``time_ms`` (since 1970). It is the
    offset of the first message that is not older, or of an earlier marker, because the markers that end Kafka
    transactions have the time at which they were written. If all messages are older, it is the partition's end.

    Raises KafkaException if the brokers do not answer or have no such partition.
    """
    ends = end_offsets(properties, partitions)
    found = _offsets(properties, partitions, _SPECS.for_timestamp(max(0, time_ms)), committed=True, least=_NO_SUCH)
    return {each: ends[each] if offset == _NO_SUCH else offset for each, offset in found.items()}


def known_ranges(properties: Mapping[str, Any], partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
    """Requests the first offset and the end of each partition whose leader answers. The end includes uncommitted
    messages.

    Raises KafkaException if the brokers do not answer.
    """
    begins = _answers(properties, partitions, _SPECS.earliest(), committed=True)
    ends = _answers(properties, partitions, _SPECS.latest(), committed=False)
    both = {each: (begin, ends.get(each)) for each, begin in begins.items()}
    return {each: (begin, end) for each, (begin, end) in both.items() if begin is not None and end is not None}


def led(properties: Mapping[str, Any], partitions: Collection[Partition]) -> set[Partition]:
    """Returns the ``partitions`` whose leader answers; such a leader also accepts messages.

    Raises KafkaException if the brokers do not answer, or if a partition does not exist.
    """
    answers = _answers(properties, partitions, _SPECS.latest(), committed=True)
    return {partition for partition, offset in answers.items() if offset is not None}


def unended(properties: Mapping[str, Any], partitions: list[Partition]) -> list[Partition]:
    """Returns the ``partitions`` in which a transaction has no end marker yet. Raises KafkaException."""
    # The order of these requests matters: a transaction that ends between the two requests must not seem open.
    written = end_offsets(properties, partitions, committed=False)
    readable = end_offsets(properties, partitions)
    return [partition for partition in partitions if readable[partition] < written[partition]]


def newest(properties: Mapping[str, Any], partitions: Collection[Partition]) -> dict[Partition, Message]:
    """Reads the newest committed message of each partition; the result lacks partitions without messages.

    Raises Disconnected or KafkaException if the brokers do not answer.
    """
    begins, ends = begin_offsets(properties, partitions), end_offsets(properties, partitions)
    return newest_within(properties, {each: (begins[each], ends[each]) for each in partitions})


def await_ends(properties: Mapping[str, Any], partitions: Collection[Partition], *, seconds: float) -> bool:
    """Waits until each message that is in ``partitions`` now is committed or aborted; returns whether that is so after
    ``seconds``. Kafka ends a transaction in one partition after the other.

    Raises KafkaException if the brokers do not answer.
    """
    written = end_offsets(properties, partitions, committed=False)
    give_up = time.monotonic() + seconds
    while any(end < written[each] for each, end in end_offsets(properties, partitions).items()):
        if time.monotonic() > give_up:
            return False
        time.sleep(_ENDS_SECONDS)
    return True


def newest_within(
    properties: Mapping[str, Any], ranges: Mapping[Partition, tuple[int, int]]
) -> dict[Partition, Message]:
    """Reads the newest committed message in a range of offsets of each partition. The second offset of a range is
    excluded.
    """
    begins = {partition: begin for partition, (begin, _) in ranges.items()}
    ends = {partition: end for partition, (_, end) in ranges.items()}
    found: dict[Partition, Message] = {}
    window = _FIRST_WINDOW
    consumer = connected(properties, committed=True)
    try:
        while ends := {
            partition: end for partition, end in ends.items() if end > begins[partition] and partition not in found
        }:
            starts = {partition: max(begins[partition], end - window) for partition, end in ends.items()}
            for message in between(consumer, starts, ends, _group(properties)):
                found[_partition_of(message)] = message
            # Aborted records and transaction markers also occupy offsets, so there might be no readable message in a
            # window.
            ends, window = starts, window * 8
    finally:
        consumer.close()
    return found


def oldest(
    properties: Mapping[str, Any], partition: Partition, *, passes: Callable[[Message], bool] = lambda _: True
) -> Message | None:
    """Reads the oldest committed message of the partition for which ``passes`` is true; None if there is no such
    message.

    Raises Disconnected or KafkaException if the brokers do not answer.
    """
    begins, ends = begin_offsets(properties, [partition]), end_offsets(properties, [partition])
    if begins == ends:
        return None
    consumer = connected(properties, committed=True)
    try:
        return next(filter(passes, between(consumer, begins, ends, _group(properties))), None)
    finally:
        consumer.close()


@overload
def backwards(
    properties: Mapping[str, Any], partition: Partition, *, committed: bool = True, end: int | None = None
) -> Iterator[Message]: ...
@overload
def backwards(
    properties: Mapping[str, Any],
    partition: Partition,
    *,
    committed: bool = True,
    end: int | None = None,
    pick: Callable[[Message], Picked],
) -> Iterator[Picked]: ...
def backwards(
    properties: Mapping[str, Any],
    partition: Partition,
    *,
    committed: bool = True,
    end: int | None = None,
    pick: Callable[[Message], Any] = lambda message: message,
) -> Iterator[Any]:
    """Yields ``pick(message)`` for each message of the partition, newest first; by default, the messages themselves.

    If ``committed`` is false, messages of open and aborted transactions are included. If ``end`` is set, only messages
    before that offset are read. Messages are read in large batches, and only the picked values are kept.

    Raises Disconnected or KafkaException if the brokers do not answer.
    """
    begin = begin_offsets(properties, [partition])[partition]
    if end is None:
        end = end_offsets(properties, [partition], committed=committed)[partition]
    consumer = connected(properties, committed=committed)
    try:
        group = _group(properties)
        yield from windows(consumer, partition, (begin, end), pick=pick, first=_FIRST_WINDOW, group=group)
    finally:
        consumer.close()


def windows(
    consumer: Consumer,
    partition: Partition,
    offsets: tuple[int, int],
    *,
    pick: Callable[[Message], Picked],
    first: int,
    group: str = _GROUP,
) -> Iterator[Picked]:
    """Yields ``pick(message)`` for each message between two ``offsets``, newest first.

    Messages are read in batches. The first batch has ``first`` offsets, and each later batch has up to 8 times as many
    as the previous batch, as many as fit into memory: where messages are larger than expected, only the newest of a
    batch are kept, and the others are read again. The function changes the assignment of ``consumer``, which must
    report the end of a partition. ``group`` is the consumer's group; it only appears in errors.

    Raises Disconnected if the brokers do not answer.
    """
    begin, end = offsets
    while end > begin:
        start = max(begin, end - first)
        read = between(consumer, {partition: start}, {partition: end}, group)
        kept, is_cut = last_fitting(((each.offset() or 0, pick(each)) for each in read), _WINDOW_BYTES, size=_size)
        size = sum(_size(picked) for _, picked in kept)
        end = kept[0][0] if is_cut else start
        first = max(1, min(first * 8, _WINDOW_MESSAGES, _WINDOW_BYTES * len(kept) // size if size else first * 8))
        while kept:
            yield kept.pop()[1]


def last_fitting(
    found: Iterable[tuple[int, Picked]], limit: int, *, size: Callable[[Picked], int]
) -> tuple[deque[tuple[int, Picked]], bool]:
    """Returns the last of the values ``found``, as many as together have at most ``limit`` bytes but at least one, each
    with its offset; and whether others came before them. Never keeps more than that and one value.
    """
    kept: deque[tuple[int, Picked]] = deque()
    total, is_cut = 0, False
    for offset, picked in found:
        kept.append((offset, picked))
        total += size(picked)
        while total > limit and len(kept) > 1:
            total -= size(kept.popleft()[1])
            is_cut = True
    return kept, is_cut


def _size(picked: object) -> int:
    """Returns the size of a message's value; other values are small."""
    return len(picked.value() or b"") if isinstance(picked, Message) else 0


def _offsets(
    properties: Mapping[str, Any],
    partitions: Collection[Partition],
    spec: Any,
    *,
    committed: bool,
    least: int = 0,
) -> dict[Partition, int]:
    give_up = time.monotonic() + _ANSWER_SECONDS
    while True:
        answers = _answers(properties, partitions, spec, committed=committed, least=least)
        offsets = {partition: offset for partition, offset in answers.items() if offset is not None}
        if len(offsets) == len(answers):
            return offsets
        if time.monotonic() > give_up:
            topic, number = min(set(answers) - set(offsets))
            text = f"no broker says which offsets partition {number} of topic {topic} has"
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, text))
        time.sleep(_ASK_AGAIN_SECONDS)


def _answers(
    properties: Mapping[str, Any],
    partitions: Collection[Partition],
    spec: Any,
    *,
    committed: bool,
    least: int = 0,
) -> dict[Partition, int | None]:
    """Requests the offset of each partition that ``spec`` describes. An offset is None if the answer is below
    ``least``; the caller must then request the offset again. No other function requests offsets.

    A partition that was just created, or whose broker just came back, has no leader for a moment. If a connection is
    lost, librdkafka 2.16 returns the offset -1001 and no error; the next request then fails as if the topic did not
    exist.
    """
    if not partitions:
        return {}
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    wanted = {TopicPartition(*partition): spec for partition in partitions}
    found: dict[Partition, int | None] = {}
    with admin_client(properties) as admin:
        asked = admin.list_offsets(wanted, isolation_level=level, request_timeout=_ANSWER_SECONDS)
        for partition, answer in asked.items():
            offset = _LOST
            try:
                offset = int(answer.result().offset)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError._NOENT and not topics_shown(admin, [partition.topic]):
                    raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)) from None
                if code not in _NO_LEADER_YET:
                    raise
            found[partition.topic, partition.partition] = offset if offset >= least else None
    return found


def between(
    consumer: Consumer, starts: Mapping[Partition, int], ends: Mapping[Partition, int], group: str = _GROUP
) -> Iterator[Message]:
    """Yields the messages of each partition from its start up to its end, each partition in order. ``connected`` must
    have created ``consumer``; ``group`` is the consumer's group, for errors.

    Raises Disconnected if the brokers do not answer or no longer have the messages, UserError if they refuse a request.
    """
    consumer.assign([TopicPartition(*partition, start) for partition, start in starts.items()])
    waiting = set(starts)
    while waiting:
        message = consumer.poll(_ANSWER_SECONDS)
        if message is None:
            raise Disconnected(
                f"no answer within {_ANSWER_SECONDS:.0f} s",
                code="CDC-TOPIC-NO-ANSWER",
                where=f"topic {min(waiting)[0]}",
            )
        partition, error = _partition_of(message), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            # An error about the group contains no partition.
            raise _read_error(error, f"topic {partition[0] or min(waiting)[0]}", group)
        offset = message.offset() or 0
        if partition in waiting and error is None and offset < ends[partition]:
            yield message
        # A busy broker may report the end of the partition too early; the remaining messages follow later.
        if offset >= (ends[partition] - 1 if error is None else ends[partition]):
            waiting.discard(partition)


def _read_error(error: KafkaError, where: str, group: str) -> CdcError:
    if error.code() in NOT_AUTHORIZED:
        return denied(error, operation="READ", where=where, group=group)
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        # The first and last offsets have changed: the caller requests them again.
        return Disconnected(
            f"the messages to read next are gone from the topic: {error.str()}",
            code="CDC-TOPIC-OFFSETS-GONE",
            where=where,
            hint="retention has deleted them, or a broker lost them, while they were read",
        )
    return Disconnected(f"the topic cannot be read: {error.str()}", code="CDC-TOPIC-NO-ANSWER", where=where)


def _partition_of(message: Message) -> Partition:
    return message.topic() or "", message.partition() or 0


def _group(properties: Mapping[str, Any]) -> str:
    """Returns the consumer group of the reading program: ``group.id`` in ``properties``, or else the producer's
    group.
    """
    return str(properties.get("group.id", _GROUP))


def connected(properties: Mapping[str, Any], *, committed: bool) -> Consumer:
    """Creates a consumer that commits no offsets, creates no topics, and reports the ends of partitions (for
    ``between``).
    """
    own = {
        "group.id": _group(properties),  # librdkafka requires a group; no offset is committed for it
        "enable.auto.commit": False,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "enable.partition.eof": True,
        # If retention or a new leader has removed an offset, librdkafka would continue at the end of the partition, as
        # if there were no messages.
        "auto.offset.reset": "error",
        "allow.auto.create.topics": False,
        "fetch.wait.max.ms": 10,  # a topic is read only to its end, so the broker must not wait there for more messages
    }
    return Consumer({"queued.max.messages.kbytes": _QUEUED_KB} | dict(properties) | own, logger=LIBRDKAFKA)


# Checks that only the first partition of a topic with a total order has messages, even if partitions were added to the
# topic.
#
# Kafka can't remove partitions, so an added partition must not end the stream. The producer writes nothing to an added
# partition, so messages in it come from another program.

FIRST = 0
_LOG = logging.getLogger("cdc.kafka")


def require_first_only(properties: Mapping[str, Any], topics: Collection[str]) -> None:
    """Raises UserError if one of ``topics`` has messages in a partition other than the first
    (``require_others_empty``). Topics that do not exist are ignored. ``properties`` are librdkafka's. Raises
    KafkaException.
    """
    known = known_topics(properties, topics)
    places = [(name, number) for name, topic in known.items() for number in topic.partitions if number]
    if places:
        # Uncommitted messages also count, because they may be committed before the next check.
        begins, ends = begin_offsets(properties, places), end_offsets(properties, places, committed=False)
        for topic in sorted({name for name, _ in places}):
            ranges = {number: (begins[name, number], ends[name, number]) for name, number in places if name == topic}
            require_others_empty(topic, ranges)


def require_others_empty(topic: str, ranges: Mapping[int, tuple[int, int]]) -> None:
    """Logs a warning if ``topic`` has partitions besides the first, which stay unused. ``ranges`` maps each partition
    to its first offset and the offset after its last message.

    Raises UserError if a partition other than the first has messages.
    """
    for number, (begin, end) in sorted(ranges.items()):
        if number != FIRST and begin < end:
            raise UserError(
                f"partition {number} of the topic has messages, and only partition {FIRST} keeps the leader's order",
                code="CDC-TOPIC-PARTITION-ADDED",
                where=f"topic {topic}, partition {number}, offsets {begin} to {end - 1}",
                hint="cdc-producer writes no messages there: stop the program that does; if nothing needs the "
                "messages, remove them (kafka-delete-records.sh) and start again, or name a new topic in kafka.topic",
            )
    others = ranges.keys() - {FIRST}
    if others:
        _warn(topic, len(others))


@cache
def _warn(topic: str, others: int) -> None:
    event(
        _LOG, "the topic has partitions that stay unused: its records are in the first one only",
        level=logging.WARNING, topic=topic, unused=others,
    )  # fmt: skip
