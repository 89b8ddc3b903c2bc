"""Stores how the follower began: from a base copy (``consumer.start``), from a seed that is still loading, or by the
option ``--rewind`` of an earlier version of cdc.

The table has a row for each leader, which commits with the first checkpoint for that leader and never changes. So the
same transactions are ignored after each crash, even if the profile was changed in the meantime.
"""

import logging
from dataclasses import dataclass

from cdc.config.profile import COPY_KEY
from cdc.config.table_globs import copy_command
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.own_table import OwnTable
from cdc.errors import UserError
from cdc.model.gtid import GtidSet, is_gtid, newest_of_each_domain
from cdc.model.names import Uri
from cdc.model.record import Record
from cdc.service.logs import event

__all__ = ["COPIES", "SEEDS", "BaseCopy", "Seed", "require_no_rewind", "seed_of"]

_LOG = logging.getLogger("cdc.consumer")

COPIES = OwnTable(
    "copies",
    """
  gtid_set LONGTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'transactions of the leader in the copy',
  at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
)
"""The table with the GTIDs of base copies. A leader has no row if the follower began empty."""


class BaseCopy:
    """The base copy with which the follower began. ``held`` are the GTIDs of its transactions; empty if the follower
    began without a copy.

    ``new_from`` is the sequence of the first record whose transaction the copy is known to lack; None until there is
    such a record.
    """

    def __init__(self, held: GtidSet | None = None, *, new_from: int | None = None) -> None:
        self.held = held or GtidSet()
        self.new_from = new_from
        self._any = bool(self.held)
        self._last = newest_of_each_domain(self.held)  # maps each MariaDB domain to its newest GTID in the base copy
        self._crosses = new_from is None  # whether this run begins before the end of the base copy
        self._begun = set[Uri]()  # tables without a key whose copies began after the base copy

    def covers(self, chunk: Record) -> bool:
        """Whether the base copy already contains the rows of a chunk (``Record.of_copy``).

        It does if the copy contains all transactions before the chunk. The rows of the chunk are then older: they must
        not replace the copy's rows, which may come from later transactions.
        """
        return self._any and (self.new_from is None or chunk.sequence < self.new_from)

    def covers_rows(self, chunk: Record) -> bool:
        """Whether the rows of a chunk must be left out because of the base copy.

        The chunks of a table without a key are called its pieces: the first piece empties the table, the others only
        add rows. If the base copy covers the first piece, the table is not emptied, so no later piece may be added
        either.
        """
        piece = chunk.range.piece if chunk.range else None
        if not piece or self.covers(chunk) or not self._any:
            is_covered = self.covers(chunk)
            if piece == 0 and not is_covered:
                self._begun.add(chunk.uri)
            return is_covered
        if chunk.uri in self._begun:
            return False
        if self._crosses:
            return True  # the first piece was before the records of this run, and so before the end of the base copy
        self._begun.add(chunk.uri)
        event(
            _LOG, "the copy of a table without a key began before this start of the consumer: if it also began before "
            "the dump of consumer.start, the follower's table has rows twice",
            level=logging.WARNING, uri=chunk.uri, sequence=chunk.sequence,
            hint=f"then copy the table again: {copy_command((chunk.uri.database, chunk.uri.table or ''))}",
        )  # fmt: skip
        return False

    def see(self, record: Record) -> None:
        """Notes whether the copy lacks the transaction that begins with ``record``."""
        if self.new_from is None and self._any and not self.has(record):
            self.new_from = record.sequence

    def has(self, record: Record) -> bool:
        """Whether the base copy contains the record's transaction, so that the record must be ignored."""
        if record.of_copy:
            return self.covers(record)  # the statements of a table copy are treated like its chunks
        return self._any and self.has_gtid(record.transaction)

    def has_gtid(self, gtid: str) -> bool:
        """Whether the base copy contains the transaction ``gtid``."""
        domain, mark, number = gtid.partition("-")[0], *gtid.rpartition("-")[1:]
        if ":" not in gtid and mark and is_gtid(gtid):
            return int(number) <= self._last.get(domain, (0, ""))[0]
        return gtid in self.held

    def require_gtid(self, record: Record) -> None:
        """Raises UserError if it can't be known whether the base copy contains the record's transaction."""
        if self._any and not is_gtid(record.transaction):
            raise UserError(
                f"transaction {record.transaction} has no GTID, so it is not known whether the copy has it",
                code="CDC-BASE-COPY-NO-GTIDS",
                where=f"{COPY_KEY}, sequence {record.sequence}",
                hint="everything before is applied; a follower can begin from a copy only if all "
                "transactions in the topic have GTIDs: start over with a new topic (producer.start), and a fresh copy",
            )


# Marks a follower that cdc-seed is loading: the table ``seeds`` has a row for it from the first checkpoint until all
# rows are loaded.
#
# While that row exists, the checkpoint contains the progress of the load, and the follower equals no state of the
# leader.

SEEDS = OwnTable(
    "seeds",
    """
  upto BIGINT NOT NULL COMMENT 'sequence of which the follower becomes equal to the leader',
  scope LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON: filters and renames',
  at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
)


@dataclass(frozen=True, slots=True)
class Seed:
    """A load by cdc-seed. After the load, the follower equals the leader at sequence ``upto``, within the filters and
    renames in ``scope``. Rows that these filters leave out can't be loaded later.
    """

    upto: int
    scope: str


def seed_of(session: Session, resource: str) -> Seed | None:
    """Returns the seed that is loading the follower; None if the follower is not being loaded. Raises Interrupted,
    Refused.
    """
    found = SEEDS.select(session.schema, resource, "upto, scope")
    rows = session.rows(found) if session.rows(SEEDS.exists(session.schema)) else []
    return Seed(int(rows[0][0]), str(rows[0][1])) if rows else None


# Refuses a follower on which an earlier version of cdc began ``--rewind`` and did not finish it. The follower's rows
# belong to two states of the leader.
#
# Such a follower has a table ``rewinds`` with a row for the leader. Its checkpoint was moved back, and has not reached
# its former sequence again.

_REWINDS = OwnTable("rewinds", "upto BIGINT")


def require_no_rewind(session: Session, checkpoint: Checkpoint) -> None:
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
        f"an earlier version of cdc moved the follower back (--rewind) from sequence {upto}, and has applied records "
        f"again up to {checkpoint.sequence} only: the follower's rows belong to two states of the leader",
        code="CDC-REWIND-UNFINISHED",
        where=f"{schema}.rewinds of {checkpoint.resource!r}",
        hint=f"end the rewind with that version (--until {upto}); or copy all tables (cdc-producer PROFILE --copy "
        f"'DATABASE.*'), then run on the follower: UPDATE {schema}.checkpoint SET sequence={upto}, "
        f"leader_file=NULL WHERE resource={resource}; DELETE FROM {schema}.rewinds WHERE resource={resource}",
    )
