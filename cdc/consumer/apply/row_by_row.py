"""A batch that failed as a whole, row by row: finds the conflict and lets the leader's image win, or stops.

A conflict is a row that is not there, or a duplicate: something else has written to the follower. Any other refusal
stops the stream, since the rows can't be stored as the leader has them.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from cdc.consumer.apply.non_strict import Lenience
from cdc.consumer.apply.row_differences import Differences
from cdc.consumer.errors import Unapplicable, unreadable
from cdc.consumer.follower.schema_cache import Tables
from cdc.consumer.follower.session import Refused, Session
from cdc.consumer.literals.row_sql_mode import LAX, STRICT, computing, is_looked_up, setting, strict
from cdc.consumer.literals.values import equal, identifier, literal, table_name
from cdc.consumer.plan.packets import Statement, packets
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Change, Step
from cdc.consumer.plan.statements import delete_exact, session_flags, single
from cdc.consumer.plan.table_schema import KeyPart
from cdc.consumer.state import conflicts
from cdc.consumer.state.conflicts import Conflict
from cdc.consumer.state.skips import Skips
from cdc.errors import PromiseError
from cdc.model.record import Record, Row
from cdc.model.values import NULL, Value, display
from cdc.service.process import event

__all__ = ["Replay", "refusal"]

_LOG = logging.getLogger("cdc.consumer")
_DUPLICATES = frozenset({1062, 1586, 1859})
_SHOWN = 200
_COMPUTED = (
    "a generated column becomes another one here than on the leader: it depends on a setting of the leader's session, "
    "such as sql_mode, block_encryption_mode or, where it divides, div_precision_increment, which both servers need "
    "alike (SET PERSIST, then FLUSH TABLES)"
)


class Replay:
    """Applies steps row by row in the session's open transaction. ``on_conflict`` is "converge" or "stop".

    With ``differences`` a row that is not as it was on the leader before its change is a conflict, too.
    ``skips`` says which records the follower may do without; ``note(record, error)`` gives the note of one.
    """

    def __init__(
        self,
        session: Session,
        tables: Tables,
        *,
        on_conflict: str,
        differences: Differences | None,
        skips: Skips,
        note: Callable[[Record, Unapplicable], Statement],
    ) -> None:
        self._session = session
        self._tables = tables
        self._on_conflict = on_conflict
        self._differences = differences
        self._skips = skips
        self._note_skip = note
        self._lenience = Lenience(session, self._run_in)
        self._mode: str | None = None
        self._conflicts = 0

    def apply(self, steps: list[Step]) -> int:
        """How many conflicts were settled in the leader's favour.

        Raises Unapplicable for a conflict under "stop" and for a row that the follower refuses; Interrupted.
        """
        # Somebody may have altered the tables since they were asked for.
        self._tables.forget()
        self._conflicts = 0
        for step in steps:
            self._run(session_flags(step.record.flags))
            self._mode = self._mode_of(step.record)
            for _, changes in groupby(step.changes, key=lambda change: change.record.sequence):
                self._record(list(changes))
        self._run(session_flags(0))
        return self._conflicts

    def _mode_of(self, record: Record) -> str | None:
        """The mode for rows of a table that computes; None for others."""
        if not self._tables.shape(record.uri).computes:
            return None
        try:
            return strict(computing(record), adds=record.operation == "Add")
        except ValueError as error:
            raise unreadable(record, error) from None

    def _record(self, changes: list[Change]) -> None:
        """Apply the rows of one record, or none of them where the follower may do without it."""
        record = changes[0].record
        may_skip, before = self._skips.allow(record), self._conflicts
        if may_skip:
            # Other records of the leader's transaction stay applied.
            self._session.run([b"SAVEPOINT record"])
        try:
            for change in changes:
                self._change(change)
        except Unapplicable as error:
            if not may_skip:
                raise
            note = self._note_skip(record, error)
            self._conflicts = before
            flags = session_flags(record.flags).sql
            self._session.run([b"ROLLBACK TO SAVEPOINT record", setting(STRICT), flags, note.sql])

    def _change(self, change: Change) -> None:
        try:
            statement = single(change, generated=self._tables.generated)
            reason = self._differences.of(change) if self._differences else ""
        except ValueError as error:
            raise unreadable(change.record, error) from None
        except Refused as error:
            raise refusal(error, statement) from None
        if reason and self._on_conflict == "stop":
            raise _stopped(change, reason)
        reason = self._stored(change, statement, reason)
        if not reason:
            return
        if self._on_conflict == "stop":
            raise _stopped(change, reason)
        try:
            # Removing what clashes must not cascade to rows of other tables.
            self._run(session_flags(change.record.flags | NO_FOREIGN_KEY_CHECKS))
            removed = self._converge(change)
            self._run(session_flags(change.record.flags))
        except Refused as error:
            raise refusal(error, statement) from None
        self._settled(Conflict(change.record, _shown_key(change), reason, "; ".join(removed)))

    def _stored(self, change: Change, statement: Statement, reason: str) -> str:
        """Do as the leader did; nothing where that is done, else why it is not.

        ``reason`` says how the row is not as it was on the leader.
        """
        if reason and self._differences and change.row.after is not None:
            done = Change(change.record, Row(change.row.after, None))
            if not self._differences.of(done):
                # An update to what the row is already would not be logged, and the audit look for it in vain.
                return reason
        try:
            if self._store(change, statement) != statement.rows:
                return "the row is not there"
        except Refused as error:
            if error.code not in _DUPLICATES:
                raise refusal(error, statement) from None
            return error.text
        if reason:
            self._settled(Conflict(change.record, _shown_key(change), reason))
        return ""

    def _settled(self, conflict: Conflict) -> None:
        record = conflict.record
        fields = {
            "uri": record.uri,
            "key": conflict.key,
            "sequence": record.sequence,
            "position": record.position,
            "operation": record.operation,
            "reason": conflict.reason,
        }
        if conflict.removed:
            fields["removed"] = conflict.removed
        event(_LOG, "conflict", level=logging.WARNING, **fields)
        conflicts.note(self._session, conflict)
        self._conflicts += 1

    def _converge(self, change: Change) -> list[str]:
        """Make the follower hold the leader's after-image and nothing that clashes with it; the rows that had to go."""
        if change.row.before is not None:
            self._store(Change(change.record, Row(change.row.before, None)), delete_exact(change))
        removed: list[str] = []
        if change.row.after is not None:
            for key, where in self._clashes(change.record, change.row.after):
                removed += self._remove(change.record, where, key=key)
            insert = Change(replace(change.record, operation="Add"), Row(None, change.row.after))
            try:
                self._store(insert, single(insert, generated=self._tables.generated))
            except Refused as error:
                if error.code not in _DUPLICATES:
                    raise
                raise _untellable(change.record, error) from None
        return removed

    def _clashes(self, record: Record, image: list[Value]) -> Iterator[tuple[tuple[str, ...], str]]:
        """For each unique key, the columns and the condition of rows that share it with ``image``.

        Not for one of an expression, or of a column that the record has not: if it clashes the server says so.
        """
        values = dict(zip(record.columns, image, strict=True))
        keys = self._tables.shape(record.uri).unique_keys
        # The record's own key first: a row with it is the conflict's own, whatever else it shares.
        for _, parts in sorted(keys.items(), key=lambda key: _columns(key[1]) != record.key):
            if any(part.column not in values for part in parts):
                continue
            where = [_same(part, values[part.column]) for part in parts if part.column is not None]
            if not any(values[part.column] == NULL for part in parts if part.column is not None):
                yield _columns(parts), " AND ".join(where)

    def _remove(self, record: Record, where: str, *, key: tuple[str, ...]) -> list[str]:
        """Delete rows; how those are called that have another key than the conflict's own row."""
        table = table_name(record.uri)
        names: list[str] = []
        if key != record.key:
            columns = record.key or key
            shown = ", ".join(map(identifier, columns))
            rows = self._session.rows(f"SELECT {shown} FROM {table} WHERE {where}")
            names = [", ".join(map(_cell, columns, row)) for row in rows]
        # In strict mode an index of an expression that is out of range would keep the row.
        self._run_in(Statement(f"DELETE FROM {table} WHERE {where}".encode()), LAX)
        return names

    def _store(self, change: Change, statement: Statement) -> int:
        """Run a row's statement; without strict mode where only so the row becomes what it is on the leader."""
        record = change.record
        looks = self._mode is not None and change.row.after is not None
        looks = looks and (is_looked_up(computing(record)) or bool(self._tables.shape(record.uri).doubtful))
        before = self._lenience.count(change) if looks else 0
        try:
            count = self._run(statement) if self._mode is None else self._run_in(statement, self._mode)
        except Refused as error:
            if error.code in _DUPLICATES or (found := self._lenience.store(change, statement)) is None:
                raise
            return found
        if looks and count == statement.rows and not self._lenience.holds(change, before):
            raise Refused(0, _COMPUTED)
        return count

    def _run_in(self, statement: Statement, mode: str) -> int:
        """Run a statement in another mode than all others."""
        self._session.run([setting(mode)])
        try:
            return self._run(statement)
        finally:
            if self._session.connected:
                self._session.run([setting(STRICT)])

    def _run(self, statement: Statement) -> int:
        # A packet of its own: a statement too large for the server is told before it is sent.
        (packet,) = packets([statement], limit=self._session.max_packet)
        return self._session.run([part.sql for part in packet])[0]


