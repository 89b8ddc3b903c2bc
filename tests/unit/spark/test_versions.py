"""The versions of a table from which its rows are taken."""

import pytest

from cdc.errors import UserError
from cdc.spark.ddl.lineage import BEGINS_COPY, CASCADES, ENDS_COPY, Act
from cdc.spark.frames.schema_history import Columns, History, Statement, Told, existing
from cdc.spark.frames.versions import plan, plan_of_changes, plan_of_feed

NAME, URI = ("d", "t"), "flv://l/d/t"
COLUMNS: Columns = (("id", "int"), ("n", "int"))
CREATED = Act(0, 0, "CreateTable", URI)


def history(*acts: Act, keys: dict[int, tuple[str, ...] | None]) -> History:
    """``keys`` are those that records tell, by their sequences."""
    statements = {act.sequence: Statement("", frozenset(), "", True) for act in acts}
    told = tuple(Told(NAME, sequence, COLUMNS, key) for sequence, key in keys.items())
    return History((CREATED, *acts), statements, told, silent_cascades=False)


@pytest.mark.parametrize("key", [None, ("n",), ("id", "n")])
def test_rows_are_not_known_by_a_key_that_was_dropped(key: tuple[str, ...] | None) -> None:
    """Two rows may have the same values there from then on: one of them would be lost."""
    found = history(Act(4, 0, "DropIndex", URI), keys={1: ("id",), 5: key})
    with pytest.raises(UserError, match="from sequence 5 on the table has another key"):
        plan(found, NAME, 10, cut=False)
    assert plan(found, NAME, 4, cut=False).keyed, "no such row came yet"


def test_rows_stay_known_by_the_same_key() -> None:
    same = history(Act(4, 0, "DropIndex", URI), keys={1: ("id", "n"), 5: ("n", "id")})
    assert plan(same, NAME, 10, cut=False).stretches[-1].key == ("id", "n")
    keyless = history(Act(4, 0, "CreateIndex", URI), keys={1: None, 5: ("id",)})
    assert not plan(keyless, NAME, 10, cut=False).keyed, "all values of rows stay right"


def test_a_copy_knows_rows_again() -> None:
    copied = (Act(6, 0, BEGINS_COPY, URI), Act(6, 1, ENDS_COPY, URI))
    found = history(Act(4, 0, "DropIndex", URI), *copied, keys={1: ("id",), 5: None, 6: None})
    assert not plan(found, NAME, 10, cut=False).keyed


OTHER = "flv://l/d/other"
EXCHANGED = (Act(3, 0, "CreateTable", OTHER), Act(4, 0, "AlterTable", URI), Act(4, 1, "AlterTable", OTHER))


@pytest.mark.parametrize("keys", [{}, {5: ("id",)}, {1: ("id",)}, {1: None, 5: None}])
def test_a_table_lacks_rows_that_were_logged_for_the_one_it_was_exchanged_with(
    keys: dict[int, tuple[str, ...] | None],
) -> None:
    found = history(*EXCHANGED, keys=keys)
    with pytest.raises(UserError, match="the statement at sequence 4 exchanged rows of two tables"):
        plan(found, NAME, 10, cut=False)


@pytest.mark.parametrize("acts", [
    (Act(6, 0, "TruncateTable", URI),), (Act(6, 0, BEGINS_COPY, URI), Act(6, 1, ENDS_COPY, URI)),
    (Act(6, 0, "DropTable", URI), Act(7, 0, "CreateTable", URI)),
])  # fmt: skip
def test_exchanged_rows_that_are_gone_are_of_no_account(acts: tuple[Act, ...]) -> None:
    found = history(*EXCHANGED, *acts, keys={1: ("id",), 8: ("id",)})
    assert plan(found, NAME, 10, cut=False).keyed


def test_the_key_is_the_one_that_rows_have_last() -> None:
    found = history(Act(4, 0, "CreateIndex", URI), keys={1: None, 5: ("id",)})
    assert plan_of_changes(found, NAME, 10).key == ("id",)
    assert plan_of_changes(found, NAME, 3).key is None
    assert not plan(found, NAME, 10, cut=False).keyed


