"""Reads one record from Kafka at its offset, and shows its rows with their values before and after the change."""

from dataclasses import dataclass
from typing import NamedTuple

from cdc.browse.messages import Shown
from cdc.model.record import Record

__all__ = ["Cell", "Decoded", "RowChange"]


class Cell(NamedTuple):
    """The value of a column as text, before and after the change; None where there is no such image."""

    column: str
    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Whether both images are there and differ."""
        return None not in (self.before, self.after) and self.before != self.after


class RowChange(NamedTuple):
    """One row of a record. ``key_before`` and ``key_after`` are the texts of its key for ``Queries.row_before`` and
    ``row_after``; they are equal unless the change is of the key itself, and None in a table without a key.
    """

    number: int
    key_before: str | None
    key_after: str | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A record with its ``text``, the JSON as it is in Kafka (joined, if it is in several messages), and ``message``,
    its first message.
    """

    record: Record
    text: bytes
    message: Shown

    def rows(self, *, begin: int = 0, count: int = 100) -> list[RowChange]:
        """At most ``count`` rows, from the row number ``begin`` on."""
        raise NotImplementedError