def _untellable(record: Record, error: Refused) -> Unapplicable:
    return Unapplicable(
        f"conflict in {record.uri}: {error}; which row clashes cannot be told from the record",
        record=record,
        hint="mend the row that has this key on the follower by hand and start again",
    )


def _stopped(change: Change, reason: str) -> Unapplicable:
    record = change.record
    return Unapplicable(
        f"conflict: {record.operation} of {_shown_key(change)} in {record.uri}: {reason}",
        record=record,
        hint='something else writes to the follower; mend the row there, or set on_conflict = "converge"',
    )


def refusal(error: Refused, statement: Statement) -> PromiseError:
    """The error for rows that the follower refuses, with the record, the leader's position and what was tried."""
    text = statement.sql.decode("utf-8", "replace")
    tried = text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
    if not statement.changes:
        return PromiseError(f"the follower refuses a statement: {error}", where=tried)
    record = statement.changes[0].record
    return Unapplicable(
        f"the follower refuses a row of {record.uri}: {error}; tried: {tried}",
        record=record,
        hint="make the follower's table take what the leader's takes and start again; nothing was applied in part",
    )


def _same(part: KeyPart, value: Value) -> str:
    if part.length is None:
        return equal(part.column or "", value)
    return f"LEFT({identifier(part.column or '')}, {part.length})=LEFT({literal(value)}, {part.length})"


def _columns(parts: Iterable[KeyPart]) -> tuple[str, ...]:
    return tuple(part.column for part in parts if part.column is not None)


def _cell(column: str, value: object) -> str:
    return f"{column}={'0x' + value.hex() if isinstance(value, bytes) else value}"


def _shown_key(change: Change) -> str:
    record = change.record
    image = change.row.before if change.row.before is not None else change.row.after or []
    shown = [
        f"{column}={display(value)}"
        for column, value in zip(record.columns, image, strict=True)
        if record.key is None or column in record.key
    ]
    text = ", ".join(shown)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
