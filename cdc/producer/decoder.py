"""Binlog events to changes: follows transactions and table maps, and stops at whatever it does not know."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from struct import error as StructError
from typing import Any

from cdc.codec import text_decoder
from cdc.errors import PromiseError
from cdc.excerpt import excerpt
from cdc.position import Position
from cdc.producer import events as ev
from cdc.producer.accounts import accounts
from cdc.producer.changes import Begin, Change, Commit, Idle, Moved, RowDecoder, Rows, Statement, TableShape
from cdc.producer.columns import row_decoder
from cdc.producer.ddl import classify
from cdc.producer.events import RawEvent
from cdc.producer.payload import payload
from cdc.producer.table_map import Table, table_id, table_map, table_name

__all__ = ["Decoder"]

_OPERATIONS = {ev.WRITE_ROWS: "Add", ev.UPDATE_ROWS: "Update", ev.DELETE_ROWS: "Delete"}
_STATEMENT_END = 0x01
_UNKNOWN_STATEMENT = (
    "run it on the follower by hand, then start a new topic there, or tell us the statement so that it can be added"
)


class Decoder:
    """Turns one leader's events into changes.

    ``wants_table(database, table)`` is asked once a table map, so that the rows of other tables are never decoded;
    ``collations`` maps the server's collation ids to (character set, collation); ``log(event, **fields)`` is told of
    each statement that is passed over by design.
    """

    def __init__(
        self,
        *,
        wants_table: Callable[[str, str], bool],
        collations: Mapping[int, tuple[str, str]],
        log: Callable[..., None],
    ) -> None:
        self._wants_table = wants_table
        self._collations = collations
        self._charsets = {number: charset for number, (charset, _) in collations.items()}
        self._log = log
        self._tables: dict[int, TableShape | None] = {}
        self._shapes: dict[tuple[int, bytes], TableShape] = {}
        self._named: ev.Gtid | None = None
        self._named_at: Position | None = None
        self._in_transaction = False
        self._saw_rows = False

    def decode(self, events: Iterable[RawEvent | None]) -> Iterator[Change]:
        """The changes of ``events``, in order; None stands for "nothing more right now".

        Raises PromiseError with the position for an event, a type, a statement or bytes that it can't carry exactly.
        """
        for event in events:
            if event is None:
                yield Idle()
                continue
            try:
                yield from self._event(event)
            except (ValueError, LookupError, StructError, RuntimeError) as error:
                raise PromiseError(
                    f"event {event.type} ({ev.NAMES.get(event.type, 'unknown')}) cannot be read: {error!r}",
                    where=str(event.position),
                    hint="this leader writes what this version of cdc does not know",
                ) from None

    def _event(self, event: RawEvent) -> Iterator[Change]:
        kind = event.type
        if kind in _OPERATIONS:
            rows = self._rows(event)
            if rows is not None:
                yield rows
        elif kind == ev.TABLE_MAP:
            self._table_map(event)
        elif kind in (ev.GTID, ev.ANONYMOUS_GTID):
            self._require_closed(event)
            self._named, self._named_at = ev.gtid(event), event.position
        elif kind == ev.QUERY:
            yield from self._query(event)
        elif kind == ev.XID:
            yield self._commit(event)
        elif kind == ev.TRANSACTION_PAYLOAD:
            yield from self.decode(payload(event))
        elif kind in (ev.HEARTBEAT, ev.HEARTBEAT_V2):
            yield from self._moved(ev.heartbeat(event))
        elif kind == ev.ROTATE:
            self._tables.clear()
            yield from self._moved(ev.rotate(event))
        elif kind == ev.FORMAT_DESCRIPTION:
            # A restarted server counts table ids from the start again.
            self._tables.clear()
        elif kind not in ev.HARMLESS:
            raise _unknown_event(event)

    def _moved(self, end: Position) -> Iterator[Moved]:
        # Inside a transaction the place to resume from is still its start.
        if not self._in_transaction and self._named is None and end.offset:
            yield Moved(end)

    def _begin(self, event: RawEvent) -> Begin:
        named = self._named
        if named is None:
            raise PromiseError(
                "a transaction has no GTID event",
                where=str(event.position),
                hint="the leader must be MySQL 8.0 or newer",
            )
        self._require_closed(event)
        self._named = None
        self._in_transaction, self._saw_rows = True, False
        return Begin(named.gtid or str(self._named_at), named.gtid, named.commit_us)

    def _require_closed(self, event: RawEvent) -> None:
        if self._in_transaction:
            raise PromiseError(
                "a transaction begins before the one before it has ended",
                where=str(event.position),
                hint="the leader's binlog is damaged: give the producer a new topic and the follower a fresh copy",
            )

    def _commit(self, event: RawEvent) -> Commit:
        self._in_transaction = False
        return Commit(Position(event.file, event.end))

    def _table_map(self, event: RawEvent) -> None:
        number = table_id(event)
        if not self._wants_table(*table_name(event)):
            self._tables[number] = None
            return
        # The body behind the table's number says it all, so an unchanged table keeps its generated decoders.
        body = (number, event.data[ev.HEADER_BYTES + 6 :])
        shape = self._shapes.get(body)
        if shape is None:
            if len(self._shapes) > 10_000:
                self._shapes.clear()
            shape = self._shapes[body] = self._shape(event)
        self._tables[number] = shape

    def _shape(self, event: RawEvent) -> TableShape:
        table = table_map(event, self._charsets)
        try:
            insert, update = row_decoder(table, update=False), row_decoder(table, update=True)
        except PromiseError as error:
            raise PromiseError(error.what, where=f"{event.position}, {error.where}", hint=error.hint) from None
        return TableShape(table.database, table.name, _columns_json(table), insert, update)

    def _rows(self, event: RawEvent) -> Rows | None:
        data = event.data
        number = int.from_bytes(data[19:25], "little")
        if number not in self._tables:
            raise PromiseError(f"rows of table id {number} came without a table map", where=str(event.position))
        table = self._tables[number]
        self._saw_rows = True
        if table is None:
            return None
        if not self._in_transaction:
            raise PromiseError("rows came outside of a transaction", where=str(event.position))
        update = event.type == ev.UPDATE_ROWS
        at = 27 + int.from_bytes(data[27:29], "little")
        columns, at = ev.packed_integer(data, at)
        width = (columns + 7) // 8
        images = 2 if update else 1
        missing = ~int.from_bytes(data[at : at + width], "little") | ~int.from_bytes(
            data[at + width * (images - 1) : at + width * images], "little"
        )
        if missing & (1 << columns) - 1:  # the bits after the last column mean nothing
            raise PromiseError(
                f"a row of {table.database}.{table.name} was logged without all its columns",
                where=str(event.position),
                hint="a session has another binlog_row_image: SET PERSIST binlog_row_image = FULL on the leader",
            )
        rows = self._decoded(event, table, table.update if update else table.insert, at + width * images)
        flags = int.from_bytes(data[25:27], "little") & ~_STATEMENT_END
        return Rows(event, table, _OPERATIONS[event.type], rows, flags)

    def _decoded(self, event: RawEvent, table: TableShape, decode: RowDecoder, at: int) -> list[str]:
        try:
            return decode(event.data, at)
        except (ValueError, IndexError, KeyError, StructError) as error:
            raise PromiseError(
                f"a row of {table.database}.{table.name} cannot be read: {error}",
                where=str(event.position),
                hint="leave the table out with filters.exclude_tables",
            ) from None

    def _query(self, event: RawEvent) -> Iterator[Change]:
        query = ev.query(event)
        charset, _ = self._collations.get(query.variables.get("charset", 0), ("utf8mb4", ""))
        text = _statement_text(query.text, charset, event)
        modes = query.variables.get("sql_mode", "").split(",")
        quoting = {"ansi_quotes": "ANSI_QUOTES" in modes, "backslash_escapes": "NO_BACKSLASH_ESCAPES" not in modes}
        kind, effects = classify(text, database=query.database, **quoting)
        if query.variables.get("error_code") and kind not in ("begin", "commit", "rollback"):
            raise PromiseError(
                f"a statement failed on the leader in part (error {query.variables['error_code']}): {excerpt(text)}",
                where=str(event.position),
                hint="what it did cannot be told; give the producer a new topic and the follower a fresh copy",
            )
        if kind == "begin":
            yield self._begin(event)
        elif kind == "commit" or (kind == "rollback" and not self._saw_rows):
            yield self._commit(event)
        elif kind == "savepoint":
            return
        elif kind in ("ddl", "account", "admin", "temporary"):
            alone = not self._in_transaction
            if alone:
                yield self._begin(event)
            if kind == "ddl":
                yield Statement(event, query.database, text, effects, self._context(query, event))
            else:
                named = accounts(text, **quoting) or excerpt(text)
                self._log("statement not replicated", kind=kind, statement=named, position=event.position)
            if alone:
                yield self._commit(event)
        else:
            raise _refused_statement(kind, text, event)

    def _context(self, query: ev.Query, event: RawEvent) -> dict[str, Any]:
        """What the statement's meaning depends on, in the words of the session variables."""
        context: dict[str, Any] = {"database": query.database}
        for name in (
            "sql_mode", "time_zone", "foreign_key_checks", "unique_checks", "lc_time_names",
            "auto_increment_increment", "auto_increment_offset",
        ):  # fmt: skip
            if name in query.variables:
                context[name] = query.variables[name]
        if "charset" in query.variables:
            context["charset"] = self._collations[query.variables["charset"]][0]
        for name in ("collation", "server_collation", "database_collation", "default_collation_for_utf8mb4"):
            if name in query.variables:
                context[name] = self._collations[query.variables[name]][1]
        for name in ("explicit_defaults_for_timestamp", "sql_require_primary_key", "default_table_encryption"):
            if name in query.variables:
                context[name] = bool(query.variables[name])
        seconds = ev.header(event.data).timestamp
        context["timestamp_us"] = seconds * 1_000_000 + query.variables.get("microseconds", 0)
        return context


