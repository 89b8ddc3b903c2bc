"""Parses messages into records. If a record inserts many rows, it contains the SQL text of its rows in place of their
values.

In Python, the values of a row need two kilobytes, but its SQL text only about sixty bytes, so that the text of
thousands of rows fits the processor's cache. So rendering each record when it is parsed takes a third less time than
rendering whole batches later. The values are rarely needed again. They are needed if the batch also changes these rows
or has a conflict. Then they are parsed again from the message, and the next records of that table are not rendered.
They are needed beside the text if the follower has rows in the range of a chunk of a table copy, as it does while the
table changes. So the next chunks of that table keep both.

If the follower's JSON parser changes doubles, documents with doubles are converted to the form with type tags
(``json_documents``).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, overload

from cdc.consumer.literals.json_documents import apart, checked
from cdc.consumer.literals.row_text import Tags, tagged_row_texts
from cdc.large_rows import LargeRecord
from cdc.model.record import COPY, Record, Row, Uri
from cdc.model.values import Value

__all__ = ["SUBQUERY", "LazySequence", "RecordParser", "RenderedRows"]

# Some JSON documents are written as a subquery that begins with this text. The server limits the number of subqueries
# in one statement (``plan.inserts``).
SUBQUERY = b"WITH RECURSIVE"
_FEWEST = 20  # records with fewer rows are not rendered, since rendering them costs more than it saves
_MOST_TYPES = 1000  # the maximum number of tables whose column types are kept
# If the values of a rendered record are needed, rendering it was wasted. Then this many of the table's next records are
# not rendered.
_PAUSE = 1000
# If both the text and the values of a chunk are needed, this many of the table's next chunks keep their values. Few
# chunks are in memory at a time.
_KEPT = 20

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence whose elements are computed at each access."""

    __slots__ = ()

    @abstractmethod
    def computed(self) -> Sequence[T]:
        """Computes the elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.computed())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.computed()[index]


class RenderedRows(LazySequence[Row]):
    """The rows of a record as SQL: ``text`` contains the literals of all columns, each row in parentheses, separated by
    commas.

    ``tags`` contains, for each column, the types of its values, such as SignedInteger and String (tags in records).
    ``parser`` parsed the ``message``; ``kept`` are the values of the rows if they were kept.
    """

    __slots__ = ("_count", "_kept", "_message", "_parser", "_uri", "tags", "text")

    def __init__(
        self,
        record: Record,
        text: bytes,
        tags: Sequence[Tags],
        *,
        parser: "RecordParser",
        message: bytes,
        kept: bool,
    ) -> None:
        self._count = len(record.rows)
        self._uri = record.uri
        self._parser = parser
        self._message = message
        self._kept = record.rows if kept else None
        self.text = text
        self.tags = tags

    def __len__(self) -> int:
        return self._count

    def computed(self) -> Sequence[Row]:
        """Parses the rows again from the message. The next records of the table are then not rendered."""
        self._parser.pause(self._uri)
        return self._values()

    def parsed(self) -> Sequence[Row]:
        """Returns the rows' values where their text is needed as well. The next chunks of the table keep both."""
        self._parser.keep(self._uri)
        return self._values()

    def _values(self) -> Sequence[Row]:
        return self._parser.values(self._message) if self._kept is None else self._kept


class RecordParser:
    """Parses the records of one stream. ``inexact()`` returns whether the follower's JSON parser changes doubles.

    ``types`` are the types of the leader's columns, by table, from the newest records that contain them.
    """

    def __init__(self, inexact: Callable[[], bool] = lambda: False) -> None:
        self._inexact = inexact
        self._pauses: dict[Uri, int] = {}
        self._keeps: dict[Uri, int] = {}
        self.types: dict[Uri, Mapping[str, str]] = {}

    def parse(self, message: bytes | LargeRecord, *, where: str) -> Record:
        """Parses a message (see ``Record.parse``). The rows of a record that inserts many rows are ``RenderedRows``."""
        record = self._parsed(message, where=where)
        if record.operation not in ("Add", COPY) or len(record.rows) < _FEWEST or not isinstance(message, bytes):
            return record
        if (pause := self._pauses.get(record.uri, 0)) > 0:
            self._pauses[record.uri] = pause - 1
            return record
        try:
            texts, tags = tagged_row_texts([row.after or [] for row in record.rows], range(len(record.columns)))
        except ValueError:
            return record  # if a value has no literal, the error is raised later, when the record is applied
        text = f"({'),('.join(texts)})".encode()
        if SUBQUERY in text:
            return record
        kept = record.operation == COPY and (left := self._keeps.get(record.uri, 0)) > 0
        if kept:
            self._keeps[record.uri] = left - 1
        return replace(record, rows=RenderedRows(record, text, tags, parser=self, message=message, kept=kept))

    def values(self, message: bytes) -> Sequence[Row]:
        """Returns the values of the rows in a message that was parsed before."""
        return self._parsed(message, where="").rows

    def _parsed(self, message: bytes | LargeRecord, *, where: str) -> Record:
        record = Record.parse(message, where=where)
        if record.types:
            if len(self.types) >= _MOST_TYPES:
                self.types.clear()
            self.types[record.uri] = dict(zip(record.columns, record.types, strict=False))
        if self._inexact():
            for row in record.rows:
                for image in row:
                    _set_apart(image or [])
        return record

    def pause(self, uri: Uri) -> None:
        """Makes the table's next records have no text in place of their values."""
        self._pauses[uri] = _PAUSE

    def keep(self, uri: Uri) -> None:
        """Makes the table's next chunks have both, the text and the values of their rows."""
        self._keeps[uri] = _KEPT


def _set_apart(image: list[Value]) -> None:
    for index, value in enumerate(image):
        if isinstance(value, dict) and "Json" in value and (tree := apart(value["Json"])) is not None:
            image[index] = {"JsonTyped": tree}
        elif isinstance(value, dict) and "JsonTyped" in value:
            image[index] = {"JsonTyped": checked(value["JsonTyped"])}
