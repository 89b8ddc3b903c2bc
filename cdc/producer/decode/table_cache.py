"""Decodes rows events to JSON text, and keeps the table maps that rows events refer to by table id.

This module and module row_codegen are the hot path of decoding. Facts that are the same for all events of a table are
computed once and cached; the cache's key is the bytes of the table map without the table id. Everything known about a
table comes from these bytes, so that the cache never returns another table's description. A table id has no meaning
beyond its transaction.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from struct import error as StructError

from cdc.config.filters import Mask
from cdc.errors import PromiseError
from cdc.model.client_text import decoded
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import (
    HEADER_BYTES,
    ROWS_EXTRA_AT,
    ROWS_EXTRA_LENGTH_BYTES,
    ROWS_FLAGS_AT,
    TABLE_ID,
    TABLE_ID_BYTES,
    RawEvent,
)
from cdc.producer.binlog.packets import SimpleTransaction, rows_event
from cdc.producer.decode.changes import ColumnDetails, RowDecoder, Rows, ShapeCache, TableShape
from cdc.producer.decode.row_codegen import large_column, row_decoder, row_decoders
from cdc.producer.decode.row_selection import selected_rows
from cdc.producer.decode.table_map import (
    CHARACTERS,
    ENUM,
    JSON,
    SET,
    Table,
    column_details,
    column_type,
    past,
    table_map,
    table_name,
)
from cdc.producer.large_rows import LargeColumn, large_rows
from cdc.sql.column_types import types_json
from cdc.sql.effects import ANY_DATABASE, Effect
from cdc.sql.row_condition import Matches, RowCondition

__all__ = [
    "AllowDifferences",
    "ConditionOf",
    "EqualMembers",
    "OwnTypes",
    "RequireColumns",
    "TableCache",
    "columns_json",
]

AllowDifferences = Callable[[str, str, Sequence[str]], None]
EqualMembers = Callable[[tuple[bytes, ...], str, str], bool]
RequireColumns = Callable[[Table], None]
OwnTypes = Callable[[Table], Mapping[int, int] | None]
ConditionOf = Callable[[str, str], RowCondition | None]
_OPERATIONS = {
    et.WRITE_ROWS: "Add", et.UPDATE_ROWS: "Update", et.DELETE_ROWS: "Delete", et.PARTIAL_UPDATE_ROWS: "Update",
}  # fmt: skip
_STATEMENT_END = 0x01
# The flags that a rows event may have: end of a statement, foreign key checks off, unique checks off, complete rows,
# all rows that foreign keys changed are logged.
_KNOWN_FLAGS = 0x1F
_MOST_OPEN = 10_000  # the most tables in ``TableCache._asked``
_SHAPES_BYTES = 64_000_000  # bytes; 10 000 tables of ten columns with few rows need half of this
_SHAPE_BYTES, _COLUMN_BYTES, _MEMBERS_BYTES = 1_000, 90, 2_000  # estimated bytes per shape, per column, per ENUM or SET
_COMPILED_BYTES = 1_000  # size of a compiled decoder per column and image, in bytes
_SAME_DECODER = {et.WRITE_ROWS: (et.WRITE_ROWS, et.DELETE_ROWS)}
_DESCRIPTION = slice(HEADER_BYTES + TABLE_ID_BYTES, None)  # the part of a table map that describes the table
_BEFORE_DESCRIPTION = bytes(HEADER_BYTES + TABLE_ID_BYTES)
_new = tuple.__new__  # the constructor Rows(…) takes twice as long
_UNKNOWN = TableShape("", "", "", {}, 0)


class TableCache:
    """Keeps the tables of one leader by the table ids in its events.

    ``wants_table(database, table)`` is called once per table map: the rows of tables that it rejects are never decoded.
    ``collations`` maps the server's collation ids to the names of character set and collation.
    ``allow_differences(database, table, columns)`` is called before differences are applied to documents of a table
    with these JSON columns; it raises PromiseError if differences must not be applied. ``equal_members(members,
    charset, collation)`` returns whether some members of an ENUM or SET are equal. ``require_columns(table)`` is called
    once per table map of a table that passes the filters; it raises PromiseError for columns whose rows can't be
    replicated exactly. ``own_types(table)`` queries the leader for columns whose types the table map leaves open; it
    returns None if there are none, else maps the numbers of columns to their types. It is called again after each
    statement, and if the table has another id: the same table map may then describe other types. ``characters`` are the
    types of columns with a collation. ``mask(database, table, column)`` returns how a column is masked; it is None if
    no column is. ``condition(database, table)`` returns the condition of the rows that pass the filters; None if all
    rows of the table pass. ``filtered`` counts the rows events of tables that do not pass the filters.
    """

    def __init__(
        self,
        *,
        wants_table: Callable[[str, str], bool],
        collations: Mapping[int, tuple[str, str]],
        allow_differences: AllowDifferences,
        equal_members: EqualMembers,
        require_columns: RequireColumns = lambda _: None,
        own_types: OwnTypes = lambda _: None,
        characters: frozenset[int] = CHARACTERS,
        mask: Callable[[str, str, str], Mask | None] | None = None,
        condition: ConditionOf = lambda *_: None,
    ) -> None:
        self._wants_table = wants_table
        self.collations = collations
        self._allow_differences = allow_differences
        self._equal_members = equal_members
        self._require_columns = require_columns
        self._own_types = own_types
        # The tables about which ``own_types`` has queried the leader. The description of each table is mapped to the
        # table's id at that time and its names. After a statement on the table, the id is replaced by an id that no
        # table has.
        self._asked: dict[bytes, tuple[bytes, tuple[str, str]]] = {}
        self._characters = characters
        self._mask = mask
        self._condition = condition
        self._has_conditions = False  # whether a table with a condition was seen
        self._allowed: set[tuple[str, str, tuple[str, ...]]] = set()
        # Maps table ids to shapes, and to None for a table that does not pass the filters.
        self._by_id: dict[bytes, TableShape | None] = {}
        self._shapes = ShapeCache(_SHAPES_BYTES)
        self.filtered = 0

    def filter_by(self, wants_table: Callable[[str, str], bool], condition: ConditionOf | None = None) -> None:
        """Sets other filters; if ``condition`` is None, the conditions of rows stay. The caller must call this between
        two transactions.
        """
        self._wants_table, self._shapes = wants_table, ShapeCache(_SHAPES_BYTES)
        self._condition = condition or self._condition
        self._by_id.clear()

    def forget_ids(self) -> None:
        """Forgets all table ids; to be called when a transaction begins, since the server logs the table maps of a
        statement before its rows.

        After a restart of the server, the same id means another table. A table also gets another id when the server
        closes and opens it again (after FLUSH TABLES, or if too many tables are open).
        """
        self._by_id.clear()

    def forget_allowed(self, effects: Sequence[Effect] = ()) -> None:
        """Forgets the tables for which ``allow_differences`` has succeeded. The decoder calls this for each statement,
        since the statement may have created a trigger or renamed a table. If columns are masked or rows are left out,
        ``require_columns`` is called again for all tables, since the statement may have changed their keys or their
        generated columns. ``own_types`` is called again for the tables in the statement's ``effects``, or for all if
        there are none.
        """
        self._allowed.clear()
        if self._asked:
            self._forget_asked(effects)
        if self._mask is not None or self._has_conditions:
            self._shapes = ShapeCache(_SHAPES_BYTES)

    def _forget_asked(self, effects: Sequence[Effect]) -> None:
        """Forgets the types for which the leader was queried, of the tables that a statement may have changed: all, if
        its effects are not known.
        """
        if len(self._asked) > _MOST_OPEN:
            self._asked = {}
            self._shapes = ShapeCache(_SHAPES_BYTES)
        all_of_them = not effects or any(effect.name is None for effect in effects)
        changed = {(each.database, each.name) for each in effects} | {each.to for each in effects}
        for description, (_, names) in self._asked.items():
            if all_of_them or names in changed:
                self._asked[description] = b"", names

    def map(self, event: RawEvent) -> None:
        """Adds a table map. Raises PromiseError for a table whose rows can't be replicated exactly."""
        data = event[1]
        description, number = data[_DESCRIPTION], data[TABLE_ID]
        try:
            shape = self._shapes[description]
            if self._asked and self._asked.get(description, (number, ()))[0] != number:
                shape = self._shape(event, description)
                self._shapes.add(description, shape)
        except KeyError:
            shape = self._shape(event, description) if self._wants_table(*table_name(event)) else None
            self._shapes.add(description, shape)
        self._by_id[number] = shape

    def _table(self, event: RawEvent, own: Mapping[int, int] | None = None) -> Table:
        """Parses a table map; ``own`` are the types of columns that it leaves open."""
        table = table_map(event, self.collations, characters=self._characters)
        if own:
            columns = tuple(column._replace(type=own.get(at, column.type)) for at, column in enumerate(table.columns))
            table = replace(table, columns=columns)
        columns = tuple(
            column._replace(equal_members=self._equal_members(column.members, column.charset, column.collation))
            if column.members
            else column
            for column in table.columns
        )
        if self._mask is not None:
            mask = partial(self._mask, table.database, table.name)
            columns = tuple(column._replace(mask=mask(column.name)) for column in columns)
        return replace(table, columns=columns)

    def _shape(self, event: RawEvent, description: bytes) -> TableShape:
        table = self._table(event)
        names = columns_json([column.name for column in table.shown], table.key)
        shape = TableShape(table.database, table.name, names, {}, len(table.columns))
        try:
            self._require_columns(table)
            own = self._own_types(table)
            if own is not None:
                self._asked[description] = event.data[TABLE_ID], shape.names
                table = self._table(event, own)
            shape.matches = self._matches(table)
            shape.decoders = row_decoders(table, compile_for=partial(self._compile, shape, description, own))
            shape.large_columns = partial(self._large_columns, description, own)
            shape.details = partial(self._details, description, own)
            shape.types_json = types_json(map(column_type, table.shown))
        except PromiseError as error:
            raise PromiseError(
                error.what, code=error.code, where=f"{event.position}, {error.where}", hint=error.hint
            ) from None
        shape.size = _size(table)
        return shape

    def _matches(self, table: Table) -> Matches | None:
        """Returns the compiled condition of the table's rows; None if all rows pass. Raises PromiseError if it can't be
        evaluated for the table's columns.
        """
        condition = self._condition(table.database, table.name)
        if condition is None:
            return None
        self._has_conditions = True
        masked = [column.name for column in table.columns if column.mask and column.name.lower() in condition.columns]
        try:
            if masked:
                raise ValueError(f"column {masked[0]} is masked")
            return condition.compiled([(column.name, column_type(column)) for column in table.shown])
        except ValueError as error:
            raise PromiseError(
                f"its rows can't be left out by the condition {condition}: {error}",
                code="CDC-ROWS-TABLE-UNFIT",
                where=f"table {table.database}.{table.name}",
                hint="correct filters.rows, start once with --accept-filters, and run cdc-producer PROFILE --copy "
                "DB.TABLE; or leave the table out with filters.exclude_tables",
            ) from None

    def _compile(self, shape: TableShape, description: bytes, own: Mapping[int, int] | None, kind: int) -> RowDecoder:
        table = self._described(description, own)
        documents = tuple(column.name for column in table.columns if column.type == JSON)
        allow = partial(self._allow, table.database, table.name, documents)
        decoder = row_decoder(table, kind, allow_differences=allow)
        shape.decoders.update(dict.fromkeys(_SAME_DECODER.get(kind, (kind,)), decoder))
        size = _COMPILED_BYTES * len(table.columns) * (2 if kind in et.UPDATES else 1)
        shape.size += size
        self._shapes.grow(size)
        return decoder

    def _described(self, description: bytes, own: Mapping[int, int] | None) -> Table:
        # The columns are parsed again instead of kept: most tables never need them, and they would take as much memory
        # as the rest of a shape.
        return self._table(RawEvent(et.TABLE_MAP, _BEFORE_DESCRIPTION + description, "", 0, 0), own)

    def _details(self, description: bytes, own: Mapping[int, int] | None) -> ColumnDetails:
        columns = self._described(description, own).columns
        details = column_details(_BEFORE_DESCRIPTION + description)
        shown = [place for place, column in enumerate(columns) if not column.is_gone]
        members = [
            (at, tuple(decoded(member, columns[place].charset) for member in columns[place].members))
            for at, place in enumerate(shown)
            if columns[place].members
        ]
        not_null, points = (
            frozenset(at for at, place in enumerate(shown) if place in places)
            for places in (details.not_null, details.points)
        )
        return ColumnDetails(not_null, points, tuple(members))

    def _large_columns(self, description: bytes, own: Mapping[int, int] | None) -> list[LargeColumn]:
        return list(map(large_column, self._described(description, own).columns))

    def _allow(self, database: str, table: str, documents: tuple[str, ...]) -> None:
        if (database, table, documents) not in self._allowed:
            self._allow_differences(database, table, list(documents))
            self._allowed.add((database, table, documents))

    def is_left_out(self, event: RawEvent) -> bool:
        """Whether a rows event of any version belongs to a table that does not pass the filters; if so, counts the
        event."""
        found = self._by_id.get(event[1][TABLE_ID], _UNKNOWN) is None
        self.filtered += found
        return found

    def drop(self, event: RawEvent) -> tuple[Effect, ...]:
        """Returns the effects that a refused event may have had. If the event is a table map, the rows of its table are
        left out until the next table map.
        """
        number = event.data[TABLE_ID]
        try:
            if event.type == et.TABLE_MAP:
                self._by_id[number] = None
                return (Effect("SkipTable", *table_name(event)),)
            shape = self._by_id.get(number) if event.type in et.ROWS or event.type in et.OTHER_ROWS else None
        except (ValueError, LookupError):
            shape = None
        return (Effect("SkipTable", shape.database, shape.name) if shape else ANY_DATABASE,)

    def rows(self, event: RawEvent) -> Rows | None:
        """Returns all rows of a rows event, those that the table's condition leaves out included; None if the table is
        left out.

        Raises PromiseError for rows that have no table map, lack columns or can't be read.
        """
        data = event[1]
        try:
            table = self._by_id[data[TABLE_ID]]
        except KeyError:
            number = int.from_bytes(data[TABLE_ID], "little")
            raise PromiseError(
                f"rows of table id {number} came without a table map",
                code="CDC-EVENT-DAMAGED",
                where=str(event.position),
            ) from None
        if table is None:
            self.filtered += 1
            return None
        return _decoded(event, table)

    def rows_of(self, transaction: SimpleTransaction) -> list[Rows] | None:
        """Decodes the rows of a transaction with one rows event. Returns an empty list if the table does not pass the
        filters.

        Returns None if the table map is new, or belongs to another table than the rows. Raises the errors of ``rows``.
        """
        _, _, _, table_map, data, _, _, _ = transaction
        if table_map[TABLE_ID] != data[TABLE_ID]:
            return None
        try:
            table = self._shapes[table_map[_DESCRIPTION]]
        except KeyError:
            return None
        if table is None:
            self.filtered += 1
            return []
        rows = _decoded(rows_event(transaction), table)
        return [rows] if table.matches is None else selected_rows(rows, table.matches)


