"""Packets to events: positions beyond 4 GiB, packets in parts, files without checksums."""

import random
import resource
import signal
import socket
import tempfile
import threading
import time
from types import SimpleNamespace
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import Disconnected, PromiseError, UserError
from cdc.producer.binlog.compressed import is_small, payload
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.packets import Packets, SimpleTransaction, flat
from cdc.producer.binlog.source import BinlogSource
from tests.generators.binlog_events import event_bytes as event
from tests.generators.binlog_events import payload_body

FOUR_GIB = 1 << 32


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
        with source, pytest.raises(Disconnected, match="closed the connection"):
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


def test_a_leader_is_not_silent_while_nobody_listens() -> None:
    """What came last may take minutes to decode."""
    here, there = socket.socketpair()
    with here, there:
        reader = SimpleNamespace(_stream_connection=SimpleNamespace(_sock=here), close=lambda: None)
        there.sendall(opening(file="binlog.000001", offset=4))
        with BinlogSource(reader, name="leader", heartbeat_seconds=1) as source:
            chunks = source.chunks(threading.Event())
            assert len(next(chunks)) == 2
            time.sleep(0.1)
            assert (source.silence, source.busy >= 0.1) == (0.0, True)
            assert next(chunks) == []
            listening = threading.Thread(target=next, args=(chunks,))
            listening.start()
            time.sleep(0.1)
            assert (source.silence > 0.05, source.busy) == (True, 0.0)
            there.sendall(packet(event(16, b"12345678", end=200, length=31)))
            listening.join()


def test_the_leader_is_awaited_until_a_given_time() -> None:
    """Without it the second wait would last until the leader counts as gone."""
    here, there = socket.socketpair()
    with here, there:
        reader = SimpleNamespace(_stream_connection=SimpleNamespace(_sock=here), close=lambda: None)
        there.sendall(opening(file="binlog.000001", offset=4))
        with BinlogSource(reader, name="leader", heartbeat_seconds=1) as source:
            chunks = source.chunks(threading.Event(), until=time.monotonic)
            assert [len(next(chunks)) for _ in range(4)] == [2, 0, 0, 0]


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


def in_parts(data: bytes, *, summed: bool = True) -> list[bytes]:
    """A dump with one event, which takes several packets, as it arrives."""
    payload = b"\0" + data + (crc32(data).to_bytes(4, "little") if summed else b"")
    wire = opening(file="binlog.000001", offset=4, summed=summed)
    for number, at in enumerate(range(0, len(payload) + 1, 16_777_215)):
        part = payload[at : at + 16_777_215]
        wire += len(part).to_bytes(3, "little") + bytes([number]) + part
    return [wire[at : at + 100_000] for at in range(0, len(wire), 100_000)]


def test_a_payload_of_several_packets_is_one_event() -> None:
    body = bytes(16_777_215 + 1000)
    parts = in_parts(event(29, body, end=100_000_000))
    assert [len(found.data) for found in received(*parts) if found.type == 29] == [19 + len(body)]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("kind", [30, 31, 32])
def test_large_rows_wait_on_disk_also_those_of_a_compressed_transaction(kind: int, inside: bool) -> None:
    data = event(kind, random.Random(1).randbytes(17_000_000), end=0, length=19 + 17_000_000)
    if inside:
        (whole,) = (each for each in received(*in_parts(event(40, payload_body(data), end=9_000))) if each.type == 40)
        (found,) = payload(whole)
    else:
        (found,) = (each for each in received(*in_parts(data)) if each.type == kind)
    assert found.spool is not None
    assert (found.type, found.size, len(found.data) < 5000) == (kind, len(data), True)
    assert found.data == data[: len(found.data)]
    assert found.spool.read(100, 17_000_000) == data[100:]
    assert found.spool.read(100, 5) == data[100:105]


@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize("size", [17_000_000, 2 * 16_777_215])
def test_a_large_compressed_transaction_waits_on_disk(size: int, summed: bool) -> None:
    noise = random.Random(1).randbytes(size)
    inner = [event(29, noise, end=0, length=19 + size), event(16, b"12345678", end=0, length=27)]
    data = event(40, payload_body(b"".join(inner)), end=100_000_000)
    (found,) = (each for each in received(*in_parts(data, summed=summed)) if each.type == 40)
    assert found.spool is not None
    assert (found.size, found.end, data.startswith(found.data)) == (len(data), 100_000_000, True)
    assert not is_small(found)
    assert [each.data for each in payload(found)] == inner


def test_a_large_compressed_transaction_is_not_used_when_its_checksum_is_wrong() -> None:
    data = event(40, payload_body(event(29, random.Random(1).randbytes(17_000_000), end=0)), end=100_000_000)
    parts = in_parts(data)
    parts[100] = bytes([parts[100][0] ^ 1]) + parts[100][1:]
    with pytest.raises(PromiseError, match=r"checksum is wrong.*after binlog\.000001:4"):
        received(*parts)


