"""What waits for what, and why, in sentences."""

import re
from dataclasses import replace
from datetime import datetime

import pytest

from cdc.consumer.state.status import Entry
from cdc.model.position import Position
from cdc.producer.copy.requests import Request
from cdc.web.overview.answers import Sample, StreamAnswers
from cdc.web.overview.waits import BAD, GOOD, INFO, WAITS, sentences
from cdc.web.sources import Answer
from tests.unit.web.overview.streams import FOLLOWER_NAME, NOW, entry, follower, leader, program, status, stream

PAUSED = status(79, paused=True)
OPEN = Entry(98, "intent", "ALTER TABLE t ADD c INT", "", datetime(2027, 1, 15, 8))
SAMPLES = (Sample(NOW - 8, 60, {FOLLOWER_NAME: 49}), Sample(NOW, 100, {FOLLOWER_NAME: 79}))


def said(given: StreamAnswers) -> list[tuple[str, str]]:
    return [(each.level, each.text) for each in sentences(given, now=NOW)]


def test_nothing_waits() -> None:
    assert said(stream()) == [(GOOD, f"Nothing waits: each record in Kafka is on follower {FOLLOWER_NAME}.")]


@pytest.mark.parametrize(
    ("given", "level", "part"),
    [
        (stream(error="refused"), BAD, "may wait for it, too: refused. What is known of it is 1.0 s old."),
        (stream(entry=None, written_at=None), WAITS, "No producer has written to the topic topic yet"),
        (stream(leader(error="down"), follower()), BAD, "The leader does not answer the page: down."),
        (stream(leader(end=Position("binlog.000002", 1400)), follower()), INFO, "500 bytes of binlog"),
        (
            stream(written_at=NOW - 181),
            BAD,
            "for 3 min 1 s, though it would at least every 60 s: the last one (process 7 on host host) does not run",
        ),
        (stream(leader(given=program(error="refused")), follower()), BAD, "The producer does not answer: refused."),
        (
            stream(leader(given=program(failing={"leader": "gone"}, producer_waiting=1)), follower()),
            WAITS,
            "The producer reports that the check of leader fails: gone.",
        ),
        (
            stream(leader(given=program(failing={"leader": "gone"})), follower()),
            BAD,
            "The producer reports that the check of leader fails: gone.",
        ),
        (
            stream(
                leader(given=program(failing={"stream": "away: X; hint: is it?", "kafka": "no answer: X"})), follower()
            ),
            BAD,
            "The producer reports that the check of stream fails: away: X; hint: is it?",
        ),
        (
            stream(leader(given=program(table="a.b", producer_copying_waits=1)), follower()),
            WAITS,
            "The copy of a.b waits for a follower",
        ),
        (stream(leader(given=program(producer_paused=1)), follower()), WAITS, "cdc-producer --resume ends the pause."),
        (stream(requests=(Request([("a", "b")], 1),)), WAITS, "A request to copy of a.b waits"),
        (stream(leader(), follower(error="down")), BAD, f"Follower {FOLLOWER_NAME} does not answer the page: down."),
        (stream(leader(), follower(status(79, consumer=None))), BAD, f"on follower {FOLLOWER_NAME}: 20 records wait."),
        (stream(leader(), follower(status(consumer=None))), WAITS, f"on follower {FOLLOWER_NAME}, and none waits."),
        (stream(leader(), follower(status(98, consumer=None))), BAD, f"on follower {FOLLOWER_NAME}: 1 record waits."),
        (
            stream(leader(), follower(PAUSED)),
            WAITS,
            "is paused, and 20 records wait; SIGUSR2 or cdc-consumer --resume ends the pause.",
        ),
        (
            stream(leader(), follower(status(79), given=program(consumer_held_seconds=70))),
            WAITS,
            "holds the next transaction back for 1 min 10 s (consumer.delay_seconds)",
        ),
        (
            stream(leader(), follower(status(79), given=program(consumer_behind_seconds=9))),
            WAITS,
            "has 20 records to apply, the oldest at most 9.0 s old.",
        ),
        (stream(leader(), follower(status(79)), samples=SAMPLES), WAITS, ", about 5.3 s at 4 records a second."),
        (
            stream(leader(), follower(status(open=(OPEN,)))),
            WAITS,
            "has run a statement since 2027-01-15 08:00:00 UTC, or refused it: ALTER TABLE t ADD c INT",
        ),
        (stream(leader(), follower(status(skipped=(OPEN,)))), INFO, "does without 1 record that"),
        (stream(leader()), INFO, "No profile of a follower was given"),
    ],
)
def test_a_reason(given: StreamAnswers, level: str, part: str) -> None:
    found = said(given)
    assert [each for each in found if each[0] == level and part in each[1]], found
    if level in (BAD, WAITS):
        assert GOOD not in [each for each, _ in found]


def test_the_worst_comes_first() -> None:
    worse = stream(
        leader(end=Position("binlog.000002", 1400)), follower(error="down"), requests=(Request([("a", "b")], 1),)
    )
    assert [level for level, _ in said(worse)] == [BAD, WAITS, INFO]


def test_a_silence_is_not_held_against_the_producer_while_kafka_is_away() -> None:
    assert "No producer" not in str(said(stream(written_at=NOW - 900, error="refused")))


def test_a_reason_of_two_checks_is_said_once() -> None:
    failing = {"stream": "away: X; hint: is it?", "kafka": "no answer: X", "leader": "gone", "disk": "gone"}
    found = [text for _, text in said(stream(leader(given=program(failing=failing)), follower())) if "check of" in text]
    assert [re.findall(r"check of (\w+)", text)[0] for text in found] == ["stream", "leader", "disk"]


def test_good_news_needs_every_follower() -> None:
    """A second follower that is behind, or has not answered yet, makes it untrue."""
    behind = follower(status(98), host="10.0.0.9")
    assert GOOD not in [level for level, _ in said(stream(leader(), follower(), behind))]
    unknown = replace(follower(host="10.0.0.9"), server=Answer())
    assert GOOD not in [level for level, _ in said(stream(leader(), follower(), unknown))]


def test_many_tables_make_one_sentence() -> None:
    many = [("db", f"t{number}") for number in range(10_000)]
    found = said(stream(requests=(Request(many, 1),), entry=entry()))
    [text] = [text for _, text in found if "request" in text]
    assert "db.t4 and 9,995 more" in text and "t5" not in text
