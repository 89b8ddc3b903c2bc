"""The stream of a seed: rows and statements in the leader's order, and the checkpoint before each statement."""

from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.model.position import Position
from cdc.model.record import Record, Uri
from cdc.seed.fold import Line
from cdc.seed.stream import NO_DATABASE, Head, Stream, without_repeated
from cdc.seed.tables import Part

UPTO = 40
OFFSETS = {TopicIdPartition("t", 0, "id"): 99}
PARTS = [Part(("d", "a"), ("d", "a"), 0, UPTO, ("id",), (0,)), Part(("d", "b"), ("d", "b"), 0, UPTO, ("id",), (0,))]


def line(sequence: int, part: int = 0, *numbers: int, is_left: bool = True) -> Line:
    texts = [f'{{"cols":[{{"SignedInteger":{sequence * 100 + number}}}]}}' for number in numbers or (0,)]
    return Line(sequence, part, is_left, "f", sequence, f"t:{sequence}", 7, None, ["id"], list(numbers or (0,)), texts)


def statement(sequence: int, action: str = "CreateTable") -> Record:
    affects = ({"action": action, "uri": "flv://r/d/a"},)
    return Record(
        Uri("r", "d"), sequence, Position("f", sequence), f"t:{sequence}", 0, True, 7, "Query", "…",
        context={"foreign_key_checks": True}, affects=affects,
    )  # fmt: skip


def stream(statements: list[Record], *, most_rows: int = 1000) -> Stream:
    heads = {sequence: Head(sequence, "f", sequence, f"t:{sequence}", 7) for sequence in range(UPTO + 1)}
    return Stream("r", PARTS, {each.sequence: each for each in statements}, heads, OFFSETS, UPTO, most_rows)


SEQUENCES = st.sets(st.integers(0, UPTO), max_size=20)


@given(SEQUENCES, SEQUENCES, st.integers(-1, UPTO - 1), st.integers(1, 5))
def test_all_comes_once_and_in_order(rows: set[int], others: set[int], after: int, most_rows: int) -> None:
    statements = [statement(each) for each in sorted(others - rows)]
    lines = [line(each, each % 2, 0, 1) for each in sorted(rows) if each > after]
    found = list(stream(statements, most_rows=most_rows).transactions(lines, after=after))
    ends = [each.records[-1].sequence for each in found]
    assert ends == sorted(set(ends))
    assert ends == [] or ends[-1] == UPTO
    assert all(end > after for end in ends)
    assert all(each.offsets == OFFSETS for each in found)
    ran = [each.records[0].sequence for each in found if each.statement]
    assert ran == [each.sequence for each in statements if each.sequence > after]
    # What the follower's binlog shows of a statement is that all before it was applied.
    assert all(sequence - 1 in {after, *ends} for sequence in ran)
    loaded = [(record.uri.table, row.after) for each in found for record in each.records for row in record.rows]
    assert sorted(map(repr, loaded)) == sorted(
        repr(("ab"[each % 2], [{"SignedInteger": each * 100 + number}])) for each in rows if each > after
        for number in (0, 1)
    )  # fmt: skip
    # No row comes behind a statement that was behind it on the leader, nor before one that was before it.
    for each in found:
        for record in each.records:
            assert all(record.sequence <= each.records[-1].sequence for record in each.records)
            assert not any(min(_sequences(record)) < ran_at < record.sequence for ran_at in ran if record.rows)


def _sequences(record: Record) -> list[int]:
    return [int(next(iter(row.after[0].values()))) // 100 for row in record.rows if row.after] or [record.sequence]


def test_a_checkpoint_that_moves_without_rows_is_of_no_database() -> None:
    [only] = stream([]).transactions([], after=-1)
    assert (only.records[0].uri.database, only.records[0].transaction) == (NO_DATABASE, f"t:{UPTO}")


def test_an_alter_runs_without_foreign_key_checks() -> None:
    found = list(stream([statement(1), statement(2, "AlterTable")]).transactions([], after=-1))
    checks = [(each.records[0].context or {})["foreign_key_checks"] for each in found if each.statement]
    assert checks == [True, False]


def test_the_highest_number_is_added_and_deleted() -> None:
    unit = [line(3, 0, 1, 2), line(3, 0, 7, is_left=False)]
    [first, _] = stream([]).transactions(unit, after=-1)
    assert [record.operation for record in first.records] == ["Add", "Delete", "Add"]


def test_the_highest_number_comes_before_rows_that_may_have_its_key() -> None:
    """Also where they came later, or in another sql_mode; the last record is of the newest line."""
    unit = [line(2, 0, 1), line(3, 0, 7, is_left=False), line(4)._replace(mode="ANSI"), line(5, 1, 2, is_left=False)]
    [first, _] = stream([]).transactions(unit, after=-1)
    assert [record.operation for record in first.records] == ["Add", "Delete", "Add", "Delete", "Add", "Add"]
    assert {(record.sequence, record.transaction) for record in first.records} == {(5, "t:5")}


def test_a_highest_number_that_is_left_is_not_added_twice() -> None:
    left, highest, other = line(3, 0, 1, 2), line(3, 0, 2, is_left=False), line(3, 1, 2, is_left=False)
    assert without_repeated([left, highest, other]) == [left, other]


def test_only_the_highest_number_that_is_left_is_not_added_twice() -> None:
    """One record may have the highest numbers of two columns, in a row that is left and in one that is gone."""
    left, highest = line(3, 0, 1, 2), line(3, 0, 2, 4, is_left=False)
    assert without_repeated([left, highest]) == [left, line(3, 0, 4, is_left=False)]
