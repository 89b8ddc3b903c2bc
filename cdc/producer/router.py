"""Changes to messages: which pass the filters, their sequence, their topic and their JSON text. Pure."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from cdc.errors import PromiseError
from cdc.excerpt import excerpt
from cdc.filters import Filters, goes_by_name
from cdc.producer import events as ev
from cdc.producer.changes import Begin, Rows, Statement, TableShape, Whole
from cdc.producer.partial import Partial, Passing, content_sum
from cdc.producer.record_parts import Part, is_large, rows_body, split
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


class Router:
    """Gives the records of one leader their sequence, from ``next_sequence`` on.

    ``half_out`` is a transaction that is larger than one Kafka transaction and was cut off: what is out of it is passed
    over, not sent again. ``filtered`` counts the statements that did not pass.
    """

    def __init__(
        self,
        *,
        resource: str,
        topics: Topics,
        filters: Filters,
        record_bytes: int,
        next_sequence: int,
        half_out: Partial | None = None,
    ) -> None:
        self._resource = resource
        self._topics = topics
        self._filters = filters
        self._record_bytes = record_bytes
        self.next_sequence = next_sequence
        self._half_out = half_out
        self._passing: Passing | None = None
        self._begin: Begin | None = None
        self._index = 0
        self._rows = 0
        self._newest = 0
        self._held: Part | None = None
        self._uris: dict[tuple[str, ...], str] = {}
        self._heads: dict[TableShape, tuple[str, str, bytes, str]] = {}
        self.filtered = 0
        self._topics_of_tables: dict[tuple[str, str], str] = {}

    @property
    def sent(self) -> int:
        """How many records of the open transaction have left; 0 when none is open.

        0 too while those are passed over that left before: their count is that of the entry gone on from.
        """
        return 0 if self._passing and self._passing.left else self._index

    @property
    def partial(self) -> Partial | None:
        """What of the open transaction has left; None where nothing has, as ``sent`` says."""
        if self._begin is None or not self.sent:
            return None
        return Partial(self._begin.transaction, self._index, self._rows, self._newest)

    def begin(self, begin: Begin) -> None:
        """A transaction starts."""
        self._begin, self._index, self._rows, self._held, self._passing = begin, 0, 0, None, None
        out = self._half_out
        if out is not None and begin.transaction == out.transaction:
            self._half_out, self._passing = None, Passing(out)
            self._index, self._rows, self._newest = out.records, out.rows or 0, out.newest

    def _require_its_turn(self) -> None:
        """Raise PromiseError where another transaction is half out: its rest comes before any other record."""
        if self._half_out is not None and self._begin is not None:
            raise PromiseError(
                f"transaction {self._half_out.transaction} is half out, but the leader goes on with "
                f"{self._begin.transaction}",
                hint="the leader lost binlogs, or has its transactions in another order: point the profile at a server "
                "that goes on with it, or give the producer a new topic and the follower a fresh copy",
            )

    def whole(self, change: Whole) -> Iterator[Message]:
        """The messages of a transaction that arrived whole. Raises PromiseError as ``begin`` and ``commit`` do.

        This runs for nearly every transaction, hence all in one place.
        """
        (transaction, _, commit_us, mode), last = change.begin, len(change.rows) - 1
        if self._half_out is not None or is_large(change.rows, self._record_bytes):
            yield from self._piecewise(change)
            return
        # Until all have left, they are records of an open transaction.
        self._index = last + 1
        for index, ((_, data, file, offset, _, _), table, operation, rows, flags) in enumerate(change.rows):
            topic, uri, key, columns = self._heads.get(table) or self._head(table)
            body = rows_body(columns, flags, mode, operation, ",".join(rows))
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

    def _head(self, table: TableShape) -> tuple[str, str, bytes, str]:
        """What all records of a table share: topic, URI, Kafka key, the JSON text of columns and key."""
        if len(self._heads) > _MOST_HEADS:
            self._heads.clear()
        uri, topic = self._uri(table.database, table.name), self._topic(table.database, table.name)
        head = self._heads[table] = (topic, uri, uri.encode(), table.columns_json)
        return head

    def rows(self, change: Rows) -> Iterator[Message]:
        """The messages that can leave now; the newest waits until it is known whether it is the transaction's last.

        Raises PromiseError where another transaction is half out, or this one is and is not as it was.
        """
        self._require_its_turn()
        uri = self._uri(change.table.database, change.table.name)
        if self._passing:
            change = self._passing.rows(change, uri)
            if not change.rows:
                return
        topic = self._topic(change.table.database, change.table.name)
        header = _HEADER_JSON % ev.header_fields(change.event.data)
        mode = self._begin and self._begin.sql_mode
        for rows in split(change.rows, self._record_bytes):
            body = rows_body(change.table.columns_json, change.flags, mode, change.operation, ",".join(rows))
            newest = content_sum(uri, rows[-1])
            yield from self._hold(Part(topic, uri, change.event.position, body, header, len(rows), newest))

    def statement(self, change: Statement) -> Iterator[Message]:
        """The message of a statement, unless no object that it affects passes the filters.

        Raises PromiseError where some pass and some do not, since half a statement can't be replicated, for a
        statement that a follower can't be given, or can't repeat faithfully, and as ``rows`` does.
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
        self._require_its_turn()
        uri = self._uri(change.effects[0].database)
        if self._passing and self._passing.statement(uri, change.text):
            return
        affects = [self._affect(effect) for effect in change.effects]
        body = (
            f'"operation":{{"Query":{_text(change.text)}}},"context":{_text(change.context)},"affects":{_text(affects)}'
        )
        topic = self._topics.of_statement({place for effect in change.effects for place in _tables(effect)})
        header = _HEADER_JSON % ev.header_fields(change.event.data)
        newest = content_sum(uri, change.text)
        yield from self._hold(Part(topic, uri, change.event.position, body, header, 1, newest))

    def commit(self) -> Iterator[Message]:
        """The transaction is complete: its newest record leaves as the last one."""
        yield from self._release(last=True)
        if self._passing:
            self._passing.require_more(self._index)
        self._index, self._passing = 0, None

    def _hold(self, part: Part) -> Iterator[Message]:
        yield from self._release(last=False)
        self._held = part

    def _release(self, *, last: bool) -> Iterator[Message]:
        part, begin = self._held, self._begin
        if part is None or begin is None:
            return
        self._held = None
        value = _RECORD % (
            part.uri, self.next_sequence, part.position.file, part.position.offset,
            begin.transaction, self._index, _BOOL[last], begin.commit_us, part.body,
        )  # fmt: skip
        headers: Headers = [("mysql_binlog_headers", part.header)]
        yield Message(part.topic, part.uri.encode(), value.encode(), begin.commit_us // 1000, headers)
        # Counted only when whoever writes it comes back for more: a record that was refused has not left.
        self._index += 1
        self._rows += part.rows
        self._newest = part.newest
        self.next_sequence += 1

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
