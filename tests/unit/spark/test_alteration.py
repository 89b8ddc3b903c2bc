"""What ALTER TABLE does to rows of which nothing is logged: said where it is certain, a doubt where it is not."""

import pytest

from cdc.spark.frames.alteration import Alteration, Origin, altered
from cdc.spark.frames.told import History, Statement, generated_columns

TEXT = "character set utf8mb4"
BEFORE = (
    ("id", "int"), ("n", "smallint"), ("t", f"varchar(10) {TEXT}"), ("e", f"enum('a','b') {TEXT}"),
    ("d", "decimal(10,2)"), ("f", "float"),
)  # fmt: skip
STRICT = frozenset({"STRICT_TRANS_TABLES"})


def of_whole(clauses: str, *, mode: frozenset[str] = STRICT, charset: str = "utf8mb4") -> Alteration:
    statement = Statement(f"ALTER TABLE t {clauses}", mode, charset, explicit_timestamps=True)
    return altered(BEFORE, statement, sequence=7, after=None)


def of(clauses: str, *, mode: frozenset[str] = STRICT, charset: str = "utf8mb4") -> dict[str, Origin]:
    """The origins of the columns that the statement leaves, in order; none where it is not understood."""
    step = of_whole(clauses, mode=mode, charset=charset)
    return {} if step.doubt else {name: step.origins[name] for name, _ in step.columns or ()}


@pytest.mark.parametrize(
    ("clauses", "column", "origin"),
    [
        ("ADD c INT", "c", Origin(value="Null")),
        ("ADD c INT UNIQUE", "c", Origin(value="Null")),
        ("MODIFY n INT NOT NULL UNIQUE", "n", Origin("n", null_doubt="it became NOT NULL")),
        ("ADD c INT NOT NULL", "c", Origin(value='{"SignedInteger":0}')),
        ("ADD COLUMN (c INT DEFAULT -3, x INT)", "c", Origin(value='{"SignedInteger":-3}')),
        ("ADD c BIGINT UNSIGNED DEFAULT 18446744073709551615", "c",
         Origin(value='{"UnsignedInteger":18446744073709551615}')),
        ("ADD c DECIMAL(5,2) DEFAULT 1.5", "c", Origin(value='{"Decimal":"1.50"}')),
        ("ADD c CHAR(3) DEFAULT 'a '", "c", Origin(value='{"String":"a"}')),
        ("ADD c ENUM('x','y') NOT NULL", "c", Origin(value='{"Enum":"x"}')),
        ("ADD c BIT(3) NOT NULL DEFAULT b'101'", "c", Origin(value='{"Bit":5}')),
        ("ADD c DOUBLE DEFAULT -.5", "c", Origin(value='{"Double":-0.5}')),
        ("ADD c BIT DEFAULT 1", "c", Origin(value='{"Bit":1}')),
        ("ADD c DATE DEFAULT '2026-01-02'", "c", Origin(value='{"Date":{"year":2026,"month":1,"day":2}}')),
        ("RENAME COLUMN n TO c", "c", Origin("n")),
        ("CHANGE n c BIGINT FIRST", "c", Origin("n")),
        ("MODIFY t TEXT", "t", Origin("t")),
        ("MODIFY e ENUM('a','b','c')", "e", Origin("e")),
        ("MODIFY d DECIMAL(12,2)", "d", Origin("d")),
        ("MODIFY n INT NOT NULL", "n", Origin("n", null_doubt="it became NOT NULL")),
    ],
)  # fmt: skip
def test_what_is_certain(clauses: str, column: str, origin: Origin) -> None:
    assert of(clauses)[column] == origin


