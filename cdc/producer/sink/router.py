"""Turns changes into messages for Kafka: applies the filters, assigns each record its sequence, topic and partition,
and builds its JSON text.
"""

import logging
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from cdc.config.filters import Filters
from cdc.config.topic_names import Topics
from cdc.errors import PromiseError
from cdc.model.commit_entry import Entry, Partial
from cdc.model.position import Partition, partition_name
from cdc.model.record import Uri
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.event_types import NAMES, UPDATES
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.changes import (
    Begin,
    Beginning,
    Change,
    Chunk,
    Commit,
    Copied,
    CopyState,
    Refused,
    Rows,
    RowsTransaction,
    Statement,
    TableShape,
    passed_over,
)
from cdc.producer.large_rows import LargeText
from cdc.producer.left_out_columns import shown
from cdc.producer.sink.filter_boundary import may_fire, may_pass, passing, tables
from cdc.producer.sink.record_parts import (
    COPYING,
    RECORD,
    Headers,
    Message,
    Part,
    Place,
    ToldTypes,
    affects,
    chunk_body,
    copied_message,
    creation_body,
    encoded,
    is_large,
    joined,
    json_text,
    rows_body,
    split,
)  # fmt: skip
from cdc.producer.skips import Skips
from cdc.sql.effects import Effect, adds_foreign_keys
from cdc.sql.tokens import excerpt

__all__ = ["SUMS", "CommittedPart", "Partitioner", "Router", "content_sum", "row_sum", "unordered_sum"]

# Continues a leader transaction that is larger than one Kafka transaction, after the part of it that is committed.
#
# The committed part is counted in rows; a statement counts as one row. Each server returns the rows in the same order,
# but may divide them into other events. Another version or other settings of ``cdc`` may divide them into other
# records.
#
# A replica changes and deletes the rows of a table without a key in the order in which it finds them in its table, and
# logs them in that order. So after a failover the new leader's binlog may contain the rows of such a table in another
# order. The sum of checksums over as many rows as were committed shows whether they are the committed rows.

SUMS = 1 << 64  # sums of checksums are below this number

_SUMMED = 1000  # number of characters at each end of a text that its checksum covers
_LONGEST = 4  # maximum number of bytes of a character in UTF-8
_INSIDE_A_CHARACTER = bytes(range(0x80, 0xC0))  # bytes in UTF-8 that are not the first byte of a character
_SLICE = 1 << 20
_WAY_OUT = (
    "continue with the server and the version that wrote them until that transaction is complete; if these are gone, "
    "give the producer a new topic and the follower a fresh copy"
)


def content_sum(uri: str, text: str) -> int:
    """Computes a checksum that distinguishes a statement, or a row's JSON text, from others; does not read all of a
    long text.
    """
    part = text if len(text) <= 2 * _SUMMED else f"{len(text)} {text[:_SUMMED]}{text[-_SUMMED:]}"
    return crc32(f"{uri} {part}".encode("utf-8", "surrogatepass"))


def row_sum(uri: str, row: bytes | LargeText) -> int:
    """Computes the checksum (``content_sum``) of a row's JSON text, which is in UTF-8; decodes only the two ends of a
    long text.
    """
    enough = _LONGEST * _SUMMED
    if len(row) <= 2 * enough:
        return content_sum(uri, bytes(row).decode())
    if isinstance(row, LargeText):
        length, ends = row.characters, (row.head(enough)[:enough], row.tail(enough)[-enough:])
    else:
        slices = (row[begin : begin + _SLICE] for begin in range(0, len(row), _SLICE))
        length = sum(len(part.translate(None, _INSIDE_A_CHARACTER)) for part in slices)
        ends = row[:enough], row[-enough:]
    # A cut may split a character, but only outside of the characters that the checksum covers.
    head, tail = (part.decode(errors="ignore") for part in ends)
    return crc32(f"{uri} {length} {head[:_SUMMED]}{tail[-_SUMMED:]}".encode())


def unordered_sum(change: Rows, uri: str, rows: Iterable[bytes | LargeText]) -> int:
    """Returns the sum of the checksums of ``rows``, which are rows of ``change``; 0 if each server logs them in the
    same order.
    """
    # A filter of rows may turn an update into an insert or a delete, with the same text for both.
    is_turned = change.operation != "Update" and change.event.type in UPDATES
    if change.table.keyed or (change.operation == "Add" and not is_turned):
        return 0
    uri = f"{uri} {change.operation}" if is_turned else uri
    return sum(row_sum(uri, row) for row in rows) % SUMS


