"""The packets that a leader sends, cut into events: their checksums, their files and their 64-bit positions.

Packets: MySQL protocol, "MySQL Packets" (3 bytes of length, 1 of sequence). The first byte in each is a status, 0 where
an event follows; an event ends with its CRC-32 unless its file's format description says otherwise.
"""

import functools
import re
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any
from zlib import crc32

from cdc.errors import CdcError, Disconnected, PromiseError, UserError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import SINGLE, RawEvent, Single
from cdc.producer.binlog.spool import Spool

__all__ = ["Packets"]

_MAX_PACKET = 0xFFFFFF
_CHECKSUM_BYTES = ev.CHECKSUM_BYTES
_SMALLEST = 4 + 1 + ev.HEADER_BYTES + _CHECKSUM_BYTES  # a packet with an event: what is shorter is a message to us
_WORD = Struct("<I").unpack_from
_LENGTH = 0xFFFFFF  # the bits of a packet's first word that are its length
# Of a packet with an event: length and number, status, and of the event's header type, length and next position.
_HEAD_BYTES = 22
_HEAD_OF_SPOOL = 1000  # bytes, more than stand before the compressed ones
_HEAD = Struct("<IB4xB4xII").unpack_from
_XID_BYTES = 1 + ev.HEADER_BYTES + 8 + _CHECKSUM_BYTES
# The end of a rows event and the Xid behind it: checksum; length and number, status, event, checksum.
_XID_BEHIND = Struct("<IIB27sI").unpack_from
_new = tuple.__new__  # RawEvent(…) itself takes three times as long
# Events that say nothing about the file or the connection.
_PLAIN = frozenset({et.QUERY, et.XID, et.TABLE_MAP, et.GTID, et.ANONYMOUS_GTID, et.GTID_TAGGED, *et.ROWS})
_GTIDS = frozenset({et.GTID, et.ANONYMOUS_GTID, et.GTID_TAGGED})
_DAMAGED_HINT = "check the leader's disk; give the producer a new topic and the follower a fresh copy"
_FILE = re.compile(rb".+\.[0-9]{6,}")


