"""A connection to the brokers that reads committed messages: what is there, and what errors mean.

The consumer group is never asked for a place. Offsets are committed to it for lag tools alone.
"""

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from cdc.consumer.state.checkpoint import Partition
from cdc.errors import CdcError, Disconnected, PromiseError, ServerGone
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import NO_TOPIC, brokers_gone, is_transient, read_error, settings_refused, unreachable
from cdc.kafka.partitions import begin_offsets, end_offsets, oldest
from cdc.model.commit_entry import Commits
from cdc.model.record import Record
from cdc.service.logs import event

__all__ = ["KafkaReader", "Topic"]

_LOG = logging.getLogger("cdc.consumer")
_ASK_SECONDS = 10.0
_MOST_MESSAGES = 1000
_COMMIT_SECONDS = 1.0
# Fetched ahead: librdkafka's own 64 MB would be more than all the rest takes, and the second that it rests when so much
# is there would keep the follower waiting. A partition's end is told when a broker has found nothing more for so long:
# its own 500 ms are half of what a short --until-current takes.
_FETCH = {"queued.max.messages.kbytes": 16_000, "fetch.queue.backoff.ms": 10, "fetch.wait.max.ms": 100}
_LOOK_SECONDS = 1.0
# Whoever reads at a topic's end hears nothing of its deletion (librdkafka 2), so it is looked for.
_TOPICS_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the brokers have it: its id, which a topic of the same name made later does not share, and for each
    partition the offsets of its first record and past its last committed one."""

    name: str
    id: str
    ranges: dict[int, tuple[int, int]]


class KafkaReader:
    """Reads from assigned places. ``properties`` are librdkafka's, from the profile; ``group`` is for lag tools."""

    def __init__(
        self, *, bootstrap_servers: str, group: str, properties: Mapping[str, Any], retry_seconds: float
    ) -> None:
        self._servers = bootstrap_servers
        self._retry_seconds = retry_seconds
        self._down_since: float | None = None
        self._committed_at = 0.0
        self._to_commit: dict[Partition, int] = {}
        self._looked_at = time.monotonic()
        self._unseen: set[str] = set()
        self._last_error = ""
        self._answered = False
        # librdkafka's own log is for its developers; what matters comes as errors.
        self._connection = {"log_level": 2, **properties, "bootstrap.servers": bootstrap_servers}
        # Ours come last: the promises rest on them.
        settings = {
            **_FETCH,
            **self._connection,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "error_cb": self._on_error,
        }
        try:
            self._consumer = Consumer(settings, logger=logging.getLogger("cdc.consumer.kafka"))
        except KafkaException as error:
            raise settings_refused(error.args[0]) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Nothing is lost without: we are no member of a group. With the brokers away librdkafka 2.16 may wait for ever
        # in there, for the answer to a commit.
        if not self.away:
            self._consumer.close()

    def topic(self, name: str) -> Topic | None:
        """The topic, or None where there is none. Raises Unreachable where the brokers can't be reached."""
        return self.topics([name]).get(name)

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Those of the topics that there are. Raises Unreachable where the brokers can't be reached."""
        try:
            found = self._described(names)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from None
        self._answered = True
        return found

    def topics_now(self, names: Collection[str]) -> dict[str, Topic] | None:
        """``topics``, or None where the brokers can't tell now."""
        try:
            return self._described(names) if names else {}
        except KafkaException:
            # As in ``written``.
            return None

    def _described(self, names: Collection[str]) -> dict[str, Topic]:
        found: dict[str, Topic] = {}
        # Asked first, because it says at once that no broker is there.
        self._consumer.list_topics(timeout=_ASK_SECONDS)
        admin = AdminClient(self._connection, logger=logging.getLogger("cdc.consumer.kafka"))
        # The limit is for the request: one on the answer alone would raise what is no error of Kafka's.
        asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=_ASK_SECONDS) if names else {}
        for name, answer in asked.items():
            try:
                described = answer.result()
            except KafkaException as error:
                if error.args[0].code() not in NO_TOPIC:
                    raise
            else:
                numbers = [partition.id for partition in described.partitions]
                found[name] = Topic(name, str(described.topic_id), dict.fromkeys(numbers, (0, 0)))
        places = [(name, number) for name, topic in found.items() for number in topic.ranges]
        # All at once: one topic after the other would take a tenth of a second each.
        begins, ends = begin_offsets(self._connection, places), end_offsets(self._connection, places)
        for name, number in places:
            found[name].ranges[number] = begins[name, number], ends[name, number]
        return found

    def commits(self, topic: str) -> Commits | None:
        """The newest entry of the commit log ``topic``. Raises Unreachable where the brokers can't be reached."""
        try:
            return newest_commits(self._connection, topic)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from None
        except Disconnected as error:
            raise brokers_gone(str(error), self._servers) from None

    def first_sequence(self, topic: str, commits: str) -> int | None:
        """The sequence of the oldest record in the one partition of ``topic``; without any, of the next that comes.

        None where that can't be told, since there is no commit log ``commits``. Raises Unreachable where the
        brokers can't be reached, PromiseError for what is no record.
        """
        try:
            message = oldest(self._connection, (topic, 0))
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from None
        except Disconnected as error:
            raise brokers_gone(str(error), self._servers) from None
        if message is not None:
            return Record.parse(message.value() or b"", where=f"{topic}/0/{message.offset()}").sequence
        newest = self.commits(commits) if self.topic(commits) else None
        return newest.next_sequence if newest else None

    def written(self, partitions: Collection[Partition]) -> dict[Partition, int] | None:
        """The offsets after all that was ever written, committed or not; None where the brokers can't tell now."""
        try:
            ends = end_offsets(self._connection, [(place.topic, place.number) for place in partitions], committed=False)
        except KafkaException:
            # Whether they stay away is judged elsewhere (check_brokers), by one clock for all questions.
            return None
        return {place: ends[place.topic, place.number] for place in partitions}

    def begin(self, places: Mapping[Partition, int]) -> None:
        """Read these partitions and no others, each from its offset on."""
        self._consumer.unassign()
        self.assign(places)

    def assign(self, places: Mapping[Partition, int]) -> None:
        """Read these partitions too, each from its offset on, in order."""
        self._consumer.incremental_assign(
            [TopicPartition(place.topic, place.number, offset) for place, offset in sorted(places.items())]
        )

    def leave(self, partitions: Collection[Partition]) -> None:
        """Read these partitions no more, until they are assigned again.

        Not pause and resume: where one soon follows the other, librdkafka passes over what it had already fetched
        (librdkafka #5591 tells how such an operation is dropped).
        """
        self._consumer.incremental_unassign([TopicPartition(place.topic, place.number) for place in partitions])

    def messages(self, wait: float) -> list[Message]:
        """What is here now, after ``wait`` seconds for the first. To wait for a full list would cost latency."""
        first = self._consumer.poll(wait)
        if first is None:
            return []
        if first.error() is None:
            self._answers()
        return [first, *self._consumer.consume(_MOST_MESSAGES, timeout=0)]

    def at_end(self, message: Message) -> bool:
        """Whether the message only says that its partition is read to its end.

        Raises what an error in the stream of messages means: PromiseError, UserError; those that librdkafka mends
        itself mean nothing.
        """
        error = message.error()
        if error is None:
            return False
        if error.code() == KafkaError._PARTITION_EOF:
            self._answers()
            return True
        self._check(error, f"topic {message.topic()} on {self._servers}")
        return False

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Show the group how far we are, at most once a second, without waiting for it."""
        self._to_commit.update(offsets)
        if time.monotonic() - self._committed_at > _COMMIT_SECONDS:
            self._committed_at = time.monotonic()
            places = [TopicPartition(place.topic, place.number, at) for place, at in self._to_commit.items()]
            self._consumer.commit(offsets=places, asynchronous=True)
            self._to_commit.clear()

    @property
    def away(self) -> bool:
        """Whether no broker has answered since the last one was lost: there may be more than what is here."""
        return self._down_since is not None

    def check_brokers(self) -> None:
        """Raises ServerGone where the brokers have been away for longer than was agreed."""
        if self._down_since is None:
            return
        try:
            # A quiet topic shows no sign of life, so only a question tells whether the brokers are back.
            self._consumer.list_topics(timeout=_LOOK_SECONDS)
        except KafkaException as error:
            if time.monotonic() - self._down_since < self._retry_seconds:
                return
            raise ServerGone(
                f"Kafka cannot be reached: {self._last_error or error.args[0].str()}",
                where=self._servers,
                hint=f"tried for {self._retry_seconds:.0f} s (consumer.retry_seconds); start again when it is up",
            ) from None
        self._answers()

    def check_topics(self, names: Iterable[str]) -> None:
        """Raises PromiseError where one of the topics is there no more, now and when it was last looked for."""
        if time.monotonic() - self._looked_at < _TOPICS_SECONDS:
            return
        try:
            known = self._consumer.list_topics(timeout=_LOOK_SECONDS).topics
        except KafkaException:
            # As in ``written``.
            return
        self._looked_at = time.monotonic()
        # Twice, since a broker that has just come may not have heard of all topics.
        before, self._unseen = self._unseen, set(names) - known.keys()
        gone = sorted(before & self._unseen)
        if gone:
            raise PromiseError(
                "the topic was deleted while reading",
                where=f"topic {gone[0]} on {self._servers}",
                hint="start again for a check against the checkpoint; where it is there, check the ACLs",
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
            event(
                _LOG,
                "kafka unreachable",
                level=logging.WARNING,
                servers=self._servers,
                reason=self._last_error or error.str(),
            )

    def _check(self, error: KafkaError, where: str) -> None:
        found = read_error(error, where)
        if found is not None:
            raise found
        if not is_transient(error):
            raise PromiseError(f"reading the topic failed: {error.str()}", where=where)

    def _unreachable(self, error: KafkaError) -> CdcError:
        return read_error(error, self._servers) or unreachable(
            error, self._servers, properties=self._connection, answered=self._answered
        )
