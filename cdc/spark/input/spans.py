"""Asks the brokers, before Spark starts, for the present offsets of a server's topics, and finds reasons why an audit
could not judge.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import KafkaException, Message

from cdc.config.filters import Filters
from cdc.config.profile import Kafka, Profile
from cdc.config.topic_names import PER_TABLE
from cdc.errors import CdcError, Disconnected, UserError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import question_error
from cdc.kafka.fragments import Fragment
from cdc.kafka.partitions import (
    FIRST,
    OPEN_TRANSACTION_SECONDS,
    await_ends,
    backwards,
    begin_offsets,
    end_offsets,
    newest_within,
    require_first_only,
)
from cdc.kafka.places import Reader, offsets_behind, place_of
from cdc.kafka.topics import known_topics, required_topics
from cdc.model.commit_entry import Commits, Mark
from cdc.model.position import Partition, partition_name, partition_of
from cdc.model.read_record import ReadRecord
from cdc.model.record import Record

__all__ = [
    "Span",
    "continued",
    "early_reasons",
    "left_out_notes",
    "left_out_rows",
    "newest_entry_us",
    "records_at",
    "span",
    "too_old",
    "topic_ids",
]


@dataclass(frozen=True, slots=True)
class Span:
    """The part of one server's topics to read: each partition's first offset, and the offset after its last.

    ``limit`` is the first sequence that is not read, if the offsets can't define the end of the part: Kafka commits a
    transaction in one topic after the other, so a reader of several topics may see a part of the newest transaction.
    ``fragmented`` is true if some records were written as several messages (module cdc.kafka.fragments). ``marks``
    define which messages count, if records were written without Kafka transactions (module cdc.kafka.fragments).
    ``folds_names`` is true if the server stores all names of databases and tables in lower case.
    """

    partitions: Mapping[Partition, tuple[int, int]]
    limit: int | None = None
    fragmented: bool = False
    marks: tuple[Mark, ...] = ()
    folds_names: bool = False

    @property
    def size(self) -> int:
        """The number of offsets: one for each record and for each marker of a Kafka transaction."""
        return sum(end - start for start, end in self.partitions.values())

    def after(self, offsets: Mapping[Partition, int]) -> "Span":
        """Returns the rest of the span, in which each partition starts at its offset in ``offsets``.

        Raises UserError if a partition ends before its offset in ``offsets``, or starts after that offset although
        there is no ``limit``. With a ``limit``, the skipped offsets may be markers of Kafka transactions, and the
        sequences of the records show whether any record is missing.
        """
        for partition, (start, end) in self.partitions.items():
            if self.limit is None and start > offsets.get(partition, start):
                raise UserError(
                    f"the topic begins at offset {start}, earlier audits have read up to offset {offsets[partition]}",
                    code="CDC-STATE-TOPIC-CUT",
                    where=f"partition {partition_name(partition)}",
                    hint="records expired before an audit read them; copy the leader again, with topics kept for ever",
                )
            if offsets.get(partition, 0) > end:
                raise UserError(
                    f"the topic ends at offset {end}, earlier audits have read up to offset {offsets[partition]}",
                    code="CDC-STATE-TOPIC-SHORTER",
                    where=f"partition {partition_name(partition)}",
                    hint="brokers lost records; remove the audits' folder to audit the records that are left",
                )
        rest = {each: (max(start, offsets.get(each, start)), end) for each, (start, end) in self.partitions.items()}
        return replace(self, partitions=rest)


def span(kafka: Kafka) -> Span:
    """Queries the present offsets of the topics of ``kafka``, up to the last committed Kafka transaction.

    Raises UserError if the brokers can't be reached, if the topic does not exist, if a transaction stays open, or if
    there are messages in a partition that was added to a topic.
    """
    names, properties = kafka.topics(), _properties(kafka)
    with _broker_errors_as_user_errors(kafka):
        topics = known_topics(properties, [names.main, names.commits])
        if names.main not in topics:
            raise UserError(
                f"no such topic: {names.main}",
                code="CDC-AUDIT-NO-TOPIC",
                where=f"Kafka at {kafka.bootstrap_servers}",
                hint="start cdc-producer, which creates the topic; if it exists, the ACL READ on the topic is missing",
            )
        require_first_only(properties, names.first)
        if names.layout == PER_TABLE:
            return _span_of_all_tables(properties, names.main)
        ranges = _ranges(properties, [(names.main, FIRST)])
        # An entry commits with the records that it counts. So the newest entry is read after the ends of the topics:
        # then it is not older than the last record before these ends.
        newest = newest_commits(properties, names.commits) if names.commits in topics else None
        if newest is None or not newest.marks:
            return _whole(properties, Span(ranges), newest)
        # Records from ``next_sequence`` on are not read: without Kafka transactions, a record that no entry counts may
        # come from a producer that was replaced.
        _await_readable(properties, newest, names.commits)
        ranges = _ranges(properties, list(ranges))
        return Span(ranges, newest.next_sequence, True, newest.marks, newest.folds_names)


def records_at(kafka: Kafka, offsets: Mapping[str, int]) -> dict[str, ReadRecord]:
    """Reads the records whose first messages are at these ``offsets``, by the names of partitions; a partition is
    missing if no record begins there any more. Raises UserError if the brokers do not answer.
    """
    only = {partition_of(name): (offset, offset + 1) for name, offset in offsets.items()}
    found: dict[str, ReadRecord] = {}
    if not only:
        return found
    with _broker_errors_as_user_errors(kafka):
        for partition, message in newest_within(_properties(kafka), only).items():
            place = place_of(message)
            if place is not None and place.ts_us is not None:
                found[partition_name(partition)] = ReadRecord(
                    place.sequence, place.offset, place.position.file, place.position.offset, place.ts_us
                )
    return found


def topic_ids(kafka: Kafka, span: Span) -> dict[str, str]:
    """Queries Kafka's id of each topic in ``span``; a topic that is deleted and created again gets another id. Raises
    UserError.
    """
    names = sorted({topic for topic, _ in span.partitions})
    with _broker_errors_as_user_errors(kafka):
        return {name: topic.topic_id for name, topic in required_topics(_properties(kafka), names).items()}


def continued(
    kafka: Kafka,
    span: Span,
    offsets: Mapping[Partition, int],
    read: Mapping[str, Sequence[ReadRecord]],
    *,
    reader: Reader,
) -> dict[Partition, int]:
    """Returns the ``offsets`` at which a reader continues in ``span``. ``read`` are the records that it has read last,
    by the names of partitions: where one is at another offset now, since brokers have lost it and it was written again,
    the reader continues behind it.

    Raises UserError if a topic ends before such a record, PromiseError if another record has taken its place, and
    UserError if the brokers do not answer.
    """
    of_partitions = {partition_of(name): records for name, records in read.items()}
    with _broker_errors_as_user_errors(kafka):
        return offsets_behind(_properties(kafka), of_partitions, offsets, span.partitions, span.marks, reader=reader)


def newest_entry_us(kafka: Kafka, *, resource: str) -> int | None:
    """Reads the time of the commit log's newest entry for ``resource``, in µs since 1970; None if there is no entry.

    The producer writes entries at regular intervals, even while its server is idle. Raises UserError.
    """
    names, properties = kafka.topics(), _properties(kafka)
    with _broker_errors_as_user_errors(kafka):
        if known_topics(properties, [names.commits]):
            for message in backwards(properties, (names.commits, 0)):
                if message.key() == resource.encode() and message.value():
                    return int(message.timestamp()[1]) * 1_000
        return None


def _properties(kafka: Kafka) -> dict[str, Any]:
    """Returns the profile's librdkafka properties, with librdkafka's own log turned off."""
    return {**kafka.properties(), "log_level": 0}


@contextmanager
def _broker_errors_as_user_errors(kafka: Kafka) -> Iterator[None]:
    """Converts errors of the brokers in the block to UserError."""
    where = f"Kafka at {kafka.bootstrap_servers}"
    try:
        yield
    except KafkaException as error:
        where = f"{where} (profile key kafka.bootstrap_servers)"
        raise question_error(error.args[0], kafka.properties(), where=where) from None
    except Disconnected as error:
        raise UserError(error.what, code=error.code, where=where, hint="check kafka.bootstrap_servers") from None


def _span_of_all_tables(properties: Mapping[str, Any], commits: str) -> Span:
    """Returns the span of the records that the newest entry of the commit log counts; waits until all of them can be
    read.
    """
    newest = newest_commits(properties, commits)
    if newest is None:
        return Span({}, 0)
    _await_readable(properties, newest, commits)
    return _whole(properties, Span(_ranges(properties, newest.partitions), newest.next_sequence), newest)


def _await_readable(properties: Mapping[str, Any], newest: Commits, commits: str) -> None:
    """Waits until all records that the entry ``newest`` counts can be read: Kafka commits a transaction in one topic
    after the other. Raises UserError if a transaction stays open.
    """
    if not await_ends(properties, newest.partitions, seconds=OPEN_TRANSACTION_SECONDS):
        raise UserError(
            f"a transaction has been open for {OPEN_TRANSACTION_SECONDS:.0f} s",
            code="CDC-AUDIT-OPEN-TRANSACTION",
            where=f"the topics that {commits} names",
            hint="start cdc-producer, which ends the transaction",
        )


def _whole(properties: Mapping[str, Any], span: Span, announced: Commits | None) -> Span:
    """Removes an incomplete record at a partition's end from the span: only its first fragments can be read yet.

    A commit that the network delayed may end the producer's next Kafka transaction early. Then records are visible that
    no entry of the commit log counts yet. The last of them may be incomplete, since the producer writes its last
    fragments later; until then it would look damaged.
    """
    fragmented = announced is not None and announced.fragmented
    next_sequence = announced.next_sequence if announced else 0
    ranges = dict(span.partitions)
    for partition, message in newest_within(properties, ranges).items():
        fragment = _fragment(message)
        if not _is_begun(fragment) and _sequence(message) < next_sequence:
            continue  # nearly all partitions end with a complete record that the entry counts
        for each in backwards(properties, partition, end=ranges[partition][1]):
            part = _fragment(each)
            fragmented = fragmented or part is not None
            if part is not None and fragment is not None and part.sequence == fragment.sequence:
                if _is_begun(fragment):
                    ranges[partition] = ranges[partition][0], each.offset() or 0
            elif _sequence(each) < next_sequence:
                break
    folds = announced is not None and announced.folds_names
    return replace(span, partitions=ranges, fragmented=fragmented, folds_names=folds)


def _fragment(message: Message) -> Fragment | None:
    """Returns the fragment in a message. Returns None if the message contains no fragment, or a damaged fragment, which
    the parsing of records reports.
    """
    with suppress(CdcError):
        return Fragment.of(message)
    return None


def _is_begun(fragment: Fragment | None) -> bool:
    """Whether more fragments of the same record must follow this fragment."""
    return fragment is not None and fragment.number < fragment.total - 1


def _sequence(message: Message) -> int:
    """Returns the record's sequence; -1 for a message that is not a record."""
    if fragment := _fragment(message):
        return fragment.sequence
    with suppress(CdcError):
        return Record.parse(message.value() or b"", where="").sequence
    return -1


