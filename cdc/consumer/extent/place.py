"""Reads ``--until``: a place in the leader's stream, named by a sequence, a GTID or a time. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from cdc.errors import UserError
from cdc.model.gtid import is_gtid

__all__ = ["OPTION", "Place"]

OPTION = "option --until"
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """After record ``sequence``, before the transaction ``gtid``, or before the first one that the leader committed at
    ``time_us`` (µs since 1970) or later. One of the three is given; ``text`` is the option's."""

    text: str
    sequence: int | None = None
    gtid: str = ""
    time_us: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the option's value. Raises UserError."""
        if re.fullmatch(r"\d{1,18}", text, re.ASCII):
            return cls(text, sequence=int(text))
        if is_gtid(text.lower()):
            return cls(text, gtid=text.lower())
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise UserError(
                f"{text!r} names no place in the stream",
                where=OPTION,
                hint="write a record's sequence (4711), a transaction's GTID (uuid:1234), or a time with its zone "
                "(2026-03-01T12:30:00+01:00)",
            ) from None
        if time.utcoffset() is None:
            raise UserError(
                f"{text!r} has no time zone",
                where=OPTION,
                hint=f"write {text}Z for UTC, or {text}+02:00 where clocks are two hours ahead of it",
            )
        return cls(text, time_us=(time - _BEGINNING) // timedelta(microseconds=1))
