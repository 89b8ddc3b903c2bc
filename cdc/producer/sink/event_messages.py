"""Writes messages about binlog events that are part of no record, for people and monitors.

{"uri":"flv://<resource>","bn_file":{"fileName":…,"offset":…},"event":{"Rotate":{…}}}

These messages have no sequence and are not replicated. Rows events, table maps and statements have no message: the
records contain the events that pass the filters. The message of a RowsQuery contains only the event's length: its text
contains values of rows, also of tables that the filters leave out. A compressed transaction has one message; the events
inside it have no messages. Module ``cdc.producer.binlog.events`` explains the layouts of events.
"""

import json
from collections.abc import Callable
from struct import error as StructError
from typing import Any
from urllib.parse import quote

from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import (
    FORMAT_CREATED,
    FORMAT_VERSION,
    GTID_LAST_COMMITTED,
    GTID_SEQUENCE_NUMBER,
    HEADER_BYTES,
    XID,
    RawEvent,
    gtid,
)
from cdc.producer.sink.record_parts import Message

__all__ = ["EventMessages"]

Fields = dict[str, Any]


class EventMessages:
    """Writes messages for ``topic`` about the events after the position ``shown``.

    Events that the leader generates only for a connection (rotations at its start, heartbeats) have no position: their
    offset is 0, and the leader sends them again over each connection.
    """

    def __init__(self, *, resource: str, topic: str, shown: Position | None) -> None:
        self._uri = f"flv://{quote(resource, safe='')}"
        self._topic = topic
        self._shown = shown

    def message(self, event: RawEvent) -> Message | None:
        """Returns the message about ``event``; None if an event of its type has no message, or if the message was
        written before.
        """
        if event.type in et.IN_RECORDS:
            return None
        if event.offset:
            if self._shown is not None and event.position.place <= self._shown.place:
                return None
            self._shown = event.position
        header = ev.header(event.data)
        body = {
            "uri": self._uri,
            "bn_file": {"fileName": event.file, "offset": event.offset},
            "event": {et.NAMES.get(event.type, f"Type{event.type}"): _fields(event)},
        }
        value = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        described = json.dumps(header._asdict(), separators=(",", ":")).encode()
        return Message(
            self._topic, self._uri.encode(), value, header.timestamp * 1000, [("mysql_binlog_headers", described)]
        )


def _fields(event: RawEvent) -> Fields:
    read = _READERS.get(event.type, _length)
    try:
        return read(event)
    except (PromiseError, ValueError, LookupError, StructError):
        # The decoder, which decodes the event next, decides whether the stream can continue without the event.
        return _length(event)


def _length(event: RawEvent) -> Fields:
    return {"length": event.size - HEADER_BYTES}


def _rotate(event: RawEvent) -> Fields:
    following = ev.rotate(event)
    return {"file_name": following.file, "position": following.offset}


def _heartbeat(event: RawEvent) -> Fields:
    reached = ev.heartbeat(event)
    return {"file_name": reached.file, "position": reached.offset}


def _format_description(event: RawEvent) -> Fields:
    data = event.data
    return {
        "binlog_version": int.from_bytes(data[FORMAT_VERSION], "little"),
        "server_version": ev.server_version(event),
        "created": int.from_bytes(data[FORMAT_CREATED], "little"),
        "checksum": {0: "NONE", 1: "CRC32"}.get(data[-1], "unknown"),
    }


def _gtid(event: RawEvent) -> Fields:
    named, data = gtid(event), event.data
    return {
        "gtid": named.gtid,
        "last_committed": int.from_bytes(data[GTID_LAST_COMMITTED], "little"),
        "sequence_number": int.from_bytes(data[GTID_SEQUENCE_NUMBER], "little"),
        "commit_us": named.commit_us,
    }


def _tagged_gtid(event: RawEvent) -> Fields:
    return gtid(event)._asdict()


def _previous_gtids(event: RawEvent) -> Fields:
    """Returns the GTID set of a Previous_gtids event as text. Returns only the event's length if the set contains tags:
    the highest byte of the count then marks another layout. Raises ValueError for a damaged event.
    """
    data, at = event.data, HEADER_BYTES + 8
    if data[at - 1]:
        return _length(event)
    sources = []
    for _ in range(_fitting(int.from_bytes(data[at - 8 : at], "little"), 24, len(data) - at)):
        sid, count, at = data[at : at + 16].hex(), int.from_bytes(data[at + 16 : at + 24], "little"), at + 24
        intervals = []
        for _ in range(_fitting(count, 16, len(data) - at)):
            low, end = (int.from_bytes(data[at + part : at + part + 8], "little") for part in (0, 8))
            intervals.append(f"{low}-{end - 1}" if end - 1 > low else str(low))
            at += 16
        name = f"{sid[:8]}-{sid[8:12]}-{sid[12:16]}-{sid[16:20]}-{sid[20:]}"
        sources.append(":".join([name, *intervals]))
    return {"gtid_set": ",".join(sources)}


def _fitting(count: int, size: int, room: int) -> int:
    """Returns ``count``, the number of items of ``size`` bytes. Raises ValueError if they need more than ``room``: a
    loop over the count of a damaged event would not end.
    """
    if count * size > room:
        raise ValueError("the event is shorter than its counts say")
    return count


def _xid(event: RawEvent) -> Fields:
    return {"xid": int.from_bytes(event.data[XID], "little")}


def _nothing(event: RawEvent) -> Fields:
    return {}


_READERS: dict[int, Callable[[RawEvent], Fields]] = {
    et.ROTATE: _rotate,
    et.FORMAT_DESCRIPTION: _format_description,
    et.GTID: _gtid,
    et.ANONYMOUS_GTID: _gtid,
    et.GTID_TAGGED: _tagged_gtid,
    et.PREVIOUS_GTIDS: _previous_gtids,
    et.HEARTBEAT: _heartbeat,
    et.HEARTBEAT_V2: _heartbeat,
    et.XID: _xid,
    et.STOP: _nothing,
}
