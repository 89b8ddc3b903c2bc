"""Names of databases in statements: rewritten where the text proves what they are, refused where it does not."""

import pytest

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable
from cdc.consumer.source.renamed_sql import names_database, rewritten
from cdc.model.position import Position
from cdc.model.record import Record, Uri

RENAMES = Renames({"shop": "shop_copy", "a b": "b`c", "?": "beyond"})


def record(statement: str, action: str, *, sql_mode: str = "", exact: bytes | None = None, **context: str) -> Record:
    return Record(
        Uri("r", "shop"), 7, Position("binlog.000001", 4), "id", 0, True, 0, "Query", statement,
        context={"database": "shop", "sql_mode": sql_mode} | context,
        affects=({"action": action, "uri": "flv://r/shop/t"},), exact=exact,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("action", "statement", "wanted"),
    [
        ("CreateTable", "CREATE TABLE t (shop INT)", "CREATE TABLE t (shop INT)"),
        ("CreateTable", "CREATE TABLE shop (i INT)", "CREATE TABLE shop (i INT)"),
        ("CreateTable", "CREATE TABLE shop.shop (i INT)", "CREATE TABLE `shop_copy`.shop (i INT)"),
        ("CreateTable", "CREATE TABLE t LIKE `shop` . `x`", "CREATE TABLE t LIKE `shop_copy` . `x`"),
        ("CreateTable", "create table t (i int /* shop.x */ comment 'shop.x')", None),
        (
            "CreateTable",
            "CREATE TABLE shop.t (i INT, FOREIGN KEY (i) REFERENCES shop.p (i))",
            "CREATE TABLE `shop_copy`.t (i INT, FOREIGN KEY (i) REFERENCES `shop_copy`.p (i))",
        ),
        ("CreateTable", "CREATE TABLE `a b`.t (i INT)", "CREATE TABLE `b``c`.t (i INT)"),
        (
            "RenameTable",
            "RENAME TABLE shop.shop TO shop.x, other.shop TO `a b`.shop",
            "RENAME TABLE `shop_copy`.shop TO `shop_copy`.x, other.shop TO `b``c`.shop",
        ),
        ("DropTable", "DROP TABLE shop.shop, t", "DROP TABLE `shop_copy`.shop, t"),
        ("DropTable", "DROP TABLE `🐹`.t", "DROP TABLE `beyond`.t"),  # a server's names have no such letters
        ("DropView", "DROP VIEW shop.v, shop.shop", "DROP VIEW `shop_copy`.v, `shop_copy`.shop"),
        ("AlterTable", "ALTER TABLE shop.t RENAME TO shop.u", "ALTER TABLE `shop_copy`.t RENAME TO `shop_copy`.u"),
        ("AlterTable", "ALTER TABLE shop.shop ADD shop INT", "ALTER TABLE `shop_copy`.shop ADD shop INT"),
        ("CreateIndex", "CREATE INDEX shop ON shop.t (i)", "CREATE INDEX shop ON `shop_copy`.t (i)"),
        (
            "CreateView",
            "CREATE DEFINER=`shop`@`%` VIEW v AS SELECT shop.t.i, shop.f(1) FROM shop.t",
            "CREATE DEFINER=`shop`@`%` VIEW v AS SELECT `shop_copy`.t.i, `shop_copy`.f(1) FROM `shop_copy`.t",
        ),
        ("CreateDatabase", "CREATE DATABASE shop", "CREATE DATABASE `shop_copy`"),
        ("DropDatabase", "DROP DATABASE IF EXISTS `shop`", "DROP DATABASE IF EXISTS `shop_copy`"),
        ("AlterDatabase", "ALTER DATABASE CHARACTER SET latin1", None),
        (
            "CreateProcedure",
            "CREATE PROCEDURE shop.p() DELETE FROM t",
            "CREATE PROCEDURE `shop_copy`.p() DELETE FROM t",
        ),
    ],
)
def test_what_the_text_proves(action: str, statement: str, wanted: str | None) -> None:
    assert rewritten(record(statement, action), RENAMES).query == (wanted or statement)


