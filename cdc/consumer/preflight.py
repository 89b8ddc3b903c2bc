"""Checks the settings and grants of the follower before anything is applied, loads the checkpoint, and checks that the
topics continue it.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from cdc.config.profile import Profile
from cdc.consumer.errors import HINTS, Denied, Interrupted, Locked, Refused, Stopped
from cdc.consumer.follower import audit_needs
from cdc.consumer.follower.address import FollowerAddress
from cdc.consumer.follower.session import Session, require_mysql, version_text
from cdc.consumer.range.base_copy import Beginning
from cdc.consumer.source.reader import Topic
from cdc.consumer.state import base_copy, checkpoint, ledger_table, parked
from cdc.consumer.state.base_copy import BaseCopy
from cdc.consumer.state.checkpoint import (
    CHECKPOINT,
    CHUNKS,
    FRESH,
    OFFSETS,
    Checkpoint,
    LastChunk,
    TopicIdPartition,
)
from cdc.consumer.state.conflicts import CONFLICTS
from cdc.consumer.state.ledger_table import LEDGER
from cdc.consumer.state.own_table import NAMES, TYPES
from cdc.errors import Disconnected, UserError
from cdc.kafka.partitions import FIRST
from cdc.kafka.places import Place
from cdc.model.server_version import TESTED, is_tested
from cdc.service.logs import event
from cdc.service.mysql_connection import MEND_TLS, TLS_FAILED

__all__ = [
    "First",
    "InUse",
    "ahead",
    "answering",
    "check_topics",
    "connect",
    "continued",
    "follower_address",
    "found_follower",
    "load_checkpoint",
    "log_missing_capture",
    "log_notes",
    "problems",
    "read_checkpoint",
]

# Checks that the topics continue the checkpoint of the follower.

First = Callable[[], int | None]
_AGAIN = (
    "the brokers lost records: start cdc-producer, which writes them again if the leader still has them, then this "
    f"program; if it can't, {FRESH}"
)


class Places(Protocol):
    """The type of the method ``KafkaReader.places``."""

    def __call__(self, topic: Topic, *, before: int, number: int = FIRST) -> Iterator[Place]: ...


def continued(checkpoint: Checkpoint, topic: Topic, places: Places) -> Checkpoint:
    """Checks that the only partition of ``topic`` still contains the last record that the follower has applied, and
    returns the checkpoint. If that record now has another offset, the checkpoint's offset is replaced.

    The offset changes if the brokers have lost records: the producer then reads the leader's binlog again, and writes
    the same records, with the same sequences, at other offsets. ``places`` reads the places of the records, newest
    first. If retention has deleted the record, this is no error. Raises UserError if the topic ends before the last
    applied record, PromiseError if a different record now has the sequence of the last applied record.
    """
    partition, sequence = TopicIdPartition(topic.name, FIRST, topic.id), checkpoint.sequence
    offset, high = checkpoint.offsets.get(partition, 0), topic.ranges[FIRST][1]
    if sequence < 0:
        return checkpoint
    place, is_newest = _find(sequence, places(topic, before=offset))
    moved = offset > high or not is_newest
    if place is not None and place.sequence < sequence and offset < high:
        place, is_newest = _find(sequence, places(topic, before=high))
        moved = True
    if place is not None and place.sequence < sequence and is_newest:
        raise ahead(sequence, place.sequence, f"topic {topic.name}, partition {FIRST}, offset {place.offset}")
    # If retention has deleted the record, or the record is missing in a gap, the later records will show whether the
    # stream continues.
    if place is None or place.sequence < sequence:
        return checkpoint
    if place.sequence == sequence:
        checkpoint.require_same(
            place.position, place.ts_us, f"topic {topic.name}, partition {FIRST}, offset {place.offset}"
        )
    return replace(checkpoint, offsets={**checkpoint.offsets, partition: place.offset}) if moved else checkpoint


def ahead(sequence: int, newest: int, where: str) -> UserError:
    """Returns the error for a follower that has applied record ``sequence`` of topics that end with ``newest``."""
    return UserError(
        f"the follower is ahead of the topic: it has applied record {sequence}, the topic ends with record {newest}",
        code="CDC-FOLLOWER-AHEAD",
        where=where,
        hint=_AGAIN,
    )


def _find(sequence: int, places: Iterator[Place]) -> tuple[Place | None, bool]:
    """Searches ``places``, newest first, for a record with this sequence or a lower one. Returns the first such place,
    and whether it is the newest of all places.

    If there is no such place, returns the oldest place if it is the place of the next sequence; otherwise returns None.
    """
    place: Place | None = None
    for number, place in enumerate(places):
        if place.sequence <= sequence:
            return place, number == 0
    return (place if place is not None and place.sequence == sequence + 1 else None), False


def check_topics(checkpoint: Checkpoint, topic: Topic, others: Mapping[str, Topic], *, first: First | None) -> None:
    """Raises UserError if the topics do not continue the checkpoint. Either the topic is not the topic of the
    checkpoint, or retention has deleted records that are still needed, or the topic ends before the checkpoint.

    ``topic`` is the topic whose id the checkpoint should contain: the single topic, or the topic of the commit log.
    ``others`` are the other topics of the checkpoint that exist. ``first()`` returns the sequence of the oldest record
    in the topic, or None if it is unknown. If there are many topics, ``first`` is None; a missing sequence is then
    found only while the topics are read.
    """
    if (checkpoint.topic, checkpoint.topic_id) != (topic.name, topic.id):
        raise UserError(
            f"the follower's checkpoint is of topic {checkpoint.topic} (id {checkpoint.topic_id}), "
            f"this is another one (id {topic.id})",
            code="CDC-FOLLOWER-OTHER-TOPIC",
            where=f"topic {topic.name}",
            hint=f"set kafka.topic and kafka.layout as they were; if it was deleted and created again, {FRESH}",
        )
    offsets = {TopicIdPartition(topic.name, number, topic.id): 0 for number in topic.ranges} | dict(checkpoint.offsets)
    for partition, offset in offsets.items():
        there = topic if partition.topic == topic.name else others.get(partition.topic)
        _check_partition(partition, offset, there, checkpoint.sequence, first)


def _check_partition(
    partition: TopicIdPartition, offset: int, topic: Topic | None, sequence: int, first: First | None
) -> None:
    where = f"topic {partition.topic}, partition {partition.number}"
    if topic is None or topic.id != partition.topic_id or partition.number not in topic.ranges:
        raise UserError(
            "the topic was deleted, or created again",
            code="CDC-FOLLOWER-OTHER-TOPIC",
            where=f"{where}, after sequence {sequence}",
            hint=FRESH,
        )
    low, high = topic.ranges[partition.number]
    if offset > high:
        raise UserError(
            f"the checkpoint is ahead of the topic: it is at offset {offset}, the topic ends at {high}",
            code="CDC-FOLLOWER-BEHIND-RETENTION",
            where=f"{where}, after sequence {sequence}",
            hint=_AGAIN,
        )
    if first is None or offset >= low:
        return
    # That the checkpoint's offset was deleted does not prove that a record is missing: it may be the offset of a
    # transaction marker after the last applied record. So the oldest record decides.
    oldest = first()
    if high > offset + 1 if oldest is None else oldest > sequence + 1:
        raise UserError(
            f"retention has deleted records: the checkpoint is at offset {offset}, the topic begins at {low}",
            code="CDC-FOLLOWER-BEHIND-RETENTION",
            where=f"{where}, sequence {sequence + 1} is needed",
            hint=f"raise the topic's retention.ms and retention.bytes, then {FRESH}",
        )


_LOG = logging.getLogger("cdc.consumer")
_START = "start the server, or fix the address"
_STATIC = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "CREATE VIEW",
    "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE",
    # Without EVENT and TRIGGER the server hides events and triggers.
    "EVENT", "TRIGGER",
)  # fmt: skip
_SET_USER_ID, _TWO_OF_ONE = "SET_USER_ID", 80200  # MySQL 8.2 replaced SET_USER_ID with two privileges
# One of these privileges is enough to set the GTID under which a statement is executed, and also to set the leader's
# session variables. REPLICATION_APPLIER alone would only allow setting the GTID.
_DYNAMIC = (("SESSION_VARIABLES_ADMIN", "SYSTEM_VARIABLES_ADMIN", "SUPER"),)
_WITHOUT = 'or, for a server that does not grant the last, consumer.privileges = "schema" in the profile'
# The privileges on the consumer's own database, and for its binlog, with ``consumer.privileges = "schema"``.
_OWN = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER")
_OWN_BINLOG = "REPLICATION SLAVE"
_OF_THE_SERVER = {"mysql", "sys", "performance_schema", "information_schema"}
# The privileges for creating objects with a definer other than our user. The user needs one privilege of each row.
_DEFINERS = (
    ("SET_ANY_DEFINER", _SET_USER_ID, "SUPER"),
    ("ALLOW_NONEXISTENT_DEFINER", _SET_USER_ID, "SUPER"),
)
_LOST = (
    "views and routines have our user as their definer and the rights of their callers (SQL SECURITY INVOKER); "
    "statements run one by one, under GTIDs of the server; a ledger that was deleted is not noticed; settings of the "
    "leader's sessions that need a privilege stop the consumer if they would change a table"
)
_SYSTEM_USER = "SYSTEM_USER"
_SETTINGS = {
    "gtid_mode": (
        "ON",
        "without GTIDs a statement could run twice after a crash",
        "SET PERSIST enforce_gtid_consistency = ON, then gtid_mode to OFF_PERMISSIVE, ON_PERMISSIVE and ON in turn",
    ),
    "log_bin": ("1", "the audit reads the follower's binlog", "start the server with --log-bin"),
    "super_read_only": ("0", "no client can write", "SET PERSIST super_read_only = OFF"),
    # This variable has only a global value. Even with the privilege SUPER, functions that declare no characteristic
    # would be refused.
    "log_bin_trust_function_creators": (
        "1",
        "functions of the leader would be refused",
        "SET PERSIST log_bin_trust_function_creators = ON",
    ),
}


def follower_address(profile: Profile) -> FollowerAddress:
    """Returns the address of the follower in ``database`` and ``database.hosts`` of the profile; nothing is asked
    yet."""
    question = Checkpoint.select_sequence(profile.mysql_resource_name, schema=profile.consumer.schema)
    return FollowerAddress(profile.database, question=question)


def found_follower(profile: Profile) -> Profile:
    """Returns the profile with the address of the server that is the follower now; ``hosts`` is empty. Raises
    Disconnected if none of the servers in ``database.hosts`` is, or if several may be."""
    address = follower_address(profile)
    with answering(str(profile.database)):
        address.find()
    return replace(profile, database=address.database)


class InUse(UserError):
    """Another consumer of the same leader applies to the follower."""


def connect(session: Session, *, name: str) -> None:
    """Connects for the first time, and checks the server's version, settings and grants; ``name`` is the server's name
    in errors.

    Raises UserError, Stopped, and Disconnected if the server does not answer.
    """
    found = problems(session, name=name)
    # Each problem is logged on its own line, so that an operator can fix all problems together.
    if len(found) > 1:
        for problem in found:
            event(_LOG, "problem", level=logging.ERROR, what=problem)
        raise UserError(
            f"{len(found)} problems with the follower, each named above", code="CDC-FOLLOWER-PROBLEMS", where=name
        )
    for problem in found:
        raise problem
    with answering(name):
        log_notes(session)


def problems(session: Session, *, name: str) -> list[UserError]:
    """Connects for the first time, and returns what must be changed on the server before anything is applied.

    Raises Stopped, UserError if our user can't connect, and Disconnected if the server does not answer.
    """
    with answering(name):
        session.connect()
        return list(_problems(session, name))


def log_notes(session: Session) -> None:
    """Logs what may stop the consumer later: definers of objects, missing privileges, an untested version."""
    if session.assigns_gtids:
        _tell_definers(session)
    else:
        event(_LOG, "applied without administrative privileges", lost=_LOST)
    _tell_version(session)


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Raises errors of queries on the server ``name`` in the ``with`` block as UserError or Disconnected."""
    where = f"{name} (profile table database)"
    try:
        yield
    except Stopped:
        raise
    except Denied as error:
        raise UserError(
            f"the follower refuses the user: {error}",
            code="CDC-FOLLOWER-GRANTS",
            where=where,
            hint="fix user or password, or create the account",
        ) from None
    except Locked as error:
        raise InUse(
            f"the follower is in use: {error}",
            code="CDC-FOLLOWER-IN-USE",
            where=where,
            hint="stop one consumer; one with consumer.standby waits until the other ends",
        ) from None
    except Interrupted as error:
        hint = HINTS.get(error.code, _START)
        raise Disconnected(
            f"the follower cannot be used: {error}", code="CDC-FOLLOWER-GONE", where=where, hint=hint
        ) from None
    except Refused as error:
        tls = error.code == TLS_FAILED
        hint = MEND_TLS if tls else "fix the account or the server"
        raise _unusable(error, where, hint) from None


