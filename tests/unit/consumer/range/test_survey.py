"""What --rewind can't apply again is found in the records, with the place behind which all can be."""

from typing import Any

import pytest

from cdc.consumer.range.survey import Survey
from cdc.model.record import Record, Uri
from tests.unit.consumer.plan.test_planner import record


def statement(sequence: int, action: str, table: str = "t", **more: Any) -> Record:
    made = record(sequence, "Query", rows=0)
    made.query = f"{action} {table}"
    made.affects = ({"action": action, "uri": f"flv://srv/db/{table}", **more},)
    return made


def survey(*records: Record, copied: int = -1, skipped: frozenset[int] = frozenset()) -> Survey:
    found = Survey(
        passes=lambda uri: uri.table != "excluded",
        copied=lambda each: each.sequence <= copied,
        why_not=lambda each: "" if each.key else f"rows of {each.uri.table}",
        skipped=skipped,
    )
    found.see(records)
    return found


def keyless(sequence: int, *, last: bool = True) -> Record:
    made = record(sequence, "Add", "k")
    made.key, made.last = None, last
    return made


@pytest.mark.parametrize(
    "action", ["CreateView", "DropView", "CreateFunction", "DropProcedure", "CreateTrigger", "AlterEvent",
               "CreateDatabase", "AlterDatabase", "CreateTable"],
)  # fmt: skip
def test_statements_that_touch_no_row_stay_done(action: str) -> None:
    found = survey(statement(1, action), record(2, "Add"))
    assert (found.obstacles, found.behind) == ("", -1)
    assert bool(found.created) == (action == "CreateTable")


@pytest.mark.parametrize(
    "action", ["AlterTable", "DropTable", "TruncateTable", "CreateIndex", "DropIndex", "DropDatabase", "RenameTable",
               "AnythingNew"],
)  # fmt: skip
def test_all_others_are_in_the_way_where_they_are_replicated(action: str) -> None:
    found = survey(record(1, "Add"), statement(2, action), record(3, "Add"))
    assert found.obstacles == f"a statement, which stays done, changes db.t: {action} t (sequence 2)"
    assert found.behind == 2


def test_those_on_tables_that_are_left_out_are_not() -> None:
    assert survey(statement(2, "AlterTable", "excluded"), statement(3, "TruncateTable", "excluded")).obstacles == ""


def test_a_table_that_is_renamed_into_the_filters() -> None:
    assert survey(statement(2, "RenameTable", "excluded", to="flv://srv/db/t")).behind == 2


def test_a_table_made_anew_behind_its_rows() -> None:
    assert survey(record(1, "Add"), statement(2, "CreateTable")).behind == 2
    found = survey(statement(2, "CreateTable"))
    found.lacks(Uri("srv", "db", "t"))
    assert "lacks table db.t" in found.obstacles
    assert found.behind == 2


def test_a_place_is_behind_the_whole_transaction() -> None:
    found = survey(keyless(1, last=False), record(2, "Add"), keyless(3), record(4, "Add"))
    assert (found.obstacles, found.behind) == ("rows of k (sequence 1)", 3)
    assert survey(keyless(1, last=False), record(2, "Add"), record(3, "Add")).behind == 2


def test_what_the_copy_had_and_what_the_producer_left_out() -> None:
    assert survey(record(1, "Add"), record(2, "Add"), copied=1).behind == 1
    assert survey(statement(1, "CreateView"), record(2, "Add"), copied=1).behind == 1
    left_out = statement(3, "SkipDatabase")
    left_out.operation = "Skipped"
    assert survey(left_out).behind == 3
    left_out.affects = ()
    assert survey(left_out).behind == 3  # it may have changed anything


def test_many_obstacles_are_counted() -> None:
    found = survey(*[statement(n, "AlterTable", f"t{n}") for n in range(8)])
    assert found.obstacles.count("AlterTable") == 5
    assert found.obstacles.endswith("; and 3 more")


def test_what_was_skipped_is_in_the_way_up_to_the_end_of_its_transaction_where_it_is_replicated() -> None:
    first = record(1, "Add")
    first.last = False
    found = survey(first, record(2, "Add"), record(3, "Add"), skipped=frozenset([1]))
    assert (found.obstacles, found.behind) == ("a record that was skipped (cdc-consumer --skip) (sequence 1)", 2)
    assert survey(statement(2, "CreateView"), skipped=frozenset([2])).behind == 2
    left_out = [record(1, "Add", "excluded"), statement(2, "CreateTable", "excluded")]
    assert survey(*left_out, skipped=frozenset([1, 2])).obstacles == ""
