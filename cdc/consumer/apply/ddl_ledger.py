"""Executes each DDL statement of the leader exactly once, although DDL statements commit implicitly, and notes each
statement in the ledger table or finds it in the follower's binlog.

Each statement is executed under its own GTID, and a server executes a GTID only once. First a row with the GTID and the
state ``intent`` is committed to the ledger table. Then the statement is executed under that GTID. Then the row's state
is set to ``done``, in one transaction with the checkpoint. After a crash the row contains the GTID, and the follower's
executed GTID set shows whether the statement was executed. If the statement is still running on the lost connection,
SET gtid_next waits until it has ended.

The ledger rows of successive statements are committed together: as ``intent`` before the first statement, and as
``done`` after the last one. A commit takes about as long as a statement.

The leader logs CREATE TABLE … SELECT as CREATE TABLE … START TRANSACTION and rows. MySQL allows no plain INSERT after
that form (error 3977), so the table is created and committed under the statement's GTID, and then the rows, the ledger
row and the checkpoint are committed together. Between the two commits the follower has an empty table.

If the user may not assign GTIDs (``consumer.privileges``), statements are executed one at a time, each with its own
intent, and the follower's binlog shows whether a statement was executed (``PlacedStatements``).
"""

import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from cdc.config.filters import filtered_name
from cdc.config.table_globs import copy_command
from cdc.consumer.apply.placed_statements import PlacedStatements
from cdc.consumer.errors import Interrupted, Refused, Unapplicable
from cdc.consumer.follower.session import Session, version_text
from cdc.consumer.follower.statement_connection import (
    LockWait,
    StatementConnection,
    key_columns,
    other_numbers,
    texts_of_mariadb,
)
from cdc.consumer.literals.values import quoted
from cdc.consumer.plan.packets import Statement
from cdc.consumer.scope import way_across
from cdc.consumer.source.follower_statements import (
    FollowerStatements,
    maintained_here,
    only_maintains,
    quoted_names,
    with_same_keys,
)
from cdc.consumer.source.statement_check import check_claims, names_in, numbering, rereads, to_send
from cdc.consumer.state import ledger_table
from cdc.consumer.state.base_copy import BaseCopy
from cdc.consumer.state.ledger_table import Commit, Intents
from cdc.consumer.state.other_streams import require_own_model
from cdc.consumer.state.skips import Skips
from cdc.errors import CdcError
from cdc.model.record import Record, Uri
from cdc.service.logs import event
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.tokens import excerpt

__all__ = ["DdlLedger"]

_LOG = logging.getLogger("cdc.consumer")
_THERE = (
    "the follower already has this change: if it is now as on the leader, nothing is lost by skipping the record; else "
    "undo the change on the follower and start again"
)
# The error numbers for syntax, functions, engines, character sets, collations, and kinds of columns and keys that only
# some versions of MySQL accept.
_OF_VERSIONS = (1063, 1064, 1115, 1193, 1235, 1273, 1286, 1305, 1503, 3763, 3770, 3814, 6123, 6125)
_LACKS = 1227
# Finds the privileges in the server's text, such as "the SUPER or SYSTEM_VARIABLES_ADMIN and TABLE_ENCRYPTION_ADMIN
# privilege(s)".
_PRIVILEGES = re.compile(r"\b([A-Z_]{4,}(?:(?:,| or| and) [A-Z_]{4,})*) privilege")
_OF_ACCOUNTS = (1449, _LACKS)
_HINTS = {
    # The object already exists, or is missing already, or another key or constraint has its name.
    **dict.fromkeys((1007, 1008, 1050, 1051, 1060, 1061, 1091, 1304, 1305, 1826, 3822), _THERE),
    # The definer of a view must exist, because the server checks the view's text with the rights of that account.
    1449: "create that account on the follower, since accounts are not replicated, and start again",
    # The user lacks a right on the database, the table or the routine.
    **dict.fromkeys(
        (1044, 1142, 1370),
        "on the follower, grant the user of the consumer's profile all on that database, and start again: nothing is "
        "lost",
    ),
    # consumer.engine may change the table's engine from MyISAM to InnoDB, which allows fewer kinds of AUTO_INCREMENT
    # keys.
    1075: "InnoDB numbers by the first column of a key only: create the table on the follower by hand, with one more "
    "KEY that begins with the AUTO_INCREMENT column (its numbers come from the leader)",
    1814: "its tablespace was discarded there: on the follower run CREATE TABLE … LIKE it, drop it, give the new one "
    "its name, and start again",
}
_OTHER_NUMBERS = (
    "make the follower's table an InnoDB table without partitions, with the leader's primary key; or run the statement "
    "on the follower by hand so that the rows get the leader's numbers, and continue with --skip"
)
_OTHER_ZEROS = (
    "on the follower, give the column the leader's numbers where it is 0 or NULL, and start again; or leave "
    "the table out with the filters, and on the leader copy it: CREATE TABLE new … SELECT"
)
_ANY_ORDER = (
    "on the follower, add the column without AUTO_INCREMENT, give it the leader's numbers, make it AUTO_INCREMENT, and "
    "continue with --skip; or filter the table out, and copy it on the leader: CREATE TABLE new … SELECT; "
    'with producer.on_unrepeatable = "copy" the next such statement passes'
)
_MAKES_DOCUMENTS = re.compile(r"\bJSON|->|\bMEMBER\b", re.I)
_UNCOMMITTED_SECONDS = 1.0  # a run of statements ends after this time, and is then committed
_SHOWN = 100_000  # characters; longer texts of skipped statements are cut, since they might exceed the packet size


