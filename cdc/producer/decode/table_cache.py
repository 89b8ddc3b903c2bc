"""Rows events in, their rows as JSON text out: keeps the table maps that rows events refer to by number.

This and module row_codegen are the hot path of decoding. What is the same for all events of a table is worked out once
and cached: by the bytes of its table map, and by the bytes of a rows event's column bitmaps.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import error as StructError

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction, rows_event
from cdc.producer.binlog.layout import (
    HEADER_BYTES,
    ROWS_EXTRA_AT,
    ROWS_EXTRA_LENGTH_BYTES,
    ROWS_FLAGS_AT,
    TABLE_ID,
    TABLE_ID_BYTES,
)
from cdc.producer.decode.changes import Rows, TableShape
from cdc.producer.decode.row_codegen import row_decoders
from cdc.producer.decode.table_map import JSON, Table, table_map, table_name
from cdc.sql.effects import ANY_DATABASE, Effect

__all__ = ["AllowDifferences", "TableCache"]

AllowDifferences = Callable[[str, str, Sequence[str]], None]
_OPERATIONS = {
    et.WRITE_ROWS: "Add", et.UPDATE_ROWS: "Update", et.DELETE_ROWS: "Delete", et.PARTIAL_UPDATE_ROWS: "Update",
}  # fmt: skip
_STATEMENT_END = 0x01
_MAX_MAPS, _MAX_SHAPES = 10_000, 2_000  # a shape with its decoders takes some 2 kB per column
_new = tuple.__new__  # Rows(…) itself takes twice as long
_UNKNOWN = TableShape("", "", "", {}, 0)


class TableCache:
    """The tables of one leader by the table ids in its events.

    ``wants_table(database, table)`` is called once per table map: the rows of other tables are never decoded.
    ``collations`` maps the server's collation ids to the names of character set and collation.
    ``allow_differences(database, table, columns)`` is called before differences are applied to documents of a table
    with these JSON columns; it raises PromiseError where they may not be. ``filtered`` counts the rows events of tables
    that do not pass the filters.
    """

    def __init__(
        self,
        *,
        wants_table: Callable[[str, str], bool],
        collations: Mapping[int, tuple[str, str]],
        allow_differences: AllowDifferences,
    ) -> None:
        self._wants_table = wants_table
        self._collations = collations
        self._allow_differences = allow_differences
        self._allowed: set[Table] = set()
        # None where the table does not pass the filters. The keys: table id; table map without its header; the same
        # without the table id.
        self._by_id: dict[bytes, TableShape | None] = {}
        self._by_map: dict[bytes, TableShape | None] = {}
        self._by_description: dict[bytes, TableShape | None] = {}
        self.filtered = 0

    def forget_ids(self) -> None:
        """To be called at a new binlog file: a restarted server counts table ids from the start again."""
        self._by_id.clear()

    def forget_allowed(self) -> None:
        """To be called at a statement: it may have made a trigger, or given a table the name of another one."""
        self._allowed.clear()

    def map(self, event: RawEvent) -> None:
        """Remember a table map. Raises PromiseError for a table whose rows can't be replicated exactly."""
        body = event[1][HEADER_BYTES:]
        shape = self._by_map.get(body, _UNKNOWN)
        if shape is _UNKNOWN:
            if len(self._by_map) > _MAX_MAPS:
                self._by_map.clear()
            shape = self._by_map[body] = self._without_id(event, body[TABLE_ID_BYTES:])
        self._by_id[body[:TABLE_ID_BYTES]] = shape

    def _without_id(self, event: RawEvent, body: bytes) -> TableShape | None:
        """The shape that ``body`` describes, without the table id: a server that closes and reopens a table (FLUSH
        TABLES, or too many open tables) gives it another id, and the generated decoders stay the same."""
        if body not in self._by_description:
            if len(self._by_description) > _MAX_SHAPES:
                self._by_description.clear()
            self._by_description[body] = self._shape(event) if self._wants_table(*table_name(event)) else None
        return self._by_description[body]

    def _shape(self, event: RawEvent) -> TableShape:
        table = table_map(event, self._collations)
        try:
            decoders = row_decoders(table, allow_differences=partial(self._allow, table))
        except PromiseError as error:
            raise PromiseError(error.what, where=f"{event.position}, {error.where}", hint=error.hint) from None
        return TableShape(table.database, table.name, _columns_json(table), decoders, len(table.columns))

    def _allow(self, table: Table) -> None:
        if table not in self._allowed:
            documents = [column.name for column in table.columns if column.type == JSON]
            self._allow_differences(table.database, table.name, documents)
            self._allowed.add(table)

    def is_left_out(self, event: RawEvent) -> bool:
        """Whether a rows event of any version is of a table that does not pass the filters; counts it then."""
        found = self._by_id.get(event[1][TABLE_ID], _UNKNOWN) is None
        self.filtered += found
        return found

    def drop(self, event: RawEvent) -> tuple[Effect, ...]:
        """What an event that can't be replicated may have changed. With a table map, its rows are left out too."""
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
        """The rows of a rows event; None where the table is left out.

        Raises PromiseError for rows without a table map, without all columns, or that can't be read.
        """
        data = event[1]
        try:
            table = self._by_id[data[TABLE_ID]]
        except KeyError:
            number = int.from_bytes(data[TABLE_ID], "little")
            raise PromiseError(
                f"rows of table id {number} came without a table map", where=str(event.position)
            ) from None
        if table is None:
            self.filtered += 1
            return None
        return _decoded(event, table)

    def rows_of(self, transaction: SimpleTransaction) -> list[Rows] | None:
        """The rows of a transaction with one rows event, none where the table does not pass the filters.

        None where its table map is new, or is not that of the rows. Raises as ``rows`` does.
        """
        _, _, _, table_map, data, _, _, _ = transaction
        table = self._by_map.get(table_map[HEADER_BYTES:], _UNKNOWN)
        if table is _UNKNOWN or table_map[TABLE_ID] != data[TABLE_ID]:
            return None
        if table is None:
            self.filtered += 1
            return []
        return [_decoded(rows_event(transaction), table)]


