"""Records that add many rows, with the text that an INSERT needs of them instead of their values. A hot path.

A row's values take two kilobytes in Python, its text some sixty bytes. Thousands of rows fit the processor's cache only
as the latter: made into text record by record, as they are parsed, they take two thirds of the time that they take
batch by batch. Nearly always nobody wants more of them. Where somebody does, for a batch that also changes these rows
or for a conflict, they are read anew from the message; a table to which that happens is left as it is for a while.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, overload

from cdc.consumer.literals.row_text import row_texts
from cdc.model.record import Record, Row, Uri

__all__ = ["SUBQUERY", "AddedRows", "Anew", "RecordParser"]

SUBQUERY = b"WITH RECURSIVE"  # so some documents are written (``literals``), of which a statement takes few
_FEWEST = 20  # rows, for which it pays
_REST = 1000  # records of a table that are left as they are, once its rows were read anew

T = TypeVar("T")


class Anew(Sequence[T]):
    """A sequence that is made anew whenever somebody looks at it."""

    __slots__ = ()

    @abstractmethod
    def made(self) -> Sequence[T]:
        """The elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.made())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.made()[index]


class AddedRows(Anew[Row]):
    """A record's rows: ``text`` has the literals of all columns, each row in parentheses, separated by commas."""

    __slots__ = ("_count", "_message", "_rests", "text")

    def __init__(self, record: Record, message: bytes, text: bytes, rests: dict[Uri, int]) -> None:
        self._count = len(record.rows)
        self._message = message
        self._rests = rests
        self.text = text

    def __len__(self) -> int:
        return self._count

    def made(self) -> Sequence[Row]:
        """The rows, read anew."""
        record = Record.parse(self._message, where="")
        self._rests[record.uri] = _REST
        return record.rows


class RecordParser:
    """Parses the records of one stream."""

    def __init__(self) -> None:
        self._rests: dict[Uri, int] = {}

    def parse(self, message: bytes, *, where: str) -> Record:
        """As ``Record.parse``, with ``AddedRows`` where a record adds many."""
        record = Record.parse(message, where=where)
        if record.operation != "Add" or len(record.rows) < _FEWEST:
            return record
        if (rest := self._rests.get(record.uri, 0)) > 0:
            self._rests[record.uri] = rest - 1
            return record
        try:
            texts = row_texts([row.after or [] for row in record.rows], range(len(record.columns)))
        except ValueError:
            return record  # what is no value is told when its turn comes
        text = f"({'),('.join(texts)})".encode()
        if SUBQUERY in text:
            return record
        return replace(record, rows=AddedRows(record, message, text, self._rests))
