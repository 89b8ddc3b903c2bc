"""Puts the values of a row before and after a change side by side, with the part that differs marked."""

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import repeat

from cdc.browse.records import Cell, RowChange
from cdc.model.record import Record
from cdc.model.values import Value
from cdc.spark.report.printable import Cut, cut, differing

__all__ = ["ShownCell", "ShownRow", "Side", "shown_row"]

_LONGEST = 2_000  # characters of a value that does not differ


@dataclass(frozen=True, slots=True)
class Side:
    """A value in three parts, of which the ``middle`` differs from the other side. ``length`` is the length of the
    whole value in characters if it is shortened, else None.
    """

    before: str
    middle: str = ""
    after: str = ""
    length: int | None = None


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A column with both its values, None for an image that the change does not have."""

    column: str
    before: Side | None
    after: Side | None
    changed: bool
    is_key: bool


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row with its columns. ``key`` is the text of its key after the change, ``key_before`` that before; None in a
    table without a key. ``changed`` is the number of columns that differ.
    """

    number: int
    key: str | None
    key_before: str | None
    cells: tuple[ShownCell, ...]
    changed: int


def shown_row(row: RowChange, record: Record) -> ShownRow:
    """The row of ``record`` as it is shown."""
    images = (image or repeat(None) for image in record.rows[row.number])
    cells = tuple(
        _cell(_with_clock(cell, *values), is_key=cell.column in (record.key or ()))
        for cell, *values in zip(row.cells, *images, strict=False)
    )
    return ShownRow(row.number, row.key_after, row.key_before, cells, sum(cell.changed for cell in cells))


def _with_clock(cell: Cell, before: Value, after: Value) -> Cell:
    """The cell with times as dates, where the record has seconds since 1970."""
    return Cell(cell.column, _clock(cell.before, before), _clock(cell.after, after))


def _clock(text: str | None, value: Value) -> str | None:
    if not isinstance(value, dict) or not (found := value.get("Timestamp")) or not found["unix_time"]:
        return text  # the zero timestamp is no time
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
