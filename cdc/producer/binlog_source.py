"""The leader's binlog as raw events, through mysql-replication's connection.

The library connects, registers as a replica, announces checksums and heartbeat and asks for the dump; from there the
packets are read here, in large chunks, because its own reader decodes too much, drops unknown events in silence and
reconnects behind our back. The names used of it are private, hence the exact version in pyproject.toml.
"""

import re
import select
import ssl
import threading
import time
from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import Any, Self
from zlib import crc32

import pymysql
from pymysqlreplication import BinLogStreamReader, binlogstream

from cdc.errors import CdcError, Disconnected, PromiseError, UserError
from cdc.position import GtidSet, Position
from cdc.producer import event_types as et
from cdc.producer import events as ev
from cdc.producer.events import RawEvent

__all__ = ["BinlogSource"]

_CHUNK = 1 << 18
_MAX_PACKET = 0xFFFFFF
_CHECKSUM_BYTES = 4
_SMALLEST = 4 + 1 + ev.HEADER_BYTES + _CHECKSUM_BYTES  # a packet with an event: what is shorter is a message to us
_LENGTH = Struct("<I").unpack_from
# Of a packet with an event: length and number, status, and of the event's header type, length and next position.
_HEAD_BYTES = 22
_HEAD = Struct("<IB4xB4xII").unpack_from
_new_event = tuple.__new__  # RawEvent(…) itself takes three times as long
# Events that say nothing about the file or the connection.
_PLAIN = frozenset({et.QUERY, et.XID, et.TABLE_MAP, et.GTID, et.ANONYMOUS_GTID, et.GTID_TAGGED, *et.ROWS})
_FILE = re.compile(rb".+\.[0-9]{6,}")
_TIMEOUTS = {"read_timeout": 30, "write_timeout": 30}  # seconds, until the dump begins


class _AskedGtids:
    """What the library asks a server for; its own class of this name knows no tags."""

    def __init__(self, text: str) -> None:
        self._encoded = GtidSet.parse(text).encode()
        self.encoded_length = len(self._encoded)

    def encoded(self) -> bytes:
        return self._encoded


binlogstream.GtidSet = _AskedGtids


