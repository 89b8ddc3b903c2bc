"""Damaged, cut and made-up bytes of a real binlog: a clear error with the position, never a wrong record or a crash."""

import os
import random
import socket
import struct
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import SimpleNamespace
from zlib import crc32

import pytest

from cdc.config.filters import Filters
from cdc.config.topic_names import Topics
from cdc.errors import CdcError, PromiseError
from cdc.model.position import Position
from cdc.producer.binlog.event_types import FORMAT_DESCRIPTION, NAMES, ROTATE
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.leader import Leader, inspect
from cdc.producer.binlog.packets import Packets, SimpleTransaction, flat
from cdc.producer.binlog.source import BinlogSource, Replica
from cdc.producer.decode.changes import Begin, Commit, Refused, Rows, RowsTransaction, Statement
from cdc.producer.decode.decoder import Decoder, XaTransactions
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.sink.router import Router
from cdc.sandbox.server.mysql import PASSWORD, USER
from tests.harness.seed import SEED
from tests.harness.server_fixtures import started
from tests.integration.pair.test_types import load

# One worker has the leader whose binlog they all damage.
pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("damage")]

CASES = int(os.environ.get("CDC_DAMAGE", "1000"))
LARGEST = 20_000  # bytes of an event that takes part: larger ones say no more and take longer
MORE = """
CREATE DATABASE more
CREATE TABLE more.t (i INT PRIMARY KEY, j JSON)
SET binlog_transaction_compression = ON
INSERT INTO more.t VALUES (1, '{"a": [1, 2.5, null]}')
SET binlog_transaction_compression = OFF
SET gtid_next = 'AUTOMATIC:tag'
INSERT INTO more.t VALUES (2, NULL)
SET gtid_next = AUTOMATIC
XA START 'x'
INSERT INTO more.t VALUES (3, '[]')
XA END 'x'
XA PREPARE 'x'
XA COMMIT 'x'
FLUSH BINARY LOGS
ALTER TABLE more.t ADD k SET('a', 'b')
DROP TABLE more.t
"""


@pytest.fixture(scope="module")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Leader, list[RawEvent]]]:
    """A leader as it says it is, and the events of its binlog, which has a bit of everything."""
    with started(tmp_path_factory.mktemp("damage"), server_id=1) as server:
        load(server)
        with server.root() as connection, connection.cursor() as cursor:
            for statement in MORE.strip().splitlines():
                cursor.execute(statement)
        settings = {"host": "127.0.0.1", "port": server.port, "user": USER, "password": PASSWORD}
        said = inspect(settings, name="leader")
        yield said, captured(settings, said)


def captured(settings: dict[str, object], leader: Leader) -> list[RawEvent]:
    source = BinlogSource.open(
        settings, name="leader", replica=Replica(99, str(uuid.uuid4())), heartbeat_seconds=1,
        position=Position("binlog.000001", 4), gtid_set=None,
    )  # fmt: skip
    events: list[RawEvent] = []
    with source:
        for chunk in source.chunks(threading.Event()):
            events += flat(chunk)
            if events and (events[-1].file, events[-1].end) == (leader.position.file, leader.position.offset):
                return events
    raise AssertionError("the stream ended")


def decoder(leader: Leader) -> Decoder:
    xa = XaTransactions({}, read_again=lambda place: [])
    return Decoder(
        TableCache(
            wants_table=Filters().wants_table, collations=leader.collations, allow_differences=lambda *_: None,
            equal_members=lambda *_: False,
        ),
        xa=xa, log=lambda *_, **__: None,
    )  # fmt: skip


def texts(leader: Leader, chunks: Sequence[Sequence[RawEvent | SimpleTransaction]]) -> list[bytes]:
    """The records of ``chunks``."""
    route = Router(resource="r", topics=Topics("t"), filters=Filters(), record_bytes=900_000, next_sequence=0)
    found: list[bytes] = []
    for change in decoder(leader).decode(chunks):
        if isinstance(change, RowsTransaction):
            found += [message.value for message in route.whole(change)]
        elif isinstance(change, Begin):
            route.begin(change)
        elif isinstance(change, Rows):
            found += [message.value for message in route.rows(change)]
        elif isinstance(change, Refused):
            found += [message.value for message in route.refused(change)]
        elif isinstance(change, Statement):
            found += [message.value for message in route.statement(change)]
        elif isinstance(change, Commit):
            found += [message.value for message in route.commit()]
    return found


def test_the_lists_have_all_types_that_the_server_knows(leader: tuple[Leader, list[RawEvent]]) -> None:
    _, events = leader
    description = next(event.data for event in events if event.type == FORMAT_DESCRIPTION)
    # Version, server, time, header length; then a byte for each type from 1 on; at the end the checksum algorithm.
    known = len(description) - (19 + 2 + 50 + 4 + 1) - 1
    assert set(range(1, known + 1)) <= set(NAMES), f"the server knows {known} types"


