"""Builds the first page of a stream: servers, the programs between them, copies, and followers."""

from collections.abc import Sequence
from dataclasses import dataclass

from cdc.consumer.state.status import Status
from cdc.web.overview.answers import (
    ProfileAnswers,
    StreamAnswers,
    applied_sequence,
    applying_rate,
    bytes_between,
    seconds_late,
    writing_rate,
)
from cdc.web.overview.figures import count, duration, of_rows, rate, size
from cdc.web.overview.plots import Plot, plots
from cdc.web.overview.waits import Sentence, sentences

__all__ = ["Branch", "Copy", "Fact", "Follower", "Stage", "StreamPage", "stream_page"]

OK, WAITS, BAD, UNKNOWN = "ok", "waits", "bad", "unknown"
_COPIES_SHOWN = 20
_PARKED = 3  # tables that the stage of a follower names


@dataclass(frozen=True, slots=True)
class Fact:
    """A labeled figure. ``long`` is true if its text may be cut off when there is too little space."""

    label: str
    text: str
    long: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A server or program on the path of the records from the leader to a follower. ``state`` is OK, WAITS, BAD or
    UNKNOWN; ``says`` is a text that describes the state.

    ``flows`` is true if records pass this server or program at the moment.
    """

    title: str
    name: str
    state: str
    says: str
    facts: tuple[Fact, ...]
    flows: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """A consumer and its follower: the end of the records' path from the leader to this follower."""

    consumer: Stage
    follower: Stage


@dataclass(frozen=True, slots=True)
class Copy:
    """A table that is being copied, or waits to be copied; ``share`` is the copied percentage, None if unknown."""

    table: str
    says: str
    share: float | None


@dataclass(frozen=True, slots=True)
class Follower:
    """A follower's ``status``, and the number of its conflicts."""

    name: str
    status: Status
    conflicts: int


@dataclass(frozen=True, slots=True)
class StreamPage:
    """The first page of a stream. ``more_copies`` is the number of tables that wait to be copied and are not in
    ``copies``.
    """

    number: int
    resource: str
    topic: str
    brokers: str
    leader: Stage
    producer: Stage
    kafka: Stage
    branches: tuple[Branch, ...]
    sentences: tuple[Sentence, ...]
    copies: tuple[Copy, ...]
    more_copies: int
    followers: tuple[Follower, ...]
    plots: tuple[Plot, ...]


def stream_page(stream: StreamAnswers, *, number: int, now: float) -> StreamPage:
    """Builds the page of a stream. Links to the stream's other pages contain its ``number``."""
    copies = _copies(stream)
    return StreamPage(
        number=number,
        resource=stream.resource,
        topic=stream.topic,
        brokers=stream.brokers,
        leader=_leader(stream),
        producer=_producer(stream, now),
        kafka=_kafka(stream, now),
        branches=tuple(_branches(stream)),
        sentences=tuple(sentences(stream, now=now)),
        copies=tuple(copies[:_COPIES_SHOWN]),
        more_copies=max(0, len(copies) - _COPIES_SHOWN),
        followers=tuple(_followers(stream)),
        plots=tuple(plots(stream.samples, now=now, followers=[each.name for each in stream.followers])),
    )


def _leader(stream: StreamAnswers) -> Stage:
    leader, entry = stream.leader, stream.stream.entry
    if leader is None:
        version = (entry and entry.server_version) or "–"
        return Stage("Leader", stream.resource, UNKNOWN, "no profile given", (Fact("Version", version),))
    answer = leader.server.value
    facts = (
        Fact("Ends at", str(answer.end) if answer and answer.end else "–", long=True),
        Fact("Not in Kafka yet", size(_unread(stream))),
        Fact("Version", answer.version if answer else "–", long=True),
    )
    state, says = _server_state(leader)
    return Stage("Leader", leader.name, state, says, facts)


def _server_state(profile: ProfileAnswers) -> tuple[str, str]:
    if profile.server.error:
        return BAD, "no answer"
    return (OK, "answers") if profile.server.value else (UNKNOWN, "asking")


def _producer(stream: StreamAnswers, now: float) -> Stage:
    leader, answer = stream.leader, stream.stream
    speed = writing_rate(stream.samples)
    silence = None if answer.written_at is None else max(0.0, now - answer.written_at)
    facts = (
        Fact("Rate", rate(speed)),
        Fact("Behind", duration(_behind(stream))),
        Fact("Wrote", "–" if silence is None else f"{duration(round(silence))} ago"),
    )
    alive = (leader or stream.profiles[0]).profile.producer.alive_seconds
    state, says = (UNKNOWN, "not heard of") if silence is None else (OK, "runs")
    if stream.kafka.error:
        state, says = UNKNOWN, "not known"
    elif silence is not None and silence > 3 * alive:
        state, says = BAD, "silent"
    elif _figures(leader).get("cdc_producer_paused"):
        state, says = WAITS, "paused"
    state, says = _program_state(leader, (state, says), waiting="cdc_producer_waiting")
    return Stage("cdc-producer", answer.producer, state, says, facts, flows=bool(speed))


def _behind(stream: StreamAnswers) -> float | None:
    """Returns an upper bound for the time, in seconds, that a change has waited on the leader; None if unknown."""
    known = _figures(stream.leader).get("cdc_producer_behind_seconds")
    return 0.0 if known is None and _unread(stream) == 0 else known


