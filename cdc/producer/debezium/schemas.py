"""Builds the schemas in Debezium's messages, as JsonConverter of Kafka Connect writes them. Pure.

Debezium documents the schema of each type under "Data type mappings" of its MySQL connector.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc.config.debezium import Debezium
from cdc.sql.column_types import ColumnType

__all__ = ["SOURCE", "SchemaColumn", "array", "column_schema", "envelope_schema", "field", "key_schema", "struct"]

Schema = dict[str, Any]

_CONNECT, _TIME = "org.apache.kafka.connect.data", "io.debezium.time"
_INTEGERS = {"tinyint": "int16", "smallint": "int16", "mediumint": "int32", "int": "int32", "bigint": "int64"}
_UNSIGNED = {"tinyint": "int16", "smallint": "int32", "mediumint": "int32", "int": "int64", "bigint": "int64"}
_BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_UNSIGNED_DIGITS = 20  # the largest number of digits of a BIGINT UNSIGNED
_MILLISECONDS = 3  # the largest number of fractional digits that Debezium writes in milliseconds


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """The properties of a column that its schema depends on. ``members`` are those of an ENUM or SET; ``default`` is
    the default value in the form of the column's values in messages, None if the column has none.
    """

    name: str
    type: ColumnType
    nullable: bool
    is_point: bool = False
    members: tuple[str, ...] = ()
    default: Any = None


def _primitive(type_: str, *, optional: bool) -> Schema:
    return {"type": type_, "optional": optional}


def struct(fields: Iterable[Schema], *, optional: bool, name: str, version: int | None = None) -> Schema:
    """Builds the schema of a structure, with its members in the order in which JsonConverter writes them."""
    found: Schema = {"type": "struct", "fields": list(fields), "optional": optional, "name": name}
    return found if version is None else found | {"version": version}


def array(items: Schema, *, optional: bool) -> Schema:
    """Builds the schema of a list whose items have the schema ``items``."""
    return {"type": "array", "items": items, "optional": optional}


def field(name: str, schema: str | Schema, *, optional: bool = False) -> Schema:
    """Builds a field of a structure; ``schema`` is a schema or the name of a simple type, which may be ``optional``."""
    return (_primitive(schema, optional=optional) if isinstance(schema, str) else schema) | {"field": name}


def column_schema(column: SchemaColumn, modes: Debezium) -> Schema:
    """Builds the schema of a column as a field of a key or of a row."""
    build = _BUILD.get(column.type.name, _text)
    found = build(column, modes)
    if column.default is not None:
        found["default"] = column.default
    return found | {"field": column.name}


def _semantic(
    column: SchemaColumn, type_: str, name: str, parameters: Mapping[str, str] | None = None, *, doc: str = ""
) -> Schema:
    found = _primitive(type_, optional=column.nullable) | {"name": name, "version": 1}
    if doc:
        found["doc"] = doc
    return found | {"parameters": dict(parameters)} if parameters else found


def _text(column: SchemaColumn, modes: Debezium) -> Schema:
    return _primitive("string", optional=column.nullable)


def _number(column: SchemaColumn, precision: int, scale: int) -> Schema:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return _semantic(column, "bytes", f"{_CONNECT}.Decimal", parameters)


def _integer(column: SchemaColumn, modes: Debezium) -> Schema:
    name = column.type.name
    if not column.type.unsigned:
        return _primitive(_INTEGERS[name], optional=column.nullable)
    if name == "bigint" and modes.bigint_unsigned_handling_mode == "precise":
        return _number(column, _UNSIGNED_DIGITS, 0)
    return _primitive(_UNSIGNED[name], optional=column.nullable)


def _decimal(column: SchemaColumn, modes: Debezium) -> Schema:
    mode = modes.decimal_handling_mode
    if mode != "precise":
        return _primitive(mode, optional=column.nullable)
    return _number(column, *column.type.numbers)


def _bit(column: SchemaColumn, modes: Debezium) -> Schema:
    (width,) = column.type.numbers or (1,)
    if width == 1:
        return _primitive("boolean", optional=column.nullable)
    return _semantic(column, "bytes", "io.debezium.data.Bits", {"length": str(width)})


def _binary(column: SchemaColumn, modes: Debezium) -> Schema:
    type_ = "bytes" if modes.binary_handling_mode == "bytes" else "string"
    return _primitive(type_, optional=column.nullable)


def _temporal(column: SchemaColumn, modes: Debezium) -> Schema:
    is_connect = modes.time_precision_mode == "connect"
    if column.type.name == "date":
        return _semantic(column, "int32", f"{_CONNECT}.Date" if is_connect else f"{_TIME}.Date")
    if column.type.name == "time":
        if is_connect:
            return _semantic(column, "int32", f"{_CONNECT}.Time")
        return _semantic(column, "int64", f"{_TIME}.MicroTime")
    if is_connect:
        return _semantic(column, "int64", f"{_CONNECT}.Timestamp")
    digits = column.type.numbers[0] if column.type.numbers else 0
    return _semantic(column, "int64", f"{_TIME}.{'Timestamp' if digits <= _MILLISECONDS else 'MicroTimestamp'}")


def _members(column: SchemaColumn, modes: Debezium) -> Schema:
    name = "io.debezium.data.Enum" if column.type.name == "enum" else "io.debezium.data.EnumSet"
    allowed = ",".join(member.replace(",", "\\,") for member in column.members)
    return _semantic(column, "string", name, {"allowed": allowed})


def _geometry(column: SchemaColumn, modes: Debezium) -> Schema:
    srid = field("srid", "int32", optional=True)
    if column.is_point:
        fields = [field("x", "double"), field("y", "double"), field("wkb", "bytes", optional=True), srid]
        name, doc = "io.debezium.data.geometry.Point", "Geometry (POINT)"
    else:
        fields, name, doc = [field("wkb", "bytes"), srid], "io.debezium.data.geometry.Geometry", "Geometry"
    # In Debezium a geometry is optional even in a column that is NOT NULL.
    return struct(fields, optional=column.nullable or not column.is_point, name=name, version=1) | {"doc": doc}


def _vector(column: SchemaColumn, modes: Debezium) -> Schema:
    found = array(_primitive("float", optional=False), optional=column.nullable)
    return found | {"name": "io.debezium.data.FloatVector", "version": 1}


_BUILD: dict[str, Callable[[SchemaColumn, Debezium], Schema]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(_BINARIES, _binary),
    **dict.fromkeys(("date", "time", "datetime"), _temporal),
    **dict.fromkeys(("enum", "set"), _members),
    "decimal": _decimal,
    "bit": _bit,
    "float": lambda column, _: _primitive("float", optional=column.nullable),
    "double": lambda column, _: _primitive("double", optional=column.nullable),
    "timestamp": lambda column, _: _semantic(column, "string", f"{_TIME}.ZonedTimestamp"),
    "year": lambda column, _: _semantic(column, "int32", f"{_TIME}.Year"),
    "json": lambda column, _: _semantic(column, "string", "io.debezium.data.Json"),
    "geometry": _geometry,
    "vector": _vector,
}

_SNAPSHOTS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
SOURCE = struct(
    [
        field("version", "string"),
        field("connector", "string"),
        field("name", "string"),
        field("ts_ms", "int64"),
        {
            "type": "string", "optional": True, "name": "io.debezium.data.Enum", "version": 1,
            "parameters": {"allowed": _SNAPSHOTS}, "default": "false", "field": "snapshot",
        },
        field("db", "string"),
        field("sequence", "string", optional=True),
        field("ts_us", "int64", optional=True),
        field("ts_ns", "int64", optional=True),
        field("table", "string", optional=True),
        field("server_id", "int64"),
        field("gtid", "string", optional=True),
        field("file", "string"),
        field("pos", "int64"),
        field("row", "int32"),
        field("thread", "int64", optional=True),
        field("query", "string", optional=True),
    ],
    optional=False, name="io.debezium.connector.mysql.Source", version=1,
)  # fmt: skip
_BLOCK = struct(
    [field("id", "string"), field("total_order", "int64"), field("data_collection_order", "int64")],
    optional=True, name="event.block", version=1,
)  # fmt: skip


def key_schema(topic: str, columns: Sequence[SchemaColumn], modes: Debezium) -> Schema:
    """Builds the schema of the keys of a table with the key ``columns``."""
    return struct((column_schema(each, modes) for each in columns), optional=False, name=f"{topic}.Key")


def envelope_schema(topic: str, columns: Sequence[SchemaColumn], modes: Debezium) -> Schema:
    """Builds the schema of the values of a table with these ``columns``."""
    row = struct((column_schema(each, modes) for each in columns), optional=True, name=f"{topic}.Value")
    moments = [field(name, "int64", optional=True) for name in ("ts_ms", "ts_us", "ts_ns")]
    parts = [
        field("before", row), field("after", row), field("source", SOURCE), field("transaction", _BLOCK),
        field("op", "string"), *moments,
    ]  # fmt: skip
    return struct(parts, optional=False, name=f"{topic}.Envelope", version=2)
