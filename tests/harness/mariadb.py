"""A MariaDB leader with a MySQL follower, and what both hold, cell by cell."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdc.producer.flavor.mariadb_statements import OWN_TYPES
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.exact import cell
from tests.harness.pair import Pair
from tests.harness.programs import own_name

__all__ = ["TYPES", "VALUES", "logged_gtids", "maria_pair", "on", "rows", "types_of"]

TYPES = """CREATE TABLE types (
    id INT PRIMARY KEY, i8 TINYINT, u8 TINYINT UNSIGNED, i16 SMALLINT, u24 MEDIUMINT UNSIGNED, i24 MEDIUMINT,
    u32 INT UNSIGNED, i64 BIGINT, u64 BIGINT UNSIGNED, b1 BOOL, z INT(8) ZEROFILL, de DECIMAL(30,10),
    du DECIMAL(5,2) UNSIGNED, f FLOAT, d DOUBLE, bits BIT(13), y YEAR, dd DATE, t TIME, t3 TIME(3), dt DATETIME,
    dt6 DATETIME(6), ts TIMESTAMP NULL, ts2 TIMESTAMP(2) NULL, c CHAR(10), c300 CHAR(100) CHARACTER SET utf8mb3,
    v VARCHAR(300), l VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci,
    g GEOMETRY, tt TINYTEXT, tx TEXT, mt MEDIUMTEXT CHARACTER SET cp1251, lt LONGTEXT, bi BINARY(16), vb VARBINARY(20),
    tb TINYBLOB, bb BLOB, lb LONGBLOB, e ENUM('x', 'ÿ'), s SET('p', 'q', 'r'), j JSON, w INT INVISIBLE DEFAULT 5,
    vi INT AS (i8 + 1) VIRTUAL, st INT AS (i8 * 2) STORED, at VARCHAR(10) COLLATE utf8mb4_bin,
    uu UUID, old UUID NOT NULL DEFAULT '00112233-4455-1677-8899-aabbccddeeff', i4 INET4, i6 INET6,
    cv VARCHAR(300) COMPRESSED, cx VARCHAR(254) COMPRESSED CHARACTER SET latin1, ct TEXT COMPRESSED=zlib,
    cl LONGTEXT COMPRESSED CHARACTER SET cp1251, cb BLOB COMPRESSED, cy VARBINARY(200) COMPRESSED
)"""
VALUES = """INSERT INTO types (
    id, i8, u8, i16, u24, i24, u32, i64, u64, b1, z, de, du, f, d, bits, y, dd, t, t3, dt, dt6, ts, ts2,
    c, c300, v, l, g, tt, tx, mt, lt, bi, vb, tb, bb, lb, e, s, j, at,
    uu, i4, i6, cv, cx, ct, cl, cb, cy
) VALUES
(1, -64, 255, -32768, 16777215, -8388608, 4294967295, -9223372036854775808, 18446744073709551615, TRUE, 42,
 -99999999999999999999.9999999999, 999.99, -1.5, 1.7976931348623157e308, b'1010101010101', 1901, '9999-12-31',
 '-838:59:59',
 '12:34:56.789', '2026-02-28 23:59:59', '1000-01-01 00:00:00.000001', '2038-01-19 03:14:07', '1970-01-01 12:00:01.25',
 'ä  ', 'ю', REPEAT('ü', 300), 'ß', POINT(1, 2), 't', 'x\\ny', 'ж', REPEAT('l', 70000), 'sixteen bytes', x'00ff00',
 x'01', x'ff',
 REPEAT('b', 70000), 'ÿ', 'p,r', '{"b": 1,   "a": [1, 2.50]}', 'a',
 '01890A5D-AC96-774B-BCCE-B302099A8057', '127.0.0.0', '::ffff:1.2.3.4', REPEAT('ж', 300), REPEAT('ß', 254),
 REPEAT('ab', 9000), REPEAT('ю', 99), REPEAT(x'00ff', 200), REPEAT(x'01', 200)),
(2, 0, 0, 0, 0, 0, 0, 0, 0, FALSE, 0, 0, 0, 0, 0, 0, 0, '0000-00-00', 0, 0, '0000-00-00', '2020-00-00', 0, 0,
 '', '', '', '', NULL, '', '', '', '', '', '', '', '', '', 'x', '', '[]', '',
 '00000000-0000-0000-0000-000000000000', '0.0.0.0', '::', '', '', '', '', '', '')"""


def types_of(server: MySql) -> str:
    """The statement ``TYPES`` for the server: MariaDB 11.8 does not log generated columns with each row."""
    with on(server) as cursor:
        cursor.execute("SELECT VERSION()")
        is_old = cursor.fetchone()[0].startswith("10.")
    return TYPES if is_old else re.sub(r" AS \(.*?\) (VIRTUAL|STORED)", "", TYPES)


def maria_pair(folder: Path, leader: MySql, follower: MySql, kafka: Kafka, **tables: Any) -> Pair:
    """A pair whose leader begins a new binlog with the database ``maria``; ``tables`` are those of ``Pair.make``."""
    with on(leader) as cursor:
        cursor.execute("DROP DATABASE IF EXISTS maria")
        cursor.execute("RESET MASTER")
        cursor.execute("CREATE DATABASE maria")
    return Pair.make(folder, leader, follower, kafka, name=own_name(folder), **tables)


@contextmanager
def on(server: MySql, database: str | None = None) -> Iterator[Any]:
    with server.root(charset="utf8mb4", database=database) as connection, connection.cursor() as cursor:
        yield cursor


def rows(server: MySql, database: str = "maria") -> dict[str, list[Any]]:
    """All rows of the database's tables, each cell as the server shows it exactly."""
    found: dict[str, list[Any]] = {}
    with on(server) as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = ''")
        cursor.execute(
            "SELECT table_name, column_name, data_type, column_type, character_set_name "
            "FROM information_schema.columns WHERE table_schema = %s ORDER BY table_name, ordinal_position",
            (database,),
        )
        tables: dict[str, list[str]] = {}
        for table, column, kind, full, charset in cursor.fetchall():
            charset = "ascii" if kind in OWN_TYPES else charset
            # UNIX_TIMESTAMP of a zero date is NULL in MariaDB.
            shown = cell(column, "datetime" if kind == "timestamp" else kind, full, charset)
            tables.setdefault(table, []).append(shown)
        for table, cells in tables.items():
            cursor.execute(f"SELECT {', '.join(cells)} FROM `{database}`.`{table.replace('`', '``')}`")
            found[table] = sorted(cursor.fetchall(), key=repr)
    return found


def logged_gtids(server: MySql) -> list[str]:
    """The GTIDs in the server's binlog, in order."""
    found = []
    with on(server) as cursor:
        cursor.execute("SHOW BINARY LOGS")
        for file, _ in cursor.fetchall():
            cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
            found += [row[5] for row in cursor.fetchall() if row[2] == "Gtid"]
    return [re.findall(r"GTID (\d+-\d+-\d+)", info)[0] for info in found]
