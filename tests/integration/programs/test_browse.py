"""The topic browser's engine and cdc-tail's filters on a real broker: what counts as a record, and how it is found."""

import fcntl
import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toml
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

import cdc
from cdc.browse import messages
from cdc.browse.cluster import ReadPlace, cluster_summary, group, groups, topic_readers, topic_settings, topic_summary
from cdc.browse.entries import Filter
from cdc.browse.index import Index
from cdc.browse.query import Queries
from cdc.config.profile import Kafka as KafkaSettings
from cdc.config.profile import Profile
from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.errors import PromiseError, UserError
from cdc.kafka.fragments import EPOCH_HEADER, FRAGMENT_HEADER, cut
from cdc.model.commit_entry import Entry, Mark
from cdc.model.position import Position
from cdc.sandbox.server.kafka import Kafka
from cdc.web.record_pages import FollowedIndex
from tests.harness.programs import own_name, refused, run
from tests.harness.readable import until_readable
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

BEGIN_US = 1_764_201_600_000_000  # 2025-11-27


class Leader:
    """The topics of a leader, written by hand: one record a second."""

    def __init__(self, kafka: Kafka, name: str, *, layout: str = SINGLE) -> None:
        self.settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic=name, layout=layout, prefix=name)
        self.names = self.settings.topics()
        self.kafka = kafka
        self.admin = kafka.admin()
        self.counts: dict[str, int] = {}
        # As ours, in order: a batch that a broker refuses, since it has not heard of the topic yet, would come in late.
        self.producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
        self.create(*self.names.first)

    def create(self, *names: str) -> None:
        # Records have old times, and retention would delete them.
        topics = [NewTopic(name, 1, config={"retention.ms": "-1"}) for name in names]
        for created in self.admin.create_topics(topics).values():
            created.result(LIMIT_SECONDS)

    def send(self, sequence: int, table: str, operation: dict[str, object], *, epoch: int = 0, size: int = 0) -> None:
        """Sends a record, in fragments of ``size`` bytes."""
        body = {
            "uri": f"flv://r/shop/{table}", "sequence": sequence, "bn_file": {"fileName": "binlog.000001", "offset": 4},
            "transaction": {"id": f"uuid:{sequence // 2}", "index": sequence % 2, "last": sequence % 2 == 1,
                            "ts_us": BEGIN_US + sequence * 1_000_000},
            "columns": ["id", "n"], "key": ["id"], "operation": operation,
        }  # fmt: skip
        topic = self.names.of_table("shop", table)
        text, headers = json.dumps(body).encode(), {EPOCH_HEADER: str(epoch).encode()} if epoch else {}
        parts = (
            [(headers | {FRAGMENT_HEADER: mark}, part) for mark, part in cut(text, size, sequence=sequence)]
            if size
            else []
        )
        for marked, part in parts or [(headers, text)]:
            self.producer.produce(
                topic, part, body["uri"], headers=marked, timestamp=BEGIN_US // 1000 + sequence * 1000
            )
        self.counts[f"{topic}/0"] = self.counts.get(f"{topic}/0", 0) + 1

    def mark(self, epoch: int) -> None:
        """Begins an epoch, as a producer without Kafka transactions does."""
        self.producer.produce(self.names.topic, None, headers={EPOCH_HEADER: str(epoch).encode()})

    def commit(self, next_sequence: int, *marks: Mark) -> None:
        entry = Entry(next_sequence, Position("binlog.000001", 4), "", "", counts=self.counts, marks=marks)
        self.producer.produce(self.names.commits, entry.to_json(), b"r")
        assert self.producer.flush(LIMIT_SECONDS) == 0


def row(key: int, n: int) -> list[dict[str, int]]:
    return [{"SignedInteger": key}, {"SignedInteger": n}]


def add(key: int, n: int = 0) -> dict[str, object]:
    return {"Add": {"rows": [{"cols": row(key, n)}]}}


def update(before: int, after: int, n: int = 0) -> dict[str, object]:
    return {"Update": {"rows": [{"before_cols": row(before, n), "after_cols": row(after, n + 1)}]}}


def found(queries: Queries, filter_: Filter | None = None) -> list[int]:
    return [entry.sequence for entry in queries.page(filter_ or Filter(), newest_first=False).entries]