def _unusable(error: Refused | Interrupted, where: str, hint: str) -> UserError:
    return UserError(f"the follower cannot be used: {error}", code="CDC-FOLLOWER-UNUSABLE", where=where, hint=hint)


def _problems(session: Session, name: str) -> Iterable[UserError]:
    version = str(session.rows("SELECT VERSION()")[0][0])
    require_mysql(version, where=name)
    for variable, (wanted, reason, fix) in _SETTINGS.items():
        value = str(session.rows(f"SELECT @@GLOBAL.{variable}")[0][0])
        if value != wanted:
            yield UserError(
                f"{variable} is {value}: {reason}",
                code="CDC-FOLLOWER-SETTINGS",
                where=name,
                hint=f"on the follower: {fix}",
            )
    ((names,),) = session.rows("SELECT @@lower_case_table_names")
    if names == 2:
        yield UserError(
            "lower_case_table_names is 2: a table is logged under the name that it was created with, and under others",
            code="CDC-FOLLOWER-SETTINGS",
            where=name,
            hint="only a new server can have another value: initialise one with 0, or with 1",
        )
    yield from _unsettable(session, name)
    yield from _missing_grants(session, name)


def _missing_grants(session: Session, name: str) -> Iterable[UserError]:
    """Yields errors about privileges that the user lacks."""
    held = _privileges(session)
    ((read_only,),) = session.rows("SELECT @@GLOBAL.read_only")
    if read_only and held.isdisjoint({"CONNECTION_ADMIN", "SUPER", "ALL PRIVILEGES"}):
        fix = f"GRANT CONNECTION_ADMIN ON *.* TO {_account(session)}, or SET PERSIST read_only = OFF"
        yield UserError(
            "read_only is 1, and the user lacks CONNECTION_ADMIN, with which it could write nevertheless",
            code="CDC-FOLLOWER-GRANTS",
            where=name,
            hint=f"on the follower: {fix}",
        )
    if not session.assigns_gtids:
        yield from _lacking_in_databases(session, name)
        return
    missing = [privilege for privilege in _STATIC if privilege not in held]
    missing += _lacking(_DYNAMIC, held, session.version)
    if missing and "ALL PRIVILEGES" not in held:
        other = f"; {_WITHOUT}" if _lacking(_DYNAMIC, held, session.version) else ""
        yield UserError(
            f"the user lacks {', '.join(missing)}",
            code="CDC-FOLLOWER-GRANTS",
            where=name,
            hint=f"on the follower: GRANT {', '.join(missing)} ON *.* TO {_account(session)}{other}",
        )


