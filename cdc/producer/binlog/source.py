"""Reads a leader's binlog: opens a dump connection as a replica does, and yields the raw events that arrive.

mysql-replication connects, announces checksums and heartbeat and requests the dump. It does not register as a replica:
tools connect to each that SHOW REPLICAS lists, and percona-toolkit's end where they can't. From then on the packets are
read here, in large chunks: the library's own reader decodes more than is needed, drops unknown events without an error
and reconnects by itself. The names of the library that are used for this are private; the exact version in
pyproject.toml has them, and tests/unit/producer/test_private_names.py lists them.
"""

import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from struct import error as StructError
from typing import Any, NamedTuple, Self

import pymysql
from pymysqlreplication import BinLogStreamReader, binlogstream

from cdc.errors import Disconnected, UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction
from cdc.producer.binlog.layout import PACKET_HEADER_BYTES
from cdc.producer.binlog.packets import Packets
from cdc.service.mysql_connection import connected

__all__ = ["BinlogSource", "Replica"]

_CHUNK_BYTES = 1 << 16  # read at once: more would not stay in the processor's cache
_PACKET_LENGTH_BYTES = 3
_TIMEOUTS = {"read_timeout": 30, "write_timeout": 30}  # seconds, until the dump begins
_SELECT_SECONDS = 0.2
# Announcing CRC32 is right for files with and without checksums: each file's format description says which it has.
_SESSION = {
    "init_command": "SET @source_binlog_checksum='CRC32', @master_binlog_checksum='CRC32', "
    # It is not read while the stream waits for the copy of a table.
    "SESSION net_write_timeout=86400"
}


class _GtidSet:
    """A GTID set for the library's dump request; the library's own class of this name does not support tags."""

    def __init__(self, text: str) -> None:
        self._encoded = GtidSet.parse(text).encode()
        self.encoded_length = len(self._encoded)

    def encoded(self) -> bytes:
        return self._encoded


binlogstream.GtidSet = _GtidSet


class Replica(NamedTuple):
    """What the producer calls itself: the leader allows one dump for each server id and UUID."""

    server_id: int
    uuid: str


class BinlogSource:
    """One dump connection. ``with BinlogSource.open(…) as source: for events in source.chunks(stop): …``"""

    def __init__(self, reader: BinLogStreamReader, *, name: str, heartbeat_seconds: int) -> None:
        self._reader = reader
        self._name = name
        self._max_silence = max(10.0, 3.0 * heartbeat_seconds)
        self._socket = reader._stream_connection._sock
        self._data = b""
        self._packets = Packets(name=name)
        self._received_at = time.monotonic()
        self._busy_since: float | None = None

    @classmethod
    def open(
        cls,
        settings: dict[str, Any],
        *,
        name: str,
        replica: Replica,
        heartbeat_seconds: int,
        position: Position,
        gtid_set: GtidSet | None,
    ) -> Self:
        """Start the dump after ``gtid_set`` where given and not empty, else at ``position``.

        ``settings`` are pymysql's connection arguments, ``name`` the server's for errors. Raises Disconnected where the
        server cannot be reached.
        """
        reader = BinLogStreamReader(
            connection_settings=settings | _TIMEOUTS | _SESSION,
            server_id=replica.server_id,
            blocking=True,
            resume_stream=True,
            log_file=position.file,
            log_pos=position.offset,
            auto_position=str(gtid_set) if gtid_set else None,
            slave_uuid=replica.uuid,
            slave_heartbeat=heartbeat_seconds,
            filter_non_implemented_events=False,
            enable_logging=False,
            pymysql_wrapper=connected,
        )
        _connect(reader, name=name, position=position)
        return cls(reader, name=name, heartbeat_seconds=heartbeat_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._reader.close()
        self._packets.close()

    @property
    def silence(self) -> float:
        """Seconds without anything from the leader while the socket is being read; 0 while events are processed."""
        return 0.0 if self._busy_since is not None else time.monotonic() - self._received_at

    @property
    def busy(self) -> float:
        """Seconds for which the newest events have been processed, with the socket not read; 0 while it is read."""
        since = self._busy_since  # read once, since another thread calls this
        return 0.0 if since is None else time.monotonic() - since

    def chunks(
        self, stop: threading.Event, wake: Callable[[], int | None] = lambda: None
    ) -> Iterator[list[RawEvent | SimpleTransaction]]:
        """Events without their checksums, as many as have arrived; an empty list when the leader has no more for now,
        and when the file descriptor that ``wake`` gives, if any, can be read.

        Ends at ``stop``. Raises Disconnected when the connection is lost or silent for longer than three heartbeats,
        UserError when the leader refuses the position, PromiseError for a damaged event.
        """
        self._socket.setblocking(False)
        while not stop.is_set():
            events: list[RawEvent | SimpleTransaction] = []
            if arrived := self._receive():
                events, self._data = self._packets.cut(self._data)
            # A compressed transaction takes minutes to decode, and the socket is not read then: that is no silence.
            self._busy_since = time.monotonic()
            yield events
            self._busy_since, self._received_at = None, time.monotonic()
            if self._packets.fault:
                raise self._packets.fault
            if not arrived:
                self._wait(stop, wake())

    def _receive(self) -> bool:
        """Read what has arrived; False where it does not complete a packet."""
        missing = 1
        if len(self._data) >= PACKET_HEADER_BYTES:
            length = int.from_bytes(self._data[:_PACKET_LENGTH_BYTES], "little")
            missing = PACKET_HEADER_BYTES + length - len(self._data)
        parts, received, wanted = [self._data], 0, max(_CHUNK_BYTES, missing)
        try:
            # One call gives at most one TLS record, 16 KiB; the work for each chunk is less for several of them.
            while received < wanted and (chunk := self._socket.recv(wanted - received)):
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
            self._received_at = time.monotonic()
        return received >= missing

    def _wait(self, stop: threading.Event, wake: int | None) -> None:
        """Wait until something arrives, at the latest a heartbeat. Raises Disconnected where nothing does."""
        waited = 0.0
        sources = [self._socket] if wake is None else [self._socket, wake]
        while not stop.is_set():
            if select.select(sources, [], [], _SELECT_SECONDS)[0]:
                return
            waited += _SELECT_SECONDS
            if waited > self._max_silence:
                raise Disconnected(f"the leader has been silent for {waited:.0f} s", where=self._name)


def _connect(reader: BinLogStreamReader, *, name: str, position: Position) -> None:
    try:
        reader._BinLogStreamReader__connect_to_stream()
    except (ValueError, StructError) as error:
        # What the library can't encode: an offset of more than 32 bits.
        reader.close()
        raise UserError(
            f"a dump can't be requested from this position: {error}",
            where=f"{name}, position {position}",
            hint="with gtid_mode=ON on the leader, a dump can be requested from any position",
        ) from None
    except (pymysql.MySQLError, OSError) as error:
        reader.close()
        raise Disconnected(f"the leader cannot be reached: {error}", where=name) from None
