"""A table that is copied by chunks, between records, becomes the leader's, from whatever the follower has."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.errors import Unapplicable
from cdc.consumer.plan.chunk_plan import (
    ChunkPlan,
    Found,
    check_chunk,
    check_copying,
    chunk_plan,
    in_range,
    plan_copying,
)
from cdc.consumer.plan.planner import Step, in_order
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.model.record import KeyRange, Record, Row
from cdc.model.values import Value
from tests.unit.consumer.plan.test_net_effects import image
from tests.unit.consumer.plan.test_planner import record

Rows = dict[int, int]
SCHEMA = TableSchema(
    frozenset("ab"),
    unique_keys={"PRIMARY": (KeyPart("a"),), "b": (KeyPart("b"),)},
    types={"a": ("int", None), "b": ("int", None)},
)
KEYS = st.integers(0, 5)
TABLES = st.lists(st.tuples(KEYS, st.integers(0, 7)), unique_by=(lambda row: row[0], lambda row: row[1])).map(dict)
WISHES = st.lists(st.tuples(KEYS, KEYS, st.integers(0, 7)), max_size=4)


@dataclass
class Follower:
    """A table with a unique key for each of its columns, to which steps are applied as the server and the executors
    do it.
    """

    rows: Rows

    def add(self, row: Sequence[Value]) -> None:
        key, value = (each["SignedInteger"] for each in row)
        if key in self.rows or value in self.rows.values():
            raise KeyError("a duplicate key")
        self.rows[key] = value

    def converge(self, row: Sequence[Value]) -> None:
        key, value = (each["SignedInteger"] for each in row)
        self.rows = {k: v for k, v in self.rows.items() if k != key and v != value}
        self.rows[key] = value

    def execute(self, steps: Sequence[Step]) -> None:
        for step in steps:
            for _, (before, after) in step.changes:
                if step.operation == "Add":
                    assert after is not None
                    self.add(after)
                elif not step.prepared:
                    assert step.operation == "Clear"
                    assert before is not None
                    self.rows.pop(before[0]["SignedInteger"], None)

    def records(self, records: list[Record]) -> None:
        before = dict(self.rows)
        try:
            self.execute(plan_copying(records, schema=lambda _: SCHEMA))
        except KeyError:
            self.rows = before
            for step in in_order(records):
                for _, (gone, come) in step.changes:
                    if gone is not None:
                        self.rows.pop(gone[0]["SignedInteger"], None)
                    if come is not None:
                        self.converge(come)

    def chunk(self, chunk: Record, *, few: bool = False) -> ChunkPlan:
        assert chunk.range is not None
        after, through = ((end or [None])[0] for end in chunk.range[:2])
        low = after["SignedInteger"] if after else -1
        high = through["SignedInteger"] if through else 99
        named = {row.after[0]["SignedInteger"]: n for n, row in enumerate(chunk.rows) if row.after}
        want = {key: chunk.rows[n].after[1]["SignedInteger"] for key, n in named.items()}  # type: ignore[index]
        inside = {key for key in self.rows if low < key <= high}
        if chunk.range.keys is not None:
            inside &= {key["SignedInteger"] for (key,) in chunk.range.keys}  # type: ignore[index, call-overload]
        equal = {key for key in named if self.rows.get(key) == want[key]}
        found = Found(
            len(inside),
            frozenset(named[key] for key in equal),
            frozenset(named[key] for key in named if key in self.rows and key not in equal),
            frozenset(named[key] for key in named if key in self.rows and key not in inside),
            [str(key) for key in named],
        ) if inside else Found()  # fmt: skip
        if few and inside:
            # Rows outside of the range are not looked for, and nothing is kept.
            found = Found(len(inside), found.equal - found.outside, found.others - found.outside, few=True)
            equal = set()
        made = chunk_plan(chunk, SCHEMA, found)
        gone = [step for step in made.steps if step.prepared]
        for key in inside - equal if gone else ():
            del self.rows[key]
        assert bool(inside - equal) == bool(gone)
        if gone:
            assert gone[0].prepared[0][1] == len(inside - equal)
        before = dict(self.rows)
        try:
            self.execute(made.steps)
        except KeyError:
            self.rows = before
            for row in made.written.rows:
                self.converge(row.after or [])
        return made


def changes(leader: Rows, wishes: list[tuple[int, int, int]], *, first: int) -> list[Record]:
    """The records of those of these changes that the leader's table allows."""
    records: list[Record] = []
    for key, to, value in wishes:
        before = image(key, leader.pop(key)) if key in leader else None
        after = image(to, value) if to not in leader and value not in leader.values() else None
        if after is not None:
            leader[to] = value
        if before or after:
            kind = "Update" if before and after else "Delete" if before else "Add"
            made = record(first + len(records), kind, width=2)
            records.append(replace(made, rows=(Row(before, after),), copying=True))
    return records