def _unsettable(session: Session, name: str) -> Iterable[UserError]:
    """Yields errors about server settings that the user may not change for a session, and with which the follower's
    tables would differ from the leader's.
    """
    variable = "sql_generate_invisible_primary_key"
    found = session.rows(f"SHOW GLOBAL VARIABLES LIKE '{variable}'")
    if not session.assigns_gtids and found and found[0][1] == "ON":
        yield UserError(
            f"{variable} is ON: tables without a key would get a column that the leader's do not have",
            code="CDC-FOLLOWER-SETTINGS",
            where=name,
            hint=f"on the follower: SET PERSIST {variable} = OFF, or the same in the vendor's parameters",
        )


def _lacking_in_databases(session: Session, name: str) -> Iterable[UserError]:
    """Yields errors about missing privileges with ``consumer.privileges = "schema"``. Privileges are required on the
    consumer's own database, and on each database (or pattern of names) for which the user has any privilege.
    """
    granted = _grants(session)
    everywhere = granted.pop("*", set())
    held = {each: everywhere | granted[each] for each in granted.keys() - _OF_THE_SERVER}
    held.setdefault(session.schema, everywhere)
    for database, privileges in sorted(held.items()):
        wanted = _OWN if database == session.schema else _STATIC
        missing = [privilege for privilege in wanted if privilege not in privileges]
        if missing and "ALL PRIVILEGES" not in privileges:
            yield UserError(
                f"the user lacks {', '.join(missing)} on database {database}",
                code="CDC-FOLLOWER-GRANTS",
                where=name,
                hint=f"on the follower: GRANT {', '.join(missing)} ON `{database}`.* TO {_account(session)}",
            )
    if everywhere.isdisjoint({_OWN_BINLOG, "ALL PRIVILEGES"}):
        yield UserError(
            f"the user lacks {_OWN_BINLOG}: after a crash, the follower's own binlog shows whether a statement ran",
            code="CDC-FOLLOWER-GRANTS",
            where=name,
            hint=f"on the follower: GRANT {_OWN_BINLOG} ON *.* TO {_account(session)}; or {' or '.join(_DYNAMIC[0])}, "
            "and leave out consumer.privileges",
        )


