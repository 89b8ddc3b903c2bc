"""When a chunk that was read is written, and when it has to be read again."""

from dataclasses import replace

import pytest

from cdc.config.filters import FilterChange, Filters
from cdc.model.position import Position
from cdc.producer.copy.definition import CopiedColumn
from cdc.producer.copy.requests import Request
from cdc.producer.copy.state import Pending
from cdc.producer.decode.changes import Chunk, PositionAdvanced, Structure, TableShape
from tests.harness.copying import DEFINITION, REFUSED, UUID, Copying, T, U, keys_of, number, row

WIDENED = FilterChange(Filters(include_tables=("d.t",)), Filters(include_tables=("d.*",)))


def begun(pending: Pending, *requests: Request, widened: FilterChange | None = None) -> Copying:
    """A copier that has asked for what comes first."""
    copying = Copying(pending, *requests, widened=widened)
    assert copying.turn() is None
    return copying


def test_a_chunk_waits_for_its_place_and_has_what_was_changed() -> None:
    copying = begun(Pending(again=(T,)))
    copying.read(1, 2, 3, end=100)
    copying.changed("Delete", 2)
    assert copying.turn(99) is None
    copying.changed("Add", 4)
    assert copying.turn(100) == "t: 1 3 4, to its end"
    assert copying.sizes == [(7, len(row(1)) * 3)]
    assert not copying.active


def test_the_next_chunk_is_read_while_one_is_written() -> None:
    copying = begun(Pending(again=(T,)))
    copying.read(1, end=50, upto=number(1))
    assert copying.turn(50) == "t: 1, up to 1"
    assert copying.asked == ["t", "t behind 1"]
    copying.changed("Add", 7)
    copying.read(2, end=60)
    assert copying.turn(60) == "t behind 1: 2 7, to its end"


def test_the_next_table_is_read_while_the_last_chunk_of_one_is_written() -> None:
    copying = begun(Pending(again=(T, U)))
    copying.read(1, end=50)
    assert copying.turn(49) is None
    assert copying.asked == ["t", "u"]
    copying.changed("Add", 7, table=TableShape("d", "u", '"columns":["id"]', {}, 1))
    assert copying.turn(50) == "t: 1, to its end"
    copying.read(2, end=60, definition=replace(DEFINITION, name="u"))
    assert copying.turn(60) == "u: 2 7, to its end"
    assert not copying.active


def test_a_table_that_is_not_the_next_one_after_all_is_read_in_its_turn() -> None:
    copying = begun(Pending(again=(T, U)))
    copying.read(1, end=50)
    assert copying.turn(49) is None
    copying.copier.pending = replace(copying.state, again=(T, ("d", "v"), U))
    assert copying.turn(50) == "t: 1, to its end"
    copying.read(2, end=60, definition=replace(DEFINITION, name="u"))
    assert copying.turn(60) is None
    assert copying.asked == ["t", "u", "v"]


def test_a_statement_on_the_next_table_has_it_read_again() -> None:
    copying = begun(Pending(again=(T, U)))
    copying.read(1, end=50)
    assert copying.turn(49) is None
    copying.executed("ALTER TABLE u ADD x INT")
    copying.read(2, end=50, definition=replace(DEFINITION, name="u"))
    assert copying.turn(50) is None
    assert copying.asked == ["t", "u", "t"]


def test_only_the_first_chunk_has_the_types_of_the_columns() -> None:
    copying = begun(Pending(again=(T,)))
    made = replace(DEFINITION, types_json=',"types":["int"]')
    heads = []
    for end, upto in ((50, number(1)), (60, None)):
        copying.read(1, end=end, upto=upto, definition=made)
        copying.progress.note(PositionAdvanced(Position("b.1", end)))
        due = copying.copier.due(copying.progress)
        assert isinstance(due, Chunk)
        copying.copier.written(due, sequence=7)
        heads.append(due.columns_json)
    assert heads == ['"columns":["id"],"types":["int"]', '"columns":["id"]']


@pytest.mark.parametrize(("after", "told"), [(("1", "2"), "1 2"), (('{"String":"a"}',), '{"String":"a"}')])
def test_a_copy_begins_again_where_the_table_has_another_key_now(after: tuple[str, ...], told: str) -> None:
    copying = begun(Pending(again=(T,), after=after, rows=3))
    copying.read(end=50, chunk=None)  # as it is where the key behind which rows are wanted is none of the table
    assert copying.turn(50) is None
    assert copying.asked == [f"t behind {told}", "t"]
    assert copying.state.rows == 0
    copying.read(9, end=60)
    assert copying.turn(60) == "t: 9, to its end"


