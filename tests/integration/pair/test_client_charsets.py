"""Statements of clients in every character set, against real servers: what they name, and what the follower has."""

import json
import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import pymysql
import pytest

from cdc.model.client_text import client_decode, client_encode, stored_name, units
from cdc.model.record import Uri
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sql.text import is_lost, statement_text
from cdc.sql.tokens import tokens
from tests.checks.compare import content
from tests.harness.programs import records, run_well, write_profile

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


def letters(charset: str) -> str:
    """Letters for names: those of which a byte looks like a backslash or a backtick come first."""
    every = ["e"] if charset == "ascii" else []
    for unit in sorted(every_unit(charset), key=lambda each: each[-1:] not in (b"\\", b"`")):
        char = client_decode(unit, charset)
        if char.isalpha() and char <= "\uffff":
            every.append(char)
    return "".join(every)


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


MORE = """
CREATE TABLE `N q` SELECT 'L' AS `L`, `N` FROM `N`
CREATE TEMPORARY TABLE `L t` (`L` INT COMMENT 'L')
CREATE TABLE `N l` LIKE `L t`
DROP TABLE IF EXISTS `L t`
CREATE PROCEDURE `N`(`L` INT, b ENUM('L')) COMMENT 'L''\\\\\\n' NO SQL SELECT 'L', `L`
CREATE FUNCTION `N`(a INT) RETURNS ENUM('L') CHARSET utf8mb4 DETERMINISTIC COMMENT 'L' RETURN 'L'
CREATE FUNCTION `N j`(`L` INT) RETURNS INT DETERMINISTIC LANGUAGE JAVASCRIPT AS 'return "L"'
CREATE DEFINER=`L`@`L` TRIGGER `N` BEFORE INSERT ON `N` FOR EACH ROW SET @a = 'L'
CREATE DEFINER=`L`@`L` EVENT `N` ON SCHEDULE EVERY 1 DAY DISABLE COMMENT 'L' DO SELECT 'L'
ALTER TABLE `N` ADD `L L` INT DEFAULT (LENGTH('L'))
RENAME TABLE `N q` TO `N r`
CREATE TABLE `N d` (i INT)
DROP TABLE `N d`
SET sql_generate_invisible_primary_key = ON
CREATE TABLE `N g` (i INT COMMENT 'L')
SET sql_generate_invisible_primary_key = OFF, sql_mode = 'ANSI_QUOTES'
CREATE TABLE "N a" SELECT 'L' AS "L"
CREATE VIEW "N w" ("L") AS SELECT "N" FROM "N"
"""
UTF8MB4 = [
    b"CREATE TABLE `u \x80\xe9\x80` (i INT, `c\x80` INT)", b"INSERT INTO `u \x80\xe9\x80` VALUES (1, 2)",
    "CREATE TABLE `🐹 q` (i INT)".encode(), "INSERT INTO `🐹 q` VALUES (1)".encode(),
    b"ALTER TABLE `? q` RENAME `\x81 r`", b"DROP DATABASE IF EXISTS `\x8e\xc6\x8e\xce\x8e\xdd\x8e\xba\x8e\xde`",
]  # fmt: skip
# The server writes these literals in the session's character set, and the names in UTF-8.
MIXED = "CREATE TABLE `N p` (i INT DEFAULT (LENGTH('L')), CHECK (i > LENGTH('L') - 1)) SELECT 1 AS `L`"
ALL = """
CREATE TABLE `N` (`N` VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'L' COMMENT 'M', e ENUM('L', 'b')) COMMENT 'L' /* \0 */
"""


def statements(charset: str, lines: str) -> list[bytes]:
    """``lines`` with letters of the character set: N a name, L a few letters, M many; and a byte that is no letter."""
    every = letters(charset)
    few, many = every[:5], every[:: len(every) // 300 + 1]
    texts = {"N": f"{charset} {few}", "L": few, "M": many}
    found = []
    for line in lines.strip().splitlines():
        text = re.sub(r"\b([NLM])\b", lambda word: texts[word[1]], line)
        found.append(client_encode(text, charset).replace(b"\0", b"\xff"))
    return found


def test_a_follower_gets_what_clients_of_all_character_sets_make(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    name = "client_charsets"
    begun = {"producer": {"start": "now"}, "filters": {"include_dbs": [name]}}
    path = write_profile(tmp_path, leader, kafka, name=name, resource=name, **begun)
    target = write_profile(tmp_path, follower, kafka, name="target", topic=name, resource=name)
    run_well("cdc-producer", path, "--until-current")
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"USE {name}")
        for charset in ["armscii8", "ascii", "cp1251", "greek", "koi8r", "latin1", "tis620", *SEVERAL]:
            cursor.execute(f"SET NAMES {charset}")
            for statement in statements(charset, ALL):
                cursor.execute(statement)
            if charset in ("cp1251", "gb18030"):
                for statement in statements(charset, MORE + (MIXED if charset in SINGLE else "")):
                    cursor.execute(statement)
                cursor.execute("SET sql_mode = DEFAULT")
        cursor.execute("SET NAMES utf8mb4")
        for statement in UTF8MB4:
            cursor.execute(statement)
    run_well("cdc-producer", path, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    # The leader shows no collation for a column that it made from a query, and the follower does.
    here, there = (json.dumps(content(server, name), sort_keys=True) for server in (follower, leader))
    shown = re.compile(r"(?<=CHARACTER SET )(\w+) COLLATE \1_\w+")
    assert shown.sub(r"\1", here) == shown.sub(r"\1", there)
    assert sessions(follower, name) == sessions(leader, name)
    ran = [(each["action"], Uri.parse(each["uri"]).table) for record in records(path) for each in record.affects]
    for action, kind in (("CreateTable", "BASE TABLE"), ("CreateView", "VIEW"), ("CreateProcedure", "PROCEDURE")):
        named = {name for each, name in ran if each == action and not (name or "").endswith((" q", " d"))}
        assert named == names(leader, name, kind) - {each for each in names(leader, name, kind) if each.endswith(" r")}


def names(server: MySql, database: str, kind: str) -> set[str]:
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = %s UNION ALL "
            "SELECT routine_name FROM information_schema.routines WHERE routine_schema = %s AND routine_type = %s",
            (database, kind) * 2,
        )
        return {name for (name,) in cursor.fetchall()}


def sessions(server: MySql, database: str) -> list[tuple[str, ...]]:
    """What does not show in the definitions: collations, sessions of views and routines, and routines' comments."""
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, character_set_client, collation_connection, '' FROM information_schema.views "
            "WHERE table_schema = %s UNION ALL SELECT routine_name, character_set_client, collation_connection, "
            "CONCAT(routine_comment, dtd_identifier) FROM information_schema.routines WHERE routine_schema = %s "
            "UNION ALL SELECT table_name, column_name, collation_name, HEX(CONCAT_WS(' ', column_default, "
            "column_comment)) FROM information_schema.columns WHERE table_schema = %s",
            (database,) * 3,
        )
        return sorted(cursor.fetchall(), key=repr)