class CommittedPart:
    """Leaves out the committed rows of ``partial`` while its transaction is read again; ``left`` is the number of these
    rows that are still to be read."""

    def __init__(self, partial: Partial) -> None:
        self.partial = partial
        self.left = partial.rows or 0
        self._unordered = 0

    def rows(self, change: Rows, uri: str) -> Rows:
        """Returns ``change`` without its committed rows. Raises PromiseError if the last committed row differs from the
        row read now.
        """
        committed = change.rows[: self.left]
        if committed:
            unordered = unordered_sum(change, uri, committed) if self.partial.unordered else 0
            self._unordered = (self._unordered + unordered) % SUMS
            # If the order of the rows depends on the server, another row may be the last one now. Then the last row is
            # not compared by itself: the sum, which contains all these rows, is compared instead.
            self._leave_out(len(committed), lambda: row_sum(uri, committed[-1]) if not unordered else None, uri)
        return change._replace(rows=change.rows[len(committed) :])

    def statement(self, uri: str, text: str) -> bool:
        """Whether the statement is committed. Raises PromiseError if the last committed statement differs from this
        statement."""
        if not self.left:
            return False
        self._leave_out(1, lambda: content_sum(uri, text), uri)
        return True

    def _leave_out(self, number: int, newest: Callable[[], int | None], uri: str) -> None:
        self.left -= number
        if self.left:
            return
        if newest() not in (self.partial.newest, None) or self._unordered != self.partial.unordered:
            raise PromiseError(
                f"{self.partial.rows} rows of transaction {self.partial.transaction} are committed, and not all of "
                f"them are those that the leader has there now; the last one was a row of {uri}",
                code="CDC-TOPIC-RECORDS-DIFFER",
                hint=f"a server or version that logs or reads other rows: {_WAY_OUT}",
            )

    def require_more(self, records: int) -> None:
        """Raises PromiseError unless the complete transaction has more records than its committed part; ``records`` is
        their number.
        """
        if self.left or records <= self.partial.records:
            have = (self.partial.rows or 0) - self.left
            raise PromiseError(
                f"{self.partial.rows} rows of transaction {self.partial.transaction} are committed, but it now has "
                f"{have}",
                code="CDC-TOPIC-RECORDS-DIFFER",
                hint=f"the leader logged it again in another way: {_WAY_OUT}",
            )


_MAX_HEADS = 10_000
_SKIPPED = "skipped"  # stands for a skipped event in checksums, because the event's position differs between servers
_HEADER_JSON = (
    b'{"timestamp":%d,"event_type":%d,"server_id":%d,"event_length":%d,"next_event_position":%d,"event_flags":%d}'
)

_new = tuple.__new__  # the constructor Message(…) takes twice as long
_BOOL = {False: "false", True: "true"}