def test_a_copy_begins_again_where_the_key_is_another_one_and_no_statement_said_so() -> None:
    copying = begun(Pending(again=(T,)))
    copying.read(1, end=50, upto=number(1))
    assert copying.turn(50)
    column = CopiedColumn("n", "int", nullable=False)
    copying.read(2, end=60, definition=replace(DEFINITION, columns=(*DEFINITION.columns, column), key=("n",)))
    assert copying.turn(60) is None
    assert copying.asked == ["t", "t behind 1", "t"]


def test_rows_that_changed_in_other_columns_have_a_chunk_read_again() -> None:
    copying = begun(Pending(again=(T,)))
    copying.changed("Add", 2, table=TableShape("d", "t", '"columns":["other","id"]', {}, 2))
    copying.read(1, end=50)
    assert copying.turn(50) is None
    copying.read(1, 2, end=60)
    assert copying.turn(60) == "t: 1 2, to its end"


def test_a_repair_that_is_read_again_leaves_the_copy_where_it_was() -> None:
    after = ('{"String":"a"}',)  # of a table with another key than the one that is repaired
    copying = begun(Pending(again=(U,), after=after, rows=3), Request([], 1, keys=keys_of(1)))
    copying.read(end=50, chunk=None)
    assert copying.turn(50) is None
    assert copying.state.after == after


def test_a_copy_goes_on_where_it_was_when_a_chunk_can_not_be_read() -> None:
    copying = begun(Pending(again=(T,), after=(number(1),)))
    copying.read(end=50, chunk=None)
    assert copying.turn(50) is None
    assert copying.asked == ["t behind 1", "t behind 1"]


@pytest.mark.parametrize(("after", "asked"), [(None, "t"), (("3",), "t behind 3")])
@pytest.mark.parametrize("statement", ["ALTER TABLE t ADD x INT", "TRUNCATE t", "DROP INDEX x ON t"])
def test_what_was_read_before_a_statement_on_the_table_is_read_again(
    statement: str, after: tuple[str, ...] | None, asked: str
) -> None:
    copying = begun(Pending(again=(T,), after=after))
    copying.changed("Add", 4)
    copying.read(1, end=50)
    copying.executed(statement)
    assert copying.turn(50) is None
    assert copying.asked == [asked, "t"]
    copying.read(9, end=60)
    assert copying.turn(60) == "t: 9, to its end"


def test_a_statement_on_another_table_changes_nothing() -> None:
    copying = begun(Pending(again=(T,)))
    copying.executed("ALTER TABLE u ADD x INT")
    copying.read(1, end=50)
    assert copying.turn(50) == "t: 1, to its end"


@pytest.mark.parametrize(
    ("flags", "operation", "again"),
    [(0, "Delete", True), (2, "Delete", False), (0x10, "Update", False), (0, "Add", False)],
)
def test_a_chunk_is_read_again_where_a_foreign_key_may_have_changed_it(flags: int, operation: str, again: bool) -> None:
    copying = begun(Pending(again=(T,)))
    copying.changed(operation, 1, flags=flags, table=TableShape("d", "u", "", {}, 1))
    copying.read(1, end=50, follows=frozenset({U}))
    assert (copying.turn(50) is None) == again
    assert copying.asked == (["t", "t"] if again else ["t"])


def test_a_table_that_can_not_be_copied_is_left_out() -> None:
    copying = begun(Pending(again=(T, U)))
    copying.read(end=50, definition=REFUSED, chunk=None)
    assert copying.turn(50) is None
    assert copying.state.tables == (U,)


def test_structure_is_read_again_after_any_statement() -> None:
    copying = begun(Pending(structure=True))
    structure = Structure([T], [], [])
    copying.executed("CREATE TABLE u (x INT)", "DROP TABLE u")
    assert copying.turn(40) is None
    assert copying.asked == ["structure"]  # which is read first nevertheless
    copying.read_structure(structure, end=50)
    copying.executed("DROP TABLE left_out")
    assert copying.turn(50) is None
    assert copying.asked == ["structure", "structure, CreateTable u, DropTable u"]
    copying.read_structure(structure, end=60)
    assert copying.turn(60) == "structure of t"
    assert copying.state == Pending(fresh=(T,))


def test_a_table_that_the_filters_leave_out_is_not_copied() -> None:
    left_out, other, more = ("db", "left_out"), ("db", "other"), ("db", "more")
    copying = Copying(Pending(again=(left_out, other), after=("1",)))
    assert copying.state == Pending(again=(other,))
    copying.adopt(Pending(again=(other, left_out)))
    assert copying.state == Pending(again=(other,))
    copying.request(Request([left_out, more], 5))
    assert copying.state == Pending(again=(other, more), requests=5)


