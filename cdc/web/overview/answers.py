"""Defines the answers of all sources about one stream, from which the first page is made, and computes the stream's
progress.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cdc.config.profile import Profile
from cdc.consumer.state.status import lag
from cdc.model.position import Position
from cdc.web.sources import FOLLOWER, LEADER, Answer, EndpointAnswer, ServerAnswer, StreamAnswer

__all__ = [
    "ProfileAnswers",
    "Sample",
    "StreamAnswers",
    "applied_sequence",
    "applying_rate",
    "bytes_between",
    "sample",
    "seconds_late",
    "server_name",
    "writing_rate",
]


def server_name(profile: Profile) -> str:
    """Returns host and port of the server in ``[database]``. A follower's consumer uses the same name in Kafka."""
    return f"{profile.database.ip_or_host}:{profile.database.port}"


@dataclass(frozen=True, slots=True)
class Sample:
    """The progress of a stream at the time ``at`` (seconds since 1970): the number of records ``written`` to Kafka, and
    for each follower the last ``applied`` sequence and the delay (``late``) in seconds. Unknown figures are None or
    missing.
    """

    at: float
    written: int | None
    applied: dict[str, int] = field(default_factory=dict)
    late: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileAnswers:
    """The answers of a profile's server and of its program; the program's answer is None if the program serves no
    metrics.

    ``file`` is the profile's file; ``guess`` is the assumed role as long as the server's role is unknown.
    """

    file: str
    profile: Profile
    server: Answer[ServerAnswer]
    program: Answer[EndpointAnswer] | None
    guess: str

    @property
    def role(self) -> str:
        """The role of the server, LEADER or FOLLOWER."""
        return (self.server.value.role if self.server.value else "") or self.guess

    @property
    def name(self) -> str:
        """The server's host and port."""
        return server_name(self.profile)


@dataclass(frozen=True, slots=True)
class StreamAnswers:
    """All answers about the stream of the leader ``resource``; ``samples`` are of the last hour, oldest first."""

    resource: str
    topic: str
    brokers: str
    kafka: Answer[StreamAnswer]
    profiles: tuple[ProfileAnswers, ...]
    samples: Sequence[Sample] = ()

    @property
    def leader(self) -> ProfileAnswers | None:
        """The profile of the leader; None if no profile is known to be the leader's."""
        return next((each for each in self.profiles if each.role == LEADER), None)

    @property
    def followers(self) -> list[ProfileAnswers]:
        """The profiles of followers."""
        return [each for each in self.profiles if each.role == FOLLOWER]

    @property
    def stream(self) -> StreamAnswer:
        """Kafka's newest answer; empty before the first answer."""
        return self.kafka.value or StreamAnswer()


# Computes the progress of a stream: the backlog before Kafka and before each follower, and the present rates.

_RATE_SECONDS = 12.0  # rates are averaged over this period


def bytes_between(begin: Position, end: Position, logs: Sequence[tuple[str, int]]) -> int | None:
    """Returns the number of bytes in the binlog between ``begin`` and ``end``; None if the file of one of the two
    positions is not in ``logs``, the names and sizes of the files.
    """
    if begin.file == end.file:
        return max(0, end.offset - begin.offset)
    names = [name for name, _ in logs]
    if begin.file not in names or end.file not in names:
        return None
    between = [length for _, length in logs[names.index(begin.file) : names.index(end.file)]]
    return max(0, sum(between) - begin.offset + end.offset)


def applied_sequence(stream: StreamAnswers, name: str) -> int | None:
    """Returns the last sequence that the follower ``name`` has applied, from its checkpoint or its group in Kafka."""
    noted = stream.stream.places.get(name)
    for each in stream.followers:
        if each.name == name and each.server.value and each.server.value.status and each.server.value.status.applied:
            return max(each.server.value.status.applied.sequence, -1 if noted is None else noted)
    return noted


def seconds_late(stream: StreamAnswers, follower: ProfileAnswers) -> float | None:
    """Returns an upper bound for the time, in seconds, that a record in Kafka has waited for the follower; None if
    unknown.
    """
    if follower.program and follower.program.value and not follower.program.error:
        known = follower.program.value.figures.get("cdc_consumer_behind_seconds")
        if known is not None:
            return known
    status, entry = follower.server.value and follower.server.value.status, stream.stream.entry
    if not status or not status.applied or entry is None:
        return None
    return lag(status.applied, entry.next_sequence)[1]


def sample(stream: StreamAnswers, *, now: float) -> Sample:
    """Returns the present progress. Figures of a source that no longer answers are left out."""
    entry = None if stream.kafka.error else stream.stream.entry
    names = {each.name for each in stream.followers} | set(stream.stream.places)
    applied = {name: applied_sequence(stream, name) for name in names}
    late = {each.name: seconds_late(stream, each) for each in stream.followers if not each.server.error}
    return Sample(
        now,
        None if entry is None else entry.next_sequence,
        {name: sequence for name, sequence in applied.items() if sequence is not None},
        {name: seconds for name, seconds in late.items() if seconds is not None},
    )


def writing_rate(samples: Sequence[Sample]) -> float | None:
    """Returns the present rate of writing to Kafka, in records per second; None if unknown."""
    return _rate(samples, lambda each: each.written)


def applying_rate(samples: Sequence[Sample], name: str) -> float | None:
    """Returns the present rate at which the follower ``name`` applies records, per second; None if unknown."""
    return _rate(samples, lambda each: each.applied.get(name))


def _rate(samples: Sequence[Sample], value: Callable[[Sample], int | None]) -> float | None:
    known = [(each.at, found) for each in samples[-20:] if (found := value(each)) is not None]
    if not known:
        return None
    at, newest = known[-1]
    oldest = next(((then, was) for then, was in known if at - then <= _RATE_SECONDS), known[-1])
    seconds = at - oldest[0]
    return max(0.0, (newest - oldest[1]) / seconds) if seconds > 0 else None