def _lacking(choices: Iterable[tuple[str, ...]], held: set[str], version: int) -> list[str]:
    """Lists the missing privileges. Each of the ``choices`` consists of alternative privileges; if the user holds none
    of them, the list contains one of them."""
    return list(dict.fromkeys(_named(choice, version) for choice in choices if held.isdisjoint(choice)))


def _named(choice: tuple[str, ...], version: int) -> str:
    """Chooses the privilege of ``choice`` that a message recommends. It is SET_USER_ID before MySQL 8.2, if ``choice``
    contains it, otherwise the first privilege.
    """
    return _SET_USER_ID if version < _TWO_OF_ONE and _SET_USER_ID in choice else choice[0]


def _tell_version(session: Session) -> None:
    version = version_text(session.version)
    if not is_tested(version):
        event(_LOG, "the follower's version is none of those tested", version=version, tested=", ".join(TESTED))


def _tell_definers(session: Session) -> None:
    """Logs which definers of objects would stop the stream. A missing privilege is no error, because the leader might
    have no such objects, and because some managed servers do not grant these privileges.
    """
    held = _privileges(session)
    if "ALL PRIVILEGES" not in held and (missing := _lacking(_DEFINERS, held, session.version)):
        event(
            _LOG, "a view, procedure or function whose definer is not our user, or is no account here, will stop the "
            "consumer",
            hint=f"if the leader has such objects, run on the follower: GRANT {', '.join(missing)} ON *.* TO "
            f"{_account(session)}; or create them there with a definer of your choice, and continue with --skip",
        )  # fmt: skip
    if held.isdisjoint({_SYSTEM_USER, "ALL PRIVILEGES"}):
        event(
            _LOG, "a view, procedure or function whose definer is root or another system user will stop the consumer",
            hint="if the leader has such objects, run on the follower: "
            f"GRANT {_SYSTEM_USER} ON *.* TO {_account(session)}",
        )  # fmt: skip


