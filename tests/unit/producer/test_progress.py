"""The commit log's entries, and how reading the leader's log moves them."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import PromiseError, UserError
from cdc.model.commit_entry import VERSION, Commits, Entry, Partial
from cdc.model.position import Position
from cdc.producer.copy.state import Pending
from cdc.producer.decode.changes import Begin, Commit, PositionAdvanced, RowsTransaction
from cdc.producer.progress import Progress

UUID = "5f6a0f4e-0000-11ee-8000-000000000001"
OTHER = "6f6a0f4e-0000-11ee-8000-000000000001"
START = Entry(7, Position("binlog.000001", 4), f"{UUID}:1-3", UUID, gtids_complete=True)


@given(
    st.none() | st.builds(Partial, st.text(), st.integers(0), st.integers(0), st.integers(0)),
    st.dictionaries(st.text(), st.integers(0)),
    st.none() | st.text(),
)
def test_an_entry_survives_its_json(partial: Partial | None, counts: dict[str, int], origin: str | None) -> None:
    entry = Entry(7, Position("binlog.000001", 4), "", UUID, partial, counts, "i", origin=origin)
    assert Entry.parse(entry.to_json(), where="here") == entry
    # A version that does not know the field would refuse an entry that has it.
    assert ("origin" in json.loads(entry.to_json())) == (origin is not None)


def test_a_large_entry_is_packed() -> None:
    numbers = ":".join(map(str, range(2, 60_000, 3)))
    counts = {f"srv.shop_{number}/0": number for number in range(9_000)}
    last = {name: 10 * count for name, count in counts.items() if count % 10}
    sets = replace(START, gtid_set=f"{OTHER}:{numbers},{UUID}:1-3", origin=f"{OTHER}:1")
    for large in (sets, replace(START, counts=counts, last=last)):
        text = large.to_json()
        assert Entry.parse(text, where="here") == large
        known = Commits(7, tuple(sorted(large.partitions)), origin=large.origin)
        assert Commits.parse(text, where="here") == known
        assert Commits.parse(text, where="here", gtids=True) == replace(known, gtid_set=large.gtid_set)
        # The audit reads these in SQL; an earlier version reads the version, and says what to do.
        assert (json.loads(text)["version"], json.loads(text)["next_sequence"]) == (2, 7)
        assert len(text) < 90_000
    assert json.loads(replace(START, gtid_set=f"{UUID}:{numbers[:30_000]}1").to_json())["version"] == 1


def test_readers_know_which_tables_are_not_copied_completely() -> None:
    copy = Pending(fresh=(("d", "a"),), again=(("d", "b"), ("d", "a")), after=("1",)).to_json()
    assert Commits.parse(replace(START, copy=copy).to_json(), where="here").copying == (("d", "a"), ("d", "b"))
    assert Commits.parse(replace(START, copy=Pending(written=3).to_json()).to_json(), where="here").copying == ()


def test_readers_that_do_not_know_what_a_stream_has_refuse_its_entries() -> None:
    for copy, version in (({"repairs": 0}, 3), ({"repairs": 1}, 4), (None, 1)):
        assert json.loads(replace(START, copy=copy).to_json())["version"] == version


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{}", b"null", b'{"position":3}', b'{"new":1}', b"[]", b'{"version":"x"}', b"\xff"),
        *(b'{"version":2,"packed":"eA=="}', b'{"version":2,"packed":"x"}', b'{"version":2,"packed":3}'),
        # zlib of: []
        b'{"version":2,"next_sequence":1,"packed":"eAGLjgUAARUAuQ=="}',
    ],
)
def test_anything_else_is_refused(text: bytes) -> None:
    for kind in (Entry, Commits):
        with pytest.raises(PromiseError, match="not an entry"):
            kind.parse(text, where="here")


def test_an_entry_of_before_there_were_versions_is_read() -> None:
    body = json.loads(START.to_json())
    assert body.pop("version") == 1
    assert Entry.parse(json.dumps(body).encode(), where="here") == START
    body["partial"] = {"transaction": "t", "records": 3, "cut": "0badcafe"}
    assert Entry.parse(json.dumps(body).encode(), where="here").partial == Partial("t", 3, None)


@pytest.mark.parametrize(
    "partial", [None, {"transaction": "t", "records": 1, "rows": 3, "newest": 1, "from": "tomorrow"}]
)
@pytest.mark.parametrize("changes", [{"version": VERSION + 1}, {"from": "tomorrow"}])
def test_an_entry_of_a_newer_version_says_so(changes: dict[str, Any], partial: dict[str, Any] | None) -> None:
    text = json.dumps(json.loads(START.to_json()) | {"partial": partial} | changes).encode()
    with pytest.raises(UserError, match="written by a newer cdc") as caught:
        Entry.parse(text, where="here")
    assert "upgrade" in caught.value.hint
    if "version" in changes:
        with pytest.raises(UserError, match="written by a newer cdc"):
            Commits.parse(text, where="here")
    else:
        # What readers must know of raises the version.
        assert Commits.parse(text, where="here").next_sequence == START.next_sequence


def test_older_versions_refuse_filters_of_rows() -> None:
    """They would take these for filters that let all rows in."""
    filters = {"include_dbs": ["d"], "rows": ["d.t: a = 1"]}
    entry = replace(START, filters=filters)
    body = json.loads(entry.to_json())
    assert body["filters"] == {"include_dbs": ["d"]}
    assert body["row_filters"] == ["d.t: a = 1"]
    assert entry.filters == {"include_dbs": ["d"], "rows": ["d.t: a = 1"]}
    assert Commits.parse(entry.to_json(), where="here").leaves_rows_out
    assert not Commits.parse(START.to_json(), where="here").leaves_rows_out
    assert Entry.parse(entry.to_json(), where="here") == entry


def test_older_versions_refuse_a_state_with_tables_that_lack_rows() -> None:
    """They would copy these tables, but not state again what else could not be read."""
    table = ("d", "t")
    lacking = replace(START, copy=Pending().lacking([table], f"{UUID}:4").to_json())
    assert json.loads(lacking.to_json())["version"] == 7
    asked = replace(START, copy=Pending().also([table]).to_json())
    assert json.loads(asked.to_json())["version"] == 3


def test_a_commit_adds_its_gtid_and_moves_the_position() -> None:
    progress = Progress(START)
    progress.note(Begin(f"{UUID}:4", f"{UUID}:4", 0))
    assert not progress.between_transactions
    progress.note(Commit(Position("binlog.000001", 300)))
    entry = progress.entry(next_sequence=9)
    assert (entry.next_sequence, entry.gtid_set, entry.position.offset, entry.partial) == (9, f"{UUID}:1-4", 300, None)


def test_a_quiet_leaders_place_is_committed_now_and_then_and_sooner_where_it_moved() -> None:
    progress, begun = Progress(START, alive_seconds=60), time.monotonic()
    assert [progress.is_stale(begun + seconds) for seconds in (6, 59, 62)] == [False, False, True]
    progress.note(PositionAdvanced(Position("binlog.000001", 300)))
    assert [progress.is_stale(begun + seconds) for seconds in (4, 6)] == [False, True]


def test_a_transaction_without_a_gtid_ends_the_use_of_gtids() -> None:
    progress = Progress(START)
    progress.note(Begin("binlog.000001:4", None, 0))
    progress.note(Commit(Position("binlog.000001", 300)))
    assert not progress.entry(next_sequence=8).gtids_complete


def test_an_open_transaction_is_counted_and_its_start_kept() -> None:
    progress = Progress(START)
    progress.note(Begin(f"{UUID}:4", f"{UUID}:4", 0))
    entry = progress.entry(next_sequence=12, partial=Partial(f"{UUID}:4", 5, 50))
    assert entry.partial == Partial(f"{UUID}:4", 5, 50)
    assert (entry.position, entry.gtid_set) == (START.position, START.gtid_set)


def test_a_half_sent_transaction_stays_so_until_it_has_been_read_again() -> None:
    half = Partial(f"{UUID}:4", 5, 50)
    progress = Progress(Entry(12, START.position, START.gtid_set, UUID, half))
    progress.note(PositionAdvanced(Position("binlog.000001", 200)))
    assert progress.entry(next_sequence=12).partial == half
    # Another server may have one of its own before it.
    progress.note(Begin(f"{OTHER}:1", f"{OTHER}:1", 0))
    progress.note(Commit(Position("binlog.000001", 250)))
    progress.note(RowsTransaction(Begin(f"{OTHER}:2", f"{OTHER}:2", 0), [], "binlog.000001", 260))
    assert progress.entry(next_sequence=12).partial == half
    progress.note(Begin(f"{UUID}:4", f"{UUID}:4", 0))
    progress.note(Commit(Position("binlog.000001", 300)))
    assert progress.entry(next_sequence=14).partial is None


def test_the_position_never_goes_back_and_files_count_by_number() -> None:
    progress = Progress(START)
    progress.note(PositionAdvanced(Position("binlog.1000000", 4)))
    progress.note(PositionAdvanced(Position("binlog.999999", 900)))
    assert progress.position == Position("binlog.1000000", 4)
    assert progress.has_reached(Position("binlog.999999", 900))
    assert not progress.has_reached(Position("binlog.1000000", 5))
