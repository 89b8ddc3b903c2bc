"""Messages of a row that are merged within a window."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from cdc.config.debezium import Debezium
from cdc.model.position import Position
from cdc.model.record import COPY, KeyRange, Record, Row, Uri
from cdc.producer.debezium.envelope import Envelopes, TableDetails
from cdc.producer.debezium.message import DebeziumMessage
from cdc.producer.debezium.row_window import Held, RowWindow
from cdc.producer.sink.debezium_marks import MadeOf, Visible, headers_of

DETAILS = TableDetails(("int", "int", "int"))
PARTITIONS = 2
Image = dict[str, int]
State = dict[str, Image]


class Change(NamedTuple):
    """A change of the leader's row ``key``: an update may give it the key ``to``."""

    key: int
    value: int
    to: int
    deletes: bool
    copies: bool


CHANGES = st.lists(
    st.builds(Change, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.booleans(), st.booleans()),
    max_size=25,
)


def image(key: int, value: int) -> list[Any]:
    return [{"SignedInteger": each} for each in (key, value, 7)]


def history(changes: Sequence[Change]) -> Iterator[tuple[str, Row]]:
    """The changes as operations of records, of a table that is empty at first."""
    rows: dict[int, int] = {}
    for change in changes:
        key, value = change.key, change.value
        if key not in rows:
            rows[key] = value
            yield "Add", Row(None, image(key, value))
        elif change.copies:
            yield COPY, Row(None, image(key, rows[key]))
        elif change.deletes:
            yield "Delete", Row(image(key, rows.pop(key)), None)
        else:
            to = change.to if change.to not in rows else key
            before = rows.pop(key)
            rows[to] = value
            yield "Update", Row(image(key, before), image(to, value))


def messages(operation: str, row: Row, envelopes: Envelopes, sequence: int) -> list[DebeziumMessage]:
    more = {"range": KeyRange(None, None)} if operation == COPY else {}
    record = Record(
        Uri("leader", "d", "t"), sequence, Position("binlog.1", 100), f"uuid:{sequence}", 0, True, 1_000_001, operation,
        rows=(row,), columns=("id", "v", "w"), key=("id",), **more,
    )  # fmt: skip
    return list(envelopes.messages(record, DETAILS, server_id=3, thread=9, now_ns=5_000_000_000))


def held(changes: Sequence[Change]) -> list[list[Held[MadeOf]]]:
    """The messages of each change."""
    envelopes = Envelopes(prefix="p", modes=Debezium(), merges=True)
    return [
        [
            Held(message, ("p.d.t", place(message)), MadeOf("leader", sequence, number, sequence), 0)
            for number, message in enumerate(messages(operation, row, envelopes, sequence))
        ]
        for sequence, (operation, row) in enumerate(history(changes))
    ]


def place(message: DebeziumMessage) -> int:
    return json.loads(message.key or b"")["id"] % PARTITIONS  # type: ignore[no-any-return]


def apply(state: State, found: Sequence[Held[MadeOf]]) -> None:
    """Applies messages as a reader does that keeps the rows, and believes what a message says about a row before."""
    for each in found:
        key, value = (each.message.key or b"").decode(), each.message.value and json.loads(each.message.value)
        if value is None:
            assert key not in state, "a tombstone follows a deletion"
            continue
        assert value["before"] == (state.get(key) if value["op"] in "ud" else None), value
        assert value["op"] != "c" or key not in state
        if value["op"] == "d":
            del state[key]
        else:
            state[key] = value["after"]


def windows(all_held: Sequence[list[Held[MadeOf]]], ends: set[int]) -> Iterator[list[Held[MadeOf]]]:
    """The messages of each window; a window ends before each change whose number is in ``ends``."""
    window: RowWindow[MadeOf] = RowWindow(changed_only=False)
    for number, of_change in enumerate(all_held):
        if number in ends:
            yield window.drain()
        for each in of_change:
            window.add(("d", "t"), each)
    yield window.drain()


