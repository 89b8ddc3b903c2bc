"""The three lists of event types."""

from cdc.producer.event_types import FATAL, HANDLED, HARMLESS, NAMES


def test_each_type_is_on_one_list() -> None:
    assert sorted([*HANDLED, *HARMLESS, *FATAL]) == sorted(NAMES)
    assert all(HARMLESS.values())
    assert all(FATAL.values())