def _decoded(event: RawEvent, table: TableShape) -> Rows:
    kind, data = event[0], event[1]
    at = table.rows_at[kind]
    if data[ROWS_EXTRA_AT:at] not in table.complete_images:
        at = _after_bitmaps(event, table)
    try:
        rows = table.decoders[kind](data, at) if event[5] is None else large_rows(event, table.large_columns(), at)
        if not rows:
            raise ValueError("the event has none, and no server writes such an event")
    except PromiseError as error:
        raise PromiseError(error.what, code=error.code, where=str(event.position), hint=error.hint) from None
    except (ValueError, LookupError, OverflowError, StructError) as error:
        raise PromiseError(
            f"a row of {table.database}.{table.name} cannot be read: {error}",
            code="CDC-EVENT-TYPE",
            where=str(event.position),
            hint="leave the table out with filters.exclude_tables",
        ) from None
    flags = (data[ROWS_FLAGS_AT] | data[ROWS_FLAGS_AT + 1] << 8) & ~_STATEMENT_END
    if flags & ~_KNOWN_FLAGS:
        raise PromiseError(
            f"unknown flags {flags & ~_KNOWN_FLAGS:#x} of a rows event of {table.database}.{table.name}",
            code="CDC-EVENT-UNKNOWN",
            where=str(event.position),
        )
    return _new(Rows, (event, table, _OPERATIONS[kind], rows, flags))