def test_an_index_holds_what_programs_would_apply_and_reads_on(tmp_path: Path, kafka: Kafka) -> None:
    leader = Leader(kafka, own_name(tmp_path))
    leader.send(0, "a", add(1))
    leader.mark(1)
    leader.send(1, "a", update(1, 2), epoch=1, size=100)
    leader.mark(2)
    leader.send(2, "b", add(9), epoch=1)  # of a producer that was replaced and did not know yet
    leader.send(2, "a", update(2, 2, 5), epoch=2)
    leader.send(1, "b", add(9), epoch=2)  # a repetition
    leader.commit(3, Mark(1, 1), Mark(2, -1))
    folder = tmp_path / "index"
    index = Index(leader.settings, folder, group=f"browse-{leader.names.topic}")
    queries = Queries(index)
    state = index.refresh()
    assert (state.oldest, state.newest, state.entries, state.behind) == (0, 2, 3, 0)
    assert [entry.table for entry in queries.page(Filter()).entries] == ["a", "a", "a"]
    assert (queries.row_before(2, "2"), queries.row_before(1, "1")) == (queries.entry(1), queries.entry(0))

    large = queries.record(1)
    assert json.loads(large.text)["sequence"] == 1 and large.message.size == 100
    ((number, before, after, cells),) = large.rows()
    assert (number, before, after) == (0, "1", "2")
    assert [tuple(cell) for cell in cells] == [("id", "1", "2"), ("n", "0", "1")]
    with pytest.raises(UserError, match=r"record 1 has \d+ bytes"):
        queries.record(1, most_bytes=100)
    with pytest.raises(UserError, match="the index has no record 7"):
        queries.record(7)

    # Another process goes on where this one ended.
    leader.send(3, "a", {"Delete": {"rows": [{"cols": row(2, 6)}]}}, epoch=2)
    leader.commit(4, Mark(1, 1), Mark(2, -1))
    other = Index(leader.settings, folder, group=f"browse-{leader.names.topic}")
    assert (other.state().newest, other.refresh().newest) == (2, 3)
    assert queries.row_after(2, "2") == queries.entry(3) != None  # noqa: E711
    assert found(queries, Filter(since_us=BEGIN_US + 2_000_000, kinds=frozenset({"Update"}))) == [2]

    # The file is made anew: damaged, gone, or of a topic that was deleted and created again.
    for path in folder.iterdir():
        path.write_bytes(b"damaged" * 1000)
    assert found(queries) == []
    assert index.refresh().entries == 4
    with closing(sqlite3.connect(index.file.path)) as connection, connection:
        connection.execute("DROP TABLE row_key")
    assert queries.row_before(2, "2") is None
    assert index.refresh().entries == 4 and queries.row_before(2, "2") is not None
    index.file.remove()
    assert index.refresh().entries == 4
    leader.admin.delete_topics([leader.names.topic])[leader.names.topic].result(LIMIT_SECONDS)
    until(lambda: leader.names.topic not in leader.admin.list_topics().topics, what="the topic to be gone")
    leader.create(leader.names.topic)
    leader.send(0, "a", update(4, 5))
    leader.commit(1)
    with pytest.raises(UserError, match="record 0 is not in Kafka any more"):
        queries.record(0)
    assert index.refresh().entries == 1
    assert found(queries, Filter(key="5")) == [0]
    nothing_is_left(leader, f"browse-{leader.names.topic}")


def nothing_is_left(leader: Leader, group: str) -> None:
    """Asserts that reading left no consumer group and no new topic."""
    absent = f"{leader.names.topic}-absent"
    with pytest.raises(UserError, match="no such topic"):
        messages.window(leader.settings.properties(group_id=group), absent, 0)
    assert absent not in leader.admin.list_topics().topics
    groups = leader.admin.list_consumer_groups().result().valid
    assert group not in [each.group_id for each in groups]


