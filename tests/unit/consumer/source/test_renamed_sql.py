"""Names of databases in statements: rewritten where the text proves what they are, refused where it does not."""

import pytest

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable
from cdc.consumer.source.renaming import names_database, rewritten
from cdc.model.position import Position
from cdc.model.record import Record, Uri
from cdc.sql.statement import classify
from tests.checks.statements import Said, said_in

RENAMES = Renames({"shop": "shop_copy", "a b": "b`c", "?": "beyond"})


def record(statement: str, action: str, *, sql_mode: str = "", exact: bytes | None = None, **context: str) -> Record:
    return Record(
        Uri("r", "shop"), 7, Position("binlog.000001", 4), "id", 0, True, 0, "Query", statement,
        context={"database": "shop", "sql_mode": sql_mode} | context,
        affects=({"action": action, "uri": "flv://r/shop/t"},), exact=exact,
    )  # fmt: skip


@pytest.mark.parametrize("said", said_in("renamed.sql", "sql_mode"), ids=str)
def test_what_the_text_proves_and_what_it_does_not(said: Said) -> None:
    _, effects = classify(said.text, database="shop", ansi_quotes=bool(said.settings.get("sql_mode")))
    leaders = record(said.text, effects[0].action, sql_mode=said.settings.get("sql_mode", ""))
    if said.expected != "refused":
        assert rewritten(leaders, RENAMES).query == said.expected
        return
    with pytest.raises(Unapplicable, match="where a statement names the database shop") as raised:
        rewritten(leaders, RENAMES)
    assert "--skip 7" in str(raised.value)


def test_two_databases_can_change_places() -> None:
    renames = Renames({"a": "b", "b": "a"})
    assert rewritten(record("RENAME TABLE a.t TO b.t", "RenameTable"), renames).query == "RENAME TABLE `b`.t TO `a`.t"


def test_a_name_that_is_taken_is_found() -> None:
    assert names_database(record("CREATE VIEW v AS SELECT 1 FROM shop_copy.t", "CreateView"), "shop_copy", RENAMES)
    assert not names_database(record("CREATE TABLE shop_copy (i INT)", "CreateTable"), "shop_copy", RENAMES)


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
