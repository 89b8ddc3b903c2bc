"""Reads a Query event as a statement: its text, its kind, the affected objects, the session variables that it depends
on, and whether followers may execute it although they get other rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cdc.errors import PromiseError
from cdc.model.names import folded
from cdc.model.server_version import makes_column_references
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.changes import Table, passed_over
from cdc.sql.create_table import column_references, follows_the_engine
from cdc.sql.effects import (
    ANY_DATABASE,
    COPIED_AGAIN,
    IMPORTED,
    Effect,
    adds_foreign_keys,
    folded_effect,
    numbered_otherwise,
    with_rows_left_out,
)
from cdc.sql.statement import accounts, changed_by, classify
from cdc.sql.text import StatementText, as_stored, readable, statement_text
from cdc.sql.tokens import excerpt

__all__ = ["LoggedStatement", "logged_statement", "with_copies", "with_row_filters"]

_THREAD_SPECIFIC = 0x4  # a flag of the header: the statement used temporary tables or the number of its session

_OF_UTF8MB4 = "utf8mb4_0900_ai_ci"  # any collation of utf8mb4 would do: only the character set matters

Collations = Mapping[int, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class LoggedStatement:
    """A statement of the binlog. ``cdc.sql.statement.classify`` determines its ``kind``; ``shown`` is its text without
    secrets.

    ``unreadable`` is the reason why the ``text`` can't be sent to followers; else it is empty. ``failed`` is the error
    of a statement that the leader executed only in part. ``changed`` are the effects that the statement may have had,
    according to its text and the log. ``exact`` contains the statement's bytes, if ``text`` is not enough to restore
    them. ``in_innodb`` is true if the log shows that the statement was on a table of InnoDB, and not on a temporary
    table. ``copies`` are the tables that must be copied again after the statement, since followers that execute it get
    other rows than the leader; ``unlike`` is the reason.
    """

    kind: str
    text: str
    database: str
    effects: tuple[Effect, ...]
    context: dict[str, Any]
    shown: str
    unreadable: str
    failed: PromiseError | None
    changed: tuple[Effect, ...]
    exact: bytes | None = None
    in_innodb: bool = False
    copies: tuple[tuple[str, str], ...] = ()
    unlike: str = ""


def logged_statement(
    event: RawEvent, collations: Collations, *, folds_names: bool = False, server: str = ""
) -> LoggedStatement:
    """Parses a Query event; ``collations`` maps the server's collation ids to (character set, collation).

    ``folds_names`` is true if the server stores names in lower case; the server logs statements as they were typed.
    ``server`` is the version of the server that logged the statement; it is empty if unknown.
    """
    query = ev.query(event)
    charset, _ = collations.get(query.variables.get("charset", 0), ("utf8mb4", ""))
    modes = query.variables.get("sql_mode", "").split(",")
    session_bound = bool(ev.header(event.data).event_flags & _THREAD_SPECIFIC)
    quoting: dict[str, Any] = {
        "ansi_quotes": "ANSI_QUOTES" in modes, "backslash_escapes": "NO_BACKSLASH_ESCAPES" not in modes
    }  # fmt: skip
    read = statement_text(query.text, charset, session_bound=session_bound, **quoting)
    quoting["blanks"] = read.blanks
    real = partial(_on_real_table, query.variables)
    kind, effects = classify(read.known, database=query.database, session_bound=session_bound, real=real, **quoting)
    effects = as_stored(effects, read.charset)
    # The server logs ddl_xid if the table is in InnoDB before and after the statement. The server logs
    # auto_increment_increment if its value is not 1.
    if "ddl_xid" not in query.variables or "auto_increment_increment" in query.variables:
        effects = numbered_otherwise(effects)
    if effects and read.misreads_marks:
        effects = (ANY_DATABASE,)
    text = readable(read.known)
    failed = _failed_in_part(query, kind, text, event)
    changed = _changed(query, read.known, quoting) if kind == "dml" else passed_over(effects)
    context = _context(query, event, collations, read) if effects else {}
    if effects:
        context |= _about_foreign_keys(query, effects, text, quoting, server)
    shown = excerpt(text) if effects else accounts(text, **quoting) or excerpt(text)
    found = LoggedStatement(
        kind, text, query.database, effects, context, shown, read.unreadable(effects), failed, changed, read.exact,
        real(effects),
    )  # fmt: skip
    return _folded(found) if folds_names else found


def _changed(query: ev.Query, text: str, quoting: dict[str, Any]) -> tuple[Effect, ...]:
    """Returns the effects that the DML statement ``text`` may have had, according to the databases logged with it."""
    return changed_by(text, database=query.database, databases=query.variables.get("databases", ()), **quoting)


def _failed_in_part(query: ev.Query, kind: str, text: str, event: RawEvent) -> PromiseError | None:
    """Returns the error for a statement that the leader executed only in part; None for other statements."""
    code = query.variables.get("error_code")
    if not code or kind in ("begin", "commit", "rollback"):
        return None
    return PromiseError(
        f"a statement failed on the leader in part (error {code}): {excerpt(text)}",
        code="CDC-STATEMENT-FAILED-IN-PART",
        where=str(event.position),
        hint="what it changed is not known; give the producer a new topic and the follower a fresh copy",
    )


def _about_foreign_keys(
    query: ev.Query, effects: tuple[Effect, ...], text: str, quoting: dict[str, Any], server: str
) -> dict[str, Any]:
    """Returns what the log shows about the foreign keys in a statement: whether the table's engine supports them, and
    whether the leader creates those that are in the definitions of columns.
    """
    found: dict[str, Any] = {}
    if "ddl_xid" in query.variables:
        if adds_foreign_keys(effects, text):
            found["engine"] = "InnoDB"
    elif server and "mariadb" not in server.lower() and follows_the_engine(text, **quoting):
        found["engine"] = "other"
    makes = makes_column_references(server)
    if makes is not None and column_references(text, **quoting):
        found["column_references"] = makes
    return found


def _folded(statement: LoggedStatement) -> LoggedStatement:
    """Converts the names of databases, tables and views in the statement's effects and context to lower case; its text
    stays unchanged."""
    context = statement.context
    if "database" in context:
        context = context | {"database": folded(context["database"])}
    return replace(
        statement,
        database=folded(statement.database),
        effects=tuple(map(folded_effect, statement.effects)),
        changed=tuple(map(folded_effect, statement.changed)),
        context=context,
    )


def _on_real_table(variables: Mapping[str, Any], effects: tuple[Effect, ...]) -> bool:
    """Whether the log shows that a statement changed an InnoDB table, and not a temporary table with the same name.

    On a temporary table, ALTER and the statements on indexes are logged without the number of a DDL transaction, and
    TRUNCATE is logged with the database that it used. For other tables, MySQL 8.0 to 9.7 log TRUNCATE without a
    database.
    """
    truncates = [effect.action for effect in effects] == ["TruncateTable"]
    return "ddl_xid" in variables and not (truncates and "databases" in variables)


def _context(query: ev.Query, event: RawEvent, collations: Collations, read: StatementText) -> dict[str, Any]:
    """Maps the names of session variables to the values that the statement's meaning depends on."""
    context: dict[str, Any] = {"database": query.database}
    for name in (
        "sql_mode", "time_zone", "foreign_key_checks", "unique_checks", "lc_time_names",
        "auto_increment_increment", "auto_increment_offset",
    ):  # fmt: skip
        if name in query.variables:
            context[name] = query.variables[name]
    if "charset" in query.variables:
        context["charset"] = collations[query.variables["charset"]][0]
    for name in ("collation", "server_collation", "database_collation", "default_collation_for_utf8mb4"):
        if name in query.variables:
            context[name] = collations[query.variables[name]][1]
    if context.get("charset", read.charset) != read.charset:
        # The server logged the statement and all its literals in another character set than the session's.
        context |= {"charset": read.charset, "collation": _OF_UTF8MB4}
    for name in ("explicit_defaults_for_timestamp", "sql_require_primary_key", "default_table_encryption"):
        if name in query.variables:
            context[name] = bool(query.variables[name])
    seconds = ev.header(event.data).timestamp
    context["timestamp_us"] = seconds * 1_000_000 + query.variables.get("microseconds", 0)
    return context


