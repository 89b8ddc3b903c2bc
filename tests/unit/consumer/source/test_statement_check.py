"""A statement runs only where its text does what its record says, and nothing else."""

from typing import Any

import pytest

from cdc.consumer.errors import Unapplicable
from cdc.consumer.source.statement_check import check_claims, names_in, rereads
from cdc.model.position import Position
from cdc.model.record import Record, Uri
from tests.checks.statements import Said, said_in

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


SETTINGS = ("claims", "record", "database", "sql_mode", "charset", "bytes")
REFUSED = r"a statement is not run: .*sequence 7.*--skip 7"


@pytest.mark.parametrize("said", said_in("claims.sql", *SETTINGS), ids=str)
def test_what_is_as_the_record_says_and_what_is_not(said: Said) -> None:
    settings = dict(said.settings)
    claims = (
        [] if settings["claims"] == "nothing" else [tuple(each.split()) for each in settings["claims"].split(" + ")]
    )
    written = settings.get("bytes", "").encode("ascii").decode("unicode_escape").encode("latin-1")
    context = {name: settings[name] for name in ("database", "sql_mode", "charset") if settings.get(name)}
    given = record(said.text, *claims, uri=settings.get("record", "d"), exact=written or None, **context)
    if said.expected == "runs":
        check_claims(given, version=VERSION)
        return
    with pytest.raises(Unapplicable, match=REFUSED):
        check_claims(given, version=VERSION)


@pytest.mark.parametrize(
    ("given", "runs"),
    [
        (record("CREATE TABLE `a\u00a0` (i INT)", ("CreateTable", "d/a%C2%A0"), charset="latin1"), True),
        (record("DROP TABLE a\u00a0, b", ("DropTable", "d/a"), ("DropTable", "d/b"), charset="latin1"), True),
        (record("DROP TABLE mysql\u00a0.user", ("DropTable", "mysql%C2%A0/user"), uri="mysql%C2%A0", charset="latin1"),
         False),
        (record("DROP TABLE mysql\u00a0.user", ("DropTable", "mysql/user"), uri="mysql"), False),
        (record("CREATE --\x01TABLE t (i INT) -- \nUSER u", ("CreateTable", "d/t")), False),
        (record("", ("CreateTable", "d/t")), False),
        (record("DROP TABLE t", ("DropTable", "d/t"), sql_mode=4), False),
    ],
)  # fmt: skip
def test_what_no_file_shows(given: Record, *, runs: bool) -> None:
    """Spaces that are none in every character set, marks that are not to be seen, and no text at all."""
    if runs:
        check_claims(given, version=VERSION)
        return
    with pytest.raises(Unapplicable, match=REFUSED):
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ALTER TABLE t MODIFY u BINARY(16)", True), ("alter table t change `A``b` v varbinary(16)", True),
        ("ALTER TABLE t MODIFY u\nLONGBLOB", True),
        ("ALTER TABLE t PARTITION BY RANGE COLUMNS (u) (PARTITION p)", True),
        ("ALTER TABLE t MODIFY u CHAR(36), ADD b INT", False), ("ALTER TABLE t ADD b BINARY(16)", False),
        ("CREATE TABLE modify (a BLOB)", False), ("ALTER TABLE t PARTITION BY KEY (u)", False),
    ],
)  # fmt: skip
def test_statements_that_read_a_uuid_of_mariadb_otherwise(text: str, found: bool) -> None:
    given = record(text)
    given.transaction = "0-7-3"
    effect = rereads(given)
    assert (effect is not None and (effect.database, effect.name) == ("d", "t")) is found
    given.transaction = "3e11fa47-71ca-11e1-9e33-c80aa9429562:3"
    assert rereads(given) is None


def test_the_names_in_a_statement() -> None:
    assert {"u", "a`b", "t"} <= names_in(record("ALTER TABLE t CHANGE `A`\"`b` U 'x' BLOB".replace('`"`', "``")))
    assert "x" not in names_in(record("ALTER TABLE t MODIFY u BLOB COMMENT 'x'"))
