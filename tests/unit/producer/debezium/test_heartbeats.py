"""Heartbeats in Debezium's format."""

import json

from cdc.producer.debezium.heartbeats import Heartbeats


def test_a_heartbeat_is_due_at_first_and_after_the_interval() -> None:
    beats = Heartbeats("shop", interval_ms=500, schemas=False)
    assert beats.topics == {"__debezium-heartbeat.shop"}
    assert beats.is_due(7.0)
    message = beats.message(1234, monotonic=7.0)
    assert (message.key, message.value) == (b'{"serverName":"shop"}', b'{"ts_ms":1234}')
    assert [beats.is_due(each) for each in (7.0, 7.49, 7.5)] == [False, False, True]


def test_without_an_interval_none_is_due() -> None:
    beats = Heartbeats("shop", interval_ms=0, schemas=False)
    assert (beats.topics, beats.is_due(1e9)) == (set(), False)


def test_schemas_are_around_it_as_around_other_messages() -> None:
    message = Heartbeats("shop", interval_ms=1, schemas=True).message(1234, monotonic=0.0)
    key, value = json.loads(message.key or b""), json.loads(message.value or b"")
    assert (key["payload"], value["payload"]) == ({"serverName": "shop"}, {"ts_ms": 1234})
    assert [each["schema"]["name"].rpartition(".")[2] for each in (key, value)] == ["ServerNameKey", "Heartbeat"]
