"""When a chunk that was read is written, and when it has to be read again."""

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.config.filters import Filters, Widened
from cdc.errors import PromiseError
from cdc.model.commit_entry import Entry
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.copy.chunk import Beginning, Chunk, Keys, Structure
from cdc.producer.copy.copier import Copier
from cdc.producer.copy.key_rows import has_key, unfit
from cdc.producer.copy.pending import Pending, Table
from cdc.producer.copy.reading import Answer, Wanted
from cdc.producer.copy.requests import Request
from cdc.producer.decode.changes import Begin, Moved, Refused, Rows, Statement, TableShape
from cdc.producer.progress import Progress
from cdc.producer.table_rows.chunk_reader import ReadChunk
from cdc.producer.table_rows.definition import CopiedColumn, TableDefinition
from cdc.sql.effects import Effect

T, U = ("d", "t"), ("d", "u")
SHAPE = TableShape("d", "t", '"columns":["id"]', {}, 1)
DEFINITION = TableDefinition("d", "t", (CopiedColumn("id", "int", False),), ("id",), "PRIMARY", '"columns":["id"]', "")
WHOLE = TableDefinition("d", "t", (CopiedColumn("id", "int", True),), (), "", '"columns":["id"]', "", whole=True)
UUID = "5b2ad69c-0000-0000-0000-000000000001"


class Reading:
    """Keeps what is asked for; the test answers."""

    wake = 0

    def __init__(self) -> None:
        self.asked: list[Wanted] = []
        self.answers: list[Answer] = []
        self.hurried = threading.Event()
        self.sizes: list[tuple[int, int]] = []

    def written(self, sequence: int, size: int) -> None:
        self.sizes.append((sequence, size))

    def ask(self, wanted: Wanted) -> None:
        self.asked.append(wanted)

    def answer(self) -> Answer | None:
        return self.answers.pop(0) if self.answers else None

    def close(self) -> None:
        return

    def give(self, *keys: int, end: int, upto: str | None = None, **more: Any) -> None:
        rows = [row(key) for key in keys]
        chunk = ReadChunk(rows, (upto,) if upto else None, 10)
        self.answers.append(Answer(Position("b.1", end), 5, **{"definition": DEFINITION, "chunk": chunk} | more))


def row(key: int) -> str:
    return f'{{"cols":[{{"SignedInteger":{key}}}]}}'


class Copying:
    """A copier, its reading, and how far the stream is."""

    def __init__(self, pending: Pending, widened: Widened | None = None) -> None:
        self.reading = Reading()
        opened: Any = lambda: self.reading  # noqa: E731
        self.requests: list[Request] = []
        requests: Any = SimpleNamespace(new=lambda: iter(self.requests))
        self.copier = Copier(
            pending,
            requests=requests,
            open_reading=opened,
            wants_table=lambda _, name: name != "left_out",
            log=lambda *_, **__: None,
            widened=widened,
        )
        self.progress = Progress(Entry(0, Position("b.1", 4), "", "", gtids_complete=True))

    def due(self, at: int = 0) -> Chunk | Beginning | None:
        if at:
            self.progress.note(Moved(Position("b.1", at)))
        return self.copier.due(self.progress)

    def changed(self, operation: str, key: int, *, flags: int = 0x10, table: TableShape = SHAPE) -> None:
        event: Any = None
        self.copier.note(Rows(event, table, operation, [row(key).encode()], flags))

    def begun(self, number: int) -> Begin:
        """A transaction begins; the change that says so."""
        begin = Begin("", f"{UUID}:{number}", 0)
        self.copier.note(begin)
        return begin

    def snapshot(self, seen: str, *, end: int) -> None:
        known = GtidSet.parse(seen)
        self.reading.answers.append(Answer(Position("b.1", end), 5, definition=WHOLE, seen=known))

    def piece(self, *keys: int, last: bool = False) -> None:
        chunk = ReadChunk([row(key) for key in keys], None if last else (), 10)
        self.reading.answers.append(Answer(Position("b.1", 50), 5, definition=WHOLE, chunk=chunk))

    def executed(self, *effects: Effect) -> None:
        event: Any = None
        self.copier.note(Statement(event, "d", "", effects, {}))


