"""Merges the messages of each row within a window into one: the first ``before`` and the last ``after``. Pure.

A window is a Kafka transaction that the producer keeps open (profile key producer.dedupe_ms). A row that did not exist
before the window and does not exist after it leaves no message. A row that a copy reads is merged with nothing: readers
may know it already or not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from cdc.model.position import Partition
from cdc.producer.debezium.message import DebeziumMessage, RowChange, payload_text

__all__ = ["Held", "RowWindow", "merged_change"]

Mark = TypeVar("Mark", bound=tuple[Any, ...])


class Held(NamedTuple, Generic[Mark]):
    """A message that waits for the end of the window; ``mark`` orders all messages.

    When the window has ended, ``merged`` is the number of messages of the row that it replaces, itself included, and
    ``through`` is the mark of the window's last message for the same partition, which may have been left out.
    """

    message: DebeziumMessage
    place: Partition
    mark: Mark
    time_ms: int
    merged: int = 1
    through: Mark | None = None


@dataclass(slots=True)
class _Row(Generic[Mark]):
    """The messages of one row so far: the newest one, and the change that all of them make together, None if none."""

    newest: Held[Mark]
    change: RowChange | None
    merged: int = 1
    tombstone: Held[Mark] | None = None


class RowWindow(Generic[Mark]):
    """The messages of one window. ``saved`` counts, over all windows, the messages that others have replaced.

    With ``changed_only`` the images of an update have only the key and the columns that differ.
    """

    def __init__(self, *, changed_only: bool) -> None:
        self._changed_only = changed_only
        self._rows: dict[tuple[str, str, bytes], _Row[Mark]] = {}
        self._others: list[Held[Mark]] = []
        self._through: dict[Partition, Mark] = {}
        self.saved = 0
        self._added = 0

    def add(self, table: tuple[str, str], held: Held[Mark]) -> None:
        """Adds a message of a row of ``table``, or the tombstone behind it. Two tables may share a topic and keys."""
        self._added += 1
        self._through[held.place] = held.mark
        key, change = held.message.key, held.message.change
        known = self._rows.get((*table, key)) if key is not None else None
        if known is not None and change is None:
            known.tombstone = held
        elif key is None or change is None:
            self._others.append(held)
        elif known is None or _is_copied(known.change) or _is_copied(change):
            if known is not None:
                self._others.extend(self._left(known))
            self._rows[*table, key] = _Row(held, change)
        else:
            known.newest, known.tombstone, known.merged = held, None, known.merged + 1
            known.change = merged_change(known.change, change) if known.change is not None else change

    def drain(self) -> list[Held[Mark]]:
        """Returns the messages of the window in the order of their marks, and begins the next window."""
        found = [*self._others, *(each for row in self._rows.values() for each in self._left(row))]
        self.saved += self._added - len(found)
        found = [each._replace(through=self._through[each.place]) for each in found]
        self._rows, self._others, self._through, self._added = {}, [], {}, 0
        return sorted(found, key=lambda each: each.mark)

    def _left(self, row: _Row[Mark]) -> Iterator[Held[Mark]]:
        change, message = row.change, row.newest.message
        if change is None:
            return
        if row.merged > 1 or self._changed_only:
            if self._changed_only and change.operation == "u":
                change = _changed(change, set(orjson.loads(message.key or b"{}")))
            message = message._replace(value=change.heads.of_value(payload_text(change.payload)))
        yield row.newest._replace(message=message, merged=row.merged)
        if row.tombstone is not None:
            yield row.tombstone


def _is_copied(change: RowChange | None) -> bool:
    return change is not None and change.operation == "r"


def merged_change(first: RowChange, then: RowChange) -> RowChange | None:
    """Returns the change that two successive changes of a row make together; None for a row that was created and
    deleted.
    """
    if then.operation == "d":
        return None if first.operation == "c" else then.of("d", first.before, None)
    return then.of("c", None, then.after) if first.operation == "c" else then.of("u", first.before, then.after)


def _changed(change: RowChange, key: set[str]) -> RowChange:
    before, after = change.before or {}, change.after or {}
    names = {name for name in {*before, *after} if name in key or name not in before or before[name] != after.get(name)}
    kept = [{name: value for name, value in image.items() if name in names} for image in (before, after)]
    return change.of("u", *kept)
