"""The ledger's table in the follower: its rows' states and the SQL text that writes them.

intent       the statement is about to run, or ran and the consumer ended before it could say so
done         it ran
not applied  it is not for this follower; ``note`` says why
skipped      the operator let the follower do without the record (``--skip``); ``note`` says what it refused
"""

import json

from cdc.consumer.literals.values import quoted
from cdc.model.position import ddl_gtid
from cdc.model.record import Record

__all__ = ["ACTS_ON_LEADER", "create", "finish", "has_context", "insert", "settle", "table", "upgrade"]

# The note of what a promotion of the follower to a leader has to create.
ACTS_ON_LEADER = "triggers and events act on the leader; what they do arrives as rows"
_STATES = "ENUM('intent', 'done', 'not applied', 'skipped') NOT NULL"
_CONTEXT = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'JSON: of the record'"
_LEDGER = f"""
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
_NOTE = 255


def table(schema: str) -> str:
    """The table's name in the consumer's own database."""
    return f"`{schema}`.`ledger`"


def create(schema: str) -> str:
    """Makes the table."""
    return f"CREATE TABLE IF NOT EXISTS {table(schema)} ({_LEDGER}"


def upgrade(schema: str) -> str:
    """Makes one of before one of today."""
    # One statement, so that a crash leaves a ledger of either kind; an older consumer can use the new kind, too.
    columns = f"MODIFY state {_STATES}, ADD COLUMN context {_CONTEXT}, ADD COLUMN affects {_CONTEXT}"
    return f"ALTER TABLE {table(schema)} {columns}"


def has_context(schema: str) -> str:
    """Asks whether the table is of today's kind: one row, or none where ``upgrade`` is needed."""
    return (
        f"SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA={quoted(schema)} "
        "AND TABLE_NAME='ledger' AND COLUMN_NAME='affects'"
    )


def insert(schema: str, record: Record, *, state: str, note: str = "", statement: str | None = None) -> str:
    """Writes a row; ``statement`` is shown in it where the record has none."""
    resource = record.uri.resource
    texts = [
        resource, ddl_gtid(resource, record.sequence), state, record.query if statement is None else statement,
        note[:_NOTE], json.dumps(record.context, ensure_ascii=False), json.dumps(record.affects, ensure_ascii=False),
    ]  # fmt: skip
    return (
        f"INSERT INTO {table(schema)} "
        "(sequence, intended_at, resource, gtid, state, statement, note, context, affects) "
        f"VALUES ({record.sequence}, NOW(6), {', '.join(map(quoted, texts))})"
    )


def settle(schema: str, record: Record, *, state: str, note: str, statement: str | None = None) -> str:
    """Writes a row for what does not run. An intent may be there already, of a run that the follower refused."""
    return (
        f"{insert(schema, record, state=state, note=note, statement=statement)} "
        "ON DUPLICATE KEY UPDATE state=VALUES(state), note=VALUES(note), finished_at=NOW(6)"
    )


def finish(schema: str, record: Record) -> str:
    """Writes that the intended statement ran."""
    return (
        f"UPDATE {table(schema)} SET state='done', finished_at=NOW(6) WHERE resource={quoted(record.uri.resource)} "
        f"AND sequence={record.sequence} AND state='intent'"
    )