def test_a_chunk_waits_for_its_place_and_has_what_was_changed() -> None:
    copying = Copying(Pending(again=(T,)))
    assert copying.due() is None
    copying.reading.give(1, 2, 3, end=100)
    copying.changed("Delete", 2)
    assert copying.due(99) is None
    copying.changed("Add", 4)
    due = copying.due(100)
    assert isinstance(due, Chunk)
    assert (due.rows, due.upto) == ([row(1), row(3), row(4)], None)
    copying.copier.written(due, sequence=7)
    assert copying.reading.sizes == [(7, len(row(1)) * 3)]
    assert not copying.copier.pending.active


def test_the_next_chunk_is_read_while_one_is_written() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    one = '{"SignedInteger":1}'
    copying.reading.give(1, end=50, upto=one)
    first = copying.due(50)
    assert isinstance(first, Chunk)
    assert [wanted.after for wanted in copying.reading.asked] == [None, (one,)]
    copying.changed("Add", 7)
    copying.copier.written(first, sequence=7)
    copying.reading.give(2, end=60)
    second = copying.due(60)
    assert isinstance(second, Chunk)
    assert (second.after, second.rows) == ((one,), [row(2), row(7)])


@pytest.mark.parametrize("after", [("1", "2"), ('{"String":"a"}',)])
def test_a_copy_begins_again_where_the_table_has_another_key_now(after: tuple[str, ...]) -> None:
    copying = Copying(Pending(again=(T,), after=after, rows=3))
    copying.due()
    copying.reading.give(end=50, chunk=None)  # as it is where the key behind which rows are wanted is none of the table
    assert copying.due(50) is None
    assert [wanted.after for wanted in copying.reading.asked] == [after, None]
    assert copying.copier.pending.rows == 0
    copying.reading.give(9, end=60)
    due = copying.due(60)
    assert isinstance(due, Chunk)
    assert (due.after, due.rows) == (None, [row(9)])


@pytest.mark.parametrize(
    ("charset", "after", "has"),
    [
        ("utf8mb4", '{"String":"😀"}', True),
        ("utf8mb3", '{"String":"ж"}', True),
        ("utf8mb3", '{"String":"😀"}', False),
        ("latin1", '{"String":"é"}', True),
        ("latin1", '{"String":"ж"}', False),
        ("ascii", '{"String":"é"}', False),
        ("gbk", '{"String":"a"}', False),
        ("gbk", '{"Text":{"charset":"gbk","base64":"sKE="}}', True),
        ("ucs2", '{"Text":{"charset":"gbk","base64":"sA=="}}', False),
    ],
)
def test_nothing_can_be_read_behind_a_text_that_the_column_s_character_set_lacks(
    charset: str, after: str, has: bool
) -> None:
    column = CopiedColumn("id", "varchar", nullable=False, charset=charset)
    assert has_key(replace(DEFINITION, columns=(column,)), (after,)) is has


def test_a_copy_begins_again_where_the_key_is_another_one_and_no_statement_said_so() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    one = '{"SignedInteger":1}'
    copying.reading.give(1, end=50, upto=one)
    first = copying.due(50)
    assert first is not None
    copying.copier.written(first, sequence=1)
    column = CopiedColumn("n", "int", nullable=False)
    other = replace(DEFINITION, columns=(*DEFINITION.columns, column), key=("n",))
    copying.reading.give(2, end=60, definition=other)
    assert copying.due(60) is None
    assert [wanted.after for wanted in copying.reading.asked] == [None, (one,), None]


def test_rows_that_changed_in_other_columns_have_a_chunk_read_again() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    copying.changed("Add", 2, table=TableShape("d", "t", '"columns":["other","id"]', {}, 2))
    copying.reading.give(1, end=50)
    assert copying.due(50) is None
    copying.reading.give(1, 2, end=60)
    due = copying.due(60)
    assert isinstance(due, Chunk)
    assert due.rows == [row(1), row(2)]


def test_a_repair_that_is_read_again_leaves_the_copy_where_it_was() -> None:
    after = ('{"String":"a"}',)  # of a table with another key than the one that is repaired
    copying = Copying(Pending(again=(U,), after=after, rows=3))
    copying.requests.append(Request([], 1, keys=Keys(T, ("id",), (('{"SignedInteger":1}',),))))
    copying.copier.take_requests()
    copying.due()
    copying.reading.give(end=50, chunk=None)
    assert copying.due(50) is None
    assert copying.copier.pending.after == after


