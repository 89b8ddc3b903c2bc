"""A producer that stands by learns of each election, also of one that was lost and won again before it looked."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from cdc.config.profile import load
from cdc.errors import Disconnected, ServerGone
from cdc.producer import standby
from cdc.producer.standby import Election, Standby
from cdc.service.retry import Retry
from tests.harness.wait import until

PARTITION = [TopicPartition("t.commits", 0)]
PROFILE = """
mysql_resource_name = "leader"
[database]
ip_or_host = "leader"
user = "u"
password = "p"
[kafka]
bootstrap_servers = "broker:9092"
topic = "t"
[producer]
standby = true
"""


class Group:
    """A member of a consumer group, which gains and loses its partition when the test says so."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], object]] = []
        self.broken = False

    def subscribe(self, topics: list[str], **called: Any) -> None:
        self._called = called

    def poll(self, seconds: float) -> None:
        if self.broken:
            raise KafkaException(KafkaError(KafkaError._FATAL))
        while self._waiting:
            self._waiting.pop(0)()
        threading.Event().wait(0.005)

    def elect(self) -> None:
        self._waiting.append(lambda: self._called["on_assign"](self, PARTITION))

    def depose(self) -> None:
        self._waiting.append(lambda: self._called["on_lost"](self, PARTITION))

    def settle(self) -> None:
        until(lambda: not self._waiting, what="the callbacks")

    def incremental_assign(self, partitions: object) -> None:
        pass

    pause, close = incremental_assign, lambda self: None


class Candidate:
    """A producer's part in the election, in a ``group`` that the test governs. It gives up after its fourth failure."""

    def __init__(self, group: Group, folder: Path) -> None:
        path = folder / "profile.toml"
        path.write_text(PROFILE)
        topics = SimpleNamespace(names=SimpleNamespace(topic="t", commits="t.commits"), properties={}, require=int)
        self.stop = threading.Event()
        self.retry = Retry(seconds=0, log=lambda *_, **__: None, stop=self.stop)
        metrics = cast(Any, SimpleNamespace(standby=False))
        self.standby = Standby(load(path), cast(Any, topics), metrics, self.retry, lambda *_, **__: None)
        group.elect()
        assert self.standby.waited(self.stop)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    made = Group()
    monkeypatch.setattr(Election, "join", lambda _, topic, group: Election(cast(Any, made), topic, group))
    monkeypatch.setattr(standby, "_NOTICE_SECONDS", 0.3)
    return made


@pytest.fixture
def candidate(group: Group, tmp_path: Path) -> Iterator[Candidate]:
    made = Candidate(group, tmp_path)
    yield made
    made.standby.close()


def test_the_elected_one_has_lost_nothing(candidate: Candidate) -> None:
    assert not candidate.standby.waited(candidate.stop)
    assert not candidate.standby.has_lost(candidate.stop)


def test_another_one_is_elected_while_this_one_looks(candidate: Candidate, group: Group) -> None:
    threading.Timer(0.1, group.depose).start()
    assert candidate.standby.has_lost(candidate.stop)


def test_an_election_that_was_lost_and_won_again_counts_as_lost(candidate: Candidate, group: Group) -> None:
    candidate.retry.connected()
    group.depose()
    group.elect()
    group.settle()
    assert candidate.standby.has_lost(candidate.stop)
    assert candidate.standby.waited(candidate.stop)
    assert not candidate.retry.succeeded, "what the other one wrote meanwhile is no rival's"
    assert not candidate.standby.waited(candidate.stop)


def test_a_failed_client_is_replaced(candidate: Candidate, group: Group) -> None:
    group.broken = True
    assert candidate.standby.has_lost(candidate.stop)
    with pytest.raises(Disconnected):
        candidate.standby.waited(candidate.stop)
    group.broken = False
    group.elect()
    assert candidate.standby.waited(candidate.stop)


def test_what_failed_before_an_election_does_not_count_after_it(candidate: Candidate, group: Group) -> None:
    error = Disconnected("away", code="CDC-KAFKA-GONE")
    for _ in range(3):
        candidate.retry.wait(error)
    group.depose()
    group.elect()
    group.settle()
    assert candidate.standby.waited(candidate.stop)
    for _ in range(3):
        candidate.retry.wait(error)
    with pytest.raises(ServerGone):
        candidate.retry.wait(error)


def test_without_standby_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(PROFILE.replace("standby = true", "standby = false"))
    alone = Standby(load(path), *cast(Any, (None, None, None, None)))
    assert not alone.waited(threading.Event())
    assert not alone.has_lost(threading.Event())
