"""The fast path: cuts packets that hold ordinary events, and takes a transaction of one rows event as one value.

Most of a binlog is transactions of one rows event: GTID, BEGIN, table map, rows, Xid. Nearly all other events are
ordinary too: one packet, no error, the right checksum, a position that grows. Both are handled here with one unpacking
of fixed offsets each. Whatever is not ordinary is left where it is, and the general code reads it: ``Packets`` cuts it,
``Decoder`` decodes it event by event, ``Router.rows`` writes its records. Both ways give the same records.

The stages of a transaction on the fast path:

    cut                               bytes of packets -> SimpleTransaction, checksums compared
    WholeTransactions.of_simple       SimpleTransaction -> Whole (its GTID, commit time, sql_mode and rows as JSON text)
    Router.whole                      Whole -> messages for Kafka
    Progress.note                     Whole -> the position and the GTIDs of the next entry of the commit log

``tuple.__new__`` is called directly where a value is made per event: a NamedTuple's own constructor takes two to three
times as long. Offsets: module layout.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple
from zlib import crc32

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.layout import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    LARGEST_PAYLOAD,
    NEXT_POSITION_AT,
    PACKET_EVENT_AT,
    PACKET_HEADER_BYTES,
    PACKET_LENGTH_MASK,
    STATUS_BYTES,
    TYPE_AT,
    XID_BYTES,
)

__all__ = ["SIMPLE_TRANSACTION", "SimpleTransaction", "cut", "flat", "rows_event"]

SIMPLE_TRANSACTION = 0  # stands where an event has its type; no event has this one
_new = tuple.__new__
_INTEGER = Struct("<I").unpack_from
_LOW_32_BITS = 0xFFFFFFFF
# Events that say nothing about the file or the connection.
_ORDINARY = frozenset({et.QUERY, et.XID, et.TABLE_MAP, *et.GTIDS, *et.ROWS})
_SMALLEST_PACKET = PACKET_EVENT_AT + HEADER_BYTES + CHECKSUM_BYTES  # a shorter one has a message instead of an event
# The start of a packet with an event: packet header, status; and of the event's header type, length, next position.
_PACKET_START = Struct("<IB4xB4xII")
_XID_PAYLOAD_BYTES = STATUS_BYTES + HEADER_BYTES + XID_BYTES + CHECKSUM_BYTES
# From the checksum that ends a rows event to the end of the Xid: checksum; packet header, status, event, checksum.
_ROWS_CHECKSUM_AND_XID = Struct(f"<IIB{HEADER_BYTES + XID_BYTES}sI").unpack_from


class SimpleTransaction(NamedTuple):
    """A transaction of one rows event: the bytes of its five events, each from its header to before its checksum.

    ``end`` is the position after it in ``file``. ``type`` is SIMPLE_TRANSACTION.
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
        """The five events with their positions: they follow one another in the file."""
        found, end = [], self.end
        for data in (self.xid, self.rows, self.table_map, self.begin, self.gtid):
            start = end - len(data) - CHECKSUM_BYTES
            found.append(RawEvent(data[TYPE_AT], data, self.file, start, end))
            end = start
        return found[::-1]


def flat(events: Iterable[RawEvent | SimpleTransaction]) -> Iterator[RawEvent]:
    """``events`` with each simple transaction replaced by its five events."""
    for event in events:
        if isinstance(event, SimpleTransaction):
            yield from event.events()
        else:
            yield event


def rows_event(transaction: SimpleTransaction) -> RawEvent:
    """The rows event of ``transaction``; in the file, the Xid follows it."""
    _, _, _, _, data, xid, file, end = transaction
    end -= len(xid) + CHECKSUM_BYTES
    return _new(RawEvent, (data[TYPE_AT], data, file, end - len(data) - CHECKSUM_BYTES, end, None))


def cut(
    data: bytes, at: int, file: str, end: int, checksum_bytes: int, events: list[RawEvent | SimpleTransaction]
) -> tuple[int, int]:
    """Append the events of the packets in ``data`` from ``at`` on to ``events``, up to the first that is not ordinary.

    ``end`` is the position in ``file`` before them, ``checksum_bytes`` 0 where the file has no checksums. Returns where
    the packets that were not cut start, and the new ``end``. The loop runs once per event, hence its length.
    """
    arrived = len(data)
    while arrived - at >= _PACKET_START.size:
        length, status, kind, size, low = _PACKET_START.unpack_from(data, at)
        after = at + PACKET_HEADER_BYTES + (length & PACKET_LENGTH_MASK)
        if after > arrived or status or kind not in _ORDINARY or not _SMALLEST_PACKET < after - at < LARGEST_PAYLOAD:
            break
        if kind in et.GTIDS and checksum_bytes and (found := _simple_transaction(data, at, after, file, end)):
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
    """The transaction whose GTID event's packet is at ``at``, and where the packets behind it start.

    ``begin_at`` is where the second packet starts, ``before`` the position before the transaction. None where it is not
    a simple one, has not arrived completely, or a checksum is wrong. One unpacking for three events and one for the
    last two checksums and the Xid take a third of the time of five.
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
    """Unpacks three packets of these sizes and the start of the packet behind them: (event, checksum) of the first,
    (status, event, checksum) of the others, then the status and the event type of the last.

    Raises struct.error for sizes that no packet with an event has.
    """
    around = PACKET_EVENT_AT + CHECKSUM_BYTES
    checksum_and_packet_header = f"I{PACKET_HEADER_BYTES}x"
    return Struct(
        f"<{PACKET_EVENT_AT}x{gtid - around}s{checksum_and_packet_header}"
        f"B{begin - around}s{checksum_and_packet_header}"
        f"B{table_map - around}s{checksum_and_packet_header}"
        f"B{TYPE_AT}xB"
    ).unpack_from