def test_a_copy_goes_on_where_it_was_when_a_chunk_can_not_be_read() -> None:
    after = ('{"SignedInteger":1}',)
    copying = Copying(Pending(again=(T,), after=after))
    copying.due()
    copying.reading.give(end=50, chunk=None)
    assert copying.due(50) is None
    assert [wanted.after for wanted in copying.reading.asked] == [after, after]


@pytest.mark.parametrize("after", [None, ("3",)])
@pytest.mark.parametrize("effect", [Effect("AlterTable", *T), Effect("TruncateTable", *T), Effect("DropIndex", *T)])
def test_what_was_read_before_a_statement_on_the_table_is_read_again(
    effect: Effect, after: tuple[str, ...] | None
) -> None:
    copying = Copying(Pending(again=(T,), after=after))
    copying.due()
    copying.changed("Add", 4)
    copying.reading.give(1, end=50)
    copying.executed(effect)
    assert copying.due(50) is None
    assert [wanted.after for wanted in copying.reading.asked] == [after, None]
    copying.reading.give(9, end=60)
    due = copying.due(60)
    assert isinstance(due, Chunk)
    assert due.rows == [row(9)]


def test_a_statement_on_another_table_changes_nothing() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    copying.executed(Effect("AlterTable", *U))
    copying.reading.give(1, end=50)
    assert isinstance(copying.due(50), Chunk)


@pytest.mark.parametrize(
    ("flags", "operation", "again"),
    [(0, "Delete", True), (2, "Delete", False), (0x10, "Update", False), (0, "Add", False)],
)
def test_a_chunk_is_read_again_where_a_foreign_key_may_have_changed_it(flags: int, operation: str, again: bool) -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    copying.changed(operation, 1, flags=flags, table=TableShape("d", "u", "", {}, 1))
    copying.reading.give(1, end=50, follows=frozenset({U}))
    assert (copying.due(50) is None) == again
    assert len(copying.reading.asked) == (2 if again else 1)


def test_a_table_that_can_not_be_copied_is_left_out() -> None:
    copying = Copying(Pending(again=(T, U)))
    copying.due()
    refused = TableDefinition("d", "t", (), (), "", "", "", "it has no key")
    copying.reading.give(end=50, definition=refused, chunk=None)
    assert copying.due(50) is None
    assert copying.copier.pending.tables == (U,)


def test_structure_is_read_again_after_any_statement() -> None:
    copying = Copying(Pending(structure=True))
    copying.due()
    structure = Structure([T], [], [])
    created, dropped = Effect("CreateTable", *U), Effect("DropTable", *U)
    copying.executed(created)
    copying.executed(dropped)
    assert copying.due(40) is None
    assert len(copying.reading.asked) == 1  # which is read first nevertheless
    copying.reading.answers.append(Answer(Position("b.1", 50), 5, structure=structure))
    copying.executed(Effect("DropTable", "d", "left_out"))
    assert copying.due(50) is None
    assert [wanted.changed for wanted in copying.reading.asked] == [(), (created, dropped)]
    copying.reading.answers.append(Answer(Position("b.1", 60), 6, structure=structure))
    due = copying.due(60)
    assert due == Beginning(structure, 6)
    copying.copier.written(due, sequence=7)
    assert copying.copier.pending == Pending(fresh=(T,))


def test_a_table_that_the_filters_leave_out_is_not_copied() -> None:
    copying = Copying(Pending(again=(("db", "left_out"), ("db", "other")), after=("1",)))
    assert copying.copier.pending == Pending(again=(("db", "other"),))
    copying.copier.adopt(Pending(again=(("db", "other"), ("db", "left_out"))))
    assert copying.copier.pending == Pending(again=(("db", "other"),))
    copying.requests.append(Request([("db", "left_out"), ("db", "more")], 5))
    copying.copier.take_requests()
    assert copying.copier.pending == Pending(again=(("db", "other"), ("db", "more")), requests=5)


