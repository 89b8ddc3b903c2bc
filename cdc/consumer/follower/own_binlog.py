"""Finds in the follower's binlog whether a connection has executed a statement, and the GTID that the server gave it.

A consumer that may not assign GTIDs needs this after a crash. The text in the binlog does not identify the statement,
because the server rewrites some statements and drops comments. But each event contains the id of the connection and the
session's time. The consumer sets the session's time to the time of the statement on the leader.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import pymysql

from cdc.consumer.errors import Interrupted
from cdc.consumer.follower.session import Session, translated
from cdc.errors import Disconnected
from cdc.model.gtid import GtidSet
from cdc.service.mysql_connection import connected

__all__ = ["StatementPlace", "executed_gtid"]

_DUMP_GTID = 0x1E  # the command COM_BINLOG_DUMP_GTID
_NON_BLOCKING, _BY_GTIDS = 0x01, 0x04
_FIRST_OFFSET = 4
_HEADER = struct.Struct("<IBIIIH")  # time, type, server id, length, next position, flags
_QUERY, _GTID, _TAGGED_GTID = 2, 33, 42
_TIMEOUTS = {"read_timeout": 60, "write_timeout": 60}
# The texts of Query events that only begin or end a transaction with rows.
_OF_ROWS = (b"BEGIN", b"COMMIT", b"ROLLBACK", b"SAVEPOINT", b"XA ")


class StatementPlace(NamedTuple):
    """Identifies a statement in a server's binlog. ``server`` is the UUID of the server, ``connection`` the id of the
    connection, and ``second`` the time in the statement's event; with None, any time matches. ``executed`` are the
    GTIDs that the server itself had assigned before the statement.
    """

    server: str
    connection: int
    second: int | None
    executed: str

    @classmethod
    def of(cls, session: Session, *, connection: int, second: int | None) -> Self:
        """Returns the place of a statement that is about to be executed on a ``connection`` to the session's server."""
        own = _own(GtidSet.parse(_executed(session)), session.server)
        return cls(session.server, connection, second, str(own))


def executed_gtid(session: Session, place: StatementPlace) -> str | None:
    """Returns the GTID under which the follower executed the statement at ``place``; None if it has not executed the
    statement.

    The statement must not be running. Raises Interrupted, and Refused if the server does not send its binlog, or has
    purged the part after ``place.executed``.
    """
    executed = GtidSet.parse(_executed(session))
    own = _own(executed, place.server)
    # All other GTIDs are excluded, so that the server sends only its own transactions since ``place.executed``.
    excluded = executed.minus(own.minus(GtidSet.parse(place.executed)))
    if executed.issubset(excluded):
        return None
    try:
        with connected(**session.settings() | _TIMEOUTS) as connection:
            _require_same(connection, session)
            return _found(connection, excluded, place)
    except Disconnected as error:  # raised if the command that prints the password fails
        raise Interrupted(str(error)) from None
    except (pymysql.MySQLError, OSError) as error:
        raise translated(error) from None


def _found(connection: Any, excluded: GtidSet, place: StatementPlace) -> str | None:
    gtid = ""
    for event in _events(connection, excluded):
        second, kind, *_ = _HEADER.unpack_from(event)
        if kind == _GTID:
            gtid = _gtid(event)
        elif kind == _TAGGED_GTID:
            gtid = ""
        elif kind == _QUERY and gtid.startswith(place.server):
            thread, text = _query(event)
            if thread == place.connection and place.second in (None, second) and not text.startswith(_OF_ROWS):
                return gtid
    return None


def _executed(session: Session) -> str:
    return str(session.rows("SELECT @@GLOBAL.gtid_executed")[0][0])


def _own(executed: GtidSet, server: str) -> GtidSet:
    """Returns the GTIDs that ``server`` assigned itself. GTIDs with a tag are left out, because other users requested
    them.
    """
    return GtidSet({source: each for source, each in executed.intervals() if source == server.lower()})


def _require_same(connection: Any, session: Session) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@server_uuid")
        ((found,),) = cursor.fetchall()
    if found != session.server:
        raise Interrupted("a new connection leads to another server than the one that has the lock")


def _events(connection: Any, excluded: GtidSet) -> Iterator[bytes]:
    """Yields the events of the server's binlog up to its end, without the ``excluded`` transactions."""
    # Without this variable, the server refuses to send a binlog with checksums. With NONE, it sends no checksums.
    with connection.cursor() as cursor:
        cursor.execute("SET @source_binlog_checksum='NONE', @master_binlog_checksum='NONE'")
    encoded = excluded.encode()
    # With server id 0 the server ends the dump at the end of its binlog, and several clients may use the same id.
    begin = struct.pack("<HIIQI", _NON_BLOCKING | _BY_GTIDS, 0, 0, _FIRST_OFFSET, len(encoded))
    connection._execute_command(_DUMP_GTID, begin + encoded)
    while not (packet := connection._read_packet()).is_eof_packet():
        yield packet.get_all_data()[1:]


def _gtid(event: bytes) -> str:
    """Parses a Gtid event (MySQL source, class Gtid_event): flags, the UUID's bytes, and the number."""
    uuid, number = event[_HEADER.size + 1 : _HEADER.size + 17].hex(), event[_HEADER.size + 17 : _HEADER.size + 25]
    parts = (uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:])
    return f"{'-'.join(parts)}:{int.from_bytes(number, 'little')}"


def _query(event: bytes) -> tuple[int, bytes]:
    """Parses a Query event (MySQL source, class Query_event): returns the id of the connection, and the statement."""
    thread, _, database, _, variables = struct.unpack_from("<IIBHH", event, _HEADER.size)
    return thread, event[_HEADER.size + 13 + variables + database + 1 :]
