"""Where in the stream of changes the chunks of copies come, and what comes of the changes beside them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.config.filters import FilterChange, Filters
from cdc.errors import PromiseError, UserError
from cdc.model.commit_entry import Entry, Partial
from cdc.model.position import Position
from cdc.producer.binlog.events import RawEvent
from cdc.producer.copy.interleaver import Interleaver
from cdc.producer.copy.requests import Request
from cdc.producer.copy.state import Pending, RecordState
from cdc.producer.decode.changes import (
    Begin,
    Change,
    Commit,
    Copied,
    CopyState,
    Idle,
    OtherEvent,
    PositionAdvanced,
    Refused,
    Rows,
    RowsTransaction,
    Statement,
    Structure,
)
from cdc.producer.progress import Progress
from cdc.sql.effects import Effect
from cdc.sql.statement import classify
from tests.harness.copying import REFUSED, SHAPE, UUID, Copying, T, U, number, row, written

WIDENED = FilterChange(Filters(include_tables=("d.t",)), Filters(include_tables=("d.*",)))
EVENT: Any = None
IDLE = Idle(inside=False)
START = Entry(0, Position("b.1", 4), "", "", gtids_complete=True)


def begin(transaction: int) -> Begin:
    return Begin("", f"{UUID}:{transaction}", 0)


def commit(at: int) -> Commit:
    return Commit(Position("b.1", at))


def add(key: int) -> Rows:
    return Rows(EVENT, SHAPE, "Add", [row(key).encode()], 0x10)


def whole(transaction: int, key: int, *, at: int) -> RowsTransaction:
    return RowsTransaction(begin(transaction), [add(key)], "b.1", at)


def statement(text: str) -> Statement:
    _, effects = classify(text, database="d", ansi_quotes=False, backslash_escapes=True)
    return Statement(EVENT, "d", text, effects, {})


class Sink:
    """Kafka's transactions, or ``visible`` records of chunks that a killed producer has written without them."""

    def __init__(self, visible: list[str]) -> None:
        self._visible = visible

    @property
    def has_visible(self) -> bool:
        return bool(self._visible)

    @property
    def visible_chunk(self) -> str | None:
        return self._visible[0] if self._visible else None

    def count_chunk(self) -> None:
        del self._visible[0]


class Stream:
    """Takes the changes of an interleaver as the stream does: ``done`` names them, ``states`` are those of copies."""

    def __init__(self, copying: Copying) -> None:
        self._copying = copying
        self.sequences: list[int] = []  # those of the last records of what was written
        self._note_sequences(copying.copier)
        self.done: list[str] = []
        self.states: list[CopyState] = []
        self.counted: dict[str, int] = {}
        self.then: dict[str, Callable[[], None]] = {}  # what happens, once, after something is done
        self.visible: list[str] = []
        self.router: Any = SimpleNamespace(next_sequence=8)
        self.decoded_by: list[Callable[[str, str], bool]] = []

    def take(self, *changes: Change) -> list[str]:
        """What becomes of these changes of the decoder."""
        self.done.clear()
        decoder: Any = SimpleNamespace(decode=self._decoded, filter_by=self._filter_by)
        sink: Any = Sink(self.visible)
        copies = Interleaver(
            self._copying.copier,
            decoder=decoder,
            progress=self._copying.progress,
            router=self.router,
            sink=sink,
            count=lambda **counts: self.counted.update(counts),
        )
        received: Any = changes
        for change in copies.changes(received):
            self.done.append(self._name(change))
            self._copying.progress.note(change)
            self.then.pop(self.done[-1], lambda: None)()
        return self.done

    def _note_sequences(self, copier: Any) -> None:
        noted = copier.written

        def written_at(due: Any, *, sequence: int) -> None:
            self.sequences.append(sequence)
            noted(due, sequence=sequence)

        copier.written = written_at

    def _filter_by(self, wants_table: Callable[[str, str], bool], condition: Callable[[str, str], Any]) -> None:
        self.done.append("decoder filters")
        self.decoded_by.append(wants_table)

    def _decoded(self, changes: tuple[Change, ...]) -> Iterator[Change]:
        for change in changes:
            self.done.append(f"decoded {type(change).__name__}") if self._copying.copier.widened else None
            yield change

    def _name(self, change: Change) -> str:
        if isinstance(change, Copied):
            self.states.append(change.state)
            self._require_state_in_record(change)
            return written(change.content)
        if isinstance(change, CopyState):
            self.states.append(change)
            return f"{' '.join(name for _, name in sorted(change.incomplete))} left" + ", now" * change.at_once
        empty = isinstance(change, RowsTransaction) and not change.rows
        return f"{'empty ' if empty else ''}{type(change).__name__}"

    def _require_state_in_record(self, change: Copied) -> None:
        """A producer that is killed goes on from what the record says."""
        progress, now = self._copying.progress, change.state.filters
        kept = RecordState.parse(change.header)
        assert change.position == progress.position
        assert (kept.pending.to_json(), kept.filters) == (change.state.entry, now.listed() if now else None)
        assert kept.executed == (progress.gtid_text if now else "")