def test_a_table_without_a_key_is_written_in_pieces_and_its_changes_wait() -> None:
    copying = begun(Pending(again=(T,)))
    copying.begins(1)
    copying.changed("Add", 1)  # which the snapshot sees for certain
    copying.snapshot(f"{UUID}:1", end=50)
    assert copying.turn(49) is None
    assert copying.turn(50) is None
    assert copying.asked == ["t", "t, next piece"]
    later = copying.begins(2)
    assert not copying.is_hurried
    assert copying.holds(later)
    assert copying.is_hurried
    found = []
    for piece in ((1, 2), (3,), (4,)):
        copying.piece(*piece, last=piece == (4,))
        found.append((copying.turn(), copying.state.after))
    assert found == [("t piece 0: 1 2", ()), ("t piece 1: 3", ()), ("t piece 2: 4, to its end", None)]
    assert not copying.holds(later)
    assert not copying.active


@pytest.mark.parametrize("seen", ["", f"{UUID}:1"])
def test_another_snapshot_is_taken_where_one_is_in_doubt(seen: str) -> None:
    copying = begun(Pending(again=(T,)))
    copying.begins(2)
    copying.changed("Add", 2)
    copying.snapshot(seen, end=50)
    assert copying.turn(50) is None
    assert copying.asked == ["t", "t"]
    # A change that comes while it is taken waits a moment; what comes before its end does not.
    later = copying.begins(3)
    assert copying.holds(later)
    copying.snapshot(f"{UUID}:1-2", end=60)
    assert copying.turn() is None
    assert not copying.holds(later)
    copying.changed("Add", 3)
    assert copying.turn(60) is None
    assert copying.asked == ["t", "t", "t"]
    copying.snapshot(f"{UUID}:1-3", end=60)
    assert copying.turn() is None
    assert copying.asked[-1] == "t, next piece"


def test_the_copy_of_a_table_as_a_whole_begins_again_after_a_restart() -> None:
    pending = Pending(again=(T,), after=(), written=3, rows=7)
    assert Copying(pending).state == Pending(again=(T,), after=(), written=3)
    copying = Copying()
    copying.adopt(pending)
    assert copying.state == Pending(again=(T,), after=(), written=3)
    assert copying.turn() is None
    assert copying.asked == ["t"]


def test_rows_of_some_keys_come_between_chunks() -> None:
    copying = begun(Pending(again=(T,)))
    copying.request(Request([], 6, keys=keys_of(1, 2, 3)), Request([U], 7))
    left = Pending(again=(T, U), after=("1",), rows=1)
    copying.read(1, end=50, upto="1")
    assert copying.turn(50) == "t: 1, up to 1"
    # Not all of the keys at once: their rows may be large.
    assert copying.turn() is None
    assert copying.asked[-1] == "t keys 1 2 3"
    assert copying.state == replace(left, written=1)
    copying.read(1, 2, end=60, keys=keys_of(1, 2).values)
    copying.changed("Delete", 1)
    assert copying.turn(60) == "t keys 1 2: 2"
    assert copying.turn() is None
    assert copying.asked[-1] == "t keys 3"
    assert copying.state == replace(left, written=2, repairs=1)
    copying.read(3, end=70, keys=keys_of(3).values)
    copying.changed("Delete", 3)
    assert copying.turn(70) == "t keys 3: "
    assert [each.requests for each in copying.told] == [0, 0, 6]
    assert copying.state == replace(left, written=3, repairs=2, requests=7)
    assert copying.turn() is None
    assert copying.asked[-1] == "t behind 1"


def test_tables_that_wait_for_nothing_but_rows_of_some_keys_are_renamed_with_the_stream() -> None:
    renamed = ("d", "renamed")
    requests = Request([], 6, keys=keys_of(1)), Request([U, T], 7), Request([T], 8, stop=True)
    copying = Copying(Pending(), *requests)
    copying.executed("RENAME TABLE u TO renamed")
    assert copying.state == Pending(again=(renamed,))
    assert copying.turn() is None
    copying.read(1, end=50, keys=keys_of(1).values)
    assert copying.turn(50) == "t keys 1: 1"
    assert copying.state == Pending(again=(renamed,), written=1, repairs=1, requests=8)
    # What a run before has left in the stream decides; what comes after it is taken up once more.
    again = Copying(Pending(again=(renamed,)), *requests)
    again.adopt(Pending(written=1, repairs=1, requests=6))
    again.request(*requests[1:])
    assert again.state == Pending(again=(U,), written=1, repairs=1, requests=8)


def test_rows_are_read_again_after_a_statement_and_left_out_where_they_can_not_be_read() -> None:
    left_out = keys_of(2, table=("d", "left_out"))
    copying = begun(Pending(), Request([], 3, keys=keys_of(1)), Request([], 4, keys=left_out))
    assert copying.active
    copying.read(1, end=50, keys=keys_of(1).values)
    copying.executed("ALTER TABLE u ADD x INT", "ALTER TABLE t ADD x INT")
    assert copying.turn(50) is None
    copying.read(end=60, definition=REFUSED, chunk=None)
    assert copying.turn(60) is None
    assert len(copying.asked) == 2
    assert (copying.active, copying.state) == (False, Pending(requests=4))


