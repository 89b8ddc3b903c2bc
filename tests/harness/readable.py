"""Waits until committed messages can be read: a broker confirms a commit before it writes the end markers."""

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from cdc.kafka.topics import topics_shown
from tests.harness.wait import LIMIT_SECONDS, until

__all__ = ["until_readable"]


def until_readable(admin: AdminClient, *topics: str) -> None:
    """Waits until every transaction in the topics' partitions has its end marker; none may be left open."""
    known = topics_shown(admin, topics, seconds=LIMIT_SECONDS)
    wanted = [TopicPartition(topic, number) for topic in topics for number in known[topic].partitions]

    def ends(level: IsolationLevel) -> list[int]:
        latest = {place: OffsetSpec.latest() for place in wanted}
        answers = admin.list_offsets(latest, isolation_level=level, request_timeout=LIMIT_SECONDS)
        return [answer.result().offset for answer in answers.values()]

    # The order matters: a transaction that ends between the two requests must not look ended before.
    until(
        lambda: ends(IsolationLevel.READ_UNCOMMITTED) == ends(IsolationLevel.READ_COMMITTED),
        what="the commit to be seen",
    )
