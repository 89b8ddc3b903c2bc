"""Determines the sql_mode in which rows are written: strict, with those modes of the leader that change computed
values.

A value that the follower's table cannot store unchanged must stop the consumer, so rows are written in strict mode,
with any date allowed. If the follower computes values from a row (generated columns, functional indexes), it does so in
those modes of the leader's session that change the result; a record names these modes if they are not MySQL's default.
"""

from collections.abc import Iterator
from itertools import combinations

from cdc.model.record import Record

__all__ = ["LAX", "STRICT", "guesses", "lax", "leader_modes", "needs_comparison", "permissive", "setting", "strict"]

# NO_BACKSLASH_ESCAPES is not among these modes: the server stores the expressions of generated columns, defaults and
# checks as text with backslashes, which it would misread or reject in that mode.
_ALWAYS = "NO_AUTO_VALUE_ON_ZERO"
_STRICT = "STRICT_ALL_TABLES"
_DATES = ("NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES")
_PADDED = "PAD_CHAR_TO_FULL_LENGTH"
_DECIDING = ("NO_UNSIGNED_SUBTRACTION", "TIME_TRUNCATE_FRACTIONAL")
_ALLOWED = frozenset({*_DATES, _PADDED, *_DECIDING})
_USUAL = "NO_ZERO_IN_DATE,NO_ZERO_DATE"  # the modes of a record that names no modes: MySQL's default
_ZEROS = frozenset({"", *_USUAL.split(",")})
STRICT = f"{_STRICT},{_ALWAYS},ALLOW_INVALID_DATES"
LAX = f"{_ALWAYS},ALLOW_INVALID_DATES"


def setting(mode: str) -> bytes:
    """The statement that sets the session's sql_mode."""
    return f"SET SESSION sql_mode='{mode}'".encode()


def leader_modes(record: Record) -> str:
    """The leader's modes that change computed values."""
    return _USUAL if record.sql_mode is None else record.sql_mode


def needs_comparison(modes: str) -> bool:
    """Whether computed values must be compared with the leader's.

    Another session of the leader may have written the row before, in other modes. The modes about zeros in dates never
    change a value without an error.
    """
    return not _ZEROS.issuperset(modes.split(","))


def strict(modes: str, *, adds: bool) -> str:
    """The sql_mode for rows of a table that computes values.

    Values are padded only for added rows (``adds``): with padding, existing rows would not be found.

    Raises ValueError for modes that no producer writes, as the functions below do.
    """
    return ",".join([_STRICT, _ALWAYS, *_named(modes, padded=adds)])


def lax(modes: str, *, adds: bool) -> str:
    """The sql_mode in which MySQL's own replicas write: values that do not fit are changed instead of refused."""
    return ",".join([_ALWAYS, *_named(modes, padded=adds)])


def permissive(modes: str, *, adds: bool) -> str:
    """The modes of ``lax``, but with any date: older rows may have dates that are not valid in the leader's modes."""
    others = [name for name in _named(modes, padded=adds) if name not in _DATES]
    return ",".join([LAX, *others])


def guesses() -> Iterator[str]:
    """All combinations of modes that may change a computed value, for a session that has changed its modes since the
    BEGIN that names them.

    The result must be compared with the leader's row. With padding an existing row may not be found.
    """
    others = [*_DECIDING, _PADDED]
    for count in range(len(others) + 1):
        yield from (",".join([LAX, *some]) for some in combinations(others, count))


def _named(modes: str, *, padded: bool) -> list[str]:
    names = modes.split(",") if modes else []
    if not _ALLOWED.issuperset(names):
        raise ValueError(f"not the sql_mode of a rows record: {modes[:80]!r}")
    return [name for name in names if padded or name != _PADDED]