def _ranges(
    properties: Mapping[str, Any], partitions: tuple[Partition, ...] | list[Partition]
) -> dict[Partition, tuple[int, int]]:
    """Maps each partition to its first offset, and to the offset after its last committed record."""
    begins, ends = begin_offsets(properties, partitions), end_offsets(properties, partitions)
    return {each: (begins[each], ends[each]) for each in partitions}


# Finds reasons why an audit could not judge, using only profiles and brokers: without Spark, in less than a second.


def early_reasons(
    profiles: Mapping[str, Profile],
    spans: Mapping[str, Span],
    own: str,
    *,
    kept: bool = False,
    max_age: float | None = None,
) -> Iterator[str]:
    """Finds reasons in the producers' ``profiles`` and their topics' ``spans``, both by side.

    ``own`` is the consumer's own database. ``kept`` is true if the state of an earlier audit may contain the records
    that retention has deleted. The audit would find all these reasons itself, but only after minutes; the user can
    correct their causes now. Raises UserError if the brokers don't answer.
    """
    *_, follower = profiles.values()
    yield from left_out_notes(follower.filters, own)
    yield from left_out_rows(follower.filters)
    for side, profile in profiles.items():
        topic = profile.kafka.topic
        if not spans[side].size:
            yield f"topic {topic} has no records yet: is the cdc-producer of the {side} running?"
        cut = [(each, begin) for each, (begin, _) in spans[side].partitions.items() if begin > 0]
        for partition, begin in [] if kept else cut[:1]:
            yield (
                f"topic {topic} begins at offset {begin} of partition {partition_name(partition)}: retention cut what "
                "came before; set retention.ms=-1"
            )
        if max_age is not None:
            newest = newest_entry_us(profile.kafka, resource=profile.mysql_resource_name)
            yield from too_old(side, topic, None if newest is None else time.time() - newest / 1e6, max_age)


