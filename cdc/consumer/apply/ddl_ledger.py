"""The ledger: statements that commit by themselves, each executed exactly once.

A statement of the leader runs under a GTID made of the leader's name and the record's sequence, and a server executes
a GTID once. Intent row (committed) → statement under its GTID → done row, committed together with the checkpoint.
After a crash the follower's own executed GTID set tells whether the statement ran, even where it is still running on
a connection that we lost: SET gtid_next waits for it.

CREATE TABLE … SELECT comes as CREATE TABLE … START TRANSACTION and rows. MySQL allows no plain INSERT after that form
(error 3977), so the table is created and committed under its GTID, and the rows, the done row and the checkpoint commit
together. Between the two an empty table can be seen on the follower.
"""

import logging
from collections.abc import Callable
from typing import Any

from cdc.config.filters import goes_by_name
from cdc.consumer.errors import Unapplicable, place
from cdc.consumer.follower.session import Refused, Session
from cdc.consumer.follower.session_variables import assignments
from cdc.consumer.literals.values import identifier, quoted
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.renaming import Renaming
from cdc.consumer.source.statement_check import check_claims
from cdc.consumer.state import ledger_table
from cdc.consumer.state.skips import Skips
from cdc.errors import UserError
from cdc.model.charset import latin1_encode
from cdc.model.position import ddl_gtid
from cdc.model.record import Record, Uri
from cdc.service.process import event
from cdc.sql.redaction import excerpt

__all__ = ["Ledger"]

_LOG = logging.getLogger("cdc.consumer")
_NOT_APPLIED = ("Trigger", "Event")
_UNKNOWN_DATABASE = 1049
_SHOWN = 100_000  # characters of a skipped statement: it may be one that is too large for the server


