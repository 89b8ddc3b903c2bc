"""Which table a row finally belongs to, after statements that drop, empty and rename tables."""

import itertools
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.spark.ddl.lineage import (
    BEGINS_COPY,
    END,
    Act,
    Beginning,
    Segment,
    beginnings,
    lineage,
    named_tables,
    own_alters,
)
from cdc.spark.state.coverage import tables_unchanged

Name = tuple[str, str]


def owner(acts: list[Act], name: Name, sequence: int) -> Name | None:
    """The table that a row logged for ``name`` at ``sequence`` finally belongs to."""
    matching = [
        each
        for each in lineage([("db", "a"), ("db", "b"), ("other", "a")], acts)
        if (each.database, each.table) == name and each.first <= sequence < each.end
    ]
    assert len(matching) == 1, "every sequence of every table is covered once"
    return matching[0].owner


def act(sequence: int, action: str, path: str, to: str | None = None, place: int = 0) -> Act:
    return Act(sequence, place, action, f"flv://srv/{path}", to and f"flv://srv/{to}")


SWAP = [
    act(10, "RenameTable", "db/a", "db/c"),
    act(10, "RenameTable", "db/b", "db/a", place=1),
    act(10, "RenameTable", "db/c", "db/b", place=2),
]


@pytest.mark.parametrize(
    ("acts", "name", "sequence", "expected"),
    [
        ([], ("db", "a"), 5, ("db", "a")),
        ([act(10, "DropTable", "db/a")], ("db", "a"), 5, None),
        ([act(10, "DropTable", "db/a")], ("db", "a"), 15, ("db", "a")),
        ([act(10, "DropTable", "db/a")], ("db", "b"), 5, ("db", "b")),
        ([act(10, "TruncateTable", "db/a")], ("db", "a"), 9, None),
        ([act(10, "DropDatabase", "db")], ("db", "b"), 5, None),
        ([act(10, "DropDatabase", "db")], ("other", "a"), 5, ("other", "a")),
        ([act(10, "RenameTable", "db/a", "db/n")], ("db", "a"), 5, ("db", "n")),
        ([act(10, "RenameTable", "db/a", "db/n")], ("db", "n"), 15, ("db", "n")),
        ([act(10, "RenameTable", "db/a", "db/n")], ("db", "a"), 15, ("db", "a")),
        ([act(10, "RenameTable", "db/a", "db/n"), act(20, "DropTable", "db/n")], ("db", "a"), 5, None),
        (SWAP, ("db", "a"), 5, ("db", "b")),
        (SWAP, ("db", "b"), 5, ("db", "a")),
        (SWAP, ("db", "a"), 15, ("db", "a")),
        # IF NOT EXISTS is logged for a table that exists: CREATE ends nothing.
        ([act(10, "CreateTable", "db/a")], ("db", "a"), 5, ("db", "a")),
        ([act(10, "DropView", "db/a")], ("db", "a"), 5, ("db", "a")),
    ],
)
def test_owner(acts: list[Act], name: Name, sequence: int, expected: Name | None) -> None:
    assert owner(acts, name, sequence) == expected


@pytest.mark.parametrize("action", ["AlterTable", "CreateIndex", "DropIndex"])
def test_alter_begins_an_era_of_the_same_table(action: str) -> None:
    eras = {each.era: each.owner for each in lineage([("db", "a")], [act(10, action, "db/a")])}
    assert eras == {0: ("db", "a"), 1: ("db", "a")}


def test_rows_are_unchanged_if_no_statement_moved_or_altered_their_table() -> None:
    def unchanged(action: str, path: str, to: str | None = None) -> bool:
        return tables_unchanged({("db", "kept")}, lineage([("db", "kept")], [act(10, action, path, to)]))

    assert all(unchanged(action, "db/other") for action in ("CreateTable", "AlterTable", "DropTable", "TruncateTable"))
    assert unchanged("CreateTable", "db/kept")
    assert not any(unchanged(action, "db/kept") for action in ("AlterTable", "DropTable", "TruncateTable"))
    assert not unchanged("RenameTable", "db/kept", "db/other")
    assert not unchanged("RenameTable", "db/other", "db/kept")
    assert not unchanged("DropDatabase", "db")


NAMES: list[Name] = [("db", "a"), ("db", "b"), ("other", "a")]
URIS = ["flv://srv/db/a", "flv://srv/db/b", "flv://srv/other/a"]
ACTIONS = ["CreateTable", "AlterTable", "DropTable", "TruncateTable", "RenameTable", "DropView", "AlterDatabase"]


@st.composite
def histories(draw: st.DrawFn) -> list[Act]:
    acts: list[Act] = []
    sequence = 0
    for _ in range(draw(st.integers(0, 8))):
        sequence += draw(st.integers(0, 2))
        action = draw(st.sampled_from([*ACTIONS, "DropDatabase"]))
        uri = draw(st.sampled_from(["flv://srv/db", "flv://srv/other"] if "Database" in action else URIS))
        to = draw(st.sampled_from(URIS)) if action == "RenameTable" else None
        acts.append(Act(sequence, len(acts), action, uri, to))
    return acts


