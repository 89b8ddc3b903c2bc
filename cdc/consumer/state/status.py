"""Reads a follower's status (``cdc-consumer PROFILE --status``) from the consumer's own tables, in one snapshot, and
writes it as text or JSON.

Reading the status changes and locks nothing.
"""

import json
import re
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from cdc.config.profile import Database
from cdc.config.table_globs import named
from cdc.consumer.errors import Interrupted, Refused
from cdc.consumer.follower.locks import is_paused, lock_name
from cdc.consumer.follower.session import NOT_TAKEN, SWITCH_ON, Session
from cdc.consumer.literals.values import identifier, quoted, seconds
from cdc.consumer.state import base_copy, conflicts, ledger_table, parked
from cdc.consumer.state.base_copy import COPIES
from cdc.consumer.state.checkpoint import CHECKPOINT, OFFSETS, Checkpoint, TopicIdPartition, select_leader
from cdc.consumer.state.conflicts import CONFLICTS
from cdc.consumer.state.ledger_table import BYTES, LEDGER
from cdc.errors import UserError
from cdc.model.client_text import UTF8, client_decode
from cdc.model.values import visible
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.text import is_lost
from cdc.sql.tokens import excerpt

__all__ = [
    "Applied",
    "Entry",
    "Parked",
    "ResolvedConflict",
    "Status",
    "as_json",
    "as_text",
    "creation",
    "is_text",
    "lag",
    "read_status",
]

_NEWEST = 10
# DROP DATABASE is included, because it drops the triggers and events in the database.
_ON_TRIGGERS_AND_EVENTS = " OR ".join(f"affects LIKE '%{end}\"%'" for end in (*LEADER_ONLY, '"DropDatabase'))
# the notes of statements that took effect on the leader, but were not executed on the follower
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
    """A row of the ledger. ``at`` (UTC) is the time at which the statement ended or, in the state ``intent``, was about
    to be executed.
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
class Parked:
    """A parked table, with the leader's names; its changes from the record ``sequence`` on are left out."""

    database: str
    table: str
    state: str
    sequence: int
    reason: str


