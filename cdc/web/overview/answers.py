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
    """The server in ``[database]`` as host and port, which is also how a follower's consumer names it in Kafka."""
    return f"{profile.database.ip_or_host}:{profile.database.port}"


@dataclass(frozen=True, slots=True)
class Sample:
    """Where a stream was at a time (``at``, seconds since 1970): the number of records ``written`` to Kafka, the
    sequences ``applied`` and the delays (``late``, in seconds) by follower. Unknown figures are None, or missing.
    """

    at: float
    written: int | None
    applied: dict[str, int] = field(default_factory=dict)
    late: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileAnswers:
    """The answers of the server in a profile, and of its program, None if its metrics are not served.

    ``file`` is the profile's file, ``guess`` the role to assume while the servers do not show it.
    """

    file: str
    profile: Profile
    server: Answer[ServerAnswer]
    program: Answer[EndpointAnswer] | None
    guess: str

    @property
    def role(self) -> str:
        """LEADER or FOLLOWER."""
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
        """The profile of the leader, None if no profile is the leader's."""
        return next((each for each in self.profiles if each.role == LEADER), None)

    @property
    def followers(self) -> list[ProfileAnswers]:
        """The profiles of followers."""
        return [each for each in self.profiles if each.role == FOLLOWER]

    @property
    def stream(self) -> StreamAnswer:
        """Kafka's newest answer, an empty one before the first."""
        return self.kafka.value or StreamAnswer()
