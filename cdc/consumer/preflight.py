"""What must be so before anything is applied: the follower's settings and grants, a checkpoint that fits the topic."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping

from cdc.consumer.errors import HINTS, Denied, Interrupted, Locked, Refused, Stopped
from cdc.consumer.follower.session import Session
from cdc.consumer.source.reader import Topic
from cdc.consumer.state import checkpoint, conflicts, ledger_table
from cdc.consumer.state.checkpoint import Checkpoint, Partition
from cdc.errors import Disconnected, UserError
from cdc.service.logs import event
from cdc.service.mysql_connection import TLS_FAILED

__all__ = ["First", "check_topics", "connect", "load_checkpoint"]

_LOG = logging.getLogger("cdc.consumer")
First = Callable[[], int | None]
# The GTIDs of the leader's statements would make it take those of the new topic for done.
_FRESH = (
    "start with a new topic and a fresh follower: drop its schema cdc (consumer.schema) and the replicated "
    "databases, and run RESET BINARY LOGS AND GTIDS (before MySQL 8.4: RESET MASTER), or use another "
    "mysql_resource_name in all profiles"
)
_START = "start the server, or mend the address"
_STATIC = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES", "CREATE VIEW",
    "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE",
    # Without these two the server does not show whether there are any.
    "EVENT", "TRIGGER",
)  # fmt: skip
# GTIDs of our own, the leader's session settings, its views' and routines' definers; any privilege of a row will do.
_DYNAMIC = (
    ("REPLICATION_APPLIER", "SUPER"),
    ("SESSION_VARIABLES_ADMIN", "SYSTEM_VARIABLES_ADMIN", "SUPER"),
    ("SET_ANY_DEFINER", "SET_USER_ID", "SUPER"),
    ("ALLOW_NONEXISTENT_DEFINER", "SET_USER_ID", "SUPER"),
)
_SETTINGS = {
    "gtid_mode": (
        "ON",
        "without GTIDs a statement could run twice after a crash",
        "SET PERSIST enforce_gtid_consistency = ON, then gtid_mode to OFF_PERMISSIVE, ON_PERMISSIVE and ON in turn",
    ),
    "log_bin": ("1", "the audit reads the follower's binlog", "start the server with --log-bin"),
    "lower_case_table_names": (
        "0",
        "two of the leader's tables whose names differ in case would be one",
        "only a new server can have another value",
    ),
    "super_read_only": ("0", "nobody can write", "SET PERSIST super_read_only = OFF"),
    # No session setting does, and SUPER does not for functions that say nothing of what they do.
    "log_bin_trust_function_creators": (
        "1",
        "functions of the leader would be refused",
        "SET PERSIST log_bin_trust_function_creators = ON",
    ),
}


def connect(session: Session, *, name: str) -> None:
    """The first connection, and a look at the server; ``name`` is its name for errors.

    Raises UserError, Stopped, and Disconnected where the server is away.
    """
    where = f"{name} (profile table database)"
    try:
        session.connect()
        problems = list(_problems(session, name))
    except Stopped:
        raise
    except Denied as error:
        raise UserError(
            f"the follower refuses the user: {error}",
            where=where,
            hint="mend user or password, or create the account",
        ) from None
    except Interrupted as error:
        if isinstance(error, Locked):
            raise UserError(f"the follower cannot be used: {error}", where=where, hint="stop one consumer") from None
        hint = HINTS.get(error.code, _START)
        raise Disconnected(f"the follower cannot be used: {error}", where=where, hint=hint) from None
    except Refused as error:
        tls = error.code == TLS_FAILED
        raise UserError(
            f"the follower cannot be used: {error}",
            where=where,
            hint="mend the server's TLS, or check database.tls" if tls else "mend the account or the server",
        ) from None
    # One line a problem, so that all can be mended in one go.
    if len(problems) > 1:
        for problem in problems:
            event(_LOG, "problem", level=logging.ERROR, what=problem)
        raise UserError(f"{len(problems)} problems with the follower, each named above", where=name)
    for problem in problems:
        raise problem


def _problems(session: Session, name: str) -> Iterable[UserError]:
    version = str(session.rows("SELECT VERSION()")[0][0])
    if "mariadb" in version.lower() or int(version.split(".")[0]) < 8:
        yield UserError(f"the follower is {version}", where=name, hint="MySQL 8.0 or newer is needed")
        return
    for variable, (wanted, reason, mend) in _SETTINGS.items():
        value = str(session.rows(f"SELECT @@GLOBAL.{variable}")[0][0])
        if value != wanted:
            yield UserError(f"{variable} is {value}: {reason}", where=name, hint=f"on the follower: {mend}")
    held = _privileges(session)
    ((read_only,),) = session.rows("SELECT @@GLOBAL.read_only")
    if read_only and held.isdisjoint({"CONNECTION_ADMIN", "SUPER", "ALL PRIVILEGES"}):
        mend = f"GRANT CONNECTION_ADMIN ON *.* TO {_account(session)}, or SET PERSIST read_only = OFF"
        yield UserError(
            "read_only is 1, and the user lacks CONNECTION_ADMIN, with which it could write nevertheless",
            where=name,
            hint=f"on the follower: {mend}",
        )
    missing = [privilege for privilege in _STATIC if privilege not in held]
    missing += [choice[0] for choice in _DYNAMIC if held.isdisjoint(choice)]
    if missing and "ALL PRIVILEGES" not in held:
        yield UserError(
            f"the user lacks {', '.join(missing)}",
            where=name,
            hint=f"on the follower: GRANT {', '.join(missing)} ON *.* TO {_account(session)}",
        )


def _account(session: Session) -> str:
    user = str(session.rows("SELECT CURRENT_USER()")[0][0])
    return "@".join(f"'{part}'" for part in user.rsplit("@", 1))


def _privileges(session: Session) -> set[str]:
    """The global privileges of the user and its active roles (manual, "SHOW GRANTS Statement")."""
    roles = str(session.rows("SELECT CURRENT_ROLE()")[0][0])
    using = "" if roles == "NONE" else f" USING {roles}"
    held: set[str] = set()
    for (line,) in session.rows(f"SHOW GRANTS FOR CURRENT_USER(){using}"):
        match = re.match(r"GRANT (.*) ON \*\.\* TO ", str(line))
        if match:
            held.update(word.strip() for word in match.group(1).split(","))
    return held


def load_checkpoint(session: Session, *, resource: str, topic: Topic, first: First | None) -> Checkpoint:
    """The leader's checkpoint in the follower; made, with its tables, where there is none.

    Raises UserError, Stopped, and Disconnected where the server goes away. ``topic`` stands for the stream; for
    ``first`` see ``check_topics``.
    """
    schema = session.schema
    tables = {
        "checkpoint": checkpoint.create(schema),
        "ledger": (ledger_table.create(schema),),
        "conflicts": (conflicts.create(schema),),
    }
    if first is None:
        tables["offsets"] = (checkpoint.create_offsets(schema),)
    try:
        # Asked first, because CREATE … IF NOT EXISTS goes into the follower's binlog every time.
        there = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"
        known = {name for (name,) in session.rows(there)}
        if "checkpoint" not in known or not session.rows(Checkpoint.select(resource, schema=schema)):
            _require_none_elsewhere(session, resource)
        for statement in (statement for name in tables if name not in known for statement in tables[name]):
            session.run([statement.encode()])
        if "ledger" in known and not session.rows(ledger_table.has_context(schema)):
            session.run([ledger_table.upgrade(schema).encode()])
        rows = session.rows(Checkpoint.select(resource, schema=schema))
        others = session.rows(Checkpoint.select_offsets(resource, schema=schema)) if first is None else []
        if not rows:
            new = Checkpoint(resource, topic.name, topic.id, schema=schema)
            check_topics(new, topic, {}, first=first)
            session.run([new.insert().encode()])
        session.commit()
    except Stopped:
        raise
    except Interrupted as error:
        raise Disconnected(f"the follower cannot be used: {error}", hint=HINTS.get(error.code, _START)) from None
    except Refused as error:
        raise UserError(
            f"the follower's schema {schema} cannot be used: {error}",
            hint="it belongs to this program alone: tables checkpoint, conflicts, ledger and offsets",
        ) from None
    return Checkpoint.from_rows(rows[0], others, schema=schema) if rows else new


def _require_none_elsewhere(session: Session, resource: str) -> None:
    """Raise UserError where the leader's checkpoint is in another database: everything would be applied once more."""
    for (schema,) in session.rows(checkpoint.others(session.schema)):
        if session.rows(Checkpoint.select(resource, schema=schema)):
            raise UserError(
                f"the follower's checkpoint of {resource!r} is in database {schema}, not in {session.schema}",
                where="profile key consumer.schema",
                hint=f"set it to {schema!r}: it can't be changed once a follower has begun",
            )


