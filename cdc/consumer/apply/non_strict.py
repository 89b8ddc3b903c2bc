"""Rows that strict mode refuses, though the leader took them: stored without it, with proof that they are as they were.

A leader without strict mode, or with IGNORE, takes a row of which a generated column, a functional index or a check
finds nothing, or too much. The follower takes it in the same way; that each column then is what it was on the leader is
looked up, for a column that is too narrow here would only give a warning as well.
"""

from collections.abc import Callable

from cdc.consumer.follower.session import Session
from cdc.consumer.literals import row_sql_mode
from cdc.consumer.literals.values import exact, table_name
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Change
from cdc.consumer.server_errors import Refused

__all__ = ["Lenience"]

_DUPLICATES = frozenset({1062, 1586, 1859})
_SAVEPOINT = "lenience"


class Lenience:
    """Writes single rows in the session's open transaction, and leaves it in the mode ``STRICT``.

    ``run(statement, mode)`` gives the rows that a statement has matched in that mode.
    """

    def __init__(self, session: Session, run: Callable[[Statement, str], int]) -> None:
        self._session = session
        self._run = run

    def store(self, change: Change, statement: Statement) -> int | None:
        """How many rows the statement has matched; None, and nothing done, where it can't be stored as it was.

        Raises Refused for a duplicate key.
        """
        modes, adds = row_sql_mode.computing(change.record), change.record.operation == "Add"
        for mode in dict.fromkeys((row_sql_mode.lax(modes, adds=adds), row_sql_mode.permissive(modes, adds=adds))):
            self._session.run([f"SAVEPOINT {_SAVEPOINT}".encode()])
            before = self.count(change)
            try:
                count = self._run(statement, mode)
            except Refused as error:
                if error.code in _DUPLICATES:
                    raise
                continue
            # A statement that matches no row is a conflict, and has stored nothing.
            if statement.rows not in (None, count) or self.holds(change, before):
                return count
            self._session.run([f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}".encode()])
        return None

    def holds(self, change: Change, before: int | None) -> bool:
        """Whether the row is stored as it was on the leader, with ``count`` having been this before."""
        row = change.row
        if row.after is None:
            return True
        after = self.count(change)
        if after is None or before is None:
            return False
        if change.record.key is not None:
            return after == 1
        return after == before + (row.before != row.after)

    def count(self, change: Change) -> int | None:
        """How many rows are exactly the after-image, where there is one; None where that can't be asked."""
        record, image = change.record, change.row.after
        if image is None:
            return 0
        where = " AND ".join(f"({exact(name, value)})" for name, value in zip(record.columns, image, strict=True))
        sql = f"SELECT COUNT(*) FROM {table_name(record.uri)} WHERE {where}"
        if len(sql.encode()) >= self._session.max_packet:
            return None
        try:
            ((found,),) = self._session.rows(sql)
        except Refused:
            return None  # the follower's table has not even the columns
        return int(found)