def test_a_chunk_comes_behind_the_transaction_that_ends_at_its_place_and_before_what_commits_it() -> None:
    copying = Copying(Pending(again=(T,)))
    stream = Stream(copying)
    assert stream.take(IDLE) == ["Idle"]
    copying.read(1, 2, end=100, upto=number(4))
    assert stream.take(begin(1), add(3), commit(99), whole(2, 4, at=100), whole(3, 5, at=120)) == [
        "Begin", "Rows", "Commit", "RowsTransaction", "t: 1 2 3 4, up to 4", "RowsTransaction",
    ]  # fmt: skip
    copying.read(6, end=120)
    assert stream.take(IDLE, IDLE) == ["t behind 4: 6 5, to its end", "Idle", "Idle"]
    speed = copying.copier.speed
    assert stream.counted == {"rows": speed.rows, "size": speed.size, "tables_left": 0, "unrepeatable": 0}
    assert speed.rows > 0 and speed.size > 0
    assert stream.sequences == [7, 7]  # the router has numbered them; followers must apply up to there
    assert stream.states == [
        CopyState(replace(Pending(again=(T,)), after=(number(4),), written=1, rows=4).to_json(), frozenset({T})),
        CopyState(Pending(written=2).to_json(), frozenset()),
    ]


def test_a_statement_that_followers_cannot_repeat_asks_for_its_table_before_its_transaction_ends() -> None:
    """So the state is committed with the statement's record at the latest."""
    copying = Copying(Pending())
    stream = Stream(copying)
    event = RawEvent(2, b"", "b.1", 50, 99)
    unlike = replace(statement("ALTER TABLE t ADD n SERIAL"), event=event, copies=(T,), unlike="other numbers")
    assert stream.take(begin(1), unlike, commit(99)) == ["Begin", "Statement", "t left, now", "Commit"]
    assert stream.counted["unrepeatable"] == 1
    assert copying.progress.copy == Pending(again=(T,)).to_json()
    # Read again after a crash, with the state that was committed: the table is asked for once.
    assert stream.take(begin(2), unlike, commit(199)) == ["Begin", "Statement", "Commit"]
    assert copying.progress.copy == Pending(again=(T,)).to_json()


def unreadable(*tables: tuple[str, str]) -> Refused:
    event = RawEvent(19, b"", "b.1", 50, 99)
    error = PromiseError("the table map has no column names", code="CDC-EVENT-ROW-METADATA")
    return Refused(event, error, tuple(Effect("SkipTable", *table) for table in tables), copies=tables)


def named(transaction: int) -> Begin:
    return Begin(f"{UUID}:{transaction}", f"{UUID}:{transaction}", 0)


def test_rows_that_cannot_be_read_ask_for_their_table_and_are_stated_once_until_its_copy_begins() -> None:
    copying = Copying(Pending())
    stream = Stream(copying)
    found = stream.take(named(1), unreadable(T), unreadable(T), unreadable(U), commit(50))
    # All events of the first transaction are stated, since a part of it may be committed when it is read again.
    assert found == ["Begin", "Refused", "t left, now", "Refused", "Refused", "t u left, now", "Commit"]
    assert stream.take(named(2), unreadable(T), unreadable(U, T), commit(60)) == ["Begin", "Commit"]
    copying.read(1, 2, end=60, upto=number(2))
    assert stream.take(IDLE) == ["Idle"]  # it was requested before, and is read again
    copying.read(3, end=60)  # of the next chunk, which was requested, too
    assert stream.take(IDLE) == ["Idle"]
    copying.read(1, 2, end=60, upto=number(2))
    assert stream.take(IDLE) == ["t: 1 2, up to 2", "Idle"]
    # Rows that the copy has sent already may have changed: it is stated again, and the table is copied once more.
    assert stream.take(named(3), unreadable(T), commit(70)) == ["Begin", "Refused", "t u left, now", "Commit"]
    assert stream.take(named(4), unreadable(T), commit(80)) == ["Begin", "Commit"]
    assert copying.copier.pending.again == (T, U, T)


