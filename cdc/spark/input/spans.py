"""The brokers as the audit needs them: which offsets a leader's topics span now, and properties in Spark's names."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from cdc.config.profile import Kafka
from cdc.config.topic_names import PER_TABLE
from cdc.errors import Disconnected, UserError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import question_error
from cdc.kafka.partitions import backwards, begin_offsets, end_offsets
from cdc.model.partition import Partition, partition_name

__all__ = ["Span", "kafka_options", "newest_entry_us", "span", "topic_ids"]

_TIMEOUT_SECONDS = 10.0
_ENDED_SECONDS = 70.0  # a transaction that is left open is ended by the brokers after 60 s
_SAME_NAME = frozenset({"security.protocol", "ssl.endpoint.identification.algorithm"})
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Span:
    """What of a leader's topics is read: per partition the first offset and the one after the last, in Kafka's count.

    ``limit`` is the sequence to stop before where the offsets alone can't say it: Kafka ends a transaction in one topic
    after the other, so of several the newest may be seen in part.
    """

    partitions: Mapping[Partition, tuple[int, int]]
    limit: int | None = None

    @property
    def size(self) -> int:
        """Offsets spanned: the records, and the few markers of Kafka transactions between them."""
        return sum(end - start for start, end in self.partitions.values())

    def after(self, offsets: Mapping[Partition, int]) -> "Span":
        """What is left of it when each partition is read from its offset in ``offsets`` on.

        Raises UserError where a partition ends before that, or begins after it. With a ``limit`` it may begin a little
        after it, where the ends of Kafka transactions are; the limit itself shows whether records are gone.
        """
        for place, (start, end) in self.partitions.items():
            if self.limit is None and start > offsets.get(place, start):
                raise UserError(
                    f"the topic begins at offset {start}, the state was kept at {offsets[place]}",
                    where=f"partition {partition_name(place)}",
                    hint="records expired before an audit saw them; copy the leader anew, with topics kept for ever",
                )
            if offsets.get(place, 0) > end:
                raise UserError(
                    f"the topic ends at offset {end}, the state was kept at {offsets[place]}",
                    where=f"partition {partition_name(place)}",
                    hint="brokers lost records; remove the state to audit what is left",
                )
        left = {place: (max(start, offsets.get(place, start)), end) for place, (start, end) in self.partitions.items()}
        return Span(left, self.limit)


def span(kafka: Kafka) -> Span:
    """The offsets that the topics of ``kafka`` hold now, up to the last committed Kafka transaction.

    Raises UserError where the brokers can't be reached or have no such topic, or a transaction stays open.
    """
    names, where = kafka.topics(), f"Kafka at {kafka.bootstrap_servers}"
    properties = {**kafka.properties(), "log_level": 0}
    try:
        topics = AdminClient(properties).list_topics(timeout=_TIMEOUT_SECONDS).topics
        if names.main not in topics:
            raise UserError(f"no such topic: {names.main}", where=where, hint="start cdc-producer, which creates it")
        if names.layout == PER_TABLE:
            return _span_of_many(properties, names.main)
        partitions = [(names.main, number) for number in topics[names.main].partitions]
        return Span(_ranges(properties, partitions))
    except KafkaException as error:
        raise _unanswered(error, kafka) from None
    except Disconnected as error:
        raise UserError(error.what, where=where, hint="check kafka.bootstrap_servers") from None


def topic_ids(kafka: Kafka, span: Span) -> dict[str, str]:
    """The ids of the topics in ``span``: one that is made anew has another. Raises UserError."""
    names = sorted({topic for topic, _ in span.partitions})
    if not names:
        return {}
    try:
        admin = AdminClient({**kafka.properties(), "log_level": 0})
        asked = admin.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_SECONDS)
        return {name: str(answer.result().topic_id) for name, answer in asked.items()}
    except KafkaException as error:
        raise _unanswered(error, kafka) from None


def _unanswered(error: KafkaException, kafka: Kafka) -> UserError:
    where = f"Kafka at {kafka.bootstrap_servers} (profile key kafka.bootstrap_servers)"
    return question_error(error.args[0], kafka.properties(), where=where)


def newest_entry_us(kafka: Kafka, *, resource: str) -> int | None:
    """When the newest entry of the commit log was written for ``resource``, µs since 1970; None where there is none.

    Its producer writes one now and then even where its server is idle. Raises UserError.
    """
    names, where = kafka.topics(), f"Kafka at {kafka.bootstrap_servers}"
    properties = {**kafka.properties(), "log_level": 0}
    try:
        if names.commits in AdminClient(properties).list_topics(timeout=_TIMEOUT_SECONDS).topics:
            for message in backwards(properties, (names.commits, 0)):
                if message.key() == resource.encode() and message.value():
                    return int(message.timestamp()[1]) * 1_000
        return None
    except KafkaException as error:
        raise _unanswered(error, kafka) from None
    except Disconnected as error:
        raise UserError(error.what, where=where, hint="check kafka.bootstrap_servers") from None


def _span_of_many(properties: Mapping[str, Any], commits: str) -> Span:
    """All that the newest entry of the commit log stands for, waiting until it can be read in every topic."""
    newest = newest_commits(properties, commits)
    if newest is None:
        return Span({}, 0)
    written = end_offsets(properties, newest.partitions, committed=False)
    give_up = time.monotonic() + _ENDED_SECONDS
    while any(end < written[place] for place, end in end_offsets(properties, newest.partitions).items()):
        if time.monotonic() > give_up:
            raise UserError(
                f"a transaction has been open for {_ENDED_SECONDS:.0f} s",
                where=f"the topics that {commits} names",
                hint="start cdc-producer, which ends it",
            )
        time.sleep(0.1)
    return Span(_ranges(properties, newest.partitions), newest.next_sequence)


def _ranges(
    properties: Mapping[str, Any], partitions: tuple[Partition, ...] | list[Partition]
) -> dict[Partition, tuple[int, int]]:
    begins, ends = begin_offsets(properties, partitions), end_offsets(properties, partitions)
    return {place: (begins[place], ends[place]) for place in partitions}


def kafka_options(kafka: Kafka) -> dict[str, str]:
    """The options of Spark's Kafka source that reach the same brokers as the profile's librdkafka properties.

    Only what secures the connection is carried over; the other properties tune librdkafka itself. Raises UserError for
    a security property that has no counterpart here: reading without it would be another connection than was meant.
    """
    options = {"bootstrap.servers": kafka.bootstrap_servers}
    given = {name: str(value) for name, value in kafka.librdkafka.items()}
    for name, value in given.items():
        if not name.startswith(("security.", "sasl.", "ssl.", "enable.ssl", "enable.sasl")):
            continue
        if name in _SAME_NAME:
            # librdkafka says "none" where the Java client wants nothing.
            options[name] = "" if value == "none" else value
        elif name in ("sasl.mechanism", "sasl.mechanisms"):
            options |= _login(value, given)
        elif name == "ssl.ca.location":
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}
        elif name not in ("sasl.username", "sasl.password"):
            raise UserError(
                f"{name} is not supported by the audit",
                where=f"profile key kafka.librdkafka.{name}",
                hint="give the audit profiles of its own, with SASL PLAIN or SCRAM, or TLS with ssl.ca.location",
            )
    return {f"kafka.{name}": value for name, value in options.items()}


def _login(mechanism: str, given: Mapping[str, Any]) -> dict[str, str]:
    if mechanism not in _LOGIN_MODULES:
        raise UserError(
            f"SASL mechanism {mechanism} is not supported by the audit",
            where="profile key kafka.librdkafka.sasl.mechanism",
            hint=f"one of {', '.join(_LOGIN_MODULES)}",
        )
    user, password = (_quoted(given.get(name, "")) for name in ("sasl.username", "sasl.password"))
    entry = f"{_LOGIN_MODULES[mechanism]} required username={user} password={password};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": entry}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
