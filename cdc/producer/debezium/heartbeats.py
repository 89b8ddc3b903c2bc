"""Builds the heartbeats of a leader in Debezium's format (setting ``heartbeat.interval.ms``). Pure.

Readers see by them that the producer works while the leader has no changes.
"""

import math

import orjson

from cdc.config.topic_names import debezium_heartbeats
from cdc.producer.debezium.message import DebeziumMessage, Heads, rendered
from cdc.producer.debezium.schemas import field, struct

__all__ = ["Heartbeats"]

_NAME = "io.debezium.connector.common"
_KEY = struct([field("serverName", "string")], optional=False, name=f"{_NAME}.ServerNameKey", version=1)
_VALUE = struct([field("ts_ms", "int64")], optional=False, name=f"{_NAME}.Heartbeat", version=1)


class Heartbeats:
    """One message each ``interval_ms``, none if that is 0. ``prefix`` is the leader's name."""

    def __init__(self, prefix: str, *, interval_ms: int, schemas: bool) -> None:
        self.topics = {debezium_heartbeats(prefix)} if interval_ms else set()
        self._prefix = prefix
        self._seconds = interval_ms / 1000
        self._heads = rendered(_KEY, _VALUE) if schemas else Heads()
        self._newest = -math.inf

    def is_due(self, monotonic: float) -> bool:
        return bool(self.topics) and monotonic - self._newest >= self._seconds

    def message(self, now_ms: int, *, monotonic: float) -> DebeziumMessage:
        """Returns the heartbeat of the moment; the next one is due ``interval_ms`` later."""
        self._newest = monotonic
        key = self._heads.of_key(orjson.dumps({"serverName": self._prefix}))
        value = self._heads.of_value(orjson.dumps({"ts_ms": now_ms}))
        return DebeziumMessage(debezium_heartbeats(self._prefix), key, value, [])
