"""Finds out whether a statement was executed, for a user who may not assign GTIDs (``consumer.privileges = "schema"``).

Before a statement is executed, its row in the ledger is committed with its place: the connection that will execute it,
and the GTIDs that the server had executed until then (``follower/own_binlog``). After a crash the follower's binlog
shows whether that connection has executed the statement. If the statement is still running on the lost connection, that
connection holds a lock, and the consumer waits for the lock.

Each statement has its own intent. After a statement was executed, its GTID is read from the binlog, because the ledger
and the audit need the GTID that the server assigned.
"""

import json

from cdc.consumer.errors import Interrupted, Locked, Refused, Unapplicable
from cdc.consumer.follower.locks import STATEMENT, lock_name
from cdc.consumer.follower.own_binlog import StatementPlace, executed_gtid
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state import ledger_table
from cdc.consumer.state.ledger_table import LEDGER, Commit
from cdc.model.record import Record

__all__ = ["PlacedStatements"]

_LOCK_SECONDS = 5
_MICROSECONDS = 1_000_000


class PlacedStatements:
    """Notes in the ledger on which connection a statement will be executed (its place), and finds the GTIDs of executed
    statements. ``session`` must hold the consumer's lock.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        # the number of the connection over which the ledger was found to have no intent without a GTID from some
        # statement on; 0 if there was none
        self._none_on = 0

    def gtid_of(self, record: Record) -> str | None:
        """Returns the GTID under which the record's statement was executed before; None if it was not executed.

        Raises Interrupted if it is still running, and Unapplicable if the follower's binlog does not show it.
        """
        if self._session.assigns_gtids and self._has_none_since(record):
            return None
        rows = self._session.rows(ledger_table.intent(self._session.schema, record))
        gtid, place = rows[0] if rows else ("", None)
        if gtid:
            # An earlier run with more privileges chose this GTID. A session that still has these privileges executes
            # the statement under this GTID, and SET gtid_next waits for a statement that is still running.
            return gtid if not self._session.assigns_gtids and self._executed(gtid) else None
        if place is None:
            return None
        self._await_end(record)
        return self._search(record, StatementPlace(*json.loads(place)))

    def _has_none_since(self, record: Record) -> bool:
        """Whether the ledger has no intent without a GTID from this record on. A session that assigns GTIDs adds none,
        so one question over each connection is enough.
        """
        connection = self._session.connections
        if self._none_on != connection:
            question = ledger_table.any_placed(self._session.schema, record.uri.resource, since=record.sequence)
            self._none_on = 0 if self._session.rows(question) else connection
        return self._none_on == connection

    def last_executed(self, resource: str, *, after: int) -> int:
        """Returns the sequence of the newest statement after ``after`` that was executed or is running, or ``after`` if
        there is none. Only statements for which the consumer assigned no GTID are considered: their rows in the ledger
        contain a place, with which they are found in the follower's binlog. Raises Interrupted and Refused.
        """
        intents = self._session.rows(ledger_table.placed_intents(self._session.schema, resource, after=after))
        ((holder,),) = self._session.rows(f"SELECT IS_USED_LOCK('{lock_name(resource, STATEMENT)}')")
        ran = (
            int(sequence)
            for sequence, place in intents
            if holder is not None or executed_gtid(self._session, StatementPlace(*json.loads(place))) is not None
        )
        return max(ran, default=after)

    def intend(self, record: Record, connection: Session, commit: Commit) -> StatementPlace:
        """Commits a ledger row for the record's statement, which will be executed next on ``connection``. The row
        contains the statement's place, from which the connection is known after a crash. Returns the place.

        Raises Interrupted and Refused, and Unapplicable if the statement is too large for the follower.
        """
        name = lock_name(record.uri.resource, STATEMENT)
        if connection.rows(f"SELECT GET_LOCK('{name}', 0)") != [(1,)]:
            raise Locked("a statement of a consumer that has ended is still running on this follower")
        time_us = (record.context or {}).get("timestamp_us")
        second = None if time_us is None else int(time_us) // _MICROSECONDS
        place = StatementPlace.of(self._session, connection=connection.thread_id, second=second)
        intent = ledger_table.insert_intent(self._session.schema, record, place=place).encode()
        ledger_table.require_packet(self._session, record, len(intent))
        commit([intent])
        return place

    def executed(self, record: Record, place: StatementPlace) -> str:
        """Returns the GTID of the statement that was executed at ``place``; empty if the server has not logged it."""
        return self._search(record, place) or ""

    def _search(self, record: Record, place: StatementPlace) -> str | None:
        try:
            return executed_gtid(self._session, place)
        except Refused as error:
            ledger = LEDGER.within(self._session.schema)
            raise Unapplicable(
                f"whether a statement was executed can't be found in the follower's binlog: {error}",
                code="CDC-FOLLOWER-STATEMENT-UNKNOWN",
                record=record,
                hint="if the user lacks REPLICATION SLAVE, grant it and start again; if the binlog is gone, look at "
                f"the follower: if the statement took effect, continue with --skip, else DELETE FROM {ledger} WHERE "
                f"resource={quoted(record.uri.resource)} AND sequence={record.sequence}, and start again",
            ) from None

    def _executed(self, gtid: str) -> bool:
        """Whether a statement was executed under ``gtid``, which an earlier run of the consumer with more privileges
        chose for it. Raises Interrupted if the statement is still running.
        """
        owned = f"LOCATE(CONCAT(LOWER({quoted(gtid)}), '#'), LOWER(@@GLOBAL.gtid_owned))"
        ((executed, running),) = self._session.rows(
            f"SELECT GTID_SUBSET({quoted(gtid)}, @@GLOBAL.gtid_executed), {owned}"
        )
        if running:
            raise Interrupted("a statement of a consumer that has ended is still running on this follower")
        return bool(executed)

    def _await_end(self, record: Record) -> None:
        """Waits until the statement on a lost connection has ended. Raises Locked if it is still running after
        ``_LOCK_SECONDS``.
        """
        name = lock_name(record.uri.resource, STATEMENT)
        if self._session.rows(f"SELECT GET_LOCK('{name}', {_LOCK_SECONDS})") != [(1,)]:
            raise Locked("a statement of a consumer that has ended is still running on this follower")
        self._session.rows(f"SELECT RELEASE_LOCK('{name}')")
