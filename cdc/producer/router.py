"""Changes to messages: which pass the filters, their sequence, their topic and their JSON text. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cdc.errors import PromiseError
from cdc.excerpt import excerpt
from cdc.filters import Filters, goes_by_name
from cdc.position import Position
from cdc.producer import events as ev
from cdc.producer.changes import Begin, Rows, Statement, TableShape, Whole
from cdc.producer.statement_text import is_lost
from cdc.record import Uri
from cdc.sql.effects import Effect, way_out
from cdc.topics import Topics

__all__ = ["Headers", "Message", "Router"]

_MOST_HEADS = 10_000
_HEADER_JSON = (
    b'{"timestamp":%d,"event_type":%d,"server_id":%d,"event_length":%d,"next_event_position":%d,"event_flags":%d}'
)

# bn_file, transaction and the rest: DESIGN.md, "The record".
_RECORD = (
    '{"uri":"%s","sequence":%d,"bn_file":{"fileName":"%s","offset":%d},'
    '"transaction":{"id":"%s","index":%d,"last":%s,"ts_us":%d},%s}'
)
_new = tuple.__new__  # Message(…) itself takes twice as long
_BOOL = {False: "false", True: "true"}

Headers = list[tuple[str, str | bytes | None]]


class Message(NamedTuple):
    """One record on its way: Kafka key, value and headers; ``time_ms`` is the leader's commit time."""

    topic: str
    key: bytes
    value: bytes
    time_ms: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class _Part:
    """A record without its sequence and its place in the transaction, which follow when it is known to be the last."""

    topic: str
    uri: str
    position: Position
    body: str
    header: bytes


