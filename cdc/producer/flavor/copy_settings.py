"""Names the session variables that a copy sets, as MySQL and MariaDB call them."""

from typing import Any, NamedTuple

from cdc.producer.flavor.mariadb_leader import is_mariadb

__all__ = ["CopySettings", "copy_settings", "speaks_mariadb"]


class CopySettings(NamedTuple):
    """Assignments for SET SESSION: no limit on a statement's time, no limit on the memory for ranges of a key, and
    transactions that read from one snapshot.

    ``recursion`` is the name of the variable that limits the steps of a recursive query. ``fresh_estimates`` is an
    assignment as well, empty if the server always returns present estimates of a table's size.
    """

    unlimited_time: str
    unlimited_ranges: str
    reading: str
    recursion: str
    fresh_estimates: str


_MYSQL = CopySettings(
    unlimited_time="max_execution_time = 0",
    unlimited_ranges="range_optimizer_max_mem_size = 0",
    reading="transaction_isolation = 'REPEATABLE-READ', transaction_read_only = 1",
    recursion="cte_max_recursion_depth",
    fresh_estimates="information_schema_stats_expiry = 0",
)
_MARIADB = CopySettings(
    unlimited_time="max_statement_time = 0",
    unlimited_ranges="optimizer_max_sel_arg_weight = 0",
    reading="tx_isolation = 'REPEATABLE-READ', tx_read_only = 1",
    recursion="max_recursive_iterations",
    fresh_estimates="",
)


def speaks_mariadb(connection: Any) -> bool:
    """Whether the server of pymysql's ``connection`` is a MariaDB."""
    return is_mariadb(connection.get_server_info())


def copy_settings(connection: Any) -> CopySettings:
    """Returns the settings for the server of pymysql's ``connection``."""
    return _MARIADB if speaks_mariadb(connection) else _MYSQL
