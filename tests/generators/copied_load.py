"""A load on tables that are copied: keys that move to and fro, cascades, statements that replace tables by others."""

import random
from typing import Any

import pymysql

from cdc.sandbox.server.mysql import MySql
from tests.generators.load import Load

__all__ = ["DAMAGES", "CopiedLoad"]

_TABLES = (
    "CREATE TABLE keyed (id INT PRIMARY KEY, n INT, pad VARCHAR(60) DEFAULT 'pad', UNIQUE (n))",
    (
        "CREATE TABLE named (name VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, part DECIMAL(6,2), d JSON, f FLOAT, "
        "PRIMARY KEY (name, part))"
    ),
    "CREATE TABLE bare (n INT, f FLOAT)",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    (
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, "
        "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    ),
)
_STATEMENTS = (
    "ALTER TABLE keyed ADD COLUMN more INT DEFAULT 7", "ALTER TABLE keyed DROP COLUMN more",
    "ALTER TABLE named MODIFY d JSON, ALGORITHM=COPY", "ALTER TABLE named ADD INDEX (f)",
    "ALTER TABLE bare ADD COLUMN more INT", "ALTER TABLE bare DROP COLUMN more",
    "RENAME TABLE keyed TO away", "RENAME TABLE away TO keyed",
    "RENAME TABLE bare TO bare_away", "RENAME TABLE bare_away TO bare",
    "RENAME TABLE keyed TO swap, away TO keyed, swap TO away",
    "CREATE TABLE away LIKE keyed", "CREATE TABLE made SELECT id, n FROM keyed LIMIT 50", "DROP TABLE made",
    "CREATE TABLE keyed (id INT PRIMARY KEY, n INT, pad VARCHAR(60) DEFAULT 'new', UNIQUE (n))",
    "TRUNCATE TABLE bare", "TRUNCATE TABLE named", "DROP TABLE away", "TRUNCATE TABLE away",
)  # fmt: skip
# Damage to a follower: rows that are wrong, missing and extra.
DAMAGES = (
    "DELETE FROM keyed WHERE id % 5 = 0", "UPDATE keyed SET pad = 'wrong' WHERE id % 7 = 0",
    "UPDATE keyed SET n = -id WHERE id % 11 = 0",
    "INSERT IGNORE INTO keyed (id, n) SELECT id + 70000, -9 - id FROM keyed",
    "DELETE FROM named WHERE part < 3", "UPDATE named SET f = -1 WHERE part > 5",
    "UPDATE IGNORE named SET name = 'moved' WHERE part > 9", "DELETE FROM child WHERE id % 3 = 0",
    "DELETE FROM bare LIMIT 20", "INSERT INTO bare (n) VALUES (-1), (-1)",
)  # fmt: skip
# Errors of a statement that needs an object which does not exist just now, or exists already: tables, columns, keys,
# rows' parents.
_NOT_NOW = frozenset({1050, 1051, 1060, 1061, 1062, 1091, 1146, 1452, 1213, 1054})


class CopiedLoad(Load):
    """``rows`` is the approximate number of rows in each table."""

    def __init__(self, leader: MySql, *, database: str, seed: str, rows: int) -> None:
        super().__init__(leader, seed=seed, database=database)
        self.rows = rows

    def fill(self) -> None:
        """Creates the tables, with their rows."""
        numbers = f"WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < {self.rows}) SELECT"
        with self._leader.connect() as connection, connection.cursor() as cursor:
            for statement in (
                f"CREATE DATABASE {self.database}", f"USE {self.database}", *_TABLES,
                f"INSERT INTO keyed (id, n) {numbers} i * 3, i FROM n",
                f"INSERT INTO named {numbers} CONCAT('É', i % 50), i / 50, JSON_OBJECT('d', i / 3), i / 7 FROM n",
                f"INSERT INTO bare {numbers} i % 40, i / 9 FROM n",
                f"INSERT INTO parent {numbers} i FROM n", f"INSERT INTO child {numbers} i, i FROM n",
            ):  # fmt: skip
                cursor.execute(statement)

    def _work(self, cursor: Any) -> None:
        while not self._stop.is_set():
            many = self._random.random() < 0.3
            statements = ["BEGIN", *[self._change() for _ in range(5)], "COMMIT"] if many else [self._change()]
            if self._random.random() < 0.015:
                statements = [self._random.choice(_STATEMENTS)]
            for statement in statements:
                try:
                    cursor.execute(statement)
                except pymysql.MySQLError as error:
                    if error.args[0] not in _NOT_NOW:
                        raise
            self.transactions += 1
            self._stop.wait(self._random.choice([0.001, 0.005, 0.02]))

    def _change(self) -> str:
        chance: random.Random = self._random
        key, other, small = (chance.randrange(self.rows * 3) for _ in range(3))
        small %= self.rows
        return chance.choice((
            f"REPLACE INTO keyed (id, n) VALUES ({key}, {other})",
            f"UPDATE IGNORE keyed SET id = id + 100000, pad = 'far' WHERE id BETWEEN {key} AND {key + 5}",
            f"UPDATE IGNORE keyed SET id = id - 100000, pad = 'back' WHERE id > {key + 100000} LIMIT 300",
            f"UPDATE IGNORE keyed SET id = {other} WHERE id = {key}",
            f"DELETE FROM keyed WHERE id BETWEEN {key} AND {key + 6}",
            f"INSERT IGNORE INTO named VALUES ('e{small % 60}', {small / 50}, JSON_ARRAY({small}), {small / 7})",
            f"UPDATE IGNORE named SET name = 'É{other % 60}' WHERE name = 'e{small % 60}' AND part < {small / 100}",
            f"DELETE FROM named WHERE part = {small / 50}",
            f"INSERT INTO bare (n, f) VALUES ({small % 40}, {small / 9})",
            f"UPDATE bare SET f = f / 3 WHERE n = {small % 40} LIMIT 3",
            f"DELETE FROM bare WHERE n = {small % 40} LIMIT 2",
            f"INSERT IGNORE INTO parent VALUES ({small})", f"INSERT IGNORE INTO child VALUES ({key}, {small})",
            f"DELETE FROM parent WHERE id = {small}", f"UPDATE IGNORE parent SET id = {key} WHERE id = {small}",
        ))  # fmt: skip