def _account(session: Session) -> str:
    user = str(session.rows("SELECT CURRENT_USER()")[0][0])
    return "@".join(f"'{part}'" for part in user.rsplit("@", 1))


def _privileges(session: Session) -> set[str]:
    """Returns the global privileges of the user, including those of its active roles (manual, "SHOW GRANTS
    Statement").
    """
    return _grants(session).get("*", set())


def _grants(session: Session) -> dict[str, set[str]]:
    """Maps each database (or pattern of names) to the privileges that the user has on it, including those of active
    roles; ``*`` stands for all databases.
    """
    roles = str(session.rows("SELECT CURRENT_ROLE()")[0][0])
    using = "" if roles == "NONE" else f" USING {roles}"
    held: dict[str, set[str]] = {}
    for (line,) in session.rows(f"SHOW GRANTS FOR CURRENT_USER(){using}"):
        match = re.match(r"GRANT (.*) ON (\*|`(?:[^`]|``)*`)\.\* TO ", str(line))
        if match:
            # In the pattern of a grant, a backslash precedes characters that are no wildcards.
            database = re.sub(r"\\([_%])", r"\1", match[2].strip("`").replace("``", "`"))
            held.setdefault(database, set()).update(word.strip() for word in match[1].split(","))
    return held


def load_checkpoint(
    session: Session, *, resource: str, topic: Topic, first: First | None, attachment: Beginning
) -> tuple[Checkpoint, BaseCopy]:
    """Loads the leader's checkpoint from the follower, and the base copy with which the follower began. Creates the
    checkpoint, and the consumer's own tables, if they are missing.

    ``topic`` is the topic whose id the checkpoint contains. ``first()`` returns the sequence of the oldest record in
    it; ``first`` is None if there are many topics. Raises UserError, Stopped, and Disconnected if a server does not
    answer.
    """
    schema = session.schema
    with _own_tables(schema):
        known = _create_tables(session, resource, many=first is None)
        if LEDGER.name in known and not session.rows(ledger_table.has_context(schema)):
            session.run([ledger_table.upgrade(schema).encode()])
        rows = session.rows(Checkpoint.select(resource, schema=schema))
        others = session.rows(Checkpoint.select_offsets(resource, schema=schema)) if first is None else []
        if not rows:
            new = Checkpoint(resource, topic.name, topic.id, schema=schema)
            check_topics(new, topic, {}, first=first)
            session.run([*attachment.begin(session), new.insert().encode()])
            audit_needs.log_settings(session)
            log_missing_capture(session)
        there = _with_chunks(session, Checkpoint.from_rows(rows[0], others, schema=schema)) if rows else new
        base_copy.require_no_rewind(session, there)
        held = attachment.copied(session, now=not rows)
        session.commit()
    return there, held


