"""Finds out which transactions a SELECT on a MariaDB leader sees: MariaDB has no set of executed GTIDs.

MariaDB writes a group of transactions into its binlog, and then makes the group visible, in one step unless
``binlog_optimize_thread_scheduling`` is OFF, which ``mariadb_leader`` refuses. Outside of a snapshot the status
variables ``Binlog_snapshot_file`` and ``Binlog_snapshot_position`` are the end of the newest group that is visible.
Only an XA transaction becomes visible in a step of its own, after its XA COMMIT is in the binlog; until then XA RECOVER
lists it.
"""

import threading
import time
from typing import Any

from cdc.errors import Disconnected, UserError
from cdc.model.gtid import executed_before
from cdc.model.position import Position
from cdc.producer.binlog.leader import end_of_binlog

__all__ = ["Visibility", "begin_snapshot"]

_TRIES, _WAIT_SECONDS = 100, 0.01
_XA_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0


class Visibility:
    """Waits until a SELECT sees all transactions that the stream has read; ``stopped`` ends all waits. ``name`` is the
    leader's name in errors."""

    def __init__(self, name: str, stopped: threading.Event) -> None:
        self._name = name
        self._stopped = stopped
        self._doubtful: dict[str, tuple[float, Position]] = {}

    def await_all(self, cursor: Any, position: Position, prepared: frozenset[str]) -> bool:
        """Waits until a SELECT sees all transactions before ``position``, up to which the stream has read; ``prepared``
        are the XA transactions that are prepared, but not ended, at this position.

        Returns False if an XA transaction may have ended before ``position`` and stays invisible for longer. Raises
        UserError if the stream has since passed the end that the binlog had at the first such wait, and does not
        contain that transaction. Raises Disconnected once ``stopped`` is set.
        """
        # The wait is for the end of the binlog, not for ``position``: after a failover, this server may have logged
        # transactions after the position up to which the stream has read on the other server.
        end = _logged_end(cursor)
        while not self._stopped.is_set():
            if _shows(cursor, end):
                return self._await_xa(cursor, position, prepared)
            self._stopped.wait(_WAIT_SECONDS)
        raise Disconnected("stopped while a table was copied", code="CDC-STOPPED-IN-COPY", where=self._name)

    def _await_xa(self, cursor: Any, position: Position, prepared: frozenset[str]) -> bool:
        # An XA transaction that ended before ``position`` and is not visible yet is in the first list of XA RECOVER.
        doubtful, give_up = _prepared_xids(cursor) - prepared, time.monotonic() + _XA_SECONDS
        while doubtful and time.monotonic() < give_up and not self._stopped.is_set():
            self._stopped.wait(_WAIT_SECONDS)
            doubtful &= _prepared_xids(cursor)
        now, end = time.monotonic(), _logged_end(cursor)
        self._doubtful = {xid: self._doubtful.get(xid, (now, end)) for xid in doubtful}
        for xid, (since, logged) in self._doubtful.items():
            if now > since + _PATIENCE_SECONDS and position.place >= logged.place:
                raise UserError(
                    f"nothing can be copied while the XA transaction {xid} is prepared, which the stream does not know",
                    code="CDC-COPY-XA",
                    where=self._name,
                    hint=f"XA ROLLBACK {xid} on the leader, and do its work in another transaction: it was prepared "
                    "before the stream began, and XA COMMIT would stop the stream, but for the first copy of a leader; "
                    "or go on without the copies, cdc-producer PROFILE --copy-stop '*.*', and copy when it has ended",
                )
        return not doubtful


def _shows(cursor: Any, position: Position) -> bool:
    """Whether a SELECT sees all transactions before ``position``, except XA transactions in ``_prepared_xids``."""
    return _visible_end(cursor).place >= position.place


def _prepared_xids(cursor: Any) -> frozenset[str]:
    """Returns the XA transactions that are prepared and not visible yet, in the form of ``decode.xa``."""
    cursor.execute("XA RECOVER")
    return frozenset(_xid(int(form), int(gtrid), data) for form, gtrid, _, data in cursor.fetchall())


def begin_snapshot(cursor: Any, executed: str) -> str:
    """Begins a transaction with a snapshot. Returns a GTID set whose transactions the snapshot certainly sees; the
    snapshot always sees the transactions ``executed``."""
    seen = _certainly_visible(cursor)
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    return executed if seen is None else seen


def _certainly_visible(cursor: Any) -> str | None:
    """Waits until all transactions in the binlog are visible, and returns their set; None if some may stay invisible
    for longer.
    """
    # The order is essential. All transactions in ``gtid_binlog_state`` are in the binlog before the end that is queried
    # after it. An XA transaction among them that is not visible yet is then listed by XA RECOVER.
    cursor.execute("SELECT @@GLOBAL.gtid_binlog_state")
    logged = executed_before(_text(cursor.fetchone()[0]))
    end = _logged_end(cursor)
    for _ in range(_TRIES):
        if _shows(cursor, end):
            return None if _prepared_xids(cursor) else str(logged)
        time.sleep(_WAIT_SECONDS)
    return None


def _logged_end(cursor: Any) -> Position:
    file, offset = end_of_binlog(cursor)
    return Position(_text(file), int(offset))


def _visible_end(cursor: Any) -> Position:
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    found = {_text(name).lower(): _text(value) for name, value in cursor.fetchall()}
    return Position(found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))


def _xid(form: int, gtrid: int, data: bytes | str) -> str:
    content = data.encode() if isinstance(data, str) else data
    return f"X'{content[:gtrid].hex()}',X'{content[gtrid:].hex()}',{form}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