def _unread(stream: StreamAnswers) -> int | None:
    """Returns the number of bytes in the leader's binlog after the newest commit to Kafka; None if unknown."""
    leader, entry = stream.leader, stream.stream.entry
    answer = leader.server.value if leader else None
    return bytes_between(entry.position, answer.end, answer.logs) if entry and answer and answer.end else None


def _program_state(profile: ProfileAnswers | None, otherwise: tuple[str, str], *, waiting: str) -> tuple[str, str]:
    """Returns the state according to the program's own endpoint; ``otherwise`` if the endpoint shows no problem.
    ``waiting`` is the program's metric that is 1 while it waits for a server.
    """
    if profile is None or profile.program is None:
        return otherwise
    if profile.program.error:
        return BAD, "no answer"
    if profile.program.value is None or not profile.program.value.failing:
        return otherwise
    return (WAITS, "waits") if profile.program.value.figures.get(waiting) else (BAD, "failing")


def _figures(profile: ProfileAnswers | None) -> dict[str, float]:
    if profile is None or profile.program is None or profile.program.error or profile.program.value is None:
        return {}
    return profile.program.value.figures


def _kafka(stream: StreamAnswers, now: float) -> Stage:
    entry = stream.stream.entry
    state, says = (OK, "answers") if stream.kafka.value else (UNKNOWN, "asking")
    if stream.kafka.error:
        state, says = BAD, "no answer"
    partitions = len(entry.counts) if entry else None
    facts = (
        Fact("Records", count(entry.next_sequence if entry else None)),
        Fact("Position", str(entry.position) if entry else "–", long=True),
        Fact("Partitions", count(partitions)),
    )
    return Stage("Kafka", stream.topic, state, says, facts)


def _branches(stream: StreamAnswers) -> list[Branch]:
    found = [Branch(_consumer(stream, each), _follower(stream, each)) for each in stream.followers]
    given = {each.name for each in stream.followers}
    for name in sorted(set(stream.stream.places) - given):
        found.append(_without_profile(stream, name))
    return found


def _left(stream: StreamAnswers, name: str) -> int | None:
    entry, sequence = stream.stream.entry, applied_sequence(stream, name)
    return None if entry is None or sequence is None else max(0, entry.next_sequence - 1 - sequence)


def _consumer(stream: StreamAnswers, follower: ProfileAnswers) -> Stage:
    status = follower.server.value.status if follower.server.value else None
    speed = applying_rate(stream.samples, follower.name)
    facts = (
        Fact("Rate", rate(speed)),
        Fact("Behind", duration(seconds_late(stream, follower))),
        Fact("Waiting", count(_left(stream, follower.name))),
    )
    state, says = UNKNOWN, "not known"
    if status and not follower.server.error:
        state, says = (BAD, "does not run") if status.consumer is None else (OK, "runs")
        if status.paused:
            state, says = WAITS, "paused"
    state, says = _program_state(follower, (state, says), waiting="cdc_consumer_waiting")
    return Stage("cdc-consumer", "", state, says, facts, flows=bool(speed))


def _follower(stream: StreamAnswers, follower: ProfileAnswers) -> Stage:
    answer = follower.server.value
    applied = answer.status.applied if answer and answer.status else None
    facts = [
        Fact("Applied", count(applied_sequence(stream, follower.name))),
        Fact("Position", applied.position or "–" if applied else "–", long=True),
        Fact("Version", answer.version if answer else "–", long=True),
    ]
    state, says = _server_state(follower)
    if state == OK and answer and answer.status and answer.status.parked:
        state, says = WAITS, "tables parked"
        facts.append(Fact("Parked", ", ".join(_parked(answer.status)), long=True))
    return Stage("Follower", follower.name, state, says, tuple(facts))


def _parked(status: Status) -> list[str]:
    """Names the parked tables, a few of them with the sequence from which on their changes are left out."""
    shown = [f"{each.database}.{each.table} since {each.sequence:,}" for each in status.parked[:_PARKED]]
    return [*shown, *([f"{len(status.parked) - _PARKED:,} more"] if len(status.parked) > _PARKED else [])]


def _without_profile(stream: StreamAnswers, name: str) -> Branch:
    """Builds the branch of a follower that is known only from its consumer group in Kafka."""
    speed = applying_rate(stream.samples, name)
    facts = (Fact("Rate", rate(speed)), Fact("Behind", "–"), Fact("Waiting", count(_left(stream, name))))
    consumer = Stage("cdc-consumer", "", UNKNOWN, "not known", facts, flows=bool(speed))
    applied = Fact("Applied", count(stream.stream.places[name]))
    return Branch(consumer, Stage("Follower", name, UNKNOWN, "no profile given", (applied,)))


def _copies(stream: StreamAnswers) -> list[Copy]:
    pending, figures = stream.stream.pending, _figures(stream.leader)
    found = []
    for number, table in enumerate(pending.tables):
        if number:
            found.append(Copy(".".join(table), "waits for its turn", None))
            continue
        estimated = figures.get("cdc_producer_copying_rows_estimated")
        left = figures.get("cdc_producer_copying_seconds_left")
        says = of_rows(pending.rows, estimated) + (f", {duration(left)} left" if left is not None else "")
        share = min(100.0, 100 * pending.rows / estimated) if estimated else None
        found.append(Copy(".".join(table), says, share))
    return found


def _followers(stream: StreamAnswers) -> Sequence[Follower]:
    return [
        Follower(each.name, status, status.conflicts[0].number if status.conflicts else 0)
        for each in stream.followers
        if each.server.value and (status := each.server.value.status) and status.applied
    ]