@pytest.mark.parametrize(
    ("clauses", "column"),
    [
        ("ADD c INT DEFAULT (1 + 1)", "c"), ("ADD c DATETIME DEFAULT NOW()", "c"), ("ADD c INT AUTO_INCREMENT", "c"),
        ("ADD c INT AS (n + 1) STORED", "c"), ("ADD c VARCHAR(9) DEFAULT 'é'", "c"),
        ("ADD c DECIMAL(5,1) DEFAULT 1.25", "c"), ("ADD c INT DEFAULT x'10'", "c"), ("ADD c BIT DEFAULT b'11'", "c"),
        ("ADD c DOUBLE DEFAULT 1.5e-5 NOT NULL", "c"),
        ("ADD c VARCHAR(9) DEFAULT 'a' 'b' COMMENT 'x'", "c"), ("ADD c VARCHAR(9) DEFAULT _latin1 'a' NOT NULL", "c"),
        ("MODIFY n TINYINT", "n"), ("MODIFY n SMALLINT UNSIGNED", "n"), ("MODIFY t VARCHAR(9)", "t"),
        ("MODIFY t VARBINARY(99)", "t"), ("MODIFY e ENUM('b','a')", "e"), ("MODIFY d DECIMAL(12,3)", "d"),
        ("MODIFY f DOUBLE", "f"), ("MODIFY n VARCHAR(20)", "n"), ("CONVERT TO CHARACTER SET latin1", "t"),
        ("MODIFY t VARCHAR(20) CHARACTER SET latin1", "t"), ("MODIFY e ENUM('a','b','B')", "e"),
    ],
)  # fmt: skip
def test_what_is_in_doubt(clauses: str, column: str) -> None:
    assert of(clauses)[column].doubt


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


def test_columns_are_in_the_order_that_the_statement_gives_them() -> None:
    found = of("DROP n, ADD a INT FIRST, ADD b INT AFTER id, MODIFY f FLOAT AFTER t")
    assert list(found) == ["a", "id", "b", "t", "f", "e", "d"]


@pytest.mark.parametrize(
    "clauses",
    [
        "DISCARD TABLESPACE",
        "DROP nowhere",
        "ENGINE = BLACKHOLE",
    ],
)
def test_rows_are_in_doubt_after_what_is_not_understood(clauses: str) -> None:
    assert of(clauses) == {}


@pytest.mark.parametrize(
    "clauses", ["DROP PARTITION p0, p1", "TRUNCATE PARTITION p0, p1", "EXCHANGE PARTITION p WITH TABLE x"]
)
def test_which_rows_are_left_is_in_doubt_but_no_column(clauses: str) -> None:
    found = of_whole(clauses)
    assert found.doubt and found.columns == BEFORE


def test_partitions_that_are_reorganized_keep_their_rows() -> None:
    found = of_whole(
        "REORGANIZE PARTITION p0, p1 INTO (PARTITION q VALUES LESS THAN (9), PARTITION r VALUES LESS THAN (MAXVALUE))"
    )
    assert (found.doubt, found.columns) == ("", BEFORE)


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


def test_which_columns_a_server_computes() -> None:
    def of(*texts: str) -> frozenset[str]:
        made = {at: Statement(text, STRICT, "utf8mb4", explicit_timestamps=True) for at, text in enumerate(texts)}
        return generated_columns(History((), made, (), False), {"T"})

    create = "CREATE TABLE d.t (id INT, `x,(` INT GENERATED ALWAYS AS (id + (1)) STORED, CHECK (id < 3), y INT)"
    assert "x,(" in of(create) and of(create).isdisjoint({"id", "y"})
    assert "z" in of(create, "ALTER TABLE t RENAME COLUMN `x,(` TO Z")
    assert of("CREATE TABLE u (id INT, x INT AS (id))", "ALTER TABLE t ADD q INT") == frozenset()
    assert {"v", "w"} <= of("ALTER TABLE t MODIFY id INT, ADD COLUMN v INT AS (id), CHANGE v w INT AS (id)")
    assert of("CREATE TABLE t LIKE u", "ALTER TABLE u ADD x INT AS (1)") == frozenset()
    assert of("CREATE TABLE u (x INT AS (1))", "CREATE TABLE t LIKE u") >= {"x"}
