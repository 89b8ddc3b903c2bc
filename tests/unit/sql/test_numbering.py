"""Which ALTERs that number rows do so in an order that both servers share."""

import pytest

from cdc.sql.ddl import Effect, classify
from cdc.sql.effects import numbered_otherwise


def effect(clauses: str) -> Effect:
    _, effects = classify(f"ALTER TABLE t {clauses}", database="d", ansi_quotes=False)
    return effects[0]


@pytest.mark.parametrize(
    "clauses",
    [
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY",
        "add column `n` bigint unsigned not null auto_increment primary key first, drop primary key, ALGORITHM=COPY",
        "DROP PRIMARY KEY, ADD COLUMN n INT AUTO_INCREMENT FIRST, ADD PRIMARY KEY (`N`), ADD UNIQUE (u, b)",
        "MODIFY u VARCHAR(9), DROP PRIMARY KEY, ADD n INT PRIMARY KEY AUTO_INCREMENT, DROP COLUMN b, COMMENT 'ORDER'",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, LOCK=SHARED, ADD KEY k (b)",
    ],
)
def test_a_primary_key_that_is_replaced_by_its_numbers(clauses: str) -> None:
    found = effect(clauses)
    assert (found.numbered, found.unfaithful) == (True, "")
    assert "an order of its own" in numbered_otherwise((found,))[0].unfaithful


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD n INT AUTO_INCREMENT PRIMARY KEY",
        "ADD n INT AUTO_INCREMENT UNIQUE",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT UNIQUE",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT UNIQUE, ADD PRIMARY KEY (b)",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT UNIQUE, ADD b INT PRIMARY KEY",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT, ADD PRIMARY KEY (n, b)",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT, ADD PRIMARY KEY (n DESC)",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT, ADD CONSTRAINT PRIMARY KEY (n)",
        "DROP PRIMARY KEY, ADD (n INT AUTO_INCREMENT PRIMARY KEY, c INT)",
        "DROP PRIMARY KEY, ADD n SERIAL, ADD PRIMARY KEY (u)",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, ORDER BY b",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, ENGINE=InnoDB",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, COMMENT 'x' ENGINE=MyISAM",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY REMOVE PARTITIONING",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY PARTITION BY HASH (n)",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, RENAME TO s",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, CONVERT TO CHARACTER SET utf8mb4",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, AUTO_INCREMENT = 7",
        "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, COMMENT 'x' AUTO_INCREMENT 7",
        "DROP INDEX `PRIMARY`, ADD n INT AUTO_INCREMENT PRIMARY KEY",
    ],
)
def test_what_may_number_otherwise_is_for_one_row_at_most(clauses: str) -> None:
    found = effect(clauses)
    assert (found.numbered, found.any_order, found.unfaithful) == (False, True, "")
    assert "an order of its own" in numbered_otherwise((found,))[0].unfaithful


@pytest.mark.parametrize("clauses", ["DROP PRIMARY KEY, ADD PRIMARY KEY (b)", "ADD n INT, DROP PRIMARY KEY", "DROP n"])
def test_what_numbers_nothing_is_as_it_was(clauses: str) -> None:
    assert effect(clauses) == Effect("AlterTable", "d", "t") == numbered_otherwise((effect(clauses),))[0]


@pytest.mark.parametrize(
    ("clauses", "filled", "dropped"),
    [
        ("MODIFY i INT AUTO_INCREMENT", "i", ()),
        ("modify column `I` serial first, drop primary key", "I", ()),
        (
            "ADD b INT, CHANGE `a``b` `index` BIGINT NOT NULL AUTO_INCREMENT AFTER b, DROP c, DROP COLUMN `d`",
            "a`b",
            ("c", "d"),
        ),
        (
            "CHANGE COLUMN a b INT UNIQUE AUTO_INCREMENT, DROP KEY k, DROP INDEX l, DROP FOREIGN KEY f, DROP CHECK c",
            "a",
            (),
        ),
        ("MODIFY a INT, MODIFY i INT SERIAL DEFAULT VALUE, DROP PARTITION p, q", "i", ()),
        ("MODIFY i INT COMMENT 'AUTO_INCREMENT' AFTER auto_increment, DROP c", "", ()),
        ("CHANGE auto_increment i INT, DROP c", "", ()),
        ("AUTO_INCREMENT = 7, MODIFY i INT, ALTER j SET DEFAULT 1", "", ()),
    ],
)
def test_a_column_whose_zeros_are_numbered(clauses: str, filled: str, dropped: tuple[str, ...]) -> None:
    assert effect(clauses) == Effect("AlterTable", "d", "t", filled=filled, dropped=dropped)


def test_what_is_dropped_beside_new_numbers() -> None:
    assert effect("DROP PRIMARY KEY, DROP id, ADD n INT AUTO_INCREMENT PRIMARY KEY").dropped == ("id",)


def test_another_doubt_stays() -> None:
    found = effect("DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY, ADD c INT DEFAULT (CONNECTION_ID())")
    assert "another answer" in found.unfaithful
