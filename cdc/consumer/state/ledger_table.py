"""The SQL for the ledger, the follower's table with a row for each statement that the leader ran, and its state.

intent       the statement is about to run, or the consumer ended before it recorded that it ran
done         the statement ran
not applied  the statement is not for this follower, or was in the copy it began from; ``note`` says why
skipped      the operator left the record out (``--skip``); ``note`` says what the follower refused
"""

import json
from base64 import b64encode
from collections.abc import Sequence

from cdc.consumer.literals.values import quoted
from cdc.model.record import Record
from cdc.model.statement_gtid import statement_uuid

__all__ = [
    "ACTS_ON_LEADER", "BYTES", "IN_COPY", "create", "finish", "gtids_of", "has_context", "highest_gtid",
    "insert_intent", "insert_not_run", "last_executed", "skipped", "table", "upgrade",
]  # fmt: skip

# The note of statements that must run when the follower is promoted to a leader.
ACTS_ON_LEADER = "triggers and events act on the leader; what they do arrives as rows"
# The note of statements whose effects the follower has had from the beginning.
IN_COPY = "the copy that the follower began from has it (consumer.start)"
BYTES = "bytes"  # the member of the context that has the exact bytes of a statement, in base64
_NUMBER = "CAST(SUBSTRING_INDEX(gtid, ':', -1) AS UNSIGNED)"
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
    """The table's full name in the consumer's own database."""
    return f"`{schema}`.`ledger`"


def create(schema: str) -> str:
    """The statement that creates the table."""
    return f"CREATE TABLE IF NOT EXISTS {table(schema)} ({_LEDGER}"


def upgrade(schema: str) -> str:
    """The statement that changes a table of an older version to the current one."""
    # One statement, so that a crash leaves either version; an older consumer can use the current one, too.
    columns = f"MODIFY state {_STATES}, ADD COLUMN context {_CONTEXT}, ADD COLUMN affects {_CONTEXT}"
    return f"ALTER TABLE {table(schema)} {columns}"


def has_context(schema: str) -> str:
    """The query that returns one row if the table is of the current version, none if it needs ``upgrade``."""
    return (
        f"SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA={quoted(schema)} "
        "AND TABLE_NAME='ledger' AND COLUMN_NAME='affects'"
    )


def gtids_of(schema: str, records: Sequence[Record]) -> str:
    """The query that returns sequence and GTID of each of the statements that the ledger has."""
    sequences = ", ".join(str(record.sequence) for record in records)
    return (
        f"SELECT sequence, gtid FROM {table(schema)} "
        f"WHERE resource={quoted(records[0].uri.resource)} AND sequence IN ({sequences})"
    )


def highest_gtid(schema: str, resource: str) -> str:
    """The query that returns the highest numbered GTID of a statement of ``resource``; no row without one.

    It reads all of its rows: their numbers need not grow with the sequences.
    """
    return (
        f"SELECT gtid FROM {table(schema)} WHERE resource={quoted(resource)} "
        f"AND gtid LIKE {quoted(statement_uuid(resource) + ':%')} ORDER BY {_NUMBER} DESC LIMIT 1"
    )


def last_executed(schema: str, resource: str, *, after: int) -> str:
    """The query that returns the highest sequence of a statement ``after`` another that has run or is running, or NULL.

    A running one has its GTID from before it begins until it has ended.
    """
    owned = "LOCATE(CONCAT(LOWER(gtid), '#'), LOWER(@@GLOBAL.gtid_owned))"
    return (
        f"SELECT MAX(sequence) FROM {table(schema)} WHERE resource={quoted(resource)} AND sequence > {after} "
        f"AND gtid <> '' AND (GTID_SUBSET(gtid, @@GLOBAL.gtid_executed) OR {owned})"
    )


def skipped(schema: str, resource: str, *, after: int, upto: int) -> str:
    """The query that returns the sequences of the records in this range that were skipped."""
    where = f"resource={quoted(resource)} AND sequence > {after} AND sequence <= {upto} AND state='skipped'"
    return f"SELECT sequence FROM {table(schema)} WHERE {where}"


def insert_intent(schema: str, record: Record, *, gtid: str) -> str:
    """The statement that records that a statement is about to run under ``gtid``."""
    # A row without a GTID says that the statement did not run; the checkpoint was then put back to before it.
    again = "ON DUPLICATE KEY UPDATE state=VALUES(state), gtid=VALUES(gtid)"
    return f"{_insert(schema, record, state='intent', gtid=gtid)} {again}"


def insert_not_run(schema: str, record: Record, *, state: str, note: str, statement: str | None = None) -> str:
    """The statement that records a statement that does not run.

    ``statement`` replaces the record's text, for records without one. An intent may exist already, if the follower
    refused the statement; its number is not used again.
    """
    return (
        f"{_insert(schema, record, state=state, note=note, statement=statement)} "
        "ON DUPLICATE KEY UPDATE state=VALUES(state), note=VALUES(note), finished_at=NOW(6)"
    )


def finish(schema: str, record: Record) -> str:
    """The statement that records that the intended statement ran."""
    return f"UPDATE {table(schema)} SET state='done', finished_at=NOW(6) WHERE {_is(record)} AND state='intent'"


def _is(record: Record) -> str:
    return f"resource={quoted(record.uri.resource)} AND sequence={record.sequence}"


def _insert(
    schema: str, record: Record, *, state: str, gtid: str = "", note: str = "", statement: str | None = None
) -> str:
    context = record.context
    if record.exact is not None:
        context = dict(context or {}) | {BYTES: b64encode(record.exact).decode("ascii")}
    texts = [
        record.uri.resource, gtid, state, record.query if statement is None else statement, note[:_NOTE],
        json.dumps(context, ensure_ascii=False), json.dumps(record.affects, ensure_ascii=False),
    ]  # fmt: skip
    return (
        f"INSERT INTO {table(schema)} "
        "(sequence, intended_at, resource, gtid, state, statement, note, context, affects) "
        f"VALUES ({record.sequence}, NOW(6), {', '.join(map(quoted, texts))})"
    )
