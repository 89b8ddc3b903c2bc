"""Gives statements the GTIDs under which they run, and notes these in the ledger before the statements run.

A GTID has the number after the highest one in the ledger. Only the consumer that holds the lock gives numbers. A number
above that was executed without the ledger knowing of it, which no crash can do. The intents of statements that follow
one another commit together: a crash leaves some of them for later, and then these statements keep their GTIDs.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from cdc.consumer.errors import Unapplicable, position_of
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state import ledger_table
from cdc.errors import UserError
from cdc.model.record import Record
from cdc.model.statement_gtid import LAST, former_gtid, statement_gtid

__all__ = ["Commit", "Intent", "Intents"]

Commit = Callable[[Sequence[bytes]], None]
"""Commits what is executed on the session, and these statements with it; in one packet, with a COMMIT behind them."""


class Intent(NamedTuple):
    """The GTID under which a statement runs or, unless it ``is_new``, may have run."""

    gtid: str
    is_new: bool


class Intents:
    """The intents of one leader's statements in the ledger, over the ``session`` that holds the lock."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._highest: tuple[tuple[str, int], int] | None = None  # the connection that read or gave it, and the number

    def intend(self, records: Sequence[Record], commit: Commit) -> list[Intent]:
        """Commit the intents of the first of the statements, of at least one, and return these.

        Those that an earlier attempt has intended keep theirs; then there may be nothing to ``commit``. Raises
        Unapplicable where the first statement is too large for the follower, UserError where the follower has another
        history; Interrupted, Refused.
        """
        number = self._number(records[0].uri.resource)
        unused = _unused(records, number)
        question = f"{ledger_table.gtids_of(self._session.schema, records)} UNION ALL SELECT -1, {unused}"
        found = {int(sequence): str(gtid) for sequence, gtid in self._session.rows(question)}
        used = found.pop(-1)
        # Without a GTID the statement did not run; the checkpoint was then put back to before it.
        intents = {sequence: Intent(gtid, is_new=False) for sequence, gtid in found.items() if gtid}
        new = [record for record in records if record.sequence not in intents]
        if new:
            if used:
                self._check_unused(new, number)
            intents |= self._commit(new, number, commit, first=new[0] is records[0])
        first = takewhile(lambda record: record.sequence in intents, records)
        return [intents[record.sequence] for record in first]

    def _commit(self, records: Sequence[Record], number: int, commit: Commit, *, first: bool) -> dict[int, Intent]:
        """Commit the intents that fit into a packet, with GTIDs from ``number`` on; they are returned by sequence.

        Raises Unapplicable where the first one does not, unless other statements come before it (not ``first``).
        """
        intents: dict[int, Intent] = {}
        packet: list[bytes] = []
        size = 0
        for at, record in enumerate(records):
            gtid = statement_gtid(record.uri.resource, number + at)
            intent = ledger_table.insert_intent(self._session.schema, record, gtid=gtid).encode()
            size += len(intent) + 1
            if size + len(b"COMMIT") >= self._session.max_packet:
                break
            intents[record.sequence] = Intent(gtid, is_new=True)
            packet.append(intent)
        if packet:
            # Read again if this is interrupted, since it may have committed: after a restart the server gives new
            # connections the ids of former ones.
            self._highest = None
            commit(packet)
            self._highest = self._connection, number + len(packet) - 1
        elif first:
            raise Unapplicable(
                f"a statement needs a packet of {size} bytes, the follower takes {self._session.max_packet}",
                record=records[0],
                hint=f"on the follower: SET PERSIST max_allowed_packet = {1 << (size + 1024).bit_length()}",
            )
        return intents

    @property
    def _connection(self) -> tuple[str, int]:
        return self._session.server, self._session.thread_id

    def _number(self, resource: str) -> int:
        """The number after the highest one in the ledger."""
        if self._highest is None or self._highest[0] != self._connection:
            known = self._session.rows(ledger_table.highest_gtid(self._session.schema, resource))
            self._highest = self._connection, int(known[0][0].rpartition(":")[2]) if known else 0
        return self._highest[1] + 1

    def _check_unused(self, records: Sequence[Record], number: int) -> None:
        """Raises UserError where the number or a later one was executed without an intent, or one of the statements
        under the GTID that an earlier version gave it: the follower has another history.
        """
        ((used,),) = self._session.rows(f"SELECT {_unused(records, number)}")
        if used:
            resource = records[0].uri.resource
            raise UserError(
                f"the follower has executed {' '.join(used.split())} before, yet its ledger does not know the "
                "statement",
                where=position_of(records[0]),
                hint=f"put back what was deleted from {ledger_table.table(self._session.schema)}; if the follower has "
                "applied a leader of this name before, use a fresh follower (whose GTIDs are empty: RESET BINARY LOGS "
                f"AND GTIDS) or another mysql_resource_name than {resource!r}",
            )


def _unused(records: Sequence[Record], number: int) -> str:
    """The expression for those that were executed of the GTIDs that new statements must find unused."""
    resource = records[0].uri.resource
    formers = ",".join(former_gtid(resource, record.sequence) for record in records)
    unused = quoted(f"{formers},{statement_gtid(resource, number)}-{LAST}")
    return f"GTID_SUBTRACT({unused}, GTID_SUBTRACT({unused}, @@GLOBAL.gtid_executed))"