@dataclass(frozen=True, slots=True)
class Status:
    """A follower's status. ``applied`` is None if no consumer has run on the follower yet. ``consumer`` is the
    connection id of a running consumer, or None; the consumer may be ``paused``.

    ``copied`` are the GTIDs of the base copy with which the follower began; empty if it began without a base copy.
    ``states`` maps each state to the number of its rows in the ledger; ``newest`` are the newest rows. ``missing`` are
    the statements that create the triggers and events that exist only on the leader, in order. ``conflicts`` are the
    newest conflicts, newest first. ``parked`` are the parked tables. ``local_infile`` is true if the follower accepts
    LOAD DATA LOCAL. The fields have
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
    parked: tuple[Parked, ...] = ()


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

    Raises UserError for a follower that can't be queried, or on which a rewind is unfinished (``state.base_copy``).
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
        parked=_parked(session, resource) if parked.TABLE.name in tables else (),
    )


def _parked(session: Session, resource: str) -> tuple[Parked, ...]:
    found = parked.parsed(session.rows(parked.select(session.schema, resource)))
    return tuple(Parked(*name, each.state, each.sequence, each.reason) for name, each in sorted(found.items()))


def _applied(session: Session, resource: str, *, many: bool) -> Applied | None:
    rows = session.rows(Checkpoint.select(resource, schema=session.schema))
    if not rows:
        return None
    others = session.rows(Checkpoint.select_offsets(resource, schema=session.schema)) if many else []
    point = Checkpoint.from_rows(rows[0], others, schema=session.schema)
    base_copy.require_no_rewind(session, point)
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


# Writes a follower's status as lines of text for an operator, or as one JSON object for programs.

_ACCOUNTS = (
    "accounts     are in no topic: copy them before a promotion (SHOW CREATE USER and SHOW GRANTS on the leader)"
)
_INTRODUCED = re.compile(r"""(?<![\w$])(_\w+|n)\s*['"]""", re.IGNORECASE)
_SESSION_VARIABLES = {"time_zone": "time_zone", "charset": "character_set_client", "collation": "collation_connection"}


def as_json(status: Status, *, follower: str, resource: str, following: int | None, silent: float | None = None) -> str:
    """Writes a status as one JSON object. It has the fields of ``Status``, and the fields ``follower``, ``resource``,
    ``lag`` and ``producer``. Times are in ISO 8601, in UTC.

    ``following`` is the sequence after the last record in the topic; None if it is unknown, and then the lag is null.
    ``silent`` is the number of seconds since the producer last wrote to the commit log.
    """
    body = {"follower": follower, "resource": resource} | asdict(status)
    records, seconds = lag(status.applied, following) if status.applied else (None, None)
    body["lag"] = {"records": records, "seconds": seconds}
    body["producer"] = {"silent_seconds": silent}
    if status.applied:
        body["applied"]["offsets"] = [
            {"topic": partition.topic, "partition": partition.number, "next": offset}
            for partition, offset in sorted(status.applied.offsets.items())
        ]
    return json.dumps(body, default=_iso_time, ensure_ascii=False)


def _iso_time(value: Any) -> str:
    """Writes a time in ISO 8601. The times in MySQL's DATETIME columns are in UTC, but their values have no time
    zone."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    raise TypeError(f"not a value of a status: {value!r}")


def as_text(
    status: Status,
    *,
    follower: str,
    resource: str,
    following: int | None,
    silent: float | None = None,
    terminal: bool = False,
) -> str:
    """Writes a status as a few lines of text, followed by the statements that an operator executes when the follower is
    promoted to a leader.

    ``following`` is the sequence after the last record in the topic (None if unknown), and ``silent`` is the number of
    seconds since the producer last wrote to the commit log. The statements are exact, so that a client can execute
    them; their control characters are escaped only if the output is a ``terminal``.
    """
    late = _lag(status.applied, following, silent) if status.applied is not None else ""
    lines = [visible(line) for line in _lines(status, follower=follower, resource=resource, late=late)]
    if status.applied is not None:
        statements = [f"{text};;" for entry in status.missing if is_text(entry) for text in creation(entry)]
        if terminal:
            statements = [visible(text.replace("\r\n", "\n"), keep="\n\t") for text in statements]
        lines += ["DELIMITER ;;", *statements, "DELIMITER ;"] if statements else []
        lines.append(_ACCOUNTS)
    return "\n".join(lines)


def _lines(status: Status, *, follower: str, resource: str, late: str) -> Iterator[str]:
    yield _line("follower", f"{follower}, of leader {resource}")
    runs = "paused" if status.paused else "running"
    yield _line("consumer", "not running" if status.consumer is None else f"{runs}, connection {status.consumer}")
    if not status.local_infile:
        yield _line("many rows", f"{NOT_TAKEN}; {SWITCH_ON}")
    if status.applied is None:
        yield _line("checkpoint", "none: nothing of this leader has been applied here")
        return
    yield from _checkpoint(status.applied)
    if status.copied:
        yield _line("began from", f"a copy of the leader with the transactions {status.copied}")
    yield _line("lag", late)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(status.states.items()))
    yield _line("ledger", counts or "empty")
    yield from (f"  {_entry(entry)}" for entry in reversed(status.newest))
    if status.parked:
        until = "their changes are left out until they are copied again, or applied with --retry-parked"
        yield _line("parked", f"{len(status.parked)} tables: {until}")
        for each in status.parked:
            name = named(each.database, each.table)
            yield f"  {name}, {each.state}, since sequence {each.sequence}: {each.reason}"
    yield from _section(
        "open intents", status.open, "A statement is running, or the follower refused it: see the consumer's log."
    )
    yield from _section(
        "skipped", status.skipped, "Records skipped with --skip, and events that the producer left out:"
    )
    yield from _conflict_lines(status.conflicts)
    yield from _missing_lines(status.missing)


def _line(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _checkpoint(applied: Applied) -> Iterator[str]:
    if applied.sequence < 0:
        yield _line("checkpoint", "at the beginning: no record has been applied yet")
    else:
        yield _line("checkpoint", f"sequence {applied.sequence}, applied {applied.at} UTC")
    if applied.ts_us is not None:
        committed = f"{datetime.fromtimestamp(applied.ts_us / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
        yield _line("leader", f"{applied.position}, transaction {applied.transaction}, committed {committed}")
    yield _line("topic", f"{applied.topic} (id {applied.topic_id})")
    for partition, offset in sorted(applied.offsets.items()):
        yield _line("offset", f"{partition.topic}/{partition.number}: {offset} is next")


def _lag(applied: Applied, following: int | None, silent: float | None) -> str:
    records, late = lag(applied, following)
    if records is None:
        return "not known: the brokers do not answer, or the topic has no commit log yet"
    found = f"{records} records, at most {late:.1f} s" if records and late is not None else f"{records} records"
    if silent is None:
        return found
    # The lag does not include the changes that the leader has made since then, because the topics do not contain them
    # yet.
    return f"{found}; nothing heard of the producer for {silent:.0f} s (it writes each producer.alive_seconds)"


def _entry(entry: Entry) -> str:
    note = f" ({entry.note})" if entry.note else ""
    return f"{entry.sequence}  {entry.at}  {entry.state}{note}: {excerpt(entry.statement)}"


def _section(name: str, entries: Sequence[Entry], what: str) -> Iterator[str]:
    if entries:
        yield _line(name, what)
        yield from (f"  {_entry(entry)}" for entry in entries)


def _conflict_lines(conflicts: Sequence[ResolvedConflict]) -> Iterator[str]:
    yield _line("conflicts", str(conflicts[0].number if conflicts else 0))
    for each in reversed(conflicts):
        removed = f"; removed {each.removed}" if each.removed else ""
        yield f"  {each.sequence}  {each.at}  {each.operation} of {each.key} in {each.uri}: {each.reason}{removed}"


def _missing_lines(entries: Sequence[Entry]) -> Iterator[str]:
    if not entries:
        yield _line("not here", "no triggers or events of the leader that the topic tells of; it may have others from")
        yield "  before the stream began: see SHOW TRIGGERS and SHOW EVENTS there"
        return
    yield _line("not here", "These triggers and events run on the leader only; the rows they write are replicated.")
    yield "  To promote this follower, stop the consumer and run these statements in this order with the mysql client,"
    yield "  with event_scheduler OFF: a one-time event that has run and was kept (ON COMPLETION PRESERVE) would run"
    yield "  again. Disable such events, then set event_scheduler ON. Those from before the stream began may be missing"
    yield "  here: see SHOW TRIGGERS and SHOW EVENTS on the leader."
    others = [entry for entry in entries if not is_text(entry)]
    if others:
        yield "  These have bytes that are no text, or no UTF-8. Create them by hand; the ledger has their bytes:"
        yield from (f"  {_entry(entry)}" for entry in others)


def is_text(entry: Entry) -> bool:
    """Whether the server reads the entry's text, sent as UTF-8, in the same way as it read the original bytes."""
    charset = entry.context.get("charset", "utf8mb4")
    exact = entry.context.get(BYTES)
    if exact is not None and is_lost(client_decode(b64decode(exact), charset)):
        return False
    # The server takes the bytes of a literal with an introducer, such as _latin1'…', as they are sent. In UTF-8 these
    # would be other bytes.
    return entry.statement.isascii() or charset in UTF8 or not _INTRODUCED.search(entry.statement)


def creation(entry: Entry) -> Iterator[str]:
    """Yields statements that set the leader's session variables, and then the statement of the entry.

    The session variables are needed, for example, because the schedule of an event depends on the time zone and the
    time of the session.
    """
    database = entry.context.get("database")
    yield "SET NAMES utf8mb4"  # this output is UTF-8
    yield from ([f"USE {identifier(database)}"] if database else [])
    # A variable that the record lacks is set to its default. Otherwise it would keep its value from the previous
    # statement.
    wanted = {"sql_mode": quoted(entry.context.get("sql_mode", "")), "time_zone": "DEFAULT", "timestamp": "DEFAULT"}
    for name, variable in _SESSION_VARIABLES.items():
        # The server decodes the text in the client's character set. This output is UTF-8, so if the text is not ASCII,
        # the character set of SET NAMES is kept.
        if name in entry.context and (name != "charset" or entry.statement.isascii()):
            wanted[variable] = quoted(str(entry.context[name]))
    if "timestamp_us" in entry.context:
        wanted["timestamp"] = seconds(entry.context["timestamp_us"])
    yield f"SET {', '.join(f'{variable} = {value}' for variable, value in wanted.items())}"
    yield entry.statement
