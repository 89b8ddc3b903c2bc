"""The ledger's table in the follower: its rows' states and the SQL text that writes them.

intent       the statement is about to run, or ran and the consumer ended before it could say so
done         it ran
not applied  it is not for this follower; ``note`` says why
skipped      the operator let the follower do without the record (``--skip``); ``note`` says what it refused
"""

import json

from cdc.consumer.literals import quoted
from cdc.filters import CHECKPOINT_DATABASE
from cdc.position import ddl_gtid
from cdc.record import Record

__all__ = ["ACTS_ON_LEADER", "CREATE", "TABLE", "UPGRADE", "finish", "has_context", "insert", "settle"]

TABLE = f"`{CHECKPOINT_DATABASE}`.`ledger`"
# The note of what a promotion of the follower to a leader has to create.
ACTS_ON_LEADER = "triggers and events act on the leader; what they do arrives as rows"
_STATES = "ENUM('intent', 'done', 'not applied', 'skipped') NOT NULL"
_CONTEXT = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'JSON: of the record'"
CREATE = f"""CREATE TABLE IF NOT EXISTS {TABLE} (
  resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'mysql_resource_name of the leader',
  sequence BIGINT NOT NULL COMMENT 'of the record',
  gtid VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'under which the follower executes it',
  state {_STATES},
  statement LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  note VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL DEFAULT '',
  intended_at DATETIME(6) NOT NULL COMMENT 'UTC',
  finished_at DATETIME(6) NULL COMMENT 'UTC',
  context {_CONTEXT},
  affects {_CONTEXT},
  PRIMARY KEY (resource, sequence)
) ENGINE=InnoDB"""
# One statement, so that a crash leaves a ledger of either kind; an older consumer can use the new kind, too.
UPGRADE = f"ALTER TABLE {TABLE} MODIFY state {_STATES}, ADD COLUMN context {_CONTEXT}, ADD COLUMN affects {_CONTEXT}"
_NOTE = 255


def has_context() -> str:
    """Asks whether the table is of today's kind: one row, or none where ``UPGRADE`` is needed."""
    return (
        f"SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA={quoted(CHECKPOINT_DATABASE)} "
        "AND TABLE_NAME='ledger' AND COLUMN_NAME='affects'"
    )


def insert(record: Record, *, state: str, note: str = "", statement: str | None = None) -> str:
    """Writes a row; ``statement`` is shown in it where the record has none."""
    resource = record.uri.resource
    texts = [
        resource, ddl_gtid(resource, record.sequence), state, record.query if statement is None else statement,
        note[:_NOTE], json.dumps(record.context, ensure_ascii=False), json.dumps(record.affects, ensure_ascii=False),
    ]  # fmt: skip
    return (
        f"INSERT INTO {TABLE} (sequence, intended_at, resource, gtid, state, statement, note, context, affects) "
        f"VALUES ({record.sequence}, NOW(6), {', '.join(map(quoted, texts))})"
    )


def settle(record: Record, *, state: str, note: str, statement: str | None = None) -> str:
    """Writes a row for what does not run. An intent may be there already, of a run that the follower refused."""
    return (
        f"{insert(record, state=state, note=note, statement=statement)} "
        "ON DUPLICATE KEY UPDATE state=VALUES(state), note=VALUES(note), finished_at=NOW(6)"
    )


def finish(record: Record) -> str:
    """Writes that the intended statement ran."""
    return (
        f"UPDATE {TABLE} SET state='done', finished_at=NOW(6) WHERE resource={quoted(record.uri.resource)} "
        f"AND sequence={record.sequence} AND state='intent'"
    )
