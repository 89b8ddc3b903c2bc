"""Reads a leader's binlog: opens a dump connection as a replica does, and yields the raw events that arrive.

mysql-replication connects, announces checksums and heartbeat and requests the dump. It does not register as a replica:
tools connect to each replica that SHOW REPLICAS lists, and the tools of percona-toolkit end if they can't connect.
After the request this module reads the packets, in large chunks: the library's own reader decodes more than is needed,
drops unknown events without an error and reconnects by itself. Reading the packets here needs private names of the
library: pyproject.toml pins its exact version, and tests/unit/producer/test_private_names.py lists the names.

``Dumps`` opens the connections to one leader: one to follow its binlog, others to read a prepared XA transaction again,
or the binlog from another position.
"""

import math
import re
import select
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from struct import error as StructError
from typing import Any, NamedTuple, Self

import pymysql
from pymysqlreplication import BinLogStreamReader, binlogstream

from cdc.errors import Disconnected, PromiseError, UserError
from cdc.model.commit_entry import Entry, PreparedXa
from cdc.model.gtid import GtidSet, ddl_uuid, mariadb_position
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.compressed import payload
from cdc.producer.binlog.events import PACKET_HEADER_BYTES, RawEvent, gtid
from cdc.producer.binlog.leader import Leader
from cdc.producer.binlog.packets import Packets, SimpleTransaction, flat
from cdc.service.mysql_connection import connected

__all__ = ["LARGEST_OFFSET", "BinlogSource", "Dumps", "Replica", "Translate"]

_CHUNK_BYTES = 1 << 16  # number of bytes read at once: a larger chunk would not stay in the processor's cache
_PACKET_LENGTH_BYTES = 3
_TIMEOUTS = {"read_timeout": 30, "write_timeout": 30}  # seconds; in force until the dump begins
_SELECT_SECONDS = 0.2
_SESSION = (
    # MariaDB sends its GTID events only to replicas with this capability.
    "SET @mariadb_slave_capability=4, "
    # CRC32 works for binlog files with and without checksums: a file's format description names its algorithm.
    "@source_binlog_checksum='CRC32', @master_binlog_checksum='CRC32', "
    # The timeout is long, since the producer does not read this connection while the stream waits for the copy of a
    # table.
    "SESSION net_write_timeout=86400"
)
Translate = Callable[[Iterable[RawEvent | SimpleTransaction]], list[RawEvent | SimpleTransaction]]


class _GtidSet:
    """A GTID set for the library's dump request; the library's own class of this name does not support tags."""

    def __init__(self, text: str) -> None:
        self._encoded = GtidSet.parse(text).encode()
        self.encoded_length = len(self._encoded)

    def encoded(self) -> bytes:
        return self._encoded


binlogstream.GtidSet = _GtidSet


class Replica(NamedTuple):
    """The producer's identity as a replica: the leader allows one dump for each server id and UUID."""

    server_id: int
    uuid: str


