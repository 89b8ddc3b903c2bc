"""A statement runs only where its text does what its record says, and nothing else."""

from typing import Any

import pytest

from cdc.consumer.errors import Unapplicable
from cdc.consumer.source.statement_check import check_claims
from cdc.model.position import Position
from cdc.model.record import Record, Uri

VERSION = 90704
IN = "flv://r/"


def record(query: str, *affects: tuple[str, ...], uri: str = "d", exact: bytes | None = None, **context: Any) -> Record:
    named = [
        {"action": action, "uri": IN + of, **({"to": IN + to[0]} if to else {})} for action, of, *to in affects
    ]  # fmt: skip
    return Record(
        Uri.parse(IN + uri), 7, Position("b.000001", 4), "t", 0, True, 0, "Query", query=query,
        context={"database": "d"} | context, affects=tuple(named), exact=exact,
    )  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        record("CREATE TABLE t (i INT)", ("CreateTable", "d/t")),
        record("RENAME TABLE a TO b, e.c TO e.f", ("RenameTable", "e/c", "e/f"), ("RenameTable", "d/a", "d/b")),
        record("DROP TABLE `a`, e.b", ("DropTable", "e/b"), ("DropTable", "d/a")),
        record('CREATE TABLE "a b" (i INT)', ("CreateTable", "d/a%20b"), sql_mode="ANSI_QUOTES"),
        record("CREATE TABLE ä (i INT)", ("CreateTable", "d/%C3%A4"), charset="latin1"),
        record("CREATE TABLE `a\u00a0` (i INT)", ("CreateTable", "d/a%C2%A0"), charset="latin1"),
        record("CREATE TABLE t (i INT) START TRANSACTION", ("CreateTable", "d/t")),
        record("CREATE TABLE a /*!50100 (i INT) */", ("CreateTable", "d/a"), charset="gbk"),
        record("CREATE TABLE a (i INT /*!90704 , j INT */)", ("CreateTable", "d/a")),
        record("DROP TABLE 表", ("DropTable", "d/%E8%A1%A8"), exact=b"DROP TABLE \x95\x5c", charset="sjis"),
        record("DROP TABLE a /* ? */", ("DropTable", "d/a"), exact=b"DROP TABLE a /* \xff */", charset="cp932"),
        record("DROP TABLE a\u00a0, b", ("DropTable", "d/a"), ("DropTable", "d/b"), charset="latin1"),
        record("DROP TABLE a", ("DropTable", "d/a"), charset="swe7"),
        record("CREATE TABLE a (i INT COMMENT 'as /*!99999 in */ a text')", ("CreateTable", "d/a")),
        # What the server makes of bytes that are no letters, and of letters that it has none for in names.
        record("DROP DATABASE `??`", ("DropDatabase", "%3F%3F"), uri="%3F%3F", exact=b"DROP DATABASE `\x80\x81`"),
        record("RENAME TABLE `🐹` TO b", ("RenameTable", "d/%3F", "d/b")),
        record("DROP TABLE `🐹`", ("DropTable", "d/🐹")),  # as earlier producers wrote it
    ],
)
def test_what_is_as_the_record_says(given: Record) -> None:
    check_claims(given, version=VERSION)


T = ("CreateTable", "d/t")


