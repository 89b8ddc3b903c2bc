"""Cuts the packets of a dump into events, compares the events' checksums, and computes their file and 64-bit position.

The fast path cuts packets that contain ordinary events, and turns a transaction of one rows event into one value. Most
of a binlog consists of transactions of one rows event: GTID, BEGIN, table map, rows, Xid. Nearly all other events are
ordinary too: they have one packet, no error, the right checksum, and a position that grows. The fast path reads these
transactions and events with few unpackings of fixed offsets. The general code reads all other packets: ``Packets`` cuts
the packets, ``Decoder`` decodes their events one by one, ``Router.rows`` builds the records. The fast path and the
general code lead to the same records.

The stages of a transaction on the fast path:

    cut                               bytes of packets -> SimpleTransaction, checksums compared
    WholeTransactions.of_simple       SimpleTransaction -> RowsTransaction (GTID, commit time, sql_mode, rows as JSON)
    Router.whole                      RowsTransaction -> messages for Kafka
    Progress.note                     RowsTransaction -> the position and the GTIDs of the next entry of the commit log

The code that builds a value for each event calls ``tuple.__new__`` directly: a NamedTuple's own constructor takes two
to three times as long. Module events defines the offsets.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple
from zlib import crc32

from cdc.errors import CdcError, Disconnected, PromiseError, UserError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import (
    CHECKSUM_BYTES,
    FORMAT_CREATED,
    HEADER_BYTES,
    LARGEST_PAYLOAD,
    NEXT_POSITION_AT,
    PACKET_EVENT_AT,
    PACKET_HEADER_BYTES,
    PACKET_LENGTH_MASK,
    STATUS_BYTES,
    STATUS_END,
    STATUS_ERROR,
    STATUS_EVENT,
    TYPE_AT,
    XID_BYTES,
    RawEvent,
)
from cdc.producer.binlog.spool import Spool

__all__ = ["SIMPLE_TRANSACTION", "Packets", "SimpleTransaction", "cut", "flat", "rows_event"]

SIMPLE_TRANSACTION = 0  # stands in place of an event type; no real event has this type
_new = tuple.__new__
_INTEGER = Struct("<I").unpack_from
_LOW_32_BITS = 0xFFFFFFFF
# The types of events that change neither the current file nor the state of the connection.
_ORDINARY = frozenset({et.QUERY, et.XID, et.TABLE_MAP, *et.GTIDS, *et.ROWS, *et.OTHER_ROWS})
_BEGINNING = et.GTIDS - {et.MARIADB_GTID}  # a simple transaction may begin with these events
_SMALLEST_PACKET = PACKET_EVENT_AT + HEADER_BYTES + CHECKSUM_BYTES  # a shorter packet contains a message, no event
# Unpacks the start of a packet that contains an event: the packet header, the status, and the type, length and next
# position from the event's header.
_PACKET_START = Struct("<IB4xB4xII")
_XID_PAYLOAD_BYTES = STATUS_BYTES + HEADER_BYTES + XID_BYTES + CHECKSUM_BYTES
# Unpacks the bytes from the checksum that ends a rows event to the end of the Xid: this checksum, and the packet
# header, status, event and checksum of the Xid.
_ROWS_CHECKSUM_AND_XID = Struct(f"<IIB{HEADER_BYTES + XID_BYTES}sI").unpack_from


class SimpleTransaction(NamedTuple):
    """A transaction of one rows event: the bytes of its five events, each with its header and without its checksum.

    ``end`` is the position after the transaction in ``file``. ``type`` is SIMPLE_TRANSACTION.
    """

    type: int
    gtid: bytes
    begin: bytes
    table_map: bytes
    rows: bytes
    xid: bytes
    file: str
    end: int

    def events(self) -> list[RawEvent]:
        """Returns the five events with their positions: they follow one another in the file."""
        found, end = [], self.end
        for data in (self.xid, self.rows, self.table_map, self.begin, self.gtid):
            start = end - len(data) - CHECKSUM_BYTES
            found.append(RawEvent(data[TYPE_AT], data, self.file, start, end))
            end = start
        return found[::-1]


def flat(events: Iterable[RawEvent | SimpleTransaction]) -> Iterator[RawEvent]:
    """Replaces each simple transaction in ``events`` by its five events."""
    for event in events:
        if isinstance(event, SimpleTransaction):
            yield from event.events()
        else:
            yield event


def rows_event(transaction: SimpleTransaction) -> RawEvent:
    """Returns the rows event of ``transaction``; in the file, the Xid follows it."""
    _, _, _, _, data, xid, file, end = transaction
    end -= len(xid) + CHECKSUM_BYTES
    return _new(RawEvent, (data[TYPE_AT], data, file, end - len(data) - CHECKSUM_BYTES, end, None))


def cut(
    data: bytes, at: int, file: str, end: int, checksum_bytes: int, events: list[RawEvent | SimpleTransaction]
) -> tuple[int, int]:
    """Appends the events of the packets in ``data`` from ``at`` on to ``events``, up to the first event that is not
    ordinary.

    ``end`` is the position in ``file`` before these events, ``checksum_bytes`` is 0 if the file has no checksums.
    Returns the offset of the first packet that was not cut, and the new ``end``. The function is long because its loop
    runs once per event, and calls of other functions would cost time.
    """
    arrived = len(data)
    while arrived - at >= _PACKET_START.size:
        length, status, kind, size, low = _PACKET_START.unpack_from(data, at)
        after = at + PACKET_HEADER_BYTES + (length & PACKET_LENGTH_MASK)
        if after > arrived or status or kind not in _ORDINARY or not _SMALLEST_PACKET < after - at < LARGEST_PAYLOAD:
            break
        if kind in _BEGINNING and checksum_bytes and (found := _simple_transaction(data, at, after, file, end)):
            transaction, at = found
            end = transaction[-1]
            events.append(transaction)
            continue
        body, reached = data[at + PACKET_EVENT_AT : after - checksum_bytes], end & ~_LOW_32_BITS | low
        if reached <= end or (checksum_bytes and crc32(body) != _INTEGER(data, after - checksum_bytes)[0]):
            break
        events.append(_new(RawEvent, (kind, body, file, reached - size, reached, None)))
        at, end = after, reached
    return at, end


def _simple_transaction(
    data: bytes, at: int, begin_at: int, file: str, before: int
) -> tuple[SimpleTransaction, int] | None:
    """Cuts a transaction whose GTID event is in the packet at ``at``; returns the transaction and the offset of the
    packets after it.

    ``begin_at`` is the offset of the second packet, ``before`` is the position before the transaction. Returns None if
    the transaction is not simple, has not arrived completely, or has a wrong checksum. The bytes are unpacked in two
    steps: three events, then the last two checksums with the Xid. This takes a third of the time of five steps.
    """
    try:
        map_at = begin_at + PACKET_HEADER_BYTES + (_INTEGER(data, begin_at)[0] & PACKET_LENGTH_MASK)
        rows_at = map_at + PACKET_HEADER_BYTES + (_INTEGER(data, map_at)[0] & PACKET_LENGTH_MASK)
        xid_at = rows_at + PACKET_HEADER_BYTES + (_INTEGER(data, rows_at)[0] & PACKET_LENGTH_MASK)
        gtid, gtid_sum, status1, begin, begin_sum, status2, table_map, map_sum, status3, rows_type = _first_three(
            begin_at - at, map_at - begin_at, rows_at - map_at
        )(data, at)
        if rows_type not in et.ROWS or begin[TYPE_AT] != et.QUERY or table_map[TYPE_AT] != et.TABLE_MAP:
            return None
        rows_sum, length, status4, xid, xid_sum = _ROWS_CHECKSUM_AND_XID(data, xid_at - CHECKSUM_BYTES)
    except (StructError, IndexError):
        return None
    rows = data[rows_at + PACKET_EVENT_AT : xid_at - CHECKSUM_BYTES]
    end = before & ~_LOW_32_BITS | _INTEGER(xid, NEXT_POSITION_AT)[0]
    if (
        (status1 or status2 or status3 or status4 or xid[TYPE_AT] != et.XID)
        or (length & PACKET_LENGTH_MASK != _XID_PAYLOAD_BYTES or end <= before)
        or (crc32(gtid) != gtid_sum or crc32(begin) != begin_sum or crc32(table_map) != map_sum)
        or (crc32(rows) != rows_sum or crc32(xid) != xid_sum)
    ):
        return None
    transaction = _new(SimpleTransaction, (SIMPLE_TRANSACTION, gtid, begin, table_map, rows, xid, file, end))
    return transaction, xid_at + PACKET_HEADER_BYTES + _XID_PAYLOAD_BYTES


@functools.lru_cache(maxsize=1000)
def _first_three(gtid: int, begin: int, table_map: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Returns a function that unpacks three packets of these sizes and the start of the packet after them.

    The function returns the event and checksum of the first packet, the status, event and checksum of the second and
    third, and the status and event type of the last. Raises struct.error for sizes that no packet with an event has.
    """
    around = PACKET_EVENT_AT + CHECKSUM_BYTES
    checksum_and_packet_header = f"I{PACKET_HEADER_BYTES}x"
    return Struct(
        f"<{PACKET_EVENT_AT}x{gtid - around}s{checksum_and_packet_header}"
        f"B{begin - around}s{checksum_and_packet_header}"
        f"B{table_map - around}s{checksum_and_packet_header}"
        f"B{TYPE_AT}xB"
    ).unpack_from


