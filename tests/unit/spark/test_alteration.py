"""What ALTER TABLE does to rows of which nothing is logged: said where it is certain, a doubt where it is not."""

import pytest

from cdc.spark.ddl.lineage import Act
from cdc.spark.frames.alteration import Origin, altered
from cdc.spark.frames.schema_history import History, Statement, generated_columns
from tests.checks.statements import Said, said_in

TEXT = "character set utf8mb4"
BEFORE = (
    ("id", "int"), ("n", "smallint"), ("t", f"varchar(10) {TEXT}"), ("e", f"enum('a','b') {TEXT}"),
    ("d", "decimal(10,2)"), ("f", "float"),
)  # fmt: skip
STRICT = frozenset({"STRICT_TRANS_TABLES"})


@pytest.mark.parametrize("said", said_in("alterations.sql"), ids=str)
def test_what_a_statement_makes_of_the_columns(said: Said) -> None:
    statement = Statement(said.text, STRICT, "utf8mb4", explicit_timestamps=True)
    step = altered(BEFORE, statement, sequence=7, after=None)
    if step.columns is None:
        assert step.doubt and said.expected == "in doubt"
        return
    columns = ", ".join(shown(name, step.origins.get(name, Origin(name))) for name, _ in step.columns)
    assert "rows in doubt; " * bool(step.doubt) + columns == said.expected


def shown(column: str, origin: Origin) -> str:
    """As alterations.sql has it."""
    if origin.doubt:
        return f"{column}?"
    if origin.value is not None:
        return f"{column} = {origin.value}"
    former = f" from {origin.name}" if origin.name != column else ""
    return column + former + (f" ({origin.null_doubt})" if origin.null_doubt else "")


@pytest.mark.parametrize(
    ("old", "new", "mode", "is_certain"),
    [
        ("set('a','b')", "SET('a','b','c')", STRICT, True), ("set('a','b')", "SET('a','b','')", STRICT, False),
        ("set('a','')", "SET('a','','b')", STRICT, True), ("enum('a','b')", "ENUM('a','b','')", STRICT, True),
        ("enum('a','b')", "ENUM('a','b','é')", STRICT, True),
        ("enum('a','b')", "ENUM('a','b','é')", frozenset(), False),
        ("enum('a','A')", "ENUM('a','A')", STRICT, False),
    ],
)  # fmt: skip
def test_members_of_which_records_have_texts_or_numbers(
    old: str, new: str, mode: frozenset[str], *, is_certain: bool
) -> None:
    statement = Statement(f"ALTER TABLE t MODIFY c {new.replace(')', f') {TEXT}', 1)}", mode, "utf8mb4", True)
    step = altered([("c", f"{old} {TEXT}")], statement, sequence=7, after=None)
    assert step.origins["c"].doubt == ("" if is_certain else f"its type became {new[: new.index('(')].lower()}")


def test_nothing_is_certain_where_records_tell_other_columns() -> None:
    statement = Statement("ALTER TABLE t ADD c INT", STRICT, "utf8mb4", explicit_timestamps=True)
    assert altered(BEFORE, statement, sequence=7, after=(*BEFORE, ("x", "int"))).doubt
    other = altered(BEFORE, statement, sequence=7, after=(*BEFORE, ("c", "bigint")))
    assert other.origins["c"].doubt and other.origins["id"] == Origin("id")


@pytest.mark.parametrize(
    ("clauses", "is_certain"),
    [
        ("MODIFY t VARCHAR(10) COLLATE utf8mb4_bin", False), ("CHANGE d x DECIMAL(12,2)", False),
        ("CONVERT TO CHARACTER SET utf8mb4", False), ("MODIFY n INT", True), ("ADD c INT, RENAME COLUMN t TO x", True),
    ],
)  # fmt: skip
def test_what_a_server_computes_of_changed_columns(clauses: str, is_certain: bool) -> None:
    """Rows of a table with a key: what is computed is in doubt, and no other column."""
    statement = Statement(f"ALTER TABLE t {clauses}", STRICT, "utf8mb4", explicit_timestamps=True)
    step = altered(BEFORE, statement, sequence=7, after=None, generated=lambda: {"f", "e"})
    assert (step.origins["f"] == Origin("f"), step.origins["id"]) == (is_certain, Origin("id"))


