"""Attaches a base copy of the leader (consumer.start) to a topic, if it is certain that copy and topic together contain
all transactions.

A transaction that is neither in the copy nor in the topic would be missing for ever, and nothing would report that. The
commit log contains the GTIDs of the transactions before the topic's first record, either exactly or, in its oldest
entry, as an upper bound.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from cdc.config.profile import COPY_KEY, parsed_copy
from cdc.consumer.follower.session import Session
from cdc.consumer.source.assembler import Transaction
from cdc.consumer.state.base_copy import COPIES, BaseCopy, seed_of
from cdc.consumer.state.checkpoint import Checkpoint, select_leader
from cdc.errors import Disconnected, UserError
from cdc.model.commit_entry import Commits
from cdc.model.gtid import GtidSet, lacking
from cdc.model.record import COPY
from cdc.service.logs import event

__all__ = ["Attachment", "Beginning", "check_topic", "with_gtids"]

_LOG = logging.getLogger("cdc.consumer")
_NEWER = "take a newer copy of the leader, which holds them, or start over with a new topic and a fresh copy"


class Beginning(Protocol):
    """Determines the state with which a follower begins; the interface of ``Attachment``."""

    def begin(self, session: Session) -> list[bytes]:
        """Returns the statements that commit with the first checkpoint; see ``Attachment``."""

    def copied(self, session: Session, *, now: bool) -> BaseCopy:
        """Returns the base copy with which the follower began; see ``Attachment``."""


class Attachment:
    """Attaches the base copy with the GTIDs ``start``, the value of ``consumer.start`` in the profile.

    ``newest()`` returns the newest entry of the commit log, and ``oldest()`` the oldest entry that compaction has left;
    both return None if there is no entry.
    """

    def __init__(
        self, start: str, *, resource: str, newest: Callable[[], Commits | None], oldest: Callable[[], Commits | None]
    ) -> None:
        self._wanted = parsed_copy(start) if start else None
        self._resource = resource
        self._newest = newest
        self._oldest = oldest

    def begin(self, session: Session) -> list[bytes]:
        """Checks that no transaction is missing between the copy and the topic; returns the statements that must commit
        with the first checkpoint.

        Raises UserError if transactions may be missing, Disconnected if the producer has written nothing yet.
        """
        if self._wanted is None:
            return []
        self.check(session)
        event(_LOG, "the follower begins from a copy of the leader", gtids=self._wanted)
        newest = self._newest()
        if newest is not None and newest.leaves_rows_out:
            # The topic never removes rows that only the copy has.
            event(
                _LOG, "the producer leaves rows out (filters.rows): the copy must not have them either",
                level=logging.WARNING,
            )  # fmt: skip
        session.run([COPIES.create(session.schema).encode()])
        note = COPIES.insert(session.schema, self._resource, gtid_set=str(self._wanted), now="at")
        return [note.encode()]

    def check(self, session: Session) -> None:
        """Checks the same as ``begin``, and changes nothing. Raises the errors of ``begin``."""
        if self._wanted is not None:
            check_topic(self._wanted, newest=self._newest(), oldest=self._oldest)
            self._check_follower(session, self._wanted)

    def copied(self, session: Session, *, now: bool) -> BaseCopy:
        """Returns the base copy with which the follower began; ``now`` is true if the checkpoint was just created.

        Raises UserError if ``consumer.start`` contains the GTIDs of another copy.
        """
        _require_no_seed(session, self._resource)
        held = self._noted(session)
        if self._wanted is not None and held != self._wanted:
            raise UserError(
                "the follower has a checkpoint, and began from " + (f"a copy that held {held}" if held else "no copy"),
                code="CDC-BASE-COPY-OTHER",
                where=COPY_KEY,
                hint=f"remove the key or set it to {str(held)!r}; for another copy {_fresh(session.schema)}"
                if held
                else f"remove the key; for a copy {_fresh(session.schema)}",
            )
        if self._wanted is not None and not now:
            event(_LOG, "consumer.start has no effect any more: the follower has a checkpoint")
        return BaseCopy(held, new_from=self._new_from(session, held) if held else None)

    def _new_from(self, session: Session, held: GtidSet) -> int | None:
        """Returns the checkpoint's sequence if the base copy does not contain the checkpoint's transaction; otherwise
        None.
        """
        rows = session.rows(select_leader(self._resource, schema=session.schema))
        gtid = rows[0][2] if rows else None
        if gtid is None or BaseCopy(held).has_gtid(gtid):
            return None
        (row,) = session.rows(Checkpoint.select(self._resource, schema=session.schema))
        return Checkpoint.from_rows(row, schema=session.schema).sequence

    def _noted(self, session: Session) -> GtidSet:
        noted = COPIES.select(session.schema, self._resource, "gtid_set")
        rows = session.rows(noted) if session.rows(COPIES.exists(session.schema)) else []
        return GtidSet.parse(rows[0][0]) if rows else GtidSet()

    def _check_follower(self, session: Session, held: GtidSet) -> None:
        """Raises UserError if the GTIDs that the follower has executed show that it was made from another copy."""
        ((executed,),) = session.rows("SELECT @@GLOBAL.gtid_executed")
        there = GtidSet.parse(str(executed)).of_sources(held)
        if there and there != held:
            raise UserError(
                f"the follower has executed {there} of the leader's transactions, the key says {held}",
                code="CDC-BASE-COPY-GTIDS-DIFFER",
                where=COPY_KEY,
                hint="write the GTID set of the copy that this follower was made from; usually, the follower's "
                "gtid_executed contains it, besides the GTIDs of the follower's own transactions",
            )


def _require_no_seed(session: Session, resource: str) -> None:
    """Raises UserError if cdc-seed has not ended. Until it ends, the checkpoint shows the progress of the load, and the
    follower equals no state of the leader.
    """
    seed = seed_of(session, resource)
    if seed is not None:
        raise UserError(
            f"cdc-seed has not ended: the follower lacks rows that the leader has at sequence {seed.upto}",
            code="CDC-FOLLOWER-BEING-SEEDED",
            where=f"{session.schema}.seeds of {resource!r}",
            hint="run cdc-seed again, which continues; or start over with a fresh follower",
        )


def check_topic(held: GtidSet, *, newest: Commits | None, oldest: Callable[[], Commits | None]) -> None:
    """Raises UserError unless a copy with the GTIDs ``held`` contains all transactions that precede the topic's first
    record.

    ``newest`` and the result of ``oldest()`` are entries of the commit log. Raises Disconnected if there is no entry
    yet.
    """
    if newest is None:
        raise Disconnected(
            "the commit log has no entry yet, so it is not known what came before the topic's first record",
            code="CDC-COMMIT-LOG-EMPTY",
            where=COPY_KEY,
            hint="start cdc-producer",
        )
    if newest.origin is None:
        _check_older_log(held, oldest() or newest)
    elif missing := lacking(GtidSet.parse(newest.origin), held):
        raise UserError(
            f"the topic begins after transactions that the copy lacks: {missing}",
            code="CDC-BASE-COPY-TOPIC-LATE",
            where=COPY_KEY,
            hint=_NEWER,
        )


def _check_older_log(held: GtidSet, oldest: Commits) -> None:
    """Checks the same as ``check_topic`` in a commit log that an earlier version of cdc began, without ``origin``. The
    GTIDs in its ``oldest`` entry include all transactions before the first record, and perhaps later transactions.
    """
    if oldest.next_sequence and not oldest.gtid_set:
        raise UserError(
            "the leader has no GTIDs (gtid_mode), so it is not known which transactions the copy has",
            code="CDC-BASE-COPY-NO-GTIDS",
            where=COPY_KEY,
            hint="start over with a new topic: producer.start takes the position of the copy",
        )
    missing = lacking(GtidSet.parse(oldest.gtid_set), held)
    if missing:
        raise UserError(
            f"the topic may begin after transactions that the copy lacks, some of {missing}: an earlier version of cdc "
            f"began its commit log, which goes back only to sequence {oldest.next_sequence}",
            code="CDC-BASE-COPY-TOPIC-MAYBE-LATE",
            where=COPY_KEY,
            hint=f"{_NEWER}; if the log never goes back far enough, stop cdc-producer, make the copy, and "
            "start this consumer before cdc-producer",
        )


def _fresh(schema: str) -> str:
    return f"put it on a fresh follower, without the database {schema}"


def with_gtids(transactions: Iterable[Transaction | None], copied: BaseCopy) -> Iterator[Transaction | None]:
    """Yields ``transactions``. Raises UserError for a transaction without a GTID, because it is not known whether the
    base copy ``copied``, with which the follower began, contains it.

    Removes the rows from chunks if the base copy already contains them.
    """
    told = False
    for item in transactions:
        if item is not None and item.begins:
            first = item.records[0]
            if not first.of_copy:
                copied.require_gtid(first)
                copied.see(first)
            elif first.operation == COPY and copied.covers_rows(first):
                item = item._replace(records=[first.emptied()])
            if not told and copied.has(first):
                told = True
                event(
                    _LOG,
                    "skipping the transactions that the copy has",
                    sequence=first.sequence,
                    transaction=first.transaction,
                )
        yield item