def _decoded(event: RawEvent, table: TableShape) -> Rows:
    kind, data = event[0], event[1]
    at = table.rows_at[kind]
    if data[ROWS_EXTRA_AT:at] not in table.complete_images:
        at = _after_bitmaps(event, table)
    try:
        rows = table.decoders[kind](data, at)
        if not rows:
            raise ValueError("the event has none, and no server writes such an event")
    except PromiseError as error:
        raise PromiseError(error.what, where=str(event.position), hint=error.hint) from None
    except (ValueError, LookupError, OverflowError, StructError) as error:
        raise PromiseError(
            f"a row of {table.database}.{table.name} cannot be read: {error}",
            where=str(event.position),
            hint="leave the table out with filters.exclude_tables",
        ) from None
    flags = (data[ROWS_FLAGS_AT] | data[ROWS_FLAGS_AT + 1] << 8) & ~_STATEMENT_END
    return _new(Rows, (event, table, _OPERATIONS[kind], rows, flags))


def _after_bitmaps(event: RawEvent, table: TableShape) -> int:
    """Where the rows start: after the extra data and the bitmaps of the columns that the images have.

    Layout: MySQL source, class Rows_event. Raises PromiseError where an image lacks columns.
    """
    data = event.data
    start = ROWS_EXTRA_AT + int.from_bytes(data[ROWS_EXTRA_AT : ROWS_EXTRA_AT + ROWS_EXTRA_LENGTH_BYTES], "little")
    columns, at = ev.packed_integer(data, start)
    width = (columns + 7) // 8
    images = 2 if event.type in et.UPDATES else 1
    missing = 0
    for image in range(images):
        missing |= ~int.from_bytes(data[at + image * width : at + (image + 1) * width], "little")
    if missing & (1 << columns) - 1:  # the bits after the last column mean nothing
        raise PromiseError(
            f"a row of {table.database}.{table.name} was logged without all its columns",
            where=str(event.position),
            hint="a session has another binlog_row_image: SET PERSIST binlog_row_image = FULL on the leader",
        )
    if columns != table.width:
        raise PromiseError(
            f"rows of {table.database}.{table.name} have {columns} columns, its table map has {table.width}",
            where=str(event.position),
            hint="the leader's binlog is damaged: give the producer a new topic and the follower a fresh copy",
        )
    at += images * width
    if at == table.rows_at[event.type]:
        # The next event with the same bytes is known to have all columns.
        table.complete_images.add(data[ROWS_EXTRA_AT:at])
    return at


def _columns_json(table: Table) -> str:
    names = json.dumps([column.name for column in table.columns], ensure_ascii=False)
    key = f',"key":{json.dumps(table.key, ensure_ascii=False)}' if table.key else ""
    return f'"columns":{names}{key}'