def chunk_of(leader: Rows, after: int | None, through: int | None, *, more: set[int] = frozenset()) -> Record:  # type: ignore[assignment]
    keys = [key for key in sorted(leader) if (after is None or key > after) and (through is None or key <= through)]
    keys += sorted(key for key in more if key in leader and key not in keys)
    ends = [None if end is None else image(end, 0)[:1] for end in (after, through)]
    rows = tuple(Row(None, image(key, leader[key])) for key in keys)
    return replace(record(0, "Copy", width=2), rows=rows, range=KeyRange(*ends), flags=2)


@given(TABLES, TABLES, st.lists(st.integers(0, 5), unique=True).map(sorted), st.lists(WISHES, min_size=8, max_size=8),
       st.sets(KEYS), st.integers(1, 4), st.booleans(), st.booleans())  # fmt: skip
def test_any_history_with_chunks_gives_the_table_of_the_leader(
    leader: Rows, rows: Rows, ends: list[int], wishes: list[list[tuple[int, int, int]]], more: set[int],
    size: int, again: bool, few: bool,
) -> None:  # fmt: skip
    leader, follower = dict(leader), Follower(dict(rows))
    for after, through in list(pairwise([None, *ends, None])) * (2 if again else 1):
        chunk = chunk_of(leader, after, through, more=more)
        follower.chunk(chunk, few=few)
        # Once more where the follower has all of it: nothing is written.
        assert follower.chunk(chunk).steps == [] or more
        covered = {key for key in range(6) if through is None or key <= through}
        records = changes(leader, wishes.pop(), first=0) if wishes else []
        for start in range(0, len(records), size):
            follower.records(records[start : start + size])
        if not again:
            assert {k: v for k, v in follower.rows.items() if k in covered} == {
                k: v for k, v in leader.items() if k in covered
            }
    assert follower.rows == leader


def repair_of(leader: Rows, keys: set[int], *, more: set[int] = frozenset()) -> Record:  # type: ignore[assignment]
    chunk = chunk_of({key: value for key, value in leader.items() if key in keys | more}, None, None)
    return replace(chunk, range=KeyRange(None, None, keys=tuple(image(key, 0)[:1] for key in sorted(keys))))


@given(TABLES, TABLES, st.sets(KEYS), st.permutations(range(6)), st.integers(1, 6))
def test_repairs_of_all_rows_that_differ_give_the_table_of_the_leader(
    leader: Rows, rows: Rows, more: set[int], order: list[int], size: int
) -> None:
    """In whatever parts: a row that one of them removes since it is in another's way is repaired itself."""
    follower = Follower(dict(rows))
    differ = [key for key in order if leader.get(key) != rows.get(key)]
    for start in range(0, len(differ), size):
        part = set(differ[start : start + size])
        follower.chunk(repair_of(leader, part, more=more - {*differ}))
        assert {key: follower.rows.get(key) for key in part} == {key: leader.get(key) for key in part}
    assert follower.rows == leader


@given(TABLES, TABLES, st.sets(KEYS, min_size=1))
def test_a_repair_writes_no_rows_beside_its_keys(leader: Rows, rows: Rows, keys: set[int]) -> None:
    follower = Follower(dict(rows))
    made = follower.chunk(repair_of(leader, keys))
    beside = {key: value for key, value in rows.items() if key not in keys}
    assert {key: value for key, value in follower.rows.items() if key not in keys}.items() <= beside.items()
    assert follower.chunk(repair_of(leader, keys)).steps == []
    assert made.repair.missing + made.repair.different == sum(rows.get(key) != leader[key] for key in keys & {*leader})
    assert made.repair.extra == len(keys & {*rows} - {*leader})