# Decides which statements followers may execute although they get other rows than the leader, because the tables are
# then copied again (``producer.on_unrepeatable = "copy"``).
#
# A crash can't separate the record of such a statement from the request for the copy: the state of the copies, which
# lists the table, is committed with the record or before it. The record is marked as the record of a table that is
# being copied, so that consumers accept it.

Columns = Callable[[str, str], frozenset[str]]


def with_row_filters(statement: LoggedStatement, columns: Columns) -> LoggedStatement:
    """Returns the statement; ``unfaithful`` is set in the effects on tables of which followers may lack other rows
    after it than before. ``columns(database, table)`` are the columns, in lower case, by which rows of a table are left
    out.
    """
    modes = statement.context.get("sql_mode", "")
    # If the text is not exact, names of columns in it may be question marks: the statement may change any column.
    text = statement.text if statement.exact is None else ""
    effects = tuple(
        with_rows_left_out(effect, text, found, sql_mode=modes)
        if effect.action == "AlterTable" and (found := columns(effect.database, effect.name or ""))
        else effect
        for effect in statement.effects
    )
    return statement if effects == statement.effects else replace(statement, effects=effects)


_ANY_ORDER = "each server numbers the rows in an order of its own"


def with_copies(statement: LoggedStatement) -> LoggedStatement:
    """Returns the statement with the tables to copy after it. Returns it unchanged if followers get the same rows, or
    if a copy of the table is not enough.

    Only tables of InnoDB can be copied. If the statement discards or imports a tablespace, followers empty the table
    instead: they have no file to import, and a table without its tablespace accepts no rows.
    """
    effects = statement.effects
    doubts = {effect.unfaithful for effect in effects if effect.unfaithful}
    if not statement.in_innodb or statement.unreadable or not doubts <= COPIED_AGAIN:
        return statement
    if [effect.action for effect in effects] == ["AlterTable", "TruncateTable"]:
        return _emptying(statement)
    if not doubts and not any(effect.any_order for effect in effects):
        return statement
    marked = replace(statement, copies=_tables(effects), unlike=next(iter(doubts), _ANY_ORDER))
    if IMPORTED in doubts:
        return _emptying(marked)
    return replace(marked, effects=tuple(effect._replace(unfaithful="") for effect in effects))


def _tables(effects: tuple[Effect, ...]) -> tuple[Table, ...]:
    """Returns the tables that the statement alters, under the names that they have after the statement."""
    new = {(effect.database, effect.name or ""): effect.to for effect in effects if effect.to}
    names = [(effect.database, effect.name or "") for effect in effects if effect.action == "AlterTable"]
    return tuple(new.get(name) or name for name in names)


def _emptying(statement: LoggedStatement) -> LoggedStatement:
    """Returns the TRUNCATE TABLE statement that followers execute instead of the statement."""
    (effect,) = {each._replace(action="TruncateTable", unfaithful="") for each in statement.effects}
    name = ".".join(f"`{part.replace('`', '``')}`" for part in (effect.database, effect.name or ""))
    context = statement.context | {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}
    return replace(statement, text=f"TRUNCATE TABLE {name}", effects=(effect,), context=context, exact=None)
