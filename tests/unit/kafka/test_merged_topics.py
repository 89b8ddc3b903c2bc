"""Records of many topics come in the leader's order, whichever partition is read first, and few of them wait."""

from collections.abc import Collection, Mapping

from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.topic_names import PER_TABLE, Topics
from cdc.kafka.merged_topics import MergedTopics
from cdc.model.commit_entry import Entry
from cdc.model.position import Partition, Position

NAMES = Topics("leader", layout=PER_TABLE)
MOST_BYTES, VALUE_BYTES = 60, 10


class Log:
    """Partitions of sequences; the read ones give their messages in any order among one another."""

    def __init__(self, held: dict[Partition, list[int]]) -> None:
        self.held = held
        self.next: dict[Partition, int] = {}
        self.ended: set[Partition] = set()

    def assign(self, places: Mapping[Partition, int]) -> None:
        assert not self.next.keys() & places.keys()
        self.next |= places

    def leave(self, partitions: Collection[Partition]) -> None:
        for place in partitions:
            del self.next[place]

    def message(self, place: Partition) -> Message:
        offset = self.next[place]
        if offset == len(self.held[place]):
            self.ended.add(place)
            return Message(topic=place[0], partition=place[1], offset=offset,
                           error=KafkaError(KafkaError._PARTITION_EOF))  # fmt: skip
        self.next[place] += 1
        return Message(topic=place[0], partition=place[1], offset=offset, value=self.value(place, offset))

    def value(self, place: Partition, offset: int) -> bytes:
        return str(self.held[place][offset]).zfill(VALUE_BYTES).encode()


def merged(log: Log) -> MergedTopics[Partition, int]:
    def parse(_place: Partition, _offset: int, value: bytes) -> tuple[int, int]:
        return int(value), int(value)

    return MergedTopics(log, NAMES, parse, next_sequence=0, most_bytes=MOST_BYTES)


@given(st.lists(st.integers(0, 3), max_size=80), st.sets(st.integers(0, 79)), st.data())
def test_any_arrival_gives_the_order_in_bounded_memory(
    lanes: list[int], missing: set[int], data: st.DataObject
) -> None:
    there = [sequence for sequence in range(len(lanes)) if sequence not in missing]
    held = {(f"t{lane}", 0): [sequence for sequence in there if lanes[sequence] == lane] for lane in range(4)}
    log = Log(held)
    topics = merged(log)
    topics.assign(dict.fromkeys(held, 0))
    found: list[int] = []
    while log.ended < held.keys():
        topics.add(log.message(data.draw(st.sampled_from(sorted(log.next.keys() - log.ended)))))
        found += topics.ready()
        # Over the limit by at most one message of each partition.
        assert topics.waiting_bytes <= MOST_BYTES + len(held) * VALUE_BYTES
        topics.balance()
        while topics.is_blocked():
            assert not {topics.next_sequence} - missing
            topics.pass_gap()
            found += topics.ready()
        topics.balance()
    assert [*found, *topics.rest()] == there


def test_a_partition_is_new_until_it_is_read() -> None:
    log = Log({("t", 0): [], ("t", 1): []})
    topics = merged(log)
    topics.assign({("t", 0): 0})
    assert topics.pop_entry() is None
    for sequence in (1, 2):
        entry = Entry(sequence, Position("binlog.000001", 4), "", "", counts={"t/0": 1, "t/1": 1})
        topics.add(Message(topic=NAMES.commits, partition=0, offset=sequence, value=entry.to_json()))
    topics.add(Message(topic=NAMES.commits, partition=0, offset=3, value=b""))  # no entry
    newest = topics.pop_entry()
    assert newest is not None
    assert newest.next_sequence == 2
    assert topics.pop_entry() is None
    assert topics.new(newest) == [("t", 1)]
    topics.assign({("t", 1): 0})
    assert topics.new(newest) == []
    assert log.next == {("t", 0): 0, ("t", 1): 0}


def test_the_binlogs_other_events_are_left_out() -> None:
    log = Log({(NAMES.events, 0): [0, 1]})
    topics = merged(log)
    topics.assign({(NAMES.events, 0): 0})
    topics.add(
        Message(topic=NAMES.events, partition=0, offset=0, value=b'{"uri":"u","bn_file":{},"event":{"Stop":{}}}')
    )
    topics.add(Message(topic=NAMES.events, partition=0, offset=1, value=b"0"))
    assert list(topics.ready()) == [0]
