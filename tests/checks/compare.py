"""Whether two servers hold the same: every definition and every cell, as the server stores it."""

import re
from collections.abc import Iterable
from typing import Any

import pymysql

from cdc.model.record import Record, Uri
from cdc.sandbox.server.mysql import MySql

# HEX rounds numbers to whole ones, FLOAT shows six digits, and '' may be a member of an ENUM or its error value.
_EXACT = {
    "float": "CAST(CAST({0} AS DOUBLE) AS CHAR)",
    "double": "CAST({0} AS CHAR)",
    "decimal": "CAST({0} AS CHAR)",
    "json": "CONCAT(JSON_TYPE({0}), ' ', %s, ' ', %s, ' ', CAST({0} AS CHAR))",
    "enum": "CONCAT({0} + 0, ' ', {0})",
    "set": "CONCAT(CAST({0} AS UNSIGNED), ' ', {0})",
}
# The text of a document does not tell an INTEGER from a DECIMAL or a DATE from a string: the types of all members do.
_TYPES = "COALESCE((SELECT JSON_ARRAYAGG(JSON_TYPE(v)) FROM JSON_TABLE({0}, '%s' COLUMNS (v JSON PATH '$')) m), '')"
_EXACT["json"] %= (_TYPES % "$**[*]", _TYPES % "$**.*")


_DISCARDED = 1814  # ER_TABLESPACE_DISCARDED


def content(server: MySql, database: str) -> dict[str, Any]:
    """The database's objects: for each its definition, for a table its rows too, sorted, with bytes as hex.

    The rows are None where the table's tablespace is discarded.
    """
    found: dict[str, Any] = {}
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = ''")
        cursor.execute(f"SHOW CREATE DATABASE {quoted(database)}")
        found["its own definition"] = cursor.fetchone()[1]
        cursor.execute(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s", (database,)
        )
        for table, kind in cursor.fetchall():
            cursor.execute(f"SHOW CREATE TABLE {quoted(database)}.{quoted(table)}")
            found[table] = {"definition": _without_counter(cursor.fetchone()[1])}
            if kind == "BASE TABLE":
                found[table]["rows"] = _rows(cursor, database, table)
        cursor.execute(
            "SELECT routine_type, routine_name, routine_definition, definer FROM information_schema.routines "
            "WHERE routine_schema = %s",
            (database,),
        )
        found |= {f"{kind} {name}": (text, definer) for kind, name, text, definer in cursor.fetchall()}
    return found


def in_lower_case(found: dict[str, Any]) -> dict[str, Any]:
    """``content`` with names and definitions in lower case, and the rows as they are."""
    lower: dict[str, Any] = {}
    for name, each in found.items():
        is_table = isinstance(each, dict)
        lower[name.lower()] = each | {"definition": each["definition"].lower()} if is_table else repr(each).lower()
    return lower


def numbers_given_twice(follower: MySql, records: Iterable[Record]) -> list[str]:
    """Tables that would number a new row as the leader has numbered one in ``records``, were the follower the leader.

    The leader's own counter can't be compared: it counts rows, too, that were rolled back and are in no log.
    """
    highest: dict[tuple[str, str | None], dict[str, int]] = {}
    for record in records:
        for affect in record.affects:
            uri = Uri.parse(affect["uri"])
            known = highest.pop((uri.database, uri.table), {})
            if affect["action"] == "RenameTable":
                to = Uri.parse(affect["to"])
                highest[to.database, to.table] = known
        seen = highest.setdefault((record.uri.database, record.uri.table), {})
        for row in record.rows:
            for column, value in zip(record.columns, row.after or (), strict=False):
                number = next(iter(value.values())) if isinstance(value, dict) else 0
                seen[column] = max(seen.get(column, 0), number if isinstance(number, int) else 0)
    if not highest:
        return []
    with follower.root() as connection, connection.cursor() as cursor:
        # Of all databases the server would describe the thousands of columns of its own.
        cursor.execute(
            "SELECT table_schema, table_name, column_name FROM information_schema.columns "
            "WHERE table_schema IN %s AND extra LIKE '%%auto_inc%%'",
            ([database for database, _ in highest],),
        )
        return [
            f"{database}.{table}"
            for database, table, column in cursor.fetchall()
            if _next(cursor, database, table) <= highest.get((database, table), {}).get(column, 0)
        ]


def _next(cursor: Any, database: str, table: str) -> int:
    cursor.execute(f"SHOW CREATE TABLE {quoted(database)}.{quoted(table)}")
    found = re.search(r" AUTO_INCREMENT=(\d+)", cursor.fetchone()[1])
    return int(found[1]) if found else 1


def counters(server: MySql, database: str) -> dict[str, int]:
    """For each table that has one, the number that its next row gets."""
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = %s "
            "AND extra LIKE '%%auto_inc%%'",
            (database,),
        )
        return {name: _next(cursor, database, name) for (name,) in cursor.fetchall()}


def databases(server: MySql) -> list[str]:
    """The users' databases."""
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        own = {"mysql", "sys", "information_schema", "performance_schema", "cdc"}
        return sorted(name for (name,) in cursor.fetchall() if name not in own)


def _rows(cursor: Any, database: str, table: str) -> list[tuple[Any, ...]] | None:
    cursor.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "ORDER BY ordinal_position",
        (database, table),
    )
    cells = [exact_cell(name, kind) for name, kind in cursor.fetchall()]
    try:
        cursor.execute(f"SELECT {', '.join(cells)} FROM {quoted(database)}.{quoted(table)}")
    except pymysql.MySQLError as error:
        if error.args[0] != _DISCARDED:
            raise
        return None
    return sorted(cursor.fetchall(), key=repr)


def exact_cell(name: str, kind: str) -> str:
    """The expression that shows what the server stores in a column of this data type."""
    return f"HEX({_EXACT.get(kind, '{0}').format(quoted(name))})"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _without_counter(definition: str) -> str:
    head, mark, tail = definition.partition(" AUTO_INCREMENT=")
    return head + " " + tail.partition(" ")[2] if mark else definition
