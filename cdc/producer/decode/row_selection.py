"""Leaves out the rows of an event for which the condition of their table is not true.

An update that makes the condition true becomes an insert, an update that makes it false becomes a delete. So followers
have exactly the rows for which the condition is true, whatever the rows were before.
"""

import json
from collections.abc import Sequence

from cdc.producer.decode.changes import Rows
from cdc.producer.large_rows import LargeText, StoredValue
from cdc.sql.row_condition import Matches

__all__ = ["selected_rows"]

_Row = bytes | LargeText
_DECODER = json.JSONDecoder()
_BEFORE, _AFTER, _COLS = '{"before_cols":', ',"after_cols":', '{"cols":'
_LARGE_BEFORE_AFTER, _LARGE_COLS, _LARGE_END = b'],"after_cols":[', b'{"cols":[', b"]}"


def selected_rows(change: Rows, matches: Matches) -> list[Rows]:
    """Returns the parts of ``change`` that followers need, in the order of the rows: each part contains successive rows
    with the same operation. ``matches`` is the condition of the table.
    """
    parts: list[tuple[str, list[_Row]]] = []
    for row in change.rows:
        found = _updated(row, matches) if change.operation == "Update" else _changed(change.operation, row, matches)
        if found is None:
            continue
        operation, text = found
        if not parts or parts[-1][0] != operation:
            parts.append((operation, []))
        parts[-1][1].append(text)
    return [change._replace(operation=operation, rows=rows) for operation, rows in parts]  # type: ignore[arg-type]


def _changed(operation: str, row: _Row, matches: Matches) -> tuple[str, _Row] | None:
    values = _values(row.pieces[1:-1]) if isinstance(row, LargeText) else json.loads(row)["cols"]
    return (operation, row) if matches(values) else None


def _updated(row: _Row, matches: Matches) -> tuple[str, _Row] | None:
    if isinstance(row, LargeText):
        return _large_updated(row, matches)
    # The text of each image is cut out of the row, and not written again, so that it is the same as in an insert.
    text = row.decode()
    before, end = _DECODER.raw_decode(text, len(_BEFORE))
    begin = end + len(_AFTER)
    after, after_end = _DECODER.raw_decode(text, begin)
    was, is_ = matches(before), matches(after)
    if was and is_:
        return "Update", row
    if is_:
        return "Add", f"{_COLS}{text[begin:after_end]}}}".encode()
    return ("Delete", f"{_COLS}{text[len(_BEFORE) : end]}}}".encode()) if was else None


def _large_updated(row: LargeText, matches: Matches) -> tuple[str, _Row] | None:
    middle = row.pieces.index(_LARGE_BEFORE_AFTER)
    before, after = row.pieces[1:middle], row.pieces[middle + 1 : -1]
    was, is_ = matches(_values(before)), matches(_values(after))
    if was and is_:
        return "Update", row
    if is_:
        return "Add", LargeText([_LARGE_COLS, *after, _LARGE_END])
    return ("Delete", LargeText([_LARGE_COLS, *before, _LARGE_END])) if was else None


def _values(pieces: Sequence[bytes | StoredValue]) -> list[object]:
    """Parses the values of an image; a value on disk becomes an empty text, since no condition depends on it."""
    text = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    values: list[object] = json.loads(b"[%b]" % text)
    return values
