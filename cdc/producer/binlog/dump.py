"""Opens dump connections to one leader: one to follow its binlog, others to read a prepared XA transaction again."""

import re
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from cdc.errors import Disconnected, PromiseError
from cdc.model.commit_entry import Entry, PreparedXa
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.model.statement_gtid import ddl_uuid
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.compressed import payload
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction, flat
from cdc.producer.binlog.gtid_event import gtid
from cdc.producer.binlog.leader import Leader
from cdc.producer.binlog.source import BinlogSource, Replica

__all__ = ["Dumps"]

_FIND_SECONDS = 60.0
_MADE_UP_SERVER_ID = 1 << 31  # this bit is set in server ids that are made from a name
_NO_CHANGE = frozenset({et.ROTATE, et.FORMAT_DESCRIPTION, *et.HEARTBEATS, *et.HARMLESS})
_XA_START_OR_END = re.compile(rb"XA (?:START|END) X'[0-9A-Fa-f]*',X'[0-9A-Fa-f]*',\d+\Z")


class Dumps:
    """Dump connections to ``leader``, each as a replica with a name made of ``topic`` and ``resource``.

    ``settings`` are pymysql's connection arguments. ``server_id`` is the replica's server id, 0 for one made from its
    name.
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
    ) -> None:
        self._settings = settings
        self._leader = leader
        # A leader ends the dump of an older replica with the same UUID; a server id in the profile makes it another.
        self._name = f"{topic} {resource}" + (f" {server_id}" if server_id else "")
        self._server_id = server_id
        self._heartbeat_seconds = heartbeat_seconds

    def follow(self, entry: Entry) -> BinlogSource:
        """The events after ``entry``: by its GTIDs where they are complete, else by its position."""
        gtid_set = GtidSet.parse(entry.gtid_set) if self._leader.gtid_on and entry.gtids_complete else None
        return self._open(self._name, entry.position, gtid_set, server_id=self._server_id)

    def read_again(self, xa: PreparedXa, others: GtidSet | None, stop: threading.Event) -> Iterator[RawEvent]:
        """The events of the prepared XA transaction ``xa`` that change data: in general table maps and rows.

        ``others`` are the GTIDs of all transactions read but this one, None where some have none. Raises PromiseError
        where the leader has purged it, Disconnected at ``stop``.
        """
        by_gtid = self._leader.gtid_on and xa.gtid is not None
        # With the same name, this dump would end the one that follows the binlog.
        source = self._open(f"{self._name} xa", Position(xa.file, xa.offset), others if by_gtid else None, server_id=0)
        with source:
            yield from _events_of(xa, source, stop=stop)

    def _open(self, name: str, position: Position, gtid_set: GtidSet | None, *, server_id: int) -> BinlogSource:
        server_id = server_id or _MADE_UP_SERVER_ID | zlib.crc32(name.encode())
        return BinlogSource.open(
            self._settings,
            name=self._leader.name,
            replica=Replica(server_id, ddl_uuid(f"cdc-producer {name}")),
            heartbeat_seconds=self._heartbeat_seconds,
            position=position,
            gtid_set=gtid_set,
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
        # Once the transaction is found, reading it may take as long as writing it to Kafka.
        if not inside and time.monotonic() > give_up:
            raise PromiseError(
                f"the prepared XA transaction {xa.gtid or ''} is not in the leader's binlog any more",
                where=f"{xa.file}:{xa.offset}",
                hint="give the producer a new topic and the follower a fresh copy of the leader",
            )
    raise Disconnected("stopped while a prepared XA transaction was read")


def _is_xa_start_or_end(event: RawEvent) -> bool:
    return event.type == et.QUERY and _XA_START_OR_END.search(event.data) is not None


def _unpacked(events: Iterable[RawEvent | SimpleTransaction]) -> Iterator[RawEvent]:
    for event in flat(events):
        if event.type == et.TRANSACTION_PAYLOAD:
            yield from payload(event)
        else:
            yield event