class BinlogSource:
    """One dump connection. ``with BinlogSource.open(…) as source: for events in source.chunks(stop): …``

    ``heard_at`` is when anything came from the leader, as ``time.monotonic()`` has it.
    """

    def __init__(self, reader: BinLogStreamReader, *, name: str, heartbeat_seconds: int) -> None:
        self._reader = reader
        self._name = name
        self._silence = max(10.0, 3.0 * heartbeat_seconds)
        self._socket = reader._stream_connection._sock
        self._data = b""
        self._begun: list[bytes] = []
        self._file = ""
        self._end = 0
        self._checksum: int | None = None
        self.heard_at = time.monotonic()

    @classmethod
    def open(
        cls,
        settings: dict[str, Any],
        *,
        name: str,
        server_id: int,
        replica_uuid: str,
        heartbeat_seconds: int,
        position: Position,
        gtid_set: GtidSet | None,
    ) -> Self:
        """Start the dump after ``gtid_set`` where given and not empty, else at ``position``.

        ``settings`` are pymysql's connection arguments, ``name`` the server's for errors. Raises Disconnected where the
        server cannot be reached.
        """
        # Announcing CRC32 is right for files with and without checksums: each file's format description says which.
        settings = (
            settings
            | _TIMEOUTS
            | {"init_command": "SET @source_binlog_checksum='CRC32', @master_binlog_checksum='CRC32'"}
        )
        reader = BinLogStreamReader(
            connection_settings=settings,
            server_id=server_id,
            blocking=True,
            resume_stream=True,
            log_file=position.file,
            log_pos=position.offset,
            auto_position=str(gtid_set) if gtid_set else None,
            slave_uuid=replica_uuid,
            slave_heartbeat=heartbeat_seconds,
            report_slave=f"cdc-producer-{server_id}",
            filter_non_implemented_events=False,
            enable_logging=False,
        )
        _connect(reader, name=name, position=position)
        return cls(reader, name=name, heartbeat_seconds=heartbeat_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._reader.close()

    def chunks(self, stop: threading.Event) -> Iterator[list[RawEvent]]:
        """Events without their checksums, as many as have arrived; none whenever the leader has nothing more for now.

        Ends at ``stop``. Raises Disconnected when the connection is lost or silent for longer than three heartbeats,
        UserError when the leader refuses the position, PromiseError for an event that was damaged.
        """
        self._socket.setblocking(False)
        while not stop.is_set():
            if self._receive():
                yield self._arrived()
            else:
                yield []
                self._wait(stop)

    def _arrived(self) -> list[RawEvent]:
        """The events that have arrived whole (MySQL protocol, "MySQL Packets": 3 bytes of length, 1 of sequence).

        This runs for every event, so what is true of nearly all of them is done here in one go: one packet, a whole
        header, a checksum, a position that grows. All others take the way through ``_event``.
        """
        events: list[RawEvent] = []
        data, at, arrived = self._data, 0, len(self._data)
        file, last, plain, sum_bytes = self._file, self._end, self._plain(), self._checksum or 0
        while arrived - at >= 4:
            whole_head = arrived - at >= _HEAD_BYTES
            length, status, kind, size, low = _HEAD(data, at) if whole_head else (*_LENGTH(data, at), 0xFE, 0, 0, 0)
            after = at + 4 + (length & 0xFFFFFF)
            if after > arrived:
                break
            if kind in plain and _SMALLEST < after - at < _MAX_PACKET and not status:
                body, end = data[at + 5 : after - sum_bytes], last & ~0xFFFFFFFF | low
                if end > last and (not sum_bytes or crc32(body) == _LENGTH(data, after - sum_bytes)[0]):
                    events.append(_new_event(RawEvent, (kind, body, file, end - size, end)))
                    at, last = after, end
                    continue
            self._end = last
            packet = self._payload(data[at + 4 : after])
            at = after
            if packet is not None:
                events.append(self._event(packet))
            file, last, plain, sum_bytes = self._file, self._end, self._plain(), self._checksum or 0
        self._data, self._end = data[at:], last
        return events

    def _plain(self) -> frozenset[int]:
        """The types of events to which nothing unusual applies just now."""
        return _PLAIN if self._checksum is not None and not self._begun else frozenset()

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
            damaged = kind != et.ROTATE or _FILE.fullmatch(ev.rotate_name(data)) is None
        else:
            data, damaged = (body, not summed) if self._checksum else (packet[1:], False)
        if damaged:
            raise PromiseError(
                "an event's checksum is wrong: the leader's binlog is damaged",
                where=f"after {self._file}:{self._end}",
                hint="check the leader's disk; give the producer a new topic and the follower a fresh copy",
            )
        header = ev.header(data)
        end = self._end_of(kind, header)
        event = RawEvent(kind, data, self._file, end - header.event_length if end else 0, end)
        if kind == et.ROTATE:
            following = ev.rotate(event)
            self._file, self._end = following.file, following.offset
        return event

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
        if code in (1053, 1158, 1159, 1160, 1161, 1317, 2006, 2013):
            return Disconnected(f"the leader ended the stream: {message}", where=self._name)
        return PromiseError(f"the leader refuses to send its binlog ({code}): {message}", where=self._name)

    def _payload(self, part: bytes) -> bytes | None:
        """The whole payload that ``part`` ends, or None where it goes on: 16 MiB and more take several packets."""
        if len(part) == _MAX_PACKET:
            self._begun.append(part)
            return None
        if not self._begun:
            return part
        payload = b"".join((*self._begun, part))
        self._begun.clear()
        return payload

    def _receive(self) -> bool:
        """Read what has arrived; False where it does not complete a packet."""
        missing = 1
        if len(self._data) >= 4:
            missing = 4 + int.from_bytes(self._data[:3], "little") - len(self._data)
        parts, received = [self._data], 0
        try:
            while received < missing and (chunk := self._socket.recv(max(_CHUNK, missing - received))):
                parts.append(chunk)
                received += len(chunk)
            if received < missing:
                raise Disconnected("the leader closed the connection", where=self._name)
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError as error:
            raise Disconnected(f"the connection to the leader broke: {error}", where=self._name) from None
        self._data = b"".join(parts)
        if received:
            self.heard_at = time.monotonic()
        return received >= missing

    def _wait(self, stop: threading.Event) -> None:
        """Wait until something arrives. The leader's heartbeat makes it certain that something will."""
        waited = 0.0
        while not stop.is_set():
            if select.select([self._socket], [], [], 0.2)[0]:
                return
            waited += 0.2
            if waited > self._silence:
                raise Disconnected(f"the leader has been silent for {waited:.0f} s", where=self._name)


def _connect(reader: BinLogStreamReader, *, name: str, position: Position) -> None:
    try:
        reader._BinLogStreamReader__connect_to_stream()
    except (ValueError, StructError) as error:
        # What the library can't encode: an offset of more than 32 bits.
        reader.close()
        raise UserError(
            f"the leader cannot be asked for this place: {error}",
            where=f"{name}, position {position}",
            hint="with GTIDs switched on, any place can be asked for",
        ) from None
    except (pymysql.MySQLError, OSError) as error:
        reader.close()
        raise Disconnected(f"the leader cannot be reached: {error}", where=name) from None
