"""Determines which record timestamps a topic accepts. A broker compares timestamps with its own clock, and refuses a
timestamp that differs too much.

A record's timestamp is the leader's commit time. The leader's clock may be ahead (Kafka 4 refuses more than an hour),
and the leader's binlogs may be old.
"""

import logging
import time
from collections.abc import Mapping

from cdc.service.logs import event

__all__ = ["ANY_TIME", "TopicTimes", "any_time_command", "any_time_hint"]

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
                _LOG, "the topic takes no record of the leader's time: each gets the nearest that it takes",
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
