"""Which newest entry of the commit log shows a producer that another one has taken over."""

import pytest

from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.sink.kafka_sink import Replaced, _require_own


def entry(instance: str, next_sequence: int) -> Entry:
    position = Position("binlog.000001", 4 + next_sequence)
    return Entry(next_sequence=next_sequence, position=position, gtid_set="", server_uuid="u", instance=instance)


BEGAN = entry("host/1/a", 7)


@pytest.mark.parametrize("newest", [None, entry("host/2/b", 9), BEGAN, entry("host/0/c", 6)])
def test_entries_that_the_brokers_have_lost_are_no_successor(newest: Entry | None) -> None:
    """A broker that was elected uncleanly shows an entry from before this producer's start, or none."""
    _require_own(newest, "host/2/b", began_after=BEGAN)


@pytest.mark.parametrize(
    ("newest", "began_after"), [(entry("host/3/d", 7), BEGAN), (entry("host/1/a", 8), BEGAN), (BEGAN, None)]
)
def test_a_newer_entry_of_another_process_is_a_successors(newest: Entry, began_after: Entry | None) -> None:
    with pytest.raises(Replaced):
        _require_own(newest, "host/2/b", began_after=began_after)
