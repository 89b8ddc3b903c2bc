"""Executes the leader's DDL statements, which commit by themselves, exactly once, and notes each in the ledger table.

A statement runs under a GTID of its own, and a server executes a GTID once. Protocol: intent row with the GTID
(committed) → statement under that GTID → done row, committed together with the checkpoint. After a crash the intent
says which GTID it is, and the follower's own executed GTID set whether the statement ran. If it is still running on the
lost connection, SET gtid_next waits for it.

The GTID has the number after that of the ledger's last statement. Only the consumer that holds the lock gives numbers.
A number above that was executed without the ledger knowing of it, which no crash can do.

CREATE TABLE … SELECT comes as CREATE TABLE … START TRANSACTION and rows. MySQL allows no plain INSERT after that form
(error 3977), so the table is created and committed under its GTID, and the rows, the done row and the checkpoint commit
together. Between the two commits the follower has an empty table.
"""

import logging
from collections.abc import Callable
from typing import Any

from cdc.config.filters import filtered_name
from cdc.consumer.errors import UNKNOWN_DATABASE, Interrupted, Refused, Unapplicable, position_of
from cdc.consumer.follower.lock_waits import LockWait
from cdc.consumer.follower.row_numbers import key_columns, other_numbers
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.session_variables import assignments
from cdc.consumer.literals.values import identifier, quoted
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.follower_statements import FollowerStatements
from cdc.consumer.source.statement_check import check_claims, numbering
from cdc.consumer.source.statement_text import to_send
from cdc.consumer.state import ledger_table
from cdc.consumer.state.copied import Copied
from cdc.consumer.state.skips import Skips
from cdc.errors import UserError
from cdc.model.record import Record, Uri
from cdc.model.statement_gtid import LAST, former_gtid, statement_gtid
from cdc.service.logs import event
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.redaction import excerpt

__all__ = ["DdlLedger"]

_LOG = logging.getLogger("cdc.consumer")
_HINTS = {
    # Where consumer.engine has made an InnoDB table of one of MyISAM.
    1075: "InnoDB numbers by the first column of a key only: create the table on the follower by hand, with one more "
    "KEY that begins with the AUTO_INCREMENT column (its numbers come from the leader)"
}
_OTHER_NUMBERS = (
    "make the follower's table one of InnoDB without partitions, with the leader's primary key; else run the statement "
    "on the follower by hand so that the rows get the leader's numbers, and go on with --skip"
)
_OTHER_ZEROS = (
    "on the follower, give the column the leader's numbers where it is 0 or NULL, and start again; or leave "
    "the table out with the filters, and on the leader copy it: CREATE TABLE new … SELECT"
)
_ANY_ORDER = (
    "on the follower, add the column without AUTO_INCREMENT, give it the leader's numbers, make it AUTO_INCREMENT, and "
    "go on with --skip; or leave the table out with the filters, and on the leader copy it: CREATE TABLE new … SELECT"
)
_SHOWN = 100_000  # characters of a skipped statement, which may be too large for the server


