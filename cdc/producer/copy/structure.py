"""Reads the statements that create the leader's databases, tables, routines and views on a follower.

SHOW CREATE returns them as the server stores them. The statements are ordered so that each can be executed: the
follower does not check foreign keys while it executes them, routines come before views that call them, and views after
the tables that they select from.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from graphlib import CycleError, TopologicalSorter
from typing import Any

import pymysql

from cdc.config.filters import FilterChange, Filters
from cdc.errors import UserError
from cdc.producer.binlog.leader import Leader, objects, translated
from cdc.producer.copy.definition import ALL_SHOWN, TableDefinition, identifier, shown_exactly, shown_row
from cdc.producer.copy.selection import base_tables, definitions, require_gtids
from cdc.producer.copy.state import Table
from cdc.producer.decode.changes import Creation, Structure
from cdc.producer.flavor.mariadb_leader import speaks_mariadb
from cdc.producer.flavor.mariadb_statements import creation_for_mysql
from cdc.producer.left_out_columns import names_removed, without_removed
from cdc.service.mysql_connection import connected
from cdc.sql.effects import ANY_DATABASE, Effect
from cdc.sql.statement import classify
from cdc.sql.text import is_lost, readable

__all__ = ["Creations", "Structures", "copied_tables", "creations_of"]

_INVALID_VIEW = 1356
# The text that SHOW CREATE returns is valid in a session with these variables, even if the object was created in a
# session with other variables. For views and routines the collation of the connection matters too, since literals have
# that collation. The client's character set is only the character set of the text, here always UTF-8.
_CONTEXT: dict[str, Any] = {
    "sql_mode": "ALLOW_INVALID_DATES",
    "time_zone": "+00:00",
    "foreign_key_checks": 0,
    "unique_checks": 1,
    "charset": "utf8mb4",
    "collation": "utf8mb4_0900_ai_ci",
    "explicit_defaults_for_timestamp": True,
    "sql_require_primary_key": False,
    "default_table_encryption": False,
}
_SESSION = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00', sql_quote_show_create = 1"
# Error numbers: no such database or table, deadlock, no such routine, a table has taken a view's name, no such trigger,
# no such event.
_CHANGED = frozenset({1049, 1146, 1213, 1305, 1347, 1360, 1539})
_TRIES = 20
_TELL_SECONDS = 30.0
_OF_TABLES = ("Table", "Index", "View")
_HEAD = re.compile(r"CREATE (TABLE|DATABASE) (?!IF NOT EXISTS)")


class Creations:
    """Collects the effects of statements that ran after the last reading of the leader's objects, and that may have
    changed these objects. Pure.
    """

    def __init__(self) -> None:
        self._changed: list[Effect] = []
        self._told: float | None = None
        self.tries = 0

    def note(self, effects: Iterable[Effect], wants_table: Callable[[str, str], bool]) -> bool:
        """Notes a statement; returns whether it may have changed an object that passes ``wants_table``."""
        changed = [effect for effect in effects if _may_pass(effect, wants_table)]
        self._changed += changed
        return bool(changed)

    def ask(self, now: float) -> tuple[Effect, ...]:
        """Begins another try to read the objects; returns the effects since the last try."""
        changed, self._changed = tuple(self._changed), []
        self.tries += 1
        if self._told is None:
            self._told = now
        return changed

    def is_late(self, now: float) -> bool:
        """Whether it is time to log that statements keep changing the objects while they are read."""
        if self._told is None or now < self._told + _TELL_SECONDS:
            return False
        self._told = now
        return True


def _may_pass(effect: Effect, wants_table: Callable[[str, str], bool]) -> bool:
    if effect.name is None or not effect.action.endswith(_OF_TABLES):
        return True
    return wants_table(effect.database, effect.name) or (effect.to is not None and wants_table(*effect.to))


class Structures:
    """Reads the definitions of ``leader``'s objects that pass the filters, repeatedly if needed; ``settings`` are
    pymysql's arguments.

    A table is read again only if a statement has changed it. If each change made it necessary to read all tables again,
    a leader with many tables could never be read completely, since clients may change tables all the time.
    """

    def __init__(self, settings: dict[str, Any], leader: Leader, filters: Filters | FilterChange) -> None:
        self._settings = settings
        self._leader = leader
        self._filters = filters
        self._known: dict[Table, Creation] = {}

    def read(self, changed: Iterable[Effect] = (), *, tries: int = _TRIES) -> Structure:
        """Reads all objects; ``changed`` are the effects of the statements since the last call.

        Triggers and events, which followers only list, are included if our user may see them. Tables whose exact
        definition the leader does not show are left out. Raises UserError if our user may not see a definition, and
        Disconnected.
        """
        require_gtids(self._leader)
        for effect in changed:
            self._forget(effect)
        while True:
            tries -= 1
            tables = copied_tables(self._settings, self._leader, self._filters)
            new = [table for table in tables if table not in self._known]
            found = definitions(self._settings, self._leader.name, new)
            try:
                return _shown_now(self._settings, tables, self._filters, self._known, found)
            except pymysql.MySQLError as error:
                # An object was dropped or changed after it was listed.
                if error.args[0] not in _CHANGED or not tries:
                    raise translated(error, self._leader.name) from None

    def _forget(self, effect: Effect) -> None:
        """Forgets the tables that the statement may have changed, and the tables whose foreign keys refer to them."""
        changed = {(effect.database, effect.name), effect.to}
        names = {identifier(each[1]) for each in changed if each and each[1]}
        for table, creation in list(self._known.items()):
            of_database = effect.name is None and effect.database in (table[0], ANY_DATABASE.database)
            follows = "REFERENCES" in creation.text and any(name in creation.text for name in names)
            if of_database or follows or table in changed:
                del self._known[table]


def copied_tables(settings: dict[str, Any], leader: Leader, filters: Filters | FilterChange) -> list[Table]:
    """Queries which tables a copy of the leader contains. Raises UserError if our user may not see all tables, and
    Disconnected.
    """
    if not objects(settings, name=leader.name).all_seen:
        raise UserError(
            "our user can't see all tables, so a copy could lack some",
            code="CDC-COPY-TABLES-HIDDEN",
            where=leader.name,
            hint="GRANT SELECT ON *.* to it; or copy the leader by hand (docs/deployment.md)",
        )
    return base_tables(settings, leader.name, filters)


def creations_of(
    settings: dict[str, Any], leader: Leader, filters: Filters | FilterChange, tables: list[Table]
) -> Structure:
    """Reads the statements that create ``tables`` and all other objects that pass the filters. Raises UserError and
    Disconnected.
    """
    try:
        return _shown_now(settings, tables, filters, {}, definitions(settings, leader.name, tables))
    except pymysql.MySQLError as error:
        raise translated(error, leader.name) from None


def _shown_now(
    settings: dict[str, Any],
    tables: list[Table],
    filters: Filters | FilterChange,
    known: dict[Table, Creation],
    found: Iterable[TableDefinition],
) -> Structure:
    """Reads the statements that create ``tables`` and all other objects that pass the filters.

    ``found`` are the definitions of the tables whose statements are read now and added to ``known``. The statements of
    the other tables are taken from ``known``.
    """
    # Autocommit is on, so that no table's metadata is locked for longer than a statement.
    with closing(connected(**settings, autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(_SESSION)
        cursor.execute(ALL_SHOWN)
        removal = _Removal(filters.after if isinstance(filters, FilterChange) else filters)
        for table in found:
            if not table.inexact:
                known[table.database, table.name] = removal.of_table(_table(cursor, table))
        invalid: list[Table] = []
        creations = removal.others(_creations(cursor, tables, filters, invalid, known, removal))
        if speaks_mariadb(connection):
            creations = map(creation_for_mysql, creations)
        return Structure(tables, list(creations), invalid, tuple(removal.left_out))


class _Removal:
    """Leaves out the columns that ``filters`` leave out, and the views, routines, triggers and events that name such a
    column (``left_out``).
    """

    def __init__(self, filters: Filters) -> None:
        self._filters = filters
        self.left_out: list[Table] = []

    def of_table(self, creation: Creation) -> Creation:
        """Returns the statement without the columns. Raises UserError if one of them can't be left out."""
        if not self._filters.masks:
            return creation
        effect = creation.effects[0]
        try:
            text = without_removed(creation.text, creation.effects, creation.context, self._filters)
            if text != creation.text and creation.exact is not None:
                raise ValueError("it has bytes that can't be decoded")
        except ValueError as error:
            raise UserError(
                f"a column that is left out can't be left out of the table's definition: {error}",
                code="CDC-MASK-DEFINITION",
                where=f"table {effect.database}.{effect.name}",
                hint="change the definition, mask the column otherwise (filters.mask_columns), or leave the table out "
                "with filters.exclude_tables",
            ) from None
        return creation._replace(text=text or creation.text)

    def others(self, creations: Iterable[Creation]) -> Iterator[Creation]:
        """Yields the statements but those that create an object that names such a column."""
        for creation in creations:
            effect = creation.effects[0]
            if effect.action.endswith(("Procedure", "Function", "Trigger", "Event")) and self.is_named_in(creation):
                self.left_out.append((effect.database, effect.name or ""))
            else:
                yield creation

    def is_named_in(self, creation: Creation) -> bool:
        """Whether the statement names a column that is left out, and its table."""
        return bool(self._filters.masks) and names_removed(
            creation.text, creation.effects, creation.context, self._filters
        )


