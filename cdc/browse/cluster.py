"""Describes a Kafka cluster: its brokers, its topics with their partitions, the settings made for a topic, and its
consumer groups.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource  # type: ignore[attr-defined]

from cdc.browse.messages import answering
from cdc.kafka.partitions import known_ranges
from cdc.kafka.topics import admin_client
from cdc.model.position import Partition

__all__ = [
    "Broker",
    "ClusterSummary",
    "Group",
    "Groups",
    "Member",
    "PartitionSummary",
    "ReadPlace",
    "TopicSummary",
    "cluster_summary",
    "group",
    "groups",
    "topic_readers",
    "topic_settings",
    "topic_summary",
]

_ANSWER_SECONDS = 10.0
_INTERNAL = "__"


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker: its id, its address, the number of partitions that it leads, and whether it is the controller."""

    number: int
    address: str
    leads: int
    is_controller: bool


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """A partition: its first offset and its end, which are None if its leader does not answer; the id of its leader (-1
    if there is none), the ids of the brokers with its replicas, and the ids of the brokers whose replicas are in sync.
    """

    begin: int | None
    end: int | None
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def messages(self) -> int | None:
        """The number of offsets in use; None if unknown. There may be fewer messages, since the end of a Kafka
        transaction also uses an offset, and compaction leaves gaps.
        """
        return None if self.begin is None or self.end is None else self.end - self.begin


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic, and its partitions by number."""

    name: str
    partitions: dict[int, PartitionSummary]

    @property
    def internal(self) -> bool:
        """Whether the topic is one of Kafka's own."""
        return self.name.startswith(_INTERNAL)

    @property
    def messages(self) -> int:
        """The number of offsets in use, in the partitions whose leader answers."""
        return sum(each.messages or 0 for each in self.partitions.values())

    @property
    def silent(self) -> int:
        """The number of partitions whose leader does not answer."""
        return sum(each.messages is None for each in self.partitions.values())

    @property
    def replicas(self) -> int:
        """The largest number of replicas of a partition."""
        return max((len(each.replicas) for each in self.partitions.values()), default=0)

    @property
    def lacking(self) -> int:
        """The number of partitions that have a replica which is not in sync."""
        return sum(len(each.in_sync) < len(each.replicas) for each in self.partitions.values())


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A cluster. ``topics`` is a page of the topics that match the request, ``found`` is the number of all matching
    topics; the other numbers count all topics of the cluster.
    """

    brokers: tuple[Broker, ...]
    topics: tuple[TopicSummary, ...]
    found: int
    all_topics: int
    all_partitions: int
    all_lacking: int


def cluster_summary(
    properties: Mapping[str, Any], *, text: str = "", begin: int = 0, limit: int = 100
) -> ClusterSummary:
    """Describes the cluster, and at most ``limit`` topics whose names contain ``text``, regardless of case. The topics
    are sorted by name, Kafka's own last; the first one has the number ``begin``. ``properties`` are librdkafka's, with
    ``group.id``.

    Raises UserError if Kafka does not answer.
    """
    with answering(properties, where=str(properties.get("bootstrap.servers", ""))):
        known = _metadata(properties)
        names = (name for name in known.topics if text.lower() in name.lower())
        found = sorted(names, key=lambda name: (name.startswith(_INTERNAL), name))
        topics = _topics(properties, {name: known.topics[name] for name in found[begin : begin + limit]})
    partitions = [each for topic in known.topics.values() for each in topic.partitions.values()]
    leads = Counter(each.leader for each in partitions)
    brokers = [
        Broker(each.id, f"{each.host}:{each.port}", leads[each.id], each.id == known.controller_id)
        for _, each in sorted(known.brokers.items())
    ]
    lacking = sum(len(each.isrs) < len(each.replicas) for each in partitions)
    return ClusterSummary(tuple(brokers), tuple(topics), len(found), len(known.topics), len(partitions), lacking)


def topic_summary(properties: Mapping[str, Any], topic: str) -> TopicSummary:
    """Describes one topic. Raises UserError if there is no such topic, or if Kafka does not answer."""
    with answering(properties, where=f"topic {topic}"):
        known = _metadata(properties).topics
        if topic not in known:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        (summary,) = _topics(properties, {topic: known[topic]})
    return summary


def topic_settings(properties: Mapping[str, Any], topic: str) -> dict[str, str]:
    """Returns the settings that were made for the topic itself, without the brokers' defaults. Raises UserError if the
    brokers refuse them or do not answer.
    """
    wanted = ConfigResource(ConfigResource.Type.TOPIC, topic)
    with answering(properties, where=f"settings of topic {topic}"), admin_client(properties) as admin:
        (answer,) = admin.describe_configs([wanted], request_timeout=_ANSWER_SECONDS).values()
        entries = answer.result()
    own = [each for each in entries.values() if each.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value]
    return {
        each.name: "…" if each.is_sensitive else str(each.value) for each in sorted(own, key=lambda each: each.name)
    }


def _metadata(properties: Mapping[str, Any]) -> Any:
    with admin_client(properties) as admin:
        # The list and the counts in ``cluster_summary`` need the metadata of all topics, which this call requests.
        return admin.list_topics(timeout=_ANSWER_SECONDS)


def _topics(properties: Mapping[str, Any], known: Mapping[str, Any]) -> list[TopicSummary]:
    """Requests the offsets of the topics whose metadata are ``known``."""
    places = [(name, number) for name, topic in known.items() for number in topic.partitions]
    ranges = known_ranges(properties, places)
    found = []
    for name, topic in known.items():
        partitions = {}
        for number, each in sorted(topic.partitions.items()):
            begin, end = ranges.get((name, number), (None, None))
            partitions[number] = PartitionSummary(begin, end, each.leader, tuple(each.replicas), tuple(each.isrs))
        found.append(TopicSummary(name, partitions))
    return found


# Lists the consumer groups of a cluster, and how far each group has read. This module joins no group and commits no
# offset.


@dataclass(frozen=True, slots=True)
class ReadPlace:
    """The offset that a group has committed for a partition, and the partition's end, which is None if the partition's
    leader does not answer. ``note`` is the text that was committed with the offset.
    """

    topic: str
    partition: int
    offset: int
    end: int | None
    note: str

    @property
    def lag(self) -> int | None:
        """The number of offsets that the group has not read yet; None if unknown."""
        return None if self.end is None else max(0, self.end - self.offset)


@dataclass(frozen=True, slots=True)
class Member:
    """A process that belongs to a group, the host from which it connects, and its number of partitions."""

    client: str
    host: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group. ``error`` is the reason why its members or offsets are unknown, empty if they are known."""

    name: str
    state: str
    members: tuple[Member, ...] = ()
    places: tuple[ReadPlace, ...] = ()
    error: str = ""

    @property
    def lag(self) -> int | None:
        """The number of offsets that the group has not read yet in all partitions; None if unknown."""
        lags = [each.lag for each in self.places]
        return None if not lags or None in lags else sum(each or 0 for each in lags)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics for which the group has committed offsets."""
        return tuple(sorted({each.topic for each in self.places}))


@dataclass(frozen=True, slots=True)
class Groups:
    """A page of the groups that match a request; ``found`` is the number of all matching groups."""

    groups: tuple[Group, ...]
    found: int


def groups(properties: Mapping[str, Any], *, text: str = "", begin: int = 0, limit: int = 50) -> Groups:
    """Lists at most ``limit`` groups whose names contain ``text``, regardless of case. They are sorted by name; the
    first one has the number ``begin``. ``properties`` are librdkafka's.

    Raises UserError if Kafka does not answer.
    """
    with answering(properties, where=str(properties.get("bootstrap.servers", ""))):
        states = _states(properties)
        found = sorted(name for name in states if text.lower() in name.lower())
        wanted = {name: states[name] for name in found[begin : begin + limit]}
        return Groups(tuple(_described(properties, wanted)), len(found))


def topic_readers(properties: Mapping[str, Any], topic: str, *, limit: int = 200) -> Groups:
    """Lists the groups that have committed offsets for ``topic``, each with only its offsets in this topic. The brokers
    do not know the groups of a topic, so at most ``limit`` groups are asked, in the order of their names; ``found`` is
    the number of all groups. Raises UserError if Kafka does not answer.
    """
    asked = groups(properties, limit=limit)
    here = (
        replace(each, places=tuple(place for place in each.places if place.topic == topic)) for each in asked.groups
    )
    return Groups(tuple(each for each in here if each.places), asked.found)


def group(properties: Mapping[str, Any], name: str) -> Group | None:
    """Describes one group; None if the brokers show no such group. Raises UserError if Kafka does not answer."""
    with answering(properties, where=f"consumer group {name}"):
        states = _states(properties)
        return _described(properties, {name: states[name]})[0] if name in states else None


def _states(properties: Mapping[str, Any]) -> dict[str, str]:
    with admin_client(properties) as admin:
        listing = admin.list_consumer_groups(request_timeout=_ANSWER_SECONDS).result()
    if listing.errors and not listing.valid:
        raise listing.errors[0]
    return {each.group_id: each.state.name.lower().replace("_", " ") for each in listing.valid}


def _described(properties: Mapping[str, Any], states: Mapping[str, str]) -> list[Group]:
    if not states:
        return []
    with admin_client(properties) as admin:
        # All requests are sent before the first answer is awaited.
        members = admin.describe_consumer_groups(list(states), request_timeout=_ANSWER_SECONDS)
        offsets = {name: _asked_offsets(admin, name) for name in states}
        found = [_answered(name, state, members[name], offsets[name]) for name, state in states.items()]
    ends = known_ranges(properties, {(place.topic, place.partition) for each in found for place in each.places})
    return [replace(each, places=_with_ends(each.places, ends)) for each in found]


def _asked_offsets(admin: AdminClient, name: str) -> "Future[Any]":
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)], request_timeout=_ANSWER_SECONDS)
    return next(iter(asked.values()))


def _answered(name: str, state: str, members: "Future[Any]", offsets: "Future[Any]") -> Group:
    try:
        joined = tuple(
            Member(each.client_id, each.host, len(each.assignment.topic_partitions) if each.assignment else 0)
            for each in members.result().members
        )
        places = tuple(
            ReadPlace(each.topic, each.partition, each.offset, None, each.metadata or "")
            for each in offsets.result().topic_partitions
            if each.offset >= 0 and each.error is None
        )
    except KafkaException as error:
        return Group(name, state, error=error.args[0].str())  # an error for one group does not hide the other groups
    return Group(name, state, joined, tuple(sorted(places, key=lambda each: (each.topic, each.partition))))


def _with_ends(places: Sequence[ReadPlace], ends: Mapping[Partition, tuple[int, int]]) -> tuple[ReadPlace, ...]:
    unknown = None, None
    return tuple(replace(each, end=ends.get((each.topic, each.partition), unknown)[1]) for each in places)
