"""Reads the progress of each follower from Kafka: the follower's consumer writes its progress into the metadata of its
consumer group's offsets.

A committed offset shows how far one partition was read. The metadata of the offset contain the newest applied sequence,
and the topic (``kafka.topic``) to which the sequence belongs. Offset and metadata are for observers only: a consumer
resumes from the checkpoint in the follower.
"""

import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from cdc.service.logs import LIBRDKAFKA

__all__ = ["FollowerPlaces", "group_of", "noted", "place_note", "places_now"]

_GROUPS = "cdc-consumer:"
_LIST_SECONDS = 1.0  # seconds between two requests for new groups
_LOOK_SECONDS = 0.05
# The pause between two requests is this multiple of the time that the last answer took. A group with many partitions
# takes longer to answer.
_SHARE = 4
_ANSWER_SECONDS = 10.0
_ASK_SECONDS = 0.02


def group_of(resource: str, follower: str) -> str:
    """Returns the name of the consumer group of the consumer that applies the records of the leader ``resource`` to the
    follower at the address ``follower``.
    """
    return f"{_GROUPS}{resource}:{follower}"


def place_note(topic: str, sequence: int) -> str:
    """Returns the metadata for a committed offset when all records up to ``sequence`` are applied."""
    return json.dumps({"topic": topic, "sequence": sequence})


def noted(metadata: Iterable[str | None], topic: str) -> int | None:
    """Reads the last sequence up to which all records are applied, from the metadata of a group's offsets. Returns None
    if the metadata contain no sequence of ``topic``.

    The metadata of a partition contain the sequence at the time when the partition's offset was committed; the highest
    sequence counts.
    """
    told = (_sequence(each, topic) for each in metadata)
    return max((sequence for sequence in told if sequence is not None), default=None)


def _sequence(metadata: str | None, topic: str) -> int | None:
    try:
        body = json.loads(metadata or "")
        return int(body["sequence"]) if body["topic"] == topic else None
    except (ValueError, KeyError, TypeError):
        return None  # another program or an older version of the consumer has committed this metadata


def places_now(properties: Mapping[str, Any], *, resource: str, topic: str) -> dict[str, int]:
    """Maps the address of each follower to the newest sequence that it has applied, like ``FollowerPlaces.look``, but
    waits up to ten seconds for the brokers' answer. Raises KafkaException.
    """
    places, give_up = FollowerPlaces(properties, resource=resource, topic=topic), time.monotonic() + _ANSWER_SECONDS
    while (found := places.look()) is None and time.monotonic() < give_up:
        time.sleep(_ASK_SECONDS)
    return found or {}


class FollowerPlaces:
    """Requests the progress of the followers of ``resource`` from the brokers, without ever waiting for the answer.

    ``properties`` are librdkafka's, ``topic`` is ``kafka.topic``. Only one thread may use the object.
    """

    def __init__(self, properties: Mapping[str, Any], *, resource: str, topic: str) -> None:
        self._properties = properties
        self._prefix = group_of(resource, "")
        self._topic = topic
        self._admin: AdminClient | None = None
        self._groups: list[str] = []
        self._listing: Future[Any] | None = None
        self._listed = False
        self._asked: dict[str, Future[Any]] = {}
        self._answered_at = self._asked_at = self._listed_at = self._look_at = float("-inf")

    def look(self) -> dict[str, int] | None:
        """Maps the address of each follower to the newest sequence that it has applied; returns None if there is no new
        answer yet.

        Raises KafkaException if the brokers answer with an error or not at all.
        """
        now = time.monotonic()
        try:
            self._list(now)
            return self._answers(now)
        except KafkaException:
            self._listing, self._asked = None, {}
            self._look_at = now + 1.0
            raise

    def _list(self, now: float) -> None:
        """Requests the list of consumer groups about once a second, and notes the answer when it has arrived."""
        if self._listing is None:
            if now >= max(self._listed_at + _LIST_SECONDS, self._look_at):
                self._listed_at = now
                self._listing = self._client().list_consumer_groups(request_timeout=_ANSWER_SECONDS)
        elif self._listing.done():
            listing, self._listing = self._listing, None
            found = listing.result()
            for error in found.errors:
                raise KafkaException(error)
            self._listed = True
            self._groups = sorted(each.group_id for each in found.valid if each.group_id.startswith(self._prefix))

    def _answers(self, now: float) -> dict[str, int] | None:
        if not self._groups:
            return {} if self._listed else None
        if not self._asked:
            if now >= self._look_at:
                self._asked_at = now
                self._asked = {group: self._ask(group) for group in self._groups}
            return None
        if not all(answer.done() for answer in self._asked.values()):
            return None
        asked, self._asked = self._asked, {}
        self._look_at = self._asked_at + max(_LOOK_SECONDS, _SHARE * (self._answered_at - self._asked_at))
        places: dict[str, int] = {}
        for group, answer in asked.items():
            partitions = answer.result().topic_partitions
            for error in filter(None, (each.error for each in partitions)):
                raise KafkaException(error)
            if (sequence := noted((each.metadata for each in partitions), self._topic)) is not None:
                places[group.removeprefix(self._prefix)] = sequence
        return places

    def _ask(self, group: str) -> "Future[Any]":
        wanted = [ConsumerGroupTopicPartitions(group)]
        answers = self._client().list_consumer_group_offsets(wanted, request_timeout=_ANSWER_SECONDS)
        answer: Future[Any] = next(iter(answers.values()))
        answer.add_done_callback(self._note_answered)
        return answer

    def _note_answered(self, _: "Future[Any]") -> None:
        self._answered_at = time.monotonic()

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(dict(self._properties), logger=LIBRDKAFKA)
        return self._admin
