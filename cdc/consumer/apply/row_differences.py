"""What a follower's row has that the leader's had not before it changed there."""

import logging

from cdc.consumer.follower.schema_cache import Tables
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.before_images import as_before, compared
from cdc.consumer.literals.values import equal, exact, identifier, table_name
from cdc.consumer.plan.planner import Change
from cdc.model.record import Uri
from cdc.model.values import Value
from cdc.service.process import event

__all__ = ["Differences"]

_LOG = logging.getLogger("cdc.consumer")
_SHORT = 100  # characters
_DOCUMENTS = frozenset({"Json", "JsonTyped"})


class Differences:
    """Looks at single rows, and learns which columns can't be compared by their texts (module before_images).

    Such a one has another type than the leader's, DECIMAL(10,2) for DECIMAL(10,1), say: its values are equal and their
    texts are not.
    """

    def __init__(self, session: Session, tables: Tables) -> None:
        self._session = session
        self._tables = tables
        self._unlike: dict[Uri, frozenset[str]] = {}

    def forget(self) -> None:
        """Tables may have changed: learn anew."""
        self._unlike.clear()

    def comparable(self, table: Uri) -> frozenset[str]:
        """The columns that are to be compared by their texts. Raises as ``Tables.shape``."""
        return self._tables.shape(table).columns - self._unlike.get(table, frozenset())

    def of(self, change: Change) -> str:
        """How the row differs from the change's before-image, in words; nothing where it is as it was, or not there.

        Raises ValueError for what is not a value of a record, Interrupted or Refused.
        """
        record, before = change.record, change.row.before
        if record.key is None or before is None:
            return ""
        places = compared(record, self._tables.shape(record.uri).columns)
        names = [record.columns[place] for place in places]
        alike = [f"COALESCE({as_before(record, [place], before)},0)" for place in places]
        values = [
            _value(name, before[place]) if _is_short(before[place]) else digest
            for name, place, digest in zip(names, places, alike, strict=True)
        ]
        where = " AND ".join([equal(column, before[record.columns.index(column)]) for column in record.key])
        select = f"SELECT {','.join([*alike, *values])} FROM {table_name(record.uri)} WHERE {where}"
        rows = self._session.rows(select) if places else []
        if not rows:
            return ""
        texts, equals = rows[0][: len(places)], rows[0][len(places) :]
        self._learn(record.uri, [name for name, *same in zip(names, texts, equals, strict=True) if same == [0, 1]])
        others = [name for name, same in zip(names, equals, strict=True) if not same]
        return f"the row has another {', '.join(others)} than the leader's had" if others else ""

    def _learn(self, table: Uri, unlike: list[str]) -> None:
        known = self._unlike.get(table, frozenset())
        if new := [name for name in unlike if name not in known]:
            self._unlike[table] = known.union(new)
            event(_LOG, "columns of another type than the leader's", uri=table, columns=", ".join(new))


def _is_short(value: Value) -> bool:
    """Whether the value itself may stand in a statement, which a large one would make larger than the server takes."""
    return not isinstance(value, dict) or all(len(str(content)) <= _SHORT for content in value.values())


def _value(column: str, value: Value) -> str:
    """Whether the column has this value, whatever its own type."""
    if isinstance(value, dict) and not _DOCUMENTS.isdisjoint(value):
        return f"({identifier(column)} IS NOT NULL)"
    return f"COALESCE(({exact(column, value)}),0)"