class Model:
    """Which table has each name at one moment; a table is a number, and ``names`` has where each one ended."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.tables = {name: next(self.numbers) for name in NAMES}
        self.alters: dict[int, int] = {}

    def run(self, each: Act) -> None:
        name = NAMES[URIS.index(each.uri)] if each.uri in URIS else None
        if each.action == "DropDatabase":
            for dropped in NAMES:
                if dropped[0] == each.uri.rsplit("/", 1)[1]:
                    self.tables[dropped] = next(self.numbers)
        elif name and each.action in ("DropTable", "TruncateTable"):
            self.tables[name] = next(self.numbers)
        elif name and each.action == "AlterTable":
            self.alters[self.tables[name]] = self.alters.get(self.tables[name], 0) + 1
        elif name and each.action == "RenameTable" and each.to and each.to != each.uri:
            self.tables[NAMES[URIS.index(each.to)]] = self.tables[name]
            self.tables[name] = next(self.numbers)


@given(histories(), st.randoms())
def test_each_row_has_the_owner_and_the_era_of_the_model(acts: list[Act], order: random.Random) -> None:
    logged: dict[tuple[Name, int], tuple[int, int]] = {}  # of a row: its table and how often that was altered before
    model = Model()
    waiting = list(acts)
    last = max((each.sequence for each in acts), default=0) + 1
    for sequence in range(last + 1):
        while waiting and waiting[0].sequence <= sequence:
            model.run(waiting.pop(0))
        for name in NAMES:
            table = model.tables[name]
            logged[name, sequence] = table, model.alters.get(table, 0)
    final = {table: name for name, table in model.tables.items()}
    shuffled = list(acts)
    order.shuffle(shuffled)
    segments = lineage(NAMES, shuffled)
    assert all(each.first < each.end for each in segments)
    for (name, sequence), (table, era) in logged.items():
        (found,) = [
            each for each in segments if (each.database, each.table) == name and each.first <= sequence < each.end
        ]
        assert (found.owner, found.era) == (final.get(table), era)


def test_segments_reach_from_the_first_sequence_to_the_end() -> None:
    acts = [act(5, "RenameTable", "db/a", "db/n"), act(7, "AlterTable", "db/n")]
    assert sorted(lineage([], acts), key=lambda each: (each.table, each.first)) == [
        Segment("db", "a", 0, 5, 0, ("db", "n")),
        Segment("db", "a", 5, END, 0, ("db", "a")),
        Segment("db", "n", 0, 5, 0, None),
        Segment("db", "n", 5, 7, 0, ("db", "n")),
        Segment("db", "n", 7, END, 1, ("db", "n")),
    ]


def test_statements_on_other_objects_name_no_table() -> None:
    assert lineage([], [act(5, "CreateView", "db/v"), act(6, "CreateDatabase", "db")]) == []


@pytest.mark.parametrize("to", [None, "db", "db/a"])
def test_a_rename_to_no_other_table_changes_nothing(to: str | None) -> None:
    assert lineage([], [act(5, "RenameTable", "db/a", to)]) == [Segment("db", "a", 0, END, 0, ("db", "a"))]


@pytest.mark.parametrize("action", ["DropTable", "TruncateTable", "RenameTable", "AlterTable"])
def test_an_act_on_a_database_where_a_table_is_due_changes_nothing(action: str) -> None:
    acts = [act(5, action, "db", "db/a")]
    assert lineage([], acts) == [Segment("db", "a", 0, END, 0, ("db", "a"))]


def test_the_named_tables_are_those_of_both_names() -> None:
    acts = [
        act(1, "RenameTable", "db/a", "other/b"),
        act(2, "DropDatabase", "db"),
        act(3, "CreateTrigger", "db/t"),
    ]
    assert named_tables(acts) == {("db", "a"), ("other", "b"), ("db", "t")}


def test_what_the_stream_has_from_its_beginning() -> None:
    """Tables that it creates, empties, or copies, alone or with their database; but not one whose copy has to begin."""
    acts = [
        act(1, "CreateTable", "db/made"),
        replace(act(2, "CreateTable", "db/copying"), copying=True),
        replace(act(2, "CreateTable", "db/perhaps"), text="create table if  not\nexists perhaps (id INT)"),
        act(3, "TruncateTable", "db/emptied"),
        act(4, BEGINS_COPY, "db/copied"),
        act(5, "AlterTable", "db/old"),
        act(6, "RenameTable", "db/moved", "db/new"),
        act(7, "RenameTable", "db/made", "db/renamed"),
    ]
    names = [("db", "earlier"), ("db", "moved"), ("new", "any"), ("there", "any"), ("gone", "any")]
    acts += [
        act(8, "CreateDatabase", "new"),
        replace(act(9, "CreateDatabase", "there"), text="CREATE DATABASE IF NOT EXISTS there"),
        act(10, "DropDatabase", "gone"),
    ]
    found = beginnings(lineage(names, acts, {("db", "earlier"): Beginning.KNOWN, ("db", "emptied"): Beginning.PERHAPS}))
    assert {f"{database}.{table}" for (database, table), each in found.items() if each is Beginning.OLDER} == {
        "db.copying", "db.old", "db.new", "there.any",
    }  # fmt: skip
    assert {name for name, each in found.items() if each is Beginning.PERHAPS} == {("db", "perhaps")}
    assert found["db", "renamed"] is found["new", "any"] is found["gone", "any"] is Beginning.KNOWN


def test_own_alters_are_those_that_count_for_the_eras_of_the_table_that_is_left() -> None:
    acts = [
        act(1, "AlterTable", "db/a"), act(2, "AlterTable", "db/a"), act(3, "RenameTable", "db/a", "db/b"),
        act(4, "CreateIndex", "db/b"), act(4, "AlterTable", "db/b", place=1), act(5, "AlterTable", "db/gone"),
        act(6, "DropTable", "db/gone"), act(7, "AlterTable", "db/c"),
    ]  # fmt: skip
    found = own_alters([], acts, lambda each: each.sequence not in (1, 7))
    assert found == {("db", "b"): [2, 4, 4]}
    (now,) = {each.era for each in lineage([], acts) if each.owner == ("db", "b") and each.end == END}
    assert now == 1 + len(found["db", "b"])
    assert own_alters([], acts, lambda _: False) == {}
