"""Formats a record as one line of text, with its sequence, binlog position, commit time, GTID, operation, URI and
values."""

from datetime import UTC, datetime

from cdc.model.record import COPY, SKIPPED, KeyRange, Record, Row
from cdc.model.values import Value, display, visible

__all__ = ["line"]


def line(record: Record) -> str:
    """Formats ``record`` as one line, and replaces characters that control a terminal."""
    committed = f"{datetime.fromtimestamp(record.ts_us / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    transaction = f"{committed}  {record.transaction}"
    head = f"{record.sequence}  {record.position}  {transaction}  {record.operation} {record.uri}"
    if record.operation in ("Query", SKIPPED):
        return visible(f"{head}  {' '.join(record.query.split())}")
    if record.operation == COPY:
        return visible(f"{head}  {_chunk(record)}")
    return visible(f"{head}  {'; '.join(_row(record.columns, row) for row in record.rows)}")


def _chunk(record: Record) -> str:
    """Formats a record of a table's copy: its number of rows, and its range of keys or its list of keys. A table
    without a key is copied in numbered pieces; then the number of the piece is shown instead of keys."""
    key, (after, through, _, piece, keys) = record.key or (), record.range or KeyRange(None, None)
    if piece is not None:
        return f"{len(record.rows)} rows, piece {piece} of the table{', the last' if through is None else ''}"
    if keys is not None:
        return f"{len(record.rows)} rows of {len(keys)} keys: {'; '.join(_cells(key, each) for each in keys)}"
    begin = "the beginning" if after is None else f"after {_cells(key, after)}"
    end = "the end" if through is None else _cells(key, through)
    return f"{len(record.rows)} rows, {begin} to {end}"


def _row(columns: tuple[str, ...], row: Row) -> str:
    if row.before is None or row.after is None:
        return _cells(columns, row.before or row.after or [])
    changed = [f"{c}={display(old)}→{display(new)}" for c, old, new in zip(columns, row.before, row.after, strict=True)
               if old != new]  # fmt: skip
    return f"{_cells(columns, row.before)}: {' '.join(changed)}"


def _cells(columns: tuple[str, ...], values: list[Value]) -> str:
    return " ".join(f"{column}={display(value)}" for column, value in zip(columns, values, strict=True))