def test_however_events_arrive_they_make_the_same_records(leader: tuple[Leader, list[RawEvent]]) -> None:
    said, events = leader
    chance = random.Random(SEED)
    one_by_one = texts(said, [[event] for event in events])
    assert len(one_by_one) > 500
    for size in (2, 7, 50, len(events)):
        chunks, at = [], 0
        while at < len(events):
            step = chance.randint(1, size)
            chunks += [events[at : at + step], *([[]] if chance.random() < 0.2 else [])]
            at += step
        assert texts(said, chunks) == one_by_one, f"seed {SEED}, chunks of up to {size}"


def test_transactions_cut_in_one_go_make_the_same_records(leader: tuple[Leader, list[RawEvent]]) -> None:
    said, events = leader
    chunks = [as_cut(events)]
    singles = [event for event in chunks[0] if isinstance(event, SimpleTransaction)]
    assert len(singles) > 100
    assert list(flat(chunks[0])) == events
    assert texts(said, chunks) == texts(said, [[event] for event in events])


def as_cut(events: Sequence[RawEvent]) -> list[RawEvent | SimpleTransaction]:
    """``events`` as they come off the wire, in one piece, behind what a dump at their position begins with."""
    packets, first = Packets(name="leader"), events[0]
    if first.file:
        rotation = struct.pack("<IBIIIHQ", 0, ROTATE, 1, 0, 0, 0, first.offset) + first.file.encode()
        description = struct.pack("<IBIIIHB", 0, FORMAT_DESCRIPTION, 1, 0, 0, 0, 1)
        for data in (rotation, description):
            packets.cut(packet(RawEvent(data[4], data, "", 0, 0)))
    return packets.cut(b"".join(packet(event) for event in events))[0]


def test_a_damaged_event_is_refused_with_its_position(leader: tuple[Leader, list[RawEvent]]) -> None:
    said, events = leader
    chance = random.Random(SEED)
    starts = [number for number, event in enumerate(events) if event.type in (33, 42)]
    windows = [events[first:after] for first, after in zip(starts, [*starts[1:], len(events)], strict=True)]
    windows = [window for window in windows if max(len(event.data) for event in window) < LARGEST]
    refused = 0
    for number in range(CASES):
        window = list(chance.choice(windows))
        at = chance.randrange(len(window))
        window[at] = window[at]._replace(data=damaged(window[at].data, chance))
        try:
            # All at once, one by one, or off the wire, with checksums that are right.
            ways = ([window], [[event] for event in window], [as_cut(window)])
            texts(said, chance.choice(ways))
        except PromiseError as error:
            refused += 1
            assert "binlog.0" in error.where, f"seed {SEED}, case {number}: {error}"
    # A byte of a value may become another value; that only checksums tell.
    assert refused > CASES / 4


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Some bits flipped, cut off, lengthened, or random bytes behind the header."""
    way = chance.randrange(4)
    if way == 0:
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            # The type decides who reads it, so it stays what it is said to be.
            changed[chance.randrange(5, len(data))] ^= 1 << chance.randrange(8)
        return bytes(changed)
    if way == 1:
        return data[: chance.randrange(19, max(20, len(data)))]
    if way == 2:
        return data + chance.randbytes(chance.randint(1, 40))
    return data[:19] + chance.randbytes(len(data) - 19)


def test_a_flipped_bit_on_the_wire_never_makes_another_event(leader: tuple[Leader, list[RawEvent]]) -> None:
    _, events = leader
    events = [event for event in events if len(event.data) < 1000][:200]
    chance = random.Random(SEED)
    wire = b"".join(packet(event) for event in events)
    whole, error = received(wire)
    assert (whole, error) == ([event.data for event in events], None)
    for number in range(CASES // 3):
        bent = bytearray(wire)
        # The events that open a dump have rules of their own, so they get a share of the damage.
        reach = len(wire) if number % 2 else 400
        bent[chance.randrange(reach)] ^= 1 << chance.randrange(8)
        found, error = received(bytes(bent))
        # All before the damage, nothing else: then an error, or a packet whose rest never comes.
        assert found == whole[: len(found)], f"seed {SEED}, case {number}"
        assert error is not None or len(found) < len(whole) or found == whole


def packet(event: RawEvent) -> bytes:
    payload = b"\0" + event.data + crc32(event.data).to_bytes(4, "little")
    return len(payload).to_bytes(3, "little") + b"\0" + payload


def received(wire: bytes) -> tuple[list[bytes], CdcError | None]:
    """The events that a source makes of ``wire``, and what it raised."""
    here, there = socket.socketpair()
    with here, there:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        writer = threading.Thread(target=lambda: suppressed_send(there, wire))
        writer.start()
        reader = SimpleNamespace(_stream_connection=SimpleNamespace(_sock=here), close=lambda: None)
        source = BinlogSource(reader, name="leader", heartbeat_seconds=1)
        found: list[bytes] = []
        try:
            for events in source.chunks(threading.Event()):
                found += [event.data for event in flat(events)]
        except CdcError as error:
            return found, None if "closed the connection" in str(error) else error
        finally:
            here.close()
            writer.join()
    return found, None


def suppressed_send(end: socket.socket, wire: bytes) -> None:
    with suppress(OSError):  # whoever has seen the damage reads no further
        end.sendall(wire)
        end.shutdown(socket.SHUT_WR)
