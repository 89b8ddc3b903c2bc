"""The rows of a prepared XA transaction, read from the leader's log a second time."""

import threading
import time
from collections.abc import Iterable, Iterator

from cdc.errors import Disconnected, PromiseError
from cdc.producer import event_types as et
from cdc.producer import events as ev
from cdc.producer.binlog_source import BinlogSource
from cdc.producer.events import RawEvent
from cdc.producer.payload import payload
from cdc.producer.xa import Place

__all__ = ["rows_of"]

_FIND_SECONDS = 60.0


def rows_of(place: Place, source: BinlogSource, *, stop: threading.Event) -> Iterator[RawEvent]:
    """The table maps and rows events of the transaction at ``place``, from a ``source`` that begins there or before.

    Raises PromiseError where it does not come, Disconnected at ``stop``.
    """
    give_up = time.monotonic() + _FIND_SECONDS
    inside = False
    for events in source.chunks(stop):
        for event in _flat(events):
            if event.type in (et.GTID, et.ANONYMOUS_GTID, et.GTID_TAGGED):
                give_up = time.monotonic() + _FIND_SECONDS
                here = (event.file, event.offset) == (place.file, place.offset)
                inside = here if place.gtid is None else ev.gtid(event).gtid == place.gtid
            elif inside and (event.type in et.ROWS or event.type == et.TABLE_MAP):
                yield event
            elif inside and event.type == et.XA_PREPARE:
                return
        if time.monotonic() > give_up:
            raise PromiseError(
                f"the prepared XA transaction {place.gtid or ''} is not in the leader's log any more",
                where=f"{place.file}:{place.offset}",
                hint="give the producer a new topic and the follower a fresh copy of the leader",
            )
    raise Disconnected("stopped while a prepared XA transaction was read")


def _flat(events: Iterable[RawEvent]) -> Iterator[RawEvent]:
    for event in events:
        if event.type == et.TRANSACTION_PAYLOAD:
            yield from payload(event)
        else:
            yield event
