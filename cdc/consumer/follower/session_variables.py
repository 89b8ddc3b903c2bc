"""Writes the SET statement that gives a session the variables of the leader's session, as recorded with a statement."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted, seconds

__all__ = ["VARIABLES", "SessionVariables", "kept", "moment"]

# Maps a key of the recorded context to the session variable that it sets (MySQL source, class Query_event).
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
# only if they differ from these, and writes a generated primary key into the statement itself. The engine of a table
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

_AS_SELECTED = {"OFF": "0"}
VARIABLES = frozenset(_VARIABLES.values()) | _UNLESS_LOGGED.keys()  # the variables that sessions of statements get


class SessionVariables:
    """Gives one session after the other the variables of the leader's sessions."""

    def __init__(self) -> None:
        self._server = ("", 0)
        self._existing: frozenset[str] = frozenset()  # the variables that the server has

    def assignment(self, session: Session, context: dict[str, Any], *, own: str, last: str) -> bytes:
        """The SET statement for a recorded context, with our ``own`` assignments before it and the ``last`` one after
        it.

        It is one statement because the server then parses all literals before any variable changes: after
        ``collation_connection=utf16_bin`` it would not accept 'OFF'.
        """
        wanted = {variable: _variable(context[name]) for name, variable in _VARIABLES.items() if name in context}
        for variable, value in self._values(
            session, (_RESTRICTED & wanted.keys()) | (_UNLESS_LOGGED.keys() - wanted.keys())
        ):
            if variable in wanted:
                # Setting these needs grants or causes a warning, and usually they have the right value already.
                if value == wanted[variable].strip("'"):
                    del wanted[variable]
                continue
            usual = _UNLESS_LOGGED[variable]
            if value != _AS_SELECTED.get(usual, usual):
                wanted[variable] = usual if usual.isdigit() else quoted(usual)
        values = (f"{name}={value}" for name, value in wanted.items())
        return ", ".join([f"SET SESSION {own}", *values, *moment(context), last]).encode()

    def _values(self, session: Session, names: AbstractSet[str]) -> Iterator[tuple[str, str]]:
        """The variables that the server has, with the session's values."""
        server = session.server, session.version
        if server != self._server:
            all_ = ", ".join(map(quoted, [*_RESTRICTED, *_UNLESS_LOGGED]))
            shown = session.rows(f"SHOW SESSION VARIABLES WHERE variable_name IN ({all_})")
            self._server, self._existing = server, frozenset(str(name) for name, _ in shown)
        asked = sorted(names & self._existing)
        (row,) = session.rows(f"SELECT {', '.join(f'@@SESSION.{name}' for name in asked)}")
        return zip(asked, map(str, row), strict=True)


def _variable(value: object) -> str:
    return str(int(value)) if isinstance(value, bool | int) else quoted(str(value))


def kept(context: dict[str, Any]) -> dict[str, Any]:
    """The part of a recorded context that holds until it is assigned again, and whether it has the time of
    a statement.
    """
    names = (*_VARIABLES, "database")
    return {name: context[name] for name in names if name in context} | {"timed": "timestamp_us" in context}


def moment(context: dict[str, Any]) -> list[str]:
    """The assignment of the time at which the statement ran, if the context has it."""
    return [f"timestamp={seconds(context['timestamp_us'])}"] if "timestamp_us" in context else []
