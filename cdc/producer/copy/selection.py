"""Selects the leader's tables to copy according to globs. Refuses tables that can't be copied, before anything is
written.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

import pymysql

from cdc.config.filters import SYSTEM_DATABASES, FilterChange, Filters
from cdc.config.table_globs import selected
from cdc.errors import UserError
from cdc.producer.binlog.leader import Leader, translated
from cdc.producer.copy.definition import GONE, TableDefinition, read_definition
from cdc.producer.copy.state import Table
from cdc.service.mysql_connection import connected

__all__ = [
    "base_tables",
    "definitions",
    "matching",
    "parents_first",
    "require_copyable",
    "require_gtids",
    "selected_tables",
]

_LISTED = 10


def selected_tables(
    settings: dict[str, Any],
    leader: Leader,
    globs: Sequence[str],
    filters: Filters,
    leave_out: Callable[[TableDefinition], None],
) -> list[Table]:
    """Returns the base tables that match one of ``globs`` (``db.table``) and pass the filters; ``settings`` are
    pymysql's arguments. ``leave_out`` is called with the definition of each of these tables that can't be copied.

    Raises UserError if no table remains, and Disconnected.
    """
    found = definitions(settings, leader.name, matching(settings, leader, globs, filters))
    copied = [table for table in found if table.refusal in (None, GONE)]
    require_gtids(leader)
    if not copied:
        require_copyable(leader, found)
    for table in found:
        if table not in copied:
            leave_out(table)
    return [(table.database, table.name) for table in copied]


def matching(settings: dict[str, Any], leader: Leader, globs: Sequence[str], filters: Filters) -> list[Table]:
    """Returns the base tables that match one of ``globs`` and pass the filters, whether they can be copied or not."""
    tables = selected(base_tables(settings, leader.name, filters), globs, key="--copy")
    if not tables:
        raise UserError(
            f"no table that passes the filters matches {', '.join(globs)}, or our user can't see it",
            code="CDC-COPY-NO-TABLE",
            where="--copy",
            hint="GRANT SELECT ON it to our user, or correct the glob, which is of the form db.table",
        )
    return tables


def base_tables(settings: dict[str, Any], name: str, filters: Filters | FilterChange) -> list[Table]:
    """Queries the base tables of the server ``name`` that pass the filters. They are sorted by name, but a table to
    which a foreign key refers precedes the table with the foreign key: so no follower has all rows of a table without
    the rows to which they refer.

    Raises UserError and Disconnected.
    """
    try:
        with closing(connected(**settings)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
                "WHERE TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE', 'SYSTEM VERSIONED') ORDER BY TABLE_SCHEMA, TABLE_NAME"
            )
            found = [(row[0], row[1]) for row in cursor.fetchall()]
            cursor.execute(
                "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
                "FROM information_schema.REFERENTIAL_CONSTRAINTS"
            )
            references = [((row[0], row[1]), (row[2], row[3])) for row in cursor.fetchall()]
    except pymysql.MySQLError as error:
        raise translated(error, name) from None
    wanted = [table for table in found if table[0] not in SYSTEM_DATABASES and filters.wants_table(*table)]
    return parents_first(wanted, references)


def parents_first(tables: Sequence[Table], references: Iterable[tuple[Table, Table]]) -> list[Table]:
    """Returns ``tables`` in their order, but moves each table behind the tables to which its foreign keys refer. This
    is not possible for all tables if tables refer to one another.

    ``references`` are pairs of a table and the table to which it refers.
    """
    above: dict[Table, set[Table]] = {table: set() for table in tables}
    for table, parent in references:
        if table in above and parent in above:
            above[table].add(parent)
    ordered: dict[Table, None] = {}
    for table in tables:
        waiting, seen = [table], {table}
        while waiting:
            missing = sorted(above[waiting[-1]] - seen - ordered.keys())
            if missing:
                waiting.append(missing[0])
                seen.add(missing[0])
            else:
                ordered[waiting.pop()] = None
    return list(ordered)


def definitions(settings: dict[str, Any], name: str, tables: Sequence[Table]) -> list[TableDefinition]:
    """Reads the definitions of ``tables`` of the server ``name``. Raises UserError and Disconnected."""
    try:
        with closing(connected(**settings, autocommit=True)) as connection:
            return [read_definition(connection, *table) for table in tables]
    except pymysql.MySQLError as error:
        raise translated(error, name) from None


def require_gtids(leader: Leader) -> None:
    """Raises UserError if the leader's GTID settings prevent copying its tables."""
    if not leader.shows_visible:
        raise UserError(
            "tables can only be copied from a leader with GTIDs, whose gtid_executed shows what a SELECT sees",
            code="CDC-COPY-NO-GTIDS",
            where=leader.name,
            hint="that can be done while it runs: SET PERSIST enforce_gtid_consistency = ON, then gtid_mode to "
            "OFF_PERMISSIVE, ON_PERMISSIVE (wait until Ongoing_anonymous_transaction_count is 0) and ON in turn; or "
            "copy the tables by hand (docs/deployment.md)",
        )


def require_copyable(leader: Leader, tables: Sequence[TableDefinition]) -> None:
    """Raises UserError if one of ``tables`` exists and can't be copied."""
    require_gtids(leader)
    refusals = [f"{each.database}.{each.name}: {each.refusal}" for each in tables if each.refusal not in (None, GONE)]
    if refusals:
        more = f"; and {len(refusals) - _LISTED} more" if len(refusals) > _LISTED else ""
        raise UserError(
            f"some tables can't be copied, {len(refusals)} of {len(tables)}: {'; '.join(refusals[:_LISTED])}{more}",
            code="CDC-COPY-IMPOSSIBLE",
            where=leader.name,
            hint="alter them, or leave them out, with the filters or another glob; for a new stream, "
            "producer.start can name the transactions in a copy that you made",
            each=refusals,
        )
