"""The errors a user can meet, each with its place, the way out and an exit status.

CdcError
├── UserError      2  the user must change something: profile, server setting, grant
│   └── Unreachable   a server does not answer: the pipelines wait for it, who only asks a question does not
├── PromiseError   3  stopped to keep a promise: a gap, an unknown event, a conflict under "stop"
└── ServerGone     4  a server is gone and retries ran out
    └── Disconnected  a connection is lost, and a new one from the committed place may do: the pipelines retry
        └── Fenced    Kafka takes no more from this producer: perhaps another one has taken over
"""

from typing import ClassVar

__all__ = ["CdcError", "Disconnected", "Fenced", "PromiseError", "ServerGone", "UserError"]


class CdcError(Exception):
    """What failed, where (binlog position, topic offset, profile key) and the hint that gets the user on."""

    exit_status: ClassVar[int] = 3

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        """One line, whatever the parts hold: what failed; where; what to do."""
        parts = [self.what]
        if self.where:
            parts.append(f"at {self.where}")
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "; ".join(" ".join(part.split()) for part in parts)


class UserError(CdcError):
    """The user must change something before the program can work."""

    exit_status = 2


class Unreachable(UserError):
    """A server does not answer: its address may be wrong, or it may come back."""


class PromiseError(CdcError):
    """Going on would lose, repeat or alter a change, so the stream stops here."""

    exit_status = 3


class ServerGone(CdcError):
    """A server did not come back within the retries."""

    exit_status = 4


class Disconnected(ServerGone):
    """A connection to a server is lost or was never made; trying again from the committed place is safe."""


class Fenced(Disconnected):
    """Kafka takes no more from this producer; whether another one has taken over, the commit log tells."""