def _creations(
    cursor: Any,
    tables: Sequence[Table],
    filters: Filters | FilterChange,
    invalid: list[Table],
    known: dict[Table, Creation],
    removal: _Removal,
) -> Iterator[Creation]:
    cursor.execute("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME")
    databases = [row[0] for row in cursor.fetchall() if filters.wants_database(row[0])]
    databases = sorted({*databases, *(database for database, _ in tables)})
    for database in databases:
        yield _creation(_shown(cursor, "DATABASE", (database,), 1), database)
    yield from (known[table] for table in tables if table in known)
    for database in databases:
        if filters.wants_database(database):
            yield from _routines(cursor, database, filters)
    yield from _views(cursor, filters, invalid, removal, missing=set(tables) - known.keys())
    yield from _triggers(cursor, set(tables))
    yield from _events(cursor, filters)


def _routines(cursor: Any, database: str, filters: Filters | FilterChange) -> Iterator[Creation]:
    cursor.execute(
        "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = %s "
        "ORDER BY ROUTINE_TYPE, ROUTINE_NAME",
        (database,),
    )
    for kind, routine in cursor.fetchall():
        _, modes, text, client, collation, default = shown_row(
            cursor, f"SHOW CREATE {kind} {_quoted((database, routine))}"
        )
        if text is None:
            raise _hidden(kind, database, routine, "SHOW_ROUTINE")
        yield from _dropped(kind, (database, routine), filters)
        session = {"sql_mode": modes, "collation": collation, "database_collation": default}
        yield _creation(text, database, session | _spoken(client))