@pytest.mark.parametrize(
    ("action", "statement"),
    [
        ("CreateView", "CREATE VIEW v AS SELECT shop.i FROM shop"),
        ("CreateView", "CREATE VIEW v AS SELECT shop.i FROM shop.shop"),
        ("CreateView", "CREATE VIEW v AS SELECT shop.i FROM t AS shop"),
        ("CreateView", "CREATE VIEW v AS SELECT 1 FROM information_schema.tables WHERE table_schema = 'shop'"),
        ("CreateTable", "CREATE TABLE shop.shop (i INT, CHECK (shop.i > 0))"),
        ("AlterTable", "ALTER TABLE shop ORDER BY shop.i"),
        ("CreateProcedure", "CREATE PROCEDURE p() BEGIN PREPARE s FROM @a; EXECUTE s; END"),
        ("CreateProcedure", "CREATE PROCEDURE p() BEGIN DECLARE shop INT; DELETE FROM shop.t; END"),
    ],
)
def test_what_it_does_not_prove_is_refused(action: str, statement: str) -> None:
    with pytest.raises(Unapplicable, match="where a statement names the database shop") as raised:
        rewritten(record(statement, action), RENAMES)
    assert "--skip 7" in str(raised.value)


def test_quotes_are_read_as_the_session_did() -> None:
    statement = 'CREATE TABLE "shop"."t" (i INT)'
    assert rewritten(record(statement, "CreateTable", sql_mode="ANSI_QUOTES"), RENAMES).query == (
        'CREATE TABLE `shop_copy`."t" (i INT)'
    )


def test_two_databases_can_change_places() -> None:
    renames = Renames({"a": "b", "b": "a"})
    assert rewritten(record("RENAME TABLE a.t TO b.t", "RenameTable"), renames).query == "RENAME TABLE `b`.t TO `a`.t"


def test_a_name_that_is_taken_is_found() -> None:
    assert names_database(record("CREATE VIEW v AS SELECT 1 FROM shop_copy.t", "CreateView"), "shop_copy")
    assert not names_database(record("CREATE TABLE shop_copy (i INT)", "CreateTable"), "shop_copy")


@pytest.mark.parametrize(
    ("charset", "text", "wanted"),
    [
        ("sjis", "RENAME TABLE 表.`表` TO shop.t /* 表 */", "RENAME TABLE `b`.`表` TO `shop_copy`.t /* 表 */"),
        ("gb18030", "RENAME TABLE 表.`表` TO shop.t /* 🐹 */", "RENAME TABLE `b`.`表` TO `shop_copy`.t /* 🐹 */"),
        ("utf8mb4", "RENAME TABLE 表.t TO shop.t", "RENAME TABLE `b`.t TO `shop_copy`.t"),
        ("koi8r", "RENAME TABLE shop.ж TO shop.t", "RENAME TABLE `shop_copy`.ж TO `shop_copy`.t"),
    ],
)
def test_the_bytes_get_the_new_names_too(charset: str, text: str, wanted: str) -> None:
    renames = Renames({"shop": "shop_copy", "表": "b"})
    codec = {"utf8mb4": "utf-8", "koi8r": "koi8-r"}.get(charset, charset)
    # After them a byte that is no letter, in a comment: it stays as it is.
    lost, shown = (b"", "") if charset == "koi8r" else (b" /* \xff */", " /* ? */")
    before = record(text + shown, "RenameTable", exact=text.encode(codec) + lost, charset=charset)
    found = rewritten(before, renames)
    assert found.query == wanted + shown
    assert found.exact == wanted.encode(codec) + lost


def test_a_new_name_that_the_character_set_does_not_have() -> None:
    with pytest.raises(Unapplicable, match=r"character set, swe7, does not have the new name `a\[b`"):
        rewritten(record("DROP TABLE shop.t", "DropTable", charset="swe7"), Renames({"shop": "a[b"}))
