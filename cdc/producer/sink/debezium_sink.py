"""Writes Debezium's messages of each record into the same Kafka transaction, each of them once.

Each message names, in the header ``cdc_record``, the record that it was made of: the leader's name, the record's
sequence, the number of the message among the record's messages in that topic, and the record's CRC-32. A partition gets
its messages in this order, and none while an unfinished transaction blocks it. So the newest message that readers can
see in a partition shows which messages are still to be written there, also if readers see a Kafka transaction in some
topics and not in others. With a ``RowWindow``, the messages of rows wait for the end of the Kafka transaction.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import quote

import orjson

from cdc.config.topic_names import debezium_topic, is_debezium_topic
from cdc.errors import PromiseError, UserError
from cdc.kafka.partitions import backwards
from cdc.model.position import Partition, partition_name, partition_of
from cdc.model.record import Record
from cdc.producer.binlog.events import HEADER_BYTES
from cdc.producer.debezium.envelope import Envelopes, TableDetails, java_partition
from cdc.producer.debezium.heartbeats import Heartbeats
from cdc.producer.debezium.message import DebeziumMessage
from cdc.producer.debezium.row_window import Held, RowWindow
from cdc.producer.decode.changes import (
    Begin,
    Change,
    Chunk,
    ColumnDetails,
    Copied,
    Rows,
    RowsTransaction,
    Statement,
    Table,
    TableShape,
)
from cdc.producer.large_rows import checksum
from cdc.producer.sink.debezium_marks import MadeOf, Visible, headers_of
from cdc.producer.sink.kafka_transactions import KafkaTransactions
from cdc.producer.sink.leader_columns import LeaderColumns
from cdc.producer.sink.record_parts import Message
from cdc.producer.sink.recovery import without_types
from cdc.producer.sink.topic_admin import TopicAdmin

__all__ = ["DebeziumSink"]

_THREAD_ID = slice(HEADER_BYTES, HEADER_BYTES + 4)  # of the session, in a Query event
_ANEW = (
    'start once with kafka.format = ["cdc"], or set another debezium.topic_prefix; then have the rows copied into '
    "Debezium's topics with cdc-producer PROFILE --copy"
)


@dataclass(slots=True)
class _Topic:
    """A topic that is open: the number of its partitions, and of the messages written to it."""

    partitions: int
    written: int = 0
    visible: dict[int, Visible] = field(default_factory=dict)


class DebeziumSink:
    """Writes the messages of the records from ``next_sequence`` on; ``newest`` is the newest sequence in each
    ``topic/partition``, as in the commit log's entries. ``leader`` is set before the first write if messages contain
    what only the leader shows of a table. ``window`` merges the messages of rows, if it is set.
    """

    def __init__(
        self,
        topics: TopicAdmin,
        envelopes: Envelopes,
        *,
        resource: str,
        next_sequence: int,
        newest: Mapping[str, int],
        heartbeats: Heartbeats,
        window: RowWindow[MadeOf] | None = None,
    ) -> None:
        self._heartbeats = heartbeats
        self._window = window
        self._admin = topics
        self._envelopes = envelopes
        self._resource = quote(resource, safe="")
        self._next_sequence = next_sequence
        self.newest = {
            name: sequence for name, sequence in newest.items()
            if is_debezium_topic(topics.debezium_prefix, partition_of(name)[0])
        }  # fmt: skip
        self._topics: dict[str, _Topic] = {}
        self._details: dict[Table, tuple[TableShape | None, TableDetails]] = {}
        self._thread: int | None = None
        self._is_altered = False  # whether a table's columns may be others than in the messages that are held
        self.leader: LeaderColumns | None = None

    def note(self, change: Change) -> None:
        """Remembers what the records of ``change`` do not contain; to be called before they are written."""
        match change:
            case RowsTransaction():
                self._begin(change.begin)
                for rows in change.rows:
                    self._learn(rows.table)
            case Begin():
                self._begin(change)
            case Rows():
                self._learn(change.table)
            case Copied(content=Chunk() as chunk):
                details = self._table_details(chunk.table, chunk.columns_json, chunk.types_json, chunk.details)
                self._details[chunk.table] = None, details
            case Statement() if self.leader is not None:
                self._forget(change)

    def missing(self, change: Change) -> set[str]:
        """Returns the topics of ``change`` that are not open yet. Opening them may take longer than a Kafka transaction
        may last.
        """
        topics = set[str]()
        match change:
            case RowsTransaction():
                topics = self._of_rows_topics({rows.table.names for rows in change.rows})
            case Rows():
                topics = self._of_rows_topics({change.table.names})
            case Copied(content=Chunk() as chunk):
                topics = self._of_rows_topics({chunk.table})
            case Statement() | Copied() if self._envelopes.schema_changes is not None:
                topics = {self._envelopes.schema_changes.topic}
        return (topics | self._heartbeats.topics) - self._topics.keys()

    def _of_rows_topics(self, tables: set[Table]) -> set[str]:
        topics = {debezium_topic(self._admin.debezium_prefix, *each) for each in tables}
        return topics | ({self._envelopes.counts.topic} if self._envelopes.counts is not None else set())

    def committed_part(self, transaction: str) -> dict[str, Any]:
        """Returns the counts of the messages of ``transaction``, of which a part is committed to Kafka, in the form of
        the commit log's entries; empty if they are not counted.
        """
        return self._envelopes.counts.state(transaction) if self._envelopes.counts is not None else {}

    def open(self, names: set[str]) -> None:
        """Creates missing topics, and finds out which messages readers see in them already.

        Raises UserError for a topic of another leader, Disconnected, and the translated errors of Kafka.
        """
        for name, partitions in self._admin.open_debezium(names).items() if names else ():
            topic = _Topic(partitions)
            for number in range(partitions):
                if (found := Visible.of(self._new_marks((name, number)))) is not None:
                    topic.visible[number] = found
            self._topics[name] = topic

    def write(self, message: Message, sequence: int, batch: KafkaTransactions) -> int:
        """Writes the messages of the record in ``message`` into the open transaction; returns their size in bytes.

        Raises PromiseError if readers see messages of this record that were made of another one.
        """
        record = Record.parse(bytes(message.value), where=f"record {sequence}")
        of_record, size = 0, 0
        numbers: Counter[str] = Counter()  # a message has its number among those of its topic
        is_statement = record.operation == "Query"
        if is_statement or self._is_altered:
            # Images of before and after a statement may have different columns, so they are not merged.
            self.write_held(batch)
        for each in self._made(record, message):
            of_record = of_record or checksum(without_types(message.value))
            mark = MadeOf(self._resource, sequence, numbers[each.topic], of_record)
            numbers[each.topic] += 1
            size += len(each.key or b"") + len(each.value or b"")
            place = self._place(each, mark)
            if (counted := self._counted(place, mark)) is not None:
                self.newest[partition_name(place)] = counted
            elif self._window is None or is_statement:
                self._send(Held(each, place, mark, message.time_ms), batch)
            else:
                names = record.uri.database, record.uri.table or ""
                self._window.add(names, Held(each, place, mark, message.time_ms))
        return size

    def write_held(self, batch: KafkaTransactions) -> None:
        """Writes the messages that wait for the end of the window; to be called before each commit."""
        self._is_altered = False
        for held in self._window.drain() if self._window is not None else ():
            self._send(held, batch)

    @property
    def heartbeat_is_due(self) -> bool:
        return self._heartbeats.topics <= self._topics.keys() and self._heartbeats.is_due(time.monotonic())

    def write_heartbeat(self, batch: KafkaTransactions) -> None:
        now_ms = int(time.time() * 1000)
        message = self._heartbeats.message(now_ms, monotonic=time.monotonic())
        partition = java_partition(message.key, self._topics[message.topic].partitions, number=0)
        batch.produce(message.topic, message.key, message.value, now_ms, message.headers, partition)

    @property
    def deduplicated(self) -> int:
        """The number of messages that others have replaced."""
        return self._window.saved if self._window is not None else 0

    def _made(self, record: Record, message: Message) -> Iterator[DebeziumMessage]:
        yield from (
            self._of_statement(record, message) if record.operation == "Query" else self._of_rows(record, message)
        )
        if (ended := self._envelopes.ended(record)) is not None:
            yield ended

    def _of_rows(self, record: Record, message: Message) -> Iterator[DebeziumMessage]:
        if record.uri.table is None or not record.rows:
            return iter(())
        table = record.uri.database, record.uri.table
        thread = None if record.of_copy else self._thread
        return self._envelopes.messages(
            record, self._details[table][1], server_id=_server_id(message), thread=thread, now_ns=time.time_ns()
        )

    def _of_statement(self, record: Record, message: Message) -> Iterator[DebeziumMessage]:
        changes, leader = self._envelopes.schema_changes, self.leader
        if changes is None or leader is None:
            return iter(())
        definition = partial(leader.definition, position=record.position, is_statement=not record.of_copy)
        return changes.messages(record, definition, server_id=_server_id(message), now_ns=time.time_ns())

    def require_no_chunk(self, sequence: int) -> None:
        """Raises PromiseError: readers see a chunk of a copy, with the ``sequence``, but perhaps not its messages, and
        its rows can't be read again as they were.
        """
        raise PromiseError(
            f"record {sequence}, which a copy wrote, is committed, but perhaps not its messages in Debezium's topics",
            code="CDC-DEBEZIUM-MESSAGES-LOST",
            where=f"topics {self._admin.debezium_prefix}.*",
            hint=_ANEW,
        )

    def _place(self, message: DebeziumMessage, mark: MadeOf) -> Partition:
        if message.topic not in self._topics:
            self.open({message.topic})
        count = self._topics[message.topic].partitions
        return message.topic, java_partition(message.key, count, number=mark.sequence + mark.number)

    def _send(self, held: Held[MadeOf], batch: KafkaTransactions) -> None:
        message, (topic, partition) = held.message, held.place
        headers = [*message.headers, *headers_of(held)]
        batch.produce(topic, message.key, message.value, held.time_ms, headers, partition)
        self.newest[partition_name(held.place)] = held.mark.sequence

    def _counted(self, place: Partition, mark: MadeOf) -> int | None:
        """Returns the sequence to count for the partition if readers see the message already, or one that it was merged
        into, so that it is not written again; else None.
        """
        found = self._topics[place[0]].visible.get(place[1])
        if found is None:
            return None
        try:
            return found.counted(mark)
        except ValueError:
            raise PromiseError(
                f"readers see messages behind record {mark.sequence} already, or of another record of that number",
                code="CDC-DEBEZIUM-MESSAGES-LOST",
                where=f"topic {place[0]}, partition {place[1]}",
                hint=_ANEW,
            ) from None

    def _new_marks(self, partition: Partition) -> Iterator[MadeOf]:
        for made in self._marks(partition):
            if made is None or made.sequence < self._next_sequence:
                return
            yield made

    def _marks(self, partition: Partition) -> Iterator[MadeOf | None]:
        for made in backwards(self._admin.properties, partition, pick=MadeOf.of):
            if made is not None and made.resource != self._resource:
                raise UserError(
                    f"the topic has messages of another leader, {made.resource!r}",
                    code="CDC-TOPIC-OTHER-LEADER",
                    where=f"topic {partition[0]}",
                    hint="set debezium.topic_prefix to tell the leaders' topics apart",
                )
            yield made

    def _begin(self, begin: Begin) -> None:
        self._thread = int.from_bytes(begin.query[_THREAD_ID], "little") if begin.query else None

    def _learn(self, shape: TableShape) -> None:
        known = self._details.get(shape.names)
        if known is None or known[0] is not shape:
            details = self._table_details(shape.names, shape.columns_json, shape.types_json, shape.details())
            self._is_altered = self._is_altered or (known is not None and known[1] != details)
            self._details[shape.names] = shape, details

    def _forget(self, statement: Statement) -> None:
        """Forgets the tables whose defaults the statement may have changed: that changes no table map."""
        for effect in statement.effects:
            for table in ((effect.database, effect.name), effect.to):
                if table is not None and table[1] is not None:
                    self._details.pop((table[0], table[1]), None)
            if effect.name is None:
                self._details.clear()

    def _table_details(self, table: Table, columns_json: str, types_json: str, details: ColumnDetails) -> TableDetails:
        found = TableDetails(_members(types_json[1:], "types"), *details)
        if self.leader is None or not self._envelopes.has_schemas:
            return found
        defaults, names = self.leader.defaults(table), _members(columns_json, "columns")
        return replace(found, defaults=tuple((at, defaults[name]) for at, name in enumerate(names) if name in defaults))


def _server_id(message: Message) -> int:
    """Returns the id of the server that wrote the event of a record; 0 for a record that a copy wrote."""
    header = dict(message.headers).get("mysql_binlog_headers")
    return int(orjson.loads(header)["server_id"]) if header else 0


def _members(text: str, name: str) -> tuple[str, ...]:
    """Returns the list ``name`` of a part of a record."""
    return tuple(orjson.loads(f"{{{text}}}")[name])
