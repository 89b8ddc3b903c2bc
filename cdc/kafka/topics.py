"""Describes topics as the brokers know them: their partitions, and which timestamps they accept."""

import logging
import time
from collections.abc import Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartitionInfo
from confluent_kafka.admin import AdminClient

from cdc.kafka.errors import NO_TOPIC
from cdc.service.logs import LIBRDKAFKA, event

__all__ = [
    "ANY_TIME",
    "KnownTopic",
    "TopicTimes",
    "admin_client",
    "any_time_command",
    "any_time_hint",
    "known_topics",
    "reconnecting",
    "require_answer",
    "required_topics",
    "topics_shown",
]

_ANSWER_SECONDS = 10.0
# At its start and after a reconnection, a program sends a dozen requests within a second, and should use one client for
# them. A program that sends one request a minute may connect for each request.
_KEPT_SECONDS = 30.0
# By default librdkafka waits up to 10 s before it tries to reach an unreachable broker again.
_RECONNECT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}
_RECONNECT_PROPERTIES = "reconnect.backoff."
_clients: dict[Hashable, tuple[AdminClient, float]] = {}
_lock = Lock()


@contextmanager
def admin_client(properties: Mapping[str, Any]) -> Iterator[AdminClient]:
    """Lends a client to the ``with`` block, for one or more requests. ``properties`` (librdkafka's) contain the
    brokers. A client is lent again later, unless the block raised an error. Raises KafkaException if no broker answers.
    """
    key = tuple(sorted((name, str(value)) for name, value in properties.items()))
    with _lock:
        client, since = _clients.pop(key, (None, 0.0))
    if client is None or time.monotonic() > since + _KEPT_SECONDS:
        client, since = AdminClient(reconnecting(properties, _RECONNECT), logger=LIBRDKAFKA), time.monotonic()
        # If the first request of a new client is list_offsets, one client in fifteen waits 3 s for the answer
        # (librdkafka 2). So a different request is sent first.
        require_answer(client, _ANSWER_SECONDS)
    yield client
    with _lock:
        _clients[key] = client, since


def reconnecting(properties: Mapping[str, Any], defaults: Mapping[str, int]) -> dict[str, Any]:
    """Returns librdkafka's ``properties`` with ``defaults``, our own intervals between attempts to connect, unless the
    profile sets one of the intervals: librdkafka refuses a shortest interval above the longest one, so the two must
    come from the same place.
    """
    is_set = any(name.startswith(_RECONNECT_PROPERTIES) for name in properties)
    return dict(properties) if is_set else {**defaults, **properties}


def require_answer(client: AdminClient, seconds: float) -> None:
    """Raises KafkaException unless a broker answers within ``seconds``. Describing the cluster needs no ACL, and costs
    the same however many topics there are.
    """
    client.describe_cluster(request_timeout=seconds).result()


# Describes topics by name.
#
# A request for the metadata of all topics costs the brokers and the client time for each topic of the cluster, whether
# it is the program's or not. The requests here name their topics; unlike a consumer's or a producer's own request for a
# single topic, they never create it, even on brokers with auto.create.topics.enable.

# The last two errors mean that the user may not describe the topic, and that no topic can have the name.
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
    """Describes the topics ``names``, like ``known_topics``. Raises KafkaException, also if one of the topics is not
    shown.
    """
    found = known_topics(properties, names)
    if len(found) < len(set(names)):
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    return found


def topics_shown(
    admin: AdminClient, names: Collection[str], *, seconds: float = _ANSWER_SECONDS
) -> dict[str, KnownTopic]:
    """Describes those of the topics ``names`` that the brokers show us, like ``known_topics``, but with the client
    ``admin``. ``seconds`` limits the wait for an answer.
    """
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


# Determines which record timestamps a topic accepts. A broker compares timestamps with its own clock, and refuses a
# timestamp that differs too much.
#
# A record's timestamp is the leader's commit time. The leader's clock may be ahead (Kafka 4 refuses more than an hour),
# and the leader's binlogs may be old.

