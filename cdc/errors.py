"""The errors that users meet: each names what failed, where and what to do, and has the program's exit status.

CdcError
├── UserError      2  the user must change something: profile, server setting, grant
│   └── Unreachable   a server does not answer; producer and consumer wait for it, other programs end
├── PromiseError   3  stopped to keep a promise: a gap, an unknown event, a conflict under "stop"
└── ServerGone     4  a server was unreachable until the retries ran out
    └── Disconnected  a connection failed; retrying from the last commit is safe, so producer and consumer do
        └── Fenced    Kafka rejects this producer, because another one took over or a transaction took too long
"""

from collections.abc import Iterable
from typing import ClassVar

__all__ = ["CdcError", "Disconnected", "Fenced", "PromiseError", "ServerGone", "Unreachable", "UserError"]


class CdcError(Exception):
    """An error with ``what`` failed, ``where`` (binlog position, topic offset, profile key), and a ``hint`` at what to
    do.

    ``code`` names the kind of error, and stays the same when its words change: docs/what-if.md lists all codes.
    ``each`` lists the failures one by one if ``what`` summarises several.
    """

    exit_status: ClassVar[int] = 3
    code: str = ""

    def __init__(self, what: str, *, code: str = "", where: str = "", hint: str = "", each: Iterable[str] = ()) -> None:
        super().__init__(what)
        if code:
            self.code = code
        self.what = what
        self.where = where
        self.hint = hint
        self.each = tuple(each)

    def __str__(self) -> str:
        """Joins the parts into one line: what failed; where; what to do. Line breaks in the parts become spaces."""
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
    """The stream stops here, because going on would lose, repeat or alter a change."""

    exit_status = 3


class ServerGone(CdcError):
    """A server did not come back while the retries lasted."""

    exit_status = 4


class Disconnected(ServerGone):
    """A connection to a server was lost or could not be made; retrying from the last commit is safe."""


class Fenced(Disconnected):
    """Kafka rejects this producer's writes; the commit log shows whether another producer has taken over."""
