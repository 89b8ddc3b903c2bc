"""Which columns an ALTER TABLE renames."""

import pytest

from cdc.sql.effects import renamed_columns


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
