"""Which foreign keys some servers ignore, and where a clause in the definition of a column ends."""

import pytest

from cdc.sql.create_table import column_references, follows_the_engine

WITHOUT = {
    "CREATE TABLE c (p INT REFERENCES p (id), q INT)": "CREATE TABLE c (p INT , q INT)",
    "create table if not exists c (p int not null references `d``b`.`p` (`a`, `b`))": (
        "create table if not exists c (p int not null )"
    ),
    "CREATE TABLE c (p INT REFERENCES p)": "CREATE TABLE c (p INT )",
    "CREATE TABLE c (p INT CHECK (p IN (1, 2)) REFERENCES p (id) MATCH FULL ON DELETE CASCADE ON UPDATE SET NULL, "
    "q INT, CONSTRAINT x FOREIGN KEY k (q) REFERENCES p (id), r INT REFERENCES p (id) ON UPDATE NO ACTION)": (
        "CREATE TABLE c (p INT CHECK (p IN (1, 2)) , q INT, "
        "CONSTRAINT x FOREIGN KEY k (q) REFERENCES p (id), r INT )"
    ),
    "ALTER TABLE c DROP FOREIGN KEY x, ADD COLUMN p INT REFERENCES p (id) ON DELETE RESTRICT AFTER id, "
    "ADD FOREIGN KEY (p) REFERENCES p (id), ADD (r INT, s INT REFERENCES p (id))": (
        "ALTER TABLE c DROP FOREIGN KEY x, ADD COLUMN p INT  AFTER id, "
        "ADD FOREIGN KEY (p) REFERENCES p (id), ADD (r INT, s INT )"
    ),
    "CREATE TABLE c (p INT COMMENT 'REFERENCES p (id)', `references` INT)": (
        "CREATE TABLE c (p INT COMMENT 'REFERENCES p (id)', `references` INT)"
    ),
    "CREATE PROCEDURE r() CREATE TABLE c (p INT REFERENCES p (id))": (
        "CREATE PROCEDURE r() CREATE TABLE c (p INT REFERENCES p (id))"
    ),
    "CREATE TABLE c (p INT /* REFERENCES p (id) */)": "CREATE TABLE c (p INT /* REFERENCES p (id) */)",
}  # fmt: skip


@pytest.mark.parametrize("text", WITHOUT)
def test_what_is_left_without_them(text: str) -> None:
    left = text
    for start, end in reversed(column_references(text, ansi_quotes=False)):
        left = left[:start] + left[end:]
    assert left == WITHOUT[text]


@pytest.mark.parametrize("text", ["CREATE TABLE c (p INT REFERENCES", "CREATE TABLE c (p INT REFERENCES p (id"])
def test_a_statement_without_an_end_has_a_clause_to_its_end(text: str) -> None:
    assert column_references(text, ansi_quotes=False) == [(text.index("REFERENCES"), len(text))]


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id)) COMMENT 'ENGINE = InnoDB'", True),
        ("ALTER TABLE c ADD engine INT REFERENCES p (id)", True),
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id)) ENGINE InnoDB", False),
        ("ALTER TABLE c ENGINE = MyISAM, ADD FOREIGN KEY (p) REFERENCES p (id)", False),
        ("CREATE TABLE IF NOT EXISTS c (p INT REFERENCES p (id))", False),
        ("CREATE TABLE c (p INT COMMENT 'REFERENCES')", False),
        ("CREATE VIEW v AS SELECT `REFERENCES` FROM t", False),
    ],
)
def test_whether_a_table_has_foreign_keys_depends_on_an_engine_that_is_not_named(text: str, follows: bool) -> None:
    assert follows_the_engine(text, ansi_quotes=False) is follows
