"""Keeps the newest answers of all sources of the page, and the progress of each stream in the last hour."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdc.config.profile import Profile
from cdc.web.overview.answers import ProfileAnswers, Sample, StreamAnswers, sample
from cdc.web.overview.plots import HOUR
from cdc.web.sources import (
    FOLLOWER,
    LEADER,
    AuditAnswer,
    AuditSource,
    EndpointSource,
    Polled,
    ServerAnswer,
    ServerSource,
    StreamSource,
    Watchers,
    address,
)

__all__ = ["GivenProfile", "Watched", "WatchedStream", "streams_of"]

_SAMPLE_SECONDS = 4.0
_KAFKA_SECONDS, _SERVER_SECONDS, _PROGRAM_SECONDS, _AUDIT_SECONDS = 1.5, 3.0, 2.0, 5.0

GivenProfile = tuple[str, Profile]
"""The file of a profile, as on the command line, and the profile."""


def streams_of(profiles: Sequence[GivenProfile]) -> list[list[GivenProfile]]:
    """Groups the profiles by stream (leader, topic and brokers), in the order of the command line."""
    found: dict[tuple[str, str, str], list[GivenProfile]] = {}
    for given in profiles:
        kafka = given[1].kafka
        found.setdefault((kafka.bootstrap_servers, kafka.topic, given[1].mysql_resource_name), []).append(given)
    return list(found.values())


class _WatchedProfile:
    def __init__(self, given: GivenProfile, *, stream: "WatchedStream", guess: str) -> None:
        self.file, self.profile = given
        self.guess = guess
        self.server: Polled[ServerAnswer] = Polled(
            f"server {self.profile.database}",
            ServerSource(self.profile, leader_uuid=stream.leader_uuid),
            seconds=_SERVER_SECONDS,
        )
        place = address(self.profile)
        self.program = place and Polled(f"program at {place}", EndpointSource(place), seconds=_PROGRAM_SECONDS)

    def answers(self) -> ProfileAnswers:
        program = self.program.answer if self.program else None
        return ProfileAnswers(self.file, self.profile, self.server.answer, program, self.guess)


class WatchedStream:
    """The sources of one stream. The first of its ``profiles`` counts as the leader's profile as long as the servers'
    roles are unknown.
    """

    def __init__(self, profiles: Sequence[GivenProfile]) -> None:
        self.profile = profiles[0][1]
        self.kafka = Polled(f"topic {self.profile.kafka.topic}", StreamSource(self.profile), seconds=_KAFKA_SECONDS)
        self.profiles = [
            _WatchedProfile(given, stream=self, guess=FOLLOWER if number else LEADER)
            for number, given in enumerate(profiles)
        ]
        self._samples: deque[Sample] = deque(maxlen=round(HOUR / _SAMPLE_SECONDS) + 1)

    def leader_uuid(self) -> str:
        """Returns the id of the server whose binlog the producer reads; empty if unknown."""
        answer = self.kafka.answer.value
        return answer.entry.server_uuid if answer and answer.entry else ""

    def polled(self) -> list[Polled[Any]]:
        """Lists all sources."""
        programs = [each.program for each in self.profiles if each.program]
        return [self.kafka, *(each.server for each in self.profiles), *programs]

    def answers(self) -> StreamAnswers:
        """Returns the newest answers of all sources."""
        return StreamAnswers(
            self.profile.mysql_resource_name,
            self.profile.kafka.topic,
            self.profile.kafka.bootstrap_servers,
            self.kafka.answer,
            tuple(each.answers() for each in self.profiles),
            tuple(self._samples),
        )

    def take_sample(self, now: float) -> None:
        """Stores the present progress of the stream."""
        self._samples.append(sample(self.answers(), now=now))


class Watched:
    """All streams in ``profiles``, and the audit's report in the folder ``report``. ``report`` is None if the page
    shows no report.
    """

    def __init__(self, profiles: Sequence[GivenProfile], *, report: Path | None) -> None:
        self.streams = [WatchedStream(each) for each in streams_of(profiles)]
        self.report = report
        self.audit: Polled[AuditAnswer] | None = None
        if report:
            self.audit = Polled(f"report in {report}", AuditSource(report), seconds=_AUDIT_SECONDS)
        self.watchers = Watchers()

    def start(self, stop: threading.Event) -> None:
        """Starts the threads, which end soon after ``stop`` is set."""
        polled: list[Polled[Any]] = [source for stream in self.streams for source in stream.polled()]
        for source in polled + ([self.audit] if self.audit else []):
            source.start(self.watchers, stop)
        threading.Thread(target=self._sample, args=(stop,), name="samples", daemon=True).start()

    def _sample(self, stop: threading.Event) -> None:
        while not stop.wait(_SAMPLE_SECONDS):
            for stream in self.streams:
                stream.take_sample(time.time())
