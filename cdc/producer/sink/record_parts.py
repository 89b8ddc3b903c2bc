"""Rows events as records: which rows share one, and what of it is known before its sequence."""

from collections.abc import Iterator
from dataclasses import dataclass

from cdc.model.position import Position
from cdc.producer.decode.changes import Rows

__all__ = ["Part", "is_large", "rows_body", "split"]


@dataclass(frozen=True, slots=True)
class Part:
    """A record without its sequence and its place in the transaction, which follow when it is known to be the last.

    ``rows`` counts its rows, 1 for a statement; ``newest`` is the last one's sum (module partial).
    """

    topic: str
    uri: str
    position: Position
    body: str
    header: bytes
    rows: int
    newest: int


def is_large(changes: list[Rows], record_bytes: int) -> bool:
    """Whether one of the rows events may have to be split: a character takes at most four bytes."""
    for _, _, _, rows, _ in changes:  # noqa: SIM110  a generator would take as long as the whole record
        if len(rows) > 1 and sum(map(len, rows)) * 4 > record_bytes:
            return True
    return False


def split(rows: list[str], record_bytes: int) -> Iterator[list[str]]:
    """An event's rows in parts that stay below the record size where one row alone does."""
    size = 0
    part: list[str] = []
    for row in rows:
        length = len(row) if row.isascii() else len(row.encode())
        if part and size + length > record_bytes:
            yield part
            size, part = 0, []
        part.append(row)
        size += length + 1
    yield part


def rows_body(columns: str, flags: int, mode: str | None, operation: str, rows: str) -> str:
    """The end of a record of ``rows``, which are joined: what its ``columns`` (JSON text) mean, and the rows.

    ``mode`` is the transaction's (module row_mode).
    """
    shown = f',"flags":{flags}' if flags else ""
    if mode is not None:
        shown += f',"sql_mode":"{mode}"'
    return f'{columns}{shown},"operation":{{"{operation}":{{"rows":[{rows}]}}}}'