def test_a_renamed_table_is_there_under_its_new_name_alone() -> None:
    renamed = Act(3, 0, "RenameTable", URI, to="flv://l/d/w")
    assert existing(history(renamed, keys={}), 2) == {NAME: 0}
    assert existing(history(renamed, keys={}), 3) == {("d", "w"): 0}


def test_a_view_is_no_table_under_another_name_either() -> None:
    view, renamed = "flv://l/d/v", "flv://l/d/w"
    acts = (Act(2, 0, "CreateView", view), Act(3, 0, "RenameTable", view, to=renamed))
    assert existing(history(*acts, keys={}), 10).keys() == {NAME}
    gone = (*acts, Act(4, 0, "DropView", renamed), Act(5, 0, "CreateTable", renamed))
    assert existing(history(*gone, keys={}), 10).keys() == {NAME, ("d", "w")}
    table = (*acts, Act(4, 0, "DropView", renamed), Act(5, 0, "RenameTable", renamed, to="flv://l/d/x"))
    assert existing(history(*table, keys={}), 10).keys() == {NAME, ("d", "x")}  # the second rename is that of a table


@pytest.mark.parametrize("action", ["AlterTable", "TruncateTable"])
def test_a_statement_on_a_table_shows_that_it_exists(action: str) -> None:
    assert existing(history(Act(7, 0, action, "flv://l/d/older"), keys={}), 10) == {NAME: 0, ("d", "older"): 7}


CASCADING = "CREATE TABLE t (id INT, n INT REFERENCES p (id) ON DELETE{}CASCADE)"
PLAIN = "CREATE TABLE t (id INT, n INT REFERENCES p (id))"
RENAMES = (Act(4, 0, "AlterTable", "flv://l/d/s"), Act(4, 1, "RenameTable", "flv://l/d/s", to=URI))


@pytest.mark.parametrize(
    ("texts", "acts", "refused"),
    [
        ({0: CASCADING.format(" ")}, [], True),
        ({0: CASCADING.format("/* so */")}, [], True),
        ({0: CASCADING.format(" -- so\n")}, [], True),
        ({0: PLAIN}, [], False),
        # A table that was dropped does not count, and one that was emptied or copied does.
        ({0: CASCADING.format(" "), 5: PLAIN}, [Act(4, 0, "DropTable", URI), Act(5, 0, "CreateTable", URI)], False),
        ({0: PLAIN, 5: CASCADING.format(" ")}, [Act(4, 0, "DropTable", URI), Act(5, 0, "CreateTable", URI)], True),
        ({0: CASCADING.format(" ")}, [Act(4, 0, "TruncateTable", URI)], True),
        ({0: CASCADING.format(" ")}, [Act(4, 0, BEGINS_COPY, URI), Act(4, 1, ENDS_COPY, URI)], True),
        # Under a former name, and by the statement that renames it.
        ({3: CASCADING.format(" ")}, [Act(2, 0, "DropTable", URI), Act(3, 0, "CreateTable", "flv://l/d/s"), RENAMES[1]],
         True),
        ({4: "ALTER TABLE s ADD FOREIGN KEY (n) REFERENCES p (id) ON UPDATE SET NULL, RENAME t"},
         [Act(2, 0, "DropTable", URI), Act(3, 0, "CreateTable", "flv://l/d/s"), *RENAMES], True),
    ],
)  # fmt: skip
def test_what_foreign_keys_change_in_silence_is_refused(texts: dict[int, str], acts: list[Act], refused: bool) -> None:
    statements = {at: Statement(text, frozenset(), "", True) for at, text in texts.items()}
    found = History((CREATED, *acts), statements, (Told(NAME, 6, COLUMNS, ("id",)),), silent_cascades=True)
    if not refused:
        assert plan(found, NAME, 10, cut=False).keyed
        return
    with pytest.raises(UserError, match="does not log the changes that foreign keys make"):
        plan(found, NAME, 10, cut=False)


