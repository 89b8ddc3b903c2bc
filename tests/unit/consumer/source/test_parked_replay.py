"""Which records are applied when what was left out of parked tables is applied, and what is refused then."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.plan.planner import ALL_LOGGED
from cdc.consumer.source.assembler import Located, Transaction, assemble
from cdc.consumer.source.parked_replay import ParkedReplay, from_within
from cdc.consumer.source.parked_tables import ParkedTables
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.consumer.state.parked import COPIED, COPYING, PARKED, PARTIAL, Name, ParkedTable
from cdc.errors import UserError
from cdc.model.record import SKIPPED, Record, Row
from tests.unit.consumer.source.test_parked_tables import WHY, chunk, record, statement

PLACE = TopicIdPartition("t", 0)


def parked(sequence: int, state: str = PARKED) -> ParkedTable:
    return ParkedTable(sequence, sequence, state, WHY)


def replay(
    tables: Mapping[str, ParkedTable], *, through: int = 99, keys: Iterable[tuple[str, str]] = ()
) -> ParkedReplay:
    named = {("d", name): table for name, table in tables.items()}
    pairs = [(("d", child), ("d", parent)) for child, parent in keys]
    return ParkedReplay(named, through=through, former=str, keys=pairs)


def transaction(*records: Record, begins: bool = True, ends: bool = True) -> Transaction:
    """A transaction, or a part of one."""
    is_statement = any(each.operation == "Query" for each in records)
    return Transaction(list(records), {}, sum(len(each.rows) for each in records), is_statement, begins, ends)


def applied(wanted: ParkedReplay, *transactions: Transaction) -> list[list[int]]:
    """The sequences of the records with an effect, by transaction."""
    found = [each for each in wanted.wanted(transactions) if each is not None]
    return [[one.sequence for one in each.records if len(one.rows)] for each in found]


def test_the_records_of_a_table_are_applied_from_its_own_sequence_on() -> None:
    wanted = replay({"a": parked(3), "b": parked(5), "c": parked(1, COPYING), "e": parked(1, COPIED)})
    assert wanted.begin == 3
    both = transaction(record("a", 3, of="t1"), record("b", 4, of="t1"), record("z", 5, of="t1"))
    assert applied(wanted, transaction(record("a", 2)), both, transaction(record("b", 6))) == [[3], [6]]
    assert applied(wanted, transaction(record("c", 7)), transaction(record("e", 8))) == []


def test_a_transaction_keeps_its_last_record_and_no_effect_of_others() -> None:
    left_out = replace(record("a", 4, of="t1", operation=SKIPPED), rows=(), query="what")
    others = replace(record("z", 5, of="t1"), types=("INT",))
    (found,) = replay({"a": parked(3)}).wanted([transaction(record("a", 3, of="t1"), left_out, others)])
    assert found is not None
    assert [each.sequence for each in found.records] == [3, 4, 5]
    assert (found.rows, found.statement) == (1, False)
    assert {each.operation for each in found.records} == {"Add"}
    assert all(not (each.query or each.types or each.affects) for each in found.records)


def test_all_parts_of_a_large_transaction_come_and_the_end_is_seen() -> None:
    wanted = replay({"a": parked(3)}, through=5)
    parts = (
        transaction(record("z", 3, of="t1"), ends=False),
        transaction(record("a", 4, of="t1"), begins=False, ends=False),
        transaction(record("z", 5, of="t1"), begins=False),
    )
    assert applied(wanted, *parts[:2]) == [[], [4]]
    assert not wanted.complete
    assert applied(wanted, *parts, transaction(record("a", 6))) == [[], [4], []]
    assert wanted.complete


def test_a_table_that_is_parked_within_a_transaction_is_read_from_there() -> None:
    records = [replace(record("a", 5 + at, of="t1"), index=at, last=at == 2) for at in range(3)] + [record("a", 8)]
    located = [None, *(Located(PLACE, each.sequence, each) for each in records)]
    found = [*assemble(from_within(located, 6), resource="leader", next_sequence=6)]
    assert [each and [one.sequence for one in each.records] for each in found] == [None, [6, 7], [8]]


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (statement("ALTER TABLE a ADD x INT", 4, ("AlterTable", "a")), "a statement on it was left out"),
        (chunk("a", 4), "a copy of it was left out"),
        (record("a", 4, copying=True), "a copy of it was left out"),
    ],
)
def test_what_can_not_be_repeated_is_refused_with_a_way_out(refused: Record, why: str) -> None:
    with pytest.raises(UserError, match=why) as caught:
        applied(replay({"a": parked(3)}), transaction(refused))
    assert "cdc-producer PROFILE --copy d.a" in (caught.value.hint or "")
    # Before the table was parked, and of a table that is not, it was executed.
    assert applied(replay({"a": parked(5), "b": parked(1)}), transaction(refused)) == []


def test_statements_that_were_executed_are_no_reason() -> None:
    executed = (
        statement("OPTIMIZE TABLE a", 4, ("MaintainTable", "a")),
        statement("DROP DATABASE e", 5, ("DropDatabase", "")),
        statement("ALTER TABLE z ADD a INT", 6, ("AlterTable", "z")),
    )
    assert applied(replay({"a": parked(3)}), *map(transaction, executed)) == []


def test_a_copy_that_has_begun_must_be_completed_by_another() -> None:
    with pytest.raises(UserError, match="has begun"):
        replay({"a": parked(3), "b": parked(3, PARTIAL)})


@pytest.mark.parametrize("table", ["a", "parent", "grandparent"])
def test_changes_of_foreign_keys_must_be_logged(table: str) -> None:
    keys = [("a", "parent"), ("parent", "grandparent"), ("y", "z")]
    logged, checked = replace(record(table, 4), flags=ALL_LOGGED), record(table, 4)
    assert applied(replay({"a": parked(3)}, keys=keys), transaction(logged)) == ([[4]] if table == "a" else [])
    with pytest.raises(UserError, match="the leader does not log that"):
        applied(replay({"a": parked(3)}, keys=keys), transaction(checked))
    assert applied(replay({"a": parked(3)}, keys=keys), transaction(record("y", 4)), transaction(record("b", 5))) == []


Rows = dict[Name, dict[int, int]]
STEPS = st.lists(
    st.one_of(
        st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True),
        st.sampled_from([("copy", table) for table in "abcd"] + [("drop", table) for table in "abcd"]),
    ),
    max_size=25,
)


def changed(rows: Rows, records: Iterable[Record]) -> None:
    """Applies records: a row gets a new value, a chunk all rows of its table, a DROP takes them away."""
    for each in records:
        if each.operation == "Query":
            rows.pop(("d", each.query.removeprefix("DROP TABLE ")), None)
            continue
        table = rows.setdefault((each.uri.database, each.uri.table or ""), {})
        if each.range is not None:
            table.clear()
        table |= {row.after[0]: row.after[1] for row in each.rows if row.after is not None}


def history(steps: Iterable[list[str] | tuple[str, str]]) -> tuple[list[Transaction], Rows]:
    """The leader's transactions, and its rows after them. Each writes rows with a value of its own."""
    leader: Rows = {}
    made: list[Transaction] = []
    sequence = 0
    for step in steps:
        if isinstance(step, list):
            records = [
                replace(record(table, sequence + at, of=f"t{sequence}"), rows=(Row(None, [sequence % 3, sequence]),),
                        index=at, last=at == len(step) - 1)
                for at, table in enumerate(step)
            ]  # fmt: skip
        elif step[0] == "copy":
            there = tuple(Row(None, [key, value]) for key, value in leader.get(("d", step[1]), {}).items())
            records = [replace(chunk(step[1], sequence), rows=there)]
        else:
            records = [statement(f"DROP TABLE {step[1]}", sequence, ("DropTable", step[1]))]
        changed(leader, records)
        made.append(transaction(*records))
        sequence += len(records)
    return made, leader


