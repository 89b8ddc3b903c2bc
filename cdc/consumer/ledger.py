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

from cdc.codec import latin1_encode
from cdc.consumer.literals import identifier, quoted
from cdc.consumer.session import Refused, Session
from cdc.consumer.statements import Statement
from cdc.errors import PromiseError, UserError
from cdc.excerpt import excerpt
from cdc.filters import CHECKPOINT_DATABASE, goes_by_name
from cdc.position import ddl_gtid
from cdc.profile import Database
from cdc.record import Record, Uri
from cdc.service import event

__all__ = ["CREATE", "Ledger"]

_LOG = logging.getLogger("cdc.consumer")
_TABLE = f"`{CHECKPOINT_DATABASE}`.`ledger`"
CREATE = f"""CREATE TABLE IF NOT EXISTS {_TABLE} (
  resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'mysql_resource_name of the leader',
  sequence BIGINT NOT NULL COMMENT 'of the record',
  gtid VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'under which the follower executes it',
  state ENUM('intent', 'done', 'not applied') NOT NULL,
  statement LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  note VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL DEFAULT '',
  intended_at DATETIME(6) NOT NULL COMMENT 'UTC',
  finished_at DATETIME(6) NULL COMMENT 'UTC',
  PRIMARY KEY (resource, sequence)
) ENGINE=InnoDB"""

# A statement's context as recorded to the session variable that restores it (MySQL source, class Query_event).
_VARIABLES = {
    "sql_mode": "sql_mode",
    "time_zone": "time_zone",
    "foreign_key_checks": "foreign_key_checks",
    "unique_checks": "unique_checks",
    "lc_time_names": "lc_time_names",  # as a number
    "auto_increment_increment": "auto_increment_increment",
    "auto_increment_offset": "auto_increment_offset",
    "charset": "character_set_client",
    "collation": "collation_connection",
    "server_collation": "collation_server",
    "database_collation": "collation_database",
    "default_collation_for_utf8mb4": "default_collation_for_utf8mb4",
    "explicit_defaults_for_timestamp": "explicit_defaults_for_timestamp",
    "sql_require_primary_key": "sql_require_primary_key",
    "default_table_encryption": "default_table_encryption",
}
_RESTRICTED = frozenset({
    "default_collation_for_utf8mb4", "explicit_defaults_for_timestamp", "sql_require_primary_key",
    "default_table_encryption",
})  # fmt: skip
# What holds where the leader logged nothing, whatever the follower's own defaults are. It logs the first three only
# where they are not these, and writes a primary key that it generated into the statement itself; the engine of a table
# whose statement names none is not to be had, so it is the transactional one.
_UNLESS_LOGGED = {
    "lc_time_names": "en_US",
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
    "sql_generate_invisible_primary_key": "OFF",
    "default_storage_engine": "InnoDB",
}
_NOT_APPLIED = ("Trigger", "Event")
_UNKNOWN_DATABASE = 1049


