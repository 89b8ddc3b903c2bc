"""Reads the progress of a stream from Kafka: the newest entry of the commit log, requested copies, and followers."""

import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException

from cdc.config.profile import Profile
from cdc.kafka.broker_checks import Brokers
from cdc.kafka.errors import question_error
from cdc.kafka.follower_places import FollowerPlaces
from cdc.kafka.partitions import backwards
from cdc.model.commit_entry import Entry
from cdc.producer.copy.requests import Request, waiting
from cdc.producer.copy.state import Pending
from cdc.service.process import described
from cdc.web.sources.polled import NoAnswer

__all__ = ["StreamAnswer", "StreamSource"]

_PLACES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """The progress of a stream according to Kafka. ``entry`` is the newest entry of the commit log, None before the
    first entry. ``written_at`` is the time at which the producer wrote it; ``producer`` is the process and host that
    wrote it.

    ``places`` maps the address of each known follower to the last sequence that it has applied.
    """

    entry: Entry | None = None
    written_at: float | None = None
    pending: Pending = field(default_factory=Pending)
    requests: tuple[Request, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    producer: str = ""


class StreamSource:
    """Queries the stream in the topics of the profile's ``[kafka]``. Only one thread may use this object."""

    def __init__(self, profile: Profile) -> None:
        self._kafka = profile.kafka
        self._resource = profile.mysql_resource_name
        self._properties: dict[str, Any] = profile.kafka.properties(group_id="cdc-web")
        self._brokers = Brokers(self._properties)
        self._places = FollowerPlaces(self._properties, resource=self._resource, topic=self._kafka.topic)
        self._known: dict[str, int] = {}

    def __call__(self) -> StreamAnswer:
        """Queries the brokers. Raises NoAnswer, UserError or Disconnected if they do not answer."""
        commits = self._kafka.topics().commits
        if not (check := self._brokers.check([])).ok:
            raise NoAnswer(f"Kafka at {self._kafka.bootstrap_servers}: {check.says}")
        if not self._brokers.check([commits]).ok:
            return StreamAnswer()  # the producer has not run yet
        try:
            entry, written_at = self._newest(commits)
            pending = Pending.from_json(entry.copy if entry else None)
            requests = waiting(self._properties, self._kafka.topics().copies, resource=self._resource, pending=pending)
            places = self._followers()
        except KafkaException as error:
            where = f"topic {commits} at {self._kafka.bootstrap_servers}"
            raise question_error(error.args[0], self._properties, where=where) from None
        by = described(entry.instance) if entry and entry.instance else ""
        return StreamAnswer(entry, written_at, pending, tuple(requests), places, by)

    def _newest(self, commits: str) -> tuple[Entry | None, float | None]:
        for message in backwards(self._properties, (commits, 0)):
            if not message.value():
                continue  # a message without content was only written to end a hanging transaction
            kind, written_ms = message.timestamp()
            where = f"topic {commits}, offset {message.offset()}"
            entry = Entry.parse(message.value() or b"", where=where)
            return entry, None if kind == TIMESTAMP_NOT_AVAILABLE else written_ms / 1000
        return None, None

    def _followers(self) -> dict[str, int]:
        give_up = time.monotonic() + _PLACES_SECONDS
        while (found := self._places.look()) is None:
            if time.monotonic() > give_up:
                return self._known
            time.sleep(0.02)
        self._known = found
        return found
