"""The binlog's other events as messages: their fields, each once, and nothing of any row or statement."""

import json
import struct
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.model.position import Position
from cdc.model.record import is_event
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.event_types import NAMES
from cdc.producer.binlog.events import RawEvent
from cdc.producer.sink.event_messages import EventMessages
from tests.generators import binlog_events as events
from tests.generators.binlog_events import SOURCE, UUID

GTID_BODY = b"\1" + SOURCE + (23).to_bytes(8, "little") + b"\2" + (7).to_bytes(8, "little") + (8).to_bytes(8, "little")


event = partial(events.event, file="binlog.000002")


def shown(raw: RawEvent, after: Position | None = None) -> dict[str, object] | None:
    message = EventMessages(resource="srv é", topic="t", shown=after).message(raw)
    return json.loads(message.value) if message else None


@pytest.mark.parametrize(
    ("kind", "body", "fields"),
    [
        (et.ROTATE, (4).to_bytes(8, "little") + b"binlog.000003", {"file_name": "binlog.000003", "position": 4}),
        (et.XID, (77).to_bytes(8, "little"), {"xid": 77}),
        (et.STOP, b"", {}),
        (et.ROWS_QUERY, b"\x05INSERT INTO secrets VALUES ('x')", {"length": 33}),
        (
            et.PREVIOUS_GTIDS,
            struct.pack("<Q16sQQQQQ", 1, SOURCE, 2, 1, 6, 9, 10),
            {"gtid_set": f"{UUID}:1-5:9"},
        ),
        (et.PREVIOUS_GTIDS, struct.pack("<Q", 1 << 56), {"length": 8}),
        # Damaged: more sources or intervals than there are bytes for.
        (et.PREVIOUS_GTIDS, struct.pack("<Q16sQQQ", 2, SOURCE, 1, 1, 6), {"length": 48}),
        (et.PREVIOUS_GTIDS, struct.pack("<Q16sQQQ", 1, SOURCE, 2, 1, 6), {"length": 48}),
        (
            et.GTID,
            GTID_BODY + (1_700_000_000_000_001).to_bytes(7, "little") + b"\0" * 8,
            {
                "gtid": f"{UUID}:23",
                "last_committed": 7,
                "sequence_number": 8,
                "commit_us": 1_700_000_000_000_001,
            },
        ),
        (et.TRANSACTION_PAYLOAD, b"x" * 9, {"length": 9}),
        (et.VIEW_CHANGE, b"", {"length": 0}),
    ],
)
def test_fields(kind: int, body: bytes, fields: dict[str, object]) -> None:
    assert shown(event(kind, body)) == {
        "uri": "flv://srv%20%C3%A9",
        "bn_file": {"fileName": "binlog.000002", "offset": 400},
        "event": {NAMES[kind]: fields},
    }


@pytest.mark.parametrize("kind", [et.QUERY, et.TABLE_MAP, *et.ROWS])
def test_rows_and_statements_are_not_shown(kind: int) -> None:
    assert shown(event(kind, b"secret")) is None


@given(st.sampled_from([kind for kind in NAMES if kind not in et.IN_RECORDS]), st.binary())
def test_what_cannot_be_read_is_left_to_the_decoder(kind: int, body: bytes) -> None:
    message = EventMessages(resource="srv", topic="t", shown=None).message(event(kind, body))
    assert message is not None
    assert is_event(message.value)


def test_each_place_is_shown_once_and_the_connections_own_events_always() -> None:
    after = Position("binlog.000002", 400)
    assert shown(event(et.STOP, b""), after) is None
    assert shown(event(et.STOP, b"", file="binlog.000001", offset=900), after) is None
    assert shown(event(et.STOP, b"", offset=401), after)
    assert shown(event(et.STOP, b"", file="binlog.1000000"), after)
    heartbeat = event(et.HEARTBEAT, b"binlog.000001", offset=0)
    assert shown(heartbeat, after)
