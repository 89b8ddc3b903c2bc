"""Makes the SET statement that gives a session the variables of the leader's session, as recorded with a statement."""

from typing import Any

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted, seconds

__all__ = ["assignments"]

# From a key of the recorded context to the session variable that it sets (MySQL source, class Query_event).
_VARIABLES = {
    "sql_mode": "sql_mode",
    "time_zone": "time_zone",
    "foreign_key_checks": "foreign_key_checks",
    "unique_checks": "unique_checks",
    "lc_time_names": "lc_time_names",  # as a number
    "auto_increment_increment": "auto_increment_increment",
    "auto_increment_offset": "auto_increment_offset",
    "charset": "character_set_client",
    "collation": "collation_connection",
    "server_collation": "collation_server",
    "database_collation": "collation_database",
    "default_collation_for_utf8mb4": "default_collation_for_utf8mb4",
    "explicit_defaults_for_timestamp": "explicit_defaults_for_timestamp",
    "sql_require_primary_key": "sql_require_primary_key",
    "default_table_encryption": "default_table_encryption",
}
_RESTRICTED = frozenset({
    "default_collation_for_utf8mb4", "explicit_defaults_for_timestamp", "sql_require_primary_key",
    "default_table_encryption",
})  # fmt: skip
# Values for variables that the leader did not log, whatever the follower's own defaults are. It logs the first three
# only where they differ from these, and writes a generated primary key into the statement itself. The engine of a table
# whose statement names none is not logged at all, so the transactional one is used. The last two are never logged and
# only forbid statements: what the leader accepted with them ON is accepted with them OFF as well. Variables that the
# server does not have are left out.
_UNLESS_LOGGED = {
    "lc_time_names": "en_US",
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
    "sql_generate_invisible_primary_key": "OFF",
    "default_storage_engine": "InnoDB",
    "innodb_strict_mode": "OFF",
    "restrict_fk_on_non_standard_key": "OFF",
}


def assignments(session: Session, context: dict[str, Any]) -> list[bytes]:
    """The SET statement for a recorded context, alone in a list.

    It is one statement because the server then parses all literals before any variable changes: after
    ``collation_connection=utf16_bin`` it would not accept 'OFF'.
    """
    wanted = {variable: _variable(context[name]) for name, variable in _VARIABLES.items() if name in context}
    for variable in _RESTRICTED & wanted.keys():
        # Setting these needs grants or causes a warning, and usually they have the right value already.
        if str(session.rows(f"SELECT @@SESSION.{variable}")[0][0]) == wanted[variable].strip("'"):
            del wanted[variable]
    names = ", ".join(map(quoted, _UNLESS_LOGGED.keys() - wanted.keys()))
    for variable, value in session.rows(f"SHOW SESSION VARIABLES WHERE variable_name IN ({names})"):
        usual = _UNLESS_LOGGED[variable]
        if value != usual:
            wanted[variable] = usual if usual.isdigit() else quoted(usual)
    if "timestamp_us" in context:
        wanted["timestamp"] = seconds(context["timestamp_us"])
    return [("SET SESSION " + ", ".join(f"{variable}={value}" for variable, value in wanted.items())).encode()]


def _variable(value: object) -> str:
    return str(int(value)) if isinstance(value, bool | int) else quoted(str(value))
