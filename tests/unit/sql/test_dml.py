"""Which tables a change that was logged as a statement may have changed."""

import pytest

from cdc.sql.dml import changed_by
from cdc.sql.effects import ANY_DATABASE, Effect
from tests.checks.statements import in_words

QUOTING = {"ansi_quotes": False, "backslash_escapes": True}


@pytest.mark.parametrize(
    ("text", "databases", "changed"),
    [
        ("REPLACE INTO `percona`.`checksums` (db, n) SELECT 'd', COUNT(*) FROM `d`.`a` /*checksum*/", "percona d",
         "SkipTable percona.checksums"),
        ("INSERT LOW_PRIORITY IGNORE t VALUES (1, CONCAT('a', RAND()))", "cur", "SkipTable cur.t"),
        ("INSERT INTO x.t SELECT * FROM u", "x cur", "SkipTable x.t"),
        ("UPDATE x.t AS a SET c = 1 WHERE i IN (SELECT i FROM d.a)", "x d", "SkipTable x.t"),
        ("DELETE FROM x.t", "x", "SkipTable x.t"),
        ("DELETE QUICK FROM x.t a WHERE i = 1", "x", "SkipTable x.t"),
        ("LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE x.t FIELDS TERMINATED BY ','", "x", "SkipTable x.t"),
        # A database that is not in the text is a trigger's.
        ("INSERT INTO x.t VALUES (1)", "x d", "SkipTable x.t, SkipDatabase d"),
        ("INSERT INTO x.t SELECT i FROM x.u", "x cur", "SkipTable x.t, SkipDatabase cur"),
        # Here the text does not tell which table, or what else.
        ("INSERT INTO x.t VALUES (f())", "x d", "SkipDatabase x, SkipDatabase d"),
        ("INSERT INTO x.t VALUES (`COUNT`(1))", "x d", "SkipDatabase x, SkipDatabase d"),
        ("INSERT INTO x.t VALUES (d.log(1))", "x d", "SkipDatabase x, SkipDatabase d"),
        # An alias is no database.
        ("INSERT x.t SELECT d.a FROM x.s AS d", "x d", "SkipTable x.t, SkipDatabase d"),
        ("INSERT x.t SELECT b.a FROM d.s AS b", "x d", "SkipTable x.t"),
        ("UPDATE x.t JOIN d.a SET t.c = 1", "x d", "SkipDatabase x, SkipDatabase d"),
        ("UPDATE x.t, d.a SET t.c = 1", "x d", "SkipDatabase x, SkipDatabase d"),
        ("DELETE t FROM x.t JOIN d.a", "x d", "SkipDatabase x, SkipDatabase d"),
        ("DELETE FROM x.t USING x.t JOIN d.a", "x d", "SkipDatabase x, SkipDatabase d"),
        ("WITH q AS (SELECT 1) DELETE FROM x.t", "x", "SkipDatabase x"),
        ("SELECT `d`.`f`()", "d", "SkipDatabase d"),
        ("CALL p()", "d", "SkipDatabase d"),
        ("UPDATE", "d", "SkipDatabase d"),
        ("INSERT INTO x.t\udcfc VALUES (1)", "x", "SkipDatabase x"),
        # More databases than are listed, or a foreign key.
        ("INSERT INTO x.t VALUES (1)", "", "SkipDatabase *"),
    ],
)  # fmt: skip
def test_what_a_change_may_have_changed(text: str, databases: str, changed: str) -> None:
    found = changed_by(text, database="cur", databases=databases.split(), **QUOTING)
    assert ", ".join(map(in_words, found)) == changed


def test_a_name_that_the_log_leaves_empty_stands_for_any() -> None:
    assert changed_by("DELETE FROM x.t", database="", databases=[""], **QUOTING) == (ANY_DATABASE,)
    assert Effect("SkipDatabase", "*") == ANY_DATABASE
