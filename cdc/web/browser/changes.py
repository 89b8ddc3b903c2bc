"""Prepares a row's values before and after a change for display side by side, and marks the part that differs."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import repeat

from cdc.browse.records import Cell, RowChange
from cdc.model.record import Record
from cdc.model.values import Value
from cdc.spark.report.printable import Cut, cut, differing

__all__ = ["ShownCell", "ShownRow", "Side", "shown_row"]

_LONGEST = 2_000  # the maximum number of characters that are shown of an unchanged value


@dataclass(frozen=True, slots=True)
class Side:
    """A value in three parts; only the ``middle`` part differs from the other side. ``length`` is the length of the
    whole value in characters if it is shortened, else None.
    """

    before: str
    middle: str = ""
    after: str = ""
    length: int | None = None


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A column with its values before and after the change; None if the change has no such image."""

    column: str
    before: Side | None
    after: Side | None
    changed: bool
    is_key: bool


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row with its columns. ``key_before`` and ``key`` are the texts of its key before and after the change; None in
    a table without a key. ``changed`` is the number of columns that differ.
    """

    number: int
    key: str | None
    key_before: str | None
    cells: tuple[ShownCell, ...]
    changed: int


def shown_row(row: RowChange, record: Record) -> ShownRow:
    """Prepares a row of ``record`` for display."""
    images = (image or repeat(None) for image in record.rows[row.number])
    cells = tuple(
        _cell(_with_clock(cell, *values), is_key=cell.column in (record.key or ()))
        for cell, *values in zip(row.cells, *images, strict=False)
    )
    return ShownRow(row.number, row.key_after, row.key_before, cells, sum(cell.changed for cell in cells))


def _with_clock(cell: Cell, before: Value, after: Value) -> Cell:
    """Shows the TIMESTAMP values of a cell as date and time; records contain them as seconds since 1970."""
    return Cell(cell.column, _clock(cell.before, before), _clock(cell.after, after))


def _clock(text: str | None, value: Value) -> str | None:
    if not isinstance(value, dict) or not (found := value.get("Timestamp")) or not found["unix_time"]:
        return text  # the zero timestamp stays as it is
    moment = datetime.fromtimestamp(found["unix_time"], UTC)
    fraction = f".{found['subsecond']:06d}" if found["subsecond"] else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def _cell(cell: Cell, *, is_key: bool) -> ShownCell:
    if cell.changed and cell.before is not None and cell.after is not None:
        before, after = map(_side, differing(cell.before, cell.after))
        return ShownCell(cell.column, before, after, changed=True, is_key=is_key)
    return ShownCell(cell.column, _whole(cell.before), _whole(cell.after), changed=False, is_key=is_key)


def _side(part: Cut) -> Side:
    return Side(part.before, part.middle, part.after, part.length)


def _whole(text: str | None) -> Side | None:
    if text is None:
        return None
    return Side(cut(text, _LONGEST), length=len(text) if len(text) > _LONGEST else None)
