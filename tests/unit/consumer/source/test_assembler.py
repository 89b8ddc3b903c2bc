"""Records become complete leader transactions and batches, however they arrive; gaps stop the stream."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.source.assembler import Batch, DeferErrors, Located, Transaction, assemble, batches
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import CdcError, PromiseError, UserError
from cdc.model.record import Record

PLACE = TopicIdPartition("t", 0)


def record(sequence: int, transaction: int, index: int, *, last: bool, operation: str = "Add", rows: int = 1) -> Record:
    content = {
        "Add": {"rows": [{"cols": [{"SignedInteger": n}]} for n in range(rows)]},
        "Query": "CREATE TABLE t (i INT)",
    }
    body = {
        "uri": "flv://srv/db/t",
        "sequence": sequence,
        "bn_file": {"fileName": "binlog.000001", "offset": 4 + sequence},
        "transaction": {"id": f"uuid:{transaction}", "index": index, "last": last, "ts_us": sequence},
        "columns": ["i"] if operation == "Add" else [],
        "operation": {operation: content[operation]},
    }
    return Record.parse(json.dumps(body).encode(), where="test")


def history(sizes: Sequence[int]) -> list[Record]:
    """Transactions of these numbers of records."""
    found: list[Record] = []
    for transaction, size in enumerate(sizes):
        for index in range(size):
            found.append(record(len(found), transaction, index, last=index == size - 1))
    return found


def located(records: Sequence[Record]) -> list[Located | None]:
    # Transaction markers take offsets too, so offsets have gaps where sequences have none.
    return [Located(PLACE, 10 + 2 * place, item) for place, item in enumerate(records)]


def assembled(items: Sequence[Located | None], next_sequence: int = 0) -> list[Transaction | None]:
    return list(assemble(items, resource="srv", next_sequence=next_sequence))


SIZES = st.lists(st.integers(min_value=1, max_value=5), max_size=8)


@given(SIZES, st.data())
def test_any_pauses_give_the_same_transactions(sizes: list[int], data: st.DataObject) -> None:
    items = located(history(sizes))
    for place in sorted(data.draw(st.sets(st.integers(0, len(items)))), reverse=True):
        items.insert(place, None)
    found = [transaction for transaction in assembled(items) if transaction is not None]
    assert [len(transaction.records) for transaction in found] == sizes
    assert [item for transaction in found for item in transaction.records] == history(sizes)


@given(SIZES, st.data())
def test_starting_after_any_transaction_gives_the_rest(sizes: list[int], data: st.DataObject) -> None:
    items = located(history(sizes))
    done = data.draw(st.integers(0, len(sizes)))
    found = assembled(items, next_sequence=sum(sizes[:done]))
    assert found == assembled(items)[done:]


@given(SIZES, st.integers(min_value=1, max_value=7), st.data())
def test_batches_hold_whole_transactions_in_order(sizes: list[int], rows: int, data: st.DataObject) -> None:
    transactions = assembled(located(history(sizes)))
    for place in sorted(data.draw(st.sets(st.integers(0, len(transactions)))), reverse=True):
        transactions.insert(place, None)
    found = [batch for batch in batches(transactions, rows=rows) if batch is not None]
    assert [item for batch in found for item in batch.records] == history(sizes)
    for batch in found:
        assert batch.last == batch.records[-1]
        assert batch.last.last
        assert batch.offsets == {PLACE: 10 + 2 * batch.last.sequence + 1}


@given(SIZES, st.integers(min_value=1, max_value=9), st.integers(min_value=1, max_value=7))
def test_a_large_transaction_comes_in_parts_that_make_it_up(sizes: list[int], size: int, rows: int) -> None:
    items = [item and item._replace(size=3) for item in located(history(sizes))]
    transactions = list(assemble(items, resource="srv", next_sequence=0, size=size))
    assert all(part is not None and part.size < size + 3 for part in transactions)
    found = [batch for batch in batches(transactions, rows=rows, size=size) if batch is not None]
    assert [item for batch in found for item in batch.records] == history(sizes)
    for before, batch in zip([None, *found], found, strict=False):
        assert batch.begins == (before is None or before.ends)
        assert batch.ends == batch.last.last
        assert batch.offsets == {PLACE: 10 + 2 * batch.last.sequence + 1}


def test_the_offsets_of_a_transaction_in_parts_are_those_of_all_its_parts() -> None:
    places = [TopicIdPartition("t", 0), TopicIdPartition("u", 0)]
    items = [Located(places[number], number, item, 5) for number, item in enumerate(history([2]))]
    first, second = assemble(items, resource="srv", next_sequence=0, size=1)
    assert first is not None
    assert second is not None
    assert first.offsets == {places[0]: 1}
    assert second.offsets == {places[0]: 1, places[1]: 2}


def test_a_batch_is_full_at_its_limit_and_ends_where_the_source_is_drained() -> None:
    transactions = assembled(located(history([1, 1, 1, 1, 1])))
    transactions.insert(3, None)
    assert [batch and len(batch.records) for batch in batches(transactions, rows=2)] == [2, 1, None, 2]


def test_a_statement_is_a_batch_of_its_own() -> None:
    items = history([1, 1, 1])
    items[1] = record(1, 1, 0, last=True, operation="Query")
    found = [batch for batch in batches(assembled(located(items)), rows=100) if batch is not None]
    assert [batch.statement for batch in found] == [None, items[1], None]
    assert found[1] == Batch([], items[1], {PLACE: 13}, items[1])


def test_create_table_select_keeps_its_rows_with_the_statement() -> None:
    items = [record(0, 0, 0, last=False, operation="Query"), record(1, 0, 1, last=True)]
    (batch,) = batches(assembled(located(items)), rows=100)
    assert batch is not None
    assert (batch.statement, batch.records, batch.last) == (items[0], [items[1]], items[1])


def test_a_statement_after_rows_of_its_transaction_is_refused() -> None:
    items = [record(0, 0, 0, last=False), record(1, 0, 1, last=True, operation="Query")]
    with pytest.raises(PromiseError, match="mixes statements and rows"):
        list(batches(assembled(located(items)), rows=100))


def broken() -> Iterator[tuple[str, list[Record], type[CdcError], str]]:
    whole = history([2, 2])
    yield "gap", [whole[0], whole[2]], PromiseError, "a gap: sequence 1 is missing, 2 follows"
    part = "an incomplete transaction: uuid:0"
    yield "begins late", [replace(whole[0], index=1)], PromiseError, f"{part} begins with its record 1"
    yield "ends early", [whole[0], replace(whole[2], sequence=1)], PromiseError, f"{part} has no last record"
    yield "index", [whole[0], replace(whole[1], index=2)], PromiseError, "record 2 of uuid:0 follows 0"
    other = whole[0].uri._replace(resource="other")
    yield "other leader", [replace(whole[0], uri=other)], UserError, "records of leader 'other', not of 'srv'"


@pytest.mark.parametrize(("records", "error", "message"), [pytest.param(*case[1:], id=case[0]) for case in broken()])
def test_broken_streams_stop_with_their_place(records: list[Record], error: type[CdcError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        assembled(located(records))
    assert caught.value.where.startswith("t/0/1")


def test_records_already_applied_are_passed_over_even_when_repeated() -> None:
    items = history([1, 1])
    found = assembled(located([*items, items[0], items[1]]))
    assert len(found) == 2


def broken_after(count: int) -> Iterator[int]:
    yield from range(count)
    raise PromiseError("a gap")


def test_the_error_comes_after_the_items() -> None:
    items = DeferErrors(broken_after(3))
    assert list(items) == [0, 1, 2]
    with pytest.raises(PromiseError, match="a gap"):
        items.reraise()


def test_a_sound_stream_ends_well() -> None:
    items = DeferErrors(range(3))
    assert list(items) == [0, 1, 2]
    items.reraise()


def test_other_errors_are_not_deferred() -> None:
    with pytest.raises(ZeroDivisionError):
        list(DeferErrors(1 // each for each in [1, 0]))


def sized(records: Sequence[Record], *sizes: int) -> list[Located | None]:
    return [Located(PLACE, 10 + 2 * n, item, size) for n, (item, size) in enumerate(zip(records, sizes, strict=True))]


def test_the_parts_of_a_large_transaction_and_the_next_transaction_after_it() -> None:
    items = [replace(item, operation="Query") if n == 2 else item for n, item in enumerate(history([4, 1]))]
    found = assemble(sized(items, 5, 5, 9, 9, 3), resource="srv", next_sequence=0, size=10)
    assert list(found) == [
        Transaction(items[:2], {PLACE: 13}, 2, False, True, False, 10),
        Transaction(items[2:4], {PLACE: 17}, 2, True, False, True, 18),
        Transaction(items[4:], {PLACE: 19}, 1, False, True, True, 3),
    ]


def test_a_statement_is_in_its_part_of_a_transaction_alone() -> None:
    items = [replace(item, operation="Query") if n == 1 else item for n, item in enumerate(history([3]))]
    found = assemble(sized(items, 9, 9, 9), resource="srv", next_sequence=0, size=9)
    assert [part and part.statement for part in found] == [False, True, False]


def test_a_transaction_that_ends_at_the_limit_is_one() -> None:
    (found,) = assemble(sized(history([2]), 9, 9), resource="srv", next_sequence=0, size=10)
    assert found == Transaction(history([2]), {PLACE: 13}, 2, False, True, True, 18)


def test_two_megabytes_are_a_part() -> None:
    sizes = [1_999_999, 1, 2_000_000, 1]
    found = list(assemble(sized(history([4]), *sizes), resource="srv", next_sequence=0))
    assert [part and part.size for part in found] == [2_000_000, 2_000_000, 1]


def test_a_pause_in_a_transaction_is_passed_on_and_divides_nothing() -> None:
    first, second = located(history([2]))
    assert assembled([None, first, None, None, second, None]) == [
        None, None, None, Transaction(history([2]), {PLACE: 13}, 2, False), None,
    ]  # fmt: skip


@pytest.mark.parametrize("operation", ["Query", "Skipped"])
def test_what_holds_no_rows_is_a_statement(operation: str) -> None:
    items = [replace(item, operation=operation) if n == 1 else item for n, item in enumerate(history([3, 1]))]
    found = assembled(located(items))
    assert [each and (each.statement, each.rows) for each in found] == [(True, 3), (False, 1)]


def test_errors_name_the_record_with_its_positions_and_the_way_out() -> None:
    whole = history([2, 1])
    with pytest.raises(PromiseError) as gap:
        assembled(located([whole[0], whole[2]]))
    assert str(gap.value) == (
        "a gap: sequence 1 is missing, 2 follows; at t/0/12, sequence 2, leader position binlog.000001:6; hint: "
        "something else writes to the topic or has deleted from it; start with a new topic and a fresh follower"
    )
    with pytest.raises(PromiseError) as incomplete:
        assembled(located([whole[0], replace(whole[2], sequence=1)]))
    assert incomplete.value.what == "an incomplete transaction: uuid:0 has no last record, uuid:1 follows"
    with pytest.raises(UserError) as foreign:
        assembled(located([replace(whole[0], uri=whole[0].uri._replace(resource="other"))]))
    assert str(foreign.value) == (
        "the topic holds records of leader 'other', not of 'srv'; at t/0/10; hint: "
        "set mysql_resource_name or kafka.topic in the profile to the producer's"
    )


def test_a_record_of_another_leader_stops_the_stream_wherever_it_is() -> None:
    other = replace(record(0, 0, 0, last=True), uri=history([1])[0].uri._replace(resource="other"))
    with pytest.raises(UserError):
        assembled(located([other]), next_sequence=5)
