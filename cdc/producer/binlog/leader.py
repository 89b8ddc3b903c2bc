"""Finds the leader among its servers, and queries its settings, grants, GTIDs and binlog files; refuses a leader that
can't be followed faithfully.
"""

import json
import re
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pymysql

from cdc.config.filters import Filters
from cdc.config.profile import Database, Profile, ServerAddress
from cdc.errors import Disconnected, UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.service.asked_at_once import asked_at_once
from cdc.service.mysql_connection import MEND_TLS, TLS_FAILED, connected

__all__ = [
    "Leader",
    "Objects",
    "at_leader",
    "connected_cursor",
    "count_different",
    "different",
    "end_of_binlog",
    "first_known",
    "folds_names",
    "inspect",
    "inspect_with",
    "inspected",
    "missing_grant",
    "not_followed",
    "objects",
    "oldest_table",
    "require_all_logged",
    "settings_problems",
    "translated",
    "unlogged_replica",
    "update_triggers",
    "while_leading",
]

# These errors mean that the server cannot be reached, or refuses us temporarily: it is shutting down, is in offline
# mode, has too many connections or no memory left, or has killed the statement (MySQL manual, "Server Error Message
# Reference").
_UNREACHABLE = frozenset({
    0,  # pymysql's code for a statement on a connection that is already lost
    2002, 2003, 2006, 2013, 2055, 1040, 1041, 1053, 1077, 1079, 1129, 1135, 1152, 1158, 1159, 1160, 1161, 1184, 1203,
    1226, 1317, 1927, 3032, 3168, 3169, 4031,
})  # fmt: skip
_DENIED = frozenset({1044, 1045, 1698})
_MISSING_GRANT = frozenset({1142, 1227})
_SYNTAX_ERROR = 1064
_ANSWER_SECONDS = 10
_NO_BINARY_LOG = 1381
_LOOKED_INTO = 10  # number of binlog files to search: the first files might contain no transaction
_SETTINGS = {
    "log_bin": ("ON", "start the server with --log-bin"),
    "binlog_format": ("ROW", "SET PERSIST binlog_format = ROW"),
    "binlog_row_metadata": ("FULL", "SET PERSIST binlog_row_metadata = FULL"),
    "binlog_row_image": ("FULL", "SET PERSIST binlog_row_image = FULL"),
}
_WHOLE_DOCUMENTS = {
    "binlog_row_value_options": (
        "", "SET PERSIST binlog_row_value_options = '', or set producer.partial_json = \"apply\" in the profile"
    ),
}  # fmt: skip
_NAMES = "lower_case_table_names"
# With the value 2, the default on macOS, the server logs one table under two names: the name from CREATE TABLE, and the
# spelling in the statement that is logged.
_ANY_SPELLING = f"{_NAMES} is 2, with which one table is logged under several names; only a new server can have 0 or 1"
_IDENTITY = (_NAMES, "version", "server_uuid", "server_id", "gtid_mode")


_GLOBAL_TRIGGER = re.compile(r"GRANT (ALL PRIVILEGES|(.*, )?TRIGGER(, .*)?) ON \*\.\* TO ")


@dataclass(frozen=True, slots=True)
class Leader:
    """The server's state at the time of the query. ``logs`` are its binlog files, oldest first, with sizes in bytes.

    ``gtid_on`` is true if the server can send its binlog after a GTID set. ``before_gtids`` is true if the server uses
    GTIDs now, but did not when it wrote its oldest binlog files: the server does not send the transactions without
    GTIDs in these files. ``folds_names`` is true if the server stores names of databases and tables in lower case.
    """

    name: str
    version: str
    server_uuid: str
    server_id: int
    gtid_on: bool
    executed: GtidSet
    purged: GtidSet
    position: Position
    logs: tuple[tuple[str, int], ...]
    collations: dict[int, tuple[str, str]]
    before_gtids: bool = False
    folds_names: bool = False
    session: Any = None  # settings of a MariaDB leader that its events do not contain; None for MySQL

    @property
    def shows_visible(self) -> bool:
        """Whether the server shows which transactions a SELECT sees, so that its tables can be copied: MySQL with
        GTIDs, and any MariaDB."""
        return self.gtid_on or self.session is not None


@dataclass(frozen=True, slots=True)
class Objects:
    """The leader's databases, and its tables and views as (database, name). ``all_seen`` is true if our user sees all
    of them.
    """

    databases: list[str]
    tables: list[tuple[str, str]]
    all_seen: bool