# The number of bytes of a spooled event that stay in memory. They contain all fields before the compressed bytes of a
# Transaction_payload event, and all before the first row of a rows event: its two bitmaps have up to 4096 columns each.
_SPOOL_HEAD_BYTES = 4000
_PAYLOAD_TYPE_AT = STATUS_BYTES + TYPE_AT
_END_PAYLOAD_BYTES = 9  # a payload with status END and at least this number of bytes does not end the stream
_NEXT_POSITION = slice(NEXT_POSITION_AT, NEXT_POSITION_AT + 4)
_FILE_BEGINS = 4  # number of bytes of a file before its first event
_ERROR_CODE = slice(1, 3)
_ERROR_TEXT_AT = 9  # the text follows the code and the SQLSTATE
_DAMAGED_HINT = "check the leader's disk; give the producer a new topic and the follower a fresh copy"
_FILE = re.compile(rb".+\.[0-9]{6,}")
# Errors with which a server ends a dump because it shuts down, or because the connection or its thread was ended.
_ENDED = frozenset({1053, 1158, 1159, 1160, 1161, 1317, 2006, 2013, 3032})
_POSITION_REFUSED = 1236


class Packets:
    """Cuts the packets of one dump, in order; ``name`` is the server's name in errors."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._parts: list[bytes] = []
        self._spool: Spool | None = None
        self._file = ""
        self._end = 0
        self._checksum_bytes: int | None = None  # None before the first format description
        self.fault: CdcError | None = None

    def cut(self, data: bytes) -> tuple[list[RawEvent | SimpleTransaction], bytes]:
        """Returns the events of the packets in ``data``, without their checksums, and the rest of ``data``: a part of a
        packet.

        Raises PromiseError for a damaged event, and Disconnected or UserError for an error that the leader sent. But if
        undamaged events precede the error, this method returns these events, and sets ``fault`` to the error.
        """
        events: list[RawEvent | SimpleTransaction] = []
        at, arrived = 0, len(data)
        while True:
            if self._checksum_bytes is not None and not self._parts and not self._spool:
                at, self._end = cut(data, at, self._file, self._end, self._checksum_bytes, events)
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
        """Drops an event that has not arrived completely."""
        if self._spool:
            self._spool.close()

    def _ended(self, part: bytes) -> RawEvent | None:
        """Returns the event that the payload ``part`` completes; None if the event continues: an event of 16 MiB or
        more takes several packets.

        A compressed transaction or a rows event of that size is written to disk.
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
        """Whether ``part`` is the first part of an event that is written to disk."""
        return not self._parts and not self._spool and part[0] == STATUS_EVENT and part[_PAYLOAD_TYPE_AT] in et.SPOOLED

    def _spooled(self, spool: Spool) -> RawEvent:
        if not spool.end(checksum_bytes=self._checksum_bytes or 0):
            raise self._wrong_checksum()
        self._spool = None
        return self._with_position(spool.head[TYPE_AT], spool.head, spool)

    def _event(self, payload: bytes) -> RawEvent:
        """Parses the event in ``payload``; keeps track of the file, of the 64-bit position and of the checksum
        algorithm.
        """
        status = payload[0] if payload else None
        if status == STATUS_ERROR:
            raise self._refusal(payload)
        if status == STATUS_END and len(payload) < _END_PAYLOAD_BYTES:
            raise Disconnected("the leader ended the stream", code="CDC-LEADER-GONE", where=self._name)
        if status != STATUS_EVENT or len(payload) <= HEADER_BYTES:
            raise Disconnected(
                "the leader sent a packet that is not an event", code="CDC-LEADER-GONE", where=self._name
            )
        kind, body = payload[_PAYLOAD_TYPE_AT], payload[STATUS_BYTES:-CHECKSUM_BYTES]
        is_right = crc32(body) == int.from_bytes(payload[-CHECKSUM_BYTES:], "little")
        if kind == et.FORMAT_DESCRIPTION:
            # A format description has a checksum whether or not it announces checksums for the events that follow.
            self._checksum_bytes = CHECKSUM_BYTES if body[-1] == 1 else 0
            damaged, data = not (is_right or _was_right(body, payload[-CHECKSUM_BYTES:])), body
        elif self._checksum_bytes is None:
            # The rotation that opens a dump comes before the format description: only a correct checksum shows that the
            # rotation has a checksum.
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
            code="CDC-EVENT-DAMAGED",
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
                code="CDC-EVENT-DAMAGED",
                where=f"after {self._file}:{self._end}",
                hint=_DAMAGED_HINT,
            )
        self._file, self._end = following.file, following.offset

    def _end_of(self, kind: int, header: ev.Header) -> int:
        """Returns the position after the event in its file; 0 for events that the leader generates for the connection
        only.
        """
        if header.next_event_position == 0 and kind in et.INSIDE_TRANSACTIONS:
            self._end += header.event_length
            return self._end
        if kind in et.HEARTBEATS or header.next_event_position == 0:
            return 0
        end = self._end & ~0xFFFFFFFF | header.next_event_position
        if end < self._end:
            end += 1 << 32  # the header's position has 32 bits and wraps in files over 4 GiB
        self._end = end
        return end

    def _refusal(self, payload: bytes) -> CdcError:
        """Translates the error that the leader sent instead of an event."""
        code = int.from_bytes(payload[_ERROR_CODE], "little")
        message = payload[_ERROR_TEXT_AT:].decode("utf-8", "replace")
        if "same server_uuid" in message or "same server_id" in message:
            return Disconnected(
                f"another replica has our server id or UUID: {message}",
                code="CDC-LEADER-SERVER-ID-TAKEN",
                where=self._name,
            )
        if code == _POSITION_REFUSED and "anonymous" in message.lower():
            return UserError(
                f"the server refuses to send transactions without GTIDs: {message}",
                code="CDC-LEADER-ANONYMOUS-GTIDS",
                where=self._name,
                hint='begin after them: name a new topic, and set producer.start to "copy", or to "now"',
            )
        if code == _POSITION_REFUSED:
            return UserError(
                f"the leader refuses the position: {message}",
                code="CDC-LEADER-PURGED",
                where=self._name,
                hint="the leader no longer has the needed binlog; use a new topic and a fresh copy of the leader",
            )
        if code in _ENDED:
            return Disconnected(f"the leader ended the stream: {message}", code="CDC-LEADER-GONE", where=self._name)
        return PromiseError(
            f"the leader refuses to send its binlog ({code}): {message}",
            code="CDC-LEADER-STOPS-SENDING",
            where=self._name,
        )


def _was_right(description: bytes, checksum: bytes) -> bool:
    """Whether ``checksum`` is the checksum of the format description in the file, before the leader changed the event
    for this dump.

    If a dump begins in the middle of a file, the server replaces two fields by zeros: the event's end, and the time at
    which the server was started, which only the first file since then contains. In a file without checksums it does not
    compute the event's checksum again.
    """
    if description[-1] != 0 or ev.header(description).next_event_position:
        return False
    restored = bytearray(description)
    restored[_NEXT_POSITION] = (_FILE_BEGINS + len(description) + CHECKSUM_BYTES).to_bytes(4, "little")
    written = ev.header(description).timestamp
    # The server read its clock for each of the two fields: a new second may have begun in between.
    for started in (0, written, written - 1, written + 1):
        restored[FORMAT_CREATED] = (started % (1 << 32)).to_bytes(4, "little")
        if crc32(restored) == int.from_bytes(checksum, "little"):
            return True
    return False