def test_the_rows_of_a_repair_are_those_with_its_keys() -> None:
    keys = ([{"SignedInteger": 1}, {"String": "it's"}], [{"SignedInteger": 2}, {"String": "b"}])
    both = replace(repair_of({}, {1}), key=("a", "b"), range=KeyRange(None, None, (None, "utf8mb4_bin"), keys=keys))  # type: ignore[arg-type]
    assert in_range(both) == "(`a` = 1 AND `b` = 'it''s' OR `a` = 2 AND `b` = 'b')"
    schema = replace(SCHEMA, unique_keys={"PRIMARY": (KeyPart("a"), KeyPart("b"))})
    check_chunk(both, replace(schema, types={"a": ("int", None), "b": ("varchar", "utf8mb4_bin")}))
    for types, why in (
        ({"a": ("varchar", "ascii_bin"), "b": ("varchar", "utf8mb4_bin")}, "of the type varchar here"),
        ({"a": ("int", None), "b": ("varchar", "utf8mb4_0900_ai_ci")}, "the follower by utf8mb4_0900_ai_ci"),
    ):
        assert why in refused(check_chunk, both, replace(schema, types=types))


def test_what_was_found_is_counted() -> None:
    chunk = chunk_of({1: 1, 2: 2, 3: 3, 9: 9}, 0, 5, more={9})
    found = Found(4, frozenset({0}), frozenset({1, 3}), frozenset({3}), ["k0", "k1", "k2", "k3"], "hash")
    made = chunk_plan(chunk, SCHEMA, found)
    # Of the four rows in the range one is equal, one is another; row 9 is another one, too, and 3 is not there.
    assert (made.repair.missing, made.repair.different, made.repair.extra) == (1, 2, 2)
    gone, away, come = made.steps
    assert gone.prepared == (
        (b"DELETE FROM `db`.`t` WHERE (`a` > 0) AND (`a` <= 5) AND hash NOT IN (x'k0')", 3),
    )  # fmt: skip
    assert [row.before for _, row in away.changes] == [image(9, 9)]
    assert [row.after for _, row in come.changes] == [image(2, 2), image(3, 3), image(9, 9)]


def test_few_rows_are_counted_and_written_again() -> None:
    chunk = chunk_of({1: 1, 2: 2, 3: 3}, 0, 5)
    made = chunk_plan(chunk, SCHEMA, Found(3, frozenset({0}), frozenset({1}), few=True))
    assert (made.repair.missing, made.repair.different, made.repair.extra) == (1, 1, 1)
    gone, come = made.steps
    assert gone.prepared == ((b"DELETE FROM `db`.`t` WHERE (`a` > 0) AND (`a` <= 5)", 3),)
    assert [row.after for _, row in come.changes] == [image(1, 1), image(2, 2), image(3, 3)]


def test_rows_that_others_refer_to_keep_the_common_order() -> None:
    """Where the leader did not log what its foreign keys change, they must find what they found on the leader."""
    schemas = {"t": replace(SCHEMA, related=True), "u": replace(SCHEMA, related=True), "x": SCHEMA}
    records = [record(n, "Add", table, width=2) for n, table in enumerate("utuxt")]
    records = [replace(each, copying=each.uri.table == "t") for each in records]

    def planned(records: list[Record]) -> list[tuple[str | None, str, int]]:
        steps = plan_copying(records, schema=lambda uri: schemas[uri.table or ""])
        return [(step.record.uri.table, step.operation, step.flags) for step in steps]

    row = [("t", "Clear", 2), ("t", "Add", 2)]
    assert planned(records) == [("u", "Add", 0), *row, ("u", "Add", 0), *row, ("x", "Add", 0)]
    logged = [replace(each, flags=16) for each in records]
    assert planned(logged) == [("u", "Add", 2), ("x", "Add", 0), *row]
    assert planned([each for each in records if not each.copying]) == [("u", "Add", 0), ("x", "Add", 0)]


def refused(check: object, record: Record, schema: TableSchema) -> str:
    with pytest.raises(Unapplicable) as raised:
        check(record, schema)  # type: ignore[operator]
    return raised.value.what


