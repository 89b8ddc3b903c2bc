"""Columns that are cut out of the statements that define a table."""

import pytest

from cdc.sql.without_columns import without_columns

MODES = {"ansi_quotes": False, "backslash_escapes": True}


def without(text: str) -> str | None:
    rewritten = without_columns(text, lambda name: name.lower() in ("mail", "card"), **MODES)
    return None if rewritten is None else " ".join(rewritten.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (id INT, mail TEXT, b INT)", "CREATE TABLE t (id INT, b INT)"),
        ("CREATE TABLE t (mail TEXT, `Card` INT, id INT)", "CREATE TABLE t ( id INT)"),
        (
            "CREATE TABLE t (id INT, b INT, mail SET('a,(','b') COMMENT 'x, )') ENGINE=InnoDB",
            "CREATE TABLE t (id INT, b INT) ENGINE=InnoDB",
        ),
        ("CREATE TABLE t (id INT, mail INT, KEY (mail), KEY k (id, mail DESC), FULLTEXT KEY (card, mail))",
         "CREATE TABLE t (id INT, KEY k (id))"),
        (
            "CREATE TABLE `mail`.`card` (`id` int, `mail` int /*!80023 INVISIBLE */, KEY `k` (`mail`(3),`id`)) E",
            "CREATE TABLE `mail`.`card` (`id` int, KEY `k` (`id`)) E",
        ),
        (
            "CREATE TABLE t (\n  `id` int,\n  `mail` int) /*!50100 PARTITION BY HASH (`id`) */",
            "CREATE TABLE t ( `id` int) /*!50100 PARTITION BY HASH (`id`) */",
        ),
        ("ALTER TABLE t ADD mail INT, ADD b INT", "ALTER TABLE t ADD b INT"),
        (
            "ALTER TABLE t ADD b INT AFTER mail, DROP COLUMN card, ALGORITHM=INSTANT",
            "ALTER TABLE t ADD b INT , ALGORITHM=INSTANT",
        ),
        ("ALTER TABLE t ADD (mail INT, b INT, KEY (mail)), ADD INDEX (card)", "ALTER TABLE t ADD ( b INT)"),
        ("ALTER TABLE t ADD COLUMN (mail INT), CHANGE mail card TEXT, RENAME COLUMN card TO mail", None),
        ("ALTER TABLE t MODIFY mail TEXT, ALTER card SET DEFAULT 'a', ALGORITHM=INPLACE, LOCK=NONE", None),
        ("ALTER TABLE t DROP mail, RENAME TO u", "ALTER TABLE t RENAME TO u"),
        ("CREATE INDEX k ON t (mail, id)", "CREATE INDEX k ON t ( id)"),
        ("CREATE FULLTEXT INDEX k ON t (mail)", None),
        ("CREATE INDEX mail ON t (mail, id)", None),
        ("CREATE INDEX card_2 ON t (id, mail, card)", None),
        ("CREATE TABLE t (mail INT, id INT, KEY (mail, id), KEY (id, mail))", "CREATE TABLE t ( id INT, KEY (id))"),
        ("CREATE TABLE t (mail INT, id INT, KEY `mail` (`mail`, id))", "CREATE TABLE t ( id INT)"),
        ("CREATE TABLE t (mail INT, id INT, FULLTEXT INDEX mail_2 (id, mail))", "CREATE TABLE t ( id INT)"),
        ("CREATE TABLE t (mail INT, id INT, KEY USING BTREE (mail, id))", "CREATE TABLE t ( id INT)"),
        ("ALTER TABLE t ADD INDEX (mail, id), ADD UNIQUE (id)", "ALTER TABLE t ADD UNIQUE (id)"),
        ("CREATE TABLE t (id INT COMMENT 'mail')", "CREATE TABLE t (id INT COMMENT 'mail')"),
        ("ALTER TABLE mail ADD b INT", "ALTER TABLE mail ADD b INT"),
    ],
)  # fmt: skip
def test_the_columns_are_cut_out(text: str, expected: str | None) -> None:
    assert without(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (mail INT)",
        "CREATE TABLE t (id INT, mail INT, UNIQUE (mail))",
        "CREATE TABLE t (id INT, mail INT, b INT AS (mail + 1))",
        "CREATE TABLE t (id INT, mail INT, KEY ((LOWER(mail))))",
        "CREATE TABLE t (id INT, mail INT, CONSTRAINT c CHECK (mail > 1))",
        "CREATE TABLE t (id INT, mail INT) PARTITION BY HASH (mail)",
        "CREATE TABLE t (id INT /*!80000 , mail INT */)",
        "CREATE UNIQUE INDEX k ON t (mail, id)",
        "CREATE INDEX mail ON t (id)",
        "ALTER TABLE t ADD INDEX mail (id)",
        "ALTER TABLE t DROP INDEX mail",
        "ALTER TABLE t RENAME COLUMN mail TO b",
        "ALTER TABLE t CHANGE b mail INT",
        "ALTER TABLE t ADD UNIQUE (mail)",
        "ALTER TABLE t ORDER BY mail",
        "ALTER TABLE t DROP mail PARTITION BY HASH (id)",
        "ALTER TABLE t MODIFY b INT AS (mail)",
        "CREATE VIEW v AS SELECT mail FROM t",
    ],
)
def test_a_column_that_can_not_be_cut_out_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        without(text)
