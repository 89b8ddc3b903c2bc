"""Decides which refused events are skipped: the events whose positions the operator names with ``--skip``."""

import re
from collections.abc import Callable, Iterable

from cdc.errors import PromiseError, UserError
from cdc.model.position import Position

__all__ = ["Skips"]

_OPTION = "option --skip"
_EVENT = re.compile(r"(?P<file>[^/]+\.[0-9]{6,}):(?P<offset>[0-9]+)(?:/[0-9]+)?")
_HINT = "give the position that the producer's error names; to continue, start without --skip"


class Skips:
    """Skips only events that are refused: if an operator gives the position of another event by mistake, no change is
    lost.

    Each of ``events`` is ``FILE:OFFSET``, with ``/NUMBER`` appended for an event inside a compressed transaction.
    ``log(event, **fields)`` is called for each event that is skipped. Raises UserError for any other text.
    """

    def __init__(self, events: Iterable[str] = (), *, log: Callable[..., None] = lambda event, **fields: None) -> None:
        self._asked = {event: _position(event) for event in events}
        self._used: set[str] = set()
        # events skipped in the open transaction; if another event in it is refused, the operator must name them again,
        # too
        self._open: list[str] = []
        self.log = log

    def __bool__(self) -> bool:
        return bool(self._asked)

    def allow(self, event: str) -> bool:
        """Whether the refused event with the name ``event`` may be skipped."""
        if event in self._asked:
            self._used.add(event)
            self._open.append(event)
        return event in self._asked

    def refusal(self, error: PromiseError, event: str) -> PromiseError:
        """Returns ``error``, which the event named ``event`` caused, with the command that skips this event. This
        method builds every error about an event that can be skipped.
        """
        where = error.where if error.where.startswith(event) else event
        options = " ".join(f"--skip {each}" for each in dict.fromkeys([*self._open, event]))
        command = f"to skip this event for good: cdc-producer PROFILE {options}"
        return PromiseError(
            error.what, code=error.code, where=where, hint=f"{error.hint}; {command}" if error.hint else command
        )

    def check_passed(self, reached: Position) -> None:
        """Raises UserError if an event before ``reached`` was to be skipped, but was not refused.

        To be called when everything before ``reached`` is replicated.
        """
        self._open.clear()
        for event, position in self._asked.items():
            if event not in self._used and position.place < reached.place:
                raise UserError(
                    f"no event was refused at {event}, or it is written or skipped already: the stream is at {reached}",
                    code="CDC-SKIP-NO-EVENT",
                    where=_OPTION,
                    hint=_HINT,
                )

    def check_end(self, reached: Position) -> None:
        """Raises UserError if an event that was to be skipped is not in the binlog yet; ``reached`` is the binlog's
        end.
        """
        for event in self._asked.keys() - self._used:
            raise UserError(
                f"there is no event at {event} yet: the leader's binlog ends at {reached}",
                code="CDC-SKIP-NO-EVENT",
                where=_OPTION,
                hint=_HINT,
            )


def _position(event: str) -> Position:
    found = _EVENT.fullmatch(event)
    if found is None:
        raise UserError(
            f"{event!r} is not a position in a binlog",
            code="CDC-SKIP-NO-EVENT",
            where=_OPTION,
            hint="give it as the producer's error names it, such as binlog.000012:4567 or binlog.000012:4567/8",
        )
    return Position(found["file"], int(found["offset"]))
