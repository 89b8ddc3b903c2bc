"""Writes sentences that describe which parts of a stream wait, for what and why; the most important sentence first."""

from collections.abc import Iterator
from typing import NamedTuple

from cdc.consumer.state.status import Status
from cdc.sql.tokens import excerpt
from cdc.web.overview.answers import (
    ProfileAnswers,
    StreamAnswers,
    applied_sequence,
    applying_rate,
    bytes_between,
    seconds_late,
)
from cdc.web.overview.figures import count, duration, size

__all__ = ["BAD", "GOOD", "INFO", "WAITS", "Sentence", "sentences"]

BAD, WAITS, INFO, GOOD = "bad", "waits", "info", "good"
_ORDER = (BAD, WAITS, INFO, GOOD)
_SIGNS = 3  # a producer counts as gone after this number of missed signs of life
_NAMED = 5  # the maximum number of tables in one sentence


class Sentence(NamedTuple):
    """A sentence, and its ``level``: BAD (an operator must act), WAITS (the wait ends by itself), INFO or GOOD."""

    level: str
    text: str


def sentences(stream: StreamAnswers, *, now: float) -> list[Sentence]:
    """Writes the sentences about a stream."""
    found = [*_kafka(stream, now), *_leader(stream), *_producer(stream, now), *_copies(stream)]
    for follower in stream.followers:
        found += _follower(stream, follower)
    if not any(each.level in (BAD, WAITS) for each in found):
        found += _nothing(stream)
    return sorted(found, key=lambda each: _ORDER.index(each.level))


def _kafka(stream: StreamAnswers, now: float) -> Iterator[Sentence]:
    if stream.kafka.error:
        known = f" What is known of it is {duration(now - stream.kafka.at)} old." if stream.kafka.at else ""
        yield Sentence(BAD, f"Kafka does not answer the page, so producer and consumers may wait for it, too: "
                            f"{stream.kafka.error}.{known}")  # fmt: skip
    elif stream.kafka.value is None:
        yield Sentence(INFO, "Kafka has not answered yet.")
    elif stream.stream.entry is None:
        yield Sentence(WAITS, f"No producer has written to the topic {stream.topic} yet, so nothing can be applied.")


def _leader(stream: StreamAnswers) -> Iterator[Sentence]:
    leader = stream.leader
    if leader is None:
        return
    if leader.server.error:
        yield Sentence(BAD, f"The leader does not answer the page: {leader.server.error}.")
    elif leader.server.value and leader.server.value.end and (entry := stream.stream.entry):
        left = bytes_between(entry.position, leader.server.value.end, leader.server.value.logs)
        if left:
            yield Sentence(INFO, f"The leader has {size(left)} of binlog that no commit to Kafka covers yet.")


def _producer(stream: StreamAnswers, now: float) -> Iterator[Sentence]:
    leader, answer = stream.leader, stream.stream
    alive = (leader or stream.profiles[0]).profile.producer.alive_seconds
    silence = now - answer.written_at if answer.written_at is not None and not stream.kafka.error else 0.0
    if silence > _SIGNS * alive:
        by = f" ({answer.producer})" if answer.producer else ""
        yield Sentence(
            BAD,
            f"No producer has written for {duration(silence)}, though it would at least every {alive} s: the last one"
            f"{by} does not run, or makes no progress. What the leader has changed since is in no topic.",
        )
    program = leader.program.value if leader and leader.program and not leader.program.error else None
    if program and program.figures.get("cdc_producer_paused"):
        how = "cdc-producer --resume ends the pause"
        yield Sentence(WAITS, f"The producer is paused, and reads nothing from the leader; {how}.")
    yield from _program(leader, "The producer", waiting="cdc_producer_waiting")


def _program(profile: ProfileAnswers | None, name: str, *, waiting: str) -> Iterator[Sentence]:
    """Describes a program's failing checks; ``waiting`` is its metric that is 1 while it waits for a server."""
    if profile is None or profile.program is None:
        return
    if profile.program.error:
        yield Sentence(BAD, f"{name} does not answer: {profile.program.error}.")
    elif profile.program.value:
        level = WAITS if profile.program.value.figures.get(waiting) else BAD
        reasons = {check: says.removeprefix("no answer: ") for check, says in profile.program.value.failing.items()}
        for check, says in profile.program.value.failing.items():
            # While a server is away, two checks fail for the same reason: the check of the server and the check of the
            # stream. If the reason of one check is a part of the other's text, only the longer text is shown.
            if not any(reasons[check] in other and reasons[check] != other for other in reasons.values()):
                end = "" if says.endswith((".", "?", "!")) else "."
                yield Sentence(level, f"{name} reports that the check of {check} fails: {says}{end}")


