"""Reads the records without rows from a leader's stream. They are statements, and notes about events that the producer
left out.
"""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.model.record import SKIPPED, Record, is_event

__all__ = ["on_part_of_rows", "read_statements"]

_MARKS = (b'"Query":', f'"{SKIPPED}":'.encode())


def read_statements(messages: DataFrame, upto: int) -> dict[int, Record]:
    """Reads the records without rows in ``messages`` (partition, offset, value) through sequence ``upto``; returns them
    by their sequences.

    Raises PromiseError for a message that is not a record.
    """
    marked = F.lit(False)
    for text in _MARKS:
        marked |= F.contains(F.col("value"), F.lit(text))
    statements: dict[int, Record] = {}
    for row in messages.where(marked).select("partition", "offset", "value").collect():
        value = bytes(row["value"])
        if is_event(value):
            continue
        record = Record.parse(value, where=f"{row['partition']}/{row['offset']}")
        if record.operation in ("Query", SKIPPED) and record.sequence <= upto:
            statements[record.sequence] = record
    return dict(sorted(statements.items()))


def on_part_of_rows(record: Record) -> Record:
    """Adapts a statement to a follower that contains only some of the rows. ALTER TABLE must not check foreign keys
    there, because parent rows may be loaded later than their children.
    """
    if not any(affect["action"] == "AlterTable" for affect in record.affects):
        return record
    return replace(record, context={**(record.context or {}), "foreign_key_checks": False})
