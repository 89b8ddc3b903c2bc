"""Describes topics by name.

A request for the metadata of all topics costs the brokers and the client time for each topic of the cluster, whether
it is the program's or not. The requests here name their topics; unlike a consumer's or a producer's own request for a
single topic, they never create it, even on brokers with auto.create.topics.enable.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartitionInfo
from confluent_kafka.admin import AdminClient

from cdc.kafka.admin_clients import admin_client
from cdc.kafka.errors import NO_TOPIC

__all__ = ["KnownTopic", "known_topics", "required_topics", "topics_shown"]

_ANSWER_SECONDS = 10.0
# Kafka returns the last two for a topic that the user may not describe, and for a name that no topic can have.
_NOT_SHOWN = NO_TOPIC | {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_EXCEPTION}


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic that the brokers show us, with Kafka's id and the partitions by number. A topic that is deleted and
    created again has another id.
    """

    topic_id: str
    partitions: Mapping[int, TopicPartitionInfo]


def known_topics(properties: Mapping[str, Any], names: Collection[str]) -> dict[str, KnownTopic]:
    """Describes those of the topics ``names`` that the brokers show us; ``properties`` are librdkafka's. Raises
    KafkaException.
    """
    if not names:
        return {}
    with admin_client(properties) as admin:
        return topics_shown(admin, names)


def required_topics(properties: Mapping[str, Any], names: Collection[str]) -> dict[str, KnownTopic]:
    """Does what ``known_topics`` does. Raises KafkaException also if one of the topics is not shown."""
    found = known_topics(properties, names)
    if len(found) < len(set(names)):
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    return found


def topics_shown(
    admin: AdminClient, names: Collection[str], *, seconds: float = _ANSWER_SECONDS
) -> dict[str, KnownTopic]:
    """Does what ``known_topics`` does, with the client ``admin``. ``seconds`` limits the wait for an answer."""
    found = {}
    # The time limit is part of the request: ``result()`` with a limit raises an exception that is not Kafka's.
    answers = admin.describe_topics(TopicCollection(sorted(set(names))), request_timeout=seconds) if names else {}
    for name, answer in answers.items():
        try:
            topic = answer.result()
        except KafkaException as error:
            if error.args[0].code() not in _NOT_SHOWN:
                raise
        else:
            found[name] = KnownTopic(str(topic.topic_id), {each.id: each for each in topic.partitions})
    return found