def _copies(stream: StreamAnswers) -> Iterator[Sentence]:
    pending, leader = stream.stream.pending, stream.leader
    if pending.structure:
        yield Sentence(WAITS, "The copy of the leader has not begun: its tables are not known yet.")
    program = leader.program.value if leader and leader.program and not leader.program.error else None
    if program and program.figures.get("cdc_producer_copying_waits"):
        yield Sentence(
            WAITS, f"The copy of {program.table} waits for a follower that still has many of its rows to apply."
        )
    for request in stream.stream.requests:
        names = [".".join(table) for table in request.tables] + ([".".join(request.keys.table)] if request.keys else [])
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        what = "end the copy" if request.stop else "repair rows" if request.keys else "copy"
        yield Sentence(
            WAITS, f"A request to {what} of {', '.join(names[:_NAMED])}{more} waits for the producer to take it up."
        )


def _follower(stream: StreamAnswers, follower: ProfileAnswers) -> Iterator[Sentence]:
    name = f"Follower {follower.name}"
    if follower.server.error:
        yield Sentence(BAD, f"{name} does not answer the page: {follower.server.error}.")
    status = follower.server.value.status if follower.server.value else None
    if status is not None and not follower.server.error:
        yield from _consumer(stream, follower, status)
        for entry in status.open:
            yield Sentence(
                WAITS, f"{name} has run a statement since {entry.at} UTC, or refused it: {excerpt(entry.statement)}"
            )
        if status.skipped:
            yield Sentence(
                INFO, f"{name} does without {_records(len(status.skipped))} that an operator had skipped (--skip)."
            )
    yield from _program(follower, f"The consumer of {follower.name}", waiting="cdc_consumer_waiting")


def _consumer(stream: StreamAnswers, follower: ProfileAnswers, status: Status) -> Iterator[Sentence]:
    """Describes whether the consumer runs, and how many records wait for it in Kafka."""
    entry, sequence = stream.stream.entry, applied_sequence(stream, follower.name)
    left = max(0, entry.next_sequence - 1 - (-1 if sequence is None else sequence)) if entry else 0
    name = f"Follower {follower.name}"
    if status.consumer is None:
        waits = f": {_waiting(left)}" if left else ", and none waits"
        yield Sentence(BAD if left else WAITS, f"No consumer runs on {name[0].lower()}{name[1:]}{waits}.")
        return
    if status.paused:
        yield Sentence(WAITS, f"The consumer of {follower.name} is paused, and {_waiting(left)}; "
                              f"SIGUSR2 or cdc-consumer --resume ends the pause.")  # fmt: skip
        return
    program = follower.program.value if follower.program and not follower.program.error else None
    held = program.figures.get("cdc_consumer_held_seconds", 0) if program else 0
    if held:
        yield Sentence(WAITS, f"{name} holds the next transaction back for {duration(held)} (consumer.delay_seconds).")
    elif left:
        late, speed = seconds_late(stream, follower), applying_rate(stream.samples, follower.name)
        oldest = f", the oldest at most {duration(late)} old" if late is not None else ""
        takes = f", about {duration(left / speed)} at {count(speed)} records a second" if speed and speed >= 1 else ""
        yield Sentence(WAITS, f"{name} has {_records(left)} to apply{oldest}{takes}.")


def _records(number: int) -> str:
    return f"{count(number)} {'record' if number == 1 else 'records'}"


def _waiting(number: int) -> str:
    return f"{_records(number)} {'waits' if number == 1 else 'wait'}"


def _nothing(stream: StreamAnswers) -> Iterator[Sentence]:
    """Writes a sentence if no record waits."""
    entry = stream.stream.entry
    if entry is None:
        return
    on = [f"follower {each.name}" for each in stream.followers
          if applied_sequence(stream, each.name) == entry.next_sequence - 1]  # fmt: skip
    if on and len(on) == len(stream.followers):
        yield Sentence(GOOD, f"Nothing waits: each record in Kafka is on {' and '.join(on)}.")
    elif not stream.followers:
        yield Sentence(INFO, "No profile of a follower was given, so only the way to Kafka is shown.")