class DdlLedger:
    """Executes the DDL statements (Query records) of one leader. The caller executes and commits the returned
    statements, which update the ledger (``ledger_table``).

    ``session`` applies the rows. Statements are executed on another connection. It is reset before each statement, so
    that the session variables of one statement do not affect the next. Statements whose effects the base copy
    ``copied``, with which the follower began, already contains are not executed. ``passes(uri)`` decides whether a
    table is replicated; ``uri`` is its name on the leader. ``statements`` rewrites statements for the follower.
    ``skips`` decides which records may be skipped. ``lock_seconds`` is the longest time that a statement waits for each
    lock. ``leader_version`` returns the version that the leader has now, or an empty text. ``parked`` returns the
    reason why a statement on a parked table is left out, or None. ``applied`` is the number of executed statements,
    ``left_out`` is the number of statements that are not for this follower.
    """

    def __init__(
        self,
        session: Session,
        *,
        copied: BaseCopy,
        passes: Callable[[Uri], bool],
        statements: FollowerStatements,
        skips: Skips,
        lock_seconds: int,
        leader_version: Callable[[], str],
        parked: Callable[[Record], str | None],
    ) -> None:
        self._session = session
        self._parked = parked
        self._copied = copied
        self._connection = StatementConnection(session)
        self._intents = Intents(session)
        self._placed = PlacedStatements(session)
        self._failed: tuple[int, Exception] | None = None  # the sequence of a failed statement, and its error
        # the statements that the previous run has rewritten, by server and sequence
        self._ready: dict[tuple[str, int], Record] = {}
        self._passes = passes
        self._statements = statements
        self.skips = skips
        self._lock_seconds = lock_seconds
        self.applied = 0
        self.left_out = 0
        self._leader_version = leader_version

    def execute(self, records: Sequence[Record], commit: Commit) -> list[Statement]:
        """Executes at least the first statement of ``records``, and returns, for each executed statement, SQL that
        notes it in the ledger. A statement that was executed before is not executed again, only noted.

        The caller must commit this SQL together with the checkpoint. The method returns early before a statement that
        fails or that the filters leave out, and after about a second. The caller then commits the executed statements
        and calls the method again for the others. ``commit`` commits the rows that precede the first statement; it is
        called before that statement is executed. Raises Unapplicable if the follower refuses the first statement,
        Interrupted if the first statement must be tried again.
        """
        first = records[0]
        try:
            reason = self._reason(first)
            if reason is None and (parked := self._parked(first)) is not None:
                self._failed = None
                return [self._leave_out(first, parked)]
            self._raise_again(first)
            if reason is None:
                ready = self._for_follower(records)
                return self._placed_before(ready[0]) or self._run(ready, commit)
        except Unapplicable as error:
            if not self.skips.allow(first):
                raise
            return [self.skip(first, error)]
        self.left_out += 1
        event(_LOG, "statement not applied", sequence=first.sequence, reason=reason, statement=excerpt(first.query))
        return [self._not_applied(first, reason)]

    def _not_applied(self, record: Record, reason: str) -> Statement:
        note = ledger_table.insert_not_run(self._session.schema, record, state="not applied", note=reason)
        return Statement(note.encode())

    def skip(self, record: Record, error: Unapplicable) -> Statement:
        """Logs that a record is skipped because of ``error``, and returns the statement that notes this in the
        ledger."""
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

    def _leave_out(self, record: Record, reason: str) -> Statement:
        """Logs that a statement on a parked table is left out, and returns the statement that notes this in the
        ledger."""
        self.skips.pass_over(record.sequence)
        event(
            _LOG, "statement left out", level=logging.WARNING, sequence=record.sequence,
            statement=excerpt(record.query), reason=reason,
        )  # fmt: skip
        note = ledger_table.insert_not_run(
            self._session.schema, record, state="skipped", note=reason, statement=record.query[:_SHOWN]
        )
        return Statement(note.encode())

    def rest(self) -> None:
        """Closes the connection for statements if it has been idle for a while; must be called from time to time."""
        self._connection.rest()

    def note_names(self, *, after: int, through: int) -> list[Statement]:
        """Returns the statements that update the follower's table of the leader's names. They store the names that the
        leader began to use in the records after sequence ``after`` up to ``through``, and delete the names that it
        removed there. The list is empty unless the follower stores names in lower case.
        """
        return self._statements.notes(after=after, through=through)

    def note_left_out(self, record: Record) -> Statement:
        """Returns the statement that adds to the ledger an event that the producer has left out: because of its option
        --skip, or because it copies the table again. An event that the base copy contains is added as not applied.
        """
        if self._copied.has(record):
            return self._not_applied(record, ledger_table.IN_COPY)
        event(
            _LOG, "event skipped by the producer", level=logging.WARNING, sequence=record.sequence,
            position=record.position, what=record.query,
        )  # fmt: skip
        note = "the producer has left the leader's event out of the stream"
        return Statement(ledger_table.insert_not_run(self._session.schema, record, state="skipped", note=note).encode())

    def _raise_again(self, record: Record) -> None:
        """Raises the error with which the record's statement failed in the previous run, if it failed. The statements
        before it are committed by now.
        """
        failed, self._failed = self._failed, None
        if failed is not None and failed[0] == record.sequence:
            raise failed[1]

    def _for_follower(self, records: Sequence[Record]) -> list[Record]:
        """Rewrites the statements for the follower, up to the first statement that must not be executed.

        Raises Unapplicable or UserError if the first statement can't be rewritten.
        """
        # The previous run may have executed only some of its rewritten statements; the others are not rewritten again.
        known, self._ready = self._ready, {}
        for record in records:
            place = self._session.server, record.sequence
            try:
                ready = known.get(place)
                if ready is None:
                    if self._ready and (self._reason(record) or self._parked(record)) is not None:
                        break
                    ready = maintained_here(record, self._passes)
                    ready = with_same_keys(ready, version=self._session.version, leader=self._leader_version)
                    ready = self._statements.of(ready)
                    ready = quoted_names(ready, version=self._session.version, leader=self._leader_version)
            except CdcError:
                if not self._ready:
                    raise
                break
            self._ready[place] = ready
        return list(self._ready.values())

    def _placed_before(self, record: Record) -> list[Statement]:
        """Returns the SQL that notes the statement as done if it was already executed under a GTID that the server
        assigned; otherwise an empty list. Only the first statement of a batch can have been executed already.
        """
        gtid = self._placed.gtid_of(record)
        return [] if gtid is None else [self._done(record, gtid)]

    def _done(self, record: Record, gtid: str | None = None) -> Statement:
        return Statement(ledger_table.finish(self._session.schema, record, gtid=gtid).encode(), 1)

    def _run(self, records: Sequence[Record], commit: Commit) -> list[Statement]:
        if not self._session.assigns_gtids:
            commit([])
            self._check(records[0])
            return [self._done(records[0], self._execute(records[0], commit=commit))]
        notes: list[Statement] = []
        begun = time.monotonic()
        intents = self._intents.intend(records, commit)
        # Commits the rows that precede the statement, unless the commit of the intents has done so: the statement must
        # not wait for the locks of these rows.
        commit([])
        for record, intent in zip(records, intents, strict=False):
            try:
                # If the session with the consumer's lock is lost, another consumer may be running. The commit of the
                # intents reports such a loss, and so does the query after each statement.
                if intent.is_new or not self._executed(intent.gtid):
                    self._check(record)
                    self._execute(record, intent.gtid)
            except (CdcError, Interrupted, Refused) as error:
                if not notes:
                    raise
                self._failed = record.sequence, error
                break
            notes.append(self._done(record))
            if time.monotonic() - begun > _UNCOMMITTED_SECONDS:
                break
        return notes

    def _reason(self, record: Record) -> str | None:
        """Returns the reason why the statement is not executed; None if it is to be executed. Raises Unapplicable."""
        reason = self._why_not(record)
        # If the statement will be executed, the text must not change more objects than the record lists. It is executed
        # by this program now or, for a trigger or event, when an operator promotes the follower.
        if reason in (None, ledger_table.ACTS_ON_LEADER):
            check_claims(record, version=self._session.version, folds_names=self._session.folds_names)
        return reason

    def _why_not(self, record: Record) -> str | None:
        """Returns the reason why the statement is not executed; None if it is to be executed.

        Raises Unapplicable if only some of the statement's objects pass the filters, unless the base copy already
        contains the statement's effect.
        """
        uris = [_filtered(affect, end) for affect in record.affects for end in ("uri", "to") if end in affect]
        wanted = [self._passes(uri) for uri in uris]
        if uris and not any(wanted):
            return "of a database or table that is not replicated to this follower"
        in_copy = self._copied.has(record)
        if not (all(wanted) or in_copy or only_maintains(record)):
            raise Unapplicable(
                f"only a part of a statement passes the filters: {excerpt(record.query)}",
                code="CDC-CONSUMER-FILTERS-CROSSED",
                record=record,
                hint=way_across(record, self._passes),
            )
        actions = [affect["action"] for affect in record.affects]
        if actions and all(action.endswith(LEADER_ONLY) for action in actions):
            # This check comes before the check for the base copy. The follower must not have triggers, even if the base
            # copy contained them.
            return ledger_table.ACTS_ON_LEADER
        return ledger_table.IN_COPY if in_copy else None

    def _executed(self, gtid: str) -> bool:
        return self._session.rows(f"SELECT GTID_SUBSET({quoted(gtid)}, @@GLOBAL.gtid_executed)") == [(1,)]

    def _check(self, record: Record) -> None:
        """Raises Unapplicable if the follower might execute the statement with another result than the leader."""
        require_own_model(self._session, record, passes=self._passes)
        self._check_texts(record)
        self._check_numbers(record)

    def _check_texts(self, record: Record) -> None:
        """Raises Unapplicable if the statement treats a column as UUID or INET (types of MariaDB) that is text on the
        follower.
        """
        effect = rereads(record)
        if effect is None:
            return
        named = names_in(record)
        if columns := [name for name in texts_of_mariadb(self._session, effect) if name.casefold() in named]:
            raise Unapplicable(
                f"MySQL makes other bytes, or another order, of a column that may be UUID or INET on the leader: "
                f"{', '.join(columns)}: {excerpt(record.query)}",
                code="CDC-STATEMENT-OWN-TYPE",
                record=record,
                hint="on the follower, put a new column of its new type in the place of each, with "
                "UNHEX(REPLACE(c, '-', '')) of a UUID c and INET6_ATON(c) of an INET c, and start again; partitions by "
                "such a column are not replicated: leave the table out with filters.exclude_tables",
            )

    def _check_numbers(self, record: Record) -> None:
        """Raises Unapplicable if the statement might give the follower's rows other numbers than the leader's rows."""
        effect = numbering(record)
        if effect is None or (record.copying and effect.any_order):
            return
        reason = other_numbers(self._session, effect, same_engine=not self._statements.changes_engines)
        if reason:
            raise Unapplicable(
                f"the follower may number the rows differently from the leader, {reason}: {excerpt(record.query)}",
                code="CDC-FOLLOWER-NUMBERING",
                record=record,
                hint=_ANY_ORDER if effect.any_order else _OTHER_NUMBERS if effect.numbered else _OTHER_ZEROS,
            )
        if effect.numbered:
            # The follower numbers the rows in this order. The stream does not show whether the leader did the same, so
            # the order is only logged.
            order = ", ".join(key_columns(self._session, effect))
            event(_LOG, "rows are numbered in the order of the primary key", sequence=record.sequence, key=order)

    def _execute(self, record: Record, gtid: str = "", *, commit: Commit | None = None) -> str:
        """Executes the statement under ``gtid``, and returns the GTID. If ``gtid`` is empty, the intent is committed
        with ``commit`` before the statement is executed, and the server assigns the GTID.
        """
        place = None
        lock_wait = LockWait(seconds=self._lock_seconds, asking=self._session)
        try:
            session = self._connection.ready(record, own=f"autocommit=1, {lock_wait.settings}", gtid=gtid)
            if commit is not None:
                place = self._placed.intend(record, session, commit)
            lock_wait.watch(session)
            session.run([to_send(record)])
            if place is not None or not self._executed(gtid):
                # CREATE TABLE … START TRANSACTION leaves its transaction open. This COMMIT ends the transaction under
                # the GTID.
                session.run([b"COMMIT"])
            if place is not None:
                gtid = self._placed.executed(record, place)
        except BaseException as error:
            # If the statement was not executed, closing the connection releases its GTID.
            self._connection.close()
            if isinstance(error, Refused):
                raise self._refusal(record, error) from None
            if isinstance(error, Interrupted):
                raise lock_wait.given_up(error) from None
            raise
        self._connection.used()
        self.applied += 1
        event(_LOG, "statement applied", sequence=record.sequence, gtid=gtid, statement=excerpt(record.query))
        if self._session.changes_doubles:
            _tell_doubles(record)
        return gtid

    def _refusal(self, record: Record, error: Refused) -> Unapplicable:
        hint = _HINTS.get(error.code, "make the follower accept it and start again")
        if error.code in _OF_VERSIONS and not re.match(r"\s*DROP\b", record.query, re.I):
            hint = _other_form(record, self._session.version, self._leader_version())
        # The hint mentions the definer, because only a user with SYSTEM_USER may name a system user as definer, such as
        # root@localhost.
        if error.code == _LACKS and (lacking := _PRIVILEGES.search(error.text)):
            hint = (
                f"on the follower: GRANT {_one_of_each(lacking[1])} ON *.* TO the user of the consumer's profile, and "
                "start again: nothing is lost; if the server grants none, do on the follower by hand what the "
                "statement does, for example with another definer, and continue with --skip"
            )
        return Unapplicable(
            f"the follower refuses a statement: {error}; tried: {excerpt(record.query)}",
            code="CDC-FOLLOWER-REFUSES-RECORD",
            record=record,
            refused=None if error.code in _OF_ACCOUNTS else error,
            hint=hint,
        )


