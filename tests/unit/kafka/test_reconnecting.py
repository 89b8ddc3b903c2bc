"""The profile's intervals between attempts to connect are taken as they are: librdkafka accepts them with ours."""

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from cdc.kafka import topics
from cdc.kafka.broker_checks import Brokers


@pytest.mark.parametrize(
    "intervals",
    [
        {},
        {"reconnect.backoff.ms": 3000},
        {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20},
        {"reconnect.backoff.ms": 3000, "reconnect.backoff.max.ms": 3000},
    ],
)
def test_librdkafka_accepts_them(intervals: dict[str, Any]) -> None:
    properties = {"bootstrap.servers": "127.0.0.1:1"} | intervals
    AdminClient(topics.reconnecting(properties, topics._RECONNECT))
    found = Brokers(properties)._properties
    AdminClient(found)
    assert {name: found[name] for name in intervals} == intervals
