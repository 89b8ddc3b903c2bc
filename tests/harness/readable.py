"""Waiting until what was committed to Kafka can be read: a broker writes a commit's ends after it has said yes."""

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.harness.wait import LIMIT_SECONDS, until

__all__ = ["until_readable"]


def until_readable(admin: AdminClient, *topics: str) -> None:
    """Wait until no transaction in the topics' partitions is without its end; none must be left open."""
    known = admin.list_topics(timeout=LIMIT_SECONDS).topics
    wanted = [TopicPartition(topic, number) for topic in topics for number in known[topic].partitions]

    def ends(level: IsolationLevel) -> list[int]:
        latest = {place: OffsetSpec.latest() for place in wanted}
        answers = admin.list_offsets(latest, isolation_level=level, request_timeout=LIMIT_SECONDS)
        return [answer.result().offset for answer in answers.values()]

    # In this order: what ends between the two questions must not look as if it had before.
    until(
        lambda: ends(IsolationLevel.READ_UNCOMMITTED) == ends(IsolationLevel.READ_COMMITTED),
        what="the commit to be seen",
    )
