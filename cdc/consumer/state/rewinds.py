"""The follower's table of rewinds: a row from the moment the checkpoint went back until it is where it was before.

The row comes and goes in the transactions that move the checkpoint, so a crash leaves neither without the other.
"""

from dataclasses import replace
from typing import Any

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state.checkpoint import Checkpoint

__all__ = ["create", "delete", "filters", "insert", "with_rewind"]

_REWINDS = """
  resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'mysql_resource_name of the leader',
  after_sequence BIGINT NOT NULL COMMENT 'the record to which the checkpoint went back',
  upto BIGINT NOT NULL COMMENT 'where the checkpoint was before',
  filters LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON: and renames',
  at DATETIME(6) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (resource)
) ENGINE=InnoDB"""


def _table(schema: str) -> str:
    return f"`{schema}`.`rewinds`"


def create(schema: str) -> str:
    """The statement that creates the table in the consumer's own database."""
    return f"CREATE TABLE IF NOT EXISTS {_table(schema)} ({_REWINDS}"


def insert(checkpoint: Checkpoint, *, filters: str) -> str:
    """The statement that notes the rewind of a checkpoint that has just gone back."""
    values = f"{quoted(checkpoint.resource)}, {checkpoint.sequence}, {checkpoint.rewound}, {quoted(filters)}, NOW(6)"
    return f"REPLACE INTO {_table(checkpoint.schema)} (resource, after_sequence, upto, filters, at) VALUES ({values})"


def delete(checkpoint: Checkpoint) -> str:
    """The statement that ends the rewind."""
    return f"DELETE FROM {_table(checkpoint.schema)} WHERE resource={quoted(checkpoint.resource)}"


def with_rewind(session: Session, checkpoint: Checkpoint) -> Checkpoint:
    """The follower's checkpoint with the rewind that it is in. Raises Interrupted or Refused.

    A row may be left of one whose end was passed otherwise: by a consumer older than rewinds, or by hand.
    """
    upto = max(map(int, _rows(session, checkpoint, "upto")), default=-1)
    return replace(checkpoint, rewound=upto) if upto > checkpoint.sequence else checkpoint


def filters(session: Session, checkpoint: Checkpoint) -> str:
    """The filters with which the rewind began; empty if there is none. Raises Interrupted or Refused."""
    found = _rows(session, checkpoint, "filters")
    return str(found[0]) if found else ""


def _rows(session: Session, checkpoint: Checkpoint, column: str) -> list[Any]:
    # Most followers never have the table: CREATE … IF NOT EXISTS would be in their binlogs.
    there = (
        f"SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA={quoted(checkpoint.schema)} "
        "AND TABLE_NAME='rewinds'"
    )
    if not session.rows(there):
        return []
    ours = f"resource={quoted(checkpoint.resource)}"
    return [value for (value,) in session.rows(f"SELECT {column} FROM {_table(checkpoint.schema)} WHERE {ours}")]
