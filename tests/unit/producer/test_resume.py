"""A partially committed transaction is continued only where the server has its rest and the part can be counted."""

from dataclasses import replace

import pytest

from cdc.errors import Disconnected, UserError
from cdc.model.commit_entry import Entry, Partial
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog.leader import Leader
from cdc.producer.resume import starting_entry

UUID, OTHER = "5f6a0f4e-0000-11ee-8000-000000000001", "6f6a0f4e-0000-11ee-8000-000000000001"
FILTERS = {"include_dbs": ["d"]}
ENTRY = Entry(
    12, Position("binlog.000001", 400), f"{UUID}:1-3", UUID, Partial(f"{UUID}:4", 5, 50), gtids_complete=True,
    filters=FILTERS,
)  # fmt: skip


def leader(uuid: str = UUID, executed: str = f"{UUID}:1-9") -> Leader:
    return Leader(
        name="leader", version="9.7.0", server_uuid=uuid, server_id=1, gtid_on=True, executed=GtidSet.parse(executed),
        purged=GtidSet(), position=Position("binlog.000009", 900), logs=(("binlog.000001", 500),), collations={},
    )  # fmt: skip


def start(leader: Leader, entry: Entry = ENTRY, filters: dict[str, list[str]] = FILTERS) -> Entry | None:
    return starting_entry(leader, entry, start="now", filters=filters)


def test_the_same_server_and_another_one_that_has_the_rest_go_on() -> None:
    assert start(leader()) == ENTRY
    assert start(leader(OTHER)) == replace(ENTRY, server_uuid=OTHER, position=Position("binlog.000001", 4))


def test_a_server_without_the_rest_is_refused_or_waited_for() -> None:
    with pytest.raises(UserError, match="lost binlogs or was replaced"):
        start(leader(OTHER, executed=f"{UUID}:1-3"))
    # Its own leader may have sent it before it has executed it.
    with pytest.raises(Disconnected, match="has not executed all"):
        start(leader(executed=f"{UUID}:1-3"))
    with pytest.raises(UserError, match="lost binlogs or was replaced"):
        start(leader(OTHER, executed=f"{OTHER}:1"), replace(ENTRY, gtid_set=""))


def test_other_filters_are_refused_until_it_is_through() -> None:
    with pytest.raises(UserError, match="partially committed, with other filters"):
        start(leader(), filters={})
    assert start(leader(), replace(ENTRY, partial=None), filters={}) == replace(ENTRY, partial=None)


def test_what_a_version_of_before_has_counted_is_left_to_it() -> None:
    with pytest.raises(UserError, match="partially committed, and an older cdc has counted"):
        start(leader(), replace(ENTRY, partial=Partial(f"{UUID}:4", 5, None), filters=None))
