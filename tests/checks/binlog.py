"""A sandbox server's binlog, read from its files."""

import struct
from collections.abc import Iterator

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import Query, RawEvent
from cdc.producer.binlog.leader import first_known
from cdc.sandbox.server.mysql import MySql

_CHECKSUM = 4


def position(server: MySql) -> tuple[str, int]:
    """Where the server's binlog ends."""
    with server.root() as connection, connection.cursor() as cursor:
        file, offset, *_ = first_known(cursor, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")[0]
        return file, offset


def events(server: MySql, start: tuple[str, int]) -> Iterator[RawEvent]:
    """The events, without their checksums, in the file of ``start`` from there on."""
    file, at = start
    data = (server.data / file).read_bytes()
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 9)
        yield RawEvent(data[at + 4], data[at : at + length - _CHECKSUM], file, at, at + length)
        at += length


def queries(server: MySql, start: tuple[str, int]) -> Iterator[Query]:
    """The statements logged in the file of ``start`` from there on."""
    return (ev.query(event) for event in events(server, start) if event.type == et.QUERY)
