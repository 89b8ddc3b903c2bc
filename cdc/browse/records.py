"""Reads one record from Kafka at its offset, and shows its rows with their values before and after the change."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, NamedTuple

from confluent_kafka import Message

from cdc.browse.entries import Entry, kind_of, row_keys
from cdc.browse.messages import FETCH, Shown, answering
from cdc.browse.new_records import marks_of
from cdc.errors import UserError
from cdc.kafka.fragments import Fragments
from cdc.kafka.partitions import begin_offsets, between, connected, end_offsets
from cdc.model.record import Record
from cdc.model.values import display

__all__ = ["Cell", "Decoded", "RowChange", "read_record"]


class Cell(NamedTuple):
    """The value of a column as text, before and after the change; None if the change has no such image."""

    column: str
    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Whether the change has both images, and the values differ."""
        return None not in (self.before, self.after) and self.before != self.after


class RowChange(NamedTuple):
    """One row of a record. ``key_before`` and ``key_after`` are the texts of its key for ``Queries.row_before`` and
    ``row_after``; the two differ only if the change is an update of the key, and are None in a table without a key.
    """

    number: int
    key_before: str | None
    key_after: str | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A record. ``text`` is its JSON as in Kafka, the joined fragments if the record consists of several messages;
    ``message`` is its first message, whose value may be shortened.
    """

    record: Record
    text: bytes
    message: Shown

    def rows(self, *, begin: int = 0, count: int = 100) -> list[RowChange]:
        """Returns at most ``count`` rows, beginning with the row number ``begin``."""
        found = []
        for number, row in enumerate(islice(self.record.rows, begin, begin + count), begin):
            before, after = (repeat(None) if image is None else map(display, image) for image in row)
            cells = tuple(map(Cell, self.record.columns, before, after))
            found.append(RowChange(number, *row_keys(self.record, row), cells))
        return found


def read_record(properties: Mapping[str, Any], entry: Entry, *, commits: str, most_bytes: int) -> Decoded:
    """Reads the record of ``entry``; ``commits`` is the commit log. For the errors see ``Queries.record``."""
    place, where = (entry.topic, entry.partition), f"topic {entry.topic}, partition {entry.partition}"
    if entry.size > most_bytes:
        raise UserError(
            f"record {entry.sequence} has {entry.size} bytes",
            code="CDC-BROWSE-RECORD-LARGE",
            where=f"{where}, offset {entry.offset}",
            hint="cdc-tail PROFILE --json prints it",
        )
    with answering(properties, where=where):
        begin, end = (offsets(properties, [place])[place] for offsets in (begin_offsets, end_offsets))
        if begin <= entry.offset < end:
            fragments = Fragments(lambda _: marks_of(properties, commits))
            consumer = connected(FETCH | dict(properties), committed=True)
            try:
                messages = between(consumer, {place: entry.offset}, {place: end}, str(properties["group.id"]))
                first: Shown | None = None
                for message in messages:
                    first = first or Shown.of(message, value_bytes=most_bytes)
                    whole = fragments.whole(message)
                    if whole is not None:
                        return _decoded(whole, first, entry)
            finally:
                consumer.close()
    raise _gone(entry)


def _decoded(whole: Message, first: Shown, entry: Entry) -> Decoded:
    text: Any = whole.value() or b""
    record = Record.parse(text, where=f"topic {entry.topic}, partition {entry.partition}, offset {entry.offset}")
    # If the topic was deleted and created again, another record may have this sequence and this offset.
    if (record.sequence, record.transaction, kind_of(record)) != (entry.sequence, entry.gtid, entry.kind):
        raise _gone(entry)
    return Decoded(record, text, first)


def _gone(entry: Entry) -> UserError:
    return UserError(
        f"record {entry.sequence} is not in Kafka any more",
        code="CDC-BROWSE-RECORD-GONE",
        where=f"topic {entry.topic}, partition {entry.partition}, offset {entry.offset}",
        hint="the topic's retention has deleted it, or the topic was made again",
    )
