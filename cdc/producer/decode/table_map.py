"""Parses a table map event: names, types, charsets and keys of a table as they were when its rows were logged.

Layout: MySQL source documentation, class Table_map_event, with its optional metadata. The leader's information_schema
is not used: the table may have been altered since then.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import escape
from typing import NamedTuple

from cdc.config.filters import Mask
from cdc.config.table_globs import named
from cdc.errors import PromiseError
from cdc.model.charset import bytes_of_character, member_texts
from cdc.producer.binlog.events import TABLE_MAP_NAMES_AT, RawEvent, packed_integer
from cdc.producer.decode.changes import ColumnDetails
from cdc.sql.column_types import character_type, members_type

__all__ = [
    "CHARACTERS",
    "INET4",
    "INET6",
    "UUID",
    "Column",
    "Table",
    "column_details",
    "column_type",
    "has_names",
    "past",
    "table_map",
    "table_name",
]

JSON, ENUM, SET, STRING = 245, 247, 248, 254
VARCHAR_COMPRESSED, BLOB_COMPRESSED = 141, 140  # types of MariaDB
# A table map contains STRING for these types of MariaDB: ``cdc.producer.flavor`` finds out which columns have them.
UUID, INET4, INET6 = 256, 257, 258
_FIELDS = frozenset(range(1, 14))  # the known fields, up to the dimensions of vectors (Optional_metadata_field_type)
# Types whose metadata takes 0, 1 or 2 bytes; a type in none of these lists is refused.
_NO_META = frozenset({1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14})
_ONE_BYTE_META = frozenset({4, 5, 17, 18, 19, 140, 242, 245, 249, 250, 251, 252, 255})
_TWO_BYTE_META = frozenset({15, 16, 141, 246, 247, 248, 253, 254})
_NUMERIC = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})
# The types of columns with a collation in the metadata. In the metadata, VECTOR (242) has the collation binary.
CHARACTERS = frozenset({15, 140, 141, 242, 252, 253, 254})
_INTEGERS = {1: "tinyint", 2: "smallint", 9: "mediumint", 3: "int", 8: "bigint"}
# The text types that a follower's columns have in place of these types, also if the follower's table was created by a
# copy.
_SHOWN_AS_TEXT = {UUID: "char(36)", INET4: "varchar(15)", INET6: "varchar(39)"}
_PLAIN = {4: "float", 5: "double", 10: "date", 13: "year", 242: "vector", JSON: "json", 255: "geometry"}
_WITH_FRACTION = {17: "timestamp", 18: "datetime", 19: "time"}
_SIZES = {1: "tiny", 2: "", 3: "medium", 4: "long"}  # maps the width of a value's length (bytes) to the type's prefix


class Column(NamedTuple):
    """One column: ``type`` is MySQL's field type, ``meta`` is its metadata. An ENUM or SET has ``members``, and
    ``collation`` is the name of their collation; ``equal_members`` is true if some members are equal in this collation.
    ``mask`` is set for a column whose values reach no record; with ``is_gone`` not even its name does.
    """

    name: str
    type: int
    meta: int
    unsigned: bool = False
    charset: str = "binary"
    members: tuple[bytes, ...] = ()
    collation: str = "binary"
    equal_members: bool = False
    mask: Mask | None = None

    @property
    def is_gone(self) -> bool:
        return self.mask is not None and self.mask.is_gone


def column_type(column: Column) -> str:
    """Returns the type of ``column`` as records contain it (``cdc.sql.column_types``)."""
    kind, meta, charset = column.type, column.meta, column.charset
    sign = " unsigned" if column.unsigned else ""
    if kind in _INTEGERS:
        return _INTEGERS[kind] + sign
    if kind == 246:
        return f"decimal({meta >> 8},{meta & 0xFF}){sign}"
    if kind == 16:
        return f"bit({(meta >> 8) * 8 + (meta & 0xFF)})"
    if kind in _WITH_FRACTION:
        return f"{_WITH_FRACTION[kind]}({meta})" if meta else _WITH_FRACTION[kind]
    if kind in (ENUM, SET):
        return members_type("enum" if kind == ENUM else "set", member_texts(column.members, charset), charset)
    if kind in _PLAIN:
        return _PLAIN[kind] + (sign if kind in (4, 5) else "")
    if kind in _SHOWN_AS_TEXT:
        return character_type(_SHOWN_AS_TEXT[kind], "ascii")
    is_binary = charset == "binary"
    if kind in (252, BLOB_COMPRESSED):
        return f"{_SIZES[meta]}blob" if is_binary else character_type(f"{_SIZES[meta]}text", charset)
    name = ("binary" if is_binary else "char") if kind == STRING else "varbinary" if is_binary else "varchar"
    # A compressed value has a byte in front, which the metadata counts.
    size = meta - 1 if kind == VARCHAR_COMPRESSED else meta
    sized = f"{name}({size // bytes_of_character(charset)})"
    return sized if is_binary else character_type(sized, charset)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as one table map describes it; ``key`` is None if the table map contains no primary or unique key.
    ``shown`` are the columns in records.
    """

    database: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None

    @property
    def shown(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.is_gone)


