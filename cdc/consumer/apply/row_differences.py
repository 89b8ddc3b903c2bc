"""Finds the columns in which a follower's row differs from a change's before-image."""

import logging

from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.before_images import as_before, compared
from cdc.consumer.literals.values import equal, exact, identifier, table_name
from cdc.consumer.plan.planner import Change
from cdc.model.record import Uri
from cdc.model.values import Value
from cdc.service.logs import event

__all__ = ["RowDifferences"]

_LOG = logging.getLogger("cdc.consumer")
_SHORT = 100  # characters; longer values are not written into the query
_DOCUMENTS = frozenset({"Json", "JsonTyped"})


class RowDifferences:
    """Compares single rows, and notes which columns cannot be compared as text (module before_images).

    Such a column has another type than on the leader, for example DECIMAL(10,2) instead of DECIMAL(10,1), so that equal
    values have different texts.
    """

    def __init__(self, session: Session, tables: SchemaCache) -> None:
        self._session = session
        self._tables = tables
        self._other_types: dict[Uri, frozenset[str]] = {}

    def forget(self) -> None:
        """Forgets which columns can't be compared as text. Must be called when tables may have changed."""
        self._other_types.clear()

    def comparable(self, table: Uri) -> frozenset[str]:
        """Returns the columns of a table that can be compared as text. Raises the errors of ``SchemaCache.shape``."""
        return self._tables.shape(table).columns - self._other_types.get(table, frozenset())

    def of(self, change: Change) -> str:
        """Describes for users how the follower's row differs from the before-image; the text is empty if the row is
        equal or does not exist.

        Raises ValueError for a value that no record can contain, Interrupted or Refused.
        """
        record, before = change.record, change.row.before
        if record.key is None or before is None:
            return ""
        indexes = compared(record, self._tables.shape(record.uri).columns)
        names = [record.columns[index] for index in indexes]
        same_text = [f"COALESCE({as_before(record, [index], before)},0)" for index in indexes]
        same_value = [
            _value(name, before[index]) if _is_short(before[index]) else digest
            for name, index, digest in zip(names, indexes, same_text, strict=True)
        ]
        rounded = self._tables.shape(record.uri).rounded
        where = " AND ".join([equal(column, before[record.columns.index(column)], rounded) for column in record.key])
        select = f"SELECT {','.join([*same_text, *same_value])} FROM {table_name(record.uri)} WHERE {where}"
        rows = self._session.rows(select) if indexes else []
        if not rows:
            return ""
        texts, values = rows[0][: len(indexes)], rows[0][len(indexes) :]
        self._learn(record.uri, [name for name, *same in zip(names, texts, values, strict=True) if same == [0, 1]])
        others = [name for name, same in zip(names, values, strict=True) if not same]
        return f"the row has another {', '.join(others)} than the leader's had" if others else ""

    def _learn(self, table: Uri, columns: list[str]) -> None:
        known = self._other_types.get(table, frozenset())
        if new := [name for name in columns if name not in known]:
            self._other_types[table] = known.union(new)
            event(_LOG, "columns of another type than the leader's", uri=table, columns=", ".join(new))


def _is_short(value: Value) -> bool:
    """Whether the value is short enough for the query; the query must not exceed the server's packet size."""
    return not isinstance(value, dict) or all(len(str(content)) <= _SHORT for content in value.values())


def _value(column: str, value: Value) -> str:
    """Writes the condition that the column has this value, whatever the type of the column is."""
    if isinstance(value, dict) and not _DOCUMENTS.isdisjoint(value):
        return f"({identifier(column)} IS NOT NULL)"
    return f"COALESCE(({exact(column, value)}),0)"