def test_a_table_without_a_key_is_written_in_pieces_and_its_changes_wait() -> None:
    copying = Copying(Pending(again=(T,)))
    assert copying.due() is None
    copying.begun(1)
    copying.changed("Add", 1)  # which the snapshot sees for certain
    copying.snapshot(f"{UUID}:1", end=50)
    assert copying.due(49) is None
    assert copying.due(50) is None
    assert [wanted.after for wanted in copying.reading.asked] == [None, ()]
    begin = copying.begun(2)
    assert copying.copier.holds(begin)
    found = []
    for piece in ((1, 2), (3,), (4,)):
        copying.piece(*piece, last=piece == (4,))
        due = copying.due()
        assert isinstance(due, Chunk)
        copying.copier.written(due, sequence=7)
        found.append((due.piece, due.after, due.upto, due.rows, copying.copier.pending.after))
    assert found == [
        (0, None, (), [row(1), row(2)], ()), (1, (), (), [row(3)], ()), (2, (), None, [row(4)], None),
    ]  # fmt: skip
    assert not copying.copier.holds(begin)
    assert not copying.copier.pending.active


@pytest.mark.parametrize("seen", ["", f"{UUID}:1"])
def test_another_snapshot_is_taken_where_one_is_in_doubt(seen: str) -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    copying.begun(2)
    copying.changed("Add", 2)
    copying.snapshot(seen, end=50)
    assert copying.due(50) is None
    assert [wanted.after for wanted in copying.reading.asked] == [None, None]
    # A change that comes while it is taken waits a moment; what comes before its end does not.
    begin = copying.begun(3)
    assert copying.copier.holds(begin)
    copying.snapshot(f"{UUID}:1-2", end=60)
    assert copying.due() is None
    assert not copying.copier.holds(begin)
    copying.changed("Add", 3)
    assert copying.due(60) is None
    assert [wanted.after for wanted in copying.reading.asked] == [None, None, None]
    copying.snapshot(f"{UUID}:1-3", end=60)
    assert copying.due() is None
    assert copying.reading.asked[-1].after == ()


def test_the_copy_of_a_table_as_a_whole_begins_again_after_a_restart() -> None:
    pending = Pending(again=(T,), after=(), written=3, rows=7)
    assert Copying(pending).copier.pending == Pending(again=(T,), after=(), written=3)
    copying = Copying(Pending())
    copying.copier.adopt(pending)
    assert copying.copier.pending == Pending(again=(T,), after=(), written=3)
    copying.due()
    assert [wanted.after for wanted in copying.reading.asked] == [None]


def keys_of(*keys: int, table: Table = T) -> Keys:
    return Keys(table, ("id",), tuple((f'{{"SignedInteger":{key}}}',) for key in keys))


def asked_for(copying: Copying, *requests: Request) -> None:
    copying.requests[:] = requests
    copying.copier.take_requests()
    copying.requests.clear()


def test_rows_of_some_keys_come_between_chunks() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    asked_for(copying, Request([], 6, keys=keys_of(1, 2, 3)), Request([U], 7))
    copying.reading.give(1, end=50, upto="1")
    first = copying.due(50)
    assert isinstance(first, Chunk)
    assert (first.keys, first.upto) == (None, ("1",))
    copying.copier.written(first, sequence=7)
    # Not all of the keys at once: their rows may be large.
    for keys, end in (((1, 2), 60), ((3,), 70)):
        assert copying.due() is None
        assert copying.reading.asked[-1].keys == keys_of(*range(keys[0], 4))
        done = int(keys == (3,))
        assert copying.copier.pending == first_pending(written=1 + done, repairs=done, again=(T, U))
        part = keys_of(*keys).values
        copying.reading.give(*keys, end=end, keys=part)
        copying.changed("Delete", keys[0])
        due = copying.due(end)
        assert isinstance(due, Chunk)
        assert (due.keys, due.rows, due.after, due.upto) == (part, [row(key) for key in keys[1:]], None, None)
        state = copying.copier.after(due)
        copying.copier.written(due, sequence=7)
        assert state.requests == (6 if keys == (3,) else 0)
    assert copying.copier.pending == first_pending(written=3, repairs=2, requests=7, again=(T, U))
    assert copying.due() is None
    assert copying.reading.asked[-1] == Wanted(T, ("1",), "", None)


