"""Defines the session variables on which the consumer's statements rely, whatever the follower's global values are.
Pure.

Only variables that can be set without a privilege are in the list, because a user who only reads the status has few
privileges. All other variables are harmless, or are set to the leader's values (``follower/statement_connection``). The
reason for each variable is in ``tests/data/session_variables.txt``.
"""

from cdc.consumer.literals.row_sql_mode import STRICT

__all__ = ["OWN", "own_variables"]

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
    """Returns the assignments of a SET SESSION for these variables."""
    given = [f"{name}={value}" for name, value in OWN.items()]
    given += [f"{name}={lock_wait_seconds}" for name in _LOCK_WAITS]
    newer = [f"/*!{since} , {name}={value} */" for name, (since, value) in _SINCE.items()]
    return ", ".join(given) + "".join(newer)
