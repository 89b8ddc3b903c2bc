"""Defines the errors that users see. Each error describes what failed, where, and what to do, and has an exit status.

CdcError
├── UserError      2  the user must change something: the profile, a server setting, a grant
│   └── Unreachable   a server does not answer; producer and consumer wait for it, other programs end
├── PromiseError   3  the program stopped to keep a promise, at a gap, an unknown event, or a conflict with "stop"
└── ServerGone     4  a server was unreachable until the retries ran out
    └── Disconnected  a connection failed; producer and consumer retry, which is safe from the last commit on
        └── Fenced    Kafka rejects this producer: another producer took over, or a transaction took too long
"""

from collections.abc import Iterable
from typing import ClassVar

__all__ = ["CdcError", "Disconnected", "Fenced", "PromiseError", "ServerGone", "Unreachable", "UserError"]


class CdcError(Exception):
    """An error. Describes ``what`` failed, ``where`` it failed (a binlog position, a topic offset, a profile key), and
    in ``hint`` what to do.

    ``code`` identifies the kind of error, and stays the same when the text changes. docs/what-if.md lists all codes. If
    ``what`` summarises several failures, ``each`` contains one text for each failure.
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
        """Joins the description, the place and the hint into one line; line breaks in them become spaces."""
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
    """A server does not answer. Its address may be wrong, or it may answer again later."""


class PromiseError(CdcError):
    """The program stops, because continuing would lose, repeat or alter a change."""

    exit_status = 3


class ServerGone(CdcError):
    """A server stayed unreachable until the retries ran out."""

    exit_status = 4


class Disconnected(ServerGone):
    """A connection to a server was lost, or could not be opened. Retrying from the last commit is safe."""


class Fenced(Disconnected):
    """Kafka rejects the writes of this producer; the commit log shows whether another producer has taken over."""