def check_topics(checkpoint: Checkpoint, topic: Topic, others: Mapping[str, Topic], *, first: First | None) -> None:
    """Raises UserError where the topics do not continue the checkpoint: another one, cut, or behind it.

    ``topic`` stands for the stream; ``others`` are those of its other topics that are there. ``first`` asks which
    sequence the oldest record of the topic has, None if nobody knows; it is None where the records are in many topics,
    in which a sequence that is gone shows only when all are read.
    """
    if len(topic.ranges) != 1:
        raise UserError(
            f"the topic has {len(topic.ranges)} partitions, which have no order among them",
            where=f"topic {topic.name}",
            hint="let cdc-producer create the topic: it makes one partition",
        )
    if (checkpoint.topic, checkpoint.topic_id) != (topic.name, topic.id):
        raise UserError(
            f"the follower's checkpoint is of topic {checkpoint.topic} (id {checkpoint.topic_id}), "
            f"this is another one (id {topic.id})",
            where=f"topic {topic.name}",
            hint=f"set kafka.topic and kafka.layout as they were; if it was deleted and made anew, {_FRESH}",
        )
    places = {Partition(topic.name, number, topic.id): 0 for number in topic.ranges} | dict(checkpoint.offsets)
    for place, offset in places.items():
        there = topic if place.topic == topic.name else others.get(place.topic)
        _check_place(place, offset, there, checkpoint.sequence, first)


def _check_place(place: Partition, offset: int, topic: Topic | None, sequence: int, first: First | None) -> None:
    where = f"topic {place.topic}, partition {place.number}"
    if topic is None or topic.id != place.topic_id or place.number not in topic.ranges:
        raise UserError("the topic was deleted, or made anew", where=f"{where}, after sequence {sequence}", hint=_FRESH)
    low, high = topic.ranges[place.number]
    if offset > high:
        raise UserError(
            f"the checkpoint is ahead of the topic: it is at offset {offset}, the topic ends at {high}",
            where=f"{where}, after sequence {sequence}",
            hint=f"the topic lost records: {_FRESH}",
        )
    if first is None or offset >= low:
        return
    # What is gone may have been applied: a Kafka transaction's end takes an offset too, after the last record's.
    oldest = first()
    if high > offset + 1 if oldest is None else oldest > sequence + 1:
        raise UserError(
            f"retention has cut the topic: the checkpoint is at offset {offset}, the topic begins at {low}",
            where=f"{where}, sequence {sequence + 1} is needed",
            hint=f"raise the topic's retention.ms and retention.bytes, then {_FRESH}",
        )