class Router:
    """Gives the records of one leader their sequence, from ``next_sequence`` on.

    ``half_out`` is a transaction, by id, that is larger than one Kafka transaction and was cut off after so many
    records: they are counted, not sent again. ``filtered`` counts the statements that did not pass.
    """

    def __init__(
        self,
        *,
        resource: str,
        topics: Topics,
        filters: Filters,
        record_bytes: int,
        next_sequence: int,
        half_out: tuple[str, int] | None = None,
    ) -> None:
        self._resource = resource
        self._topics = topics
        self._filters = filters
        self._record_bytes = record_bytes
        self.next_sequence = next_sequence
        self._half_out = half_out
        self._skip = 0
        self._begin: Begin | None = None
        self._index = 0
        self._held: _Part | None = None
        self._uris: dict[tuple[str, ...], str] = {}
        self._heads: dict[TableShape, tuple[str, str, bytes, str]] = {}
        self.filtered = 0
        self._topics_of_tables: dict[tuple[str, str], str] = {}

    @property
    def sent(self) -> int:
        """How many records of the open transaction have left; 0 when none is open.

        0 too while those are passed over that left before: their count is that of the entry gone on from.
        """
        return self._index if self._index >= self._skip else 0

    def begin(self, begin: Begin) -> None:
        """A transaction starts. Raises PromiseError unless it is the one that is half out, where one is."""
        self._begin, self._index, self._held = begin, 0, None
        if self._half_out is not None:
            transaction, self._skip = self._half_out
            self._half_out = None
            if begin.transaction != transaction:
                raise PromiseError(
                    f"transaction {transaction} is half out, but the leader goes on with {begin.transaction}",
                    hint="the leader lost binlogs: give the producer a new topic and the follower a fresh copy",
                )

    def whole(self, change: Whole) -> Iterator[Message]:
        """The messages of a transaction that arrived whole. Raises PromiseError as ``begin`` and ``commit`` do.

        This runs for nearly every transaction, hence all in one place.
        """
        (transaction, _, commit_us), last = change.begin, len(change.rows) - 1
        if self._half_out is not None or self._is_large(change.rows):
            yield from self._piecewise(change)
            return
        # Until all have left, they are records of an open transaction.
        self._index = last + 1
        for index, ((_, data, file, offset, _, _), table, operation, rows, flags) in enumerate(change.rows):
            topic, uri, key, columns = self._heads.get(table) or self._head(table)
            body = _rows_body(columns, flags, operation, ",".join(rows))
            value = _RECORD % (
                uri, self.next_sequence + index, file, offset, transaction, index, _BOOL[index == last], commit_us, body
            )  # fmt: skip
            headers: Headers = [("mysql_binlog_headers", _HEADER_JSON % ev.header_fields(data))]
            yield _new(Message, (topic, key, value.encode(), commit_us // 1000, headers))
        self.next_sequence += last + 1
        self._index = 0

    def _piecewise(self, change: Whole) -> Iterator[Message]:
        self.begin(change.begin)
        for rows in change.rows:
            yield from self.rows(rows)
        yield from self.commit()

    def _is_large(self, changes: list[Rows]) -> bool:
        """Whether one of the rows events may have to be split: a character takes at most four bytes."""
        for _, _, _, rows, _ in changes:  # noqa: SIM110  a generator would take as long as the whole record
            if len(rows) > 1 and sum(map(len, rows)) * 4 > self._record_bytes:
                return True
        return False

    def _head(self, table: TableShape) -> tuple[str, str, bytes, str]:
        """What all records of a table share: topic, URI, Kafka key, the JSON text of columns and key."""
        if len(self._heads) > _MOST_HEADS:
            self._heads.clear()
        uri, topic = self._uri(table.database, table.name), self._topic(table.database, table.name)
        head = self._heads[table] = (topic, uri, uri.encode(), table.columns_json)
        return head

    def rows(self, change: Rows) -> Iterator[Message]:
        """The messages that can leave now; the newest waits until it is known whether it is the transaction's last."""
        uri = self._uri(change.table.database, change.table.name)
        topic = self._topic(change.table.database, change.table.name)
        header = _HEADER_JSON % ev.header_fields(change.event.data)
        for rows in self._split(change):
            body = _rows_body(change.table.columns_json, change.flags, change.operation, rows)
            yield from self._hold(_Part(topic, uri, change.event.position, body, header))

    def statement(self, change: Statement) -> Iterator[Message]:
        """The message of a statement, unless no object that it affects passes the filters.

        Raises PromiseError where some pass and some do not, since half a statement can't be replicated, and for a
        statement that a follower can't be given, or can't repeat faithfully.
        """
        places = [place for effect in change.effects for place in _places(effect)]
        wanted = [self._wants(*place) for place in places]
        if change.unreadable and (any(wanted) or any(self._may_want(*place) for place in places)):
            raise _unreadable(change)
        if not any(wanted):
            self.filtered += 1
            return
        if not all(wanted):
            named = ", ".join(".".join(part for part in place if part) for place in places)
            raise PromiseError(
                f"a statement crosses the border of the filters ({named}): {excerpt(change.text)}",
                where=str(change.event.position),
                hint="let all of these tables in, or none; a table that was let in later needs a fresh copy",
            )
        doubt = next((effect.unfaithful for effect in change.effects if effect.unfaithful), None)
        if doubt:
            raise PromiseError(
                f"a follower can't do what this statement did: {doubt}: {excerpt(change.text)}",
                where=str(change.event.position),
                hint=way_out(doubt),
            )
        affects = [self._affect(effect) for effect in change.effects]
        body = (
            f'"operation":{{"Query":{_text(change.text)}}},"context":{_text(change.context)},"affects":{_text(affects)}'
        )
        uri = self._uri(change.effects[0].database)
        topic = self._topics.of_statement({place for effect in change.effects for place in _tables(effect)})
        header = _HEADER_JSON % ev.header_fields(change.event.data)
        yield from self._hold(_Part(topic, uri, change.event.position, body, header))

    def commit(self) -> Iterator[Message]:
        """The transaction is complete: its newest record leaves as the last one."""
        yield from self._release(last=True)
        if self._skip and self._index <= self._skip:
            raise PromiseError(
                f"{self._skip} records of a transaction are out, but it now has {self._index}",
                hint="the leader logged it anew: give the producer a new topic and the follower a fresh copy",
            )
        self._skip = self._index = 0

    def _hold(self, part: _Part) -> Iterator[Message]:
        yield from self._release(last=False)
        self._held = part

    def _release(self, *, last: bool) -> Iterator[Message]:
        part, begin = self._held, self._begin
        if part is None or begin is None:
            return
        self._held = None
        if self._index < self._skip:
            self._index += 1
            return
        value = _RECORD % (
            part.uri, self.next_sequence, part.position.file, part.position.offset,
            begin.transaction, self._index, _BOOL[last], begin.commit_us, part.body,
        )  # fmt: skip
        headers: Headers = [("mysql_binlog_headers", part.header)]
        yield Message(part.topic, part.uri.encode(), value.encode(), begin.commit_us // 1000, headers)
        # Counted only when whoever writes it comes back for more: a record that was refused has not left.
        self._index += 1
        self.next_sequence += 1

    def _split(self, change: Rows) -> Iterator[str]:
        """The event's rows, joined, in parts that stay below the record size where one row alone does."""
        size = 0
        part: list[str] = []
        for row in change.rows:
            length = len(row) if row.isascii() else len(row.encode())
            if part and size + length > self._record_bytes:
                yield ",".join(part)
                size, part = 0, []
            part.append(row)
            size += length + 1
        yield ",".join(part)

    def _wants(self, database: str, name: str | None) -> bool:
        if name is None:
            return self._filters.wants_database(database)
        return self._filters.wants_table(database, name)

    def _may_want(self, database: str, name: str | None) -> bool:
        """Whether a name of which bytes are lost may be one that passes."""
        return is_lost(database) or (is_lost(name or "") and self._filters.wants_database(database))

    def _affect(self, effect: Effect) -> dict[str, str]:
        names = (effect.database,) if effect.name is None else (effect.database, effect.name)
        affect = {"action": effect.action, "uri": self._uri(*names)}
        if effect.to is not None:
            affect["to"] = self._uri(*effect.to)
        if effect.like is not None:
            affect["like"] = self._uri(*effect.like)
        return affect

    def _uri(self, *names: str) -> str:
        uri = self._uris.get(names)
        if uri is None:
            uri = self._uris[names] = str(Uri(self._resource, *names))
        return uri

    def _topic(self, database: str, table: str) -> str:
        topic = self._topics_of_tables.get((database, table))
        if topic is None:
            topic = self._topics_of_tables[database, table] = self._topics.of_table(database, table)
        return topic


def _unreadable(change: Statement) -> PromiseError:
    return PromiseError(
        f"{change.unreadable}: {excerpt(change.text)}",
        where=str(change.event.position),
        hint="leave what it names out with the filters (of a routine, trigger or event its database); "
        "a table can be made anew by another name, from a session in utf8mb4",
    )


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _places(effect: Effect) -> list[tuple[str, str | None]]:
    places = [(effect.database, effect.name), *([effect.to] if effect.to else [])]
    return [(database, name if goes_by_name(effect.action) else None) for database, name in places]


def _tables(effect: Effect) -> Iterator[tuple[str, str]]:
    if effect.action.endswith(("Table", "Index")) and effect.name is not None:
        yield effect.database, effect.name
    if effect.action.endswith("Table") and effect.to is not None:
        yield effect.to


def _rows_body(columns: str, flags: int, operation: str, rows: str) -> str:
    shown = f',"flags":{flags}' if flags else ""
    return f'{columns}{shown},"operation":{{"{operation}":{{"rows":[{rows}]}}}}'