_LOG = logging.getLogger("cdc.producer")
_LONGEST = "9223372036854775807"  # ms; the value of Long.MAX_VALUE means that Kafka has no limit
_AFTER, _BEFORE = "message.timestamp.after.max.ms", "message.timestamp.before.max.ms"
_BOTH = "message.timestamp.difference.max.ms"  # the only setting of this kind before Kafka 3.6; Kafka 4.0 removed it
ANY_TIME = {_AFTER: _LONGEST, _BEFORE: _LONGEST}
"""The settings with which topics are created; brokers before Kafka 3.6 have neither these settings nor the limit."""
_HOUR_MS = 3_600_000
_MOST_SPARE_MS = 600_000  # a margin in ms, since clocks differ and a record may wait before it is sent
_UNKNOWN = float("inf"), float(_HOUR_MS)  # the default limits of Kafka 4, in ms before and after the brokers' time


class TopicTimes:
    """Stores which timestamps topics accept. For a topic with unknown settings, assumes the defaults of Kafka 4.

    ``servers`` are the brokers' addresses.
    """

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._warned: set[str] = set()
        self._limits: dict[str, tuple[float, float]] = {}
        self._unlimited: set[str] = set()

    def learn(self, topic: str, settings: Mapping[str, str]) -> None:
        """Stores the limits in the topic's ``settings``: how many ms before and after the brokers' time a record's
        timestamp may be.
        """
        limits = _limits(settings)
        if limits == (float("inf"), float("inf")):
            self._unlimited.add(topic)
        else:
            self._unlimited.discard(topic)
            self._limits[topic] = limits

    def stamp(self, topic: str, time_ms: int) -> int:
        """Returns the timestamp for a record with the time ``time_ms``. It is that time, or the nearest time that the
        topic certainly accepts.
        """
        if topic in self._unlimited:
            return time_ms
        now_ms = time.time() * 1000
        before, after = self._limits.get(topic, _UNKNOWN)
        earliest, latest = now_ms - before + _spare(before), now_ms + after - _spare(after)
        if earliest <= time_ms <= latest:
            return time_ms
        self._warn(topic)
        return int(min(max(time_ms, earliest), latest))

    def _warn(self, topic: str) -> None:
        if topic not in self._warned:
            self._warned.add(topic)
            event(
                _LOG, "the topic accepts no record with the leader's time: each record gets the nearest accepted time",
                level=logging.WARNING, topic=topic, hint=any_time_command(self._servers, topic),
            )  # fmt: skip


def _spare(limit_ms: float) -> float:
    return min(limit_ms / 2, _MOST_SPARE_MS)


def _limits(settings: Mapping[str, str]) -> tuple[float, float]:
    if settings.get("message.timestamp.type") == "LogAppendTime":
        return float("inf"), float("inf")  # the brokers replace the timestamp with their own time
    return _least(settings, _BEFORE), _least(settings, _AFTER)


def _least(settings: Mapping[str, str], name: str) -> float:
    given = (settings[each] for each in (name, _BOTH) if settings.get(each, _LONGEST) != _LONGEST)
    return min(map(float, given), default=float("inf"))


def any_time_command(servers: str, topic: str) -> str:
    """Returns the shell command that makes ``topic`` accept records of any time."""
    settings = ",".join(f"{name}={value}" for name, value in ANY_TIME.items())
    return (
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {settings}"
    )


def any_time_hint(servers: str, topic: str) -> str:
    """Returns the hint for a timestamp that the brokers have refused, although it was the nearest timestamp that
    ``topic`` should accept.
    """
    return (
        "this machine's clock and the brokers' differ: put them right, or let the topic take any time: "
        f"{any_time_command(servers, topic)}; for all topics at once: --entity-type brokers --entity-default, "
        "with log. before each name"
    )
