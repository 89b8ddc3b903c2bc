"""Refuses a follower on which an earlier version of this program began ``--rewind`` and did not finish it. The
follower's rows belong to two states of the leader.

Such a follower has a table ``rewinds`` with a row for the leader. Its checkpoint was moved back, and has not reached
its former sequence again.
"""

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.own_table import OwnTable
from cdc.errors import UserError

__all__ = ["require_none"]

_REWINDS = OwnTable("rewinds", "upto BIGINT")


def require_none(session: Session, checkpoint: Checkpoint) -> None:
    """Raises Interrupted and Refused, and UserError if a rewind of the follower with this ``checkpoint`` is unfinished.

    The row of a finished rewind may still exist; it is ignored.
    """
    schema, resource = checkpoint.schema, quoted(checkpoint.resource)
    if not session.rows(_REWINDS.exists(schema)):
        return
    ((upto,),) = session.rows(_REWINDS.select(schema, checkpoint.resource, "MAX(upto)"))
    if upto is None or int(upto) <= checkpoint.sequence:
        return
    raise UserError(
        f"an earlier version took the follower back (--rewind) from sequence {upto}, and applied records again up to "
        f"{checkpoint.sequence} only: its rows are of two states",
        code="CDC-REWIND-UNFINISHED",
        where=f"{schema}.rewinds of {checkpoint.resource!r}",
        hint=f"end it with that version (--until {upto}); or ask for a copy of all tables (cdc-producer PROFILE --copy "
        f"'DATABASE.*'), then run on the follower: UPDATE {schema}.checkpoint SET sequence={upto}, "
        f"leader_file=NULL WHERE resource={resource}; DELETE FROM {schema}.rewinds WHERE resource={resource}",
    )