def left_out_notes(filters: Filters, own: str) -> Iterator[str]:
    """Reports tables of the consumer's ``own`` database that the audit needs, but that the filters of the follower's
    producer leave out.
    """
    if not filters.wants_database(own):
        yield f"the follower profile's filters leave out database {own}, where the checkpoint is"
    elif not filters.wants_table(own, "ledger"):
        yield f"the follower profile's filters leave out {own}.ledger, which lists the statements that the consumer ran"


def left_out_rows(filters: Filters) -> Iterator[str]:
    """Reports a condition by which the follower's producer leaves rows out: a foreign write of such a row would not be
    seen.
    """
    if filters.rows:
        names = ", ".join(sorted(filters.rows))
        yield (
            f"the follower profile's filters.rows leaves out rows of the follower ({names}): remove it, and begin a "
            "new topic of the follower with a copy (docs/audit-operations.md, A follower that runs already)"
        )


def too_old(side: str, topic: str, age: float | None, max_age: float) -> Iterator[str]:
    """Reports the newest entry of a commit log if it is too old. ``age`` is in seconds, None without an entry."""
    if age is None or age > max_age:
        how = "without an entry" if age is None else f"{age:.0f} s old"
        yield (
            f"the commit log of the {side}'s topic {topic} is {how}, and --max-age is {max_age:g}: "
            "is its cdc-producer running?"
        )