class Ledger:
    """Executes Query records of the leader ``resource``; the caller commits what ``settle`` returns.

    ``session`` is the one that applies rows; statements run on connections of their own to ``database``, so that no
    variable of a statement's context outlives it. ``passes(uri)`` says whose tables are replicated. ``applied`` counts
    the statements that were executed, ``left_out`` those that are not for this follower.
    """

    def __init__(self, session: Session, database: Database, *, resource: str, passes: Callable[[Uri], bool]) -> None:
        self._session = session
        self._database = database
        self._resource = resource
        self._passes = passes
        self.applied = 0
        self.left_out = 0

    def settle(self, record: Record) -> Statement:
        """Execute the record's statement unless that is done; the note of it, to commit with the checkpoint.

        Raises PromiseError where the follower refuses the statement, Interrupted where it is to be tried again.
        """
        reason = self._why_not(record)
        if reason is not None:
            self.left_out += 1
            event(
                _LOG, "statement not applied", sequence=record.sequence, reason=reason, statement=excerpt(record.query)
            )
            # An intent may be there already: the filters left the statement out after the follower had refused it.
            settled = " ON DUPLICATE KEY UPDATE state='not applied', note=VALUES(note), finished_at=NOW(6)"
            return Statement((self._insert(record, state="not applied", note=reason) + settled).encode())
        gtid = ddl_gtid(self._resource, record.sequence)
        self._intend(record, gtid)
        if not self._executed(gtid):
            self._execute(record, gtid)
        return Statement(
            f"UPDATE {_TABLE} SET state='done', finished_at=NOW(6) WHERE resource={quoted(self._resource)} "
            f"AND sequence={record.sequence} AND state='intent'".encode(),
            1,
        )

    def _why_not(self, record: Record) -> str | None:
        """The reason to leave the statement out, or None. Raises PromiseError where it is half wanted."""
        uris = [_filtered(affect, end) for affect in record.affects for end in ("uri", "to") if end in affect]
        wanted = [self._passes(uri) for uri in uris]
        if uris and not any(wanted):
            return "of a database or table that is not replicated to this follower"
        if not all(wanted):
            raise PromiseError(
                f"a statement crosses the border of the filters: {excerpt(record.query)}",
                where=_place(record),
                hint="let all of its tables in, or none; the database cdc is the follower's own",
            )
        actions = [affect["action"] for affect in record.affects]
        if actions and all(action.endswith(_NOT_APPLIED) for action in actions):
            return "triggers and events act on the leader; what they do arrives as rows"
        return None

    def _intend(self, record: Record, gtid: str) -> None:
        """Commit the intent, once. A GTID that ran without an intent is of a former life of this follower."""
        known = self._session.rows(
            f"SELECT state FROM {_TABLE} WHERE resource={quoted(self._resource)} AND sequence={record.sequence}"
        )
        if not known:
            if self._executed(gtid):
                raise UserError(
                    f"the follower has executed {gtid} before, yet its ledger does not know the statement",
                    where=_place(record),
                    hint=f"the follower has applied a leader of this name before: use a fresh follower or another "
                    f"mysql_resource_name than {self._resource!r}",
                )
            self._session.run([self._insert(record, state="intent", note="").encode(), b"COMMIT"])

    def _insert(self, record: Record, *, state: str, note: str) -> str:
        return (
            f"INSERT INTO {_TABLE} (resource, sequence, gtid, state, statement, note, intended_at) VALUES "
            f"({quoted(self._resource)}, {record.sequence}, {quoted(ddl_gtid(self._resource, record.sequence))}, "
            f"{quoted(state)}, {quoted(record.query)}, {quoted(note)}, NOW(6))"
        )

    def _executed(self, gtid: str) -> bool:
        return self._session.rows(f"SELECT GTID_SUBSET({quoted(gtid)}, @@GLOBAL.gtid_executed)") == [(1,)]

    def _execute(self, record: Record, gtid: str) -> None:
        session = Session(self._database)
        session.connect()
        try:
            context = dict(record.context or {})
            _enter_database(session, context.get("database", ""))
            # The one statement after this runs under the GTID.
            session.run(
                [b"SET autocommit=1", *_assignments(session, context), f"SET gtid_next={quoted(gtid)}".encode()]
            )
            session.run([_encoded(record.query, context.get("charset", "utf8mb4"))])
            if not self._executed(gtid):
                # CREATE TABLE … START TRANSACTION leaves its transaction open; this ends it, under the GTID.
                session.run([b"COMMIT"])
        except Refused as error:
            raise _refusal(record, gtid, error) from None
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


def _assignments(session: Session, context: dict[str, Any]) -> list[bytes]:
    """The SET statements that restore the statement's context."""
    wanted = {variable: _variable(context[name]) for name, variable in _VARIABLES.items() if name in context}
    for variable in _RESTRICTED & wanted.keys():
        # Setting these needs grants or warns; mostly they are as they should be.
        if str(session.rows(f"SELECT @@SESSION.{variable}")[0][0]) == wanted[variable].strip("'"):
            del wanted[variable]
    names = ", ".join(map(quoted, _UNLESS_LOGGED.keys() - wanted.keys()))
    for variable, value in session.rows(f"SHOW SESSION VARIABLES WHERE variable_name IN ({names})"):
        usual = _UNLESS_LOGGED[variable]
        if value != usual:
            wanted[variable] = usual if usual.isdigit() else quoted(usual)
    if "timestamp_us" in context:
        seconds, micros = divmod(int(context["timestamp_us"]), 1_000_000)
        wanted["timestamp"] = f"{seconds}.{micros:06d}"
    return [f"SET SESSION {variable}={value}".encode() for variable, value in wanted.items()]


def _variable(value: object) -> str:
    return str(int(value)) if isinstance(value, bool | int) else quoted(str(value))


def _encoded(statement: str, charset: str) -> bytes:
    return latin1_encode(statement) if charset == "latin1" else statement.encode()


def _refusal(record: Record, gtid: str, error: Refused) -> PromiseError:
    return PromiseError(
        f"the follower refuses a statement: {error}; tried: {excerpt(record.query)}",
        where=_place(record),
        hint="make the follower take it and start again; or, where it must not run there, mark it as run: "
        f"SET gtid_next='{gtid}'; BEGIN; COMMIT; SET gtid_next='AUTOMATIC'",
    )


def _place(record: Record) -> str:
    return f"sequence {record.sequence}, leader position {record.position}"