def _after_bitmaps(event: RawEvent, table: TableShape) -> int:
    """Returns the offset of the rows, which follow the extra data and the bitmaps of the columns that the images
    contain.

    Layout: MySQL source, class Rows_event. Raises PromiseError if an image lacks columns.
    """
    data = event.data
    start = ROWS_EXTRA_AT + int.from_bytes(data[ROWS_EXTRA_AT : ROWS_EXTRA_AT + ROWS_EXTRA_LENGTH_BYTES], "little")
    columns, at = ev.packed_integer(data, start)
    width = (columns + 7) // 8
    images = 2 if event.type in et.UPDATES else 1
    missing = 0
    for image in range(images):
        missing |= ~int.from_bytes(data[at + image * width : at + (image + 1) * width], "little")
    if missing & (1 << columns) - 1:  # the bits after the last column have no meaning
        raise PromiseError(
            f"a row of {table.database}.{table.name} was logged without all its columns",
            code="CDC-EVENT-ROW-IMAGE",
            where=str(event.position),
            hint="a session has another binlog_row_image: on the leader SET PERSIST binlog_row_image = FULL (MariaDB: "
            "SET GLOBAL; 11.8 logs no generated columns with UPDATE and DELETE: make them plain ones), end that "
            f"session, and {past(table.database, table.name)}",
        )
    if columns != table.width:
        raise PromiseError(
            f"rows of {table.database}.{table.name} have {columns} columns, its table map has {table.width}",
            code="CDC-EVENT-DAMAGED",
            where=str(event.position),
            hint="the leader's binlog is damaged: give the producer a new topic and the follower a fresh copy",
        )
    at += images * width
    if at == table.rows_at[event.type]:
        # The next event with the same bytes before its rows is known to have all columns.
        table.complete_images.add(data[ROWS_EXTRA_AT:at])
    return at


def _size(table: Table) -> int:
    """Returns the approximate size of a shape of ``table`` in memory in bytes, without compiled decoders."""
    texts = sum(len(column.name) + sum(map(len, column.members)) for column in table.columns)
    members = sum(len(column.members) for column in table.columns)
    with_members = sum(column.type in (ENUM, SET) for column in table.columns)
    return _SHAPE_BYTES + _COLUMN_BYTES * len(table.columns) + _MEMBERS_BYTES * with_members + 200 * members + 3 * texts


def columns_json(columns: Sequence[str], key: Sequence[str] | None) -> str:
    """Returns the part of a record that names the table's columns, and the columns of the table's key."""
    names = json.dumps(columns, ensure_ascii=False)
    key_names = f',"key":{json.dumps(key, ensure_ascii=False)}' if key else ""
    return f'"columns":{names}{key_names}'
