"""When a chunk that was read is written, and when it has to be read again."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.copy.chunk import Beginning, Chunk, Structure
from cdc.producer.copy.copier import Copier
from cdc.producer.copy.pending import Pending
from cdc.producer.copy.reading import Answer, Wanted
from cdc.producer.copy.requests import Request
from cdc.producer.decode.changes import Moved, Rows, Statement, TableShape
from cdc.producer.progress import Progress
from cdc.producer.table_rows.chunk_reader import ReadChunk
from cdc.producer.table_rows.definition import CopiedColumn, TableDefinition
from cdc.sql.effects import Effect

T, U = ("d", "t"), ("d", "u")
SHAPE = TableShape("d", "t", "", {}, 1)
DEFINITION = TableDefinition("d", "t", (CopiedColumn("id", "int", False),), ("id",), "PRIMARY", '"columns":["id"]', "")


class Reading:
    """Keeps what is asked for; the test answers."""

    wake = 0

    def __init__(self) -> None:
        self.asked: list[Wanted] = []
        self.answers: list[Answer] = []

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

    def __init__(self, pending: Pending) -> None:
        self.reading = Reading()
        opened: Any = lambda: self.reading  # noqa: E731
        self.requests: list[Request] = []
        requests: Any = SimpleNamespace(new=lambda: self.requests)
        self.copier = Copier(
            pending,
            requests=requests,
            open_reading=opened,
            wants_table=lambda _, name: name != "left_out",
            log=lambda *_, **__: None,
        )
        self.progress = Progress(Entry(0, Position("b.1", 4), "", "", gtids_complete=True))

    def due(self, at: int = 0) -> Chunk | Beginning | None:
        if at:
            self.progress.note(Moved(Position("b.1", at)))
        return self.copier.due(self.progress)

    def changed(self, operation: str, key: int, *, flags: int = 0x10, table: TableShape = SHAPE) -> None:
        event: Any = None
        self.copier.note(Rows(event, table, operation, [row(key).encode()], flags))

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
    copying.copier.written(due)
    assert not copying.copier.pending.active


def test_the_next_chunk_is_read_while_one_is_written() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.due()
    copying.reading.give(1, end=50, upto="1")
    first = copying.due(50)
    assert isinstance(first, Chunk)
    assert [wanted.after for wanted in copying.reading.asked] == [None, ("1",)]
    copying.changed("Add", 7)
    copying.copier.written(first)
    copying.reading.give(2, end=60)
    second = copying.due(60)
    assert isinstance(second, Chunk)
    assert (second.after, second.rows) == (("1",), [row(2), row(7)])


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
    copying.reading.answers.append(Answer(Position("b.1", 50), 5, structure=structure))
    copying.executed(Effect("CreateTable", *U))
    assert copying.due(50) is None
    copying.reading.answers.append(Answer(Position("b.1", 60), 6, structure=structure))
    due = copying.due(60)
    assert due == Beginning(structure, 6)
    copying.copier.written(due)
    assert copying.copier.pending == Pending(fresh=(T,))


def test_a_table_that_the_filters_leave_out_is_not_copied() -> None:
    copying = Copying(Pending(again=(("db", "left_out"), ("db", "other")), after=("1",)))
    assert copying.copier.pending == Pending(again=(("db", "other"),))
    copying.requests.append(Request([("db", "left_out"), ("db", "more")], 5))
    copying.copier.take_requests()
    assert copying.copier.pending == Pending(again=(("db", "other"), ("db", "more")), requests=5)