class Ledger:
    """Executes Query records of the leader ``resource``; the caller commits what ``settle`` and ``skip`` return.

    ``session`` is the one that applies rows; statements run on connections of their own, so that no
    variable of a statement's context outlives it. ``passes(uri)`` says whose tables are replicated, by the leader's
    names; ``renaming`` gives statements the follower's. ``skips`` says which records the follower may do without.
    ``applied`` counts the statements that were executed, ``left_out`` those that are not for this follower.
    """

    def __init__(
        self,
        session: Session,
        *,
        resource: str,
        passes: Callable[[Uri], bool],
        renaming: Renaming,
        skips: Skips,
    ) -> None:
        self._session = session
        self._resource = resource
        self._passes = passes
        self._renaming = renaming
        self.skips = skips
        self.applied = 0
        self.left_out = 0

    def settle(self, record: Record) -> Statement:
        """Execute the record's statement unless that is done; the note of it, to commit with the checkpoint.

        Raises Unapplicable where the follower refuses the statement, Interrupted where it is to be tried again.
        """
        try:
            reason = self._why_not(record)
            # What the filters leave out goes nowhere. What only acts on the leader an operator may run, at a promotion.
            if reason in (None, ledger_table.ACTS_ON_LEADER):
                check_claims(record, version=self._session.version)
            if reason is None:
                return self._settle(self._renaming.statement(record))
        except Unapplicable as error:
            if not self.skips.allow(record):
                raise
            return self.skip(record, error)
        self.left_out += 1
        event(_LOG, "statement not applied", sequence=record.sequence, reason=reason, statement=excerpt(record.query))
        return Statement(ledger_table.settle(self._session.schema, record, state="not applied", note=reason).encode())

    def skip(self, record: Record, error: Unapplicable) -> Statement:
        """The note that the follower does without a record."""
        shown = record.query[:_SHOWN] or f"{record.operation}, {len(record.rows)} rows of {record.uri}"
        self.skips.used.add(record.sequence)
        event(
            _LOG, "record skipped", level=logging.WARNING, sequence=record.sequence, position=record.position,
            what=excerpt(shown), reason=error.what,
        )  # fmt: skip
        return Statement(
            ledger_table.settle(
                self._session.schema, record, state="skipped", note=error.what, statement=shown
            ).encode()
        )

    def left_out_before(self, record: Record) -> Statement:
        """The note that the producer was told to leave an event out, so that nobody can apply it."""
        event(
            _LOG, "event skipped by the producer", level=logging.WARNING, sequence=record.sequence,
            position=record.position, what=record.query,
        )  # fmt: skip
        note = "the leader's event was left out of the stream (cdc-producer --skip)"
        return Statement(ledger_table.settle(self._session.schema, record, state="skipped", note=note).encode())

    def _settle(self, record: Record) -> Statement:
        gtid = ddl_gtid(self._resource, record.sequence)
        self._intend(record, gtid)
        if not self._executed(gtid):
            self._execute(record, gtid)
        return Statement(ledger_table.finish(self._session.schema, record).encode(), 1)

    def _why_not(self, record: Record) -> str | None:
        """The reason to leave the statement out, or None. Raises Unapplicable where it is half wanted."""
        uris = [_filtered(affect, end) for affect in record.affects for end in ("uri", "to") if end in affect]
        wanted = [self._passes(uri) for uri in uris]
        if uris and not any(wanted):
            return "of a database or table that is not replicated to this follower"
        if not all(wanted):
            raise Unapplicable(
                f"a statement crosses the border of the filters: {excerpt(record.query)}",
                record=record,
                hint="let all of its tables in, or none",
            )
        actions = [affect["action"] for affect in record.affects]
        if actions and all(action.endswith(_NOT_APPLIED) for action in actions):
            return ledger_table.ACTS_ON_LEADER
        return None

    def _intend(self, record: Record, gtid: str) -> None:
        """Commit the intent, once. A GTID that ran without an intent is of a former life of this follower."""
        known = self._session.rows(
            f"SELECT state FROM {ledger_table.table(self._session.schema)} WHERE resource={quoted(self._resource)} "
            f"AND sequence={record.sequence}"
        )
        if known:
            return
        if self._executed(gtid):
            raise UserError(
                f"the follower has executed {gtid} before, yet its ledger does not know the statement",
                where=place(record),
                hint=f"the follower has applied a leader of this name before: use a fresh follower (whose GTIDs are "
                f"empty: RESET BINARY LOGS AND GTIDS) or another mysql_resource_name than {self._resource!r}",
            )
        intent = ledger_table.insert(self._session.schema, record, state="intent").encode()
        if len(intent) >= self._session.max_packet:
            raise Unapplicable(
                f"a statement needs a packet of {len(intent)} bytes, the follower takes {self._session.max_packet}",
                record=record,
                hint=f"on the follower: SET PERSIST max_allowed_packet = {1 << (len(intent) + 1024).bit_length()}",
            )
        self._session.run([intent, b"COMMIT"])

    def _executed(self, gtid: str) -> bool:
        return self._session.rows(f"SELECT GTID_SUBSET({quoted(gtid)}, @@GLOBAL.gtid_executed)") == [(1,)]

    def _execute(self, record: Record, gtid: str) -> None:
        session = self._session.another()
        session.connect()
        try:
            context = dict(record.context or {})
            _enter_database(session, context.get("database", ""))
            # The one statement after this runs under the GTID. With the introducer it is read in any context.
            named = f"SET gtid_next=_utf8mb4 {quoted(gtid)}".encode()
            session.run([b"SET autocommit=1", *assignments(session, context), named])
            session.run([_encoded(record.query, context.get("charset", "utf8mb4"))])
            if not self._executed(gtid):
                # CREATE TABLE … START TRANSACTION leaves its transaction open; this ends it, under the GTID.
                session.run([b"COMMIT"])
        except Refused as error:
            raise _refusal(record, error) from None
        finally:
            # Closing frees the GTID of a statement that did not run.
            session.close()
        self.applied += 1
        event(_LOG, "statement applied", sequence=record.sequence, gtid=gtid, statement=excerpt(record.query))


def _filtered(affect: dict[str, Any], end: str) -> Uri:
    """What the filters go by: the object at this end of the effect, or its database."""
    uri = Uri.parse(affect[end])
    return uri if goes_by_name(affect["action"]) else Uri(uri.resource, uri.database)


def _enter_database(session: Session, name: str) -> None:
    if not name:
        return
    try:
        session.run([f"USE {identifier(name)}".encode()])
    except Refused as error:
        # The leader's session may stand in a database that is not replicated; then the statement names its own, or the
        # server says that no database is selected.
        if error.code != _UNKNOWN_DATABASE:
            raise


def _encoded(statement: str, charset: str) -> bytes:
    return latin1_encode(statement) if charset == "latin1" else statement.encode()


def _refusal(record: Record, error: Refused) -> Unapplicable:
    return Unapplicable(
        f"the follower refuses a statement: {error}; tried: {excerpt(record.query)}",
        record=record,
        hint="make the follower take it and start again",
    )
