"""What a follower says of itself (``cdc-consumer PROFILE --status``).

One look, as of one moment, that changes and locks nothing.
"""

import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cdc.config.profile import Database
from cdc.consumer.follower.locks import lock_name
from cdc.consumer.follower.session import Interrupted, Refused, Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state import checkpoint, conflicts, ledger_table
from cdc.consumer.state.checkpoint import Checkpoint, Partition
from cdc.errors import UserError

__all__ = ["Applied", "Entry", "Settled", "Status", "lag", "look"]

_NEWEST = 10
# A database that is dropped takes its triggers and events along.
_OF_OBJECTS = "affects LIKE '%Trigger\"%' OR affects LIKE '%Event\"%' OR affects LIKE '%\"DropDatabase\"%'"
_ENTRY = "sequence, state, statement, note, COALESCE(finished_at, intended_at)"
_ON_ITS_OWN = ("Trigger", "Event")


@dataclass(frozen=True, slots=True)
class Applied:
    """The checkpoint: the last record applied (-1: none yet), the leader's transaction of it, and where to read on.

    ``ts_us`` is its commit on the leader in µs since 1970, ``at`` the follower's in UTC.
    """

    sequence: int
    topic: str
    topic_id: str
    offsets: dict[Partition, int]
    position: str
    transaction: str
    ts_us: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger; ``at`` (UTC) is when it was finished or, where it is open, intended."""

    sequence: int
    state: str
    statement: str
    note: str
    at: datetime
    context: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settled:
    """A row of the conflicts; ``number`` counts them all."""

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
    """``applied`` is None where no consumer has been here yet; ``consumer`` is the connection of one that is at work.

    ``states`` counts the ledger's rows, ``newest`` are its last ones, ``missing`` the statements of triggers and
    events that the leader has and the follower has not, in order. ``conflicts`` are the last ones, newest first.
    """

    consumer: int | None
    applied: Applied | None = None
    states: dict[str, int] = field(default_factory=dict)
    newest: tuple[Entry, ...] = ()
    open: tuple[Entry, ...] = ()
    skipped: tuple[Entry, ...] = ()
    missing: tuple[Entry, ...] = ()
    conflicts: tuple[Settled, ...] = ()


def lag(applied: Applied, following: int | None) -> tuple[int | None, float | None]:
    """How many records behind, and at most how many seconds; None what is not known.

    ``following`` is the sequence after the last record in the topic, None where it is not known.
    """
    if following is None:
        return None, None
    records = max(0, following - 1 - applied.sequence)
    if not records:
        return 0, 0.0
    # What waits was committed after the last that was applied.
    return records, None if applied.ts_us is None else max(0.0, time.time() - applied.ts_us / 1e6)


def look(follower: Database, *, resource: str, schema: str) -> Status:
    """The status of what is applied of the leader ``resource``. Raises UserError where the follower can't be asked."""
    try:
        with Session(follower, schema=schema) as session:
            session.connect()
            return _look(session, resource)
    except (Interrupted, Refused) as error:
        raise UserError(
            f"the follower cannot be asked: {error}",
            where=f"{follower} (profile table database)",
            hint="start the server, or mend address, user or password",
        ) from None


def _look(session: Session, resource: str) -> Status:
    ((consumer,),) = session.rows(f"SELECT IS_USED_LOCK('{lock_name(resource)}')")
    # All rows as of one moment, beside a consumer that goes on.
    session.run([
        b"COMMIT",
        b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        b"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ])  # fmt: skip
    names = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA={quoted(session.schema)}"
    tables = {name for (name,) in session.rows(names)}
    applied = _applied(session, resource, many="offsets" in tables) if "checkpoint" in tables else None
    if applied is None or "ledger" not in tables:
        return Status(consumer, applied)
    ours = f"resource={quoted(resource)}"
    return Status(
        consumer,
        applied,
        states=dict(
            session.rows(
                f"SELECT state, COUNT(*) FROM {ledger_table.table(session.schema)} WHERE {ours} GROUP BY state"
            )
        ),
        newest=_entries(session, f"{ours} ORDER BY sequence DESC LIMIT {_NEWEST}"),
        open=_entries(session, f"{ours} AND state='intent' ORDER BY sequence"),
        skipped=_entries(session, f"{ours} AND state='skipped' ORDER BY sequence"),
        missing=_missing(session, ours),
        conflicts=_conflicts(session, ours) if "conflicts" in tables else (),
    )


def _applied(session: Session, resource: str, *, many: bool) -> Applied | None:
    rows = session.rows(Checkpoint.select(resource, schema=session.schema))
    if not rows:
        return None
    others = session.rows(Checkpoint.select_offsets(resource, schema=session.schema)) if many else []
    point = Checkpoint.from_rows(rows[0], others, schema=session.schema)
    ((file, offset, transaction, ts_us, at),) = session.rows(checkpoint.select_leader(resource, schema=session.schema))
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


def _entries(session: Session, where: str) -> tuple[Entry, ...]:
    return tuple(
        Entry(*row) for row in session.rows(f"SELECT {_ENTRY} FROM {ledger_table.table(session.schema)} WHERE {where}")
    )


def _missing(session: Session, ours: str) -> tuple[Entry, ...]:
    if not session.rows(ledger_table.has_context(session.schema)):
        # A ledger of before: what has become of an object is not told, so all statements are.
        return _entries(session, f"{ours} AND state='not applied' AND note={quoted(ledger_table.ACTS_ON_LEADER)}")
    standing: dict[str, list[Entry]] = {}
    query = (
        f"SELECT {_ENTRY}, COALESCE(context, 'null'), COALESCE(affects, '[]') "
        f"FROM {ledger_table.table(session.schema)} WHERE {ours} "
        f"AND (state='done' OR note={quoted(ledger_table.ACTS_ON_LEADER)}) AND ({_OF_OBJECTS}) ORDER BY sequence"
    )
    for sequence, state, statement, note, at, context, affects in session.rows(query):
        entry = Entry(sequence, state, statement, note, at, json.loads(context) or {})
        _follow(standing, entry, json.loads(affects))
    return tuple(sorted((entry for entries in standing.values() for entry in entries), key=lambda each: each.sequence))


def _follow(standing: dict[str, list[Entry]], entry: Entry, affects: list[dict[str, str]]) -> None:
    """What the leader's triggers and events, by kind and URI, are made of after one more statement."""
    for affect in affects:
        action, uri = affect["action"], affect["uri"]
        if action == "DropDatabase":
            for name in [name for name in standing if name.partition(" ")[2].startswith(f"{uri}/")]:
                del standing[name]
        for kind in _ON_ITS_OWN:
            if not action.endswith(kind):
                continue
            before = standing.pop(f"{kind} {uri}", [])
            if action.startswith("Create"):
                # CREATE … IF NOT EXISTS leaves the one that is there.
                standing[f"{kind} {uri}"] = before or [entry]
            elif not action.startswith("Drop"):
                standing[f"{kind} {affect.get('to', uri)}"] = [*before, entry]


def _conflicts(session: Session, ours: str) -> tuple[Settled, ...]:
    return tuple(Settled(*row) for row in session.rows(conflicts.newest(session.schema, ours, limit=_NEWEST)))