class BinlogSource:
    """One connection over which the leader sends its binlog events (a dump). ``with BinlogSource.open(…) as source: for
    events in source.chunks(stop): …``
    """

    def __init__(
        self, reader: BinLogStreamReader, *, name: str, heartbeat_seconds: int, translate: Translate | None = None
    ) -> None:
        self._reader = reader
        self._translate = translate
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
        translate: Translate | None = None,
        after: str = "",
    ) -> Self:
        """Starts the dump after ``gtid_set`` if it is given and not empty, or after ``after``, a GTID
        position of MariaDB, else at ``position``. ``translate`` converts the events of another kind of server to
        MySQL's events.

        ``settings`` are pymysql's connection arguments, ``name`` is the server's name in errors. Raises Disconnected if
        the server cannot be reached.
        """
        reader = BinLogStreamReader(
            connection_settings=settings | _TIMEOUTS | _session(after),
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
        return cls(reader, name=name, heartbeat_seconds=heartbeat_seconds, translate=translate)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._reader.close()
        self._packets.close()

    @property
    def silence(self) -> float:
        """The number of seconds since the leader last sent something. 0 if the socket is not being read, because events
        are being processed.
        """
        return 0.0 if self._busy_since is not None else time.monotonic() - self._received_at

    @property
    def busy(self) -> float:
        """The number of seconds since the processing of the newest events began, during which the socket is not read; 0
        if the socket is being read.
        """
        since = self._busy_since  # the field is read only once, since the other thread may change it
        return 0.0 if since is None else time.monotonic() - since

    def chunks(
        self,
        stop: threading.Event,
        wake: Callable[[], int | None] = lambda: None,
        until: Callable[[], float] = lambda: math.inf,
    ) -> Iterator[list[RawEvent | SimpleTransaction]]:
        """Yields the events that have arrived, without their checksums. Yields an empty list when the leader has no
        more events for now, when the file descriptor that ``wake`` returns, if any, can be read, and at the time that
        ``until`` returns (``time.monotonic()``), which may change meanwhile.

        Ends at ``stop``. Raises Disconnected when the connection is lost or silent for longer than three heartbeats,
        UserError when the leader refuses the position, and PromiseError for a damaged event.
        """
        self._socket.setblocking(False)
        while not stop.is_set():
            events: list[RawEvent | SimpleTransaction] = []
            if arrived := self._receive():
                events, self._data = self._packets.cut(self._data)
                if self._translate is not None:
                    events = self._translate(events)
            # Decoding a compressed transaction takes minutes in which the socket is not read: that does not count as
            # silence.
            self._busy_since = time.monotonic()
            yield events
            self._busy_since, self._received_at = None, time.monotonic()
            if self._packets.fault:
                raise self._packets.fault
            if not arrived:
                self._wait(stop, wake(), until)

    def _receive(self) -> bool:
        """Reads the bytes that have arrived; returns False if they do not complete a packet."""
        missing = 1
        if len(self._data) >= PACKET_HEADER_BYTES:
            length = int.from_bytes(self._data[:_PACKET_LENGTH_BYTES], "little")
            missing = PACKET_HEADER_BYTES + length - len(self._data)
        parts, received, wanted = [self._data], 0, max(_CHUNK_BYTES, missing)
        try:
            # One call returns at most one TLS record (16 KiB). Several records in one chunk save the work that is done
            # per chunk.
            while received < wanted and (chunk := self._socket.recv(wanted - received)):
                parts.append(chunk)
                received += len(chunk)
            if received < missing:
                raise Disconnected("the leader closed the connection", code="CDC-LEADER-GONE", where=self._name)
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError as error:
            raise Disconnected(
                f"the connection to the leader broke: {error}", code="CDC-LEADER-GONE", where=self._name
            ) from None
        self._data = b"".join(parts)
        if received:
            self._received_at = time.monotonic()
        return received >= missing

    def _wait(self, stop: threading.Event, wake: int | None, until: Callable[[], float]) -> None:
        """Waits until the socket or ``wake`` can be read, or for the time that ``until`` returns. Raises Disconnected
        if the leader sends nothing for too long, not even a heartbeat.
        """
        waited = 0.0
        sources = [self._socket] if wake is None else [self._socket, wake]
        while not stop.is_set():
            due = until()
            seconds = min(_SELECT_SECONDS, max(0.0, due - time.monotonic()))
            if select.select(sources, [], [], seconds)[0] or time.monotonic() >= due:
                return
            waited += seconds
            if waited > self._max_silence:
                raise Disconnected(
                    f"the leader has been silent for {waited:.0f} s", code="CDC-LEADER-GONE", where=self._name
                )


def _session(after: str) -> dict[str, Any]:
    more = ""
    if after:
        # The server refuses a position with a GTID that is not in its binlog.
        more = f", @slave_connect_state='{after}', @slave_gtid_strict_mode=1"
    return {"init_command": _SESSION + more}


def _connect(reader: BinLogStreamReader, *, name: str, position: Position) -> None:
    try:
        reader._BinLogStreamReader__connect_to_stream()
    except (ValueError, StructError) as error:
        # The library can't encode an offset of more than 32 bits.
        reader.close()
        raise UserError(
            f"a dump can't be requested from this position: {error}",
            code="CDC-LEADER-NO-DUMP",
            where=f"{name}, position {position}",
            hint="with gtid_mode=ON on the leader, a dump can be requested from any position",
        ) from None
    except (pymysql.MySQLError, OSError) as error:
        reader.close()
        raise Disconnected(f"the leader cannot be reached: {error}", code="CDC-LEADER-GONE", where=name) from None


_FIND_SECONDS = 60.0
_FIRST_OFFSET = 4
LARGEST_OFFSET = 0xFFFFFFFF  # the largest offset in a request for a dump
_MADE_UP_SERVER_ID = 1 << 31  # this bit is set in server ids that are derived from a name
_NO_CHANGE = frozenset({et.ROTATE, et.FORMAT_DESCRIPTION, *et.HEARTBEATS, *et.HARMLESS})
_XA_START_OR_END = re.compile(rb"XA (?:START|END) X'[0-9A-Fa-f]*',X'[0-9A-Fa-f]*',\d+\Z")


class Dumps:
    """Opens dump connections to ``leader``, each as a replica whose name is derived from ``topic`` and ``resource``.

    ``settings`` are pymysql's connection arguments. ``server_id`` is the replica's server id; with 0 it is derived from
    the name. ``translator`` is called for each dump and returns the ``translate`` for ``BinlogSource.open``.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        leader: Leader,
        *,
        topic: str,
        resource: str,
        server_id: int,
        heartbeat_seconds: int,
        translator: Callable[[], Translate] | None = None,
    ) -> None:
        self._settings = settings
        self._translator = translator
        self._leader = leader
        # The replica's UUID is derived from this name, and a leader ends an older dump with the same UUID. Because of
        # the server id in the name, a profile with another server id has another UUID, too.
        self._name = f"{topic} {resource}" + (f" {server_id}" if server_id else "")
        self._server_id = server_id
        self._heartbeat_seconds = heartbeat_seconds

    def follow(self, entry: Entry) -> BinlogSource:
        """Opens a dump of the events after ``entry``: after the entry's GTIDs if they are complete, else after its
        position.

        From a MariaDB leader, requests the events after the GTIDs if the position is before the first event of a file.
        The same holds if the offset has more than 32 bits, because a request can't contain such an offset.
        """
        gtid_set = GtidSet.parse(entry.gtid_set) if self._leader.gtid_on and entry.gtids_complete else None
        file, offset = entry.position
        by_gtids = self._leader.session is not None and not _FIRST_OFFSET <= offset <= LARGEST_OFFSET
        after = mariadb_position(GtidSet.parse(entry.gtid_set)) if by_gtids else ""
        position = Position(file, _FIRST_OFFSET) if by_gtids else entry.position
        return self._open(self._name, position, gtid_set, server_id=self._server_id, after=after)

    def beside(self, position: Position) -> BinlogSource:
        """Opens a second dump, of the events from ``position`` on. It does not end the dump that follows the binlog."""
        return self._open(f"{self._name} beside", position, None, server_id=0)

    def read_again(self, xa: PreparedXa, others: GtidSet | None, stop: threading.Event) -> Iterator[RawEvent]:
        """Reads those events of the prepared XA transaction ``xa`` that change data: in general table maps and rows.

        ``others`` are the GTIDs of all transactions that were read, except ``xa``; None if some of them have no GTID.
        Raises PromiseError if the leader has purged ``xa``, and Disconnected at ``stop``.
        """
        by_gtid = self._leader.gtid_on and xa.gtid is not None
        # With the same name, this dump would end the dump that follows the binlog.
        source = self._open(f"{self._name} xa", Position(xa.file, xa.offset), others if by_gtid else None, server_id=0)
        with source:
            yield from _events_of(xa, source, stop=stop)

    def _open(
        self,
        name: str,
        position: Position,
        gtid_set: GtidSet | None,
        *,
        server_id: int,
        after: str = "",
    ) -> BinlogSource:
        server_id = server_id or _MADE_UP_SERVER_ID | zlib.crc32(name.encode())
        # The ``server_id`` makes the connection fail on another server, where the same position is another place.
        return BinlogSource.open(
            self._settings | {"server_id": self._leader.server_id},
            name=self._leader.name,
            replica=Replica(server_id, ddl_uuid(f"cdc-producer {name}")),
            heartbeat_seconds=self._heartbeat_seconds,
            position=position,
            gtid_set=gtid_set,
            translate=self._translator() if self._translator is not None else None,
            after=after,
        )


def _events_of(xa: PreparedXa, source: BinlogSource, *, stop: threading.Event) -> Iterator[RawEvent]:
    give_up = time.monotonic() + _FIND_SECONDS
    inside = False
    for events in source.chunks(stop):
        for event in _unpacked(events):
            if event.type in et.GTIDS:
                give_up = time.monotonic() + _FIND_SECONDS
                is_at_position = (event.file, event.offset) == (xa.file, xa.offset)
                inside = is_at_position if xa.gtid is None else gtid(event).gtid == xa.gtid
            elif inside and event.type == et.XA_PREPARE:
                return
            elif inside and event.type not in _NO_CHANGE and not _is_xa_start_or_end(event):
                yield event
        # There is no time limit once the transaction is found: reading it may take as long as writing it to Kafka.
        if not inside and time.monotonic() > give_up:
            raise PromiseError(
                f"the prepared XA transaction {xa.gtid or ''} is not in the leader's binlog any more",
                code="CDC-XA-PURGED",
                where=f"{xa.file}:{xa.offset}",
                hint="give the producer a new topic and the follower a fresh copy of the leader",
            )
    raise Disconnected("stopped while a prepared XA transaction was read", code="CDC-STOPPED-IN-XA")


def _is_xa_start_or_end(event: RawEvent) -> bool:
    return event.type == et.QUERY and _XA_START_OR_END.search(event.data) is not None


def _unpacked(events: Iterable[RawEvent | SimpleTransaction]) -> Iterator[RawEvent]:
    for event in flat(events):
        if event.type == et.TRANSACTION_PAYLOAD:
            yield from payload(event)
        else:
            yield event
