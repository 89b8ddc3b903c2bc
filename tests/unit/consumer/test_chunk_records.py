"""A chunk of a table on its way to the planner: what reads records knows that it is one, and what it is not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from cdc.config.renames import Renames
from cdc.consumer.metrics import Copies
from cdc.consumer.plan.chunk_plan import ChunkPlan, Repair
from cdc.consumer.plan.rendered_rows import RecordParser, RenderedRows
from cdc.consumer.range.base_copy import with_gtids
from cdc.consumer.range.until import Place, Until
from cdc.consumer.source.assembler import Located, assemble, batches
from cdc.consumer.source.renaming import Renaming
from cdc.consumer.state.base_copy import BaseCopy
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import PromiseError
from cdc.model.gtid import GtidSet
from cdc.model.record import KeyRange, Record
from cdc.tail.lines import line
from tests.unit.consumer.source.test_assembler import history

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ONE = {"SignedInteger": 1}


def body(sequence: int, *, rows: int = 2, **more: Any) -> dict[str, Any]:
    content = {"after": None, "upto": {"cols": [ONE]}, "rows": [{"cols": [ONE, "Null"]}] * rows}
    return {
        "uri": "flv://srv/db/t",
        "sequence": sequence,
        "bn_file": {"fileName": "binlog.000001", "offset": 4},
        "transaction": {"id": f"copy:uuid:{sequence}", "index": 0, "last": True, "ts_us": 0},
        "columns": ["a", "b"],
        "key": ["a"],
        "operation": {"Copy": content | more},
    }


def chunk(sequence: int, **more: Any) -> Record:
    return Record.parse(json.dumps(body(sequence, **more)).encode(), where="test")


def located(records: list[Record]) -> list[Located | None]:
    return [Located(TopicIdPartition("t", 0), each.sequence, each, size=9) for each in records]


def test_a_chunk_as_a_record() -> None:
    made = chunk(7, collations=["utf8mb4_bin"])
    assert made.range == KeyRange(None, [ONE], ("utf8mb4_bin",))
    assert chunk(7).range == KeyRange(None, [ONE])
    assert [(row.before, row.after) for row in made.rows] == [(None, [ONE, "Null"])] * 2
    place = "binlog.000001:4  1970-01-01T00:00:00.000000Z  copy:uuid:7"
    assert line(made) == f"7  {place}  Copy flv://srv/db/t  2 rows, the beginning to a=1"
    assert line(replace(made, range=KeyRange([ONE], None))).endswith("2 rows, after a=1 to the end")
    # Without rows a chunk would empty its range.
    assert (made.emptied().operation, made.emptied().range, made.emptied().rows) == ("Add", None, ())


@pytest.mark.parametrize(
    "wrong", [{"upto": {"cols": []}}, {"upto": {"cols": [ONE, ONE]}}, {"collations": []}, {"after": [ONE]}]
)
def test_a_range_of_another_key_is_no_record(wrong: dict[str, Any]) -> None:
    with pytest.raises(PromiseError, match="not a record"):
        chunk(0, **wrong)


def repair(keys: object, **more: Any) -> Record:
    made = body(4) | {"operation": {"Repair": {"keys": keys, "rows": [{"cols": [ONE, "Null"]}]} | more}}
    return Record.parse(json.dumps(made).encode(), where="test")


def test_a_chunk_of_some_keys() -> None:
    made = repair([{"cols": [ONE]}, {"cols": [{"SignedInteger": 5}]}], collations=[None])
    assert made.range == KeyRange(None, None, (None,), keys=([ONE], [{"SignedInteger": 5}]))
    place = "binlog.000001:4  1970-01-01T00:00:00.000000Z  copy:uuid:4"
    assert line(made) == f"4  {place}  Copy flv://srv/db/t  1 rows of 2 keys: a=1; a=5"
    # Consumers that know only ranges must not take it for one of the whole table.
    assert (made.operation, made.emptied().range) == ("Copy", None)
    for wrong in ([], None, [{"cols": []}], [{"cols": [ONE, ONE]}], [ONE]):
        with pytest.raises(PromiseError, match="not a record"):
            repair(wrong)


@pytest.mark.parametrize("change", [{"copying": "no"}, {"copying": 1}, {"key": None}])
def test_what_decides_about_conflicts_is_true_or_false(change: dict[str, Any]) -> None:
    with pytest.raises(PromiseError, match="not a record"):
        Record.parse(json.dumps(body(0) | change).encode(), where="test")
    assert Record.parse(json.dumps(body(0) | {"copying": False}).encode(), where="test").copying is False


def test_many_rows_become_sql_while_they_are_parsed() -> None:
    made = RecordParser().parse(json.dumps(body(0, rows=30)).encode(), where="test")
    assert isinstance(made.rows, RenderedRows)
    assert list(made.rows) == list(chunk(0, rows=30).rows)


def test_a_chunk_is_a_batch_of_its_own() -> None:
    records = [*history([1, 1]), chunk(2), chunk(3), *[replace(each, sequence=4) for each in history([1])]]
    found = list(batches(assemble(located(records), resource="srv", next_sequence=0), rows=100))
    assert [[each.sequence for each in batch.records] for batch in found if batch] == [[0, 1], [2], [3], [4]]
    assert [batch.chunk is not None for batch in found if batch] == [False, True, True, False]
    with pytest.raises(PromiseError, match="beside other records"):
        list(assemble(located([replace(chunk(0), last=False)]), resource="srv", next_sequence=0))


def test_the_checkpoint_keeps_the_transaction_of_the_leader() -> None:
    checkpoint = Checkpoint("srv", "t", "id", 1)
    offsets = {TopicIdPartition("t", 0, "id"): 3}
    moved = checkpoint.advance(checkpoint.advanced(last=chunk(2), offsets=offsets), last=chunk(2))
    assert "sequence=2" in moved
    assert "leader_gtid" not in moved


def test_what_a_chunk_says_of_another_database_says_nothing() -> None:
    renaming = Renaming(Renames({"a": "db"}, own="cdc"), replicated=lambda uri: uri.database == "a")
    (item,) = renaming.located(located([chunk(0)]))
    assert item is not None
    assert (item.record.operation, item.record.rows) == ("Add", ())


def test_a_place_is_found_behind_a_chunk() -> None:
    """A chunk has no GTID, and comes before any of the leader's."""
    (first,) = history([1])
    records = [chunk(0), replace(first, sequence=1, transaction=f"{UUID}:7"), chunk(2)]
    transactions = assemble(located(records), resource="srv", next_sequence=0)
    found = list(Until(Place.parse(f"{UUID}:7")).up_to(transactions, applied=-1))
    assert [each.records[0].sequence for each in found if each] == [0]


