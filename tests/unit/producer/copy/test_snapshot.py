"""A snapshot that is said to be exact shows the table as it is at that place of the stream, whatever it saw."""

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.copy.chunk_request import ChunkRequest, Snapshot
from cdc.producer.copy.reader import Answer, Wanted
from cdc.producer.decode.changes import Begin, Commit, Rows, RowsTransaction, TableShape
from tests.harness.copying import NOTHING

UUID = "5b2ad69c-0000-0000-0000-000000000001"
T, U, PARENT = (TableShape("d", name, "", {}, 1) for name in ("t", "u", "parent"))
ALL_LOGGED = 0x10
_NAMELESS = 3  # the transaction that has no GTID


def _rows(table: TableShape, *, flags: int = ALL_LOGGED, operation: str = "Update") -> Rows:
    of_binlog: Any = None
    return Rows(of_binlog, table, operation, [b"{}"], flags)


@st.composite
def _leaders(draw: st.DrawFn) -> dict[str, Any]:
    """A binlog of transactions and, at a moment in it, what has been executed, what is seen and what is logged.

    Not in order, as with binlog_order_commits = OFF.
    """
    tables = draw(st.lists(st.sampled_from([T, U, PARENT]), min_size=1, max_size=12))
    count = len(tables)
    logged = draw(st.integers(0, count))  # before the binlog's end that is asked for after the snapshot
    seen = draw(st.sets(st.integers(0, logged - 1))) if logged else set()
    executed = draw(st.sets(st.sampled_from(sorted(seen)))) if seen else set()
    # The stream had these when it asked, and the leader has executed them since.
    asked = draw(st.integers(0, count))
    asked = next((n for n in range(asked) if n not in executed), min(asked, count))
    return {"tables": tables, "logged": logged, "seen": seen, "executed": executed, "asked": asked}


@given(_leaders(), st.booleans(), st.integers(0, 12))
def test_what_is_exact_is_the_table_there(leader: dict[str, Any], nameless: bool, later: int) -> None:
    tables, seen, asked = leader["tables"], leader["seen"], leader["asked"]
    place = min(max(leader["logged"], asked) + later, len(tables))
    question = ChunkRequest(Wanted(T.names, None, NOTHING))
    named: list[str | None] = [f"{UUID}:{number + 1}" for number in range(len(tables))]
    if nameless and len(named) > _NAMELESS:
        named[_NAMELESS] = None
    for number in range(asked, place):
        question.note(_rows(tables[number], flags=ALL_LOGGED), named[number])
    known = GtidSet()
    for number in leader["executed"]:
        known.add(f"{UUID}:{number + 1}")
    exact = question.is_exact(Answer(Position("b.1", 4), 0, seen=known))
    shown = {number for number in seen if tables[number] is T}
    there = {number for number in range(place) if tables[number] is T}
    event("exact" if exact else "in doubt")
    assert shown == there or not exact
    if there == shown and not any(tables[number] is T for number in range(asked, place)):
        assert exact, "a table that nothing changes is copied at once"


def test_what_a_foreign_key_may_have_changed_is_in_doubt() -> None:
    answer = Answer(Position("b.1", 4), 0, follows=frozenset({PARENT.names}), seen=GtidSet())
    for flags, operation, exact in ((0, "Delete", False), (0, "Add", True), (ALL_LOGGED, "Delete", True)):
        question = ChunkRequest(Wanted(T.names, None, NOTHING))
        question.note(_rows(PARENT, flags=flags, operation=operation), f"{UUID}:1")
        assert question.is_exact(answer) == exact


def test_a_transaction_without_a_name_is_in_doubt() -> None:
    for gtid, exact in ((None, False), (f"{UUID}:1", True), (f"{UUID}:2", False)):
        question = ChunkRequest(Wanted(T.names, None, NOTHING))
        question.note(_rows(T), gtid)
        assert question.is_exact(Answer(Position("b.1", 4), 0, seen=GtidSet.parse(f"{UUID}:1"))) == exact


def test_what_may_change_the_table_waits_for_its_pieces() -> None:
    begin, at = Begin("x", None, 0), Position("b.1", 4)
    snapshot = Snapshot(frozenset({T.names, PARENT.names}), 0.0)
    assert snapshot.may_end_with(begin)
    assert snapshot.may_end_with(RowsTransaction(begin, [_rows(U), _rows(PARENT)], "b.1", 9))
    assert not snapshot.may_end_with(RowsTransaction(begin, [_rows(U)], "b.1", 9))
    assert not snapshot.may_end_with(Commit(at))
