"""Stores rows that strict mode refuses although the leader accepted them, and checks that they equal the leader's.

A leader without strict mode, or a statement with IGNORE, stores a row even if a generated column, a functional index or
a check has no value or a value out of range. The follower must store this row in the same way. Afterwards each column
is compared with the leader's value, because without strict mode a follower's column that is too narrow also causes only
a warning.

Rows are also stored this way if a computed value differs under the sql_mode in the leader's log, because the session
may have changed its sql_mode after BEGIN.

Some values can't be stored by any statement. One kind is a VECTOR that ALTER TABLE made from a BLOB with arbitrary
bytes. Another is text in ascii with bytes above 127 that a former version of MySQL stored. If the leader updates other
columns of a row with such a value, ``keeping`` updates only these other columns.
"""

from collections.abc import Callable

from cdc.consumer.errors import DUPLICATE_KEY, Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.literals import row_sql_mode
from cdc.consumer.literals.values import equal, exact, identifier, literal, table_name
from cdc.consumer.plan.inserts import written_indexes
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Change
from cdc.model.record import Uri

__all__ = ["NonStrictWriter", "keeping"]

_SAVEPOINT = "non_strict"
_BEFORE = b"SAVEPOINT before_row"
_COMPUTED = (
    "a generated column becomes another one here than on the leader: it depends on a setting of the leader's session, "
    "such as sql_mode, block_encryption_mode or, where it divides, div_precision_increment, which both servers need "
    "alike (SET PERSIST, then FLUSH TABLES); or, where it reads a TIMESTAMP, on its time zone, where it names days or "
    "months, on lc_time_names, where it parses JSON, on the server's version: make it a plain column of its type on "
    "the follower"
)


class NonStrictWriter:
    """Writes single rows in the session's open transaction, and leaves the session in the mode ``STRICT``.

    ``run(statement, mode)`` executes a statement under that sql_mode and returns the number of rows that it matched.
    ``virtual(uri)`` returns the generated columns of a table that are virtual.
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

        The date modes also change literals in the statement: a JSON document with the member 0000-00-00 becomes another
        document, without an error. So a row counts as missing only if it isn't found under a mode that allows any date.

        Raises Refused for a duplicate key.
        """
        missing = different = False
        modes, adds = row_sql_mode.leader_modes(change.record), change.record.operation == "Add"
        usual = row_sql_mode.lax(modes, adds=adds), row_sql_mode.permissive(modes, adds=adds)
        for mode in dict.fromkeys((*usual, *row_sql_mode.guesses())):
            self._session.run([f"SAVEPOINT {_SAVEPOINT}".encode()])
            before = self.count(change)
            try:
                count = self._run(statement, mode)
            except Refused as error:
                if error.code in DUPLICATE_KEY:
                    raise
                continue
            if not count:
                missing = missing or mode == row_sql_mode.LAX
                continue
            if statement.rows not in (None, count) or self.holds(change, before):
                return count
            self._session.run([f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}".encode()])
            different = True
        return 0 if missing and not different else None

    def begin(self, change: Change) -> int | None:
        """Sets a savepoint, to which ``again`` returns, and returns the result of ``count``. Must be called before the
        change is stored.
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
        """Whether the stored row equals the leader's row; ``before`` is the result of ``count`` before the row was
        written.
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
        unread = self._virtual(record.uri) if "PAD" in row_sql_mode.leader_modes(record) else frozenset()
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
    """Builds an UPDATE of only those columns in which the images differ; the row must equal its before-image in all
    other columns. Returns None if the images differ in all columns.

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