def test_a_large_compressed_transaction_of_which_the_rest_does_not_come_is_dropped() -> None:
    parts = in_parts(event(40, payload_body(event(29, random.Random(1).randbytes(17_000_000), end=0)), end=100_000_000))
    assert [found.type for found in received(*parts[:-3])] == [4, 15]


def test_a_large_compressed_transaction_needs_room_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/nowhere")
    data = event(40, random.Random(1).randbytes(17_000_000), end=100_000_000)
    with pytest.raises(UserError, match=r"a large event of the leader can't be written.*/dev/null/nowhere.*TMPDIR"):
        received(*in_parts(data))


def test_a_disk_that_is_full_is_told_when_its_last_bytes_do_not_fit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    data = event(40, random.Random(1).randbytes(16_777_215 + 3000), end=100_000_000)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_777_215 + 1000, hard))
    try:
        with pytest.raises(UserError, match="a large event of the leader can't be written"):
            received(*in_parts(data))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, handler)


def transaction(bodies: list[bytes], *, start: int) -> list[tuple[bytes, int]]:
    """The events of a transaction of one rows event, each with its end: GTID, BEGIN, table map, rows, Xid."""
    events, end = [], start
    for kind, body in zip((33, 2, 19, 30, 16), bodies, strict=True):
        end += 19 + len(body) + 4
        events.append((event(kind, body, end=end), end))
    return events


BODIES = st.tuples(*[st.binary(min_size=1, max_size=50)] * 4, st.binary(min_size=8, max_size=8)).map(list)


@given(st.lists(BODIES, min_size=1, max_size=4), st.integers(4, 1 << 33), st.data())
def test_transactions_cut_in_one_go_have_the_events_of_those_that_are_not(
    transactions: list[list[bytes]], start: int, data: st.DataObject
) -> None:
    wanted: list[tuple[bytes, int]] = []
    for bodies in transactions:
        wanted += transaction(bodies, start=wanted[-1][1] if wanted else start)
    wire = opening(file="binlog.000001", offset=start) + b"".join(packet(each) for each, _ in wanted)
    at = data.draw(st.integers(1, len(wire) - 1))
    for parts in ([wire], [wire[:at], wire[at:]]):
        found = received(*parts)[2:]
        assert [(each.type, each.data, each.offset, each.end) for each in found] == [
            (each[4], each, end - len(each) - 4, end) for each, end in wanted
        ]
    events, rest = Packets(name="leader").cut(wire)
    singles = sum(isinstance(each, SimpleTransaction) for each in events)
    # Only the one in which the position's low 32 bits start anew is cut event by event.
    assert singles >= len(transactions) - 1
    assert rest == b""


def test_what_comes_before_a_damaged_event_is_sound_however_it_arrives() -> None:
    packets = [bytearray(packet(each)) for each, _ in transaction([b"abcdefgh"] * 5, start=4)]
    broken = [bytearray(packet(event(2, b"BEGIN", end=FOUR_GIB - 1)))]
    broken[0][-6] ^= 1
    here, there = socket.socketpair()
    with here, there:
        reader = SimpleNamespace(_stream_connection=SimpleNamespace(_sock=here), close=lambda: None)
        source = BinlogSource(reader, name="leader", heartbeat_seconds=1)
        there.sendall(opening(file="binlog.000001", offset=4) + b"".join([*packets, *broken]))
        found: list[RawEvent] = []
        with source, pytest.raises(PromiseError, match="checksum is wrong"):
            for events in source.chunks(threading.Event()):
                found += flat(events)
    assert [each.type for each in found] == [4, 15, 33, 2, 19, 30, 16]


@pytest.mark.parametrize("name", [b"binlog.00000x", b"", b"\xff\xfe.000001"])
def test_a_rotation_in_a_file_without_checksums_that_names_no_file(name: bytes) -> None:
    rotation = packet(event(4, (4).to_bytes(8, "little") + name, end=200), summed=False)
    with pytest.raises(PromiseError, match=r"a rotation names no file.*after binlog\.000001:"):
        received(opening(file="binlog.000001", offset=4, summed=False) + rotation)


@pytest.mark.parametrize("bad", range(5))
def test_a_wrong_checksum_in_a_transaction_that_is_cut_in_one_go(bad: int) -> None:
    packets = [bytearray(packet(each)) for each, _ in transaction([b"abcdefgh"] * 5, start=4)]
    packets[bad][-6] ^= 1
    with pytest.raises(PromiseError, match="checksum is wrong"):
        received(opening(file="binlog.000001", offset=4) + b"".join(packets))


@pytest.mark.parametrize("kind", [2, 15, 16, 41])
def test_a_wrong_checksum_is_a_damaged_binlog(kind: int) -> None:
    bad = bytearray(packet(event(kind, b"\1" * 30, end=500)))
    bad[-6] ^= 1
    with pytest.raises(PromiseError, match=r"checksum is wrong.*after binlog\.000001:4"):
        received(opening(file="binlog.000001", offset=4) + bytes(bad))