def test_a_copy_tells_of_foreign_keys_that_no_statement_tells() -> None:
    """The table is older than the topic. Only the newest copy counts, and what a server logs now changes nothing."""
    with_keys, without = (
        [Act(at, 0, BEGINS_COPY, URI, text=text), Act(at, 1, ENDS_COPY, URI)] for at, text in ((3, CASCADES), (5, ""))
    )
    for silent in (True, False):
        for acts, refused in ((with_keys, True), (without, False), ([*with_keys, *without], False)):
            found = History(tuple(acts), {}, (Told(NAME, acts[-1].sequence, COLUMNS, ("id",)),), silent_cascades=silent)
            if refused:
                with pytest.raises(UserError, match="does not log the changes that foreign keys make"):
                    plan(found, NAME, 10, cut=True)
            else:
                assert plan(found, NAME, 10, cut=True).keyed


@pytest.mark.parametrize(("acts", "at", "last"), [
    ((Act(6, 0, "TruncateTable", URI),), 6, 6),
    ((Act(6, 0, BEGINS_COPY, URI), Act(8, 1, ENDS_COPY, URI)), 6, 6),
    ((Act(6, 0, "DropTable", URI), Act(7, 0, "CreateTable", URI)), 6, 6),
    ((Act(6, 0, "AlterTable", URI),), 6, 6),
    ((Act(6, 0, "SkipEvent", URI),), 6, 6),
    ((Act(6, 0, "RenameTable", URI, to=OTHER), Act(7, 0, "RenameTable", OTHER, to=URI)), 6, 7),
])  # fmt: skip
def test_a_feed_stops_where_rows_changed_without_records(acts: tuple[Act, ...], at: int, last: int) -> None:
    found = history(*acts, keys={1: ("id",), 9: ("id",)})
    for since in (0, 3, 5):
        with pytest.raises(UserError, match=f"at sequence {at} rows of the table changed without a record of each"):
            plan_of_feed(found, NAME, 10, since=since, cut=False)
    assert plan_of_feed(found, NAME, 10, since=last, cut=False).columns == COLUMNS
    assert plan_of_feed(found, NAME, 5, since=0, cut=False).stretches[0].first == 0, "it comes later"


def test_a_feed_without_a_beginning_is_what_the_table_is_made_of() -> None:
    found = history(Act(6, 0, "TruncateTable", URI), keys={1: ("id",), 9: ("id",)})
    feed, table = plan_of_feed(found, NAME, 10, since=None, cut=False), plan(found, NAME, 10, cut=False)
    assert [each.first for each in feed.stretches] == [each.first for each in table.stretches] == [6]
    assert not feed.keyed and table.keyed


def test_a_feed_since_before_the_table_was_there() -> None:
    created = Act(5, 0, "CreateTable", URI)
    found = history(Act(2, 0, "DropTable", URI), created, keys={6: ("id",)})
    assert plan_of_feed(found, NAME, 10, since=3, cut=False).columns == COLUMNS
    with pytest.raises(UserError, match="at sequence 2 rows"):
        plan_of_feed(found, NAME, 10, since=1, cut=False)
    never = History((Act(0, 0, "CreateTable", OTHER), created), {}, found.told, silent_cascades=False)
    assert plan_of_feed(never, NAME, 10, since=1, cut=False).columns == COLUMNS


def test_a_feed_passes_an_alter_that_changes_no_row() -> None:
    found = history(Act(6, 0, "AlterTable", URI), keys={1: ("id",), 9: ("id",)})
    text = Statement("ALTER TABLE t ADD INDEX (n)", frozenset({"STRICT_TRANS_TABLES"}), "utf8mb4", True)
    harmless = History(found.acts, {6: text}, found.told, silent_cascades=False)
    assert len(plan_of_feed(harmless, NAME, 10, since=3, cut=False).stretches) == 2
