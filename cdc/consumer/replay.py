"""A batch that failed as a whole, row by row: finds the conflict and lets the leader's image win, or stops.

A conflict is a row that is not there, or a duplicate: something else has written to the follower. Any other refusal
stops the stream, since the rows can't be stored as the leader has them.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace

from cdc.consumer.literals import equal, identifier, literal, table_name
from cdc.consumer.planner import NO_FOREIGN_KEY_CHECKS, Change, Step
from cdc.consumer.session import LAX, STRICT, Refused, Session
from cdc.consumer.shape import KeyPart
from cdc.consumer.statements import Statement, delete_exact, packets, session_flags, single
from cdc.consumer.tables import Tables
from cdc.errors import PromiseError
from cdc.record import Row
from cdc.service import event
from cdc.values import NULL, Value, display

__all__ = ["Replay", "refusal"]

_LOG = logging.getLogger("cdc.consumer")
_DUPLICATES = frozenset({1062, 1586, 1859})
_SHOWN = 200
_ENUM_ERROR: Value = {"Enum": 0}
# Warnings of how a literal is written, not of what is stored: a byte without a letter, a character set grown old.
_ABOUT_LITERALS = frozenset({1300, 1287})


class Replay:
    """Applies steps row by row in the session's open transaction. ``on_conflict`` is "converge" or "stop"."""

    def __init__(self, session: Session, tables: Tables, *, on_conflict: str) -> None:
        self._session = session
        self._tables = tables
        self._on_conflict = on_conflict
        self.conflicts = 0

    def apply(self, steps: list[Step]) -> None:
        """Raises PromiseError for a conflict under "stop" and for a row that the follower refuses; Interrupted."""
        for step in steps:
            self._run(session_flags(step.flags))
            for change in step.changes:
                self._change(change)
        self._run(session_flags(0))

    def _change(self, change: Change) -> None:
        statement = single(change, generated=self._tables.generated)
        try:
            if self._store(change, statement) == statement.rows:
                return
            reason = "the row is not there"
        except Refused as error:
            if error.code not in _DUPLICATES:
                raise refusal(error, statement) from None
            reason = error.text
        self._conflict(change, reason)
        try:
            # Removing what clashes must not cascade to rows of other tables.
            self._run(session_flags(change.record.flags | NO_FOREIGN_KEY_CHECKS))
            self._converge(change)
            self._run(session_flags(change.record.flags))
        except Refused as error:
            raise refusal(error, statement) from None

    def _conflict(self, change: Change, reason: str) -> None:
        record = change.record
        key = _shown_key(change)
        if self._on_conflict == "stop":
            raise PromiseError(
                f"conflict: {record.operation} of {key} in {record.uri}: {reason}",
                where=f"sequence {record.sequence}, leader position {record.position}",
                hint='something else writes to the follower; mend the row there, or set on_conflict = "converge"',
            )
        self.conflicts += 1
        fields = {"uri": record.uri, "key": key, "sequence": record.sequence, "position": record.position}
        event(_LOG, "conflict", level=logging.WARNING, operation=record.operation, reason=reason, **fields)

    def _converge(self, change: Change) -> None:
        """Make the follower hold the leader's after-image and nothing that clashes with it."""
        if change.row.before is not None:
            self._run(delete_exact(change))
        if change.row.after is not None:
            for statement in self._clashes(change, change.row.after):
                self._run(statement)
            insert = Change(replace(change.record, operation="Add"), Row(None, change.row.after))
            self._store(insert, single(insert, generated=self._tables.generated))

    def _clashes(self, change: Change, image: list[Value]) -> Iterator[Statement]:
        """Deletes the rows that share a unique key with ``image``."""
        record = change.record
        values = dict(zip(record.columns, image, strict=True))
        for name, parts in self._tables.shape(record.uri).unique_keys.items():
            if any(part.column not in values for part in parts):
                raise PromiseError(
                    f"conflict in {record.uri}: whether unique key {name} clashes cannot be told from the record",
                    where=f"sequence {record.sequence}, leader position {record.position}",
                    hint="mend the row on the follower by hand",
                )
            where = [_same(part, values[part.column]) for part in parts if part.column is not None]
            if not any(values[part.column] == NULL for part in parts if part.column is not None):
                yield Statement(f"DELETE FROM {table_name(record.uri)} WHERE {' AND '.join(where)}".encode())

    def _store(self, change: Change, statement: Statement) -> int:
        """Run a row's statement; a row with an ENUM's error value, which strict mode refuses, without strict mode."""
        errors = (change.row.after or []).count(_ENUM_ERROR)
        if not errors:
            return self._run(statement)
        self._session.run([LAX])
        count = self._run(statement)
        warnings = [row for row in self._session.rows("SHOW WARNINGS") if row[1] not in _ABOUT_LITERALS]
        self._session.run([STRICT])
        if len(warnings) != errors:
            raise Refused(int(warnings[0][1]) if warnings else 0, f"not stored as it is: {warnings}")
        return count

    def _run(self, statement: Statement) -> int:
        # A packet of its own: a statement too large for the server is told before it is sent.
        (packet,) = packets([statement], limit=self._session.max_packet)
        return self._session.run([part.sql for part in packet])[0]


def refusal(error: Refused, statement: Statement) -> PromiseError:
    """The error for rows that the follower refuses, with the record, the leader's position and what was tried."""
    text = statement.sql.decode("utf-8", "replace")
    tried = text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
    if not statement.changes:
        return PromiseError(f"the follower refuses a statement: {error}", where=tried)
    record = statement.changes[0].record
    return PromiseError(
        f"the follower refuses a row of {record.uri}: {error}; tried: {tried}",
        where=f"sequence {record.sequence}, leader position {record.position}",
        hint="make the follower's table take what the leader's takes and start again; nothing was applied in part",
    )


def _same(part: KeyPart, value: Value) -> str:
    if part.length is None:
        return equal(part.column or "", value)
    return f"LEFT({identifier(part.column or '')}, {part.length})=LEFT({literal(value)}, {part.length})"


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
