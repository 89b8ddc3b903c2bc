"""Applies a batch row by row after it failed as a whole: finds the columns that differ, resolves each conflict in the
leader's favour or stops at the first one, and stores rows that strict mode refuses.

A conflict is a missing row or a duplicate key. It shows that another client has written to the follower. If the
follower refuses a row for any other reason, the stream stops, because the row can't be stored as on the leader.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby

from cdc.consumer.apply.leader_types import LeaderTypes
from cdc.consumer.apply.row_errors import ambiguous, refusal, shown_key, stopped
from cdc.consumer.errors import DUPLICATE_KEY, Refused, Unapplicable, unreadable
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.literals import own_variables
from cdc.consumer.literals.before_images import as_before, compared
from cdc.consumer.literals.own_variables import LAX, STRICT, leader_modes, needs_comparison, setting, strict
from cdc.consumer.literals.values import DEFAULT, Rounded, equal, exact, identifier, literal, table_name
from cdc.consumer.plan.chunk_plan import check_copying, clashes
from cdc.consumer.plan.inserts import written_indexes
from cdc.consumer.plan.packets import Statement, packets, session_flags
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Change, Step
from cdc.consumer.plan.statements import apart, delete_exact, single
from cdc.consumer.state import conflicts
from cdc.consumer.state.conflicts import Conflict
from cdc.consumer.state.skips import Skips
from cdc.model.record import Record, Row, Uri
from cdc.model.values import Value
from cdc.service.logs import event

__all__ = ["NonStrictWriter", "RowByRow", "RowDifferences", "keeping"]

# Stores rows that strict mode refuses although the leader accepted them, and checks that they equal the leader's.
#
# A leader without strict mode, or a statement with IGNORE, stores a row even if a generated column, a functional index
# or a check has no value or a value out of range. The follower must store this row in the same way. Afterwards each
# column is compared with the leader's value, because without strict mode a follower's column that is too narrow also
# causes only a warning.
#
# Rows are also stored this way if a computed value differs under the sql_mode in the leader's log, because the session
# may have changed its sql_mode after BEGIN.
#
# Some values can't be stored by any statement. One kind is a VECTOR that ALTER TABLE made from a BLOB with arbitrary
# bytes. Another is text in ascii with bytes above 127 that a former version of MySQL stored. If the leader updates
# other columns of a row with such a value, ``keeping`` updates only these other columns.

_SAVEPOINT = "non_strict"
_BEFORE = b"SAVEPOINT before_row"
_COMPUTED = (
    "a generated column gets another value here than on the leader: it depends on a setting such as sql_mode, "
    "block_encryption_mode or, if it divides, div_precision_increment, which must be the same on both servers (SET "
    "PERSIST, then FLUSH TABLES); or, if it reads a TIMESTAMP, on the session's time zone, if it names days or months, "
    "on lc_time_names, if it parses JSON, on the server's version: then make it a plain column of its type on the "
    "follower"
)


class NonStrictWriter:
    """Writes single rows in the session's open transaction, and leaves the session in the mode ``STRICT``.

    ``run(statement, mode)`` executes a statement under that sql_mode and returns the number of rows that it matched.
    ``virtual(uri)`` returns the virtual generated columns of a table.
    """

    def __init__(
        self, session: Session, run: Callable[[Statement, str], int], *, virtual: Callable[[Uri], frozenset[str]]
    ) -> None:
        self._session = session
        self._run = run
        self._virtual = virtual

    def store(self, change: Change, statement: Statement) -> int | None:
        """Stores a row without strict mode; returns how many rows the statement matched. Returns None, and changes
        nothing, if the stored row would differ from the leader's row in every mode.

        The row is tried under one sql_mode after another. A mode that forbids dates, such as NO_ZERO_DATE, also changes
        literals in the statement without an error, for example a JSON document with the member 0000-00-00. The
        statement might then not find the row. So a row counts as missing only if it isn't found under a mode that
        allows any date.

        Raises Refused for a duplicate key.
        """
        missing = different = False
        modes, adds = own_variables.leader_modes(change.record), change.record.operation == "Add"
        usual = own_variables.lax(modes, adds=adds), own_variables.permissive(modes, adds=adds)
        for mode in dict.fromkeys((*usual, *own_variables.guesses())):
            self._session.run([f"SAVEPOINT {_SAVEPOINT}".encode()])
            before = self.count(change)
            try:
                count = self._run(statement, mode)
            except Refused as error:
                if error.code in DUPLICATE_KEY:
                    raise
                continue
            if not count:
                missing = missing or mode == own_variables.LAX
                continue
            if statement.rows not in (None, count) or self.holds(change, before):
                return count
            self._session.run([f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}".encode()])
            different = True
        return 0 if missing and not different else None

    def begin(self, change: Change) -> int | None:
        """Sets the savepoint to which ``again`` rolls back; must be called before the change is stored. Returns the
        number of rows that already equal the after-image (``count``).
        """
        self._session.run([_BEFORE])
        return self.count(change)

    def again(self, change: Change, statement: Statement) -> int:
        """Stores a row again, under other modes, because the stored row differed from the leader's row; returns how
        many rows the statement matched.

        Raises Refused if the stored row differs under every mode.
        """
        self._session.run([b"ROLLBACK TO " + _BEFORE])
        if (found := self.store(change, statement)) is None:
            raise Refused(0, _COMPUTED)
        return found

    def holds(self, change: Change, before: int | None) -> bool:
        """Whether the stored row equals the leader's row; ``before`` is the number of such rows before the row was
        written (``count``).
        """
        row = change.row
        if row.after is None:
            return True
        after = self.count(change)
        if after is None or before is None:
            return False
        if change.record.key is not None:
            return after == 1
        # The texts of the images are compared, since -0.0 equals 0.0 in Python.
        return after == before + (repr(row.before) != repr(row.after))

    def count(self, change: Change) -> int | None:
        """Counts the follower's rows that equal the after-image of the change. Returns 0 if the change has no
        after-image, None if the server can't compare the rows.
        """
        record, image = change.record, change.row.after
        if image is None:
            return 0
        # With PAD_CHAR_TO_FULL_LENGTH, a virtual column may have another value when it is read than when the row was
        # written.
        unread = self._virtual(record.uri) if "PAD" in own_variables.leader_modes(record) else frozenset()
        compared = [(name, value) for name, value in zip(record.columns, image, strict=True) if name not in unread]
        try:
            where = " AND ".join(f"({exact(name, value)})" for name, value in compared)
        except ValueError:
            return None  # a JSON document can't be written as a literal
        sql = f"SELECT COUNT(*) FROM {table_name(record.uri)} WHERE {where}"
        if len(sql.encode()) >= self._session.max_packet:
            return None
        try:
            ((found,),) = self._session.rows(sql)
        except Refused:
            return None  # the follower's table lacks some of these columns
        return int(found)


def keeping(change: Change, generated: frozenset[str]) -> Statement | None:
    """Builds an UPDATE that changes only the columns in which the images differ, and matches the row only if its other
    columns equal the before-image. Returns None if the images differ in all columns.

    The other columns are set to themselves, because ON UPDATE CURRENT_TIMESTAMP would change a column that is not set.
    """
    record, before, after = change.record, change.row.before, change.row.after
    if before is None or after is None:
        return None
    indexes = written_indexes(record, generated)
    # The texts of the values are compared, since -0.0 equals 0.0 in Python.
    kept = {index for index in indexes if repr(before[index]) == repr(after[index])}
    if not kept:
        return None
    names = [identifier(column) for column in record.columns]
    values = ",".join(f"{names[index]}={names[index] if index in kept else literal(after[index])}" for index in indexes)
    found = [equal(column, before[record.columns.index(column)]) for column in record.key or ()]
    compared = kept if record.key else indexes
    found += [f"({exact(record.columns[index], before[index])})" for index in compared]
    sql = f"UPDATE {table_name(record.uri)} SET {values} WHERE {' AND '.join(found)} LIMIT 1"
    return Statement(sql.encode(), 1, [change], scans=record.key is None)


# Finds the columns in which a follower's row differs from a change's before-image.

_LOG = logging.getLogger("cdc.consumer")
_SHORT = 100  # characters; longer values are not written into the query
_DOCUMENTS = frozenset({"Json", "JsonTyped"})


class RowDifferences:
    """Compares single rows, and notes which columns cannot be compared as text (module before_images).

    Such a column has another type than on the leader, for example DECIMAL(10,2) instead of DECIMAL(10,1), so that equal
    values have different texts.
    """

    def __init__(self, session: Session, tables: SchemaCache) -> None:
        self._session = session
        self._tables = tables
        self._other_types: dict[Uri, frozenset[str]] = {}

    def forget(self) -> None:
        """Forgets which columns can't be compared as text. Must be called when tables may have changed."""
        self._other_types.clear()

    def comparable(self, table: Uri) -> frozenset[str]:
        """Returns the columns of a table that can be compared as text. Raises the errors of ``SchemaCache.shape``."""
        return self._tables.shape(table).columns - self._other_types.get(table, frozenset())

    def of(self, change: Change) -> str:
        """Describes for users how the follower's row differs from the before-image; the text is empty if the row is
        equal or does not exist.

        Raises Interrupted and Refused, and ValueError for a value that no record can contain.
        """
        record, before = change.record, change.row.before
        if record.key is None or before is None:
            return ""
        indexes = compared(record, self._tables.shape(record.uri).columns)
        names = [record.columns[index] for index in indexes]
        same_text = [f"COALESCE({as_before(record, [index], before)},0)" for index in indexes]
        same_value = [
            _value(name, before[index]) if _is_short(before[index]) else digest
            for name, index, digest in zip(names, indexes, same_text, strict=True)
        ]
        rounded = self._tables.shape(record.uri).rounded
        where = " AND ".join([equal(column, before[record.columns.index(column)], rounded) for column in record.key])
        select = f"SELECT {','.join([*same_text, *same_value])} FROM {table_name(record.uri)} WHERE {where}"
        rows = self._session.rows(select) if indexes else []
        if not rows:
            return ""
        texts, values = rows[0][: len(indexes)], rows[0][len(indexes) :]
        self._learn(record.uri, [name for name, *same in zip(names, texts, values, strict=True) if same == [0, 1]])
        others = [name for name, same in zip(names, values, strict=True) if not same]
        return f"the row has another {', '.join(others)} than the leader's had" if others else ""

    def _learn(self, table: Uri, columns: list[str]) -> None:
        known = self._other_types.get(table, frozenset())
        if new := [name for name in columns if name not in known]:
            self._other_types[table] = known.union(new)
            event(_LOG, "columns of another type than the leader's", uri=table, columns=", ".join(new))