def inspect(
    settings: dict[str, Any], *, name: str, partial_json: bool = False, problems: list[UserError] | None = None
) -> Leader:
    """Queries the server's state; ``settings`` are pymysql's arguments, ``name`` is the server's name in errors.
    ``partial_json`` is true if the server may log partial updates of JSON documents.

    Raises Disconnected if the server cannot be reached, and UserError, which lists everything that must be changed,
    with the SQL that changes it. If ``problems`` is given and the state can be queried nevertheless, the UserError is
    appended to ``problems`` instead.
    """
    with connected_cursor(settings, name) as cursor:
        return inspect_with(cursor, name=name, partial_json=partial_json, problems=problems)


def inspect_with(
    cursor: Any, *, name: str, partial_json: bool, problems: list[UserError] | None, before: Leader | None = None
) -> Leader:
    """Queries the server's state over an open connection; see ``inspect``. ``before`` is the state that the same start
    of the program has found a moment ago.
    """
    error = _not_followed(cursor, name, partial_json)
    return inspected(cursor, error, partial(_ask, before=before), name=name, problems=problems)


def inspected(
    cursor: Any,
    error: UserError | None,
    ask: Callable[[Any, str], Leader],
    *,
    name: str,
    problems: list[UserError] | None,
) -> Leader:
    """Returns the state that ``ask`` finds. Raises ``error`` if it is not None. If ``problems`` is given and the state
    can be queried nevertheless, appends the error to ``problems`` instead."""
    if error is not None:
        if problems is None or not _can_be_asked(cursor):
            raise error
        problems.append(error)
    return ask(cursor, name)


