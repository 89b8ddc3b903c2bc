"""Reads a table's definition for the copy: columns and key as rows events contain them, or why it can't be copied.

All queries run while the table's metadata lock is held, so they see one state of the table. Module ``decode.table_map``
explains which key the server logs.

Since version 9.6 MySQL logs the changes that its foreign keys make, unless ``innodb_native_foreign_keys`` is ON. With
an older leader a chunk may have been read before such a change, and nothing in the stream would show this change: see
``followed``.

The server shows question marks in members of an ENUM or SET for letters that utf8mb3 lacks. Such members are computed
by a recursive query, which reads no rows of the table: its first row is a NULL of the column's type, and the others are
the members' numbers, which that type turns into texts. Before MySQL 9 these rows have another type, so a table with
such members is not copied.
"""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import pymysql

from cdc.config.filters import Mask
from cdc.errors import CdcError, Disconnected, UserError
from cdc.model.charset import text_decoder
from cdc.producer.binlog.leader import different, translated
from cdc.producer.decode.table_cache import columns_json
from cdc.producer.flavor.mariadb_leader import copy_settings, is_mariadb, speaks_mariadb
from cdc.producer.flavor.mariadb_statements import COMPRESSED, OWN_TYPES, ordered_otherwise, refusal_of_column
from cdc.producer.table_checks import member_check
from cdc.sql.column_types import character_type, members_type, shown_members, types_json

__all__ = [
    "ALL_SHOWN",
    "GONE",
    "LOSSY",
    "CopiedColumn",
    "TableDefinition",
    "TableKey",
    "above",
    "exact_members",
    "followed",
    "identifier",
    "read_definition",
    "reading_failed",
    "shown_exactly",
    "shown_row",
    "shown_type",
    "table_keys",
    "table_text",
]

# The character sets with characters that utf8mb3 lacks, or with bytes that are no characters.
LOSSY = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030", "ascii"})
_BMP = "\uffff"


