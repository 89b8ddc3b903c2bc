"""The sql_mode under which rows are written: what is forbidden is ours to say, what is computed the leader's. Pure.

Values that a table does not take as they are must stop the consumer, so rows are written in strict mode, which takes
any date. Where the follower computes something of a row itself (generated columns, functional indexes), it does so
under those modes of the leader's session that decide about the result; the record names them where they are not usual.
"""

from cdc.model.record import Record

__all__ = ["LAX", "STRICT", "computing", "is_looked_up", "lax", "permissive", "setting", "strict"]

# Not NO_BACKSLASH_ESCAPES: under it the server takes the expressions of generated columns, defaults and checks, which
# it keeps as text with backslashes, for other ones, or for none at all.
_ALWAYS = "NO_AUTO_VALUE_ON_ZERO"
_STRICT = "STRICT_ALL_TABLES"
_DATES = ("NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES")
_PADDED = "PAD_CHAR_TO_FULL_LENGTH"
_COMPUTING = frozenset({*_DATES, _PADDED, "NO_UNSIGNED_SUBTRACTION", "TIME_TRUNCATE_FRACTIONAL"})
_USUAL = "NO_ZERO_IN_DATE,NO_ZERO_DATE"  # of the record's modes, where it names none: MySQL's default
_ZEROS = frozenset({"", *_USUAL.split(",")})
STRICT = f"{_STRICT},{_ALWAYS},ALLOW_INVALID_DATES"
LAX = f"{_ALWAYS},ALLOW_INVALID_DATES"


def setting(mode: str) -> bytes:
    """The statement that sets it."""
    return f"SET SESSION sql_mode='{mode}'".encode()


def computing(record: Record) -> str:
    """The leader's modes that decide what is computed."""
    return _USUAL if record.sql_mode is None else record.sql_mode


def is_looked_up(modes: str) -> bool:
    """Whether what is computed is compared with the leader's: another of its sessions may have written it before, under
    other modes. Of zeros in dates none becomes another value without being refused."""
    return not _ZEROS.issuperset(modes.split(","))


def strict(modes: str, *, adds: bool) -> str:
    """For rows of a table that computes. Only rows that are added (``adds``) can be padded: no other row is found so.

    Raises ValueError for modes that no producer writes, as the functions below do.
    """
    return ",".join([_STRICT, _ALWAYS, *_named(modes, padded=adds)])


def lax(modes: str, *, adds: bool) -> str:
    """As a replica of MySQL's own writes them: nothing is refused, and what does not fit becomes what does."""
    return ",".join([_ALWAYS, *_named(modes, padded=adds)])


def permissive(modes: str, *, adds: bool) -> str:
    """As ``lax``, for rows with dates that these modes do not take any more: they are older."""
    others = [name for name in _named(modes, padded=adds) if name not in _DATES]
    return ",".join([LAX, *others])


def _named(modes: str, *, padded: bool) -> list[str]:
    names = modes.split(",") if modes else []
    if not _COMPUTING.issuperset(names):
        raise ValueError(f"not the sql_mode of a rows record: {modes[:80]!r}")
    return [name for name in names if padded or name != _PADDED]