class DdlLedger:
    """Executes Query records of one leader; the caller commits the notes that are returned.

    ``session`` is the one that applies rows; each statement runs on a new connection, so that no session variable of
    one affects another. What ``copied`` has is not executed. ``passes(uri)`` says which tables are replicated, by the
    leader's names; ``statements`` changes what the follower needs otherwise. ``skips`` says which records may be
    skipped. ``lock_seconds`` is how long a statement waits for each lock. ``applied`` counts the statements that were
    executed, ``left_out`` those that the filters left out, that act on the leader only, or that were in the copy.
    """

    def __init__(
        self,
        session: Session,
        *,
        copied: Copied,
        passes: Callable[[Uri], bool],
        statements: FollowerStatements,
        skips: Skips,
        lock_seconds: int,
    ) -> None:
        self._session = session
        self._copied = copied
        self._passes = passes
        self._statements = statements
        self.skips = skips
        self._lock_seconds = lock_seconds
        self.applied = 0
        self.left_out = 0

    def execute(self, record: Record) -> Statement:
        """Execute the record's statement unless it was executed before; the note that commits with the checkpoint.

        Raises Unapplicable where the follower refuses the statement, Interrupted where it must be tried again.
        """
        try:
            reason = self._why_not(record)
            # Checked where the statement can be executed: now or, if it only acts on the leader, by an operator who
            # promotes the follower.
            if reason in (None, ledger_table.ACTS_ON_LEADER):
                check_claims(record, version=self._session.version)
            if reason is None:
                return self._execute_once(self._statements.of(record))
        except Unapplicable as error:
            if not self.skips.allow(record):
                raise
            return self.skip(record, error)
        self.left_out += 1
        event(_LOG, "statement not applied", sequence=record.sequence, reason=reason, statement=excerpt(record.query))
        return self._not_applied(record, reason)

    def _not_applied(self, record: Record, reason: str) -> Statement:
        note = ledger_table.insert_not_run(self._session.schema, record, state="not applied", note=reason)
        return Statement(note.encode())

    def skip(self, record: Record, error: Unapplicable) -> Statement:
        """The note that a record was skipped, because of ``error``."""
        shown = record.query[:_SHOWN] or f"{record.operation}, {len(record.rows)} rows of {record.uri}"
        self.skips.used.add(record.sequence)
        event(
            _LOG, "record skipped", level=logging.WARNING, sequence=record.sequence, position=record.position,
            what=excerpt(shown), reason=error.what,
        )  # fmt: skip
        return Statement(
            ledger_table.insert_not_run(
                self._session.schema, record, state="skipped", note=error.what, statement=shown
            ).encode()
        )

    def note_left_out(self, record: Record) -> Statement:
        """The note that the producer has left an event out (its option --skip)."""
        if self._copied.has(record):
            return self._not_applied(record, ledger_table.IN_COPY)
        event(
            _LOG, "event skipped by the producer", level=logging.WARNING, sequence=record.sequence,
            position=record.position, what=record.query,
        )  # fmt: skip
        note = "the leader's event was left out of the stream (cdc-producer --skip)"
        return Statement(ledger_table.insert_not_run(self._session.schema, record, state="skipped", note=note).encode())

    def _execute_once(self, record: Record) -> Statement:
        gtid = self._intend(record)
        if not self._executed(gtid):
            self._check_numbers(record)
            self._execute(record, gtid)
        return Statement(ledger_table.finish(self._session.schema, record).encode(), 1)

    def _why_not(self, record: Record) -> str | None:
        """The reason to leave the statement out, or None.

        Raises Unapplicable where the filters let only some of its objects pass, and the copy does not have it.
        """
        uris = [_filtered(affect, end) for affect in record.affects for end in ("uri", "to") if end in affect]
        wanted = [self._passes(uri) for uri in uris]
        if uris and not any(wanted):
            return "of a database or table that is not replicated to this follower"
        in_copy = self._copied.has(record)
        if not (all(wanted) or in_copy):
            raise Unapplicable(
                f"a statement crosses the border of the filters: {excerpt(record.query)}",
                record=record,
                hint="let all of its tables in, or none",
            )
        actions = [affect["action"] for affect in record.affects]
        if actions and all(action.endswith(LEADER_ONLY) for action in actions):
            # Of one in the copy, too: the follower must not have the triggers that came with it.
            return ledger_table.ACTS_ON_LEADER
        return ledger_table.IN_COPY if in_copy else None

    def _intend(self, record: Record) -> str:
        """Commit the intent unless it is in the ledger; the GTID under which the statement runs, or ran."""
        known = self._session.rows(ledger_table.gtid_of(self._session.schema, record))
        if known and known[0][0]:
            return str(known[0][0])
        gtid = self._next_gtid(record)
        intent = ledger_table.insert_intent(self._session.schema, record, gtid=gtid).encode()
        if len(intent) >= self._session.max_packet:
            raise Unapplicable(
                f"a statement needs a packet of {len(intent)} bytes, the follower takes {self._session.max_packet}",
                record=record,
                hint=f"on the follower: SET PERSIST max_allowed_packet = {1 << (len(intent) + 1024).bit_length()}",
            )
        self._session.run([intent, b"COMMIT"])
        return gtid

    def _next_gtid(self, record: Record) -> str:
        """A GTID that was never used.

        Raises UserError where the GTID of this statement or of a later one was executed without an intent: the follower
        has another history.
        """
        resource = record.uri.resource
        for order in (ledger_table.SEQUENCE, ledger_table.NUMBER):
            known = self._session.rows(ledger_table.highest_gtid(self._session.schema, resource, by=order))
            gtid = statement_gtid(resource, int(known[0][0].rpartition(":")[2]) + 1 if known else 1)
            unused = quoted(f"{former_gtid(resource, record.sequence)},{gtid}-{LAST}")
            ((used,),) = self._session.rows(
                f"SELECT GTID_SUBTRACT({unused}, GTID_SUBTRACT({unused}, @@GLOBAL.gtid_executed))"
            )
            if not used:
                return gtid
        raise UserError(
            f"the follower has executed {' '.join(used.split())} before, yet its ledger does not know the statement",
            where=position_of(record),
            hint=f"put back what was deleted from {ledger_table.table(self._session.schema)}; if the follower has "
            "applied a leader of this name before, use a fresh follower (whose GTIDs are empty: RESET BINARY LOGS "
            f"AND GTIDS) or another mysql_resource_name than {resource!r}",
        )

    def _executed(self, gtid: str) -> bool:
        return self._session.rows(f"SELECT GTID_SUBSET({quoted(gtid)}, @@GLOBAL.gtid_executed)") == [(1,)]

    def _check_numbers(self, record: Record) -> None:
        """Raises Unapplicable where the statement may give rows of the follower's table other numbers."""
        effect = numbering(record)
        if effect is None:
            return
        reason = other_numbers(self._session, effect, same_engine=not self._statements.changes_engines)
        if reason:
            raise Unapplicable(
                f"the follower may number the rows otherwise than the leader, {reason}: {excerpt(record.query)}",
                record=record,
                hint=_ANY_ORDER if effect.any_order else _OTHER_NUMBERS if effect.numbered else _OTHER_ZEROS,
            )
        if effect.numbered:
            # It must be the leader's, too, which the stream does not show.
            order = ", ".join(key_columns(self._session, effect))
            event(_LOG, "rows are numbered in the order of the primary key", sequence=record.sequence, key=order)

    def _execute(self, record: Record, gtid: str) -> None:
        session = self._session.another()
        session.connect()
        lock_wait = LockWait(session, seconds=self._lock_seconds, asking=self._session)
        try:
            context = dict(record.context or {})
            _enter_database(session, context.get("database", ""))
            # The next statement runs under this GTID. The introducer makes it readable with any character set.
            named = f"SET gtid_next=_utf8mb4 {quoted(gtid)}".encode()
            session.run([b"SET autocommit=1", lock_wait.settings, *assignments(session, context), named])
            session.run([to_send(record)])
            if not self._executed(gtid):
                # CREATE TABLE … START TRANSACTION leaves its transaction open; this ends it, under the GTID.
                session.run([b"COMMIT"])
        except Refused as error:
            raise _refusal(record, error) from None
        except Interrupted as error:
            raise lock_wait.given_up(error) from None
        finally:
            # Closing frees the GTID of a statement that did not run.
            session.close()
        self.applied += 1
        event(_LOG, "statement applied", sequence=record.sequence, gtid=gtid, statement=excerpt(record.query))


def _filtered(affect: dict[str, Any], end: str) -> Uri:
    """The name that the filters are applied to: the object at this end of the effect, or its database."""
    uri = Uri.parse(affect[end])
    return Uri(uri.resource, uri.database, filtered_name(affect["action"], uri.table))


def _enter_database(session: Session, name: str) -> None:
    if not name:
        return
    try:
        session.run([f"USE {identifier(name)}".encode()])
    except Refused as error:
        # The leader's session may have used a database that is not replicated. Then the statement names its databases,
        # or the server refuses it because no database is selected.
        if error.code != UNKNOWN_DATABASE:
            raise


def _refusal(record: Record, error: Refused) -> Unapplicable:
    return Unapplicable(
        f"the follower refuses a statement: {error}; tried: {excerpt(record.query)}",
        record=record,
        hint=_HINTS.get(error.code, "make the follower take it and start again"),
    )
