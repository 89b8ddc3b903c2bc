"""Which transactions are left out because they touch a parked table, and when a table is applied again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.errors import Refused, Unapplicable
from cdc.consumer.plan.planner import ALL_LOGGED
from cdc.consumer.source.parked_tables import GONE, LeftOutLate, ParkedTables, is_gone, may_park
from cdc.consumer.state.parked import COPIED, COPYING, PARKED, PARTIAL, Name, ParkedTable
from cdc.model.position import Position
from cdc.model.record import COPY, KeyRange, Record, Row, Uri

WHY = "Data too long"


def record(table: str, sequence: int, *, of: str = "", operation: str = "Add", copying: bool = False) -> Record:
    """A record of a row of d.TABLE, in the transaction ``of`` or one of its own."""
    uri, place = Uri("leader", "d", table), Position("binlog.000001", sequence)
    rows, transaction = (Row(None, [1]),), of or f"leader:{sequence}"
    made = Record(uri, sequence, place, transaction, 0, True, 0, operation, columns=("id",), rows=rows)
    return replace(made, copying=copying)


def chunk(table: str, sequence: int, *, begins: bool = True, ends: bool = True) -> Record:
    """A chunk of a copy of d.TABLE."""
    covered = KeyRange(None if begins else [1], None if ends else [9])
    return replace(record(table, sequence, of=f"copy:{sequence}", operation=COPY), range=covered)


def statement(query: str, sequence: int, *affects: tuple[str, str]) -> Record:
    """A statement with what it affects: actions, and names of tables (empty: of the database)."""
    made = record("", sequence, operation="Query")
    named = tuple({"action": action, "uri": f"flv://leader/d/{table}".rstrip("/")} for action, table in affects)
    return replace(made, uri=Uri("leader", "d"), rows=(), query=query, affects=named)


class Followed:
    """The set, which takes one transaction after the other."""

    def __init__(self, refused: Iterable[str] = (), dependants: Mapping[str, Sequence[str]] | None = None) -> None:
        keys = dependants or {}
        self.refused = dict.fromkeys(refused, WHY)
        self.set = ParkedTables(
            {},
            refused=self.refused,
            former=str,
            dependants=lambda name: [("d", each) for each in keys.get(name[1], ())],
        )

    def applied(self, *records: Record) -> list[int]:
        """The sequences of what is applied of a transaction."""
        return [each.sequence for each in self.set.take(records)]

    @property
    def states(self) -> dict[str, str]:
        return {table: parked.state for (_, table), parked in self.set.tables.items()}


def test_a_refused_transaction_is_left_out_whole_and_parks_its_tables() -> None:
    followed = Followed(refused=["t1"])
    assert followed.applied(record("a", 0)) == [0]
    assert followed.applied(record("a", 1, of="t1"), record("b", 2, of="t1")) == []
    assert followed.set.tables == {("d", name): ParkedTable(1, 1, PARKED, WHY) for name in "ab"}
    assert followed.applied(record("c", 3)) == [3]


def test_what_changes_together_with_a_parked_table_is_parked_too() -> None:
    followed = Followed(refused=["t1"])
    followed.applied(record("a", 1, of="t1"))
    assert followed.applied(record("b", 2, of="t2"), record("a", 3, of="t2")) == []
    assert followed.set.tables["d", "b"] == ParkedTable(2, 2, PARKED, "changed together with d.a, which is parked")
    assert (followed.applied(record("b", 4)), followed.applied(record("c", 5))) == ([], [5])


def test_a_later_part_that_touches_a_parked_table_leaves_out_the_parts_before() -> None:
    followed = Followed(refused=["t1"])
    followed.applied(record("a", 1, of="t1"))
    assert followed.applied(record("b", 2, of="t2")) == [2]
    with pytest.raises(LeftOutLate):
        followed.applied(record("a", 3, of="t2"))
    again = Followed(refused=["t1"])
    again.refused["t2"] = ""
    again.applied(record("a", 1, of="t1"))
    assert again.applied(record("b", 2, of="t2")) == again.applied(record("a", 3, of="t2")) == []
    assert again.states == {"a": PARKED, "b": PARKED}


def test_from_the_first_chunk_of_a_copy_on_its_table_is_applied() -> None:
    followed = Followed(refused=["t1"])
    followed.applied(record("a", 1, of="t1"))
    assert followed.applied(record("a", 2, copying=True)) == []  # the request is there, the copy is not
    assert followed.applied(chunk("a", 3, begins=False)) == []  # of a copy whose beginning was left out
    assert followed.applied(chunk("a", 4, ends=False)) == [4]
    assert (followed.applied(record("a", 5, copying=True)), followed.states) == ([5], {"a": COPYING})
    assert (followed.applied(chunk("a", 6, begins=False)), followed.states) == ([6], {})


def test_tables_that_always_change_together_come_back_one_after_the_other() -> None:
    followed = Followed(refused=["t1"])
    followed.applied(record("a", 1, of="t1"), record("b", 2, of="t1"))
    assert (followed.applied(chunk("a", 3)), followed.states) == ([3], {"a": COPIED, "b": PARKED})
    both = record("a", 4, of="t2"), record("b", 5, of="t2")
    assert (followed.applied(*both), followed.states) == ([4], {"a": COPIED, "b": PARKED})
    assert (followed.applied(chunk("b", 6)), followed.states) == ([6], {})


def test_a_copy_that_is_refused_or_stopped_leaves_its_table_parked() -> None:
    followed = Followed(refused=["t1", "copy:5"])
    followed.applied(record("a", 1, of="t1"))
    followed.applied(chunk("a", 3, ends=False))
    assert (followed.applied(record("a", 4)), followed.states) == ([], {"a": PARTIAL})  # no copy is under way any more
    assert (followed.applied(chunk("a", 5)), followed.set.tables["d", "a"].changed) == ([], 5)
    assert (followed.applied(chunk("a", 6)), followed.states) == ([6], {})


def test_tables_that_foreign_keys_change_are_parked_unless_the_leader_logs_that() -> None:
    keys = {"a": ["b"], "b": ["c"]}
    followed = Followed(refused=["t1"], dependants=keys)
    followed.applied(record("a", 1, of="t1"))
    assert followed.states == {"a": PARKED, "b": PARKED, "c": PARKED}
    assert followed.applied(chunk("b", 2)) == []  # rows of it may go unseen while a is parked
    assert [followed.applied(chunk(name, at)) for at, name in enumerate("abc", start=3)] == [[3], [4], [5]]
    assert followed.states == {}
    logged = Followed(refused=["t1"], dependants=keys)
    logged.applied(replace(record("a", 1, of="t1"), flags=ALL_LOGGED))
    assert logged.states == {"a": PARKED}


def test_statements() -> None:
    followed = Followed(refused=["t1"])
    followed.applied(record("a", 1, of="t1"))
    left_out = [
        statement("ALTER TABLE a ADD x INT", 2, ("AlterTable", "a")),
        statement("CREATE TABLE n LIKE a", 3, ("CreateTable", "n")),
        statement("ALTER TABLE k ADD FOREIGN KEY (x) REFERENCES A (x)", 4, ("AlterTable", "k")),
    ]
    for each in left_out:
        assert followed.set.against(each)
        assert followed.set.settle(each)
    assert followed.states == dict.fromkeys(["a", "n", "k"], PARKED)
    for each in (
        statement("ALTER TABLE m ADD a INT", 5, ("AlterTable", "m")),
        statement("OPTIMIZE TABLE a", 6, ("MaintainTable", "a")),
        statement("CREATE PROCEDURE p() SELECT * FROM a", 7, ("CreateProcedure", "p")),
        statement("CREATE VIEW v AS SELECT * FROM m", 8, ("CreateView", "v")),
        statement("DROP TABLE a, m", 9, ("DropTable", "a"), ("DropTable", "m")),
    ):
        assert followed.set.against(each) is None
        assert not followed.set.settle(each)
    assert followed.states == {"n": PARKED, "k": PARKED}
    with pytest.raises(Unapplicable, match=r"a view may use table d\.n"):
        followed.set.against(statement("CREATE VIEW v AS SELECT * FROM n", 10, ("CreateView", "v")))
    assert not followed.set.settle(statement("DROP DATABASE d", 11, ("DropDatabase", "")))
    assert followed.states == {}


def test_a_drop_of_a_table_that_was_never_created_ends_its_parking() -> None:
    gone = statement("DROP TABLE a", 2, ("DropTable", "a"))
    error = Unapplicable("no", code="CDC-FOLLOWER-REFUSES-RECORD", record=gone, hint="", refused=Refused(1051, "no"))
    assert is_gone(error)
    assert may_park(error)
    followed = Followed(refused=["t1"])
    followed.applied(record("a", 1, of="t1"))
    followed.refused[gone.transaction] = GONE
    assert followed.set.settle(gone)
    assert followed.states == {}


@pytest.mark.parametrize(
    ("code", "refused", "parks"),
    [
        ("CDC-FOLLOWER-REFUSES-RECORD", 1406, True),
        ("CDC-FOLLOWER-REFUSES-RECORD", 1142, False),
        ("CDC-FOLLOWER-REFUSES-RECORD", 1153, False),
        ("CDC-FOLLOWER-REFUSES-RECORD", None, False),
        ("CDC-COPY-OTHER-COLUMNS", None, True),
        ("CDC-CONSUMER-FILTERS-CROSSED", None, False),
        ("CDC-FOLLOWER-STATEMENT-UNKNOWN", None, False),
    ],
)
def test_only_data_and_definitions_park(code: str, refused: int | None, parks: bool) -> None:
    error = None if refused is None else Refused(refused, "no")
    made = [record("a", 1), statement("CREATE DATABASE d", 1, ("CreateDatabase", ""))]
    assert [may_park(Unapplicable("no", code=code, record=each, hint="", refused=error)) for each in made] == [
        parks,
        False,
    ]


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True), max_size=20), st.data())
def test_without_copies_each_transaction_is_applied_whole_or_not_at_all(
    history: list[list[str]], data: st.DataObject
) -> None:
    refused = data.draw(st.sets(st.sampled_from(range(len(history))))) if history else set()
    followed, waits = Followed(refused=[f"t{at}" for at in refused]), set[Name]()
    for at, tables in enumerate(history):
        records = [record(table, at * 10 + place, of=f"t{at}") for place, table in enumerate(tables)]
        touched = {("d", table) for table in tables}
        applied = followed.applied(*records)
        if at in refused or touched & waits:
            assert applied == []
            waits |= touched
        else:
            assert applied == [each.sequence for each in records]
        assert followed.set.tables.keys() == waits
