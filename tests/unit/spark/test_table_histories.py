"""The history of one table is all of the whole history that says anything of the table."""

from hypothesis import example, given
from hypothesis import strategies as st

from cdc.errors import UserError
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, Act, Name
from cdc.spark.frames.schema_history import Columns, Histories, History, Statement, Told, untold
from cdc.spark.frames.versions import Plan, plan, plan_of_changes

NAMES: list[Name] = [("d", "t"), ("d", "u"), ("d", "v"), ("e", "t"), ("e", "u")]
COLUMNS: list[Columns] = [(("id", "int"), ("n", "int")), (("id", "int"), ("m", "bigint"))]
ON_TABLES = [
    "CreateTable", "DropTable", "TruncateTable", "AlterTable", "CreateIndex", "DropIndex", "CreateView", "DropView",
    BEGINS_COPY, ENDS_COPY,
]  # fmt: skip
TEXTS = ["ALTER TABLE t ADD m INT", "ALTER TABLE t RENAME COLUMN n TO m", "… REFERENCES x (id) ON DELETE CASCADE", ""]


def uri(*path: str) -> str:
    return "/".join(["flv://l", *path])


@st.composite
def effects(draw: st.DrawFn) -> list[tuple[str, str, str | None, bool]]:
    """What one statement does: action, object, new name, whether a copy follows."""
    name, other = draw(st.permutations(NAMES))[:2]
    kind = draw(st.sampled_from(["table"] * 6 + ["rename", "rename", "exchange", "swap", "database", "skip"]))
    if kind == "rename":
        return [("RenameTable", uri(*name), uri(*other), False)]
    if kind == "exchange":
        return [("AlterTable", uri(*name), None, False), ("AlterTable", uri(*other), None, False)]
    if kind == "swap":
        between = uri("d", "between")
        return [("RenameTable", *each, False) for each in (
            (uri(*name), between), (uri(*other), uri(*name)), (between, uri(*other)),
        )]  # fmt: skip
    if kind == "database":
        action = draw(st.sampled_from(["CreateDatabase", "DropDatabase", "AlterDatabase"]))
        return [(action, uri(name[0]), None, draw(st.booleans()))]
    if kind == "skip":
        return [("SkipEvent", draw(st.sampled_from([uri("*"), uri(name[0]), uri(*name)])), None, False)]
    return [(draw(st.sampled_from(ON_TABLES)), uri(*name), None, draw(st.booleans()))]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """All tables are created first, so that it is what comes then that makes one certain or not."""
    acts = [Act(0, place, "CreateTable", uri(*name)) for place, name in enumerate(NAMES)]
    statements, told = (
        {0: Statement("", frozenset(), "utf8mb4", True)},
        [Told(name, 1, COLUMNS[0], ("id",)) for name in NAMES],
    )
    for sequence in range(2, draw(st.integers(3, 10))):
        if draw(st.integers(0, 3)) == 0:
            key = draw(st.sampled_from([("id",), None]))
            told.append(Told(draw(st.sampled_from(NAMES)), sequence, draw(st.sampled_from(COLUMNS)), key))
            continue
        text = draw(st.sampled_from(TEXTS))
        statements[sequence] = Statement(text, frozenset(), "utf8mb4", True)
        for place, (action, on, to, copying) in enumerate(draw(effects())):
            acts.append(Act(sequence, place, action, on, to, text=text, copying=copying))
    return History(tuple(acts), statements, tuple(told), silent_cascades=draw(st.booleans()))


def planned(history: History, name: Name, sequence: int, *, cut: bool) -> list[Plan | str]:
    found: list[Plan | str] = []
    for what in (lambda: plan(history, name, sequence, cut=cut), lambda: plan_of_changes(history, name, sequence)):
        try:
            found.append(what())
        except UserError as error:
            found.append(f"{type(error).__name__} {error}")
    return found


def after_creation(*acts: Act) -> History:
    made = [Act(0, place, "CreateTable", uri(*name)) for place, name in enumerate(NAMES)]
    told = [Told(name, 1, COLUMNS[0], ("id",)) for name in NAMES]
    return History((*made, *acts), {}, tuple(told), silent_cascades=False)


@given(histories(), st.integers(0, 14), st.booleans())
@example(after_creation(Act(5, 0, "SkipEvent", uri("*"))), 9, False)
@example(after_creation(Act(5, 0, "AlterTable", uri("d", "t")), Act(5, 1, "AlterTable", uri("e", "u"))), 9, False)
@example(
    after_creation(Act(5, 0, "RenameTable", uri("d", "t"), uri("e", "new")), Act(6, 0, "DropDatabase", uri("e"))),
    9,
    False,
)
def test_a_table_is_the_same_by_its_own_history(whole: History, sequence: int, cut: bool) -> None:
    parts = Histories(whole)
    for name in NAMES:
        assert planned(parts.of(name), name, sequence, cut=cut) == planned(whole, name, sequence, cut=cut)


def test_other_tables_are_not_in_it() -> None:
    """So that to look at all of 10 000 tables does not take 10 000 times as long as to look at one."""
    names = [("d", f"t{number}") for number in range(50)]
    acts = [Act(number, 0, "CreateTable", uri(*name)) for number, name in enumerate(names)]
    told = [Told(name, 100 + number, COLUMNS[0], ("id",)) for number, name in enumerate(names)]
    parts = Histories(History(tuple(acts), {}, tuple(told), silent_cascades=False))
    for number, name in enumerate(names):
        found = parts.of(name)
        assert (found.acts, found.told) == ((acts[number],), (told[number],))
    assert Histories(History((), {}, tuple(told), silent_cascades=False)).of(names[7]).told == (told[7],)
    altered = [Act(100 + number, 0, "AlterTable", uri(*name)) for number, name in enumerate(names)]
    assert Histories(History(tuple(altered), {}, (), silent_cascades=False)).of(names[7]).acts == (altered[7],)


def test_tables_of_which_only_rows_are_told() -> None:
    """But not tables whose columns a record has, nor those that were dropped or renamed after their rows."""
    acts = [
        Act(3, 0, "DropTable", uri("d", "gone")), Act(4, 0, "RenameTable", uri("d", "old"), uri("d", "new")),
        Act(5, 0, "DropDatabase", uri("e")), Act(6, 0, "CreateTable", uri("d", "made")),
    ]  # fmt: skip
    history = History(tuple(acts), {}, (Told(("d", "told"), 8, COLUMNS[0], None),), False)
    last = {("d", "gone"): 2, ("d", "old"): 2, ("e", "t"): 4, ("d", "made"): 7, ("d", "told"): 8, ("d", "cut"): 1}
    assert untold(history, 9, last) == [("d", "cut")]
    assert untold(history, 9, {**last, ("d", "gone"): 4, ("e", "t"): 6}) == [("d", "cut"), ("d", "gone"), ("e", "t")]