def test_tables_that_wait_for_nothing_but_rows_of_some_keys_are_renamed_with_the_stream() -> None:
    renamed = ("d", "renamed")
    copying = Copying(Pending())
    requests = Request([], 6, keys=keys_of(1)), Request([U, T], 7), Request([T], 8, stop=True)
    asked_for(copying, *requests)
    copying.executed(Effect("RenameTable", *U, to=renamed))
    assert copying.copier.pending == Pending(again=(renamed,))
    assert copying.due() is None
    copying.reading.give(1, end=50, keys=keys_of(1).values)
    due = copying.due(50)
    assert isinstance(due, Chunk)
    copying.copier.written(due, sequence=7)
    assert copying.copier.pending == Pending(again=(renamed,), written=1, repairs=1, requests=8)
    # What a run before has left in the stream decides; what comes after it is taken up once more.
    again = Copying(Pending(again=(renamed,)))
    asked_for(again, *requests)
    again.copier.adopt(Pending(written=1, repairs=1, requests=6))
    asked_for(again, *requests[1:])
    assert again.copier.pending == Pending(again=(U,), written=1, repairs=1, requests=8)


def first_pending(**more: Any) -> Pending:
    return Pending(**{"again": (T,), "after": ("1",), "rows": 1} | more)


def test_rows_are_read_again_after_a_statement_and_left_out_where_they_can_not_be_read() -> None:
    copying = Copying(Pending())
    asked_for(copying, Request([], 3, keys=keys_of(1)), Request([], 4, keys=keys_of(2, table=("d", "left_out"))))
    assert copying.copier.active
    copying.due()
    copying.reading.give(1, end=50, keys=keys_of(1).values)
    copying.executed(Effect("AlterTable", *U))
    copying.executed(Effect("AlterTable", *T))
    assert copying.due(50) is None
    refused = TableDefinition("d", "t", (), (), "", "", "", "it has no key")
    copying.reading.give(end=60, definition=refused, chunk=None)
    assert copying.due(60) is None
    assert len(copying.reading.asked) == 2
    assert (copying.copier.active, copying.copier.pending) == (False, Pending(requests=4))


def test_no_rows_of_some_keys_come_between_the_pieces_of_a_table() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    copying.snapshot("", end=50)
    assert copying.due(50) is None
    asked_for(copying, Request([], 6, keys=keys_of(1, table=U)))
    for last in (False, True):
        copying.piece(1, last=last)
        due = copying.due()
        assert isinstance(due, Chunk)
        assert due.piece is not None
        copying.copier.written(due, sequence=7)
        assert copying.due() is None
        assert (copying.reading.asked[-1].keys is not None) == last


def test_what_a_run_before_has_told_is_not_told_again() -> None:
    copying = Copying(Pending(requests=2))
    asked_for(copying, Request([], 3, keys=keys_of(1)))
    copying.copier.adopt(Pending(requests=3, repairs=1))
    asked_for(copying, Request([], 3, keys=keys_of(1)))
    assert not copying.copier.active
    # The topic was created again.
    asked_for(copying, Request([], 1, keys=keys_of(5)))
    assert copying.copier.active


def test_a_repair_of_no_such_keys_is_refused() -> None:
    text, number = CopiedColumn("a", "varchar", False, charset="utf8mb3"), CopiedColumn("b", "int", False)
    made = replace(DEFINITION, columns=(text, number), key=("a", "b"))
    for value, other, fits in (
        ('{"String":"é"}', '{"SignedInteger":1}', True), ('{"String":"é"}', '{"UnsignedInteger":1}', True),
        ('{"String":"😀"}', '{"SignedInteger":1}', False), ('{"Text":{"charset":"sjis","base64":""}}', "1", False),
        ('{"String":"a"}', '{"String":"1"}', False), ('{"String":"a"}', '"Null"', False), ('"Null"', "{}", False),
        ('{"String":1}', '{"SignedInteger":1}', False),
    ):  # fmt: skip
        assert (unfit(made, Keys(T, ("a", "b"), ((value, other),))) is None) == fits
    assert unfit(replace(DEFINITION, whole=True), Keys(T, ("id",), (('{"SignedInteger":1}',),))) is not None
    assert "its key is (id), the report's (b)" in str(unfit(DEFINITION, Keys(T, ("b",), (("1",),))))


