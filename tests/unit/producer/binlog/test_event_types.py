"""The three lists of event types."""

import pytest

from cdc.errors import PromiseError
from cdc.producer.binlog.event_types import FATAL, HANDLED, HARMLESS, NAMES
from tests.generators.binlog_events import event
from tests.harness.decoding import decoded


def test_each_type_is_on_one_list() -> None:
    assert sorted([*HANDLED, *HARMLESS, *FATAL]) == sorted(NAMES)
    assert all(HARMLESS.values())
    assert all(FATAL.values())


@pytest.mark.parametrize("kind", [*FATAL, 43, 160, 165])  # the last three: to come, and MariaDB's
def test_an_event_that_is_not_handled_stops_the_stream_at_its_position(kind: int) -> None:
    with pytest.raises(PromiseError, match=rf"event {kind} .*is not supported.*at binlog\.000001:400; hint: "):
        decoded([event(kind, bytes(7))])
