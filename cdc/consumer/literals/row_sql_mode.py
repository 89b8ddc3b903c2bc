"""Determines the sql_mode under which rows are written: strict mode, plus the modes of the leader's session that change
computed values.

A value that the follower's table cannot store unchanged must stop the consumer, so rows are written in strict mode,
with any date allowed. If the follower computes values from a row (generated columns, functional indexes), the modes of
the leader's session that change the result must be set. A record contains these modes if they are not MySQL's default.
"""

from collections.abc import Iterator
from itertools import combinations

from cdc.model.record import Record

__all__ = ["LAX", "STRICT", "guesses", "lax", "leader_modes", "needs_comparison", "permissive", "setting", "strict"]

# NO_BACKSLASH_ESCAPES is never set. The server stores the expressions of generated columns, defaults and checks as text
# with backslashes; under NO_BACKSLASH_ESCAPES it would misread or reject this text.
_ALWAYS = "NO_AUTO_VALUE_ON_ZERO"
_STRICT = "STRICT_ALL_TABLES"
_DATES = ("NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES")
_PADDED = "PAD_CHAR_TO_FULL_LENGTH"
_DECIDING = ("NO_UNSIGNED_SUBTRACTION", "TIME_TRUNCATE_FRACTIONAL")
_ALLOWED = frozenset({*_DATES, _PADDED, *_DECIDING})
_USUAL = "NO_ZERO_IN_DATE,NO_ZERO_DATE"  # MySQL's default, used if a record contains no modes
_ZEROS = frozenset({"", *_USUAL.split(",")})
STRICT = f"{_STRICT},{_ALWAYS},ALLOW_INVALID_DATES"
LAX = f"{_ALWAYS},ALLOW_INVALID_DATES"


def setting(mode: str) -> bytes:
    """Returns the statement that sets the session's sql_mode to ``mode``."""
    return f"SET SESSION sql_mode='{mode}'".encode()


def leader_modes(record: Record) -> str:
    """Returns the modes of the leader's session that change computed values."""
    return _USUAL if record.sql_mode is None else record.sql_mode


def needs_comparison(modes: str) -> bool:
    """Whether values that the server computes must be compared with the leader's values.

    They must, because another session of the leader may have written the row under other modes. Only modes about zeros
    in dates need no comparison, because they never change a value without an error.
    """
    return not _ZEROS.issuperset(modes.split(","))


def strict(modes: str, *, adds: bool) -> str:
    """Returns the sql_mode for writing rows of a table with values that the server computes.

    CHAR values are padded (PAD_CHAR_TO_FULL_LENGTH) only if rows are added (``adds``), because with padding the server
    would not find an existing row. This function and the functions below raise ValueError for modes that no producer
    writes.
    """
    return ",".join([_STRICT, _ALWAYS, *_named(modes, padded=adds)])


def lax(modes: str, *, adds: bool) -> str:
    """Returns the sql_mode in which MySQL's own replicas write: a value that does not fit is changed, not refused."""
    return ",".join([_ALWAYS, *_named(modes, padded=adds)])


def permissive(modes: str, *, adds: bool) -> str:
    """Returns the modes of ``lax``, but with any date allowed, because older rows may contain dates that the leader's
    modes do not allow.
    """
    others = [name for name in _named(modes, padded=adds) if name not in _DATES]
    return ",".join([LAX, *others])


def guesses() -> Iterator[str]:
    """Yields the sql_mode for each combination of the modes that can change a computed value. Needed if the leader's
    session changed its sql_mode after BEGIN, since the binlog contains the sql_mode only at BEGIN.

    A row that is written under a guessed sql_mode must be compared with the leader's row. Under
    PAD_CHAR_TO_FULL_LENGTH, the server may not find an existing row.
    """
    others = [*_DECIDING, _PADDED]
    for count in range(len(others) + 1):
        yield from (",".join([LAX, *some]) for some in combinations(others, count))


def _named(modes: str, *, padded: bool) -> list[str]:
    names = modes.split(",") if modes else []
    if not _ALLOWED.issuperset(names):
        raise ValueError(f"not the sql_mode of a rows record: {modes[:80]!r}")
    return [name for name in names if padded or name != _PADDED]