@given(STEPS, st.data())
def test_in_the_end_the_follower_has_the_leaders_rows_whatever_was_left_out_and_killed(
    steps: list[list[str] | tuple[str, str]], data: st.DataObject
) -> None:
    transactions, leader = history(steps)
    of_rows = [each.records[0].transaction for each in transactions if each.records[0].operation != "Query"]
    refused = dict.fromkeys(data.draw(st.sets(st.sampled_from(of_rows)) if of_rows else st.just(set())), WHY)
    follower: Rows = {}
    once: list[int] = []
    stream = ParkedTables({}, refused=refused, former=str, dependants=lambda _: ())
    for each in transactions:
        if each.statement:
            stream.settle(each.records[0])
        taken = each.records if each.statement else stream.take(each.records)
        changed(follower, taken)
        once += [one.sequence for one in taken]
    tables = stream.tables
    through = transactions[-1].records[-1].sequence if transactions else -1
    while True:
        wanted = ParkedReplay(tables, through=through, former=str)
        later = [each for each in transactions if each.records[-1].sequence >= wanted.begin]
        try:
            for each in wanted.wanted(later):
                assert each is not None
                effective = [one for one in each.records if len(one.rows)]
                changed(follower, effective)
                once += [one.sequence for one in effective]
                wanted.passed(each.records[-1].sequence)
                if data.draw(st.booleans()):
                    break  # killed: the next attempt begins with what is committed
            else:
                break
        except UserError as error:
            assert "a copy of it was left out" in error.what
            return
        tables = wanted.tables
    assert len(once) == len(set(once))
    there = {name: rows for name, rows in leader.items() if rows}
    assert {name: rows for name, rows in follower.items() if rows} == there
