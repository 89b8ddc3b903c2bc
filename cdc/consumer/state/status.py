"""Reads a follower's status (``cdc-consumer PROFILE --status``) from the consumer's own tables, in one snapshot.

Reading the status changes and locks nothing.
"""

import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cdc.config.profile import Database
from cdc.consumer.errors import Interrupted, Refused
from cdc.consumer.follower.locks import is_paused, lock_name
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state import conflicts, ledger_table, rewinds
from cdc.consumer.state.base_copy import COPIES
from cdc.consumer.state.checkpoint import CHECKPOINT, OFFSETS, Checkpoint, TopicIdPartition, select_leader
from cdc.consumer.state.conflicts import CONFLICTS
from cdc.consumer.state.ledger_table import LEDGER
from cdc.errors import UserError
from cdc.sql.effects import LEADER_ONLY

__all__ = ["Applied", "Entry", "ResolvedConflict", "Status", "lag", "read_status"]

_NEWEST = 10
# DROP DATABASE is included, because it drops the triggers and events in the database.
_ON_TRIGGERS_AND_EVENTS = " OR ".join(f"affects LIKE '%{end}\"%'" for end in (*LEADER_ONLY, '"DropDatabase'))
# the notes of statements that the leader has executed although the follower has not
_TOOK_EFFECT = f"{quoted(ledger_table.ACTS_ON_LEADER)}, {quoted(ledger_table.IN_COPY)}"
_ENTRY_COLUMNS = "sequence, state, statement, note, COALESCE(finished_at, intended_at)"


