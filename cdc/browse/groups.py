"""Lists the consumer groups of a cluster, and how far each group has read. This module joins no group and commits no
offset.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from cdc.browse.messages import answering
from cdc.kafka.admin_clients import admin_client
from cdc.kafka.partitions import known_ranges
from cdc.model.partition import Partition

__all__ = ["Group", "Groups", "Member", "ReadPlace", "group", "groups"]

_ANSWER_SECONDS = 10.0


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
