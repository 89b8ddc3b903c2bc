"""Leaves out the rows of a table copy for which the condition of their table is not true.

The rows have the same form as rows of the binlog, and the same condition decides. The leader does not evaluate it,
since its comparisons depend on collations.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cdc.producer.copy.chunk_reader import ReadChunk, key_of
from cdc.producer.copy.definition import TableDefinition
from cdc.producer.table_checks import condition_problem
from cdc.sql.row_condition import Matches, RowCondition

__all__ = ["RowSelection"]


class RowSelection:
    """Selects the rows that pass the filters. ``condition(database, table)`` returns the condition of a table's rows;
    None if all rows pass. ``logs_cascades`` is true if the leader logs the rows that foreign keys change.
    """

    def __init__(
        self, condition: Callable[[str, str], RowCondition | None] = lambda *_: None, *, logs_cascades: bool = True
    ) -> None:
        self._condition = condition
        self._logs_cascades = logs_cascades

    def checked(self, cursor: Any, table: TableDefinition) -> TableDefinition:
        """Returns ``table`` as one of which rows are left out, with a refusal if they can't be left out as in the
        profile; ``cursor`` is of a connection to the leader.
        """
        condition = self._condition(table.database, table.name)
        if condition is None or table.refusal is not None:
            return table
        masked = [column.name for column in table.columns if column.mask and column.name.lower() in condition.columns]
        try:
            if masked:
                raise ValueError(f"column {masked[0]} is masked")
            _matches(condition, table)
        except ValueError as error:
            return replace(table, refusal=f"its rows can't be left out by the condition {condition}: {error}")
        why = condition_problem(
            cursor, table.database, table.name, condition.columns, logs_cascades=self._logs_cascades
        )
        return replace(table, refusal=why or None, hides_keys=True)

    def of(self, table: TableDefinition, chunk: ReadChunk) -> ReadChunk:
        """Returns the rows of the chunk that pass. Unless the chunk ends the table, its last row is then the last of
        these rows: records must not contain the key of a row that is left out.
        """
        condition = self._condition(table.database, table.name)
        if condition is None:
            return chunk
        matches = _matches(condition, table)
        rows = [row for row in chunk.rows if matches(json.loads(row)["cols"])]
        upto = key_of(table, rows[-1]) if rows and chunk.upto else chunk.upto
        return ReadChunk(rows, upto, sum(map(len, rows)))


def _matches(condition: RowCondition, table: TableDefinition) -> Matches:
    return condition.compiled([(column.name, column.sql_type) for column in table.columns])