@given(CHANGES, st.sets(st.integers(0, 24), max_size=5))
def test_after_each_window_readers_have_the_rows_that_all_messages_give(changes: list[Change], ends: set[int]) -> None:
    all_held = held(changes)
    wanted: State = {}
    state: State = {}
    begin = 0
    for end, found in zip([*sorted(end for end in ends if end < len(all_held)), len(all_held)],
                          windows(all_held, ends), strict=True):  # fmt: skip
        apply(wanted, [each for of_change in all_held[begin:end] for each in of_change])
        apply(state, found)
        assert state == wanted
        assert [each.mark for each in found] == sorted({each.mark for each in found})
        named = [each.message.key for each in found if each.message.value is not None]
        assert any(change.copies for change in changes) or len(named) == len(set(named)), (
            "a row has one message in a window"
        )
        begin = end


@given(CHANGES, st.integers(0, 25), st.booleans(), st.sets(st.integers(0, 24), max_size=5))
def test_a_window_that_readers_see_in_one_partition_is_not_written_there_again(
    changes: list[Change], size: int, merges: bool, ends: set[int]
) -> None:
    """A kill between the commits of two partitions: the next run begins with the first change again, and has other
    windows, or none.
    """
    all_held = held(changes)
    wanted: State = {}
    apply(wanted, [each for of_change in all_held for each in of_change])
    first = [each for each in next(windows(all_held[:size], set())) if each.place[1] == 0]
    visible = Visible.of(mark_read(each) for each in first)
    state: State = {}
    apply(state, first)
    left = [
        [each for each in of_change if each.place[1] == 1 or visible is None or visible.counted(each.mark) is None]
        for of_change in all_held
    ]
    if visible is not None:
        counts = [visible.counted(each.mark) for of_change in all_held for each in of_change if each.place[1] == 0]
        assert max((each for each in counts if each is not None), default=-1) <= max(
            each.mark.sequence for each in first
        )
    for found in windows(left, ends if merges else {*range(len(left))}):
        apply(state, found)
    assert state == wanted


def mark_read(each: Held[MadeOf]) -> MadeOf:
    """The mark as it is read from the message's headers."""
    assert each.through is not None
    return each.mark._replace(through=(each.through.sequence, each.through.number))


def test_messages_that_were_not_merged_are_all_there_or_none_is_believed() -> None:
    marks = [MadeOf("leader", 1, 0, 11), MadeOf("leader", 3, 0, 13)]
    visible = Visible.of(marks)
    assert visible is not None
    assert [visible.counted(MadeOf("leader", *at)) for at in ((1, 0, 11), (3, 0, 13), (3, 1, 13), (4, 0, 14))] == [
        1, 3, None, None,
    ]  # fmt: skip
    for other in (MadeOf("leader", 2, 0, 12), MadeOf("leader", 3, 0, 14)):
        try:
            visible.counted(other)
        except ValueError:
            continue
        raise AssertionError(other)


def test_what_a_merged_message_says() -> None:
    window: RowWindow[MadeOf] = RowWindow(changed_only=True)
    all_held = held([Change(1, 5, 1, False, False), *[Change(1, each, 1, False, False) for each in (6, 7, 6)]])
    for of_change in all_held[:1]:
        window.add(("d", "t"), of_change[0])
    (created,) = window.drain()
    for of_change in all_held[1:]:
        window.add(("d", "t"), of_change[0])
    (updated,) = window.drain()
    value = json.loads(updated.message.value or b"")
    assert (value["op"], value["before"], value["after"]) == ("u", {"id": 1, "v": 5}, {"id": 1, "v": 6})
    assert value["source"]["gtid"] is None
    assert json.loads(created.message.value or b"")["after"] == {"id": 1, "v": 5, "w": 7}
    assert [headers_of(each)[-1] for each in (created, updated)] == [("cdc_merged", "1 0 0"), ("cdc_merged", "3 3 0")]
    assert window.saved == 2


def test_tables_that_share_a_topic_are_not_merged() -> None:
    window: RowWindow[MadeOf] = RowWindow(changed_only=False)
    one, other = held([Change(1, 5, 1, False, False)] * 2)
    window.add(("d", "a$b"), one[0])
    window.add(("d", "a_b"), other[0])
    assert len(window.drain()) == 2
