"""Stores a row for each conflict that was resolved in the leader's favour. The row commits together with the rows in
conflict.

The conflicts of each leader are numbered from 1, so that the highest number is the number of all conflicts. Only the
newest ``KEPT`` rows are kept.
"""

from dataclasses import dataclass

from cdc.consumer.follower.session import Session
from cdc.consumer.state.own_table import OwnTable
from cdc.model.record import Record

__all__ = ["CONFLICTS", "KEPT", "Conflict", "newest", "note"]

KEPT = 10_000
CONFLICTS = OwnTable(
    "conflicts",
    """
  number BIGINT NOT NULL COMMENT 'from 1; older rows are removed, so the highest is the count of all',
  sequence BIGINT NOT NULL COMMENT 'of the record',
  uri TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the table',
  operation VARCHAR(16) CHARACTER SET ascii NOT NULL COMMENT 'of the record',
  row_key TEXT CHARACTER SET utf8mb4 NOT NULL COMMENT 'of the row, cut where it is long',
  reason TEXT CHARACTER SET utf8mb4 NOT NULL,
  removed TEXT CHARACTER SET utf8mb4 NOT NULL COMMENT 'other rows that had to go, since they shared a unique key',
  at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
    key=("number",),
)
_COLUMNS = "number, sequence, uri, operation, row_key, reason, removed, at"
_LONGEST = 10_000  # characters; a text of this length always fits into a TEXT column in UTF-8


@dataclass(frozen=True, slots=True)
class Conflict:
    """A resolved conflict: a row of ``record`` was missing on the follower, or differed there, or other rows clashed
    with it. ``removed`` lists the rows that were deleted to resolve the conflict.
    """

    record: Record
    key: str
    reason: str
    removed: str = ""


def note(session: Session, conflict: Conflict) -> None:
    """Inserts a row for the conflict in the session's open transaction. Raises Interrupted or Refused."""
    record, schema = conflict.record, session.schema
    resource = record.uri.resource
    ((number,),) = session.rows(CONFLICTS.select(schema, resource, "COALESCE(MAX(number), 0) + 1"))
    insert = CONFLICTS.insert(
        schema,
        resource,
        number=int(number),
        sequence=record.sequence,
        uri=str(record.uri),
        operation=record.operation[:_LONGEST],
        row_key=conflict.key[:_LONGEST],
        reason=conflict.reason[:_LONGEST],
        removed=conflict.removed[:_LONGEST],
        now="at",
    )
    # Old rows are deleted, because each row that other clients write to the follower may cause a conflict, and the
    # table must not grow without limit.
    delete = CONFLICTS.delete(schema, resource, where=f"number<={number - KEPT}")
    session.run([insert.encode(), delete.encode()])


def newest(schema: str, resource: str, *, limit: int) -> str:
    """Returns the query for the newest conflicts, newest first, with all columns except the resource, in the order of
    the table."""
    return f"{CONFLICTS.select(schema, resource, _COLUMNS)} ORDER BY number DESC LIMIT {limit}"
