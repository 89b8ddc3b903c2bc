"""Answers about a stream, for tests of its page: a healthy one by default."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from cdc.config.profile import Profile
from cdc.consumer.state.status import Applied, Status
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.web.overview.answers import ProfileAnswers, Sample, StreamAnswers
from cdc.web.sources import FOLLOWER, LEADER, Answer, EndpointAnswer, ServerAnswer, StreamAnswer

__all__ = ["FOLLOWER_NAME", "NOW", "follower", "leader", "program", "status", "stream"]

NOW = 1_800_000_000.0
FOLLOWER_NAME = "10.0.0.2:3306"
END = Position("binlog.000002", 900)
PROFILE = Profile()


def at(host: str) -> Profile:
    return replace(PROFILE, database=replace(PROFILE.database, ip_or_host=host))


def program(
    *, error: str = "", failing: dict[str, str] | None = None, table: str = "", **figures: float
) -> Answer[Any]:
    """The answer of a program; ``figures`` are named without their prefix ``cdc_``."""
    values = {f"cdc_{name}": value for name, value in figures.items()}
    return Answer(EndpointAnswer(values, failing or {}, table), NOW, error)


def leader(*, end: Position = END, error: str = "", given: Answer[Any] | None = None) -> ProfileAnswers:
    logs = (("binlog.000001", 1000), ("binlog.000002", end.offset))
    answer = ServerAnswer("8.4.0", "uuid-1", end, logs, LEADER)
    return ProfileAnswers("p.toml", at("10.0.0.1"), Answer(answer, NOW, error), given, LEADER)


def status(sequence: int = 99, **changed: Any) -> Status:
    applied = Applied(sequence, "topic", "id", {}, "binlog.000002:900", "uuid-1:7", 1_799_999_000_000_000,
                      datetime(2027, 1, 15, 8))  # fmt: skip
    return replace(Status(7, applied, states={"done": 3}), **changed)


def follower(
    found: Status | None = None, *, host: str = "10.0.0.2", error: str = "", given: Answer[Any] | None = None
) -> ProfileAnswers:
    answer = ServerAnswer("8.4.0", "uuid-2", None, (), FOLLOWER, found or status())
    return ProfileAnswers("c.toml", at(host), Answer(answer, NOW, error), given, FOLLOWER)


def entry(**changed: Any) -> Entry:
    made = Entry(100, END, "uuid-1:1-7", "uuid-1", counts={"topic/0": 100}, instance="host 7 " + "0" * 36)
    return replace(made, **changed)


def stream(
    *profiles: ProfileAnswers, error: str = "", samples: tuple[Sample, ...] = (), **changed: Any
) -> StreamAnswers:
    """A stream of 100 records, all of which are on the follower unless ``profiles`` say otherwise."""
    answer = replace(StreamAnswer(entry(), NOW - 2, producer="process 7 on host host"), **changed)
    return StreamAnswers(
        "srv", "topic", "10.0.0.3:9092", Answer(answer, NOW - 1, error), profiles or (leader(), follower()), samples
    )
