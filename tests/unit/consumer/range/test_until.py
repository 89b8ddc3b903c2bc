"""--until: whole leader transactions up to a place, however they arrive, and never one beyond it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc.consumer.range.until import Place, Until
from cdc.consumer.source.assembler import Transaction, assemble
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.errors import PromiseError, UserError
from cdc.model.record import Record
from tests.unit.consumer.source.test_assembler import SIZES, history, located, record

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def until(text: str) -> Until:
    return Until(Place.parse(text))


def named(transactions: list[str]) -> list[Record]:
    """A record for each of these transactions; each is committed 1 µs after the one before."""
    records = history([1] * len(transactions))
    for item, name in zip(records, transactions, strict=True):
        item.transaction = name
    return records


def applied(bound: Until, records: list[Record], *, size: int = 3) -> int:
    """Apply the records as the consumer does, statements at once; the sequence that the follower has in the end."""
    done, statements = -1, set()
    while True:
        items = [item and item._replace(size=3) for item in located(records)]
        begun = -1
        for item in bound.up_to(assemble(items, resource="srv", next_sequence=done + 1, size=size), applied=done):
            assert item is not None
            begun = item.records[0].sequence if item.begins else begun
            statements |= {begun} if item.statement else set()
            done = item.records[-1].sequence if item.ends else done
        if not bound.repeating:
            assert all(sequence <= done for sequence in statements), "a statement was executed, its transaction was not"
            return done


@example([3, 1], 1, {0}, 3)
@given(SIZES, st.integers(0, 40), st.sets(st.integers(0, 8)), st.integers(1, 12))
def test_a_sequence_ends_the_stream_after_the_last_whole_transaction(
    sizes: list[int], wanted: int, creating: set[int], size: int
) -> None:
    records, begin, ends = [], 0, [-1]
    for transaction, count in enumerate(sizes):
        for index in range(count):
            operation = "Query" if index == 0 and transaction in creating else "Add"
            records.append(record(begin + index, transaction, index, last=index == count - 1, operation=operation))
        begin += count
        ends.append(begin - 1)
    bound = until(str(wanted))
    done = applied(bound, records, size=size)
    assert done == max(end for end in ends if end <= wanted)
    if bound.reached is None:
        assert wanted >= len(records)
    else:
        assert bound.reached.sequence == done
        assert bound.reached.inside == (done != wanted)
        following = bound.reached.following
        assert (following.sequence if following else len(records)) == done + 1


def test_a_follower_that_is_there_already_does_not_wait() -> None:
    bound = until("1")
    assert list(bound.up_to(assemble([None], resource="srv", next_sequence=2), applied=1)) == []
    assert bound.reached is not None
    assert bound.reached.told() == {"sequence": 1, "next": "not in the topic yet"}


def test_an_error_behind_the_place_does_not_matter() -> None:
    gap = [*located(history([1, 1])), *located([record(9, 9, 0, last=True)])]
    bound, found = until("1"), []
    with pytest.raises(PromiseError):
        for item in bound.up_to(assemble(gap, resource="srv", next_sequence=0), applied=-1):
            found.append(item)
    assert len(found) == 2
    assert bound.reached is not None


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (f"{UUID}:3", 1),
        (f"{UUID.upper()}:3", 1),
        (f"{UUID}:1", -1),
        (f"{UUID}:a_tag:1", 2),
        (f"{UUID}:9", 3),
        ("1970-01-01T00:00:00.000002Z", 1),
        ("1970-01-01T01:00:00.000002+01:00", 1),
        ("1970-01-01T00:00Z", -1),
        ("2026-03-01T12:30:00Z", 3),
    ],
)
def test_a_gtid_and_a_time_end_it_before_a_transaction(text: str, last: int) -> None:
    records = named([f"{UUID}:1", f"{UUID}:2", f"{UUID}:3", f"{UUID}:a_tag:1"])
    bound = until(text)
    assert applied(bound, records) == last
    if last < 3:
        assert bound.reached is not None
        assert bound.reached.following is records[last + 1]
    else:
        assert bound.reached is None


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([f"{UUID}:1", f"{UUID}:4"], "has no records in the topic, or comes out of order"),
        (["binlog.000001:4"], "the leader has no GTIDs"),
        (["a-b-c-d-e.000001:4"], "the leader has no GTIDs"),
    ],
)
def test_a_gtid_that_cannot_come_any_more_is_refused(ids: list[str], message: str) -> None:
    bound, found = until(f"{UUID}:3"), []
    with pytest.raises(UserError, match=message):
        for item in bound.up_to(assemble(located(named(ids)), resource="srv", next_sequence=0), applied=-1):
            found.append(item)
    assert len(found) == len(ids) - 1


def test_a_gtid_that_is_known_to_come_may_be_out_of_order() -> None:
    bound = until(f"{UUID}:3")
    bound.found()
    assert applied(bound, named([f"{UUID}:1", f"{UUID}:4", f"{UUID}:3", f"{UUID}:5"])) == 1


@pytest.mark.parametrize("text", ["", "x", "-1", "4.5", UUID, f"{UUID}:0", f"{UUID}:1-3", "12:30Z", "yesterday"])
def test_what_names_no_place_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="names no place in the stream"):
        Place.parse(text)


@pytest.mark.parametrize("text", ["2026-03-01", "2026-03-01 12:30", "2026-03-01T12:30:00.5"])
def test_a_time_has_a_zone(text: str) -> None:
    with pytest.raises(UserError, match="has no time zone"):
        Place.parse(text)


@pytest.mark.parametrize(
    ("text", "passed"),
    [("6", True), ("7", False), ("8", False), ("1970-01-01T00:00:00.000009Z", True), ("1970-01-01T00:00:01Z", False)],
)
def test_a_place_that_was_passed_is_refused(text: str, passed: bool) -> None:
    checkpoint = Checkpoint("srv", "topic", "id", 7, ts_us=9)
    if passed:
        with pytest.raises(UserError, match=r"the follower has passed .* it is at sequence 7"):
            until(text).check_start(checkpoint, executed=7)
    else:
        until(text).check_start(checkpoint, executed=7)
    until(text).check_start(Checkpoint("srv", "topic", "id"), executed=-1)


@pytest.mark.parametrize("executed", [-1, 1, 2])
def test_a_place_before_a_statement_that_has_run_is_refused(executed: int) -> None:
    """A killed consumer has executed it, and did not get to commit a checkpoint behind it."""
    checkpoint, records = Checkpoint("srv", "topic", "id", -1), named([f"{UUID}:{number}" for number in range(1, 6)])
    by_sequence, by_gtid = until("1"), until(f"{UUID}:3")
    by_gtid.check_start(checkpoint, executed=executed)
    by_gtid.found()
    assert applied(by_gtid, records) == 1
    if executed > 1:
        with pytest.raises(UserError, match="passed 1: a consumer that was killed has executed statement 2 there"):
            by_sequence.check_start(checkpoint, executed=executed)
        with pytest.raises(UserError, match=f"passed {UUID}:3: a consumer that was killed has executed statement 2"):
            by_gtid.check_reached()
    else:
        by_sequence.check_start(checkpoint, executed=executed)
        by_gtid.check_reached()


def test_the_parts_of_a_transaction_with_rows_alone_are_not_read_twice() -> None:
    items = [item and item._replace(size=3) for item in located(history([1, 3, 1]))]
    bound = until("3")
    parts = list(bound.up_to(assemble(items, resource="srv", next_sequence=0, size=3), applied=-1))
    assert all(isinstance(part, Transaction) for part in parts)
    assert [part.records[0].sequence for part in parts if part] == [0, 1, 2, 3]
    assert not bound.repeating