def test_no_rows_of_some_keys_come_between_the_pieces_of_a_table() -> None:
    copying = begun(Pending(again=(T,)))
    copying.snapshot("", end=50)
    assert copying.turn(50) is None
    copying.request(Request([], 6, keys=keys_of(1, table=U)))
    copying.piece(1)
    assert (copying.turn(), copying.turn()) == ("t piece 0: 1", None)
    assert copying.asked[-1] == "t, next piece"
    copying.piece(1, last=True)
    assert (copying.turn(), copying.turn()) == ("t piece 1: 1, to its end", None)
    assert copying.asked[-1] == "u keys 1"


def test_what_a_run_before_has_told_is_not_told_again() -> None:
    copying = Copying(Pending(requests=2), Request([], 3, keys=keys_of(1)))
    copying.adopt(Pending(requests=3, repairs=1))
    copying.request(Request([], 3, keys=keys_of(1)))
    assert not copying.active
    # The topic was created again.
    copying.request(Request([], 1, keys=keys_of(5)))
    assert copying.active


def test_what_was_read_of_a_table_whose_copy_is_stopped_is_not_written() -> None:
    copying = begun(Pending(again=(T, U), after=("3",), rows=9))
    assert copying.request(Request([T], 5, "id", stop=True))
    assert copying.state == Pending(again=(U,), requests=5, requests_topic="id")
    copying.read(4, end=50)
    assert copying.turn(50) is None
    assert copying.asked == ["t behind 3", "u"]


def test_a_stop_of_another_table_leaves_what_was_read() -> None:
    copying = begun(Pending(again=(T, U)))
    copying.request(Request([U], 5, stop=True))
    copying.read(4, end=50)
    assert copying.turn(50) == "t: 4, to its end"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_table_whose_rows_followers_have_removed_is_copied_to_its_end(restarted: bool) -> None:
    copying = begun(Pending(again=(T, U)))
    copying.snapshot("", end=50)
    copying.turn(50)
    copying.piece(1)
    assert copying.turn() == "t piece 0: 1"
    if restarted:
        copying = Copying(Pending.from_json(copying.state.to_json()))
    copying.turn()
    copying.request(Request([T, U], 5, stop=True))
    assert copying.state.tables == (T,)
    if restarted:
        copying.snapshot("", end=50)
        copying.turn(50)
    copying.piece(2, last=True)
    assert copying.turn() == f"t piece {0 if restarted else 1}: 2, to its end"
    assert not copying.active


@pytest.mark.parametrize("pending", [Pending(), Pending(again=(T,), after=("3",), rows=9)])
def test_what_the_filters_let_in_is_created_first_and_copied_after_what_is_under_way(pending: Pending) -> None:
    copying = begun(pending, widened=WIDENED)
    assert copying.asked == ["structure"]
    copying.read_structure(Structure([U], [], []), end=50)
    assert copying.turn(49) is None
    assert copying.turn(50) == "structure of u, d.* wanted"
    assert copying.told == [replace(pending, fresh=(*pending.again, U), again=())]
    # From here on a request for a table that only the filters of now let in is taken up.
    copying.request(Request([("d", "left_out")], 5))
    assert copying.state.tables == (*pending.again, U, ("d", "left_out"))
    copying.turn()
    assert copying.asked[1:] == ["t behind 3" if pending.again else "u"]


def test_a_copy_under_way_of_a_table_of_which_other_rows_pass_begins_again() -> None:
    copying = begun(Pending(again=(T, U), after=("3",), rows=9), widened=WIDENED)
    copying.read_structure(Structure([U, T], [], []), end=50)
    copying.turn(50)
    assert copying.state == Pending(fresh=(T, U))
    assert Pending(again=(T,), after=()).let_in([T], 0).after == ()


@pytest.mark.parametrize("is_refused", [True, False])
def test_what_is_to_be_created_is_read_again_after_a_statement(is_refused: bool) -> None:
    copying = begun(Pending(), widened=WIDENED)
    if is_refused:
        copying.refused()
    else:
        copying.executed("DROP DATABASE d")
    copying.read_structure(Structure([U], [], []), end=50)
    assert copying.turn(50) is None
    assert [asked.split(",")[0] for asked in copying.asked] == ["structure", "structure"]


def test_a_table_that_gets_a_name_which_the_filters_leave_out_is_not_copied() -> None:
    """Such a statement stops the producer, and may be skipped."""
    copying = Copying(Pending(again=(T, U), after=("3",)))
    copying.executed("RENAME TABLE t TO left_out")
    assert copying.state.tables == (U,)
