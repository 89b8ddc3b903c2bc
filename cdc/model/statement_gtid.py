"""Computes the GTID under which a consumer executes a statement of the leader, and finds the statement that was
executed under a GTID.

The leader's statements are numbered 1, 2, 3 … in the order in which a follower executes them. So their GTIDs are one
interval in the follower's ``gtid_executed``. The ledger maps statements to numbers. Earlier versions of ``cdc`` used
the record's sequence as the number, under another UUID; these GTIDs are still understood.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["LAST", "StatementSequences", "ddl_uuid", "former_gtid", "statement_gtid", "statement_uuid"]

_NAMESPACE = uuid.UUID("4f3c6a52-5d0e-5c8b-9b53-2f1f5a1ce7d1")
_NUMBERED = uuid.UUID("f62ad9a1-7c0b-54d9-8ef6-0d6d1c0c8f4e")

LAST = (1 << 63) - 2  # the highest number that MySQL accepts


def ddl_uuid(resource: str) -> str:
    """Returns the source (UUID) of the GTIDs under which an earlier version executed the statements of the leader
    ``resource``."""
    return str(uuid.uuid5(_NAMESPACE, resource))


def former_gtid(resource: str, sequence: int) -> str:
    """Returns the GTID under which an earlier version executed a statement of the leader ``resource``; ``sequence`` is
    the statement's sequence (from 0).
    """
    return f"{ddl_uuid(resource)}:{sequence + 1}"


def statement_uuid(resource: str) -> str:
    """Returns the source (UUID) of the GTIDs under which a consumer executes the statements of the leader
    ``resource``.
    """
    return str(uuid.uuid5(_NUMBERED, resource))


def statement_gtid(resource: str, number: int) -> str:
    """Returns the GTID of the ``number``-th statement (from 1) of the leader ``resource``. A server executes each GTID
    only once."""
    return f"{statement_uuid(resource)}:{number}"


@dataclass(frozen=True, slots=True)
class StatementSequences:
    """Finds which statement of the leader ``resource`` a follower executed under a GTID.

    ``noted`` maps the GTIDs of numbered statements to the statements' sequences; it is read from the ledger.
    """

    resource: str
    noted: Mapping[str, int] = field(default_factory=dict)

    def of(self, gtid: str) -> int | None:
        """Returns the sequence of the statement that was executed under ``gtid``; None if no statement of this leader
        was executed under it.
        """
        source, _, number = gtid.rpartition(":")
        return int(number) - 1 if source == ddl_uuid(self.resource) else self.noted.get(gtid)