class Packets:
    """What one dump sends, in order; ``name`` is the server's, for errors."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._begun: list[bytes] = []
        self._spool: Spool | None = None
        self._file = ""
        self._end = 0
        self._checksum: int | None = None
        self.fault: CdcError | None = None

    def cut(self, data: bytes) -> tuple[list[RawEvent | Single], bytes]:
        """The events of the packets in ``data``, without their checksums, and what is left: part of a packet.

        This runs for every event, so what is true of nearly all of them is done here in one go: one packet, a whole
        header, a checksum, a position that grows. All others take the way through ``_event``. Of the smallest
        transactions, which most are, all five events are cut at once.

        Raises PromiseError for an event that was damaged, Disconnected and UserError for the leader's own words. Where
        sound events came before, they are returned, and ``fault`` is what follows them.
        """
        events: list[RawEvent | Single] = []
        at, arrived = 0, len(data)
        file, last, plain, sum_bytes = self._file, self._end, self._plain(), self._checksum or 0
        while arrived - at >= 4:
            whole_head = arrived - at >= _HEAD_BYTES
            length, status, kind, size, low = _HEAD(data, at) if whole_head else (*_WORD(data, at), 0xFE, 0, 0, 0)
            after = at + 4 + (length & _LENGTH)
            if after > arrived:
                break
            if kind in plain and _SMALLEST < after - at < _MAX_PACKET and not status:
                if kind in _GTIDS and sum_bytes and (found := _single(data, at, after, file, last)):
                    single, at = found
                    last = single[-1]
                    events.append(single)
                    continue
                body, end = data[at + 5 : after - sum_bytes], last & ~0xFFFFFFFF | low
                if end > last and (not sum_bytes or crc32(body) == _WORD(data, after - sum_bytes)[0]):
                    events.append(_new(RawEvent, (kind, body, file, end - size, end, None)))
                    at, last = after, end
                    continue
            self._end = last
            try:
                event = self._ended(data[at + 4 : after])
            except CdcError as error:
                if not events:
                    raise
                self.fault = error
                return events, b""
            at = after
            if event is not None:
                events.append(event)
            file, last, plain, sum_bytes = self._file, self._end, self._plain(), self._checksum or 0
        self._end = last
        return events, data[at:]

    def close(self) -> None:
        """Drop an event of which the rest will not come."""
        if self._spool:
            self._spool.close()

    def _plain(self) -> frozenset[int]:
        """The types of events to which nothing unusual applies just now."""
        return _PLAIN if self._checksum is not None and not self._begun and not self._spool else frozenset()

    def _ended(self, part: bytes) -> RawEvent | None:
        """The event that ``part`` ends, or None where it goes on: 16 MiB and more take several packets."""
        goes_on = len(part) == _MAX_PACKET
        if goes_on and not self._begun and not self._spool and part[:1] == b"\0" and part[5] == et.TRANSACTION_PAYLOAD:
            self._spool = Spool(part[1:_HEAD_OF_SPOOL])
            self._spool.write(memoryview(part)[1:])
        elif self._spool:
            self._spool.write(part)
            if not goes_on:
                return self._spooled(self._spool)
        elif goes_on:
            self._begun.append(part)
        else:
            payload = b"".join((*self._begun, part))
            self._begun.clear()
            return self._event(payload)
        return None

    def _spooled(self, spool: Spool) -> RawEvent:
        if not spool.end(checksum_bytes=self._checksum or 0):
            raise self._wrong_checksum()
        self._spool = None
        return self._placed(et.TRANSACTION_PAYLOAD, spool.head, spool)

    def _event(self, packet: bytes) -> RawEvent:
        """The event in a packet; keeps track of the file, of the 64-bit offset and of the checksum algorithm."""
        status = packet[0] if packet else None
        if status == 0xFF:
            raise self._refusal(packet)
        if status == 0xFE and len(packet) < 9:
            raise Disconnected("the leader ended the stream", where=self._name)
        if status != 0 or len(packet) <= ev.HEADER_BYTES:
            raise Disconnected("the leader sent something that is no event", where=self._name)
        kind, body = packet[5], packet[1:-_CHECKSUM_BYTES]
        summed = crc32(body) == int.from_bytes(packet[-_CHECKSUM_BYTES:], "little")
        if kind == et.FORMAT_DESCRIPTION:
            # A format description is summed whether or not it announces sums for the events that follow.
            self._checksum = _CHECKSUM_BYTES if body[-1] == 1 else 0
            damaged, data = not summed, body
        elif self._checksum is None:
            # The rotation that opens a dump comes before the format description: only the sum itself tells.
            data = body if summed else packet[1:]
            damaged = kind != et.ROTATE or not _FILE.fullmatch(ev.rotate_name(data))
        else:
            data, damaged = (body, not summed) if self._checksum else (packet[1:], False)
        if damaged:
            raise self._wrong_checksum()
        event = self._placed(kind, data, None)
        if kind == et.ROTATE:
            self._rotate(event)
        return event

    def _wrong_checksum(self) -> PromiseError:
        return PromiseError(
            "an event's checksum is wrong: the leader's binlog is damaged",
            where=f"after {self._file}:{self._end}",
            hint=_DAMAGED_HINT,
        )

    def _placed(self, kind: int, data: bytes, spool: Spool | None) -> RawEvent:
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
        """Where the event ends in its file; 0 for those that the leader makes up for the connection."""
        if kind in (et.HEARTBEAT, et.HEARTBEAT_V2) or header.next_event_position == 0:
            return 0
        end = self._end & ~0xFFFFFFFF | header.next_event_position
        if end < self._end:
            end += 1 << 32  # the header's position has 32 bits and wraps in files over 4 GiB
        self._end = end
        return end

    def _refusal(self, packet: bytes) -> CdcError:
        code = int.from_bytes(packet[1:3], "little")
        message = packet[9:].decode("utf-8", "replace")
        if "same server_uuid" in message or "same server_id" in message:
            return Disconnected(f"another reader took our place at the leader: {message}", where=self._name)
        if code == 1236:
            return UserError(
                f"the leader refuses the position: {message}",
                where=self._name,
                hint="it no longer has the binlog we need; use a new topic and a fresh copy of the leader",
            )
        if code in (1053, 1158, 1159, 1160, 1161, 1317, 2006, 2013, 3032):
            return Disconnected(f"the leader ended the stream: {message}", where=self._name)
        return PromiseError(f"the leader refuses to send its binlog ({code}): {message}", where=self._name)


def _single(data: bytes, at: int, begin_at: int, file: str, last: int) -> tuple[Single, int] | None:
    """The transaction whose GTID event's packet is at ``at``, and where its packets end; the next one is at
    ``begin_at``, and the position before is ``last``. None where it is not such a one, not all here, or not sound.

    One ``unpack`` for three events and one for the last: that costs a third of cutting them one by one.
    """
    try:
        map_at = begin_at + 4 + (_WORD(data, begin_at)[0] & _LENGTH)
        rows_at = map_at + 4 + (_WORD(data, map_at)[0] & _LENGTH)
        xid_at = rows_at + 4 + (_WORD(data, rows_at)[0] & _LENGTH)
        gtid, gtid_sum, s1, begin, begin_sum, s2, table_map, map_sum, s3, kind = _unpacker(
            begin_at - at, map_at - begin_at, rows_at - map_at
        )(data, at)
        if kind not in et.ROWS or begin[4] != et.QUERY or table_map[4] != et.TABLE_MAP:
            return None
        rows_sum, length, s4, xid, xid_sum = _XID_BEHIND(data, xid_at - _CHECKSUM_BYTES)
    except (StructError, IndexError):
        return None
    rows = data[rows_at + 5 : xid_at - _CHECKSUM_BYTES]
    end = last & ~0xFFFFFFFF | _WORD(xid, 13)[0]
    if (
        (s1 or s2 or s3 or s4 or xid[4] != et.XID or length & _LENGTH != _XID_BYTES or end <= last)
        or (crc32(gtid) != gtid_sum or crc32(begin) != begin_sum or crc32(table_map) != map_sum)
        or (crc32(rows) != rows_sum or crc32(xid) != xid_sum)
    ):
        return None
    return _new(Single, (SINGLE, gtid, begin, table_map, rows, xid, file, end)), xid_at + 4 + _XID_BYTES


@functools.lru_cache(maxsize=1000)
def _unpacker(gtid: int, begin: int, table_map: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Reads three packets of these sizes: of each its status (but the first's), event and checksum; and of the packet
    that follows the status and its event's type. Raises StructError for sizes that no event has."""
    frame = 5 + _CHECKSUM_BYTES
    return Struct(f"<5x{gtid - frame}sI4xB{begin - frame}sI4xB{table_map - frame}sI4xB4xB").unpack_from