def _one_of_each(privileges: str) -> str:
    """Returns the privileges to grant, parsed from the server's error text. If the text names alternatives, only the
    last of them is returned, because it is the narrowest privilege.
    """
    return ", ".join(re.split(r", | or ", each)[-1] for each in privileges.split(" and "))


def _tell_doubles(record: Record) -> None:
    """Warns if a statement makes JSON documents from text and the JSON parser of this server rounds doubles
    differently.
    """
    tables = [affect["uri"] for affect in record.affects if affect["action"] == "AlterTable"]
    if tables and _MAKES_DOCUMENTS.search(record.query):
        table = Uri.parse(tables[0])
        event(
            _LOG, "JSON documents that the statement made from text may contain other doubles than on the leader",
            level=logging.WARNING, sequence=record.sequence, uri=tables[0],
            hint=f"copy the table again: {copy_command((table.database, table.table or ''))}",
        )  # fmt: skip


def _filtered(affect: dict[str, Any], end: str) -> Uri:
    """Returns the name by which the filters decide about an object of a statement. ``end`` is "uri", or "to" for the
    object's new name in a rename.

    The result contains only the name of the database, unless the object is a table, view or index.
    """
    uri = Uri.parse(affect[end])
    return Uri(uri.resource, uri.database, filtered_name(affect["action"], uri.table))


def _other_form(record: Record, version: int, leader: str) -> str:
    """Returns the hint for a statement that the follower's version refuses. ``leader`` is the leader's version; it is
    empty if unknown.
    """
    maker = "" if "MariaDB" in leader else "MySQL "
    leaders = f"{maker}{leader}" if leader and version_text(version) not in leader else "of another version"
    table = any("Table" in affect["action"] for affect in record.affects)
    same = " with the same columns (one that it can't compute as a plain column of its type) and keys," if table else ""
    return (
        f"the follower is MySQL {version_text(version)}, and the leader, which took it, {leaders} or of other "
        f"settings; run it on the follower in a form that this version takes,{same} and continue with --skip: no row "
        "is lost by that"
    )
