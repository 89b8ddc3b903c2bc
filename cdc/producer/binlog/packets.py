"""Cuts the packets of a dump into events, with their checksums compared, their file and their 64-bit position."""

import re
from zlib import crc32

from cdc.errors import CdcError, Disconnected, PromiseError, UserError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog import fast_path
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction
from cdc.producer.binlog.layout import (
    CHECKSUM_BYTES,
    FORMAT_CREATED,
    HEADER_BYTES,
    LARGEST_PAYLOAD,
    NEXT_POSITION_AT,
    PACKET_HEADER_BYTES,
    PACKET_LENGTH_MASK,
    STATUS_BYTES,
    STATUS_END,
    STATUS_ERROR,
    STATUS_EVENT,
    TYPE_AT,
)
from cdc.producer.binlog.spool import Spool

__all__ = ["Packets"]

# More than stand before the compressed bytes of a Transaction_payload event, and before the first row of a rows event,
# which has a bitmap of up to 4096 columns for each image.
_SPOOL_HEAD_BYTES = 4000
_PAYLOAD_TYPE_AT = STATUS_BYTES + TYPE_AT
_END_PAYLOAD_BYTES = 9  # a payload with status END and at least so many bytes is no end of the stream
_NEXT_POSITION = slice(NEXT_POSITION_AT, NEXT_POSITION_AT + 4)
_FILE_BEGINS = 4  # bytes that are no event
_ERROR_CODE = slice(1, 3)
_ERROR_TEXT_AT = 9  # behind the code and the SQLSTATE
_DAMAGED_HINT = "check the leader's disk; give the producer a new topic and the follower a fresh copy"
_FILE = re.compile(rb".+\.[0-9]{6,}")
# Errors with which a server ends a dump because it shuts down, or because the connection or its thread was ended.
_ENDED = frozenset({1053, 1158, 1159, 1160, 1161, 1317, 2006, 2013, 3032})
_POSITION_REFUSED = 1236


