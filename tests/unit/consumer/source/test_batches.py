"""Transactions are joined into batches up to a limit of rows or bytes; those with statements are not joined."""

from dataclasses import replace

import pytest

from cdc.consumer.source.assembler import MOST_BYTES, Batch, Transaction, batches
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import PromiseError
from cdc.model.record import Record
from tests.unit.consumer.source.test_assembler import record

T, U = TopicIdPartition("t", 0), TopicIdPartition("u", 1)


def transaction(sequence: int, *, rows: int = 1, size: int = 1, partition: TopicIdPartition = T) -> Transaction:
    return Transaction([rows_of(sequence, rows)], {partition: sequence + 1}, rows, False, size=size)


def rows_of(sequence: int, rows: int = 1) -> Record:
    return record(sequence, sequence, 0, last=True, rows=rows)


def lengths(*given: Transaction | None, rows: int = 100, size: int = 100) -> list[tuple[int, bool] | None]:
    """How many records each batch has, and whether it is full."""
    return [each and (len(each.records), each.full) for each in batches(given, rows=rows, size=size)]


def test_a_batch_is_full_at_its_rows() -> None:
    one, two = transaction(0, rows=1), transaction(0, rows=2)
    assert lengths(one, one, one, rows=2) == [(2, True), (1, False)]
    assert lengths(one, two, one, rows=2) == [(2, True), (1, False)]
    assert lengths(one, one, None, rows=3) == [(2, False), None]
    assert lengths(two, two, rows=2) == [(1, True), (1, True)]
    assert lengths(rows=2) == []
    assert lengths(None, None) == [None, None]


def test_a_batch_is_full_at_its_bytes_unless_it_is_far_too_large() -> None:
    assert lengths(transaction(0, size=99), transaction(1, size=1), transaction(2, size=99)) == [(2, True), (1, False)]
    assert lengths(transaction(0, size=199)) == [(1, True)]
    assert lengths(transaction(0, size=200)) == [(1, False)]
    assert lengths(transaction(0, size=99), transaction(1, size=101)) == [(2, False)]
    assert lengths(transaction(0, size=99), transaction(1, size=100)) == [(2, True)]
    assert lengths(transaction(0, rows=100, size=200)) == [(1, False)]
    # What was in the batch before does not count.
    assert lengths(transaction(0, size=100), transaction(1, size=99), transaction(2, size=1)) == [(1, True), (2, True)]


def test_two_megabytes_are_a_batch() -> None:
    given = [transaction(0, size=MOST_BYTES - 1), transaction(1), transaction(2)]
    assert [each and len(each.records) for each in batches(given, rows=100)] == [2, 1]


def test_a_batch_has_no_more_than_the_follower_can_commit_unless_one_transaction_has() -> None:
    given = [transaction(0, size=60), transaction(1, size=40), transaction(2, size=1), transaction(3, size=150)]
    found = batches([*given, transaction(4)], rows=100, size=1000, room=lambda: 100)
    assert [each and len(each.records) for each in found] == [2, 1, 1, 1]
    # What was in the batch before does not count to the next one's rows, either.
    given = [transaction(0, size=60), transaction(1, size=60), *map(transaction, (2, 3, 4))]
    found = batches(given, rows=3, size=1000, room=lambda: 100)
    assert [each and (len(each.records), each.full) for each in found] == [(1, True), (3, True), (1, False)]


def test_a_batch_has_the_records_of_its_transactions_and_the_last_offset_of_each_partition() -> None:
    given = [transaction(0), transaction(1, partition=U), transaction(2)]
    (batch,) = batches(given, rows=100)
    assert batch == Batch([rows_of(0), rows_of(1), rows_of(2)], rows_of(2), {T: 3, U: 2}, small=True)
    (batch,) = batches([transaction(0, rows=3), transaction(1, rows=4)], rows=100)
    assert batch is not None
    assert batch.rows == 7


CREATE = record(5, 5, 0, last=False, operation="Query")
SKIPPED = replace(rows_of(6), operation="Skipped", rows=())


def test_a_transaction_with_a_statement_is_a_batch_of_its_own() -> None:
    create = Transaction([CREATE, rows_of(6)], {T: 7}, 1, True)
    found = list(batches([transaction(0), create, transaction(7)], rows=1000))
    assert found == [
        Batch([rows_of(0)], rows_of(0), {T: 1}, small=True),
        Batch([rows_of(6)], rows_of(6), {T: 7}, CREATE),
        Batch([rows_of(7)], rows_of(7), {T: 8}, small=True),
    ]


def test_batches_of_whole_transactions_of_rows_and_chunks_are_small_unless_they_are_large() -> None:
    chunk = [replace(rows_of(0), operation="Copy")]
    for size, small in ((199, True), (200, False)):
        (rows,) = batches([transaction(0, size=size)], rows=9, size=100)
        (copied,) = batches([Transaction(chunk, {T: 1}, 1, False, size=size)], rows=9, size=100)
        assert rows and copied
        assert (rows.small, copied.small, copied.full) == (small, small, False)
    create = Transaction([CREATE, rows_of(6)], {T: 7}, 1, True)
    part = Transaction([rows_of(1)], {T: 2}, 1, False, True, False, 50)
    assert [each and each.small for each in batches([create, part], rows=9)] == [False, False]