def table_name(event: RawEvent) -> tuple[str, str]:
    """Parses only the names of the database and the table, since the filters need no other field."""
    at = TABLE_MAP_NAMES_AT
    length = event.data[at]
    database = event.data[at + 1 : at + 1 + length].decode("utf-8")
    at += length + 2
    length = event.data[at]
    return database, event.data[at + 1 : at + 1 + length].decode("utf-8")


def table_map(
    event: RawEvent, collations: Mapping[int, tuple[str, str]], *, characters: frozenset[int] = CHARACTERS
) -> Table:
    """Parses a table map; ``collations`` maps the server's collation ids to the names of character set and collation,
    ``characters`` are the types of columns that have a collation.

    Raises PromiseError without full metadata (binlog_row_metadata=MINIMAL) or for an unknown type.
    """
    data = event.data
    database, name = table_name(event)
    at = TABLE_MAP_NAMES_AT + len(database.encode()) + 2 + len(name.encode()) + 2
    count, at = packed_integer(data, at)
    types = list(data[at : at + count])
    length, at = packed_integer(data, at + count)
    where = f"{event.position}, table {database}.{name}"
    metas = _metas(types, data[at : at + length], where)
    optional = _optional(data[at + length + (count + 7) // 8 :])
    if 4 not in optional:
        raise PromiseError(
            "the table map has no column names: binlog_row_metadata is not FULL",
            code="CDC-EVENT-ROW-METADATA",
            where=where,
            hint="on the leader: SET PERSIST binlog_row_metadata = FULL (MariaDB: SET GLOBAL); rows logged before stay "
            'unreadable: while the topic has no record, start again with producer.start = "auto", which copies the '
            f"leader then; else {past(database, name)}",
        )
    if unknown := sorted(optional.keys() - _FIELDS):
        raise PromiseError(f"unknown field {unknown[0]} of a table map", code="CDC-EVENT-UNKNOWN", where=where)
    columns = tuple(_columns(types, metas, optional, collations, characters))
    return Table(database, name, columns, _key(optional, [column.name for column in columns]))


_GEOMETRY, _GEOMETRY_TYPES, _POINT = 255, 7, 1


def column_details(data: bytes) -> ColumnDetails:
    """Parses which columns are NOT NULL, and which have the type POINT, from the ``data`` of a table map event."""
    at = TABLE_MAP_NAMES_AT
    for _ in range(2):
        at += data[at] + 2
    count, at = packed_integer(data, at)
    types = data[at : at + count]
    length, at = packed_integer(data, at + count)
    at += length
    nullable = int.from_bytes(data[at : at + (count + 7) // 8], "little")
    geometries = iter(_integers(_optional(data[at + (count + 7) // 8 :]).get(_GEOMETRY_TYPES, b"")))
    points = {place for place, kind in enumerate(types) if kind == _GEOMETRY and next(geometries, 0) == _POINT}
    return ColumnDetails(frozenset(place for place in range(count) if not nullable >> place & 1), frozenset(points))


def past(database: str, name: str) -> str:
    """Returns the hint that explains how to continue after rows of a table that the leader has logged in an unreadable
    form.
    """
    glob = json.dumps(named(escape(database), escape(name)), ensure_ascii=False)
    return (
        "start cdc-producer PROFILE --copy-unrepeatable, which reads past these rows and copies their table again; or "
        f"leave the table out: add {glob} to filters.exclude_tables. A table that is let in again later is copied"
    )


def has_names(event: RawEvent, collations: Mapping[int, tuple[str, str]]) -> bool:
    """Whether a table map contains the names of the columns."""
    try:
        table_map(event, collations)
    except PromiseError as error:
        return error.code != "CDC-EVENT-ROW-METADATA"
    return True


def _metas(types: list[int], data: bytes, where: str) -> list[int]:
    """Returns each column's metadata. Replaces STRING in ``types`` by the real type if STRING stands for
    another type.
    """
    metas, at = [], 0
    for index, kind in enumerate(types):
        if kind in _NO_META:
            metas.append(0)
        elif kind in _ONE_BYTE_META:
            metas.append(data[at])
            at += 1
        elif kind in _TWO_BYTE_META:
            first, second = data[at], data[at + 1]
            at += 2
            if kind == STRING:
                types[index], meta = _string_type(first, second)
                metas.append(meta)
            else:
                metas.append(first << 8 | second if kind == 246 else first | second << 8)
        else:
            raise PromiseError(f"column {index + 1} has the unknown type {kind}", code="CDC-EVENT-TYPE", where=where)
    return metas


def _string_type(first: int, second: int) -> tuple[int, int]:
    # If a CHAR is longer than 255 bytes, the type byte contains the two high bits of its length, inverted.
    if first & 0x30 != 0x30:
        return first | 0x30, second | ((first & 0x30) ^ 0x30) << 4
    return first, second


def _optional(data: bytes) -> dict[int, bytes]:
    fields, at = {}, 0
    while at < len(data):
        kind = data[at]
        length, at = packed_integer(data, at + 1)
        fields[kind] = data[at : at + length]
        at += length
    return fields


def _integers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = packed_integer(data, at)
        yield value


def _texts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        length, at = packed_integer(data, at)
        yield data[at : at + length]
        at += length


def _member_lists(data: bytes) -> Iterator[tuple[bytes, ...]]:
    at = 0
    while at < len(data):
        count, at = packed_integer(data, at)
        members = []
        for _ in range(count):
            length, at = packed_integer(data, at)
            members.append(data[at : at + length])
            at += length
        yield tuple(members)


def _collations(optional: dict[int, bytes], default_field: int, list_field: int) -> Iterator[int]:
    """Yields the collations of the character columns, one after the other, from a list or from a default with
    exceptions by index.
    """
    if list_field in optional:
        yield from _integers(optional[list_field])
        return
    values = list(_integers(optional.get(default_field, b"\x3f")))
    exceptions = dict(zip(values[1::2], values[2::2], strict=True))
    index = 0
    while True:
        yield exceptions.get(index, values[0])
        index += 1


def _columns(
    types: list[int],
    metas: list[int],
    optional: dict[int, bytes],
    collations: Mapping[int, tuple[str, str]],
    characters: frozenset[int],
) -> Iterator[Column]:
    signs = optional.get(1, b"")
    text_collations = _collations(optional, 2, 3)
    member_collations = _collations(optional, 10, 11)
    set_members, enum_members = _member_lists(optional.get(5, b"")), _member_lists(optional.get(6, b""))
    numeric = 0
    for name, kind, meta in zip(_texts(optional[4]), types, metas, strict=True):
        unsigned, charset, collation = False, "binary", "binary"
        members: tuple[bytes, ...] = ()
        if kind in _NUMERIC:
            unsigned = bool(signs[numeric >> 3] >> (7 - (numeric & 7)) & 1)
            numeric += 1
        elif kind in characters:
            charset, _ = collations[next(text_collations)]
        elif kind in (ENUM, SET):
            charset, collation = collations[next(member_collations)]
            members = next(enum_members if kind == ENUM else set_members)
        yield Column(name.decode("utf-8"), kind, meta, unsigned, charset, members, collation)


def _key(optional: dict[int, bytes], names: list[str]) -> tuple[str, ...] | None:
    """Returns the primary key or, if there is none, the first NOT NULL unique key, which the server logs instead."""
    if 8 in optional:
        return tuple(names[index] for index in _integers(optional[8]))
    if 9 in optional:  # pairs of column and prefix length; the complete columns identify a row too
        return tuple(names[index] for index in list(_integers(optional[9]))[::2])
    return None
