"""Which columns an ALTER TABLE renames or changes."""

import pytest

from cdc.sql.effects import changed_columns, renamed_columns


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO `b c`, ADD d INT", [("a", "b c")]),
        ("ALTER TABLE d.t CHANGE a b INT, CHANGE COLUMN c A INT", [("a", "b"), ("c", "A")]),
        ("ALTER TABLE t CHANGE a A INT", []),
        ("ALTER TABLE t RENAME TO u, RENAME INDEX a TO b", []),
        ("CREATE INDEX a ON t (b)", []),
    ],
)
def test_old_and_new_names(text: str, renamed: list[tuple[str, str]]) -> None:
    assert renamed_columns(text, sql_mode="") == renamed


def test_names_in_double_quotes() -> None:
    assert renamed_columns('ALTER TABLE t RENAME COLUMN "a" TO "b"', sql_mode="ANSI_QUOTES") == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("ALTER TABLE d.t MODIFY A INT, MODIFY COLUMN `b c` INT AFTER x", {"a", "b c"}),
        ("ALTER TABLE t CHANGE a b INT, CHANGE COLUMN c C TEXT", {"a", "b", "c"}),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", {"a", "b"}),
        ("ALTER TABLE t ADD a INT, ADD COLUMN (b INT CHECK (x > 0), KEY (y), c INT)", {"a", "b", "c"}),
        ("ALTER TABLE t DROP a, DROP COLUMN b", {"a", "b"}),
        ("ALTER TABLE t ADD INDEX (a), DROP KEY a, ADD UNIQUE (a), ADD CHECK (a > 1), ALTER a SET DEFAULT 1", set()),
        ("ALTER TABLE t ADD PARTITION (PARTITION a VALUES LESS THAN (1))", set()),
        ("ALTER TABLE t DROP PARTITION a", set()),
        ("ALTER TABLE t DEFAULT CHARACTER SET latin1, ENGINE = InnoDB", set()),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", None),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", None),
        ("ALTER TABLE t MODIFY", None),
    ],
)
def test_columns_whose_values_may_change(text: str, changed: set[str] | None) -> None:
    assert changed_columns(text, sql_mode="") == changed