def test_what_may_be_computed_in_a_table_of_which_no_statement_tells() -> None:
    statement = Statement("ALTER TABLE t MODIFY n BIGINT UNSIGNED, ADD c INT", STRICT, "utf8mb4", True)
    step = altered(BEFORE, statement, sequence=7, after=None, generated=lambda: None)
    assert step.origins["f"].doubt and step.origins["id"].doubt
    assert step.origins["c"] == Origin(value="Null")
    # Integers that stay the same change nothing that is computed of them.
    same = Statement("ALTER TABLE t MODIFY n INT", STRICT, "utf8mb4", True)
    assert altered(BEFORE, same, sequence=7, after=None, generated=lambda: None).origins["f"] == Origin("f")


def test_which_columns_a_server_computes() -> None:
    def of(*texts: str, modes: frozenset[str] = STRICT) -> frozenset[str]:
        made = {at: Statement(text, modes, "utf8mb4", explicit_timestamps=True) for at, text in enumerate(texts)}
        found = generated_columns(History((Act(0, 0, "CreateTable", "flv://l/d/t"),), made, (), False), {"T"})
        assert found is not None
        return found

    create = "CREATE TABLE d.t (id INT, `x,(` INT GENERATED ALWAYS AS (id + (1)) STORED, CHECK (id < 3), y INT)"
    assert "x,(" in of(create) and of(create).isdisjoint({"id", "y"})
    assert "x" in of("CREATE TABLE t (id INT, x DECIMAL(10, 2) AS (id))")
    assert "z" in of(create, "ALTER TABLE t RENAME COLUMN `x,(` TO Z")
    assert of("CREATE TABLE u (id INT, x INT AS (id))", "ALTER TABLE t ADD q INT") == frozenset()
    assert {"v", "w"} <= of("ALTER TABLE t MODIFY id INT, ADD COLUMN v INT AS (id), CHANGE v w INT AS (id)")
    for clause in ("ADD COLUMN q INT", "ADD q INT", "MODIFY COLUMN q INT", "CHANGE COLUMN p q INT"):
        # After the first clause, too, a bracket that is closed begins no definition.
        assert "q" in of(f"ALTER TABLE d.t {clause} AS (id)"), clause
        assert "q" in of(f"ALTER TABLE d.t ADD x DECIMAL(10, 2), {clause} AS (id)"), clause
    assert of("CREATE TABLE t LIKE u", "ALTER TABLE u ADD x INT AS (1)") == frozenset()
    assert of("CREATE TABLE u (x INT AS (1))", "CREATE TABLE t LIKE u") >= {"x"}
    assert "x" in of('CREATE TABLE "t" (x INT AS (1))', modes=STRICT | {"ANSI_QUOTES"})
    assert of('CREATE TABLE "t" (x INT AS (1))') == frozenset()
    # What is a name and where a text ends depends on the modes of the statement.
    text = """CREATE TABLE t (a CHAR(9) DEFAULT '\\', "g" INT AS (1), b CHAR(9) DEFAULT ', h INT AS (1)')"""
    assert "g" in of(text, modes=STRICT | {"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"})
    assert "g" not in of(text, modes=STRICT | {"ANSI_QUOTES"})
    assert "x" in of("""CREATE TABLE t (a CHAR(9) DEFAULT "b, c'", x INT AS (1))""")


def test_without_the_statement_that_created_a_table_its_computed_columns_are_not_known() -> None:
    def known(*acts: Act) -> bool:
        return generated_columns(History(acts, {}, (), False), {"T"}) is not None

    created, like = (
        Act(1, 0, "CreateTable", "flv://l/d/t"),
        Act(3, 0, "CreateTable", "flv://l/d/t", None, "flv://l/d/u"),
    )
    assert not known()
    assert not known(Act(1, 0, "CreateTable", "flv://l/d/other"), Act(2, 0, "AlterTable", "flv://l/d/t"))
    assert known(created)
    assert not known(like)
    assert known(Act(1, 0, "CreateTable", "flv://l/d/u"), like)
