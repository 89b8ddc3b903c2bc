"""Defines the answers of all sources about one stream, from which the first page is made."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from cdc.config.profile import Profile
from cdc.web.sources.endpoint import EndpointAnswer
from cdc.web.sources.polled import Answer
from cdc.web.sources.server import FOLLOWER, LEADER, ServerAnswer
from cdc.web.sources.stream import StreamAnswer

__all__ = ["ProfileAnswers", "Sample", "StreamAnswers", "server_name"]


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