def passed_over(copied: BaseCopy, records: list[Record]) -> list[int]:
    """The chunks of which nothing is left."""
    found = with_gtids(assemble(located(records), resource="srv", next_sequence=records[0].sequence), copied)
    return [
        record.sequence
        for each in found if each
        for record in each.records if record.of_copy and record.operation != "Copy"
    ]  # fmt: skip


def test_a_copy_of_the_leader_has_what_chunks_say_of_before() -> None:
    """And not what they say behind the first transaction that it lacks, also when all is read again from before."""
    (first,) = history([1])
    names = ["copy", 5, "copy", 4, "copy", 6, "copy", 7, "copy"]
    records = [
        chunk(n) if name == "copy" else replace(first, sequence=n, transaction=f"{UUID}:{name}")
        for n, name in enumerate(names)
    ]
    copied = BaseCopy(GtidSet.parse(f"{UUID}:1-5"))
    assert passed_over(copied, records) == [0, 2, 4]
    assert passed_over(copied, records[2:]) == [2, 4]
    assert passed_over(copied, records[4:]) == [4]
    assert passed_over(BaseCopy(GtidSet.parse(f"{UUID}:1-5"), new_from=5), records[6:]) == []
    assert passed_over(BaseCopy(), records) == []


def piece(sequence: int, number: int) -> Record:
    bare = {name: value for name, value in body(sequence).items() if name != "key"}
    after = {"cols": []} if number else None
    content = {"after": after, "upto": {"cols": []}, "piece": number, "rows": [{"cols": [ONE, "Null"]}]}
    return Record.parse(json.dumps(bare | {"operation": {"Copy": content}}).encode(), where="test")


