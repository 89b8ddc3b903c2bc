"""Statements of clients in every character set, as a real server takes them."""

import json
import random
from itertools import product
from typing import Any

import pymysql
import pytest

from cdc.model.client_text import client_decode, stored_name, units
from cdc.sandbox.server.mysql import MySql
from cdc.sql.text import is_lost, statement_text
from cdc.sql.tokens import tokens

pytestmark = pytest.mark.integration

SINGLE = [
    "armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek",
    "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "tis620",
]  # fmt: skip
SEVERAL = ["big5", "cp932", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"]
HIGH = range(0x80, 0x100)


def every_unit(charset: str) -> list[bytes]:
    """What the parser takes together: all of one and two bytes, those of three, and those of four in the BMP."""
    found = [bytes([byte]) for byte in HIGH]
    if charset in SEVERAL:
        found += [bytes(each) for each in product(HIGH, range(0x40, 0x100))]
    if charset in ("ujis", "eucjpms"):
        found += [b"\x8f" + bytes(each) for each in product(range(0xA1, 0xFF), repeat=2)]
    if charset == "gb18030":
        found += [
            bytes(each) for each in product(range(0x81, 0x85), range(0x30, 0x3A), range(0x81, 0xFF), range(0x30, 0x3A))
        ]
    return [each for each in found if len(units(each, charset)) == 1]


def test_every_character_is_the_servers(leader: MySql) -> None:
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("SELECT character_set_name FROM information_schema.character_sets")
        known = {name for (name,) in cursor.fetchall()}
        never = {"ucs2", "utf16", "utf16le", "utf32"}
        assert known - never - {"swe7", "binary", "utf8mb3", "utf8mb4"} == {*SINGLE, *SEVERAL}
        for charset in SINGLE + SEVERAL:
            every = every_unit(charset)
            cursor.execute(
                f"SELECT u, CONVERT(CAST(UNHEX(u) AS CHAR CHARACTER SET {charset}) USING utf8mb4) FROM "
                "JSON_TABLE(%s, '$[*]' COLUMNS (u VARCHAR(8) PATH '$')) j",
                (json.dumps([each.hex() for each in every]),),
            )
            theirs = dict(cursor.fetchall())
            for unit in every:
                ours, their = client_decode(unit, charset), theirs[unit.hex()] or "?"
                # Lost is what the server has no letter for, and what would look like ASCII.
                assert (ours == their) if not their.isascii() else is_lost(ours), (charset, unit, ours, their)


def test_names_with_bytes_that_are_no_letters(leader: MySql) -> None:
    """What the server makes of them in utf8mb4, in which it reads a statement, but stores no name."""
    chance = random.Random(1)
    pieces = ["é".encode(), "語".encode(), "🐹".encode(), b"a", *(bytes([byte]) for byte in HIGH)]
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for _ in range(3000):
            name = b"n" + b"".join(chance.choices(pieces, weights=[20, 20, 20, 40] + [1] * 128, k=chance.randint(1, 6)))
            cursor.execute(b"SELECT 1 AS `" + name + b"`")
            assert cursor.description[0][0] == stored_name(client_decode(name, "utf8mb4"), "utf8mb4"), name


def test_what_the_parser_takes_together(leader: MySql) -> None:
    """A backslash or a backtick that is part of a character, and spaces that are no ASCII, as our parser sees them."""
    for charset in [*SINGLE, *SEVERAL, "utf8mb3", "utf8mb4", "binary", "swe7"]:
        with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
            cursor.execute(f"SET character_set_client = {charset}")
            for byte in HIGH:
                unit = bytes([byte])
                probes = [b"SELECT 1" + unit + b"AS x", b"SELECT 1 --" + unit + b")))"]
                if charset in SEVERAL:
                    probes += [b"SELECT '" + unit + b"\\'", b"SELECT 1 AS `" + unit + b"`"]
                for probe in probes:
                    assert _taken(cursor, probe) == _looks_whole(probe, charset), (charset, probe)


def _taken(cursor: Any, statement: bytes) -> bool:
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        assert error.args[0] in (1064, 1054, 1300), error
        return False
    return True


def _looks_whole(probe: bytes, charset: str) -> bool:
    """Whether our parser sees a SELECT of one value with or without a name."""
    text = statement_text(probe, charset, session_bound=False, ansi_quotes=False, backslash_escapes=True)
    seen = [token.kind for token in tokens(text.known, ansi_quotes=False, blanks=text.blanks)]
    return seen in (["word"] * 2, ["word"] * 4, ["word", "string"], ["word", "word", "word", "quoted"])
