"""A model of librdkafka's consumer, and of what brokers answer about topics, for simulations alone: which partition
has the next message, the seed decides.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicCollection, TopicPartition

from cdc.consumer.source import reader
from cdc.model.position import Partition
from tests.harness.simulated_broker import Broker

__all__ = ["Reading", "patched"]

_SOME = 4  # messages of one partition that arrive together


class Reading:
    """librdkafka's consumer of committed messages, which reports the ends of partitions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._places: dict[Partition, int] = {}
        self._elections: dict[Partition, int] = {}
        self._at_end: set[Partition] = set()

    def list_topics(self, topic: str, timeout: float = 0) -> None:
        pass

    def unassign(self) -> None:
        self._places.clear()

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            place = each.topic, each.partition
            self._places[place] = each.offset
            self._elections[place] = len(self._broker.truncated.get(place, ()))
            self._at_end.discard(place)

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._places.pop((each.topic, each.partition), None)

    def poll(self, _: float = 0) -> Message | None:
        found = self.consume(1)
        return found[0] if found else None

    def consume(self, count: int, timeout: float = 0) -> list[Message]:
        """The next messages of any one partition, or its end."""
        self._broker.deliver_some()
        order = list(self._places)
        self._broker.chance.shuffle(order)
        for place in order:
            if found := self._next(place, min(count, _SOME)):
                return found
        return []

    def _next(self, place: Partition, count: int) -> list[Message]:
        at, elections = self._places[place], self._broker.truncated.get(place, [])
        end = self._broker.end_offset(place, committed=True)
        # The leader's epoch shows that a log was cut before this offset, even if it has grown since then (KIP-320).
        cut = min(elections[self._elections[place] :], default=at) < at
        self._elections[place] = len(elections)
        if cut or at > self._broker.end_offset(place, committed=False):
            del self._places[place]
            return [_event(place, at, KafkaError._AUTO_OFFSET_RESET)]
        if at >= end:
            is_new = place not in self._at_end
            self._at_end.add(place)
            return [_event(place, at, KafkaError._PARTITION_EOF)] if is_new else []
        self._at_end.discard(place)
        found = self._broker.messages(place, committed=True, begin=at)[:count]
        self._places[place] = (found[-1].offset() or 0) + 1 if found else end
        return found or self._next(place, count)

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        pass

    def close(self) -> None:
        pass


def _event(place: Partition, offset: int, code: int) -> Message:
    return Message(topic=place[0], partition=place[1], offset=offset, error=KafkaError(code, "simulated"))


class _Admin:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def describe_topics(self, names: TopicCollection, request_timeout: float = 0) -> Mapping[str, Any]:
        known = self._broker.known_topics({}, names.topic_names)
        return {name: _Answer(name, topic.partitions) for name, topic in known.items()}


class _Answer:
    def __init__(self, name: str, partitions: Collection[int]) -> None:
        self._found = SimpleNamespace(topic_id="id", partitions=[SimpleNamespace(id=each) for each in partitions])

    def result(self) -> Any:
        return self._found


def patched(broker: Broker, patch: pytest.MonkeyPatch) -> None:
    """Has ``KafkaReader`` read from ``broker``."""

    @contextmanager
    def admin_client(_: Any) -> Iterator[_Admin]:
        yield _Admin(broker)

    patch.setattr(reader, "Consumer", lambda settings, logger: Reading(broker))
    patch.setattr(reader, "admin_client", admin_client)
    patch.setattr(reader, "newest_within", broker.newest_within)
    patch.setattr(reader, "windows", broker.windows)
    patch.setattr(reader, "backwards", broker.backwards)
    patch.setattr(reader, "oldest", broker.oldest)
    patch.setattr(reader, "end_offsets", broker.end_offsets)
    patch.setattr(reader, "begin_offsets", lambda _, places: dict.fromkeys(places, 0))
    patch.setattr(reader, "known_topics", broker.known_topics)
