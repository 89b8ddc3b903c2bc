"""Defines the ledger, a table on the follower that contains the leader's statements, and assigns GTIDs to the
statements.

Each statement has a row with its state:

    intent        the statement is about to run, or it ran, and the consumer ended before it noted this
    done          the statement ran
    not applied   the statement is not for this follower, or was in its base copy; ``note`` contains the reason
    skipped       the operator left the record out (``--skip``); ``note`` contains the follower's error

Each statement gets a GTID and is executed under it; the GTID is in the ledger before the statement is executed. A new
GTID has the number after the highest number in the ledger. Only the consumer that holds the lock assigns numbers. If
the follower has executed a GTID with a higher number, the ledger has lost rows; no crash can cause this. The intents of
consecutive statements commit together. So after a crash some statements may have intents although they were not
executed; they keep their GTIDs.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

from cdc.consumer.errors import Unapplicable, position_of
from cdc.consumer.follower.own_binlog import StatementPlace
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable
from cdc.errors import UserError
from cdc.model.gtid import LAST, former_gtid, statement_gtid, statement_uuid
from cdc.model.record import Record

__all__ = [
    "ACTS_ON_LEADER",
    "BYTES",
    "IN_COPY",
    "LEDGER",
    "Commit",
    "Intent",
    "Intents",
    "any_placed",
    "finish",
    "gtids_of",
    "has_context",
    "highest_gtid",
    "insert_intent",
    "insert_not_run",
    "intent",
    "last_executed",
    "placed_intents",
    "require_packet",
    "upgrade",
]


# The ``note`` in the rows of statements that are not executed until the follower is promoted to a leader.
ACTS_ON_LEADER = "triggers and events act on the leader; what they do arrives as rows"
# The ``note`` in the rows of statements that are not executed because the follower's base copy contains their effects.
IN_COPY = "the copy that the follower began from has it (consumer.start)"
_PLACE = "place"  # the key of the ``StatementPlace`` in the context of an intent without a GTID
BYTES = "bytes"  # the key of a statement's exact bytes, in base64, in the context of a row
_NUMBER = "CAST(SUBSTRING_INDEX(gtid, ':', -1) AS UNSIGNED)"
_STATES = "ENUM('intent', 'done', 'not applied', 'skipped') NOT NULL"
_CONTEXT = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'JSON: of the record'"
LEDGER = OwnTable(
    "ledger",
    f"""
  sequence BIGINT NOT NULL COMMENT 'of the record',
  gtid VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'under which the follower executes it',
  state {_STATES},
  statement LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  note VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL DEFAULT '',
  intended_at DATETIME(6) NOT NULL COMMENT 'UTC',
  finished_at DATETIME(6) NULL COMMENT 'UTC',
  context {_CONTEXT},
  affects {_CONTEXT}
    """,
    key=("sequence",),
)
_NOTE = 255


def upgrade(schema: str) -> str:
    """Returns the statement that changes a ledger table that an older version of cdc created to the current form."""
    # All changes are in one statement, so that after a crash the table has either the older or the current form. An
    # older version of the consumer can use the current form, too.
    columns = f"MODIFY state {_STATES}, ADD COLUMN context {_CONTEXT}, ADD COLUMN affects {_CONTEXT}"
    return f"ALTER TABLE {LEDGER.within(schema)} {columns}"


def has_context(schema: str) -> str:
    """Returns a query whose result is one row if the table has the current form, and no row if it needs ``upgrade``."""
    return (
        f"SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA={quoted(schema)} "
        "AND TABLE_NAME='ledger' AND COLUMN_NAME='affects'"
    )


def gtids_of(schema: str, records: Sequence[Record]) -> str:
    """Returns the query for the sequence and GTID of the statements in ``records`` that the ledger contains."""
    sequences = ", ".join(str(record.sequence) for record in records)
    return LEDGER.select(schema, records[0].uri.resource, "sequence, gtid", where=f"sequence IN ({sequences})")


def highest_gtid(schema: str, resource: str) -> str:
    """Returns the query for the GTID with the highest number of a statement of the leader ``resource``. The query
    returns no row if there is no such GTID.

    It reads all rows of the leader, because the numbers need not grow with the sequences.
    """
    ours = f"gtid LIKE {quoted(statement_uuid(resource) + ':%')}"
    return f"{LEDGER.select(schema, resource, 'gtid', where=ours)} ORDER BY {_NUMBER} DESC LIMIT 1"


def last_executed(schema: str, resource: str, *, after: int) -> str:
    """Returns the query for the highest sequence of the statements after ``after`` that were executed or are being
    executed; the result is NULL if there are no such statements.

    While a statement is being executed, it owns its GTID.
    """
    owned = "LOCATE(CONCAT(LOWER(gtid), '#'), LOWER(@@GLOBAL.gtid_owned))"
    ran = f"gtid <> '' AND (GTID_SUBSET(gtid, @@GLOBAL.gtid_executed) OR {owned})"
    return LEDGER.select(schema, resource, "MAX(sequence)", where=f"sequence > {after} AND {ran}")


def intent(schema: str, record: Record) -> str:
    """Returns the query for the GTID and the place (``StatementPlace``, in JSON) in the ledger's row for the record.
    The query returns no row unless the ledger contains a row with the state ``intent`` for the record, or a row with
    the GTID under which the statement ran although the checkpoint is before it, since it was moved back by hand.
    """
    place = f"JSON_EXTRACT(context, '$.{_PLACE}')"
    where = f"sequence={record.sequence} AND (state='intent' OR (state='done' AND gtid<>''))"
    return LEDGER.select(schema, record.uri.resource, f"gtid, {place}", where=where)


def placed_intents(schema: str, resource: str, *, after: int) -> str:
    """Returns the query for the sequence and place (in JSON) of each intent without a GTID, after sequence
    ``after``."""
    place = f"JSON_EXTRACT(context, '$.{_PLACE}')"
    where = f"sequence > {after} AND state='intent' AND gtid='' AND {place} IS NOT NULL"
    return LEDGER.select(schema, resource, f"sequence, {place}", where=where)


def any_placed(schema: str, resource: str, *, since: int) -> str:
    """Returns the query whose result is one row if the ledger has an intent without a GTID, from sequence ``since`` on;
    otherwise no row."""
    return (
        LEDGER.select(schema, resource, "1", where=f"sequence >= {since} AND state='intent' AND gtid=''") + " LIMIT 1"
    )


def insert_intent(schema: str, record: Record, *, gtid: str = "", place: StatementPlace | None = None) -> str:
    """Returns the INSERT of a ledger row with the state ``intent``: the record's statement is about to be executed
    under ``gtid``. If the user may not assign GTIDs, the row contains ``place`` instead, which describes the
    connection.
    """
    # A row without a GTID may exist: the statement was left out, and later the checkpoint was moved back to before the
    # statement.
    again = "ON DUPLICATE KEY UPDATE state=VALUES(state), gtid=VALUES(gtid), context=VALUES(context)"
    return f"{_insert(schema, record, state='intent', gtid=gtid, place=place)} {again}"


def insert_not_run(schema: str, record: Record, *, state: str, note: str, statement: str | None = None) -> str:
    """Returns the INSERT of a ledger row for a statement that the follower does not execute.

    ``statement`` is the text for the ledger if the record contains no text. If the follower has refused the statement,
    the ledger already contains a row with the state ``intent``. The INSERT then changes the state of this row and keeps
    its GTID, so that no other statement gets the same number.
    """
    return (
        f"{_insert(schema, record, state=state, note=note, statement=statement)} "
        "ON DUPLICATE KEY UPDATE state=VALUES(state), note=VALUES(note), finished_at=NOW(6)"
    )


def finish(schema: str, record: Record, *, gtid: str | None = None) -> str:
    """Returns the UPDATE that changes the state of the record's statement from ``intent`` to ``done``, and notes the
    ``gtid`` that the server has given it, if any.
    """
    given = "" if gtid is None else f", gtid={quoted(gtid)}"
    ended = f"state='done'{given}, finished_at=NOW(6)"
    return f"UPDATE {LEDGER.within(schema)} SET {ended} WHERE {_is(record)} AND state='intent'"


def _is(record: Record) -> str:
    return f"resource={quoted(record.uri.resource)} AND sequence={record.sequence}"


def _insert(
    schema: str,
    record: Record,
    *,
    state: str,
    gtid: str = "",
    note: str = "",
    statement: str | None = None,
    place: StatementPlace | None = None,
) -> str:
    context = record.context
    if record.exact is not None:
        context = dict(context or {}) | {BYTES: b64encode(record.exact).decode("ascii")}
    if place is not None:
        context = dict(context or {}) | {_PLACE: place}
    return LEDGER.insert(
        schema,
        record.uri.resource,
        sequence=record.sequence,
        gtid=gtid,
        state=state,
        statement=record.query if statement is None else statement,
        note=note[:_NOTE],
        context=json.dumps(context, ensure_ascii=False),
        affects=json.dumps(record.affects, ensure_ascii=False),
        now="intended_at",
    )


def require_packet(session: Session, record: Record, size: int) -> None:
    """Raises Unapplicable if the statement that inserts the record's row into the ledger is too large for a packet to
    the follower. ``size`` is the length of the statement in bytes.
    """
    if not _fits(session, size):
        raise Unapplicable(
            f"a statement needs a packet of {size} bytes, the follower accepts {session.max_packet}",
            code="CDC-FOLLOWER-PACKET",
            record=record,
            hint=f"on the follower: SET PERSIST max_allowed_packet = {1 << (size + 1024).bit_length()}",
        )


def _fits(session: Session, size: int) -> bool:
    return size + len(b"COMMIT") < session.max_packet


Commit = Callable[[Sequence[bytes]], None]
"""A function that commits the session's open transaction together with the given statements, in one packet that ends
with COMMIT.
"""


class Intent(NamedTuple):
    """The GTID under which a statement is to be executed. Unless ``is_new`` is true, the statement may have been
    executed already."""

    gtid: str
    is_new: bool


class Intents:
    """Assigns GTIDs to the statements of one leader, and stores them in the ledger before the statements are executed:
    as rows with the state ``intent``. ``session`` must hold the consumer's lock, so that no other program changes the
    ledger while it is connected.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        # the number of a connection, and the highest number that was read or assigned on it
        self._highest: tuple[int, int] | None = None
        # The GTIDs that were found or stored over this connection, by sequence. From the sequence ``_empty_from`` on,
        # the ledger has no other rows, and the follower has executed none of the GTIDs that belong to statements there.
        self._stored: dict[int, str] = {}
        self._empty_from: int | None = None

    def intend(self, records: Sequence[Record], commit: Commit) -> list[Intent]:
        """Commits ledger rows with the state ``intent`` for at least the first statement in ``records``, and returns
        the GTIDs in them.

        Statements that already have such rows, from an earlier attempt, keep them; if all statements have such rows,
        ``commit`` is not called. Raises Interrupted and Refused, Unapplicable if the first statement is too large for
        the follower, and UserError if the follower has executed statements that its ledger lacks.
        """
        number = self._number(records[0].uri.resource)
        found = self._found(records, number)
        # A row without a GTID may exist: the statement was left out, and later the checkpoint was moved back to before
        # the statement.
        intents = {sequence: Intent(gtid, is_new=False) for sequence, gtid in found.items() if gtid}
        new = [record for record in records if record.sequence not in intents]
        if new:
            intents |= self._commit(new, number, commit, first=new[0] is records[0])
        first = takewhile(lambda record: record.sequence in intents, records)
        return [intents[record.sequence] for record in first]

    def _found(self, records: Sequence[Record], number: int) -> dict[int, str]:
        """Returns the GTIDs of the statements that have rows in the ledger. Raises Interrupted and Refused, and
        UserError if the follower has executed statements that the ledger lacks.

        The ledger is read until it is known to be empty from a later statement on: a question before each statement
        takes as long as a small statement.
        """
        sequences, last = [record.sequence for record in records], records[-1]
        self._forget_before(sequences[0])
        empty_from = self._empty_from
        if empty_from is not None and all(each >= empty_from or each in self._stored for each in sequences):
            return {each: self._stored[each] for each in sequences if each in self._stored}
        schema, resource = self._session.schema, last.uri.resource
        later = f"EXISTS({LEDGER.select(schema, resource, '1', where=f'sequence > {last.sequence}')})"
        question = (
            f"{gtids_of(schema, records)} UNION ALL SELECT -1, {_unused(records, number)} "
            f"UNION ALL SELECT -2, IF({later}, 'rows', {_unused_later(last)})"
        )
        found = {int(sequence): str(gtid) for sequence, gtid in self._session.rows(question)}
        used, beyond = found.pop(-1), found.pop(-2)
        if used and (new := [record for record in records if not found.get(record.sequence)]):
            self._check_unused(new, number)
        if not used and not beyond:
            self._empty_from = last.sequence + 1
        self._stored |= {sequence: gtid for sequence, gtid in found.items() if gtid}
        return found

    def _forget_before(self, sequence: int) -> None:
        """Drops from memory what is known of statements before ``sequence``, which are asked for again if they come
        again.
        """
        self._stored = {each: gtid for each, gtid in self._stored.items() if each >= sequence}
        if self._empty_from is not None:
            self._empty_from = max(self._empty_from, sequence)

    def _commit(self, records: Sequence[Record], number: int, commit: Commit, *, first: bool) -> dict[int, Intent]:
        """Commits the ledger rows (intents) of as many records as fit into one packet, with GTIDs from ``number`` on.
        Returns the intents by sequence.

        ``first`` is true if no other statements come before these statements. Raises Unapplicable if ``first`` is true
        and not even one row fits.
        """
        intents: dict[int, Intent] = {}
        packet: list[bytes] = []
        size = 0
        for at, record in enumerate(records):
            gtid = statement_gtid(record.uri.resource, number + at)
            intent = insert_intent(self._session.schema, record, gtid=gtid).encode()
            size += len(intent) + 1
            if not _fits(self._session, size):
                break
            intents[record.sequence] = Intent(gtid, is_new=True)
            packet.append(intent)
        if packet:
            # The number is cleared before the commit, so that it is read again if the commit is interrupted: that
            # commit may nevertheless have succeeded.
            self._highest = None
            commit(packet)
            self._highest = self._session.connections, number + len(packet) - 1
            self._stored |= {sequence: intent.gtid for sequence, intent in intents.items()}
        elif first:
            require_packet(self._session, records[0], size)
        return intents

    def _number(self, resource: str) -> int:
        """Returns the number after the highest number in the ledger."""
        if self._highest is None or self._highest[0] != self._session.connections:
            self._stored, self._empty_from = {}, None
            known = self._session.rows(highest_gtid(self._session.schema, resource))
            self._highest = self._session.connections, int(known[0][0].rpartition(":")[2]) if known else 0
        return self._highest[1] + 1

    def _check_unused(self, records: Sequence[Record], number: int) -> None:
        """Raises UserError if the follower has executed statements that its ledger lacks.

        Such statements exist if the follower has executed a GTID with ``number`` or a higher number. They also exist if
        it has executed one of the statements in ``records`` under the GTID that an earlier version of cdc assigns to
        the statement.
        """
        ((used,),) = self._session.rows(f"SELECT {_unused(records, number)}")
        if used:
            resource = records[0].uri.resource
            raise UserError(
                f"the follower has executed {' '.join(used.split())} before, yet its ledger does not know the "
                "statement",
                code="CDC-FOLLOWER-LEDGER-LOST",
                where=position_of(records[0]),
                hint=f"put back what was deleted from {LEDGER.within(self._session.schema)}; if the follower has "
                "applied a leader of this name before, use a fresh follower (whose GTIDs are empty: RESET BINARY LOGS "
                f"AND GTIDS) or another mysql_resource_name than {resource!r}",
            )


def _unused(records: Sequence[Record], number: int) -> str:
    """Returns an SQL expression for the GTIDs that the follower has executed although only the new statements may use
    them; the value should be empty.
    """
    resource = records[0].uri.resource
    formers = ",".join(former_gtid(resource, record.sequence) for record in records)
    return _executed_of(f"{formers},{statement_gtid(resource, number)}-{LAST}")


def _unused_later(record: Record) -> str:
    """Returns an SQL expression for the GTIDs that the follower has executed although only statements after ``record``
    may use them; the value is empty if an earlier version of cdc has executed none of those.
    """
    return _executed_of(f"{former_gtid(record.uri.resource, record.sequence + 1)}-{LAST}")


def _executed_of(gtids: str) -> str:
    return f"GTID_SUBTRACT({quoted(gtids)}, GTID_SUBTRACT({quoted(gtids)}, @@GLOBAL.gtid_executed))"