class Router:
    """Builds the messages of one leader's changes, and numbers their records from ``next_sequence`` on.

    ``partial`` is the committed part of a transaction that is larger than one Kafka transaction; it is not written
    again. ``filtered`` counts the statements that did not pass the filters. ``skips`` decides which refused events to
    skip. ``incomplete`` are the tables that are being copied.
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
        self._unfinished = partial
        self._committed_part: CommittedPart | None = None
        self._begin: Begin | None = None
        self._index = 0
        self._rows = 0
        self._newest = 0
        self._unordered = 0
        self._held: Part | None = None
        self._heads: dict[tuple[str, str], tuple[str, str, bytes]] = {}
        self._told = ToldTypes()
        self.filtered = 0
        self.skips = Skips()
        self.incomplete: frozenset[tuple[str, str]] = frozenset()

    @property
    def sent(self) -> int:
        """The number of written records of the open transaction; 0 if no transaction is open.

        It is also 0 while the records that an earlier run has committed are left out: the commit log's entry already
        counts them.
        """
        return 0 if self._committed_part and self._committed_part.left else self._index

    @property
    def partial(self) -> Partial | None:
        """The written part of the open transaction; None if no record of it is written (``sent`` is 0)."""
        if self._begin is None or not self.sent:
            return None
        return Partial(self._begin.transaction, self._index, self._rows, self._newest, self._unordered)

    def route(self, change: Change) -> Iterator[Message]:
        """Yields the messages of ``change``; none if it has no message, or is not to be replicated. Raises PromiseError
        as the methods below do.
        """
        match change:
            case RowsTransaction():
                return self.whole(change)
            case Begin():
                self.begin(change)
            case Rows():
                return self.rows(change)
            case Statement():
                return self.statement(change)
            case Refused():
                return self.refused(change)
            case Commit():
                return self.commit()
            case Copied():
                return self.copied(change)
            case CopyState():
                self._go_on_with(change)
        return iter(())

    def _go_on_with(self, state: CopyState) -> None:
        self.incomplete = state.incomplete
        if state.filters is not None:
            self._filters = state.filters

    def begin(self, begin: Begin) -> None:
        """Starts a transaction."""
        self._begin, self._index, self._rows, self._held, self._committed_part = begin, 0, 0, None, None
        self._unordered = 0
        partial = self._unfinished
        if partial is not None and begin.transaction == partial.transaction:
            self._unfinished, self._committed_part = None, CommittedPart(partial)
            self._index, self._rows, self._newest = partial.records, partial.rows or 0, partial.newest
            self._unordered = partial.unordered

    def _require_its_turn(self) -> None:
        """Raises PromiseError if another transaction is partially committed: the rest of that transaction must come
        first.
        """
        if self._unfinished is not None and self._begin is not None:
            raise PromiseError(
                f"transaction {self._unfinished.transaction} is partially committed, but the leader "
                f"continues with {self._begin.transaction}",
                code="CDC-TOPIC-RECORDS-DIFFER",
                hint="the leader lost binlogs, or has its transactions in another order: point the profile at a server "
                "that continues with it, or give the producer a new topic and the follower a fresh copy",
            )

    def whole(self, change: RowsTransaction) -> Iterator[Message]:
        """Yields all messages of a transaction that was decoded at once, since it contains only rows. Raises
        PromiseError as ``rows`` and ``commit`` do.

        This method runs for nearly every transaction, so it calls as few functions as possible.
        """
        (transaction, _, commit_us, mode, _), last = change.begin, len(change.rows) - 1
        if self._unfinished is not None or self.incomplete or is_large(change.rows, self._record_bytes):
            yield from self._event_by_event(change)
            return
        # Until all messages are written, ``sent`` counts them as records of an open transaction.
        self._index = last + 1
        for index, ((_, data, file, offset, _, _), table, operation, rows, flags) in enumerate(change.rows):
            topic, uri, key = self._heads.get(table.names) or self._head(table)
            columns = table.columns_json if table.told == self._told.statements else self._told.columns(table)
            texts = b",".join(rows)  # type: ignore[arg-type]  # such a transaction has no event on disk
            before, texts, after = rows_body(columns, flags, mode, operation, texts)
            head = RECORD % (
                uri, self.next_sequence + index, file, offset, transaction, index, _BOOL[index == last], commit_us
            )  # fmt: skip
            value = b"".join((f"{head}{before}".encode(), texts, f"{after}}}".encode()))
            headers: Headers = [("mysql_binlog_headers", _HEADER_JSON % ev.header_fields(data))]
            yield _new(Message, (topic, key, value, commit_us // 1000, headers))
        self.next_sequence += last + 1
        self._index = 0

    def _event_by_event(self, change: RowsTransaction) -> Iterator[Message]:
        self.begin(change.begin)
        for rows in change.rows:
            yield from self.rows(rows)
        yield from self.commit()

    def _head(self, table: TableShape) -> tuple[str, str, bytes]:
        """Returns the topic, URI and Kafka key of a table's records.

        They are cached by the table's names, and not by ``table``, so that the cache keeps no TableShape in memory that
        is no longer used.
        """
        return self._heads.get(table.names) or self._head_of(table.names)

    def _head_of(self, names: tuple[str, str]) -> tuple[str, str, bytes]:
        if len(self._heads) > _MAX_HEADS:
            self._heads.clear()
        uri = self._uri(*names)
        head = self._heads[names] = (self._topics.of_table(*names), uri, uri.encode())
        return head

    def rows(self, change: Rows) -> Iterator[Message]:
        """Yields the messages that are certainly not the last of their transaction. Keeps back the newest message,
        which may be the last.

        Raises PromiseError if another transaction is partially committed, or if this transaction is partially committed
        and has changed.
        """
        self._require_its_turn()
        topic, uri, _ = self._head(change.table)
        if self._committed_part:
            change = self._committed_part.rows(change, uri)
            if not change.rows:
                return
        header = _HEADER_JSON % ev.header_fields(change.event.data)
        mode = self._begin and self._begin.sql_mode
        copying = change.table.names in self.incomplete
        for rows in split(change.rows, self._record_bytes):
            # The parts of the body are joined only when the record is sent, since a row may be large.
            body = rows_body(self._told.columns(change.table), change.flags, mode, change.operation, joined(rows))
            marked = (COPYING, *body) if copying else body
            newest, unordered = row_sum(uri, rows[-1]), unordered_sum(change, uri, rows)
            part = Part(topic, uri, change.event.position, marked, header, len(rows), newest, unordered)
            yield from self._hold(part)

    def statement(self, change: Statement) -> Iterator[Message]:
        """Yields the message of a statement, or none if no object that it affects passes the filters. Raises the errors
        of ``refused``.
        """
        try:
            passed = passing(change, self._filters)
        except PromiseError as error:
            yield from self.refused(Refused(change.event, error, passed_over(change.effects), excerpt(change.text)))
            return
        if passed is None:
            self.filtered += 1
            return
        change = passed
        self._told.forget(change.effects)
        exact = {} if change.exact is None else {"Bytes": b64encode(change.exact).decode("ascii")}
        context = change.context
        if self.incomplete and adds_foreign_keys(change.effects, change.text):
            # A follower may still lack the rows to which the foreign keys refer, so it must not check them; the rows
            # exist once the copy is complete.
            context = context | {"foreign_key_checks": False}
        body = f'"operation":{json_text({"Query": change.text} | exact)},"context":{json_text(context)}'
        if change.copies:
            body = COPYING + body
        yield from self._on_objects(change.event, change.effects, body, change.text)

    def refused(self, change: Refused) -> Iterator[Message]:
        """Yields the message that an event was skipped, or none if no object that the event may have changed passes the
        filters.

        Raises PromiseError if the event is not to be skipped, no table is copied in its place, and the message is not
        committed yet. Also raises the errors of ``rows``.
        """
        event, name = change.event, change.event.name
        if not (may_pass(change.effects, self._filters) or (change.fires and may_fire(change.effects, self._filters))):
            self.filtered += 1
            self.skips.log("change outside of the filters not replicated", what=change.error.what, position=name)
            return
        # In a partially committed transaction, the count of committed rows shows that this message is committed.
        is_committed = self._committed_part is not None and self._committed_part.left > 0
        if not change.copies and not self.skips.allow(name) and not is_committed:
            raise self.skips.refusal(change.error, name) from None
        self.skips.log("event skipped", level=logging.WARNING, what=change.error.what, position=name)
        reason = shown(change.error.what, f"{change.error.code}, about a column that is left out", self._filters)
        what = {"event": NAMES.get(event.type, str(event.type)), "place": name, "reason": reason}
        text = shown(change.text, "", self._filters)
        body = f'"operation":{{"Skipped":{json_text(what | {"text": text})}}}'
        yield from self._on_objects(event, change.effects, body, _SKIPPED)

    def _on_objects(self, event: RawEvent, effects: tuple[Effect, ...], body: str, text: str) -> Iterator[Message]:
        """Yields the message of a statement or of a skipped event; yields nothing if the message is committed already.

        ``text`` enters the checksum by which the committed message is recognized, so it must be the same on each server
        that logs the change.
        """
        self._require_its_turn()
        topic, uri = self._statement_head(effects)
        if self._committed_part and self._committed_part.statement(uri, text):
            return
        header = _HEADER_JSON % ev.header_fields(event.data)
        whole = (f'{body},"affects":{affects(effects, self._resource)}',)
        yield from self._hold(Part(topic, uri, event.position, whole, header, 1, content_sum(uri, text)))

    def commit(self) -> Iterator[Message]:
        """Yields the message that was kept back, marked as the last message of the transaction."""
        yield from self._release(last=True)
        if self._committed_part:
            self._committed_part.require_more(self._index)
        self._index, self._committed_part = 0, None

    def copied(self, change: Copied) -> Iterator[Message]:
        """Yields the messages that a copy writes between two transactions."""
        due = change.content
        parts: list[tuple[str, str, tuple[str, ...]]]
        if isinstance(due, Chunk):
            parts = [(*self._head_of(due.table)[:2], chunk_body(due))]
        else:
            parts = [
                (*self._statement_head(each.effects), creation_body(each, resource=self._resource, ts_us=due.ts_us))
                for each in due.structure.creations
            ]
        for topic, uri, body in parts:
            place = Place(self.next_sequence, change.position, due.ts_us)
            yield copied_message(topic, uri, body, place, change.header)
            self.next_sequence += 1
        self._go_on_with(change.state)

    def _hold(self, part: Part) -> Iterator[Message]:
        yield from self._release(last=False)
        self._held = part

    def _release(self, *, last: bool) -> Iterator[Message]:
        part, begin = self._held, self._begin
        if part is None or begin is None:
            return
        self._held = None
        head = RECORD % (
            part.uri, self.next_sequence, part.position.file, part.position.offset,
            begin.transaction, self._index, _BOOL[last], begin.commit_us,
        )  # fmt: skip
        headers: Headers = [("mysql_binlog_headers", part.header)]
        value, rows, newest, unordered = encoded((head, *part.body, "}")), part.rows, part.newest, part.unordered
        message = Message(part.topic, part.uri.encode(), value, begin.commit_us // 1000, headers)
        del part, value  # while a large record is sent, one copy of it is enough
        yield message
        # The record is counted only when the caller resumes this generator; the caller does not if Kafka refused the
        # record.
        self._index += 1
        self._rows += rows
        self._newest = newest
        self._unordered = (self._unordered + unordered) % SUMS
        self.next_sequence += 1

    def _statement_head(self, effects: Sequence[Effect]) -> tuple[str, str]:
        """Returns the topic and URI of a statement's record."""
        topic = self._topics.of_statement({table for effect in effects for table in tables(effect)})
        return topic, self._uri(effects[0].database)

    def _uri(self, *names: str) -> str:
        return str(Uri(self._resource, *names))

    def topics(self, change: Change) -> set[str]:
        """Returns the topics of the tables whose rows ``change`` contains, and of the tables that
        ``change`` creates.
        """
        match change:
            case RowsTransaction():
                names = {rows.table.names for rows in change.rows}
            case Rows():
                names = {change.table.names}
            case Copied(content=Chunk() as chunk):
                names = {chunk.table}
            case Copied(content=Beginning() as beginning):
                names = set(beginning.structure.tables)
            case _:
                return set()
        return {(self._heads.get(each) or self._head_of(each))[0] for each in names}


