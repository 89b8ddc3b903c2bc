"""A start without Kafka transactions begins with a mark that commits with an entry; others begin without one."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.config.topic_names import Topics
from cdc.errors import Disconnected
from cdc.kafka.fragments import EPOCH_HEADER
from cdc.model.commit_entry import Entry, Mark
from cdc.model.position import Position
from cdc.producer.sink import plain_writes
from cdc.producer.sink.plain_writes import recovered
from cdc.producer.sink.recovery import Recovered

ENTRY = Entry(5, Position("binlog.000001", 4), "", "u", instance="former")
PROPERTIES = {"bootstrap.servers": "none"}


class Transactions:
    """Kafka transactions: ``done`` names what was done, ``sent`` are the messages without their times."""

    producer = object()

    def __init__(self) -> None:
        self.done: list[str] = []
        self.sent: list[tuple[str, bytes, bytes | None, list[tuple[str, str]], int]] = []

    def forget_lost_brokers(self) -> None:
        self.done.append("forget")

    def begin(self) -> None:
        self.done.append("begin")

    def produce(self, topic: str, key: bytes, value: bytes | None, now_ms: int, headers: Any, partition: int) -> None:
        assert 0 <= time.time() - now_ms / 1000 < 3600
        self.done.append("produce")
        self.sent.append((topic, key, value, headers, partition))

    def commit(self, size: int) -> None:
        assert not size  # so small a commit shows nothing about the network
        self.done.append("commit")


def start(
    patch: pytest.MonkeyPatch, *found: Recovered, transactional: bool = False, committed: Entry | None = ENTRY,
    open_in: tuple[tuple[str, int], ...] = (),
) -> tuple[Recovered, Transactions]:  # fmt: skip
    """A start by a process ``me`` that recovers these, one after the other; and what it did."""
    transactions, answers = Transactions(), list(found)

    def recover(properties: object, producer: object, _: object, *, resource: str) -> Recovered:
        assert (properties, producer, resource) == (PROPERTIES, Transactions.producer, "r")
        transactions.done.append("recover")
        return answers.pop(0)

    patch.setattr(plain_writes, "recover", recover)
    topics = SimpleNamespace(
        names=Topics("t"), properties=PROPERTIES, transactional=transactional,
        newest_entry={"r": committed}.__getitem__, unended=lambda places: [each for each in places if each in open_in],
    )  # fmt: skip
    own: Any = transactions
    return recovered(own, topics, resource="r", instance="me"), transactions  # type: ignore[arg-type]


def test_the_mark_commits_with_an_entry_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What arrives before it is read once more, behind it."""
    before = Recovered(ENTRY, marks=(Mark(3, 10), Mark(4, 30)), rewritten=2)
    behind = Recovered(Entry(7, ENTRY.position, "", "u", instance="me"), shown=ENTRY.position)
    found, transactions = start(monkeypatch, before, behind)
    assert transactions.done == ["recover", "forget", "begin", "produce", "produce", "commit", "recover"]
    (topic, *mark), (commits, key, value, *rest) = transactions.sent
    assert (topic, mark) == ("t", [b"r", None, [(EPOCH_HEADER, "5")], 0])
    entry = Entry.parse(value or b"", where="here")
    assert (commits, key, rest) == ("t.commits", b"r", [[], 0])
    assert (entry.next_sequence, entry.instance) == (5, "me")
    assert entry.marks == (Mark(3, 10), Mark(4, 30), Mark(5, -1))
    assert entry.fragmented  # readers look for epochs where they look for fragments
    assert found.entry is not None
    assert (found.entry.next_sequence, found.entry.instance) == (7, "former")  # the one that wrote the records
    assert (found.rewritten, found.shown) == (2, ENTRY.position)


def test_the_first_mark_has_number_1(monkeypatch: pytest.MonkeyPatch) -> None:
    _, transactions = start(monkeypatch, Recovered(ENTRY), Recovered(ENTRY))
    assert transactions.sent[0][3] == [(EPOCH_HEADER, "1")]


def test_kafka_transactions_need_a_mark_only_behind_other_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    found, transactions = start(monkeypatch, Recovered(ENTRY), transactional=True)
    assert (found.entry, transactions.done) == (ENTRY, ["recover"])
    marked = Recovered(ENTRY, marks=(Mark(1, 2),))
    assert start(monkeypatch, marked, marked, transactional=True)[1].sent


def test_no_mark_comes_before_the_first_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic would look like another client's."""
    found, transactions = start(monkeypatch, Recovered(None), committed=None)
    assert (found.entry, transactions.sent) == (None, [])


@pytest.mark.parametrize("place", [("t", 0), ("t.commits", 0)])
def test_a_transaction_that_stays_open_is_reported(monkeypatch: pytest.MonkeyPatch, place: tuple[str, int]) -> None:
    with pytest.raises(Disconnected, match="a transaction of another client is open"):
        start(monkeypatch, Recovered(ENTRY), open_in=(place,))
