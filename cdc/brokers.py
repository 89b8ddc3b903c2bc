"""Questions to the brokers from beside the stream: over a connection of their own, so that none disturbs the other."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from cdc.health import Check
from cdc.service import LIBRDKAFKA

__all__ = ["Brokers"]

_ANSWER_SECONDS = 2.0
# After an outage a check must not go on failing for long; an address is asked again at least so often.
_RECONNECT = {"reconnect.backoff.max.ms": 1000}


class Brokers:
    """The brokers that ``properties`` (librdkafka's) name; connected at the first question."""

    def __init__(self, properties: dict[str, Any]) -> None:
        self._properties = properties | _RECONNECT
        self._admin: AdminClient | None = None

    def check(self, topic: str) -> Check:
        """Whether a broker answers and each partition of ``topic`` has a leader."""
        try:
            found = self._client().list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic]
        except KafkaException as error:
            return Check("kafka", False, f"no answer: {error.args[0].str()}")
        errors = [found.error, *(partition.error for partition in found.partitions.values())]
        troubles = [error for error in errors if error is not None]
        if troubles:
            return Check("kafka", False, f"topic {topic}: {troubles[0].str()}")
        return Check("kafka", True, f"topic {topic} has a leader for {len(found.partitions)} partition(s)")

    def ends(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int] | None:
        """For each (topic, partition) the offset after its last committed record; None where the brokers are away."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, partition): latest for topic, partition in places}
        if not wanted:
            return {}
        try:
            asked = self._client().list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_ANSWER_SECONDS
            )
            return {
                (place.topic, place.partition): int(answer.result(_ANSWER_SECONDS).offset)
                for place, answer in asked.items()
            }
        except (KafkaException, TimeoutError):
            # That they are away is the health check's to say; a figure that is not known is left out.
            return None

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self._properties, logger=LIBRDKAFKA)
        return self._admin
