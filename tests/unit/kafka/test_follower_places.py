"""What the offsets of consumer groups say of followers."""

import time

import pytest
from confluent_kafka import KafkaError, KafkaException

from cdc.kafka import follower_places
from cdc.kafka.follower_places import FollowerPlaces, noted, place_note
from cdc.sandbox.server.process import free_port


@pytest.mark.parametrize("metadata", [None, "", "{}", "[1]", "5", '{"topic": "t"}', '{"topic": "t", "sequence": null}'])
def test_offsets_that_say_nothing_are_of_no_follower(metadata: str | None) -> None:
    assert noted([metadata], "t") is None


def test_the_newest_place_of_all_partitions_counts() -> None:
    assert noted([place_note("t", 7), None, place_note("t", 12), place_note("u", 99)], "t") == 12
    assert noted([place_note("t", 0)], "t") == 0


def test_that_no_broker_answers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_places, "_ANSWER_SECONDS", 0.1)
    places = FollowerPlaces({"bootstrap.servers": f"127.0.0.1:{free_port()}"}, resource="r", topic="t")
    give_up = time.monotonic() + 10
    with pytest.raises(KafkaException) as refused:
        while time.monotonic() < give_up:
            assert places.look() is None
            time.sleep(0.01)
    assert refused.value.args[0].code() == KafkaError._TIMED_OUT
