"""Table maps, and the rows events that refer to them by number.

This and module columns are the hot path of decoding. What is the same for all events of a table is worked out once: a
table map is known again by its bytes, a rows event's column bitmaps likewise.
"""

import json
from collections.abc import Callable, Mapping
from struct import error as StructError

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import RawEvent, Single
from cdc.producer.decode.changes import Rows, TableShape
from cdc.producer.decode.row_codegen import row_decoder
from cdc.producer.decode.table_map import Table, table_map, table_name
from cdc.sql.effects import ANY_DATABASE, Effect

__all__ = ["Tables"]

_OPERATIONS = {et.WRITE_ROWS: "Add", et.UPDATE_ROWS: "Update", et.DELETE_ROWS: "Delete"}
_STATEMENT_END = 0x01
_MOST_SHAPES, _MOST_DESCRIBED = 10_000, 2_000  # a shape with its decoders takes some 2 kB a column
_new = tuple.__new__  # Rows(…) itself takes twice as long
_UNKNOWN = TableShape("", "", "", lambda data, at: [], lambda data, at: [], 0)


class Tables:
    """The tables of one leader by the numbers that its events give them.

    ``wants_table(database, table)`` is asked once a table map, so that the rows of other tables are never decoded;
    ``charsets`` maps the server's collation ids to character set names. ``filtered`` counts the rows events of tables
    that are not wanted.
    """

    def __init__(self, *, wants_table: Callable[[str, str], bool], charsets: Mapping[int, str]) -> None:
        self._wants_table = wants_table
        self._charsets = charsets
        self._numbers: dict[bytes, TableShape | None] = {}
        self._shapes: dict[bytes, TableShape | None] = {}
        self._described: dict[bytes, TableShape | None] = {}
        self.filtered = 0

    def forget_numbers(self) -> None:
        """A new log file: a restarted server counts tables from the start again."""
        self._numbers.clear()

    def map(self, event: RawEvent) -> None:
        """Take a table map. Raises PromiseError for a table that can't be carried exactly."""
        # The body, with the table's number in front, says it all.
        body = event[1][19:]
        shape = self._shapes.get(body, _UNKNOWN)
        if shape is _UNKNOWN:
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.clear()
            shape = self._shapes[body] = self._unnumbered(event, body[6:])
        self._numbers[body[:6]] = shape

    def _unnumbered(self, event: RawEvent, body: bytes) -> TableShape | None:
        """The shape that ``body`` describes: a table keeps its generated decoders when the server, which opens it anew
        after FLUSH TABLES or when it has too many open, gives it another number."""
        if body not in self._described:
            if len(self._described) > _MOST_DESCRIBED:
                self._described.clear()
            self._described[body] = self._shape(event) if self._wants_table(*table_name(event)) else None
        return self._described[body]

    def _shape(self, event: RawEvent) -> TableShape:
        table = table_map(event, self._charsets)
        try:
            insert, update = row_decoder(table, update=False), row_decoder(table, update=True)
        except PromiseError as error:
            raise PromiseError(error.what, where=f"{event.position}, {error.where}", hint=error.hint) from None
        width = len(table.columns)
        return TableShape(table.database, table.name, _columns_json(table), insert, update, width)

    def is_left_out(self, event: RawEvent) -> bool:
        """Whether a rows event of any version is of a table that is not wanted; counts it then."""
        found = self._numbers.get(event[1][19:25], _UNKNOWN) is None
        self.filtered += found
        return found

    def drop(self, event: RawEvent) -> tuple[Effect, ...]:
        """What an event that can't be carried may have changed. The rows of a table map are left out with it."""
        number = event.data[19:25]
        try:
            if event.type == et.TABLE_MAP:
                self._numbers[number] = None
                return (Effect("SkipTable", *table_name(event)),)
            shape = self._numbers.get(number) if event.type in et.ROWS or event.type in et.OTHER_ROWS else None
        except (ValueError, LookupError):
            shape = None
        return (Effect("SkipTable", shape.database, shape.name) if shape else ANY_DATABASE,)

    def rows(self, event: RawEvent) -> Rows | None:
        """The rows of a rows event; None where the table is left out.

        Raises PromiseError for rows without a table map, without all columns, or that can't be read.
        """
        data = event[1]
        try:
            table = self._numbers[data[19:25]]
        except KeyError:
            number = int.from_bytes(data[19:25], "little")
            raise PromiseError(
                f"rows of table id {number} came without a table map", where=str(event.position)
            ) from None
        if table is None:
            self.filtered += 1
            return None
        return _decoded(event, table)

    def rows_of(self, single: Single) -> list[Rows] | None:
        """The rows of a transaction with one rows event, none where the table is left out; None where its table map is
        new, or is not that of the rows. Raises as ``rows`` does."""
        _, _, _, table_map, data, xid, file, end = single
        table = self._shapes.get(table_map[19:], _UNKNOWN)
        if table is _UNKNOWN or table_map[19:25] != data[19:25]:
            return None
        if table is None:
            self.filtered += 1
            return []
        end -= len(xid) + ev.CHECKSUM_BYTES  # in the file the Xid follows the rows
        return [_decoded(_new(RawEvent, (data[4], data, file, end - len(data) - ev.CHECKSUM_BYTES, end, None)), table)]


def _decoded(event: RawEvent, table: TableShape) -> Rows:
    kind, data = event[0], event[1]
    at = table.rows_at[kind]
    if data[27:at] not in table.whole_images:
        at = _after_bitmaps(event, table)
    decode = table.update if kind == et.UPDATE_ROWS else table.insert
    try:
        rows = decode(data, at)
    except (ValueError, LookupError, OverflowError, StructError) as error:
        raise PromiseError(
            f"a row of {table.database}.{table.name} cannot be read: {error}",
            where=str(event.position),
            hint="leave the table out with filters.exclude_tables",
        ) from None
    flags = (data[25] | data[26] << 8) & ~_STATEMENT_END
    return _new(Rows, (event, table, _OPERATIONS[kind], rows, flags))


def _after_bitmaps(event: RawEvent, table: TableShape) -> int:
    """Where the rows start, behind the extra data and the bitmaps that say which columns the images have.

    Layout: MySQL source, class Rows_event. Raises PromiseError where an image lacks columns.
    """
    data = event.data
    start = 27 + int.from_bytes(data[27:29], "little")
    columns, at = ev.packed_integer(data, start)
    width = (columns + 7) // 8
    images = 2 if event.type == et.UPDATE_ROWS else 1
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
        # Whoever compares these bytes need not look into them again.
        table.whole_images.add(data[27:at])
    return at


def _columns_json(table: Table) -> str:
    names = json.dumps([column.name for column in table.columns], ensure_ascii=False)
    key = f',"key":{json.dumps(table.key, ensure_ascii=False)}' if table.key else ""
    return f'"columns":{names}{key}'
