"""A run's decision about a table: it merges only where all that came are rows of the same columns and key."""

from dataclasses import replace

import pytest

from cdc.errors import UserError
from cdc.lake.commits import Note, Written
from cdc.lake.decisions import Known, Step, What, decided
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, Act
from cdc.spark.frames.schema_history import (
    Columns,
    CopyIncomplete,
    Histories,
    History,
    NotTold,
    Statement,
    Told,
    without_copies,
)
from cdc.spark.frames.typed import Options

NAME = ("d", "t")
URI = "flv://l/d/t"
CREATED = Act(0, 0, "CreateTable", URI)
KEYED: Columns = (("id", "int"), ("name", "text character set utf8mb4"))


def known(
    *acts: Act, last: int = 5, columns: Columns = KEYED, cut: bool = False, silent: bool = False,
    created: str = "CREATE TABLE t (id INT)", **more: object
) -> Known:  # fmt: skip
    key = ("id",) if columns[0][0] == "id" else None
    statements = {act.sequence: Statement("ALTER TABLE t ADD KEY (name)", frozenset(), "", True) for act in acts}
    statements[0] = Statement(created, frozenset(), "", True)
    history = History((CREATED, *acts), statements, (Told(NAME, 1, columns, key),), silent_cascades=silent)
    given = {"options": Options(), "same_options": True} | more
    return Known(Histories(history), acts, 10, {URI: last}, "l", cut=cut, **given)  # type: ignore[arg-type]


def before(base: int = 3, **of: object) -> Written:
    """The table as a run that ended at ``base`` left it."""
    step = decided(known(**of), NAME, None, None)  # type: ignore[arg-type]
    assert step.what is What.REPLACE
    return Written(4, Note(*NAME, base, "", step.definition))


def step_of(all_known: Known, base: int = 3) -> Step:
    return decided(all_known, NAME, before(base), base)


def test_a_new_table_is_written() -> None:
    assert decided(known(), NAME, None, None).what is What.REPLACE


def test_rows_are_merged() -> None:
    step = step_of(known())
    assert (step.what, step.base) == (What.MERGE, 3)


def test_without_rows_since_nothing_is_done() -> None:
    assert step_of(known(last=3)).what is What.KEEP
    assert step_of(known(last=3, same_options=False)).what is What.KEEP


def test_a_table_whose_rows_foreign_keys_change_in_silence_is_not_kept() -> None:
    child = "CREATE TABLE t (id INT REFERENCES p (id) ON DELETE CASCADE)"
    assert step_of(known(last=3, silent=True)).what is What.KEEP
    assert step_of(known(last=3, created=child)).what is What.KEEP
    with pytest.raises(UserError, match="does not log the changes that foreign keys make"):
        decided(known(last=3, silent=True, created=child), NAME, before(3), 3)


@pytest.mark.parametrize("action", ["AlterTable", "CreateIndex", "DropIndex"])
def test_what_a_statement_touched_is_written(action: str) -> None:
    assert step_of(known(Act(4, 0, action, URI))).what is What.REPLACE
    written = decided(known(Act(2, 0, action, URI)), NAME, None, None)
    note = Note(*NAME, 3, "", written.definition)
    assert decided(known(Act(2, 0, action, URI)), NAME, Written(4, note), 3).what is What.MERGE


def test_other_objects_do_not_matter() -> None:
    others = (Act(4, 0, "AlterTable", "flv://l/d/u"), Act(4, 1, "AlterDatabase", "flv://l/d"))
    assert step_of(known(*others)).what is What.MERGE
    assert step_of(known(Act(4, 0, "DropDatabase", "flv://l/e"))).what is What.MERGE


def test_a_copy_is_waited_for_and_written() -> None:
    with pytest.raises(CopyIncomplete):
        step_of(known(Act(4, 0, BEGINS_COPY, URI)))


def test_other_choices_have_it_written() -> None:
    assert step_of(known(options=Options(on_alter="null"), same_options=False)).what is What.REPLACE


def test_what_something_else_wrote_is_written_again() -> None:
    assert decided(known(last=3), NAME, Written(4, None), None).what is What.REPLACE


@pytest.mark.parametrize("kind", ["double", "float", "enum('a','b') character set utf8mb4"])
def test_keys_that_spark_compares_otherwise_are_not_merged(kind: str) -> None:
    columns = (("id", kind), ("name", "int"))
    assert decided(known(columns=columns), NAME, before(columns=columns), 3).what is What.REPLACE


def test_dates_that_became_null_are_no_keys() -> None:
    columns = (("id", "date"), ("name", "int"))
    options = Options(zero_dates="null")
    assert decided(known(columns=columns), NAME, before(columns=columns), 3).what is What.MERGE
    written = before(columns=columns, options=options)
    assert decided(known(columns=columns, options=options), NAME, written, 3).what is What.REPLACE


def test_without_a_key_it_is_written() -> None:
    columns = (("n", "int"),)
    assert decided(known(columns=columns), NAME, before(columns=columns), 3).what is What.REPLACE


def test_what_retention_cut_is_only_merged() -> None:
    assert step_of(known(cut=True)).what is What.MERGE
    with pytest.raises(UserError, match="retention has cut the stream"):
        decided(known(cut=True), NAME, None, None)


def test_of_a_stream_that_lacks_records_only_a_later_copy_counts() -> None:
    copied = [Act(at, place, action, URI) for at in (2, 7) for place, action in enumerate((BEGINS_COPY, ENDS_COPY))]
    for gap, counts in ((1, True), (2, True), (6, True), (7, False)):
        whole = known(*copied, cut=True)
        history = replace(whole.histories.of(NAME), told=(Told(NAME, 8, KEYED, ("id",)),))
        cut = replace(whole, histories=Histories(without_copies(history, upto=gap)))
        if counts:
            assert decided(cut, NAME, None, None).what is What.REPLACE
            continue
        with pytest.raises(UserError, match="retention has cut the stream"):
            decided(cut, NAME, None, None)


def test_an_emptied_table_keeps_its_columns() -> None:
    emptied = known(Act(7, 0, "TruncateTable", URI))
    assert step_of(emptied).what is What.EMPTY
    assert step_of(emptied).definition == before().note.definition  # type: ignore[union-attr]
    assert decided(emptied, NAME, None, None).what is What.WAIT
    again = known(Act(7, 0, "DropTable", URI), Act(8, 0, "CreateTable", URI))
    assert step_of(again).what is What.WAIT


def test_rows_without_columns_are_refused() -> None:
    with pytest.raises(NotTold):
        step_of(known(Act(7, 0, "TruncateTable", URI), last=8))


def test_a_copied_table() -> None:
    copied = (Act(4, 0, BEGINS_COPY, URI), Act(4, 1, ENDS_COPY, URI))
    with pytest.raises(NotTold):
        step_of(known(*copied, last=4))
