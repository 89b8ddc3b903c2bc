"""The leader's binlog as raw events, through mysql-replication's connection.

The library connects, registers as a replica, announces checksums and heartbeat and asks for the dump; from there the
packets are read here, in large chunks, because its own reader decodes too much, drops unknown events in silence and
reconnects behind our back. The names used of it are private, hence the exact version in pyproject.toml.
"""

import select
import ssl
import threading
import time
from collections.abc import Iterator
from struct import error as StructError
from typing import Any, Self

import pymysql
from pymysqlreplication import BinLogStreamReader, binlogstream

from cdc.errors import Disconnected, UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction
from cdc.producer.binlog.packets import Packets
from cdc.service.mysql_connection import connected

__all__ = ["BinlogSource"]

_CHUNK = 1 << 16  # bytes that are cut at once: more would not stay in the processor's cache
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
    """One dump connection. ``with BinlogSource.open(…) as source: for events in source.chunks(stop): …``"""

    def __init__(self, reader: BinLogStreamReader, *, name: str, heartbeat_seconds: int) -> None:
        self._reader = reader
        self._name = name
        self._silence = max(10.0, 3.0 * heartbeat_seconds)
        self._socket = reader._stream_connection._sock
        self._data = b""
        self._packets = Packets(name=name)
        self._heard_at = time.monotonic()
        self._busy_since: float | None = None

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
        """Seconds for which the leader has said nothing, though it was listened to."""
        return 0.0 if self._busy_since is not None else time.monotonic() - self._heard_at

    @property
    def busy(self) -> float:
        """Seconds since what came last is at work, unheard what comes meanwhile; 0 where it is listened to."""
        since = self._busy_since  # read once, since it is another thread that asks
        return 0.0 if since is None else time.monotonic() - since

    def chunks(self, stop: threading.Event) -> Iterator[list[RawEvent | SimpleTransaction]]:
        """Events without their checksums, as many as have arrived; none whenever the leader has nothing more for now.

        Ends at ``stop``. Raises Disconnected when the connection is lost or silent for longer than three heartbeats,
        UserError when the leader refuses the position, PromiseError for an event that was damaged.
        """
        self._socket.setblocking(False)
        while not stop.is_set():
            events: list[RawEvent | SimpleTransaction] = []
            if arrived := self._receive():
                events, self._data = self._packets.cut(self._data)
            # A compressed transaction takes minutes to decode, in which nobody reads: the leader is not silent then.
            self._busy_since = time.monotonic()
            yield events
            self._busy_since, self._heard_at = None, time.monotonic()
            if self._packets.fault:
                raise self._packets.fault
            if not arrived:
                self._wait(stop)

    def _receive(self) -> bool:
        """Read what has arrived; False where it does not complete a packet."""
        missing = 1
        if len(self._data) >= 4:
            missing = 4 + int.from_bytes(self._data[:3], "little") - len(self._data)
        parts, received, wanted = [self._data], 0, max(_CHUNK, missing)
        try:
            # One call gives no more than one TLS record, 16 KiB: several of them at once save much of the work on each.
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
            self._heard_at = time.monotonic()
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
