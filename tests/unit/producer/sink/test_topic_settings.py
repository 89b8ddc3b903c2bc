"""What settings of topics mean for what is kept there."""

import pytest

from cdc.config.topic_names import Topics
from cdc.errors import CdcError, Disconnected, UserError
from cdc.producer.sink.topic_admin import TopicMaker, few_brokers, note_risks, require_kept


@pytest.mark.parametrize(
    ("topic", "settings", "kept"),
    [
        ("t", {"cleanup.policy": "delete", "retention.ms": "1"}, True),
        ("t", {"cleanup.policy": "compact"}, False),
        ("records.commits", {"cleanup.policy": "compact"}, False),
        ("t", {"cleanup.policy": "delete,compact"}, False),
        ("t.commits", {"cleanup.policy": "compact", "retention.ms": "1"}, True),
        ("t.commits", {"cleanup.policy": "delete", "retention.ms": "-1"}, True),
        ("t.commits", {"cleanup.policy": "delete", "retention.ms": "604800000"}, False),
        ("t.commits", {"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "9"}, False),
    ],
)
def test_what_would_be_lost(topic: str, settings: dict[str, str], kept: bool) -> None:
    if kept:
        require_kept(topic, settings, is_log=topic == "t.commits", servers="s:9092")
        return
    with pytest.raises(
        UserError, match=f"--bootstrap-server s:9092 --alter --entity-type topics --entity-name {topic} "
    ):
        require_kept(topic, settings, is_log=topic == "t.commits", servers="s:9092")


@pytest.mark.parametrize(
    ("topic", "settings", "said"),
    [
        ("t", {"retention.ms": "-1", "min.insync.replicas": "2"}, ""),
        ("t", {"retention.ms": "3600000"}, "expire"),
        ("t", {"retention.bytes": "100"}, "expire"),
        ("t", {"min.insync.replicas": "1"}, "only one replica"),
        ("t.commits", {"cleanup.policy": "compact", "retention.ms": "3600000"}, ""),
        ("t.commits", {"cleanup.policy": "delete", "retention.ms": "-1"}, "grows"),
    ],
)
def test_what_is_logged(topic: str, settings: dict[str, str], said: str, caplog: pytest.LogCaptureFixture) -> None:
    note_risks(topic, settings, is_log=topic == "t.commits", replicas=3, retention_ms=-1)
    assert said in caplog.text
    assert len(caplog.records) == bool(said)


@pytest.mark.parametrize(("replicas", "asked", "made"), [(1, 0, None), (2, 0, None), (3, 0, "2"), (5, 3, "3")])
def test_min_insync_replicas(replicas: int, asked: int, made: str | None) -> None:
    topics = TopicMaker({}, Topics("t"), replicas=replicas, retention_ms=-1, min_insync=asked)
    assert [topics._settings(name).get("min.insync.replicas") for name in ("t", "t.commits")] == [made, made]


@pytest.mark.parametrize(("own", "made"), [({}, "100000000"), ({"message.max.bytes": 20_000_000}, "20000000")])
def test_topics_take_what_the_producer_sends(own: dict[str, int], made: str) -> None:
    """Whatever the brokers' default is, in the commit log too: with many tables its entries are large."""
    topics = TopicMaker(own, Topics("t"), replicas=1, retention_ms=-1, min_insync=0)
    assert [topics._settings(name)["max.message.bytes"] for name in ("t", "t.commits")] == [made, made]


@pytest.mark.parametrize(("before", "kind"), [(0, UserError), (1, UserError), (3, Disconnected), (5, Disconnected)])
def test_brokers_that_are_away_are_waited_for(before: int, kind: type[CdcError]) -> None:
    """And a cluster that never had so many brokers is refused: tests/cases/refused_by_the_producer/too_few_brokers."""
    error = few_brokers("2 brokers", "t", wanted=3, before=before)
    assert type(error) is kind
    assert "kafka.replicas to less than 3" in str(error)
