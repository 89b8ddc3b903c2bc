"""Creates topics with the settings that a leader's stream needs, and waits until they accept messages."""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import TopicMetadata  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from cdc.config.profile import MESSAGE_BYTES
from cdc.config.topic_names import Topics
from cdc.errors import Disconnected
from cdc.kafka.admin_clients import admin_client
from cdc.kafka.errors import SETTING_REFUSED, write_error
from cdc.kafka.partitions import led
from cdc.kafka.topic_times import ANY_TIME
from cdc.model.partition import Partition

__all__ = ["TopicMaker", "known_topics"]

_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.05
_TOPICS_PER_CALL = 200  # created in one call, which must answer in time
_MANY_REPLICAS = 3


class TopicMaker:
    """Creates topics among ``names``. ``properties`` are librdkafka's."""

    def __init__(
        self, properties: Mapping[str, Any], names: Topics, *, replicas: int, retention_ms: int, min_insync: int
    ) -> None:
        self._properties = properties
        self._names = names
        self._replicas = replicas
        self._retention_ms = retention_ms
        self._min_insync_replicas = min_insync or (2 if replicas >= _MANY_REPLICAS else 0)

    def create(self, partitions: Mapping[str, int]) -> set[str]:
        """Creates the topics with these numbers of partitions, and waits until they have leaders.

        Returns those that have all requested settings: others existed already, or the brokers do not know all settings.
        Raises UserError if the brokers refuse, Disconnected, KafkaException.
        """
        names, made = sorted(partitions), set[str]()
        for first in range(0, len(names), _TOPICS_PER_CALL):
            some = {name: partitions[name] for name in names[first : first + _TOPICS_PER_CALL]}
            left = self._ask(some, ANY_TIME, passes=SETTING_REFUSED)
            # Brokers before Kafka 3.6 do not know these settings, and others may forbid them.
            self._ask({name: some[name] for name in left}, {}, passes=frozenset())
            self._await_leaders(list(some))
            self._await_answers({(name, number) for name in some for number in range(some[name])})
            made |= some.keys() - left
        return made

    def _ask(self, partitions: Mapping[str, int], more: Mapping[str, str], *, passes: frozenset[int]) -> set[str]:
        """Creates the topics with ``more`` settings; returns those that were not created: they exist, or ``passes`` has
        the error.
        """
        count, left = self._replicas, set()
        topics = [
            NewTopic(name, num_partitions=number, replication_factor=count, config=self._settings(name) | dict(more))
            for name, number in partitions.items()
        ]
        # A timeout of the request: one of the future alone would raise an error that is not Kafka's.
        try:
            with admin_client(self._properties) as admin:
                answers = admin.create_topics(topics, request_timeout=_ANSWER_SECONDS) if topics else {}
        except KafkaException as error:
            raise write_error(error, min(partitions), operation="CREATE") from None
        for name, answer in answers.items():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() not in passes | {KafkaError.TOPIC_ALREADY_EXISTS}:
                    raise write_error(error, name, operation="CREATE") from None
                left.add(name)
        return left

    def _await_answers(self, left: set[Partition]) -> None:
        """Waits until the leaders of new partitions accept messages, which is after the brokers have named them.

        Before that a leader can refuse the first batch of a transaction and accept the second, which was on its way
        too; then the transaction commits without the first (Kafka 4.3, librdkafka 2.16).
        """
        give_up = time.monotonic() + _ANSWER_SECONDS
        while left:
            ready = led(self._properties, left)
            left = left - ready
            if ready:
                give_up = time.monotonic() + _ANSWER_SECONDS  # a busy broker opens one after the other
            elif time.monotonic() > give_up:
                raise Disconnected(
                    "the topic was created, but no broker leads it",
                    code="CDC-BROKER-GONE",
                    where=f"topic {min(left)[0]}",
                )
            if left:
                time.sleep(_POLL_SECONDS)

    def _await_leaders(self, names: list[str]) -> None:
        give_up, left = time.monotonic() + _ANSWER_SECONDS, names
        while left:
            known = known_topics(self._properties)
            left = [name for name in left if not _is_led(known.get(name))]
            if left and time.monotonic() > give_up:
                raise Disconnected(
                    "the topic was created, but no broker leads it", code="CDC-BROKER-GONE", where=f"topic {left[0]}"
                )
            if left:
                time.sleep(_POLL_SECONDS)

    def _settings(self, name: str) -> dict[str, str]:
        own = {"max.message.bytes": str(self._properties.get("message.max.bytes", MESSAGE_BYTES))}
        if self._min_insync_replicas:
            own["min.insync.replicas"] = str(self._min_insync_replicas)
        if name == self._names.commits:
            # Only closed segments are compacted, so small ones keep the commit log small.
            return {"retention.ms": "-1", "cleanup.policy": "compact", "segment.bytes": "16777216"} | own
        return {"retention.ms": str(self._retention_ms), "cleanup.policy": "delete", "retention.bytes": "-1"} | own


def known_topics(properties: Mapping[str, Any]) -> Mapping[str, TopicMetadata]:
    """All topics that the brokers show us: a request for one creates it on brokers with auto.create.topics.enable.

    Raises KafkaException.
    """
    with admin_client(properties) as admin:
        known: Mapping[str, TopicMetadata] = admin.list_topics(timeout=_ANSWER_SECONDS).topics
    return known


def _is_led(topic: TopicMetadata | None) -> bool:
    return topic is not None and topic.error is None and all(p.leader >= 0 for p in topic.partitions.values())