def test_cascades_that_are_not_logged_are_refused() -> None:
    cascading = replace(SCHEMA, related=True, cascading=True)
    for operation, flags, fine in (("Add", 0, True), ("Delete", 2, True), ("Update", 16, True), ("Delete", 0, False)):
        made = record(0, operation, width=2, flags=flags)
        if fine:
            check_copying(made, cascading)
        else:
            assert "does not log" in refused(check_copying, made, cascading)


@pytest.mark.parametrize(
    ("value", "kind", "theirs", "reason"),
    [
        ({"SignedInteger": 1}, ("decimal", None), None, ""),
        ({"SignedInteger": 1}, ("varchar", "latin1_bin"), None, "of the type varchar here"),
        ({"Decimal": "1.0"}, ("int", None), None, "of the type int here"),
        ({"String": "a"}, ("varchar", "utf8mb3_bin"), "utf8_bin", ""),
        (
            {"String": "a"},
            ("varchar", "utf8mb4_bin"),
            "utf8mb4_0900_bin",
            "orders by utf8mb4_0900_bin, the follower by",
        ),
        ({"String": "a"}, ("char", "utf8mb4_bin"), None, "collation on the leader is not in the record"),
        ({"Enum": "a"}, ("enum", "utf8mb4_bin"), "utf8mb4_bin", "no order"),
        ("Null", ("int", None), None, "no order"),
    ],
)
def test_a_range_has_the_same_rows_in_the_same_order_only(
    value: Value, kind: tuple[str, str | None], theirs: str | None, reason: str
) -> None:
    schema = replace(SCHEMA, types={"a": kind})
    chunk = replace(chunk_of({}, 1, None), range=KeyRange(None, [value], theirs and (theirs,)))  # type: ignore[arg-type]
    if reason:
        assert reason in refused(check_chunk, chunk, schema)
    else:
        check_chunk(chunk, schema)
    check_chunk(replace(chunk, range=KeyRange(None, None)), schema)
    assert "another key" in refused(check_chunk, chunk, replace(schema, unique_keys={"b": (KeyPart("b"),)}))


def test_a_key_of_first_characters_names_no_range() -> None:
    """Until its copy has come, rows are told apart as far as that key does, and the first piece empties the table."""
    begun = replace(SCHEMA, unique_keys={"PRIMARY": (KeyPart("a", 10),)})
    check_copying(replace(record(0, "Update", width=2), copying=True), begun)
    chunk = replace(chunk_of({1: 1}, None, None), range=KeyRange(None, [], None, 0))
    check_chunk(chunk, begun)
    assert "another key" in refused(check_chunk, replace(chunk, range=KeyRange(None, None)), begun)
    for other in (KeyPart("b", 10), KeyPart("a", 10, nullable=True)):
        assert "another key" in refused(check_chunk, chunk, replace(SCHEMA, unique_keys={"PRIMARY": (other,)}))


def test_the_first_piece_of_a_table_empties_it_and_each_adds_its_rows() -> None:
    made = [
        chunk_plan(
            replace(chunk_of({1: 1}, None, None), key=None, range=KeyRange(None, [], None, number)), SCHEMA, found
        )
        for number, found in enumerate((Found(7), Found()))
    ]
    gone, come = made[0].steps
    assert (gone.prepared, come.operation) == (((b"DELETE FROM `db`.`t` WHERE TRUE", None),), "Add")
    assert [step.operation for step in made[0].emptying] == ["Delete"]
    assert ([step.operation for step in made[1].steps], list(made[1].emptying)) == (["Add"], [])
    assert [(each.repair.missing, each.repair.extra) for each in made] == [(1, 7), (1, 0)]


def test_rows_without_a_key_are_changed_as_they_are_told_until_their_copy_comes() -> None:
    made = replace(record(0, "Update", width=2), key=None, copying=True)
    check_copying(made, SCHEMA)
    assert "has other columns" in refused(check_copying, replace(made, columns=("a", "c")), SCHEMA)
    (step,) = plan_copying([made], schema=lambda _: replace(SCHEMA, related=True))
    # The rows that it refers to need not be there yet.
    assert (step.operation, step.flags & 2) == ("Update", 2)


def test_a_table_that_computes_values_takes_zero_dates_of_a_chunk() -> None:
    chunk = chunk_of({1: 2}, None, None)
    made = chunk_plan(chunk, replace(SCHEMA, generated=frozenset("b")), Found(1))
    assert {step.modes for step in (*made.emptying, *made.steps)} == {""}
