"""The three lists of event types."""

import pytest

from cdc.errors import PromiseError
from cdc.producer.binlog.event_types import FATAL, HANDLED, HARMLESS, NAMES
from cdc.producer.binlog.events import RawEvent
from cdc.producer.decode.decoder import Decoder
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.decode.xa import XaTransactions


def test_each_type_is_on_one_list() -> None:
    assert sorted([*HANDLED, *HARMLESS, *FATAL]) == sorted(NAMES)
    assert all(HARMLESS.values())
    assert all(FATAL.values())


@pytest.mark.parametrize("kind", [*FATAL, 43, 160, 165])  # the last three: to come, and MariaDB's
def test_an_event_that_is_not_handled_stops_the_stream_at_its_position(kind: int) -> None:
    xa = XaTransactions({}, read_again=lambda place: pytest.fail("nothing was prepared"))
    decoder = Decoder(
        TableCache(
            wants_table=lambda database, table: True,
            collations={},
            allow_differences=lambda *_: None,
            equal_members=lambda *_: False,
        ),
        xa=xa,
        log=pytest.fail,
    )
    event = RawEvent(kind, bytes(30), "binlog.000001", 400, 430)
    with pytest.raises(PromiseError, match=rf"event {kind} .*is not supported.*at binlog\.000001:400; hint: "):
        list(decoder.decode([[event]]))