def test_messages_of_any_topic_are_shown_as_they_are(tmp_path: Path, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    admin = kafka.admin()
    admin.create_topics([NewTopic(name, 2)])[name].result(LIMIT_SECONDS)
    own = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer(own | {"transactional.id": name})
    producer.init_transactions()
    for number, end in (
        (0, producer.commit_transaction),
        (1, producer.abort_transaction),
        (2, producer.commit_transaction),
    ):
        producer.begin_transaction()
        for each in range(3):
            headers = [("h", b"\xff"), ("h", b"2"), ("none", None)]
            producer.produce(name, f"{number}.{each}" * 10, None, 1, headers=headers, timestamp=1234)
        assert producer.flush(LIMIT_SECONDS) == 0
        end()
    until_readable(admin, name)
    properties = own | {"group.id": name}
    summary = topic_summary(properties, name)
    ranges = {number: (each.begin, each.end) for number, each in summary.partitions.items()}
    assert (ranges, summary.messages, summary.internal) == ({0: (0, 0), 1: (0, 12)}, 12, False)
    newest = messages.window(properties, name, 1, count=4, value_bytes=3)
    assert [(each.offset, each.value, each.size) for each in newest.messages] == [
        (2, b"0.2", 30), (8, b"2.0", 30), (9, b"2.1", 30), (10, b"2.2", 30),
    ]  # fmt: skip
    assert newest.messages[0].headers == (("h", b"\xff"), ("h", b"2"), ("none", None))
    assert (newest.messages[0].key, newest.messages[0].timestamp_ms) == (None, 1234)
    older = messages.window(properties, name, 1, count=4, until=newest.before)
    assert ([each.offset for each in older.messages], older.before) == ([0, 1], None)
    newer = messages.window(properties, name, 1, count=2, offset=older.after)
    assert ([each.offset for each in newer.messages], newer.before, newer.after) == ([2, 8], 2, 9)
    late = messages.window(properties, name, 1, since_ms=4_000_000_000_000)  # markers have the time of their writing
    assert (late.messages, late.after) == ((), None)
    assert len(messages.window(properties, name, 1, since_ms=1).messages) == 6
    aborted = messages.window(properties, name, 1, offset=3, count=2, committed=False)
    assert [each.value for each in aborted.messages] == [b"1.0" * 10, b"1.1" * 10]
    with pytest.raises(UserError, match="the topic has no partition 2"):
        messages.window(properties, name, 2)


def test_the_newest_messages_of_several_partitions_and_those_that_contain_a_text(tmp_path: Path, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    admin = kafka.admin()
    # The times are old, and retention would delete the messages.
    admin.create_topics([NewTopic(name, 3, config={"retention.ms": "-1"})])[name].result(LIMIT_SECONDS)
    own = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer(own)
    # The first partition has most, and the newest; the times of the second go back.
    for number in range(900):
        producer.produce(name, f"v{number}" if number % 300 else "a NEEDLE", None, 0, timestamp=10_000 + number)
    for number in range(10):
        producer.produce(
            name, "w", f"k{number}", 1, headers=[("h", b"needle")] * (number == 4), timestamp=9_000 - number
        )
    assert producer.flush(LIMIT_SECONDS) == 0
    properties = own | {"group.id": name}

    def pages(count: int, **search: Any) -> tuple[list[list[tuple[int, int]]], list[bool]]:
        ends, shown, whole = None, [], [False]
        while not whole[-1]:
            part = messages.newest(properties, name, [0, 1, 2], count=count, ends=ends, **search)
            shown.append([(each.partition, each.offset) for each in part.messages])
            ends = part.looked
            whole.append(part.is_whole)
        return shown, whole[1:]

    every, whole = pages(300)
    assert [each for page in every for each in page] == [(0, number) for number in range(899, -1, -1)] + [
        (1, number) for number in range(9, -1, -1)
    ]
    assert ([len(page) for page in every], whole) == ([300, 300, 300, 10], [False, False, False, True])
    hits = [(0, 600), (0, 300), (0, 0), (1, 4)]
    assert pages(100, text="Needle") == ([hits], [True])
    assert pages(1, text="Needle")[0] == [[hit] for hit in hits]
    assert pages(100, text="k7")[0] == [[(1, 7)]]
    late = messages.newest(properties, name, [0, 1, 2], since_ms=10_898)
    assert ([each.offset for each in late.messages], late.is_whole) == ([899, 898], True)
    assert messages.newest(properties, name, [1], text="absent").ranges == {1: (0, 10)}
    with pytest.raises(UserError, match="the topic has no partition 3"):
        messages.newest(properties, name, [3])


def test_a_cluster_its_topics_and_their_readers_are_described(tmp_path: Path, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    own = {"bootstrap.servers": kafka.bootstrap_servers}
    admin = kafka.admin()
    admin.create_topics([NewTopic(name, 2, config={"retention.ms": "-1"})])[name].result(LIMIT_SECONDS)
    producer = Producer(own)
    for number in range(5):
        producer.produce(name, str(number), partition=1)
    assert producer.flush(LIMIT_SECONDS) == 0
    properties = own | {"group.id": f"{name}-never"}

    found = cluster_summary(properties, text=name.upper())
    ((broker,), (topic,)) = found.brokers, found.topics
    assert (broker.address, broker.is_controller) == (kafka.bootstrap_servers, True)
    assert broker.leads == found.all_partitions >= 2 and found.all_lacking == 0
    assert (topic.name, topic.messages, topic.replicas, topic.silent, topic.lacking) == (name, 5, 1, 0, 0)
    assert (topic.partitions[1].leader, topic.partitions[1].in_sync) == (broker.number, (broker.number,))
    assert cluster_summary(properties, text=name, begin=1).topics == ()
    assert topic_settings(properties, name) == {"retention.ms": "-1"}
    with pytest.raises(UserError, match="no such topic"):
        topic_summary(properties, f"{name}-absent")

    # One group of members, and one that only wrote an offset down, as those of cdc-consumer.
    consumer = Consumer(own | {"group.id": f"{name}-joined", "client.id": "a reader"})
    consumer.subscribe([name])
    until(lambda: consumer.poll(0.1) is None and consumer.assignment(), what="the group's partitions")
    offset = ConsumerGroupTopicPartitions(f"{name}-only", [TopicPartition(name, 1, 3, metadata="noted")])
    admin.alter_consumer_group_offsets([offset])[f"{name}-only"].result(LIMIT_SECONDS)
    joined, only = groups(properties, text=f"{name}-").groups
    assert (joined.state, joined.lag, joined.error) == ("stable", None, "")
    assert [(each.client, each.partitions) for each in joined.members] == [("a reader", 2)]
    assert (only.state, only.members, only.lag, only.topics) == ("empty", (), 2, (name,))
    assert only.places == (ReadPlace(name, 1, 3, 5, "noted"),)
    readers = topic_readers(properties, name, limit=10_000)
    assert [(each.name, each.lag) for each in readers.groups] == [(only.name, 2)]
    assert topic_readers(properties, name, limit=0).groups == () and readers.found >= 2
    assert group(properties, only.name) == only and group(properties, f"{name}-never") is None
    consumer.close()


@pytest.mark.parametrize("layout", [SINGLE, PER_TABLE])
def test_cdc_tail_selects_records(tmp_path: Path, kafka: Kafka, layout: str) -> None:
    leader = Leader(kafka, f"{own_name(tmp_path)}_{layout}"[-100:], layout=layout)
    if layout == PER_TABLE:
        leader.create(*(leader.names.of_table("shop", table) for table in "ab"))
    for sequence in range(400):
        table, key = "ab"[sequence % 3 == 0], sequence % 7
        leader.send(sequence, table, update(key, 1_000) if sequence == 351 else add(key))
    leader.commit(400)
    profile = tmp_path / "tail.toml"
    settings = {"bootstrap_servers": kafka.bootstrap_servers, "topic": leader.names.topic, "layout": layout,
                "prefix": leader.names.prefix}  # fmt: skip
    profile.write_text(toml.dumps({"kafka": settings}))

    def shown(*options: str) -> list[int]:
        return [
            json.loads(line)["sequence"] for line in run("cdc-tail", profile, "--json", *options).stdout.splitlines()
        ]

    every = range(400)
    assert shown("--table", "shop.b", "-n", "3") == [393, 396, 399]
    assert shown("--table", "b", "--key", "5", "-B") == [n for n in every if n % 3 == 0 and n % 7 == 5]
    # 351 is in the middle: it has both keys, and records before 100 are found only by reading far back.
    assert shown("--key", "1000") == [351] and 351 in shown("--key", str(351 % 7), "-n", "20")
    assert shown("--kind", "Update,Delete") == [351]
    assert shown("--gtid", "UUID:12", "-n", "5") == [24, 25]
    assert shown("--since", "2025-11-27T00:06:30") == list(range(390, 400))
    assert shown("--since", "2025-11-27T00:06:30", "-n", "2") == [398, 399]
    assert shown("--since", "2025-11-27T00:00:05", "--upto", "2025-11-27 01:00:07+01:00") == [5, 6, 7]
    assert shown("--upto", "2025-11-27T00:00:01", "-n", "9") == [0, 1]
    assert shown("--since", "2030-01-01") == []
    assert "'soon' is no time" in refused("cdc-tail", profile, "--since", "soon")


def test_cdc_tail_shows_all_messages(tmp_path: Path, kafka: Kafka) -> None:
    leader = Leader(kafka, own_name(tmp_path))
    leader.mark(1)
    leader.send(0, "a", add(1), epoch=1, size=300)
    leader.commit(1, Mark(1, 0))
    profile = tmp_path / "tail.toml"
    profile.write_text(
        toml.dumps({"kafka": {"bootstrap_servers": kafka.bootstrap_servers, "topic": leader.names.topic}})
    )
    lines = run("cdc-tail", profile, "--all", "-B").stdout.splitlines()
    fields = [line.split("  ") for line in lines]
    mark, *fragments, last = [each for each in fields if each[0].startswith(f"{leader.names.topic}/0/")]
    assert mark[2:] == ["mark", "key=∅", "cdc_epoch=1", "∅"]
    assert {(each[1], each[2], each[3]) for each in [*fragments, last]} == {
        ("2025-11-27T00:00:00.000Z", "fragment", "key=flv://r/shop/a")
    }
    assert last[4].startswith("cdc_epoch=1 cdc_fragment=0 1 2 ")
    (entry,) = [each for each in fields if each not in (mark, *fragments, last)]
    assert (entry[0], entry[2:5]) == (f"{leader.names.commits}/0/0", ["commit", "key=r", "no headers"])
    assert json.loads(entry[5])["next_sequence"] == 1

    # Each partition's newest ones, in the order of their timestamps: the entry was written now.
    newest = [json.loads(line) for line in run("cdc-tail", profile, "--all", "-n", "1", "--json").stdout.splitlines()]
    assert [(each["topic"], each["key"]) for each in newest] == [
        (leader.names.topic, "flv://r/shop/a"),
        (leader.names.commits, "r"),
    ]
    assert [name for name, _ in newest[0]["headers"]] == ["cdc_epoch", "cdc_fragment"]
    assert newest[0]["timestamp_ms"] == BEGIN_US // 1000
    assert len(run("cdc-tail", profile, "--all", "--since", "2025-11-28").stdout.splitlines()) == len(lines)
    assert run("cdc-tail", profile, "--all", "--since", "2099-01-01").stdout == ""
    assert "only --since goes with it" in run("cdc-tail", profile, "--all", "--key", "1").stderr


@pytest.mark.parametrize("layout", [SINGLE, PER_TABLE])
def test_records_that_are_deleted_while_they_are_read_are_told(tmp_path: Path, kafka: Kafka, layout: str) -> None:
    leader = Leader(kafka, own_name(tmp_path), layout=layout)
    topic = leader.names.of_table("shop", "a")
    if layout == PER_TABLE:
        leader.create(topic)
    for sequence in range(60):
        leader.send(sequence, "a", {"Query": "x" * 50_000})
        leader.producer.flush(LIMIT_SECONDS)  # in a batch of its own
    leader.commit(60)
    # A client fetches in advance; this one only a little.
    small = {"fetch.message.max.bytes": 1_000, "queued.max.messages.kbytes": 100}
    found = cdc.records(Profile(kafka=replace(leader.settings, librdkafka=small)))
    with pytest.raises(PromiseError, match="the record to read next is gone from the topic"):
        for record in found:
            if record.sequence == 0:
                (deleted,) = leader.admin.delete_records([TopicPartition(topic, 0, 60)]).values()
                deleted.result(LIMIT_SECONDS)


def test_what_another_process_has_not_read_yet_is_counted(tmp_path: Path, kafka: Kafka) -> None:
    leader = Leader(kafka, own_name(tmp_path))
    leader.send(0, "a", add(1))
    leader.commit(1)
    index = Index(leader.settings, tmp_path / "index")
    assert index.refresh().behind == 0
    leader.send(1, "a", add(2))
    leader.commit(2)
    with index.file.path.with_suffix(".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        state = index.refresh()
        assert (state.newest, state.behind) == (0, 1)
        followed = FollowedIndex(leader.settings, tmp_path / "index")
        stop = threading.Event()
        followed.start(stop)
        state, is_fresh = followed.look(seconds=1.0)
        assert (state.newest, is_fresh) == (0, False)
    until(lambda: followed.look(seconds=1.0)[1], what="the rest of the records")
    stop.set()
    assert index.refresh().newest == 1
