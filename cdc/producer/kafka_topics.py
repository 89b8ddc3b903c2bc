"""The two topics of a leader, records and commit log: made as they must be, checked, and what errors mean."""

from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cdc.errors import CdcError, Disconnected, UserError
from cdc.producer.commit_log import Entry
from cdc.service import LIBRDKAFKA

__all__ = ["require_matching", "require_topics", "translated"]

_ANSWER_SECONDS = 10.0
_DENIED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.TOPIC_EXCEPTION,
    }
)


def _topics(topic: str, properties: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The topics that one leader needs, each with the settings with which it is created."""
    largest = properties.get("message.max.bytes")
    records = {"cleanup.policy": "delete", "retention.bytes": "-1"}
    if largest:
        records["max.message.bytes"] = str(largest)
    # Only closed segments are compacted, so small ones keep the commit log small.
    commits = {"cleanup.policy": "compact", "segment.bytes": "16777216"}
    return {topic: records, f"{topic}.commits": commits}


def require_topics(properties: dict[str, Any], topic: str, *, replicas: int) -> None:
    """Create the topics that are not there, to be kept for ever; refuse one in which there is no total order."""
    topics = _topics(topic, properties)
    admin = AdminClient(properties, logger=LIBRDKAFKA)
    known = admin.list_topics(timeout=_ANSWER_SECONDS).topics
    for name in topics.keys() & known.keys():
        if len(known[name].partitions) != 1:
            raise UserError(
                f"the topic has {len(known[name].partitions)} partitions, and only one keeps the leader's order",
                where=f"topic {name}",
                hint="name a topic that does not exist in kafka.topic: it is created as it must be",
            )
    missing = [
        NewTopic(name, num_partitions=1, replication_factor=replicas, config={"retention.ms": "-1"} | config)
        for name, config in topics.items()
        if name not in known
    ]
    for name, created in (admin.create_topics(missing) if missing else {}).items():
        try:
            created.result(_ANSWER_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise translated(error, name) from None


def require_matching(topic: str, entry: Entry | None, *, end: int) -> None:
    """Raise UserError where the records in the topic are not those that the commit log speaks of."""
    wanted = entry.counts.get(f"{topic}/0", 0) if entry else 0
    if entry is None and end > 0:
        raise UserError(
            "the topic has records but no commit log: it was lost, or something else writes here",
            where=f"topic {topic}.commits",
            hint="name a new topic in kafka.topic and give the follower a fresh copy of the leader",
        )
    if end < wanted:
        raise UserError(
            f"the commit log counts {wanted} records, the topic ends at offset {end}: it was deleted or emptied",
            where=f"topic {topic}",
            hint="name a new topic in kafka.topic and give the follower a fresh copy of the leader",
        )


def translated(error: KafkaException, topic: str) -> CdcError:
    code, text = error.args[0].code(), error.args[0].str()
    if code in _DENIED:
        return UserError(
            f"Kafka refuses: {text}", where=f"topic {topic}", hint="check [kafka] and its librdkafka table"
        )
    if code == KafkaError._INVALID_ARG:
        return UserError(f"Kafka's settings are refused: {text}", where="profile key kafka.librdkafka")
    return Disconnected(f"Kafka does not answer: {text}", where=f"topic {topic}", hint="are the brokers running?")