class Packets:
    """The packets of one dump, in order; ``name`` is the server's, for errors."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._parts: list[bytes] = []
        self._spool: Spool | None = None
        self._file = ""
        self._end = 0
        self._checksum_bytes: int | None = None  # None before the first format description
        self.fault: CdcError | None = None

    def cut(self, data: bytes) -> tuple[list[RawEvent | SimpleTransaction], bytes]:
        """The events of the packets in ``data``, without their checksums, and the rest: part of a packet.

        Raises PromiseError for a damaged event, Disconnected and UserError for an error that the leader sent. Where
        undamaged events come before it they are returned, and the error is in ``fault`` instead.
        """
        events: list[RawEvent | SimpleTransaction] = []
        at, arrived = 0, len(data)
        while True:
            if self._checksum_bytes is not None and not self._parts and not self._spool:
                at, self._end = fast_path.cut(data, at, self._file, self._end, self._checksum_bytes, events)
            payload_at = at + PACKET_HEADER_BYTES
            if payload_at > arrived:
                return events, data[at:]
            after = payload_at + (int.from_bytes(data[at:payload_at], "little") & PACKET_LENGTH_MASK)
            if after > arrived:
                return events, data[at:]
            try:
                event = self._ended(data[payload_at:after])
            except CdcError as error:
                if not events:
                    raise
                self.fault = error
                return events, b""
            at = after
            if event is not None:
                events.append(event)

    def close(self) -> None:
        """Drop an event that has not arrived completely."""
        if self._spool:
            self._spool.close()

    def _ended(self, part: bytes) -> RawEvent | None:
        """The event that the payload ``part`` completes; None where it continues: 16 MiB and more take several packets.

        A compressed transaction of that size goes to disk, and so do rows.
        """
        continues = len(part) == LARGEST_PAYLOAD
        if continues and self._starts_spooled(part):
            self._spool = Spool(part[STATUS_BYTES:_SPOOL_HEAD_BYTES])
            self._spool.write(memoryview(part)[STATUS_BYTES:])
        elif self._spool:
            self._spool.write(part)
            if not continues:
                return self._spooled(self._spool)
        elif continues:
            self._parts.append(part)
        else:
            payload = b"".join((*self._parts, part))
            self._parts.clear()
            return self._event(payload)
        return None

    def _starts_spooled(self, part: bytes) -> bool:
        """Whether ``part`` is the first of an event that goes to disk."""
        return not self._parts and not self._spool and part[0] == STATUS_EVENT and part[_PAYLOAD_TYPE_AT] in et.SPOOLED

    def _spooled(self, spool: Spool) -> RawEvent:
        if not spool.end(checksum_bytes=self._checksum_bytes or 0):
            raise self._wrong_checksum()
        self._spool = None
        return self._with_position(spool.head[TYPE_AT], spool.head, spool)

    def _event(self, payload: bytes) -> RawEvent:
        """The event in a payload; keeps track of the file, of the 64-bit position and of the checksum algorithm."""
        status = payload[0] if payload else None
        if status == STATUS_ERROR:
            raise self._refusal(payload)
        if status == STATUS_END and len(payload) < _END_PAYLOAD_BYTES:
            raise Disconnected("the leader ended the stream", where=self._name)
        if status != STATUS_EVENT or len(payload) <= HEADER_BYTES:
            raise Disconnected("the leader sent a packet that is not an event", where=self._name)
        kind, body = payload[_PAYLOAD_TYPE_AT], payload[STATUS_BYTES:-CHECKSUM_BYTES]
        is_right = crc32(body) == int.from_bytes(payload[-CHECKSUM_BYTES:], "little")
        if kind == et.FORMAT_DESCRIPTION:
            # A format description has a checksum whether or not it announces checksums for the events that follow.
            self._checksum_bytes = CHECKSUM_BYTES if body[-1] == 1 else 0
            damaged, data = not (is_right or _was_right(body, payload[-CHECKSUM_BYTES:])), body
        elif self._checksum_bytes is None:
            # The rotation that opens a dump comes before the format description: only a right checksum shows that it
            # has one.
            data = body if is_right else payload[STATUS_BYTES:]
            damaged = kind != et.ROTATE or not _FILE.fullmatch(ev.rotate_name(data))
        else:
            data, damaged = (body, not is_right) if self._checksum_bytes else (payload[STATUS_BYTES:], False)
        if damaged:
            raise self._wrong_checksum()
        event = self._with_position(kind, data, None)
        if kind == et.ROTATE:
            self._rotate(event)
        return event

    def _wrong_checksum(self) -> PromiseError:
        return PromiseError(
            "an event's checksum is wrong: the leader's binlog is damaged",
            where=f"after {self._file}:{self._end}",
            hint=_DAMAGED_HINT,
        )

    def _with_position(self, kind: int, data: bytes, spool: Spool | None) -> RawEvent:
        header = ev.header(data)
        end = self._end_of(kind, header)
        return RawEvent(kind, data, self._file, end - header.event_length if end else 0, end, spool)

    def _rotate(self, event: RawEvent) -> None:
        try:
            following = ev.rotate(event)
        except UnicodeDecodeError:
            following = None
        if following is None or not _FILE.fullmatch(ev.rotate_name(event.data)):
            raise PromiseError(
                "a rotation names no file: the leader's binlog is damaged",
                where=f"after {self._file}:{self._end}",
                hint=_DAMAGED_HINT,
            )
        self._file, self._end = following.file, following.offset

    def _end_of(self, kind: int, header: ev.Header) -> int:
        """The position after the event in its file; 0 for events that the leader makes up for the connection."""
        if kind in et.HEARTBEATS or header.next_event_position == 0:
            return 0
        end = self._end & ~0xFFFFFFFF | header.next_event_position
        if end < self._end:
            end += 1 << 32  # the header's position has 32 bits and wraps in files over 4 GiB
        self._end = end
        return end

    def _refusal(self, payload: bytes) -> CdcError:
        """The error that the leader sent instead of an event, as one of ours."""
        code = int.from_bytes(payload[_ERROR_CODE], "little")
        message = payload[_ERROR_TEXT_AT:].decode("utf-8", "replace")
        if "same server_uuid" in message or "same server_id" in message:
            return Disconnected(f"another replica has our server id or UUID: {message}", where=self._name)
        if code == _POSITION_REFUSED and "anonymous" in message.lower():
            return UserError(
                f"the server refuses to send transactions without GTIDs: {message}",
                where=self._name,
                hint='begin behind them: name a new topic, and set producer.start to "copy", or to "now"',
            )
        if code == _POSITION_REFUSED:
            return UserError(
                f"the leader refuses the position: {message}",
                where=self._name,
                hint="it no longer has the binlog we need; use a new topic and a fresh copy of the leader",
            )
        if code in _ENDED:
            return Disconnected(f"the leader ended the stream: {message}", where=self._name)
        return PromiseError(f"the leader refuses to send its binlog ({code}): {message}", where=self._name)


def _was_right(description: bytes, checksum: bytes) -> bool:
    """Whether a format description has the checksum that it had before the leader changed it for this dump.

    Where a dump begins amid a file the server puts zeros for the time at which it was started, which only the first
    file since then has, and for the event's end. In a file without checksums it does not sum the event up again.
    """
    if description[-1] != 0 or ev.header(description).next_event_position:
        return False
    restored = bytearray(description)
    restored[_NEXT_POSITION] = (_FILE_BEGINS + len(description) + CHECKSUM_BYTES).to_bytes(4, "little")
    written = ev.header(description).timestamp
    # The second may have changed between the two clock readings.
    for started in (0, written, written - 1, written + 1):
        restored[FORMAT_CREATED] = (started % (1 << 32)).to_bytes(4, "little")
        if crc32(restored) == int.from_bytes(checksum, "little"):
            return True
    return False