def _views(
    cursor: Any, filters: Filters | FilterChange, invalid: list[Table], removal: _Removal, *, missing: set[Table]
) -> Iterator[Creation]:
    """Reads the views; ``missing`` are tables that are not created. Leaves out invalid views, and adds their names to
    ``invalid``; leaves out those that name columns that are left out."""
    cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS")
    texts = {(row[0], row[1]): row[2] for row in cursor.fetchall() if filters.wants_table(row[0], row[1])}
    views = set(texts)
    needs: dict[Table, set[Table]] = {view: set() for view in views}
    if speaks_mariadb(cursor.connection):
        # MariaDB does not list the tables that a view uses, but names each of them with its database in the view's
        # text.
        usage = [(each, source) for each in views for source in views | missing if _quoted(source) in texts[each]]
    else:
        cursor.execute(
            "SELECT VIEW_SCHEMA, VIEW_NAME, TABLE_SCHEMA, TABLE_NAME FROM information_schema.VIEW_TABLE_USAGE"
        )
        usage = [((row[0], row[1]), (row[2], row[3])) for row in cursor.fetchall()]
    for user, source in usage:
        if user in views and source in views | missing:
            needs[user].add(source)
    for database, view in _in_order(needs):
        if (database, view) in missing:
            continue
        if not missing.isdisjoint(needs[database, view]) or not _is_valid(cursor, (database, view)):
            missing.add((database, view))
            invalid.append((database, view))
            continue
        _, text, _, collation = shown_row(cursor, f"SHOW CREATE VIEW {_quoted((database, view))}")
        creation = _creation(text, database, {"collation": collation})
        if removal.is_named_in(creation):
            missing.add((database, view))
            removal.left_out.append((database, view))
            continue
        yield from _dropped("VIEW", (database, view), filters)
        yield creation


