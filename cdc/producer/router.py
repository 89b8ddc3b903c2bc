"""Changes to messages: which pass the filters, their sequence, their topic and their JSON text. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cdc.errors import PromiseError
from cdc.excerpt import excerpt
from cdc.filters import Filters, goes_by_name
from cdc.producer import events as ev
from cdc.producer.changes import Begin, Rows, Statement
from cdc.producer.ddl import Effect
from cdc.producer.events import RawEvent
from cdc.record import Uri

__all__ = ["Headers", "Message", "Router"]

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

    uri: str
    position: str
    body: str
    header: bytes


class Router:
    """Gives the records of one leader their sequence, from ``next_sequence`` on.

    ``half_out`` is a transaction, by id, that is larger than one Kafka transaction and was cut off after so many
    records: they are counted, not sent again.
    """

    def __init__(
        self,
        *,
        resource: str,
        topic: str,
        filters: Filters,
        record_bytes: int,
        next_sequence: int,
        half_out: tuple[str, int] | None = None,
    ) -> None:
        self._resource = resource
        self._topic = topic
        self._filters = filters
        self._record_bytes = record_bytes
        self.next_sequence = next_sequence
        self._half_out = half_out
        self._skip = 0
        self._begin: Begin | None = None
        self._index = 0
        self._held: _Part | None = None
        self._uris: dict[tuple[str, ...], str] = {}

    @property
    def sent(self) -> int:
        """How many records of the open transaction have left."""
        return self._index

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

    def rows(self, change: Rows) -> Iterator[Message]:
        """The messages that can leave now; the newest waits until it is known whether it is the transaction's last."""
        uri = self._uri(change.table.database, change.table.name)
        position, header = _position(change.event), _header(change.event)
        flags = f',"flags":{change.flags}' if change.flags else ""
        for rows in self._split(change):
            body = f'{change.table.columns_json}{flags},"operation":{{"{change.operation}":{{"rows":[{rows}]}}}}'
            yield from self._hold(_Part(uri, position, body, header))

    def statement(self, change: Statement) -> Iterator[Message]:
        """The message of a statement, unless no object that it affects passes the filters.

        Raises PromiseError where some pass and some do not, since half a statement can't be replicated, and for a
        statement that a follower can't repeat faithfully.
        """
        places = [place for effect in change.effects for place in _places(effect)]
        wanted = [self._wants(*place) for place in places]
        if not any(wanted):
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
                hint="leave the table out with the filters, and on the leader copy it: CREATE TABLE new … SELECT",
            )
        affects = [self._affect(effect) for effect in change.effects]
        body = (
            f'"operation":{{"Query":{_text(change.text)}}},"context":{_text(change.context)},"affects":{_text(affects)}'
        )
        uri = self._uri(change.effects[0].database)
        yield from self._hold(_Part(uri, _position(change.event), body, _header(change.event)))

    def commit(self) -> Iterator[Message]:
        """The transaction is complete: its newest record leaves as the last one."""
        yield from self._release(last=True)
        if self._skip and self._index <= self._skip:
            raise PromiseError(
                f"{self._skip} records of a transaction are out, but it now has {self._index}",
                hint="the leader logged it anew: give the producer a new topic and the follower a fresh copy",
            )
        self._skip = 0

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
        value = (
            f'{{"uri":"{part.uri}","sequence":{self.next_sequence},"bn_file":{part.position},'
            f'"transaction":{{"id":"{begin.transaction}","index":{self._index},"last":{"true" if last else "false"},'
            f'"ts_us":{begin.commit_us}}},{part.body}}}'
        )
        headers: Headers = [("mysql_binlog_headers", part.header)]
        yield Message(self._topic, part.uri.encode(), value.encode(), begin.commit_us // 1000, headers)
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

    def _affect(self, effect: Effect) -> dict[str, str]:
        names = (effect.database,) if effect.name is None else (effect.database, effect.name)
        affect = {"action": effect.action, "uri": self._uri(*names)}
        if effect.to is not None:
            affect["to"] = self._uri(*effect.to)
        return affect

    def _uri(self, *names: str) -> str:
        uri = self._uris.get(names)
        if uri is None:
            uri = self._uris[names] = str(Uri(self._resource, *names))
        return uri


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _places(effect: Effect) -> list[tuple[str, str | None]]:
    places = [(effect.database, effect.name), *([effect.to] if effect.to else [])]
    return [(database, name if goes_by_name(effect.action) else None) for database, name in places]


def _position(event: RawEvent) -> str:
    return f'{{"fileName":"{event.file}","offset":{event.offset}}}'


def _header(event: RawEvent) -> bytes:
    timestamp, kind, server_id, length, end, flags = ev.header(event.data)
    return (
        f'{{"timestamp":{timestamp},"event_type":{kind},"server_id":{server_id},"event_length":{length},'
        f'"next_event_position":{end},"event_flags":{flags}}}'
    ).encode()