# Assigns each record its partition, and counts the records and the newest sequence of each partition.


@dataclass(slots=True)
class _Topic:
    """The counts of a topic: ``total`` is the number of its records; ``counts`` and ``last`` contain the number of
    records and the newest sequence (-1 if there is none) of each partition.
    """

    partitions: int
    total: int
    counts: list[int]
    last: list[int]


class Partitioner:
    """Assigns partitions, continuing from the counts of ``entry``; ``open_topics`` returns the number of partitions of
    each topic.

    A topic's records go to its partitions in turn, so the same records always go to the same partitions.
    ``next_sequence`` is the sequence of the next record.
    """

    def __init__(self, entry: Entry | None, *, open_topics: Callable[[set[str]], Mapping[str, int]]) -> None:
        self._open_topics = open_topics
        self._topics: dict[str, _Topic] = {}
        self._counts = dict(entry.counts) if entry else {}
        self._last = dict(entry.last) if entry else {}
        self.next_sequence = entry.next_sequence if entry else 0

    def next_partition(self, name: str) -> int:
        """Returns the partition for the next record, if this record is written to the topic ``name``."""
        topic = self._topics.get(name) or self.opened(name)
        return topic.total % topic.partitions

    def count(self, name: str, partition: int) -> None:
        """Counts the next record, which was written to this ``partition`` of the topic ``name``. The caller must not
        count a record that Kafka refused.
        """
        topic = self._topics[name]
        topic.total += 1
        topic.counts[partition] += 1
        topic.last[partition] = self.next_sequence
        self.next_sequence += 1

    def opened(self, name: str) -> _Topic:
        """Returns the counts of the topic. Opens the topic first if it is not open yet."""
        if name not in self._topics:
            self.open([name])
        return self._topics[name]

    def knows(self, names: set[str]) -> bool:
        """Whether all of these topics are open."""
        return names <= self._topics.keys()

    def open(self, names: Collection[str]) -> None:
        """Opens the topics, all in one call."""
        new = set(names) - self._topics.keys()
        for name, partitions in self._open_topics(new).items() if new else ():
            names_of_partitions = [partition_name((name, number)) for number in range(partitions)]
            counts = [self._counts.get(each, 0) for each in names_of_partitions]
            last = [self._last.get(each, -1) for each in names_of_partitions]
            self._topics[name] = _Topic(partitions, sum(counts), counts, last)

    def counts(self) -> dict[str, int]:
        """Returns the number of records of each ``topic/partition``, also for topics that are not open."""
        return self._counts | {
            partition_name(partition): topic.counts[partition[1]] for partition, topic in self._each()
        }

    def last(self) -> dict[str, int]:
        """Returns the newest sequence of each ``topic/partition`` that contains records."""
        mine = {partition_name(partition): topic.last[partition[1]] for partition, topic in self._each()}
        return self._last | {name: sequence for name, sequence in mine.items() if sequence >= 0}

    def _each(self) -> list[tuple[Partition, _Topic]]:
        return [((name, number), topic) for name, topic in self._topics.items() for number in range(topic.partitions)]