def objects(settings: dict[str, Any], *, name: str) -> Objects:
    """Queries the leader's databases, tables and views. Raises the errors of ``inspect``."""
    with connected_cursor(settings, name) as cursor:
        cursor.execute("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
        databases = [row[0] for row in cursor.fetchall()]
        cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES")
        tables = [(row[0], row[1]) for row in cursor.fetchall()]
    # A user sees the tables on which it has a privilege; it sees mysql.user only with a privilege on all tables.
    return Objects(databases, tables, all_seen=("mysql", "user") in tables)


def oldest_table(settings: dict[str, Any], filters: Filters, *, name: str) -> int | None:
    """Queries the creation time, in seconds since 1970, of the oldest table that passes the ``filters``; None if no
    table passes them. Raises the errors of ``inspect``.

    If an ALTER TABLE rebuilds a table, MySQL reports the time of the rebuild as the table's creation time.
    """
    with connected_cursor(settings, name) as cursor:
        cursor.execute(
            "SELECT TABLE_SCHEMA, TABLE_NAME, UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES "
            "WHERE TABLE_TYPE = 'BASE TABLE' AND CREATE_TIME IS NOT NULL"
        )
        return min((int(at) for *table, at in cursor.fetchall() if filters.wants_table(*table)), default=None)


def folds_names(settings: dict[str, Any], *, name: str) -> bool:
    """Queries whether the server stores names in lower case (``lower_case_table_names = 1``). Raises the errors of
    ``inspect``.
    """
    with connected_cursor(settings, name) as cursor:
        cursor.execute(f"SELECT @@{_NAMES}")
        return bool(cursor.fetchone()[0] == 1)


def update_triggers(settings: dict[str, Any], database: str, table: str, *, name: str) -> list[tuple[str, str]]:
    """Queries the names and the statements of the table's BEFORE UPDATE triggers. Raises the errors of ``inspect``."""
    with connected_cursor(settings, name) as cursor:
        cursor.execute(
            "SELECT TRIGGER_NAME, ACTION_STATEMENT FROM information_schema.TRIGGERS "
            "WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s "
            "AND EVENT_MANIPULATION = 'UPDATE' AND ACTION_TIMING = 'BEFORE'",
            (database, table),
        )
        return [(row[0], row[1]) for row in cursor.fetchall()]


def count_different(settings: dict[str, Any], texts: Sequence[str], charset: str, collation: str, *, name: str) -> int:
    """Queries how many of the ``texts`` are different according to the collation. Raises the errors of ``inspect``."""
    with connected_cursor(settings, name) as cursor:
        return different(cursor, texts, charset, collation)


def different(cursor: Any, texts: Sequence[str], charset: str, collation: str) -> int:
    """Queries over an open connection how many of the ``texts`` are different according to the collation. Raises
    pymysql's errors.
    """
    cursor.execute(
        f"SELECT COUNT(DISTINCT CONVERT(m USING {charset}) COLLATE {collation}) FROM JSON_TABLE(%s, '$[*]' "
        "COLUMNS (m VARCHAR(1000) CHARACTER SET utf8mb4 PATH '$' ERROR ON EMPTY ERROR ON ERROR)) AS texts",
        (json.dumps(texts),),
    )
    return int(cursor.fetchone()[0])


@contextmanager
def connected_cursor(settings: dict[str, Any], name: str) -> Iterator[Any]:
    """Opens a connection to the server ``name``, and yields a cursor. Raises the errors of ``inspect``."""
    try:
        with (
            connected(**settings, read_timeout=_ANSWER_SECONDS, write_timeout=_ANSWER_SECONDS) as connection,
            connection.cursor() as cursor,
        ):
            yield cursor
    except pymysql.MySQLError as error:
        raise translated(error, name) from None


def _not_followed(cursor: Any, name: str, partial_json: bool) -> UserError | None:
    """Returns the error that lists all settings and grants which must be changed first; None if nothing must be
    changed.
    """
    variables = _variables(cursor)
    _require_version(variables["version"], name)
    problems = list(settings_problems(variables, _SETTINGS if partial_json else _SETTINGS | _WHOLE_DOCUMENTS))
    problems += [_ANY_SPELLING] if variables[_NAMES] == "2" else []
    missing = list(_missing_grants(cursor, partial_json))
    # The replica's settings are queried only if no grant is missing, since the query needs the grants.
    return not_followed(name, problems + (missing or list(unlogged_replica(cursor))))


def settings_problems(variables: Mapping[str, str], settings: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yields a text for each of the server's ``variables`` that differs from the wanted ``settings``, with the change
    that is needed."""
    for setting, (wanted, change) in settings.items():
        if variables.get(setting, "") != wanted:
            yield f"{setting} is {variables.get(setting, 'unknown') or 'empty'}; {change}"


def not_followed(name: str, problems: list[str]) -> UserError | None:
    """Returns the error with all ``problems`` of the server ``name``; None if there are no problems."""
    if not problems:
        return None
    return UserError(
        "the leader cannot be followed: " + "; ".join(problems), code="CDC-LEADER-SETTINGS", where=name, each=problems
    )


def _can_be_asked(cursor: Any) -> bool:
    try:
        cursor.execute("SHOW BINARY LOGS")
    except pymysql.MySQLError:
        return False
    return bool(cursor.fetchall())


def _ask(cursor: Any, name: str, *, before: Leader | None = None) -> Leader:
    variables = _variables(cursor)
    if before is not None and (before.server_uuid, before.version) == (variables["server_uuid"], variables["version"]):
        collations = before.collations  # hundreds of rows, which change only with the server's version
    else:
        cursor.execute("SELECT id, character_set_name, collation_name FROM information_schema.collations")
        collations = {number: (charset, collation) for number, charset, collation in cursor.fetchall()}
    cursor.execute("SHOW BINARY LOGS")
    logs = tuple((row[0], int(row[1])) for row in cursor.fetchall())
    # The position may be after commits in flight, whose GTIDs are not executed yet; all executed GTIDs are before it.
    file, offset, only, ignored, executed = first_known(cursor, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")[0]
    require_all_logged(only, ignored, name)
    return Leader(
        name=name,
        version=variables["version"],
        server_uuid=variables["server_uuid"],
        server_id=int(variables["server_id"]),
        gtid_on=variables["gtid_mode"] == "ON",
        executed=GtidSet.parse(executed),
        purged=_purged(cursor),
        position=Position(file, int(offset)),
        logs=logs,
        collations=collations,
        before_gtids=variables["gtid_mode"] == "ON" and _begins_before_gtids(cursor, [file for file, _ in logs]),
        folds_names=variables[_NAMES] == "1",
    )


def _begins_before_gtids(cursor: Any, files: list[str]) -> bool:
    """Whether the first transaction in the binlog ``files`` has no GTID. A file's first transaction is among its first
    events.
    """
    for file in files[:_LOOKED_INTO]:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' LIMIT 5")
        for _, _, kind, *_ in cursor.fetchall():
            if kind.lower() in ("gtid", "gtid_tagged", "anonymous_gtid"):
                return bool(kind.lower() == "anonymous_gtid")
    return False


def require_all_logged(only: str, ignored: str, name: str) -> None:
    """Raises UserError if the server ``name`` logs only the databases in ``only``, or does not log the databases in
    ``ignored``; both are empty if the server logs all databases.
    """
    if only or ignored:
        raise UserError(
            "the leader does not log all databases",
            code="CDC-LEADER-LOGS-PART",
            where=name,
            hint="start it without binlog_do_db and binlog_ignore_db, and use filters in the profile",
        )


def end_of_binlog(cursor: Any) -> Position:
    """Queries the position after the newest event of the server's binlog. Raises pymysql's errors."""
    file, offset, *_ = first_known(cursor, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")[0]
    return Position(file, int(offset))


def _variables(cursor: Any) -> dict[str, str]:
    names = ", ".join(f"'{name}'" for name in (*_SETTINGS, *_WHOLE_DOCUMENTS, *_IDENTITY))
    cursor.execute(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})")
    return dict(cursor.fetchall())


def _purged(cursor: Any) -> GtidSet:
    # SHOW VARIABLES would cut the value at 1024 characters.
    cursor.execute("SELECT @@GLOBAL.gtid_purged")
    return GtidSet.parse(cursor.fetchone()[0])


def _require_version(version: str, name: str) -> None:
    number = re.match(r"\d+", version)
    if number is None or int(number[0]) < 8:
        raise UserError(
            f"the server is MySQL {version}",
            code="CDC-LEADER-VERSION",
            where=name,
            hint="the leader must be MySQL 8.0 or newer",
        )


def _missing_grants(cursor: Any, partial_json: bool) -> Iterator[str]:
    """Finds missing privileges by trying statements that need them. To find them in the output of SHOW GRANTS, this
    program would have to resolve roles and wildcards."""
    probes = {
        "REPLICATION CLIENT": ("SHOW BINARY LOGS",),
        "REPLICATION SLAVE": ("SHOW REPLICAS", "SHOW SLAVE HOSTS"),
    }
    for privilege, statements in probes.items():
        try:
            first_known(cursor, *statements)
        except pymysql.MySQLError as error:
            if error.args[0] == _NO_BINARY_LOG:
                return  # the check of log_bin reports this problem
            if error.args[0] not in _MISSING_GRANT:
                raise
            yield missing_grant(cursor, privilege)
    if partial_json and not _sees_triggers(cursor):
        yield missing_grant(cursor, "TRIGGER")


def missing_grant(cursor: Any, privilege: str) -> str:
    """Returns the text which reports that our user lacks a privilege, with the GRANT statement that grants it."""
    cursor.execute("SELECT CURRENT_USER()")
    user, host = cursor.fetchone()[0].rsplit("@", 1)
    return f"{privilege} is missing; GRANT {privilege} ON *.* TO '{user}'@'{host}'"


def _sees_triggers(cursor: Any) -> bool:
    """Whether the server shows all triggers: it hides the triggers of tables on which the user lacks the privilege
    TRIGGER. No harmless statement fails without this privilege, so trying a statement can't test it.
    """
    cursor.execute("SELECT CURRENT_ROLE()")
    (roles,) = cursor.fetchone()
    cursor.execute("SHOW GRANTS FOR CURRENT_USER()" + ("" if roles == "NONE" else f" USING {roles}"))
    lines = [row[0] for row in cursor.fetchall()]
    # With partial_revokes, a REVOKE line names a database in which the user lacks the privilege.
    return any(_GLOBAL_TRIGGER.match(line) for line in lines) and not any(line.startswith("REVOKE") for line in lines)


def unlogged_replica(cursor: Any) -> Iterator[str]:
    """Yields a problem if the server is a replica whose own binlog lacks the changes that it replicates."""
    cursor.execute("SHOW GLOBAL VARIABLES WHERE variable_name IN ('log_replica_updates', 'log_slave_updates')")
    logs_all = all(value == "ON" for _, value in cursor.fetchall())
    if not logs_all and first_known(cursor, "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"):
        yield "it is a replica whose log_replica_updates is OFF; start it with --log-replica-updates"


def first_known(cursor: Any, *statements: str) -> list[Any]:
    """Executes the first of ``statements`` that this version of the server knows; returns its rows."""
    for statement in statements[:-1]:
        try:
            cursor.execute(statement)
        except pymysql.ProgrammingError as error:
            if error.args[0] != _SYNTAX_ERROR:
                raise
        else:
            return list(cursor.fetchall())
    cursor.execute(statements[-1])
    return list(cursor.fetchall())


def translated(error: pymysql.MySQLError, name: str) -> UserError | Disconnected:
    """Translates pymysql's error about the server ``name``: to Disconnected if the server is away, else to
    UserError."""
    code, text = error.args[0], str(error.args[-1]) or "the connection is closed"
    if code in _UNREACHABLE:
        return Disconnected(
            f"the leader cannot be reached: {text}",
            code="CDC-LEADER-GONE",
            where=name,
            hint="is it running at that address?",
        )
    if code in _DENIED:
        return UserError(
            f"the leader refuses the login: {text}",
            code="CDC-LEADER-REFUSES",
            where=name,
            hint="check database.user and password",
        )
    if code == TLS_FAILED:
        return UserError(
            f"the leader has no such TLS: {text}",
            code="CDC-LEADER-REFUSES",
            where=name,
            hint=MEND_TLS,
        )
    return UserError(f"the leader refuses a statement ({code}): {text}", code="CDC-LEADER-REFUSES", where=name)


# Finds the leader among the servers in the profile key database.hosts: the only server that accepts writes.

_LOOK_SECONDS = 5.0
# These variables, except read_only, identify a server that has two addresses. MariaDB has no server_uuid.
_VARIABLES = (
    "SHOW GLOBAL VARIABLES WHERE variable_name IN ('read_only', 'server_uuid', 'server_uid', 'hostname', 'port')"
)

Events = TypeVar("Events", bound=Sized)


class _Answer(NamedTuple):
    """The answer of a server: ``reason`` is the reason why it is not the leader, empty if it accepts writes. ``server``
    is equal for all addresses of one server.
    """

    reason: str
    server: Hashable = None
    read_only: bool = False


_SILENT = _Answer("it has not answered while another server did")


def at_leader(profile: Profile) -> Profile:
    """Returns the profile with the address of the leader: the only server in database.hosts without read_only. The
    result's ``hosts`` are the other addresses. A profile without database.hosts is returned unchanged.

    Raises Disconnected if no server accepts writes, or several do.
    """
    if not profile.database.hosts:
        return profile
    addresses = profile.database.addresses()
    found = asked_at_once(addresses, _answer, decides=lambda answer: not answer.reason)
    answers = {database: found.get(database, _SILENT) for database in addresses}
    leaders = {answer.server: database for database, answer in reversed(answers.items()) if not answer.reason}
    if len(leaders) == 1:
        (leader,) = leaders.values()
        others = tuple(str(ServerAddress(each.ip_or_host, each.port)) for each in answers if each != leader)
        return replace(profile, database=replace(leader, hosts=others))
    if leaders:
        raise Disconnected(
            f"several servers take writes: {', '.join(map(str, reversed(leaders.values())))}",
            code="CDC-LEADER-SEVERAL",
            where="profile key database.hosts",
            hint="on each one that is not the leader: SET PERSIST super_read_only = ON; the producer then continues",
        )
    reasons = "; ".join(f"{database}: {answer.reason}" for database, answer in answers.items())
    raise Disconnected(
        f"no server takes writes: {reasons}",
        code="CDC-LEADER-NONE",
        where="profile key database.hosts",
        hint="start the leader, or promote a replica: SET PERSIST super_read_only = OFF, SET PERSIST read_only = OFF",
    )


def while_leading(chunks: Iterator[Events], profile: Profile) -> Iterator[Events]:
    """Yields the chunks of the binlog that is read from the server in ``profile`` (``at_leader``).

    A demoted leader keeps its connections: without this check, its silent binlog would be read for ever. Raises
    Disconnected if the server no longer accepts writes, and another server in database.hosts does.
    """
    looked_at = time.monotonic()
    for events in chunks:
        yield events
        # The server is not asked while it sends changes: they must be read anyway, and without delay.
        if not events and profile.database.hosts and time.monotonic() - looked_at > _LOOK_SECONDS:
            _require_leading(profile)
            looked_at = time.monotonic()


def _require_leading(profile: Profile) -> None:
    database = profile.database
    if not _answer(database).read_only:
        return
    try:
        leader = at_leader(profile).database
    except Disconnected:
        return  # the server may soon accept writes again
    if str(leader) != str(database):
        raise Disconnected(
            f"the leader has read_only now, and {leader} takes writes", code="CDC-LEADER-MOVED", where=str(database)
        )


def _answer(database: Database) -> _Answer:
    """Queries whether a server accepts writes. Replicas of the leader have read_only."""
    try:
        with connected_cursor(database.settings(), str(database)) as cursor:
            cursor.execute(_VARIABLES)
            variables = {name.lower(): value for name, value in cursor.fetchall()}
    except (Disconnected, UserError) as error:
        return _Answer(error.what)
    read_only = variables.pop("read_only") != "OFF"
    return _Answer("it has read_only" if read_only else "", tuple(sorted(variables.items())), read_only)