def test_a_transaction_that_is_read_again_behind_its_first_records_states_the_same() -> None:
    """The state that was committed with a part of the transaction names its tables already."""
    changes = named(1), unreadable(T), unreadable(T), commit(50)
    first = Stream(Copying(Pending()))
    assert first.take(*changes) == ["Begin", "Refused", "t left, now", "Refused", "Commit"]
    again = Stream(Copying(Pending.from_json(first.states[0].entry)))
    assert again.take(*changes) == ["Begin", "Refused", "Refused", "Commit"]


def test_a_table_whose_copy_was_only_requested_is_stated_when_its_rows_cannot_be_read() -> None:
    """A requested copy can be stopped, and no reader would know that the stream lacks rows."""
    stream = Stream(Copying(Pending(again=(T,))))
    assert stream.take(named(1), unreadable(T), commit(50)) == ["Begin", "Refused", "t left, now", "Commit"]


@pytest.mark.parametrize("copies", [(T,), ()])
def test_a_chunk_is_read_again_where_its_rows_may_have_changed_unreadably(copies: tuple[tuple[str, str], ...]) -> None:
    """The rows that were read are newer than the changes before that event, which are known."""
    stream = Stream(copying := Copying(Pending(again=(T,))))
    stream.take(IDLE)
    skipped = replace(unreadable(T), copies=copies)  # by itself, or by an operator
    stream.take(named(1), add(1), commit(40), named(2), skipped, commit(50))
    copying.read(1, 2, end=50, upto=None)
    assert stream.take(IDLE) == ["Idle"]
    copying.read(1, 2, end=60, upto=None)
    assert stream.take(named(3), add(3), commit(60)) == ["Begin", "Rows", "Commit", "t: 1 2 3, to its end"]


def test_a_chunk_of_another_table_is_not_read_again() -> None:
    stream = Stream(copying := Copying(Pending(again=(T,))))
    stream.take(IDLE)
    stream.take(named(1), unreadable(U), commit(50))
    copying.read(1, 2, end=50, upto=None)
    assert stream.take(IDLE) == ["t: 1 2, to its end", "Idle"]


def test_no_chunk_comes_within_a_transaction() -> None:
    copying = Copying(Pending(again=(T,)))
    stream = Stream(copying)
    stream.take(IDLE)
    copying.read(1, end=50)
    assert stream.take(PositionAdvanced(Position("b.1", 40)), begin(1), Idle(inside=True), add(2), commit(60)) == [
        "PositionAdvanced", "Begin", "Idle", "Rows", "Commit", "t: 1 2, to its end",
    ]  # fmt: skip


def test_a_state_that_a_statement_has_changed_is_there_before_its_transaction_ends() -> None:
    stream = Stream(Copying(Pending(again=(T, U))))
    found = stream.take(begin(1), statement("DROP TABLE u"), commit(50))
    assert found == ["Begin", "Statement", "t left, now", "Commit"]


def test_a_table_that_can_not_be_copied_is_unmarked_before_the_next_change() -> None:
    copying = Copying(Pending(again=(T,)))
    stream = Stream(copying)
    stream.take(IDLE)
    copying.read(end=50, definition=REFUSED, chunk=None)
    assert stream.take(whole(1, 1, at=60), whole(2, 2, at=70)) == ["RowsTransaction", " left, now", "RowsTransaction"]


def test_requests_are_taken_up_between_two_transactions_and_committed_at_once() -> None:
    copying = Copying()
    stream = Stream(copying)
    copying.find(Request([T], 5))
    assert stream.take(whole(1, 1, at=50)) == ["t left, now", "RowsTransaction"]
    copying = Copying()
    stream = Stream(copying)
    stream.then["Begin"] = lambda: copying.find(Request([T], 5))
    assert stream.take(begin(1), add(1), commit(50), whole(2, 1, at=60)) == [
        "Begin", "Rows", "Commit", "t left, now", "RowsTransaction",
    ]  # fmt: skip


def test_no_chunk_comes_before_the_rest_of_a_transaction_that_is_partially_committed() -> None:
    copying = Copying(Pending(again=(T,)))
    copying.progress = Progress(replace(START, copy=copying.state.to_json(), partial=Partial(f"{UUID}:1", 1, 1)))
    stream = Stream(copying)
    assert stream.take(IDLE, Begin(f"{UUID}:1", f"{UUID}:1", 0), add(1), commit(50)) == [
        "Idle", "Begin", "Rows", "Commit",
    ]  # fmt: skip
    assert copying.asked == ["t"]  # once the transaction has ended
    copying.progress = Progress(replace(START, copy=copying.state.to_json(), partial=Partial(f"{UUID}:1", 1, 1)))
    copying.read(1, end=4)
    assert stream.take(IDLE) == ["Idle"]