def _triggers(cursor: Any, tables: set[Table]) -> Iterator[Creation]:
    """Reads the definitions of the triggers on ``tables``, in the order in which the triggers fire."""
    cursor.execute(
        "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, TRIGGER_NAME FROM information_schema.TRIGGERS "
        "ORDER BY EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER"
    )
    for database, table, trigger in cursor.fetchall():
        if (database, table) in tables:
            found = shown_row(cursor, f"SHOW CREATE TRIGGER {_quoted((database, trigger))}")
            _, modes, text, client, collation, default, *_ = found
            session = {"sql_mode": modes, "collation": collation, "database_collation": default}
            yield _creation(text, database, session | _spoken(client))


def _events(cursor: Any, filters: Filters | FilterChange) -> Iterator[Creation]:
    cursor.execute("SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS ORDER BY EVENT_SCHEMA, EVENT_NAME")
    for names in cursor.fetchall():
        if filters.wants_database(names[0]):
            found = shown_row(cursor, f"SHOW CREATE EVENT {_quoted(names)}")
            _, modes, zone, text, client, collation, default = found
            session = {"sql_mode": modes, "time_zone": zone, "collation": collation, "database_collation": default}
            yield _creation(text, names[0], session | _spoken(client))


def _dropped(kind: str, names: Table, filters: Filters | FilterChange) -> Iterator[Creation]:
    """Yields a DROP statement if the filters have changed: a follower may still have the object from an earlier time,
    when it passed the filters."""
    if isinstance(filters, FilterChange):
        yield _creation(f"DROP {kind} IF EXISTS {_quoted(names)}", names[0])


def _is_valid(cursor: Any, view: Table) -> bool:
    try:
        cursor.execute(f"SELECT 1 FROM {_quoted(view)} LIMIT 0")
    except pymysql.MySQLError as error:
        if error.args[0] != _INVALID_VIEW:
            raise
        return False
    return True


def _in_order(needs: dict[Table, set[Table]]) -> list[Table]:
    try:
        return list(TopologicalSorter({view: sorted(needs[view]) for view in sorted(needs)}).static_order())
    except CycleError:
        return sorted(needs)


def _shown(cursor: Any, kind: str, names: Sequence[str], column: int) -> str:
    shown = shown_exactly(cursor, f"SHOW CREATE {kind} {_quoted(names)}")[column]
    return _HEAD.sub(r"CREATE \1 IF NOT EXISTS ", shown, count=1)


def _table(cursor: Any, table: TableDefinition) -> Creation:
    text = _shown(cursor, "TABLE", (table.database, table.name), 1)
    for shown, exact in table.respelled:
        text = text.replace(shown, exact, 1)
    return _creation(text, table.database)


def _creation(text: str, database: str, session: dict[str, Any] | None = None) -> Creation:
    context = {"database": database} | _CONTEXT | (session or {})
    ansi_quotes = "ANSI_QUOTES" in context["sql_mode"].split(",")
    backslash_escapes = "NO_BACKSLASH_ESCAPES" not in context["sql_mode"].split(",")
    _, effects = classify(text, database=database, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes)
    exact = text.encode("utf-8", "surrogateescape")
    return Creation(readable(text), effects, context, exact if is_lost(text) else None)


def _spoken(client: str) -> dict[str, Any]:
    """Returns the session setting under which the text of a routine, trigger or event must run: ``binary`` if the
    client that created the object used ``binary``, because the server then stored the text unconverted; otherwise no
    setting.
    """
    return {"charset": client} if client == "binary" else {}


def _quoted(names: Iterable[str]) -> str:
    return ".".join(map(identifier, names))


def _hidden(kind: str, database: str, name: str, privilege: str) -> UserError:
    return UserError(
        f"our user may not see the definition of the {kind.lower()} {database}.{name}",
        code="CDC-COPY-DEFINITION-HIDDEN",
        where="copy of the leader",
        hint=f"GRANT {privilege} ON *.* to it, or leave the database out with the filters",
    )
