"""The dumps that a producer asks its leader for: one to follow, and others to read a prepared XA transaction again."""

import re
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from cdc.errors import Disconnected, PromiseError
from cdc.model.commit_entry import Entry, PreparedXa
from cdc.model.gtid import GtidSet, ddl_uuid
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.compressed import payload
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction, flat
from cdc.producer.binlog.gtid_event import gtid
from cdc.producer.binlog.leader import Leader
from cdc.producer.binlog.source import BinlogSource

__all__ = ["Dumps"]

_FIND_SECONDS = 60.0
_NO_CHANGE = frozenset({et.ROTATE, et.FORMAT_DESCRIPTION, *et.HEARTBEATS, *et.HARMLESS})
_XA = re.compile(rb"XA (?:START|END) X'[0-9A-Fa-f]*',X'[0-9A-Fa-f]*',\d+\Z")


class Dumps:
    """Dumps of ``leader``. ``settings`` are pymysql's connection arguments; ``topic`` and ``resource`` name the reader,
    ``server_id`` is its number among the leader's replicas, 0 for one made of its name."""

    def __init__(
        self,
        settings: dict[str, Any],
        leader: Leader,
        *,
        topic: str,
        resource: str,
        server_id: int,
        heartbeat_seconds: int,
    ) -> None:
        self._settings = settings
        self._leader = leader
        # A leader ends the dump of an older reader of the same name; a number in the profile says that there are two.
        self._name = f"{topic} {resource}" + (f" {server_id}" if server_id else "")
        self._server_id = server_id
        self._heartbeat_seconds = heartbeat_seconds

    def follow(self, entry: Entry) -> BinlogSource:
        """What comes after ``entry``: by its GTIDs where they are complete, else by its position."""
        gtid_set = GtidSet.parse(entry.gtid_set) if self._leader.gtid_on and entry.gtids_complete else None
        return self._open(self._name, entry.position, gtid_set, server_id=self._server_id)

    def read_again(self, place: PreparedXa, others: GtidSet | None, stop: threading.Event) -> Iterator[RawEvent]:
        """What the prepared XA transaction at ``place`` did: its table maps and rows, in general.

        ``others`` are the GTIDs of all that has been read but this one, where they are complete. Raises PromiseError
        where the leader does not have it any more, Disconnected at ``stop``.
        """
        by_gtid = self._leader.gtid_on and place.gtid is not None
        # A second reader of the same name would end the dump of the first at the server.
        source = self._open(
            f"{self._name} xa", Position(place.file, place.offset), others if by_gtid else None, server_id=0
        )
        with source:
            yield from _rows_of(place, source, stop=stop)

    def _open(self, name: str, position: Position, gtid_set: GtidSet | None, *, server_id: int) -> BinlogSource:
        return BinlogSource.open(
            self._settings,
            name=self._leader.name,
            server_id=server_id or 1 << 31 | zlib.crc32(name.encode()),
            replica_uuid=ddl_uuid(f"cdc-producer {name}"),
            heartbeat_seconds=self._heartbeat_seconds,
            position=position,
            gtid_set=gtid_set,
        )


def _rows_of(place: PreparedXa, source: BinlogSource, *, stop: threading.Event) -> Iterator[RawEvent]:
    give_up = time.monotonic() + _FIND_SECONDS
    inside = False
    for events in source.chunks(stop):
        for event in _flat(events):
            if event.type in et.GTIDS:
                give_up = time.monotonic() + _FIND_SECONDS
                here = (event.file, event.offset) == (place.file, place.offset)
                inside = here if place.gtid is None else gtid(event).gtid == place.gtid
            elif inside and event.type == et.XA_PREPARE:
                return
            elif inside and event.type not in _NO_CHANGE and not _is_xa(event):
                yield event
        # Once it is found it takes as long as Kafka takes.
        if not inside and time.monotonic() > give_up:
            raise PromiseError(
                f"the prepared XA transaction {place.gtid or ''} is not in the leader's log any more",
                where=f"{place.file}:{place.offset}",
                hint="give the producer a new topic and the follower a fresh copy of the leader",
            )
    raise Disconnected("stopped while a prepared XA transaction was read")


def _is_xa(event: RawEvent) -> bool:
    """Whether this is XA START or XA END."""
    return event.type == et.QUERY and _XA.search(event.data) is not None


def _flat(events: Iterable[RawEvent | SimpleTransaction]) -> Iterator[RawEvent]:
    for event in flat(events):
        if event.type == et.TRANSACTION_PAYLOAD:
            yield from payload(event)
        else:
            yield event