def test_changes_of_a_table_wait_for_its_pieces_and_others_are_committed_meanwhile() -> None:
    copying = Copying(Pending(again=(T,)))
    stream = Stream(copying)
    stream.take(IDLE)
    copying.snapshot("", end=50)
    assert stream.take(PositionAdvanced(Position("b.1", 50))) == ["PositionAdvanced"]
    stream.then["Held"] = lambda: copying.piece(1)
    stream.then["t piece 0: 1"] = lambda: copying.piece(2, last=True)
    assert stream.take(whole(1, 3, at=60), IDLE) == [
        "Held", "t piece 0: 1", "t piece 1: 2, to its end", "Held", "RowsTransaction", "Idle",
    ]  # fmt: skip


def test_a_leaders_transactions_are_empty_until_its_copy_begins() -> None:
    copying = Copying(Pending(structure=True))
    stream = Stream(copying)
    created = statement("CREATE TABLE x (id INT)")
    changes = (whole(1, 1, at=20), begin(2), created, add(1), OtherEvent(EVENT), commit(30))
    assert stream.take(*changes) == ["empty RowsTransaction", "Begin", "Commit"]
    copying.read_structure(Structure([], [], []), end=30)  # as of before the statement
    assert stream.take(IDLE, whole(3, 1, at=40)) == ["Idle", "empty RowsTransaction"]
    copying.read_structure(Structure([T], [], []), end=40)
    assert stream.take(IDLE, whole(4, 1, at=50)) == ["structure of t", "Idle", "RowsTransaction"]


@pytest.mark.parametrize("comes", [IDLE, whole(1, 1, at=50)])
def test_the_next_change_is_decoded_by_the_filters_that_hold_from_there_on(comes: Change) -> None:
    copying = Copying(widened=WIDENED)
    stream = Stream(copying)
    stream.take(IDLE)
    copying.read_structure(Structure([U], [], []), end=0 if comes is IDLE else 50)
    place = ["structure of u, d.* wanted", "decoder filters"]
    expected = (
        ["decoded Idle", *place, "Idle"]
        if comes is IDLE
        else ["decoded RowsTransaction", "RowsTransaction", *place, "Idle"]
    )
    assert stream.take(comes, IDLE)[: len(expected)] == expected
    assert [wants("d", "anything") for wants in stream.decoded_by] == [True]
    assert [state.filters for state in stream.states] == [WIDENED.after]
    assert copying.progress.filters == WIDENED.after.listed()


def test_chunks_that_readers_see_already_are_counted_and_not_written_again() -> None:
    copying = Copying(Pending(again=(T, U)))
    stream = Stream(copying)
    chunks = [replace(Pending(again=(T, U)), after=(number(2),), written=1, rows=2), Pending(again=(U,), written=2)]
    stream.visible = [RecordState(each).text() for each in chunks]
    copying.find(Request([T], 5))  # what an earlier run has taken up is known only after them
    assert stream.take(IDLE, IDLE) == ["t u left", "u left", "Idle", "t u left, now", "Idle"]
    assert (stream.visible, stream.router.next_sequence) == ([], 10)
    assert [state.entry for state in stream.states[:2]] == [each.to_json() for each in chunks]


def test_a_chunk_that_readers_see_has_the_filters_of_this_start() -> None:
    stream = Stream(Copying(widened=WIDENED))
    stream.visible = [RecordState(Pending(), "other filters", "").text()]
    with pytest.raises(UserError) as raised:
        stream.take(IDLE)
    assert (raised.value.code, raised.value.where) == ("CDC-FILTERS-CHANGED-AGAIN", "profile key filters")
    stream = Stream(Copying(widened=WIDENED))
    stream.visible = [RecordState(Pending(), WIDENED.after.listed(), "").text()]
    assert stream.take(IDLE) == ["decoded Idle", "decoder filters", " left", "Idle"]
    assert [state.filters for state in stream.states] == [WIDENED.after]


def test_what_was_executed_before_other_filters_comes_first() -> None:
    stream = Stream(Copying(widened=WIDENED))
    stream.visible = [RecordState(Pending(), WIDENED.after.listed(), f"{UUID}:1").text()]
    assert stream.take(IDLE, whole(1, 1, at=50))[-3:] == ["RowsTransaction", "decoder filters", " left"]
