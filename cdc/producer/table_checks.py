"""Checks the leader's tables for problems: columns that can't be masked, rows that can't be left out, equal members of
an ENUM or SET, and cascades that are not logged.

The binlog shows only the primary key of a table. The leader is queried for everything else: at the start, at the first
rows of a table, and again after each statement. A column in the binlog that the leader's table no longer has may have
been computed from a masked column, so it needs a mask, too.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from cdc.config.filters import HASH, HASHED_BYTES, HASHED_TEXTS, NULL, Filters, Mask
from cdc.errors import PromiseError, UserError
from cdc.model.charset import member_texts
from cdc.producer.binlog.leader import connected_cursor
from cdc.producer.decode.changes import Refused
from cdc.producer.decode.table_map import Table
from cdc.sql.effects import Effect

__all__ = [
    "UnreadableRows",
    "changed_silently",
    "check_masks",
    "condition_check",
    "condition_problem",
    "mask_check",
    "mask_problem",
    "member_check",
    "parents_with_rows_left_out",
]

_HINT = "mask it otherwise or not at all (filters.mask_columns), or leave the table out with filters.exclude_tables"
MaskOf = Callable[[str], Mask | None]


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    kind: str
    nullable: bool
    expression: str  # the expression of a generated column or of a default; empty if there is none


def mask_check(settings: dict[str, Any], filters: Filters, *, name: str) -> Callable[[Table], None]:
    """Returns a function that raises PromiseError for a table in the binlog whose rows can't be masked; it queries the
    leader ``name`` about tables with masked columns.
    """

    def require(table: Table) -> None:
        mask_of = partial(filters.mask, table.database, table.name)
        columns = [column.name for column in table.columns]
        if not any(map(mask_of, columns)):
            return
        masked = [column for column in table.key or () if mask_of(column)]
        why = f"column {masked[0]} can't be masked: it is in the key" if masked else ""
        if not why:
            with connected_cursor(settings, name) as cursor:
                # A shadow table has become its table where the leader has it no more.
                present = _present(cursor, table.database, filters.names_of(table.name))
                why = mask_problem(cursor, table.database, present, mask_of, logged=columns)
        if why:
            raise PromiseError(
                why, code="CDC-MASK-ROWS-UNFIT", where=f"table {table.database}.{table.name}", hint=_HINT
            )

    return require


def _present(cursor: Any, database: str, names: Sequence[str]) -> str:
    """Returns the first of the tables ``names`` that the leader has; the first one if it has none."""
    for table in names:
        cursor.execute(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s", (database, table)
        )
        if cursor.fetchone():
            return table
    return names[0]


def check_masks(settings: dict[str, Any], filters: Filters, *, name: str) -> list[str]:
    """Raises UserError for the first table of the leader ``name`` that passes the filters and has a column that can't
    be masked as configured. Returns the globs that match no column of the leader.
    """
    if not filters.masks:
        return []
    with connected_cursor(settings, name) as cursor:
        cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS ORDER BY 1, 2")
        columns = list(cursor.fetchall())
        named = {(database, table) for database, table, column in columns
                 if filters.mask(database, table, column) and filters.wants_table(database, table)}  # fmt: skip
        for database, table in sorted(named):
            if why := mask_problem(cursor, database, table, partial(filters.mask, database, table)):
                raise UserError(why, code="CDC-MASK-UNFIT", where=f"table {database}.{table}", hint=_HINT)
    return filters.masks.unused(columns)


def mask_problem(cursor: Any, database: str, table: str, mask_of: MaskOf, *, logged: Sequence[str] = ()) -> str:
    """Returns the reason why a column of the leader's table can't be masked; empty if all can. ``logged`` are the
    columns of the table's rows in the binlog.
    """
    columns = list(_columns(cursor, database, table))
    names = {column.name.casefold() for column in columns}
    if logged and not columns:
        return "the leader has the table no more, so its columns may have been computed from a masked one"
    for name in logged:
        if name.casefold() not in names and mask_of(name) is None:
            return f"column {name} may have been computed from a masked one: the leader's table has it no more"
    uses = list(_uses(cursor, database, table))
    for column in columns:
        mask = mask_of(column.name)
        if mask is not None and (why := _why(column, mask) or _used(column.name, uses, columns, mask_of)):
            return f"column {column.name} can't be masked: {why}"
    if columns and all(_is_gone(mask_of(column.name)) for column in columns):
        return "no column of the table is left"
    return ""


def _is_gone(mask: Mask | None) -> bool:
    return mask is not None and mask.is_gone


def _why(column: _Column, mask: Mask) -> str:
    if mask.mode == HASH and column.kind not in HASHED_TEXTS | HASHED_BYTES:
        return f"only text and bytes are hashed, and it is {column.kind.upper()}"
    if mask.mode == NULL and not column.nullable:
        return "it is NOT NULL"
    return ""


def _used(name: str, uses: Iterable[tuple[str, str]], columns: Iterable[_Column], mask_of: MaskOf) -> str:
    names = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.I)
    for what, expression in uses:
        if names.search(expression):
            return f"it is in {what}"
    is_gone = _is_gone(mask_of(name))
    for other in columns:
        if other.name == name or not names.search(other.expression):
            continue
        mask = mask_of(other.name)
        # A column that is left out can be in no expression on a follower.
        if mask is None or (is_gone and not _is_gone(mask)):
            return f"column {other.name} is computed from it"
    return ""


def _columns(cursor: Any, database: str, table: str) -> Iterator[_Column]:
    cursor.execute(
        "SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, GENERATION_EXPRESSION "
        "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (database, table),
    )
    for name, kind, nullable, default, extra, generated in cursor.fetchall():
        computed = default if "DEFAULT_GENERATED" in extra else generated
        yield _Column(name, kind.lower(), nullable == "YES", computed or "")


_USES = {
    "the unique key": "SELECT CONCAT(INDEX_NAME, ' (', COALESCE(COLUMN_NAME, EXPRESSION), ')') "
    "FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0",
    "the partitioning": "SELECT CONCAT_WS(', ', PARTITION_EXPRESSION, SUBPARTITION_EXPRESSION) "
    "FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND PARTITION_NAME IS NOT NULL",
    "a foreign key": "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND REFERENCED_TABLE_NAME IS NOT NULL",
    "a foreign key of another table": "SELECT REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE "
    "WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s",
    "a CHECK": "SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS JOIN "
    "information_schema.TABLE_CONSTRAINTS USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME) "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
}


def _uses(cursor: Any, database: str, table: str) -> Iterator[tuple[str, str]]:
    """Yields each use of columns, such as a unique key, that masked values could violate: its description, and its
    columns or its expression.
    """
    for what, statement in _USES.items():
        cursor.execute(statement, (database, table))
        for text in {row[0] for row in cursor.fetchall()}:
            yield what, text or ""


# Finds out whether the values of a condition, by which rows are left out, can change without a row in the binlog.

_GENERATED = (
    "SELECT COLUMN_NAME, 'is generated, and changes with other columns' FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COALESCE(GENERATION_EXPRESSION, '') <> ''"
)
_CHANGED_BY_KEYS = (
    "SELECT k.COLUMN_NAME, 'may be changed by a foreign key, which the leader does not log' "
    "FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r "
    "USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME) WHERE k.TABLE_SCHEMA = %s AND k.TABLE_NAME = %s "
    "AND (r.UPDATE_RULE NOT IN ('NO ACTION', 'RESTRICT') OR r.DELETE_RULE = 'SET NULL')"
)
ColumnsOf = Callable[[str, str], frozenset[str]]


def condition_problem(cursor: Any, database: str, table: str, columns: frozenset[str], *, logs_cascades: bool) -> str:
    """Returns the reason why rows of the leader's table can't be left out by a condition on ``columns`` (in lower
    case); empty if they can. ``logs_cascades`` is true if the leader logs the rows that foreign keys change.
    """
    for statement in (_GENERATED,) if logs_cascades else (_GENERATED, _CHANGED_BY_KEYS):
        cursor.execute(statement, (database, table))
        for name, why in cursor.fetchall():
            if name.lower() in columns:
                return f"its rows can't be left out by column {name}, which {why}"
    return ""


def condition_check(
    settings: dict[str, Any], columns_of: ColumnsOf, *, name: str, logs_cascades: bool
) -> Callable[[Table], None]:
    """Returns a function that raises PromiseError for a table in the binlog whose rows can't be left out; it queries
    the leader ``name`` about tables for which ``columns_of`` returns the columns of a condition.
    """

    def require(table: Table) -> None:
        columns = columns_of(table.database, table.name)
        if not columns:
            return
        with connected_cursor(settings, name) as cursor:
            why = condition_problem(cursor, table.database, table.name, columns, logs_cascades=logs_cascades)
        if why:
            raise PromiseError(
                why,
                code="CDC-ROWS-TABLE-UNFIT",
                where=f"table {table.database}.{table.name}",
                hint="leave rows out by another column, start once with --accept-filters, and run cdc-producer PROFILE "
                "--copy DB.TABLE; or leave the table out with filters.exclude_tables",
            )

    return require


def parents_with_rows_left_out(settings: dict[str, Any], filters: Filters, *, name: str, named: "Named") -> list[str]:
    """Returns a text for each foreign key of the leader ``name`` from a table that passes the filters to a table of
    which rows are left out.
    """
    with connected_cursor(settings, name) as cursor:
        cursor.execute(
            "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
            "FROM information_schema.REFERENTIAL_CONSTRAINTS ORDER BY 1, 2, 3, 4"
        )
        keys = [((row[0], row[1]), (row[2], row[3])) for row in dict.fromkeys(cursor.fetchall())]
    return [
        f"{named(*table)} to {named(*parent)}"
        for table, parent in keys
        if filters.wants_table(*table) and filters.wants_table(*parent) and filters.condition(*parent) is not None
    ]


# Finds out whether two members of an ENUM or SET are equal in its collation; a server without strict mode allows such
# members.
#
# A server reads the text of such a member as the first of the equal members, so records can't contain the text. Only
# the server knows which texts are equal, since each collation has its own rules: in utf8mb4_general_ci ß equals s, in
# latin1_swedish_ci ü equals y.

_MOST_ANSWERS = 10_000


def member_check(
    count_different: Callable[[Sequence[str], str, str], int],
) -> Callable[[tuple[bytes, ...], str, str], bool]:
    """Returns a function that decides whether any of the members in a character set and collation are equal.

    ``count_different(texts, charset, collation)`` queries the server, and raises the errors of ``leader.inspect``.
    """

    @lru_cache(maxsize=_MOST_ANSWERS)
    def are_equal(members: tuple[bytes, ...], charset: str, collation: str) -> bool:
        if len(set(members)) < len(members):
            return True
        texts = member_texts(members, charset)
        # If members are not valid text, records contain their numbers.
        if len(members) < 2 or texts is None or collation.endswith(("_bin", "binary")):
            return False
        return count_different(texts, charset, collation) < len(members)

    return are_equal


# Finds foreign keys from a table that passes the filters to a table that they leave out, if the leader changes rows of
# the first table when rows of the second change (as with ON DELETE CASCADE), and does not log that (MySQL before 9.6,
# MariaDB).
#
# A follower gets neither the changes of the table that is left out, nor the changes of the other table's rows.

_QUESTION = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
    "FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE DELETE_RULE NOT IN ('NO ACTION', 'RESTRICT') "
    "OR UPDATE_RULE NOT IN ('NO ACTION', 'RESTRICT') ORDER BY 1, 2, 3, 4"
)
Named = Callable[[str, str], str]
TableName = tuple[str, str]


def changed_silently(settings: dict[str, Any], filters: Filters, *, name: str, named: Named) -> list[str]:
    """Returns a text for each foreign key of the leader ``name`` through which a change of a table that the filters
    leave out, as a whole or in part, also changes rows of a table that passes. The text contains both tables; ``named``
    writes the name of a table.
    """
    return [
        f"{named(*table)} by {named(*parent)}"
        for table, parent in _changing_keys(settings, name)
        if filters.wants_table(*table) and not (filters.wants_table(*parent) and filters.condition(*parent) is None)
    ]


def _changing_keys(settings: dict[str, Any], name: str) -> list[tuple[TableName, TableName]]:
    """Returns the foreign keys of the leader ``name`` that change rows: the tables, each with its parent table."""
    with connected_cursor(settings, name) as cursor:
        cursor.execute(_QUESTION)
        return [((row[0], row[1]), (row[2], row[3])) for row in dict.fromkeys(cursor.fetchall())]


# Decides which rows that can't be read are left out of the stream, because their tables are copied again.
#
# Settings of the leader or of a session can make rows unreadable: ``binlog_row_metadata = MINIMAL``, which is MySQL's
# default, logs no names of columns, ``binlog_row_image = MINIMAL`` logs only some of the columns, and
# ``binlog_row_value_options = PARTIAL_JSON`` logs how documents changed.

_ASK_SECONDS = 5.0
_OF_IMAGES = ("CDC-EVENT-ROW-IMAGE", "CDC-EVENT-PARTIAL-JSON")
_OF_MARIADB = ("CDC-EVENT-ALTERED-TYPE",)
_LOGS_NAMES = "SELECT @@GLOBAL.binlog_row_metadata = 'FULL'"
_LOGS_IMAGES = "@@GLOBAL.binlog_row_image = 'FULL' AND @@GLOBAL.binlog_row_value_options = ''"


class UnreadableRows:
    """Decides for events whose rows can't be read which tables are copied in their place, so that the stream can
    continue.

    If the global settings of the leader ``name`` are the cause, no table is copied and the stream stops: otherwise the
    copy would have to be repeated for ever. If ``logs_cascades`` is false, foreign keys may have changed rows of other
    tables together with the unreadable rows, without a trace in the binlog; these tables are copied, too. If ``images``
    is false, rows that lack columns always stop the stream: MariaDB logs some changes without generated columns,
    whatever its settings are.
    """

    def __init__(
        self, settings: dict[str, Any], filters: Filters, *, name: str, logs_cascades: bool, images: bool
    ) -> None:
        self._codes = {"CDC-EVENT-ROW-METADATA", *(_OF_IMAGES if images else _OF_MARIADB)}
        self._question = f"{_LOGS_NAMES} AND {_LOGS_IMAGES}" if images else _LOGS_NAMES
        self._settings = settings
        self._filters = filters
        self._name = name
        self._logs_cascades = logs_cascades
        self._asked_at = -_ASK_SECONDS
        self._logs_whole_rows = False

    def with_copies(self, refused: Refused) -> Refused:
        """Returns the event with the tables to copy in its place; unchanged if the stream must stop.

        Raises Disconnected if the leader can't be queried.
        """
        tables = [(each.database, each.name) for each in refused.effects if each.action == "SkipTable" and each.name]
        wanted = [(database, table) for database, table in tables if self._filters.wants_table(database, table)]
        if refused.error.code not in self._codes or not wanted or not self._ask():
            return refused
        if not self._logs_cascades:
            wanted = self._with_children(wanted)
        effects = tuple(Effect("SkipTable", *table) for table in wanted)
        return replace(refused, effects=effects, copies=tuple(wanted))

    def _ask(self) -> bool:
        if time.monotonic() - self._asked_at >= _ASK_SECONDS:
            with connected_cursor(self._settings, self._name) as cursor:
                cursor.execute(self._question)
                self._logs_whole_rows = cursor.fetchone() == (1,)
            self._asked_at = time.monotonic()
        return self._logs_whole_rows

    def _with_children(self, tables: list[TableName]) -> list[TableName]:
        keys = _changing_keys(self._settings, self._name)
        found = dict.fromkeys(tables)
        while new := [table for table, parent in keys if parent in found and table not in found]:
            found |= dict.fromkeys(new)
        return [table for table in found if self._filters.wants_table(*table)]