def exact_members(
    cursor: Any, table: str, column: str, *, kind: str, charset: str, shown: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Reads the exact members of a column. Returns None if they do not match the members that the leader has ``shown``.
    ``table`` and ``column`` are quoted names.
    """
    number = "n + 1" if kind == "enum" else "1 << n"
    # CONVERT is not used for ascii: it would return question marks for bytes that are not ASCII.
    value = "e" if charset in ("ascii", "utf8mb4") else "CONVERT(e USING utf8mb4)"
    cursor.execute(f"SET SESSION {copy_settings(cursor.connection).recursion} = {len(shown) + 10}")
    try:
        cursor.execute(
            f"WITH RECURSIVE m (n, e) AS (SELECT 0, t.{column} FROM (SELECT 1) AS d LEFT JOIN {table} AS t "
            f"ON FALSE UNION ALL SELECT n + 1, {number} FROM m WHERE n < {len(shown)}) "
            f"SELECT HEX({value}) FROM m WHERE n > 0 ORDER BY n"
        )
        found = tuple(
            bytes.fromhex(row[0]).decode("ascii" if charset == "ascii" else "utf-8") for row in cursor.fetchall()
        )
    except (pymysql.DataError, TypeError, ValueError):
        return None
    as_shown = tuple("".join("?" if letter > _BMP else letter for letter in each) for each in found)
    return found if as_shown == shown else None


def shown_type(kind: str, full: str, charset: str) -> str:
    """Returns the type name used in records of rows (``decode.table_map.column_type``) for a column with the
    COLUMN_TYPE ``full``.

    ``kind`` is the column's DATA_TYPE in information_schema.
    """
    if kind in OWN_TYPES:
        return character_type(OWN_TYPES[kind], charset)
    if kind in ("enum", "set"):
        return members_type(kind, None if text_decoder(charset) is None else shown_members(full), charset)
    if kind.endswith(("char", "text")):
        return character_type(full, charset)
    if kind.endswith(("point", "linestring", "polygon", "geometry", "geomcollection", "geometrycollection")):
        return "geometry"
    if kind in ("vector", "year", "float", "double") or kind.endswith("int"):
        return f"{kind} unsigned" if "unsigned" in full.split() else kind
    return full.removesuffix(" zerofill")


Table = tuple[str, str]  # database and name
_LOGGED_SINCE = (9, 6)
_ACTIONS = "('CASCADE', 'SET NULL', 'SET DEFAULT')"


def _unlogged_cascades(cursor: Any) -> dict[Table, set[Table]]:
    """Maps each table to the tables from which unlogged changes cascade to it; empty if the server logs all changes."""
    cursor.execute("SHOW GLOBAL VARIABLES WHERE variable_name IN ('version', 'innodb_native_foreign_keys')")
    variables = dict(cursor.fetchall())
    version = tuple(map(int, re.findall(r"\d+", variables["version"])[:2]))
    is_mysql = not is_mariadb(variables["version"])  # MariaDB never logs such changes, whatever its version is
    if is_mysql and version >= _LOGGED_SINCE and variables.get("innodb_native_foreign_keys", "OFF") != "ON":
        return {}
    cursor.execute(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
        "FROM information_schema.REFERENTIAL_CONSTRAINTS "
        f"WHERE UPDATE_RULE IN {_ACTIONS} OR DELETE_RULE IN {_ACTIONS}"
    )
    follows: dict[Table, set[Table]] = {}
    for database, table, above_database, above_table in cursor.fetchall():
        follows.setdefault((database, table), set()).add((above_database, above_table))
    return follows


def followed(cursor: Any, table: "TableDefinition") -> frozenset[Table]:
    """Returns the tables from which unlogged changes may cascade to ``table``.

    The server is queried only about a table with a foreign key: an answer takes it 15 ms with 2 000 such keys.
    """
    if "FOREIGN KEY" not in table.created:
        return frozenset()
    return above((table.database, table.name), _unlogged_cascades(cursor))


def above(table: Table, follows: dict[Table, set[Table]]) -> frozenset[Table]:
    """Returns all tables whose changes may cascade to ``table``, through one foreign key or several."""
    found: set[Table] = set()
    waiting = [table]
    while waiting:
        new = follows.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return frozenset(found)


_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TEMPORAL = frozenset({"date", "time", "datetime", "timestamp", "year"})
_MEMBERS = frozenset({"enum", "set"})
_GEOMETRY = frozenset({
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
    "geometrycollection",
})  # fmt: skip
_IN_KEY = _INTEGERS | _TEXTS | _BINARIES | _TEMPORAL | {"decimal"}
# MariaDB's own types can be copied, but they are not in ``_IN_KEY``: MariaDB orders their values in another way than a
# follower orders the texts of these values. So a table with such a type in its key is copied as a whole.
_KNOWN = _IN_KEY | _MEMBERS | _GEOMETRY | {"float", "double", "bit", "json", "vector", *OWN_TYPES}
# Shows generated invisible primary keys, which servers before 8.0.30 do not support. The other variables change what
# SHOW CREATE TABLE returns: sessions that began before and after a SET GLOBAL would show two definitions of one table.
ALL_SHOWN = (
    "SET SESSION sql_quote_show_create = 1 /*!80011 , show_create_table_verbosity = OFF */ "
    "/*!80018 , show_create_table_skip_secondary_engine = OFF */ "
    "/*!80030 , show_gipk_in_create_table_and_information_schema = ON */"
)
GONE = "the leader has no such table"  # why a table that was dropped or renamed is not copied
_OF_MARIADB = frozenset({"SEQUENCE", "SYSTEM VERSIONED"})  # tables of MariaDB's own kinds; their rows are in the binlog
_ENGINES_OF_MARIADB = frozenset({"Aria", "Columnstore", "CONNECT", "OQGRAPH", "ROCKSDB", "S3", "SPHINX", "SPIDER"})
_MISSING_GRANT = frozenset({1142, 1143})
_NO_TABLE = frozenset({1049, 1146})
_INVALID_VIEW = 1356
_DEADLOCK = 1213  # a deadlock of metadata locks, with a statement that changes the table
_LOCKED = frozenset({1205, _DEADLOCK})
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+(?= |$)")
# The line with the table's options begins with this text. In the lines of partitions, blanks surround the equals sign.
_OPTIONS = ") ENGINE="


@dataclass(frozen=True, slots=True)
class CopiedColumn:
    """One column of a table to copy. ``type`` is MySQL's name of its type, ``digits`` is the number of digits after the
    decimal point or of the fraction of a second.

    ``rounded`` is true for a FLOAT(M,D) or DOUBLE(M,D). ``members`` are the members of an ENUM or SET, empty if records
    contain their numbers instead. ``sql_type`` is the type name used in records. ``mask`` is set for a column whose
    values reach no record.
    """

    name: str
    type: str
    nullable: bool
    unsigned: bool = False
    zerofill: bool = False
    rounded: bool = False
    charset: str = "binary"
    precision: int = 0
    digits: int = 0
    members: tuple[str, ...] = ()
    virtual: bool = False
    collation: str | None = None
    sql_type: str = ""
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table of the leader. ``refusal`` is the reason why the table can't be copied; None if it can be copied.

    ``columns_json`` is part of its records, ``types_json`` is added to the first record. ``created`` is the definition
    that the leader shows; if it shows another definition later, the table was changed. ``key_index`` is the name of the
    key's index. ``whole`` is true if the table has no key or can't be copied in ranges of its key, but can be copied as
    a whole from one snapshot. ``inexact`` is true if the leader does not show the definition exactly. ``respelled`` are
    pairs: a part of ``created`` with question marks, and its exact text, empty if unknown. ``hides_keys`` is true if
    rows of the table are left out by a condition, so that no error may contain the key of a row.
    """

    database: str
    name: str
    columns: tuple[CopiedColumn, ...]
    key: tuple[str, ...]
    key_index: str
    columns_json: str
    created: str
    refusal: str | None = None
    whole: bool = False
    types_json: str = ""
    inexact: bool = False
    respelled: tuple[tuple[str, str], ...] = ()
    hides_keys: bool = False

    @property
    def key_columns(self) -> tuple[CopiedColumn, ...]:
        """The columns of the key, in its order."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    def masked(self, mask_of: Callable[[str], Mask | None]) -> Self:
        """Returns the table with the masks of its columns, without the columns that are left out."""
        columns = tuple(replace(column, mask=mask_of(column.name)) for column in self.columns)
        shown = tuple(column for column in columns if column.mask is None or not column.mask.is_gone)
        return replace(
            self,
            columns=shown,
            columns_json=columns_json([column.name for column in shown], self.key),
            types_json=types_json(column.sql_type for column in shown),
        )


@dataclass(frozen=True, slots=True)
class TableKey:
    """A key from SHOW KEYS. ``columns`` are the names of its columns, None for an expression; ``whole`` is true if no
    column is limited to its first characters."""

    name: str
    columns: tuple[str | None, ...]
    unique: bool
    nullable: bool
    whole: bool


def identifier(name: str) -> str:
    """Quotes the name of a database, table or column."""
    return "`" + name.replace("`", "``") + "`"


def table_text(show_create: str) -> str:
    """Returns the output of SHOW CREATE TABLE without the next AUTO_INCREMENT number, which is no part of a
    definition.

    The number is in the line with the table's options. This is not always the last line: the partitions follow it.
    """
    lines = show_create.split("\n")
    at = max((at for at, line in enumerate(lines) if line.startswith(_OPTIONS)), default=-1)
    lines[at] = _COUNTER.sub("", lines[at], count=1)
    return "\n".join(lines)


def read_definition(connection: Any, database: str, table: str) -> TableDefinition:
    """Reads the definition of ``database.table``; ``connection`` is pymysql's, in utf8mb4, without an open transaction.

    Changes the sql_mode and the time zone of the session. Raises UserError with the name of a missing grant, and
    Disconnected if the leader can't be reached.
    """
    try:
        with connection.cursor() as cursor:
            # A chunk's session has the same time zone, so both show the same defaults of TIMESTAMP columns.
            cursor.execute("SET SESSION sql_mode = '', sql_select_limit = DEFAULT, time_zone = '+00:00'")
            cursor.execute(ALL_SHOWN)
            definition = _read_locked(cursor, database, table, tries=5)
            cursor.execute("COMMIT")
            return definition
    except pymysql.MySQLError as error:
        raise reading_failed(error, database, table, user=_text(connection.user)) from None


def _read_locked(cursor: Any, database: str, table: str, *, tries: int) -> TableDefinition:
    cursor.execute("START TRANSACTION READ ONLY")
    try:
        return _read(cursor, database, table)
    except pymysql.MySQLError as error:
        if error.args[0] != _DEADLOCK or tries <= 1:
            raise
    return _read_locked(cursor, database, table, tries=tries - 1)


def reading_failed(error: pymysql.MySQLError, database: str, table: str, *, user: str) -> CdcError:
    """Translates pymysql's error for a statement that reads the table; the result names a missing grant."""
    where = f"{database}.{table}"
    if error.args[0] in _LOCKED:
        return Disconnected(
            "a table that is to be copied is locked on the leader",
            code="CDC-COPY-TABLE-LOCKED",
            where=where,
            hint="is it being altered?",
        )
    if error.args[0] not in _MISSING_GRANT:
        return translated(error, where)
    return UserError(
        f"the leader's user may not read a table that is to be copied: {error.args[-1]}",
        code="CDC-LEADER-SELECT-GRANT",
        where=where,
        hint=f"GRANT SELECT ON {identifier(database)}.{identifier(table)} TO '{user}', with its host",
    )


def _lock(cursor: Any, full_name: str) -> bool:
    """Takes the table's metadata lock, which the transaction holds until it ends; returns False if there is no such
    table."""
    try:
        cursor.execute(f"SELECT 1 FROM {full_name} LIMIT 0")
    except pymysql.MySQLError as error:
        if error.args[0] in _NO_TABLE:
            return False
        if error.args[0] != _INVALID_VIEW:
            raise
    return True


def _read(cursor: Any, database: str, table: str) -> TableDefinition:
    full_name = f"{identifier(database)}.{identifier(table)}"
    if not _lock(cursor, full_name):
        return _refused(database, table, GONE)
    cursor.execute(
        "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        (database, table),
    )
    kind, engine = cursor.fetchone() or (None, None)
    if kind in _OF_MARIADB:
        return replace(_refused(database, table, f"it is a {kind} of MariaDB"), inexact=True)
    if kind is not None and kind != "BASE TABLE":
        return _refused(database, table, f"it is no table but a {kind}")
    # The server refuses SHOW CREATE TABLE to a user with grants on only some columns: such a user would not see the
    # other columns.
    created = table_text(shown_exactly(cursor, f"SHOW CREATE TABLE {full_name}")[1])
    refusals: list[str] = []
    respelled: list[tuple[str, str]] = []
    columns = tuple(_columns(cursor, database, table, refusals, respelled))
    own = _own_columns(cursor, database, table)
    own += _own_partitions(columns, created)
    refusals += own
    inexact = bool(own) or engine in _ENGINES_OF_MARIADB or not all(exact for _, exact in respelled)
    key = _chosen_key(table_keys(cursor, full_name), {column.name for column in columns if column.virtual})
    names = tuple(name or "" for name in key.columns) if key else ()
    if engine != "InnoDB":
        refusals.insert(0, f"its engine is {engine}, whose rows can't be read as of one moment")
    types = {column.name: column.type for column in columns}
    # A key on the first characters of a column orders rows differently than the column, so the table is copied as a
    # whole.
    whole = any(types.get(name) not in _IN_KEY for name in names or ("",)) or not (key and key.whole)
    if not created.isascii() and created != created.encode(errors="replace").decode():
        refusals.append("its definition has a literal, such as a default, whose bytes are not UTF-8")
        inexact = True
    shown = columns_json([column.name for column in columns], names)
    index = key.name if key else ""
    told = types_json(column.sql_type for column in columns)
    refusal = "; ".join(refusals) or None
    return TableDefinition(
        database, table, columns, names, index, shown, created, refusal, whole, told, inexact, tuple(respelled)
    )  # fmt: skip


def _own_partitions(columns: Sequence[CopiedColumn], created: str) -> list[str]:
    """Returns the reason why a table can't be created on a follower, if MariaDB's order of UUID or INET values decides
    about its partitions."""
    if any(column.type in OWN_TYPES for column in columns) and ordered_otherwise(created):
        return ["its partitions are in MariaDB's order of UUID or INET, which MySQL does not have"]
    return []


def _own_columns(cursor: Any, database: str, table: str) -> list[str]:
    """Returns the reasons why columns of types that only MariaDB has can't be copied; empty for a MySQL leader."""
    if not speaks_mariadb(cursor.connection):
        return []
    cursor.execute(
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE FROM information_schema.COLUMNS "
        "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (database, table),
    )
    found = [refusal_of_column(name, kind.lower(), full) for name, kind, full in cursor.fetchall()]
    return [refusal for refusal in found if refusal is not None]


def shown_exactly(cursor: Any, statement: str) -> list[str]:
    """Reads the row of a SHOW CREATE statement without conversion: a server that converts it shows question marks for
    characters in expressions that utf8mb3 lacks."""
    cursor.execute("SET SESSION character_set_results = NULL")
    try:
        return shown_row(cursor, statement)
    finally:
        # Restores the setting also after a deadlock, since the connection is used again.
        with suppress(pymysql.MySQLError):
            cursor.execute("SET SESSION character_set_results = utf8mb4")


def shown_row(cursor: Any, statement: str) -> list[Any]:
    """Reads the row of a SHOW CREATE statement; bytes that are not UTF-8 become lone surrogates."""
    # pymysql must not decode the result, since it may contain bytes that are not UTF-8: literals in another character
    # set, and texts that a client with the character set ``binary`` sent.
    cursor.connection.use_unicode = False
    try:
        cursor.execute(statement)
        return [_text(each) for each in cursor.fetchone()]
    finally:
        cursor.connection.use_unicode = True


def _text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _refused(database: str, table: str, why: str) -> TableDefinition:
    return TableDefinition(database, table, (), (), "", "", "", why)


def _columns(
    cursor: Any, database: str, table: str, refusals: list[str], respelled: list[tuple[str, str]]
) -> Iterator[CopiedColumn]:
    cursor.execute(
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, "
        "NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, EXTRA FROM information_schema.COLUMNS "
        "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (database, table),
    )
    for name, kind, full, nullable, charset, collation, precision, scale, fraction, extra in cursor.fetchall():
        kind, full = kind.lower(), full.replace(f" {COMPRESSED}", "") if kind.lower() not in _MEMBERS else full
        charset = "ascii" if kind in OWN_TYPES else charset
        if kind not in _KNOWN:
            refusals.append(f"column {name} has the type {kind}, which is not copied")
        words = full.split() if kind not in _MEMBERS else []
        members: tuple[str, ...] = ()
        if kind in _MEMBERS:
            exact = _exact_type(cursor, (database, table, name), kind, full, charset or "binary")
            if exact != full:
                respelled.append((_part(name, full), _part(name, exact) if exact else ""))
            if not exact:
                refusals.append(f"column {name} has a member with a question mark, or a character that is shown as one")
            full = exact or full
            members = shown_members(full)
            members = members if _are_texts(cursor, kind, members, charset or "binary", collation or "binary") else ()
        yield CopiedColumn(
            name, kind, nullable == "YES", "unsigned" in words, "zerofill" in words,
            kind in ("float", "double") and "," in full, charset or "binary",
            precision or 0, (fraction if kind in _TEMPORAL else scale) or 0, members, "VIRTUAL GENERATED" in extra,
            collation, shown_type(kind, full, charset or "binary"),
        )  # fmt: skip


def _exact_type(cursor: Any, column: tuple[str, str, str], kind: str, full: str, charset: str) -> str:
    """Finds the exact type of an ENUM or SET column, whose type ``full`` may contain question marks; empty if that
    fails.
    """
    if "?" not in full or charset not in LOSSY:
        return full
    database, table, name = map(identifier, column)
    shown = shown_members(full)
    members = exact_members(cursor, f"{database}.{table}", name, kind=kind, charset=charset, shown=shown)
    return "" if members is None else full if members == shown else f"{kind}({','.join(map(_quoted, members))})"


def _part(name: str, full: str) -> str:
    """Returns the beginning of a column's line in the output of SHOW CREATE TABLE."""
    return f"\n  {identifier(name)} {full}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _are_texts(cursor: Any, kind: str, members: tuple[str, ...], charset: str, collation: str) -> bool:
    """Whether records contain the members as text instead of their numbers, see ``decode.row_codegen``."""
    if text_decoder(charset) is None or (kind == "set" and "" in members):
        return False
    # The members are compared in utf8mb4, since they were read in utf8mb4, whatever the column's character set is.
    are_equal = member_check(lambda texts, _, order: different(cursor, texts, charset, order))
    return not are_equal(tuple(member.encode() for member in members), "utf8mb4", collation)


def table_keys(cursor: Any, full_name: str) -> list[TableKey]:
    """Reads the table's keys in the server's order."""
    cursor.execute(f"SHOW KEYS FROM {full_name}")
    titles = [title[0] for title in cursor.description]
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in cursor.fetchall():
        part = dict(zip(titles, row, strict=True))
        parts.setdefault(part["Key_name"], []).append(part)
    return [
        TableKey(
            name,
            tuple(part["Column_name"] for part in found),
            unique=not int(found[0]["Non_unique"]),
            nullable=any(part["Null"] for part in found),
            whole=all(part["Sub_part"] is None for part in found),
        )
        for name, found in parts.items()
    ]


def _chosen_key(keys: Sequence[TableKey], virtual: Container[str | None]) -> TableKey | None:
    """Chooses the key that the server logs: the primary key, else the first unique key of whole columns without NULLs.

    ``virtual`` are the names of virtual columns: the server chooses no key with a virtual column.
    """
    for key in keys:
        if key.name == "PRIMARY":
            return key
    for key in keys:
        named = not any(name is None or name in virtual for name in key.columns)
        if key.unique and not key.nullable and key.whole and named:
            return key
    return None
