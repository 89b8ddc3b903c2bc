"""A chunk of a table, read while its rows change, and these changes in; the chunk as of after all of them out. Pure.

The SELECT of a chunk sees some of the transactions that were committed meanwhile, and it is not known which. All that
it may not have seen come in the stream after it was asked for. So the rows that these name are taken from them: what
was seen is the same or older.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from cdc.producer.large_rows.large_text import LargeText

__all__ = ["Overrun", "Window", "merged"]

_LIMIT = 64_000_000  # bytes of changes that are kept while a chunk is read


class Overrun(Exception):
    """More was changed than can be kept: the chunk has to be read again."""


class Window:
    """The changes of one table since a chunk of it was asked for."""

    def __init__(self) -> None:
        self._changes: list[tuple[str, list[bytes] | list[LargeText]]] = []
        self._size = 0

    def note(self, operation: str, rows: list[bytes] | list[LargeText]) -> None:
        """Keep the JSON texts of changed ``rows``."""
        self._size += sum(map(len, rows))
        if self._size > _LIMIT:
            self._changes.clear()
        else:
            self._changes.append((operation, rows))

    def apply(self, rows: list[str], key: Sequence[int]) -> list[str]:
        """The chunk's ``rows``, JSON texts, after all changes; ``key`` has the numbers of the key's columns.

        Raises Overrun.
        """
        if self._size > _LIMIT:
            raise Overrun
        changes = ((operation, json.loads(bytes(row))) for operation, texts in self._changes for row in texts)
        return merged(rows, key, changes)


def merged(rows: list[str], key: Sequence[int], changes: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """``rows`` after ``changes``, each with its operation and the row as an object of the record format."""
    last: dict[str, list[Any] | None] = {}
    for operation, row in changes:
        before = row.get("before_cols") if operation == "Update" else row["cols"] if operation == "Delete" else None
        after = row.get("after_cols") if operation == "Update" else row["cols"] if operation == "Add" else None
        if before is not None:
            last[_identity(before, key)] = None
        if after is not None:
            last[_identity(after, key)] = after
    if not last:
        return rows
    kept = [row for row in rows if _identity(json.loads(row)["cols"], key) not in last]
    return kept + [_text({"cols": image}) for image in last.values() if image is not None]


def _identity(image: list[Any], key: Sequence[int]) -> str:
    return _text([image[at] for at in key])


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
