"""Defines the session variables on which the consumer's statements rely, whatever the follower's global values are, and
the sql_mode under which rows are written. Pure.

Only variables that can be set without a privilege are in the list, because a user who only reads the status has few
privileges. All other variables are harmless, or are set to the leader's values (``follower/statement_connection``). The
reason for each variable is in ``tests/data/session_variables.txt``.
"""

from collections.abc import Iterator
from itertools import combinations

from cdc.model.record import Record

__all__ = [
    "LAX",
    "OWN",
    "STRICT",
    "guesses",
    "lax",
    "leader_modes",
    "needs_comparison",
    "own_variables",
    "permissive",
    "setting",
    "strict",
]

# Determines the sql_mode under which rows are written: strict mode, plus the modes of the leader's session that change
# computed values.
#
# A value that the follower's table cannot store unchanged must stop the consumer, so rows are written in strict mode,
# with any date allowed. If the follower computes values from a row (generated columns, functional indexes), the modes
# of the leader's session that change the result must be set. A record contains these modes if they are not MySQL's
# default.

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

    They must be compared, because another session of the leader may have written the row under other modes. Only the
    modes about zeros in dates need no comparison, because they never change a value without an error.
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
    PAD_CHAR_TO_FULL_LENGTH, the server might not find an existing row.
    """
    others = [*_DECIDING, _PADDED]
    for count in range(len(others) + 1):
        yield from (",".join([LAX, *some]) for some in combinations(others, count))


def _named(modes: str, *, padded: bool) -> list[str]:
    names = modes.split(",") if modes else []
    if not _ALLOWED.issuperset(names):
        raise ValueError(f"not the sql_mode of a rows record: {modes[:80]!r}")
    return [name for name in names if padded or name != _PADDED]


OWN = {
    "sql_mode": f"'{STRICT}'",
    "time_zone": "'+00:00'",
    "autocommit": "0",
    "completion_type": "0",  # with another value, a COMMIT may end the connection or begin another transaction
    "transaction_isolation": "'READ-COMMITTED'",
    "transaction_read_only": "0",
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "collation_connection": "'utf8mb4_0900_ai_ci'",
    "sql_big_selects": "1",
    "sql_select_limit": "18446744073709551615",
    "max_execution_time": "0",
    "sql_safe_updates": "0",
    "sql_auto_is_null": "0",  # with 1, ``IS NULL`` would find the row that was inserted last
    "updatable_views_with_limit": "1",
    # With sql_notes = 1, LOAD DATA also warns about rows that it leaves out.
    "sql_notes": "1",
}
# These assignments are in executable comments, because older servers do not know the variables and ignore the comments.
_SINCE = {"show_gipk_in_create_table_and_information_schema": (80030, "1")}
_LOCK_WAITS = ("innodb_lock_wait_timeout", "lock_wait_timeout")


def own_variables(*, lock_wait_seconds: int) -> str:
    """Returns the assignments for a SET SESSION statement: the variables in ``OWN``, and the limits of lock waits."""
    given = [f"{name}={value}" for name, value in OWN.items()]
    given += [f"{name}={lock_wait_seconds}" for name in _LOCK_WAITS]
    newer = [f"/*!{since} , {name}={value} */" for name, (since, value) in _SINCE.items()]
    return ", ".join(given) + "".join(newer)