def test_what_was_read_of_a_table_whose_copy_is_stopped_is_not_written() -> None:
    copying = Copying(Pending(again=(T, U), after=("3",), rows=9))
    copying.due()
    copying.requests.append(Request([T], 5, "id", stop=True))
    assert copying.copier.take_requests()
    assert copying.copier.pending == Pending(again=(U,), requests=5, requests_topic="id")
    copying.reading.give(4, end=50)
    assert copying.due(50) is None
    assert [wanted.table for wanted in copying.reading.asked] == [T, U]


def test_a_stop_of_another_table_leaves_what_was_read() -> None:
    copying = Copying(Pending(again=(T, U)))
    copying.due()
    copying.requests.append(Request([U], 5, stop=True))
    copying.copier.take_requests()
    copying.reading.give(4, end=50)
    assert isinstance(copying.due(50), Chunk)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_table_whose_rows_followers_have_removed_is_copied_to_its_end(restarted: bool) -> None:
    copying = Copying(Pending(again=(T, U)))
    copying.due()
    copying.snapshot("", end=50)
    copying.due(50)
    copying.piece(1)
    due = copying.due()
    assert isinstance(due, Chunk)
    copying.copier.written(due, sequence=7)
    if restarted:
        copying = Copying(Pending.from_json(copying.copier.pending.to_json()))
    copying.due()
    asked_for(copying, Request([T, U], 5, stop=True))
    assert copying.copier.pending.tables == (T,)
    if restarted:
        copying.snapshot("", end=50)
        copying.due(50)
    copying.piece(2, last=True)
    due = copying.due()
    assert isinstance(due, Chunk)
    assert (due.piece, due.upto) == (0 if restarted else 1, None)
    copying.copier.written(due, sequence=7)
    assert not copying.copier.active


WIDENED = Widened(Filters(include_tables=("d.t",)), Filters(include_tables=("d.*",)))
CREATED = Structure([U], [], [])


@pytest.mark.parametrize("pending", [Pending(), Pending(again=(T,), after=("3",), rows=9)])
def test_what_the_filters_let_in_is_created_first_and_copied_after_what_is_under_way(pending: Pending) -> None:
    copying = Copying(pending, WIDENED)
    copying.due()
    assert [wanted.table for wanted in copying.reading.asked] == [None]
    copying.reading.answers.append(Answer(Position("b.1", 50), 5, structure=CREATED))
    assert copying.due(49) is None
    due = copying.due(50)
    assert isinstance(due, Beginning)
    assert due.filters == WIDENED.now
    assert copying.copier.after(due) == replace(pending, fresh=(*pending.again, U), again=())
    copying.copier.written(due, sequence=7)
    assert copying.copier.widened is None
    # From here on a request for a table that only the filters of now let in is taken up.
    asked_for(copying, Request([("d", "v")], 5))
    assert copying.copier.pending.tables == (*pending.again, U, ("d", "v"))
    copying.due()
    assert [wanted.after for wanted in copying.reading.asked[1:]] == [pending.after]


@pytest.mark.parametrize("is_refused", [True, False])
def test_what_is_to_be_created_is_read_again_after_a_statement(is_refused: bool) -> None:
    copying = Copying(Pending(), WIDENED)
    copying.due()
    if is_refused:
        event: Any = None
        copying.copier.note(Refused(event, PromiseError("unknown"), (), ""))
    else:
        copying.executed(Effect("DropDatabase", "d"))
    copying.reading.answers.append(Answer(Position("b.1", 50), 5, structure=CREATED))
    assert copying.due(50) is None
    assert [wanted.table for wanted in copying.reading.asked] == [None, None]


def test_a_table_that_gets_a_name_which_the_filters_leave_out_is_not_copied() -> None:
    """Such a statement stops the producer, and may be skipped."""
    copying = Copying(Pending(again=(T, U), after=("3",)))
    copying.executed(Effect("RenameTable", "d", "t", to=("d", "left_out")))
    assert copying.copier.pending.tables == (U,)