def read_checkpoint(session: Session, *, resource: str) -> Checkpoint | None:
    """Reads the leader's checkpoint from the follower without creating anything; None if the follower has no checkpoint
    of this leader.

    Raises the errors of ``load_checkpoint``.
    """
    schema = session.schema
    with _own_tables(schema):
        known = _known(session)
        rows = session.rows(Checkpoint.select(resource, schema=schema)) if CHECKPOINT.name in known else []
        if not rows:
            _require_none_elsewhere(session, resource)
            return None
        others = session.rows(Checkpoint.select_offsets(resource, schema=schema)) if OFFSETS.name in known else []
        there = Checkpoint.from_rows(rows[0], others, schema=schema)
        if CHUNKS.name in known:
            there = _with_chunks(session, there)
        base_copy.require_no_rewind(session, there)
        return there


def _with_chunks(session: Session, checkpoint: Checkpoint) -> Checkpoint:
    rows = session.rows(LastChunk.select(checkpoint.resource, schema=session.schema))
    return replace(checkpoint, chunks=LastChunk.from_rows(rows))


@contextmanager
def _own_tables(schema: str) -> Iterator[None]:
    """Raises errors of queries on the consumer's own tables in the ``with`` block as UserError or Disconnected."""
    try:
        yield
    except Stopped:
        raise
    except Interrupted as error:
        raise Disconnected(
            f"the follower cannot be used: {error}", code="CDC-FOLLOWER-GONE", hint=HINTS.get(error.code, _START)
        ) from None
    except Refused as error:
        raise UserError(
            f"the follower's schema {schema} cannot be used: {error}",
            code="CDC-FOLLOWER-SCHEMA",
            hint="it belongs to this program alone: tables checkpoint, chunks, conflicts, copies, ledger, names, "
            "offsets, parked, seeds and types",
        ) from None


def log_missing_capture(session: Session) -> None:
    """Logs a hint if no client reads the follower's binlog. A user without PROCESS does not see other clients."""
    if not _privileges(session).isdisjoint({"PROCESS", "ALL PRIVILEGES"}):
        audit_needs.log_unread(session)


def _create_tables(session: Session, resource: str, *, many: bool) -> set[str]:
    """Creates the missing tables of the consumer; returns the names of the tables that existed before.

    Raises UserError if the leader's checkpoint is in another database.
    """
    schema = session.schema
    # The existing tables are queried first, because each CREATE … IF NOT EXISTS is written to the follower's binlog.
    known = _known(session)
    if CHECKPOINT.name not in known or not session.rows(Checkpoint.select(resource, schema=schema)):
        _require_none_elsewhere(session, resource)
    if CHECKPOINT.name not in known:
        session.run([f"CREATE DATABASE IF NOT EXISTS `{schema}`".encode()])
    wanted = [CHECKPOINT, LEDGER, CONFLICTS, TYPES, parked.TABLE, CHUNKS]
    wanted += [*([OFFSETS] if many else []), *([NAMES] if session.folds_names else [])]
    for table in wanted:
        if table.name not in known:
            session.run([table.create(schema).encode()])
    return known


def _known(session: Session) -> set[str]:
    existing = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{session.schema}'"
    return {str(name) for (name,) in session.rows(existing)}


def _require_none_elsewhere(session: Session, resource: str) -> None:
    """Raises UserError if the leader's checkpoint is in another database. Without this check, all records would be
    applied a second time."""
    for (schema,) in session.rows(checkpoint.others(session.schema)):
        if session.rows(Checkpoint.select(resource, schema=schema)):
            raise UserError(
                f"the follower's checkpoint of {resource!r} is in database {schema}, not in {session.schema}",
                code="CDC-FOLLOWER-OTHER-SCHEMA",
                where="profile key consumer.schema",
                hint=f"set it to {schema!r}: it can't be changed once records were applied",
            )
