"""Builds Debezium's messages of a record: one for each row, and their keys. Pure.

Each message is derived from a record alone, besides what only the binlog's events contain (``TableDetails``, the
session's thread), so the same record always becomes the same messages, in the same order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from cdc.config.debezium import Debezium
from cdc.config.topic_names import debezium_topic
from cdc.model.gtid import is_gtid
from cdc.model.position import Position
from cdc.model.record import COPY, Record, Row
from cdc.model.values import Value
from cdc.producer.debezium.defaults import ColumnDefault, default_value
from cdc.producer.debezium.message import DebeziumMessage, Headers, Heads, RowChange, payload_text, rendered
from cdc.producer.debezium.schema_changes import SchemaChanges
from cdc.producer.debezium.schemas import SchemaColumn, envelope_schema, key_schema
from cdc.producer.debezium.transactions import TransactionCounts
from cdc.producer.debezium.values import Convert, converter
from cdc.sql.column_types import read_type

__all__ = ["VERSION", "Envelopes", "TableDetails", "java_partition"]

VERSION = "3.4.1.Final"  # the version of Debezium whose messages these are
_OPERATIONS = {"Add": "c", "Update": "u", "Delete": "d", COPY: "r"}
_MOST = (1 << 63) - 1
_Images = tuple[dict[str, Any] | None, dict[str, Any] | None]  # before, after
_NEW_KEY, _OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


@dataclass(frozen=True, slots=True)
class TableDetails:
    """The facts about a table that a record lacks: the types of its columns, and by their places which columns are NOT
    NULL, which have the type POINT, the members of ENUM and SET if records contain their numbers, and the defaults.
    """

    types: tuple[str, ...]
    not_null: frozenset[int] = frozenset()
    points: frozenset[int] = frozenset()
    members: tuple[tuple[int, tuple[str, ...]], ...] = ()
    defaults: tuple[tuple[int, ColumnDefault], ...] = ()


class _Place(NamedTuple):
    """The columns of a table's key, the functions that convert its columns' values, and the texts around messages."""

    columns: tuple[str, ...]
    key: tuple[int, ...]
    convert: tuple[Convert, ...]
    heads: Heads

    def image(self, cols: Sequence[Value] | None) -> dict[str, Any] | None:
        if cols is None:
            return None
        return {name: convert(value) for name, convert, value in zip(self.columns, self.convert, cols, strict=True)}

    def key_of(self, image: Mapping[str, Any]) -> bytes | None:
        if not self.key:
            return None
        return orjson.dumps({self.columns[at]: image[self.columns[at]] for at in self.key})

    def key_message(self, key: bytes | None) -> bytes | None:
        """Returns the text of a ``key`` (``key_of``) as the key of a message."""
        return key if key is None else self.heads.of_key(key)


class Envelopes:
    """Converts the records of one leader, in their order. ``prefix`` is the leader's name, and begins all topics.

    ``counts`` counts the messages of the open transaction; it is None without ``provide_transaction_metadata``.
    ``schema_changes`` builds the messages of statements; it is None without ``include_schema_changes``.
    ``committed`` is the part of a transaction that is committed to Kafka (``TransactionCounts``). With ``merges`` the
    messages contain what is needed to merge those of one row (``RowWindow``).
    """

    def __init__(
        self,
        *,
        prefix: str,
        modes: Debezium,
        committed: tuple[str, Mapping[str, Any]] = ("", {}),
        merges: bool = False,
    ) -> None:
        self._prefix = prefix
        self._merges = merges
        self._modes = modes
        self._event: tuple[str, Position] | None = None
        self._rows = 0
        self.schema_changes: SchemaChanges | None = None
        if modes.include_schema_changes:
            self.schema_changes = SchemaChanges(prefix, self._source, schemas=modes.schemas_enable)
        self.counts: TransactionCounts | None = None
        if modes.provide_transaction_metadata:
            self.counts = TransactionCounts(prefix, schemas=modes.schemas_enable, committed=committed)
        self._place = lru_cache(maxsize=10_000)(self._new_place)

    @property
    def has_schemas(self) -> bool:
        return self._modes.schemas_enable

    def messages(
        self, record: Record, details: TableDetails, *, server_id: int, thread: int | None, now_ns: int
    ) -> Iterator[DebeziumMessage]:
        """Yields the messages of the rows of ``record``, after the message about the begin of its transaction if it is
        the first one. ``server_id`` and ``thread`` are of the event and of the session that wrote it, ``now_ns`` is the
        time of the conversion.
        """
        uri, operation = record.uri, _OPERATIONS.get(record.operation)
        if operation is None or uri.table is None:
            return
        topic = debezium_topic(self._prefix, uri.database, uri.table)
        place = self._place(topic, record.columns, record.key or (), details)
        source = self._source(record) | {"server_id": server_id, "thread": thread}
        if self.counts and not record.of_copy and (begun := self.counts.begun(record)) is not None:
            yield begun
        # A large event becomes several records; Debezium counts its rows from the event's beginning.
        event = (record.transaction, record.position)
        self._rows, self._event = (self._rows if event == self._event else 0), event
        for row in record.rows:
            source["row"] = 0 if operation == "r" else self._rows
            self._rows += 1
            yield from self._of_row(operation, row, _Context(record, source, now_ns, topic, place))

    def ended(self, record: Record) -> DebeziumMessage | None:
        """Returns the message about the end of the transaction of ``record``; None if there is none."""
        return self.counts.ended(record) if self.counts else None

    def _of_row(self, operation: str, row: Row, context: "_Context") -> Iterator[DebeziumMessage]:
        place = context.place
        before, after = place.image(row.before), place.image(row.after)
        old = place.key_of(before) if before is not None else None
        new = place.key_of(after) if after is not None else None
        if operation == "u" and old != new and before is not None and after is not None:
            # A new key is another row to readers: the row with the old key is deleted.
            marked: Headers = [(_NEW_KEY, new)]
            yield from self._deleted(old, before, context, marked)
            yield self._message("c", new, (None, after), context, [(_OLD_KEY, old)])
        elif operation == "d" and before is not None:
            yield from self._deleted(old, before, context, [])
        else:
            yield self._message(operation, new, (before, after), context, [])

    def _deleted(
        self, old: bytes | None, before: dict[str, Any], context: "_Context", headers: Headers
    ) -> Iterator[DebeziumMessage]:
        yield self._message("d", old, (before, None), context, headers)
        if self._modes.tombstones_on_delete:
            yield DebeziumMessage(context.topic, context.place.key_message(old), None, headers)

    def _message(
        self, operation: str, key: bytes | None, images: _Images, context: "_Context", headers: Headers
    ) -> DebeziumMessage:
        record, source, now_ns, topic, place = context
        payload = {
            "before": images[0],
            "after": images[1],
            "source": dict(source) if self._merges else source,  # the next row changes ``source``
            "transaction": self.counts.block(record) if self.counts and not record.of_copy else None,
            "op": operation,
            "ts_ms": now_ns // 1_000_000,
            "ts_us": now_ns // 1000,
            "ts_ns": now_ns,
        }
        value = place.heads.of_value(payload_text(payload))
        change = RowChange(payload, place.heads) if self._merges else None
        return DebeziumMessage(topic, place.key_message(key), value, headers, change)

    def _source(self, record: Record) -> dict[str, Any]:
        return {
            "version": VERSION,
            "connector": "mysql",
            "name": self._prefix,
            "ts_ms": record.ts_us // 1000,
            "snapshot": _snapshot(record),
            "db": record.uri.database,
            "sequence": None,
            "ts_us": record.ts_us,
            "ts_ns": record.ts_us * 1000,
            "table": record.uri.table,
            "server_id": 0,
            "gtid": record.transaction if is_gtid(record.transaction) else None,
            "file": record.position.file,
            "pos": record.position.offset,
            "row": 0,
            "thread": None,
            "query": None,
        }

    def _new_place(self, topic: str, columns: tuple[str, ...], key: tuple[str, ...], details: TableDetails) -> _Place:
        members = dict(details.members)
        convert = tuple(
            converter(
                read_type(type_),
                self._modes,
                nullable=at not in details.not_null,
                is_point=at in details.points,
                members=members.get(at, ()),
            )
            for at, type_ in enumerate(details.types)
        )
        places = tuple(columns.index(name) for name in key)
        heads = Heads()
        if self._modes.schemas_enable:
            # Rendered once for each version of a table, so a row costs no more than a concatenation.
            found = [self._column(at, name, details, convert[at]) for at, name in enumerate(columns)]
            of_key = key_schema(topic, [found[at] for at in places], self._modes)
            heads = rendered(of_key, envelope_schema(topic, found, self._modes))
        return _Place(columns, places, convert, heads)

    def _column(self, at: int, name: str, details: TableDetails, convert: Convert) -> SchemaColumn:
        kind, nullable = read_type(details.types[at]), at not in details.not_null
        shown = dict(details.defaults).get(at)
        value = None if shown is None else default_value(details.types[at], shown)
        # Debezium takes the beginning of 1970 for no default, in a TIMESTAMP that may be NULL.
        is_none = value is None or (nullable and value == {"Timestamp": {"unix_time": 0, "subsecond": 0}})
        default = None if is_none else convert(value)
        if value is not None and "UnsignedInteger" in value and self._modes.bigint_unsigned_handling_mode == "long":
            default = min(value["UnsignedInteger"], _MOST)  # no negative number, unlike a row's value
        members = kind.members or dict(details.members).get(at, ())
        return SchemaColumn(name, kind, nullable, at in details.points, members, default)


class _Context(NamedTuple):
    """What the messages of one record have in common."""

    record: Record
    source: dict[str, Any]
    now_ns: int
    topic: str
    place: _Place


def _snapshot(record: Record) -> str:
    """Returns how the rows came into the stream, in Debezium's words: by a copy of a whole table, or by its chunks."""
    if record.range is None:
        return "false"
    return "true" if record.range.piece is not None else "incremental"


_M, _R, _SEED = 0x5BD1E995, 24, 0x9747B28C
_WORD = 0xFFFFFFFF


def java_partition(key: bytes | None, partitions: int, *, number: int) -> int:
    """Returns the partition that Kafka's Java client chooses for ``key`` (murmur2). Messages without a key take turns:
    ``number`` is the number of the message.
    """
    if partitions == 1:
        return 0
    if key is None:
        return number % partitions
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    length = len(data)
    hashed = (_SEED ^ length) & _WORD
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _WORD
        word = (word ^ word >> _R) * _M & _WORD
        hashed = (hashed * _M & _WORD) ^ word
    if length > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _M & _WORD
    hashed = (hashed ^ hashed >> 13) * _M & _WORD
    return hashed ^ hashed >> 15