def _is_short(value: Value) -> bool:
    """Whether the value is short enough for the query; the query must not exceed the server's packet size."""
    return not isinstance(value, dict) or all(len(str(content)) <= _SHORT for content in value.values())


def _value(column: str, value: Value) -> str:
    """Returns the condition that the column has this value or, for a JSON document, that the column is not NULL."""
    if isinstance(value, dict) and not _DOCUMENTS.isdisjoint(value):
        return f"({identifier(column)} IS NOT NULL)"
    return f"COALESCE(({exact(column, value)}),0)"


_EMPTY_VECTOR: Value = {"Vector": ""}
_COPYING = "its table is being copied"


class RowByRow:
    """Applies steps in the session's open transaction. ``on_conflict`` is "converge" or "stop".

    If ``differences`` is set, a row that differs from the before-image of the change is a conflict, too. ``skips``
    decides which records may be skipped, and ``note(record, error)`` returns the statement that writes a skipped record
    to the ledger. ``removed`` counts the rows that the last ``apply`` deleted to make room for rows of tables that are
    being copied.
    """

    def __init__(
        self,
        session: Session,
        tables: SchemaCache,
        *,
        types: LeaderTypes,
        on_conflict: str,
        differences: RowDifferences | None,
        skips: Skips,
        note: Callable[[Record, Unapplicable], Statement],
    ) -> None:
        self._session = session
        self._tables = tables
        self._types = types
        self._on_conflict = on_conflict
        self._differences = differences
        self._skips = skips
        self._note_skip = note
        self._non_strict = NonStrictWriter(session, self._run_in, virtual=lambda uri: tables.shape(uri).virtual)
        self._mode: str | None = None
        self._conflicts = 0
        self.removed = 0

    def apply(self, steps: list[Step]) -> int:
        """Applies all rows; returns the number of conflicts that were resolved in the leader's favour.

        While a table is copied, a differing row is expected and not counted as a conflict.

        Raises Interrupted, and Unapplicable for a conflict under "stop" and for a row that the follower refuses.
        """
        # The cached definitions are dropped: the batch may have failed because another client has altered a table.
        self._tables.forget()
        self._tables.pause_loading(step.record.uri for step in steps if step.operation == "Add")
        self._conflicts, self.removed = 0, 0
        for step in steps:
            self._run(session_flags(step.record.flags))
            self._mode = self._mode_of(step.record)
            for _, changes in groupby(step.changes, key=lambda change: change.record.sequence):
                self._record(list(changes))
        self._run(session_flags(0))
        return self._conflicts

    def _single(self, change: Change) -> Statement:
        return single(change, generated=self._tables.generated, rounded=self._rounded(change))

    def _rounded(self, change: Change) -> Mapping[str, Rounded]:
        return self._tables.shape(change.record.uri).rounded

    def _mode_of(self, record: Record) -> str | None:
        """Returns the sql_mode under which to store rows if the server computes columns of the table; None for other
        tables.
        """
        if not self._tables.shape(record.uri).computes:
            return None
        try:
            return strict(leader_modes(record), adds=record.operation == "Add")
        except ValueError as error:
            raise unreadable(record, error) from None

    def _record(self, changes: list[Change]) -> None:
        """Applies the rows of one record. If the follower refuses a row of a record that may be skipped, none of the
        record's rows are applied.
        """
        record = changes[0].record
        # A chunk of a table copy is not skipped here: ``chunks`` rolls back its deletions together with its rows.
        may_skip, before = self._skips.allow(record) and record.range is None, self._conflicts
        if may_skip:
            # After a refusal, only this record is rolled back; the other records of the leader's transaction stay
            # applied.
            self._session.run([b"SAVEPOINT record"])
        try:
            self._types.require_fit(record, self._tables.shape(record.uri))
            for change in changes:
                for part in apart(change, self._rounded(change)):
                    self._change(part)
        except Unapplicable as error:
            if not may_skip:
                raise
            note = self._note_skip(record, error)
            self._conflicts = before
            flags = session_flags(record.flags).sql
            self._session.run([b"ROLLBACK TO SAVEPOINT record", setting(STRICT), flags, note.sql])

    def _change(self, change: Change) -> None:
        copying = change.record.copying
        try:
            if copying:
                check_copying(change.record, self._tables.shape(change.record.uri))
            statement = self._single(change)
            reason = self._differences.of(change) if self._differences and not copying else ""
        except ValueError as error:
            raise unreadable(change.record, error) from None
        except Refused as error:
            raise refusal(error, statement) from None
        if reason and self._on_conflict == "stop":
            raise stopped(change, reason)
        reason = _COPYING if copying else self._stored(change, statement, reason)
        if not reason:
            return
        if self._on_conflict == "stop" and not copying:
            raise stopped(change, reason)
        try:
            # Deleting a clashing row must not cascade to rows of other tables, so foreign keys are off.
            self._run(session_flags(change.record.flags | NO_FOREIGN_KEY_CHECKS))
            removed = self._converge(change)
            self._run(session_flags(change.record.flags))
        except Refused as error:
            raise refusal(error, statement) from None
        if copying:
            self._made_room(change, removed)
        else:
            self._note(Conflict(change.record, shown_key(change), reason, "; ".join(removed)))

    def _stored(self, change: Change, statement: Statement, reason: str) -> str:
        """Executes the leader's change. Returns an empty text if the change was executed, otherwise a description of
        the conflict that prevents it.

        The argument ``reason`` describes how the row on the follower differs from the before-image; it is empty if no
        difference is known.
        """
        if reason and self._differences and change.row.after is not None:
            done = Change(change.record, Row(change.row.after, None))
            if not self._differences.of(done):
                # The row already equals the after-image. An UPDATE to the same values would not be in the follower's
                # binlog, where the audit expects the change.
                return reason
        try:
            if self._store(change, statement) != statement.rows:
                return "the row is not there"
        except Refused as error:
            if error.code not in DUPLICATE_KEY:
                raise refusal(error, statement) from None
            return error.text
        if reason:
            self._note(Conflict(change.record, shown_key(change), reason))
        return ""

    def _made_room(self, change: Change, removed: list[str]) -> None:
        self.removed += len(removed)
        for row in removed:
            event(
                _LOG, "row removed for a row of a table that is being copied", level=logging.WARNING,
                uri=change.record.uri, removed=row, key=shown_key(change), sequence=change.record.sequence,
            )  # fmt: skip

    def _note(self, conflict: Conflict) -> None:
        """Logs a resolved conflict, and writes it to the follower's table of conflicts."""
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
        """Replaces the row by the leader's after-image, and deletes all other rows that clash with it. Returns the keys
        of these other rows."""
        if change.row.before is not None:
            self._store(
                Change(change.record, Row(change.row.before, None)), delete_exact(change, self._rounded(change))
            )
        removed: list[str] = []
        if change.row.after is not None:
            for key, where in clashes(change.record, change.row.after, self._tables.shape(change.record.uri)):
                removed += self._remove(change.record, where, key=key)
            insert = Change(replace(change.record, operation="Add"), Row(None, change.row.after))
            try:
                self._store(insert, self._single(insert))
            except Refused as error:
                if error.code not in DUPLICATE_KEY:
                    raise
                raise ambiguous(change.record, error) from None
        return removed

    def _remove(self, record: Record, where: str, *, key: tuple[str, ...]) -> list[str]:
        """Deletes the rows that match ``where``, and returns their keys. Returns no keys if ``key`` is the key of the
        record, because the deleted row is then the changed row itself.
        """
        table = table_name(record.uri)
        names: list[str] = []
        if key != record.key:
            columns = record.key or key
            shown = ", ".join(map(identifier, columns))
            rows = self._session.rows(f"SELECT {shown} FROM {table} WHERE {where}")
            names = [", ".join(map(_cell, columns, row)) for row in rows]
        # Strict mode is off, because in strict mode a functional index with a value out of range would prevent the
        # deletion.
        self._run_in(Statement(f"DELETE FROM {table} WHERE {where}".encode()), LAX)
        return names

    def _store(self, change: Change, statement: Statement) -> int:
        """Executes the statement for a row. Strict mode is switched off if the row can equal the leader's row only
        without strict mode.
        """
        record = change.record
        checks = self._mode is not None and change.row.after is not None
        checks = checks and (
            needs_comparison(leader_modes(record))
            or bool(self._tables.shape(record.uri).unpredictable)
            or record.range is not None  # for a copied row, the leader's sql_mode is unknown
        )
        before = self._non_strict.begin(change) if checks else 0
        try:
            count = self._run(statement) if self._mode is None else self._run_in(statement, self._mode)
        except Refused as error:
            if error.code in DUPLICATE_KEY:
                raise
            others = self._without_values(change) or statement, keeping(change, self._tables.generated(record.uri))
            for other in others:
                if other is not None and (found := self._non_strict.store(change, other)) is not None:
                    return found
            raise
        if checks and count == statement.rows and not self._non_strict.holds(change, before):
            return self._non_strict.again(change, statement)
        return count

    def _without_values(self, change: Change) -> Statement | None:
        """Builds a statement that sets no value for those NOT NULL columns in which the leader's row has a VECTOR
        without bytes.

        No SQL expression returns such a VECTOR, but INSERT IGNORE stores it if the statement sets no value for the
        column.
        """
        image = change.row.after
        if image is None or _EMPTY_VECTOR not in image:
            return None
        after = [DEFAULT if value == _EMPTY_VECTOR else value for value in image]
        return self._single(Change(change.record, Row(change.row.before, after)))

    def _run_in(self, statement: Statement, mode: str) -> int:
        """Executes one statement under the sql_mode ``mode``, and then restores strict mode."""
        self._session.run([setting(mode)])
        try:
            return self._run(statement)
        finally:
            if self._session.connected:
                self._session.run([setting(STRICT)])

    def _run(self, statement: Statement) -> int:
        # ``packets`` raises an error if the statement is too large for the server; nothing is sent then.
        (packet,) = packets([statement], limit=self._session.max_packet)
        return self._session.run([part.sql for part in packet])[0]


def _cell(column: str, value: object) -> str:
    return f"{column}={'0x' + value.hex() if isinstance(value, bytes) else value}"
