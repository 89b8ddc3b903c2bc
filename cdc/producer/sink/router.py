"""Changes to messages: which pass the filters, their sequence, their topic and their JSON text. Pure."""

import json
import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cdc.config.filters import Filters
from cdc.config.topic_names import Topics
from cdc.errors import PromiseError
from cdc.model.commit_entry import Partial
from cdc.model.record import Uri
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.event_types import NAMES
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.changes import Begin, Refused, Rows, Statement, TableShape, Whole
from cdc.producer.decode.unsupported import passed_over
from cdc.producer.sink.filter_boundary import may_fire, may_pass, passes, tables
from cdc.producer.sink.partial_transaction import CommittedPart, content_sum
from cdc.producer.sink.record_parts import Part, is_large, rows_body, split
from cdc.producer.skips import Skips
from cdc.sql.effects import Effect
from cdc.sql.redaction import excerpt

__all__ = ["Headers", "Message", "Router"]

_MOST_HEADS = 10_000
_SKIPPED = "skipped"  # an event is named otherwise on each server
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

    ``partial`` is a transaction that is larger than one Kafka transaction and was cut off: what is out of it is passed
    over, not sent again. ``filtered`` counts the statements that did not pass. ``skips`` says which refused events the
    stream may do without.
    """

    def __init__(
        self,
        *,
        resource: str,
        topics: Topics,
        filters: Filters,
        record_bytes: int,
        next_sequence: int,
        partial: Partial | None = None,
    ) -> None:
        self._resource = resource
        self._topics = topics
        self._filters = filters
        self._record_bytes = record_bytes
        self.next_sequence = next_sequence
        self._half_out = partial
        self._passing: CommittedPart | None = None
        self._begin: Begin | None = None
        self._index = 0
        self._rows = 0
        self._newest = 0
        self._held: Part | None = None
        self._uris: dict[tuple[str, ...], str] = {}
        self._heads: dict[TableShape, tuple[str, str, bytes, str]] = {}
        self.filtered = 0
        self.skips = Skips()
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
            self._half_out, self._passing = None, CommittedPart(out)
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
        """The message of a statement, unless nothing that it affects passes the filters; raises as ``refused`` does."""
        try:
            wanted = passes(change, self._filters)
        except PromiseError as error:
            yield from self.refused(Refused(change.event, error, passed_over(change.effects), excerpt(change.text)))
            return
        if not wanted:
            self.filtered += 1
            return
        affects = [self._affect(effect) for effect in change.effects]
        body = (
            f'"operation":{{"Query":{_text(change.text)}}},"context":{_text(change.context)},"affects":{_text(affects)}'
        )
        yield from self._on_objects(change.event, change.effects, body, change.text)

    def refused(self, change: Refused) -> Iterator[Message]:
        """The message that an event was left out, unless nothing that it may have changed passes the filters.

        Raises PromiseError where the operator did not say so and the message is not out already, and as ``rows`` does.
        """
        event, place = change.event, change.event.place
        if not (may_pass(change.effects, self._filters) or (change.fires and may_fire(change.effects, self._filters))):
            self.filtered += 1
            self.skips.log("change of what is left out not replicated", what=change.error.what, position=place)
            return
        # Of a transaction that is half out the count, which commits with the records, says that this one is out.
        is_out = self._passing is not None and self._passing.left > 0
        if not self.skips.allow(place) and not is_out:
            raise self.skips.refusal(change.error, place) from None
        self.skips.log("event skipped", level=logging.WARNING, what=change.error.what, position=place)
        what = {"event": NAMES.get(event.type, str(event.type)), "place": place, "reason": change.error.what}
        affects = [self._affect(effect) for effect in change.effects]
        body = f'"operation":{{"Skipped":{_text(what | {"text": change.text})}}},"affects":{_text(affects)}'
        yield from self._on_objects(event, change.effects, body, _SKIPPED)

    def _on_objects(self, event: RawEvent, effects: tuple[Effect, ...], body: str, text: str) -> Iterator[Message]:
        """The message of what has no rows, unless it is out; ``text`` tells one from another on any server."""
        self._require_its_turn()
        uri = self._uri(effects[0].database)
        if self._passing and self._passing.statement(uri, text):
            return
        topic = self._topics.of_statement({place for effect in effects for place in tables(effect)})
        header = _HEADER_JSON % ev.header_fields(event.data)
        yield from self._hold(Part(topic, uri, event.position, body, header, 1, content_sum(uri, text)))

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

    def topics_of(self, tables: Iterable[TableShape]) -> set[str]:
        """Where the rows of these tables go."""
        return {self._topic(table.database, table.name) for table in tables}

    def _topic(self, database: str, table: str) -> str:
        topic = self._topics_of_tables.get((database, table))
        if topic is None:
            topic = self._topics_of_tables[database, table] = self._topics.of_table(database, table)
        return topic


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
