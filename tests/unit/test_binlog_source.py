"""Packets to events: positions beyond 4 GiB, packets in parts, files without checksums."""

import socket
import struct
import threading
from types import SimpleNamespace
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import Disconnected, PromiseError
from cdc.producer.binlog_source import BinlogSource
from cdc.producer.events import RawEvent, flat

FOUR_GIB = 1 << 32


def event(kind: int, body: bytes, *, end: int, length: int | None = None) -> bytes:
    length = 19 + len(body) + 4 if length is None else length
    return struct.pack("<IBIIIH", 1, kind, 1, length, end % FOUR_GIB, 0) + body


def packet(data: bytes, *, summed: bool = True) -> bytes:
    payload = b"\0" + data + (crc32(data).to_bytes(4, "little") if summed else b"")
    return len(payload).to_bytes(3, "little") + b"\0" + payload


def opening(*, file: str, offset: int, summed: bool = True) -> bytes:
    """What each dump begins with: a rotation to the file, then its format description."""
    rotation = event(4, offset.to_bytes(8, "little") + file.encode(), end=0)
    return packet(rotation, summed=summed) + packet(event(15, bytes([1 if summed else 0]), end=0))


def received(*parts: bytes) -> list[RawEvent]:
    """The events of what a leader sent, in these parts, before it closed the connection."""
    here, there = socket.socketpair()
    with here, there:
        reader = SimpleNamespace(_stream_connection=SimpleNamespace(_sock=here), close=lambda: None)
        source = BinlogSource(reader, name="leader", heartbeat_seconds=1)
        found: list[RawEvent] = []
        waiting = list(parts)
        with pytest.raises(Disconnected, match="closed the connection"):
            for events in source.chunks(threading.Event()):
                found += flat(events)
                if not events and waiting:
                    there.sendall(waiting.pop(0))
                elif not events:
                    there.shutdown(socket.SHUT_WR)
        return found


def test_positions_go_on_beyond_what_the_header_holds() -> None:
    ends = [FOUR_GIB - 100, FOUR_GIB + 50, FOUR_GIB + 300, 2 * FOUR_GIB + 7]
    wire = opening(file="binlog.000007", offset=FOUR_GIB - 200)
    wire += b"".join(packet(event(16, b"12345678", end=end, length=31)) for end in ends)
    assert [found.end for found in received(wire) if found.type == 16] == ends
    assert [found.offset for found in received(wire) if found.type == 16] == [end - 31 for end in ends]


@given(st.data(), st.booleans())
def test_however_the_bytes_arrive_the_events_are_the_same(data: st.DataObject, summed: bool) -> None:
    bodies = data.draw(st.lists(st.binary(min_size=1, max_size=60), max_size=6))
    wire, end = opening(file="binlog.000001", offset=4, summed=summed), 4
    for body in bodies:
        end += 19 + len(body) + 4
        wire += packet(event(2, body, end=end), summed=summed)
    cuts = sorted(data.draw(st.lists(st.integers(1, len(wire) - 1), max_size=4)))
    parts = [wire[first:after] for first, after in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    found = received(*(part for part in parts if part))
    assert [each.data[19:] for each in found if each.type == 2] == bodies


def test_a_payload_of_several_packets_is_one_event() -> None:
    body = bytes(16_777_215 + 1000)
    data = event(30, body, end=100_000_000)
    payload = b"\0" + data + crc32(data).to_bytes(4, "little")
    wire = opening(file="binlog.000001", offset=4)
    for number, at in enumerate(range(0, len(payload), 16_777_215)):
        part = payload[at : at + 16_777_215]
        wire += len(part).to_bytes(3, "little") + bytes([number]) + part
    chunks = [wire[at : at + 100_000] for at in range(0, len(wire), 100_000)]
    assert [len(found.data) for found in received(*chunks) if found.type == 30] == [19 + len(body)]


@pytest.mark.parametrize("kind", [2, 15, 16, 41])
def test_a_wrong_checksum_is_a_damaged_binlog(kind: int) -> None:
    bad = bytearray(packet(event(kind, b"\1" * 30, end=500)))
    bad[-6] ^= 1
    with pytest.raises(PromiseError, match=r"checksum is wrong.*after binlog\.000001:4"):
        received(opening(file="binlog.000001", offset=4) + bytes(bad))