def test_a_table_without_a_key_is_copied_as_a_whole_or_not_at_all(caplog: pytest.LogCaptureFixture) -> None:
    """A dump was made between two pieces: the first one would not empty the table, so the next must add nothing."""
    (first,) = history([1])
    held, lacking = (replace(first, sequence=n, transaction=f"{UUID}:{name}") for n, name in ((0, 5), (2, 6)))
    records = [held, piece(1, 0), lacking, piece(3, 1), piece(4, 2), piece(5, 0), piece(6, 1)]
    copied = BaseCopy(GtidSet.parse(f"{UUID}:1-5"))
    assert passed_over(copied, records) == [1, 3, 4]
    assert passed_over(copied, records[-1:]) == [], "read again, behind the first piece"
    # Started again between the first piece and the end of the dump's transactions, and not told of the former.
    assert passed_over(BaseCopy(GtidSet.parse(f"{UUID}:1-5")), records[2:]) == [3, 4]
    assert not caplog.records
    assert passed_over(BaseCopy(GtidSet.parse(f"{UUID}:1-5"), new_from=2), records[3:]) == []
    (told,) = caplog.records
    assert "rows twice" in told.getMessage() and "--copy db.t" in str(vars(told))


def test_a_base_copy_has_the_statements_of_copies_before_it() -> None:
    made = replace(history([1])[0], sequence=4, operation="Query", transaction="copy:uuid:4")
    copied = BaseCopy(GtidSet.parse(f"{UUID}:1-5"))
    assert copied.has(made) and not BaseCopy().has(made)
    assert not BaseCopy(GtidSet.parse(f"{UUID}:1-5"), new_from=3).has(made)


def test_what_a_copy_repaired_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="cdc.consumer")
    copies = Copies()
    first, last = chunk(3), replace(chunk(9), range=KeyRange([ONE], None))
    copies.applied(ChunkPlan(first, first, repair=Repair(missing=2)))  # nothing was there
    copies.applied(ChunkPlan(last, last, repair=Repair(different=1, extra=4, there=7)))
    copies.applied(ChunkPlan(last, last, repair=Repair(there=7)))
    told = [record.getMessage() for record in caplog.records]
    assert told == ["chunk changed rows", "table copied", "table copied"]
    assert (copies.total.missing, copies.total.different, copies.total.extra, copies.total.rows) == (2, 1, 4, 6)


def test_a_piece_of_a_table_without_a_key() -> None:
    def piece(number: int, after: Any, upto: Any, **more: Any) -> Record:
        text = body(7, piece=number, after=after, upto=upto)
        del text["key"]
        return Record.parse(json.dumps(text | more).encode(), where="test")

    empty: dict[str, Any] = {"cols": []}
    first, last = piece(0, None, empty), piece(3, empty, None, key=["a"])
    assert (first.key, first.range) == (None, KeyRange(None, [], None, 0))
    assert (last.key, last.range) == (("a",), KeyRange([], None, None, 3))
    assert line(first).endswith("2 rows, piece 0 of the table")
    assert line(last).endswith("2 rows, piece 3 of the table, the last")
    for number, after, upto in ((1, None, None), (0, empty, None), (0, None, {"cols": [ONE]})):
        with pytest.raises(PromiseError, match="not a record"):
            piece(number, after, upto)
    without = body(7)
    del without["key"]
    with pytest.raises(PromiseError, match="a range of no key"):
        Record.parse(json.dumps(without).encode(), where="test")


def test_what_was_repaired_is_told_and_is_no_copy_of_the_table(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="cdc.consumer")
    copies, made = Copies(), repair([{"cols": [ONE]}])
    copies.applied(ChunkPlan(made, made, repair=Repair(missing=1, there=3)))
    ((told, fields),) = [(record.getMessage(), record.fields) for record in caplog.records]
    assert told == "rows repaired"
    assert fields == {"uri": made.uri, "sequence": 4, "keys": 1, "rows": 1, "missing": 1, "different": 0, "extra": 0}
    assert copies.total.missing == 1