@pytest.mark.parametrize(
    "given",
    [
        # Of a kind that is not replicated.
        record("GRANT ALL ON *.* TO u", T),
        record("CREATE USER u", T),
        record("INSERT INTO t VALUES (1)", T),
        record("SET GLOBAL read_only = 1", T),
        record("BEGIN", T),
        record("FLUSH TABLES", T),
        record("INSTALL PLUGIN p SONAME 'p.so'", T),
        record("CREATE FUNCTION f RETURNS STRING SONAME 'f.so'", ("CreateFunction", "d/f")),
        record("CREATE TEMPORARY TABLE t (i INT)", T),
        record("; DROP TABLE t", ("DropTable", "d/t")),
        record("", T),
        record("DROP TABLE `?`", ("DropTable", "d/a"), exact=b"DROP TABLE `\x80`"),
        # Of one that a follower would not do alike.
        record("CREATE TABLE t (i INT) CONNECTION='mysql://u:p@h/d/t'", T),
        record("CREATE TABLE t (i INT) SELECT a_function_that_writes()", T),
        record("CREATE TABLE t SELECT * FROM mysql.user", T),
        # On other objects, or on more of them.
        record("DROP TABLE mysql.user", ("DropTable", "d/user")),
        record("DROP TABLE t, mysql.user", ("DropTable", "d/t")),
        record("DROP TABLE t", T),
        record("DROP TABLE t"),
        record("DROP TABLE t", ("DropTable", "d/t"), ("DropTable", "d/u")),
        record("DROP TABLE t", ("DropTable", "d/t"), database="e"),
        record("RENAME TABLE t TO mysql.t", ("RenameTable", "d/t", "d/t2")),
        record("ALTER TABLE t RENAME mysql.t", ("AlterTable", "d/t")),
        record("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE mysql.t", ("AlterTable", "d/t")),
        record("DROP TABLE t", ("DropTable", "d/t"), uri="mysql"),
        # Read by the server as another text than by us.
        record('DROP TABLE "t", `"mysql.user"`', ("DropTable", 'd/t"'), sql_mode="ansi"),
        record("DROP TABLE t", ("DropTable", "d/t"), sql_mode="ÀNSI"),
        record("DROP TABLE t", ("DropTable", "d/t"), sql_mode=4),
        record("DROP TABLE mysql\u00a0.user", ("DropTable", "mysql%C2%A0/user"), uri="mysql%C2%A0", charset="latin1"),
        record("DROP TABLE mysql\u00a0.user", ("DropTable", "mysql/user"), uri="mysql"),
        record("DROP TABLE ä", ("DropTable", "d/%C3%A4"), charset="gbk"),
        record("DROP TABLE ä", ("DropTable", "d/%C3%A4"), exact="DROP TABLE ö".encode(), charset="utf8mb4"),
        record("DROP TABLE ä", ("DropTable", "d/%C3%A4"), exact=b"DROP TABLE \xe4", charset="klingon"),
        record("DROP TABLE ?", ("DropTable", "d/%3F"), exact=b"DROP TABLE `\xff`", charset="sjis"),
        record("DROP TABLE `?`", ("DropTable", "d/%3F"), exact=b"DROP TABLE `\xff`", charset="sjis"),
        record("DROP TABLE a", ("DropTable", "d/a"), exact=b"DROP TABLE a, mysql.user", charset="sjis"),
        record("DROP TABLE `a[`", ("DropTable", "d/a%5B"), charset="swe7"),
        record("CREATE TABLE t (i INT)", T, exact=b"CREATE TABLE t (i INT, j INT)"),
        record("DROP TABLE Ω", ("DropTable", "d/%CE%A9"), charset="latin1"),
        record("/*!99999 CREATE TABLE t (i INT) -- */ DROP TABLE mysql.user", T),
        record("CREATE --\x01TABLE t (i INT) -- \nUSER u", T),
    ],
)
def test_what_is_not(given: Record) -> None:
    with pytest.raises(Unapplicable, match=r"a statement is not run: .*sequence 7.*--skip 7"):
        check_claims(given, version=VERSION)


@pytest.mark.parametrize(
    "broken",
    [{"context": {"database": 5}}, {"context": [1]}, {"affects": ({"action": "DropTable"},)}, {"affects": (1,)},
     {"affects": ({"action": "DropTable", "uri": "http://d/t"},)}, {"context": {"sql_mode": ["ANSI"]}}],
)  # fmt: skip
def test_what_cannot_be_read(broken: dict[str, Any]) -> None:
    given = record("DROP TABLE t", ("DropTable", "d/t"))
    for name, value in broken.items():
        setattr(given, name, value)
    with pytest.raises(Unapplicable, match=r"cannot be read|other objects"):
        check_claims(given, version=VERSION)


def test_another_leaders_names() -> None:
    given = record("DROP TABLE t", ("DropTable", "d/t"))
    given.affects = ({"action": "DropTable", "uri": "flv://other/d/t"},)
    with pytest.raises(Unapplicable, match="other objects"):
        check_claims(given, version=VERSION)
