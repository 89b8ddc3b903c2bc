"""Builds Debezium's messages about statements that change databases and tables. Pure.

A statement has one message; RENAME TABLE and DROP TABLE have one for each table. A table's definition after the
statement is no part of a record, so it is passed in by the caller, or left out if it is not certain.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from cdc.model.names import Uri
from cdc.model.record import Record
from cdc.producer.debezium.message import DebeziumMessage, Heads, rendered
from cdc.producer.debezium.schemas import SOURCE, array, field, struct
from cdc.sql.column_types import shown_members
from cdc.sql.tokens import Span, spans

__all__ = ["SchemaChanges", "ShownColumn", "ShownTable"]

Table = tuple[str, str]
Definition = Callable[[Table], "ShownTable | None"]
SourceOf = Callable[[Record], dict[str, Any]]

_TYPES = {"CreateTable": "CREATE", "AlterTable": "ALTER", "RenameTable": "ALTER", "DropTable": "DROP"}
_DATABASES = frozenset({"CreateDatabase", "AlterDatabase", "DropDatabase"})
_INDEXES = frozenset({"CreateIndex", "DropIndex"})
_BIT, _CHAR, _VARCHAR, _OTHER = -7, 1, 12, 1111
_JDBC = {
    "tinyint": 5, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "year": 4, "decimal": 3, "float": 6,
    "double": 8, "bit": _BIT, "date": 91, "time": 92, "datetime": 93, "timestamp": 2014, "char": _CHAR,
    "varchar": _VARCHAR, "tinytext": _VARCHAR, "text": _VARCHAR, "mediumtext": _VARCHAR, "longtext": _VARCHAR,
    "binary": -2, "varbinary": -3, "tinyblob": 2004, "blob": 2004, "mediumblob": 2004, "longblob": 2004,
    "enum": _CHAR, "set": _CHAR,
}  # fmt: skip
_SHOWN = re.compile(r"(?P<name>[a-z]+)(?:\((?P<numbers>[\d,]+)\))?(?:\(.*\))?(?P<words>[a-z ]*)", re.DOTALL)
_HEAD = re.compile("^(CREATE (?:TABLE|DATABASE) )IF NOT EXISTS ")
_BITS = re.compile("b'([01]*)'")
_EPOCH = "1970-01-01 00:00:00"  # what Debezium writes for CURRENT_TIMESTAMP


class ShownColumn(NamedTuple):
    """A column as information_schema shows it: ``type`` is its COLUMN_TYPE, ``charset`` is set for text, ``default`` is
    None for an expression, and ``is_now`` is true for CURRENT_TIMESTAMP.
    """

    name: str
    type: str
    charset: str | None
    nullable: bool
    numbered: bool
    default: str | None
    is_now: bool = False


class ShownTable(NamedTuple):
    """A table as information_schema shows it; ``key`` are the columns of the key by which rows are found."""

    charset: str | None
    key: tuple[str, ...]
    columns: tuple[ShownColumn, ...]


_optional = {"optional": True}
_COLUMN = struct(
    [
        field("name", "string"), field("jdbcType", "int32"), field("nativeType", "int32", **_optional),
        field("typeName", "string"), field("typeExpression", "string", **_optional),
        field("charsetName", "string", **_optional), field("length", "int32", **_optional),
        field("scale", "int32", **_optional), field("position", "int32"), field("optional", "boolean", **_optional),
        field("autoIncremented", "boolean", **_optional), field("generated", "boolean", **_optional),
        field("comment", "string", **_optional), field("defaultValueExpression", "string", **_optional),
        field("enumValues", array({"type": "string", "optional": False}, optional=True)),
    ],
    optional=False, name="io.debezium.connector.schema.Column", version=1,
)  # fmt: skip
_TABLE = struct(
    [
        field("defaultCharsetName", "string", **_optional),
        field("primaryKeyColumnNames", array({"type": "string", "optional": False}, optional=True)),
        field("columns", array(_COLUMN, optional=False)),
        field("comment", "string", **_optional),
    ],
    optional=True, name="io.debezium.connector.schema.Table", version=1,
)  # fmt: skip
_CHANGE = struct(
    [field("type", "string"), field("id", "string"), field("table", _TABLE)],
    optional=False, name="io.debezium.connector.schema.Change", version=1,
)  # fmt: skip
_KEY = struct(
    [field("databaseName", "string")], optional=False, name="io.debezium.connector.mysql.SchemaChangeKey", version=1
)
_VALUE = struct(
    [
        field("source", SOURCE), field("ts_ms", "int64"), field("databaseName", "string", **_optional),
        field("schemaName", "string", **_optional), field("ddl", "string", **_optional),
        field("tableChanges", array(_CHANGE, optional=False)),
    ],
    optional=False, name="io.debezium.connector.mysql.SchemaChangeValue", version=1,
)  # fmt: skip


class _Change(NamedTuple):
    """A message to be built: its database and text, and the changed tables with the type of their change."""

    database: str
    ddl: str
    tables: tuple[tuple[str, Table], ...] = ()


class SchemaChanges:
    """Builds the messages for the topic ``topic``; ``source_of`` returns the block ``source`` of a record."""

    def __init__(self, topic: str, source_of: SourceOf, *, schemas: bool) -> None:
        self.topic = topic
        self._source_of = source_of
        self._heads = rendered(_KEY, _VALUE) if schemas else Heads()

    def messages(
        self, record: Record, definition: Definition, *, server_id: int, now_ns: int
    ) -> Iterator[DebeziumMessage]:
        """Yields the messages of a statement; none if it changes no database, table or index. ``definition`` returns
        the definition of a table after the statement, None if it is not certain.
        """
        changes = list(_changes(record))
        names = sorted({table[1] for change in changes for _, table in change.tables})
        # As in Debezium, which finds no table for an index or the options of a database.
        unnamed = "" if changes and not _is_of_database(record) else None
        source = self._source_of(record) | {
            "ts_us": record.ts_us // 1000 * 1000, "ts_ns": record.ts_us // 1000 * 1_000_000,
            "snapshot": "true" if record.of_copy else "false", "server_id": server_id,
            "table": ",".join(names) if names else unnamed,
        }  # fmt: skip
        for change in changes:
            value = {
                "source": source | {"db": change.database},
                "ts_ms": now_ns // 1_000_000,
                "databaseName": change.database,
                "schemaName": None,
                "ddl": change.ddl,
                "tableChanges": [_table_change(type_, table, definition) for type_, table in change.tables],
            }
            key = self._heads.of_key(orjson.dumps({"databaseName": change.database}))
            yield DebeziumMessage(self.topic, key, self._heads.of_value(orjson.dumps(value)), [])


def _is_of_database(record: Record) -> bool:
    return any(affect["action"] in ("CreateDatabase", "DropDatabase") for affect in record.affects)


def _changes(record: Record) -> Iterator[_Change]:
    found = [(affect["action"], _names(affect["uri"]), affect.get("to")) for affect in record.affects]
    # A copy creates what followers may have already.
    text = _HEAD.sub(r"\1", record.query) if record.of_copy else record.query
    for action, (database, _), _ in found:
        if action in _DATABASES or action in _INDEXES:
            yield _Change(database, text)
            return
    moved = {old for action, old, _ in found if action == "RenameTable"}
    tables = [
        (_TYPES[action], (_names(to) if to else table), table[0]) for action, table, to in found
        if action in _TYPES and not (action == "AlterTable" and table in moved)
    ]  # fmt: skip
    read = list(spans(text, ansi_quotes="ANSI_QUOTES" in (record.context or {}).get("sql_mode", "")))
    verb = read[0].token.word() if read else ""
    if verb not in ("RENAME", "DROP"):
        if tables:
            yield _Change(tables[0][2], text, tuple((type_, table) for type_, table, _ in tables))
        return
    parts = _renames(text, read) if verb == "RENAME" else [_drop(table, read) for _, table, _ in tables]
    for at, (type_, table, database) in enumerate(tables):
        yield _Change(database, parts[at] if len(parts) == len(tables) else text, ((type_, table),))


def _names(uri: str) -> Table:
    parsed = Uri.parse(uri)
    return parsed.database, parsed.table or ""


def _renames(text: str, read: Sequence[Span]) -> list[str]:
    """Returns a statement for each pair of names in RENAME TABLE."""
    commas = [span for span in read if span.token.kind == "mark" and span.token.text == ","]
    begins = [read[1].end, *(comma.end for comma in commas)]
    ends = [*(comma.start for comma in commas), read[-1].end]
    return [f"RENAME TABLE {text[begin:end].strip()}" for begin, end in zip(begins, ends, strict=True)]


def _drop(table: Table, read: Sequence[Span]) -> str:
    condition = "IF EXISTS " if [span.token.word() for span in read[2:4]] == ["IF", "EXISTS"] else ""
    names = ("`" + name.replace("`", "``") + "`" for name in table)
    return f"DROP TABLE {condition}{'.'.join(names)}"


def _table_change(type_: str, table: Table, definition: Definition) -> dict[str, Any]:
    shown = None if type_ == "DROP" else definition(table)
    id_ = ".".join('"' + name.replace('"', '""') + '"' for name in table)
    return {"type": type_, "id": id_, "table": shown and _table(shown)}


def _table(shown: ShownTable) -> dict[str, Any]:
    return {
        "defaultCharsetName": shown.charset,
        "primaryKeyColumnNames": list(shown.key),
        "columns": [_column(column, at) for at, column in enumerate(shown.columns, 1)],
        "comment": None,
    }


def _column(column: ShownColumn, position: int) -> dict[str, Any]:
    parts = _SHOWN.fullmatch(column.type)
    name, numbers, words = (parts["name"], parts["numbers"], parts["words"]) if parts else (column.type, None, "")
    members = shown_members(column.type) if name in ("enum", "set") else ()
    length, scale = ([int(each) for each in numbers.split(",")] + [None])[:2] if numbers else (None, None)
    if members:
        length = 1 if name == "enum" else 2 * len(members) - 1
    type_name = f"{'geometrycollection' if name == 'geomcollection' else name}{words}".upper()
    return {
        "name": column.name, "jdbcType": _JDBC.get(name, _OTHER), "nativeType": None, "typeName": type_name,
        "typeExpression": type_name, "charsetName": column.charset, "length": length, "scale": scale,
        "position": position, "optional": column.nullable, "autoIncremented": column.numbered,
        "generated": column.numbered, "comment": None, "defaultValueExpression": _default(column),
        "enumValues": [f"'{member}'" for member in members] or None,
    }  # fmt: skip


def _default(column: ShownColumn) -> str | None:
    if column.is_now or column.default is None:
        return _EPOCH if column.is_now else None
    if bits := _BITS.fullmatch(column.default):
        return bits[1]
    return column.default