def test_a_batch_before_a_statement_is_full_where_it_was_full() -> None:
    create = Transaction([CREATE], {T: 6}, 0, True)
    found = list(batches([transaction(0, rows=9), create], rows=9))
    assert [each and each.full for each in found] == [True, False]
    found = list(batches([transaction(0, rows=8), create], rows=9))
    assert [each and each.full for each in found] == [False, False]


def test_each_part_of_a_large_transaction_is_a_batch_of_its_own() -> None:
    parts = [
        Transaction([rows_of(1)], {T: 2}, 1, False, True, False, 50),
        Transaction([rows_of(2)], {T: 3}, 1, False, False, False, 50),
        Transaction([rows_of(3)], {T: 4}, 1, False, False, True, 50),
    ]
    assert list(batches([transaction(0), *parts, None, transaction(4)], rows=1000)) == [
        Batch([rows_of(0)], rows_of(0), {T: 1}, small=True),
        Batch([rows_of(1)], rows_of(1), {T: 2}, begins=True, ends=False),
        Batch([rows_of(2)], rows_of(2), {T: 3}, begins=False, ends=False),
        Batch([rows_of(3)], rows_of(3), {T: 4}, begins=False, ends=True),
        None,
        Batch([rows_of(4)], rows_of(4), {T: 5}, small=True),
    ]


def test_events_that_the_producer_skipped_are_left_out_of_their_batch() -> None:
    mixed = Transaction([rows_of(5), SKIPPED, rows_of(7)], {T: 8}, 2, True)
    assert list(batches([mixed], rows=100)) == [
        Batch([rows_of(5), rows_of(7)], rows_of(7), {T: 8}, left_out=(SKIPPED,))
    ]
    assert list(batches([Transaction([SKIPPED], {T: 7}, 0, True)], rows=100)) == [
        Batch([], SKIPPED, {T: 7}, left_out=(SKIPPED,))
    ]
    assert list(batches([Transaction([CREATE, SKIPPED], {T: 7}, 0, True)], rows=100)) == [
        Batch([], SKIPPED, {T: 7}, CREATE, left_out=(SKIPPED,))
    ]


@pytest.mark.parametrize(
    ("records", "begins", "sequence"),
    [
        ([rows_of(4), CREATE], True, "sequence 4, leader position binlog.000001:8"),
        ([CREATE, rows_of(6)], False, "sequence 5, leader position binlog.000001:9"),
        ([CREATE, replace(CREATE, sequence=6)], True, "sequence 5, leader position binlog.000001:9"),
    ],
)
def test_a_statement_is_the_first_and_only_one_of_its_transaction(
    records: list[Record], begins: bool, sequence: str
) -> None:
    with pytest.raises(PromiseError) as caught:
        list(batches([Transaction(records, {T: 7}, 0, True, begins)], rows=100))
    assert str(caught.value) == (
        "a leader transaction mixes statements and rows in a way that cannot be applied as one; "
        f"at {sequence}; hint: only CREATE TABLE … SELECT puts a statement and rows into one transaction"
    )


def test_a_part_with_a_statement_that_ends_later_keeps_its_ends() -> None:
    first = Transaction([CREATE], {T: 6}, 0, True, True, False, 50)
    assert list(batches([first], rows=100)) == [Batch([], CREATE, {T: 6}, CREATE, ends=False)]


def statement(sequence: int) -> Transaction:
    record = replace(CREATE, sequence=sequence, last=True, query="x" * 10)
    return Transaction([record], {T: sequence + 1}, 0, True)


def sequences(batch: Batch | None) -> list[int] | None:
    return batch and ([each.sequence for each in batch.statements] or [each.sequence for each in batch.records])


def test_statements_that_follow_one_another_are_one_batch() -> None:
    given = [statement(1), statement(2), transaction(3), statement(4), None, statement(5), statement(6)]
    assert list(map(sequences, batches(given, rows=100))) == [[1, 2], [3], [4], None, [5, 6]]
    many = [statement(at) for at in range(130)]
    assert [len(sequences(each) or ()) for each in batches(many, rows=1)] == [64, 64, 2]
    assert list(map(sequences, batches([*many[:4]], rows=1, size=20))) == [[0, 1], [2, 3]]
    # One with rows, or that is one of many parts, is for itself.
    with_rows = Transaction([CREATE, rows_of(6)], {T: 7}, 1, True)
    part = Transaction([CREATE], {T: 6}, 0, True, True, False, 50)
    for other in (with_rows, part):
        assert list(map(sequences, batches([statement(4), other, statement(8)], rows=1))) == [[4], [5], [8]]


def test_a_batch_of_statements_can_be_cut() -> None:
    (batch,) = batches([statement(at) for at in (1, 2, 3)], rows=1)
    assert batch is not None
    assert (batch.last.sequence, batch.offsets, batch.rows) == (3, {T: 4}, 0)
    assert batch.statement is batch.statements[0]
    first, others = batch.cut(1)
    assert (sequences(first), first.offsets, first.last.sequence) == ([1], {T: 2}, 1)
    assert sequences(others) == [2, 3]
    assert batch.cut(3) == (batch, None)
    assert first.cut(1) == (first, None)
    begun, last = batch.cut(2)
    assert (sequences(begun), begun.offsets, sequences(last)) == ([1, 2], {T: 3}, [3])


def test_statements_before_one_that_cannot_be_applied_are_a_batch() -> None:
    bad = Transaction([rows_of(4), CREATE], {T: 7}, 0, True)
    found = batches([statement(1), statement(2), bad], rows=1)
    assert sequences(next(found)) == [1, 2]
    with pytest.raises(PromiseError):
        next(found)
