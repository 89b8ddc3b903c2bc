"""The events that the operator has the stream do without (``--skip``), each named by its place in the leader's log."""

import re
from collections.abc import Callable, Iterable

from cdc.errors import PromiseError, UserError
from cdc.model.position import Position

__all__ = ["Skips"]

_OPTION = "option --skip"
_PLACE = re.compile(r"(?P<file>[^/]+\.[0-9]{6,}):(?P<offset>[0-9]+)(?:/[0-9]+)?")


class Skips:
    """Only what is refused is left out: a place named by mistake costs no change.

    A place is ``FILE:OFFSET``, with ``/NUMBER`` behind it for an event of a compressed transaction. ``log(event,
    **fields)`` is told of each event that is left out. Raises UserError for what is no place.
    """

    def __init__(self, places: Iterable[str] = (), *, log: Callable[..., None] = lambda event, **fields: None) -> None:
        self._asked = {place: _position(place) for place in places}
        self._used: set[str] = set()
        self._open: list[str] = []  # those of a transaction that is not through: they must be named again
        self.log = log

    def __bool__(self) -> bool:
        return bool(self._asked)

    def allow(self, place: str) -> bool:
        """Whether the event there, which is refused, may be left out."""
        if place in self._asked:
            self._used.add(place)
            self._open.append(place)
        return place in self._asked

    def refusal(self, error: PromiseError, place: str) -> PromiseError:
        """``error`` at ``place``, with the way past it. Every refusal of an event that can be left out is made here."""
        where = error.where if error.where.startswith(place) else place
        options = " ".join(f"--skip {each}" for each in dict.fromkeys([*self._open, place]))
        way = f"to do without this event for good: cdc-producer PROFILE {options}"
        return PromiseError(error.what, where=where, hint=f"{error.hint}; {way}" if error.hint else way)

    def check_passed(self, reached: Position) -> None:
        """Raises UserError where everything before ``reached`` is through, and a place there was not refused."""
        self._open.clear()
        for place, position in self._asked.items():
            if place not in self._used and position.place < reached.place:
                raise UserError(
                    f"no event was refused at {place}, or it is out or skipped already: the stream is at {reached}",
                    where=_OPTION,
                    hint="name the place that the producer's error named; to go on, start without --skip",
                )

    def check_end(self, reached: Position) -> None:
        """Raises UserError where the log ended, at ``reached``, before a place that was to be skipped."""
        for place in self._asked.keys() - self._used:
            raise UserError(
                f"there is no event at {place} yet: the leader's log ends at {reached}",
                where=_OPTION,
                hint="name the place that the producer's error named; to go on, start without --skip",
            )


def _position(place: str) -> Position:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise UserError(
            f"{place!r} is no place in a binlog",
            where=_OPTION,
            hint="give it as the producer's error names it, such as binlog.000012:4567 or binlog.000012:4567/8",
        )
    return Position(found["file"], int(found["offset"]))