def _columns_json(table: Table) -> str:
    names = json.dumps([column.name for column in table.columns], ensure_ascii=False)
    key = f',"key":{json.dumps(table.key, ensure_ascii=False)}' if table.key else ""
    return f'"columns":{names}{key}'


def _statement_text(text: bytes, charset: str, event: RawEvent) -> str:
    if text.isascii() and charset not in ("ucs2", "utf16", "utf16le", "utf32"):
        return text.decode("ascii")
    decode = text_decoder("utf8mb4" if charset == "binary" else charset)
    try:
        if decode is None:
            raise ValueError(f"no exact codec for {charset}")
        return decode(text)
    except ValueError as error:
        raise PromiseError(
            f"a statement's text in {charset} cannot be read: {error}",
            where=str(event.position),
            hint="send statements to the leader in utf8mb4",
        ) from None


def _unknown_event(event: RawEvent) -> PromiseError:
    name = ev.NAMES.get(event.type, "unknown")
    hints = {
        42: "GTIDs with a tag are not replicated yet: use GTID_NEXT = AUTOMATIC without a tag",
        38: "XA transactions are not replicated yet",
        39: "SET PERSIST binlog_row_value_options = '' on the leader",
        26: "the leader's own log lost events: make a fresh copy of the leader",
    }
    return PromiseError(
        f"event {event.type} ({name}) is not handled, and passing over it would lose a change",
        where=str(event.position),
        hint=hints.get(event.type, "this leader writes what this version of cdc does not know"),
    )


def _refused_statement(kind: str, text: str, event: RawEvent) -> PromiseError:
    shown = excerpt(text)
    if kind == "dml":
        return PromiseError(
            f"a change was logged as a statement, not as rows: {shown}",
            where=str(event.position),
            hint="some session runs with another binlog_format: SET PERSIST binlog_format = ROW on the leader",
        )
    if kind in ("rollback", "rollback to"):
        return PromiseError(
            "a transaction was rolled back in part after rows of non-transactional tables",
            where=str(event.position),
            hint="use InnoDB tables only",
        )
    if kind == "xa":
        return PromiseError("XA transactions are not replicated yet", where=str(event.position))
    return PromiseError(
        f"the statement is not known, so what it affects is not known: {shown}",
        where=str(event.position),
        hint=_UNKNOWN_STATEMENT,
    )
