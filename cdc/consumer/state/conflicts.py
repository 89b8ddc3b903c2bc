"""Writes each conflict that was resolved in the leader's favour as a row, committed with the rows in conflict.

Each leader's conflicts are numbered from 1, so the newest number is their count; only the newest ``KEPT`` rows remain.
"""

from dataclasses import dataclass

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.model.record import Record

__all__ = ["KEPT", "Conflict", "create", "newest", "note"]

KEPT = 10_000
_CONFLICTS = """
  resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'mysql_resource_name of the leader',
  number BIGINT NOT NULL COMMENT 'from 1; older rows are removed, so the highest is the count of all',
  sequence BIGINT NOT NULL COMMENT 'of the record',
  uri TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the table',
  operation VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'of the record',
  row_key TEXT CHARACTER SET utf8mb4 NOT NULL COMMENT 'of the row, cut where it is long',
  reason TEXT CHARACTER SET utf8mb4 NOT NULL,
  removed TEXT CHARACTER SET utf8mb4 NOT NULL COMMENT 'other rows that had to go, since they shared a unique key',
  at DATETIME(6) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (resource, number)
) ENGINE=InnoDB"""
_COLUMNS = "resource, number, sequence, uri, operation, row_key, reason, removed, at"
_LONGEST = 10_000  # characters that always fit in a TEXT column in UTF-8


@dataclass(frozen=True, slots=True)
class Conflict:
    """A row of ``record`` that differed on the follower; ``removed`` names rows that were deleted for it."""

    record: Record
    key: str
    reason: str
    removed: str = ""


def _table(schema: str) -> str:
    return f"`{schema}`.`conflicts`"


def create(schema: str) -> str:
    """The statement that creates the table in the consumer's own database."""
    return f"CREATE TABLE IF NOT EXISTS {_table(schema)} ({_CONFLICTS}"


def note(session: Session, conflict: Conflict) -> None:
    """Inserts the conflict in the session's open transaction. Raises Interrupted or Refused."""
    record, table = conflict.record, _table(session.schema)
    resource = quoted(record.uri.resource)
    ((number,),) = session.rows(f"SELECT COALESCE(MAX(number), 0) + 1 FROM {table} WHERE resource={resource}")
    texts = (record.operation, conflict.key, conflict.reason, conflict.removed)
    values = ", ".join(quoted(text[:_LONGEST]) for text in texts)
    insert = (
        f"INSERT INTO {table} ({_COLUMNS}) VALUES "
        f"({resource}, {number}, {record.sequence}, {quoted(str(record.uri))}, {values}, NOW(6))"
    )
    # Bounded: if other clients write to the follower, each row may be a conflict.
    delete = f"DELETE FROM {table} WHERE resource={resource} AND number<={number - KEPT}"
    session.run([insert.encode(), delete.encode()])


def newest(schema: str, where: str, *, limit: int) -> str:
    """The query for conflicts, newest first: all columns except the resource, in the table's order."""
    columns = _COLUMNS.partition(", ")[2]
    return f"SELECT {columns} FROM {_table(schema)} WHERE {where} ORDER BY number DESC LIMIT {limit}"