@dataclass(frozen=True, slots=True)
class Applied:
    """The checkpoint. It contains the ``sequence`` of the last applied record (-1 before the first record), the
    record's position and transaction on the leader, and the offsets of the next records.

    ``ts_us`` is the time at which the record was committed on the leader, in µs since 1970; ``at`` is the time at which
    it was committed on the follower, in UTC.
    """

    sequence: int
    topic: str
    topic_id: str
    offsets: dict[TopicIdPartition, int]
    position: str
    transaction: str
    ts_us: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger. ``at`` (UTC) is the time at which the statement ended or, for an intent, was about to be
    executed.
    """

    sequence: int
    state: str
    statement: str
    note: str
    at: datetime
    context: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedConflict:
    """A row of the table of conflicts; ``number`` is the number of the conflict among all conflicts so far, from 1."""

    number: int
    sequence: int
    uri: str
    operation: str
    key: str
    reason: str
    removed: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Status:
    """A follower's status. ``applied`` is None if no consumer has run on the follower yet. ``consumer`` is the
    connection id of a running consumer, or None; the consumer may be ``paused``.

    ``copied`` are the GTIDs of the base copy with which the follower began; empty if it began without a base copy.
    ``states`` maps each state to the number of its rows in the ledger; ``newest`` are the newest rows. ``missing`` are
    the statements that create the triggers and events that exist only on the leader, in order. ``conflicts`` are the
    newest conflicts, newest first. ``local_infile`` is true if the follower accepts LOAD DATA LOCAL. The fields have
    the same names in ``--status --json``.
    """

    consumer: int | None
    applied: Applied | None = None
    states: dict[str, int] = field(default_factory=dict)
    copied: str = ""
    newest: tuple[Entry, ...] = ()
    open: tuple[Entry, ...] = ()
    skipped: tuple[Entry, ...] = ()
    missing: tuple[Entry, ...] = ()
    conflicts: tuple[ResolvedConflict, ...] = ()
    paused: bool = False
    local_infile: bool = True


def lag(applied: Applied, following: int | None) -> tuple[int | None, float | None]:
    """Returns the number of records by which the follower lags behind the topic, and an upper bound of the lag in
    seconds; each is None if it is unknown.

    ``following`` is the sequence after the last record in the topic; None if it is unknown.
    """
    if following is None:
        return None, None
    records = max(0, following - 1 - applied.sequence)
    if not records:
        return 0, 0.0
    # All waiting records were committed on the leader after the last applied record.
    return records, None if applied.ts_us is None else max(0.0, time.time() - applied.ts_us / 1e6)


def read_status(follower: Database, *, resource: str, schema: str) -> Status:
    """Reads the status of the replication from the leader ``resource``.

    Raises UserError for a follower that can't be queried, or on which a rewind is unfinished (``rewinds``).
    """
    try:
        with Session(follower, schema=schema) as session:
            session.connect()
            return _read(session, resource)
    except (Interrupted, Refused) as error:
        raise UserError(
            f"the follower cannot be queried: {error}",
            code="CDC-FOLLOWER-NO-ANSWER",
            where=f"{follower} (profile table database)",
            hint="start the server, or correct the address, user or password",
        ) from None


def _read(session: Session, resource: str) -> Status:
    ((consumer,),) = session.rows(f"SELECT IS_USED_LOCK('{lock_name(resource)}')")
    paused = is_paused(session, resource)
    # All queries read the same snapshot, although a consumer may continue to write.
    session.run([
        b"COMMIT",
        b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ])  # fmt: skip
    names = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA={quoted(session.schema)}"
    tables = {name for (name,) in session.rows(names)}
    applied = _applied(session, resource, many=OFFSETS.name in tables) if CHECKPOINT.name in tables else None
    if applied is None or LEDGER.name not in tables:
        return Status(consumer, applied, paused=paused, local_infile=session.local_infile)
    states = LEDGER.select(session.schema, resource, "state, COUNT(*)")
    return Status(
        consumer,
        applied,
        states=dict(session.rows(f"{states} GROUP BY state")),
        copied=_copied(session, resource) if COPIES.name in tables else "",
        newest=_entries(session, resource, order=f"sequence DESC LIMIT {_NEWEST}"),
        open=_entries(session, resource, "state='intent'"),
        skipped=_entries(session, resource, "state='skipped'"),
        missing=_missing(session, resource),
        conflicts=_conflicts(session, resource) if CONFLICTS.name in tables else (),
        paused=paused,
        local_infile=session.local_infile,
    )


def _applied(session: Session, resource: str, *, many: bool) -> Applied | None:
    rows = session.rows(Checkpoint.select(resource, schema=session.schema))
    if not rows:
        return None
    others = session.rows(Checkpoint.select_offsets(resource, schema=session.schema)) if many else []
    point = Checkpoint.from_rows(rows[0], others, schema=session.schema)
    rewinds.require_none(session, point)
    ((file, offset, transaction, ts_us, at),) = session.rows(select_leader(resource, schema=session.schema))
    return Applied(
        sequence=point.sequence,
        topic=point.topic,
        topic_id=point.topic_id,
        offsets=dict(point.offsets),
        position=f"{file}:{offset}" if file else "",
        transaction=transaction or "",
        ts_us=ts_us,
        at=at,
    )


def _copied(session: Session, resource: str) -> str:
    rows = session.rows(COPIES.select(session.schema, resource, "gtid_set"))
    return str(rows[0][0]) if rows else ""


def _entries(session: Session, resource: str, where: str = "", *, order: str = "sequence") -> tuple[Entry, ...]:
    query = LEDGER.select(session.schema, resource, _ENTRY_COLUMNS, where=where)
    return tuple(Entry(*row) for row in session.rows(f"{query} ORDER BY {order}"))


def _missing(session: Session, resource: str) -> tuple[Entry, ...]:
    if not session.rows(ledger_table.has_context(session.schema)):
        # An older ledger does not contain the objects that a statement affects, so all statements about triggers and
        # events are returned.
        return _entries(session, resource, f"state='not applied' AND note={quoted(ledger_table.ACTS_ON_LEADER)}")
    standing: dict[str, list[Entry]] = {}
    query = LEDGER.select(
        session.schema,
        resource,
        f"{_ENTRY_COLUMNS}, COALESCE(context, 'null'), COALESCE(affects, '[]')",
        where=f"(state='done' OR note IN ({_TOOK_EFFECT})) AND ({_ON_TRIGGERS_AND_EVENTS})",
    )
    rows = session.rows(f"{query} ORDER BY sequence")
    for sequence, state, statement, note, at, context, affects in rows:
        entry = Entry(sequence, state, statement, note, at, json.loads(context) or {})
        _follow(standing, entry, json.loads(affects))
    return tuple(sorted((entry for entries in standing.values() for entry in entries), key=lambda each: each.sequence))


def _follow(standing: dict[str, list[Entry]], entry: Entry, affects: list[dict[str, str]]) -> None:
    """Applies the effects of a statement to ``standing``. ``standing`` maps each existing trigger or event to the
    statements that create it.
    """
    for affect in affects:
        action, uri = affect["action"], affect["uri"]
        if action == "DropDatabase":
            for name in [name for name in standing if name.partition(" ")[2].startswith(f"{uri}/")]:
                del standing[name]
        for kind in LEADER_ONLY:
            if not action.endswith(kind):
                continue
            before = standing.pop(f"{kind} {uri}", [])
            if action.startswith("Create"):
                # CREATE … IF NOT EXISTS changes nothing if the object exists.
                standing[f"{kind} {uri}"] = before or [entry]
            elif not action.startswith("Drop"):
                standing[f"{kind} {affect.get('to', uri)}"] = [*before, entry]


def _conflicts(session: Session, resource: str) -> tuple[ResolvedConflict, ...]:
    found = session.rows(conflicts.newest(session.schema, resource, limit=_NEWEST))
    return tuple(ResolvedConflict(*row) for row in found)
