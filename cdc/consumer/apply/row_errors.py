"""Creates the errors for rows that the follower refuses, and the short texts that identify these rows."""

from cdc.consumer.errors import Refused, Unapplicable
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Change
from cdc.errors import PromiseError
from cdc.model.record import Record
from cdc.model.values import display

__all__ = ["ambiguous", "refusal", "shown_key", "stopped"]

_SHOWN = 200  # characters; a longer key or statement is cut
_MEND = "alter the follower's table so that it accepts the leader's rows, and start again; nothing was applied in part"
_BINLOG = "on the follower: SET PERSIST max_binlog_cache_size to the leader's at least; then start again"
_HINTS = {1197: _BINLOG, 1705: _BINLOG}


def ambiguous(record: Record, error: Refused) -> Unapplicable:
    """Returns the error for a duplicate key whose columns are not all in the record."""
    return Unapplicable(
        f"conflict in {record.uri}: {error}; the record does not show which row clashes",
        code="CDC-CONFLICT",
        record=record,
        refused=error,
        hint="fix the row that has this key on the follower by hand and start again",
    )


def stopped(change: Change, reason: str) -> Unapplicable:
    """Returns the error for a conflict under on_conflict = "stop"."""
    record = change.record
    return Unapplicable(
        f"conflict: {record.operation} of {shown_key(change)} in {record.uri}: {reason}",
        code="CDC-CONFLICT",
        record=record,
        refused=Refused(0, reason),
        hint='something else writes to the follower; fix the row there, or set on_conflict = "converge"',
    )


def refusal(error: Refused, statement: Statement) -> PromiseError:
    """Returns the error for a refused statement; it contains the first record of the statement, and the beginning of
    the SQL."""
    text = statement.sql.decode("utf-8", "replace")
    tried = text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
    if not statement.changes:
        return PromiseError(
            f"the follower refuses a statement: {error}", code="CDC-FOLLOWER-REFUSES-RECORD", where=tried
        )
    record = statement.changes[0].record
    return Unapplicable(
        f"the follower refuses a row of {record.uri}: {error}; tried: {tried}",
        code="CDC-FOLLOWER-REFUSES-RECORD",
        record=record,
        refused=None if error.code in _HINTS else error,
        hint=_HINTS.get(error.code, _MEND),
    )


def shown_key(change: Change) -> str:
    """Lists the key columns of the row as ``column=value``, or all columns if the row has no key; cuts a long text."""
    record = change.record
    image = change.row.before if change.row.before is not None else change.row.after or []
    shown = [
        f"{column}={display(value)}"
        for column, value in zip(record.columns, image, strict=True)
        if record.key is None or column in record.key
    ]
    text = ", ".join(shown)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
