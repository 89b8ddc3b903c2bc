"""Where a statement has both servers number rows: the follower's table decides whether the numbers are the leader's."""

from pathlib import Path

import pytest

from cdc.config.profile import load
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.statement_connection import other_numbers
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sql.statement import classify
from tests.harness.programs import own_name, write_profile

pytestmark = pytest.mark.integration

TABLES = """
CREATE TABLE bare (i INT, v VARCHAR(9))
CREATE TABLE keyed (p INT PRIMARY KEY, i INT, v VARCHAR(9))
CREATE TABLE counted (p INT AUTO_INCREMENT PRIMARY KEY, i INT, v VARCHAR(9))
CREATE TABLE none (v VARCHAR(9))
CREATE TABLE single (v VARCHAR(9))
INSERT INTO single VALUES ('1')
CREATE TABLE numbered (i INT AUTO_INCREMENT UNIQUE)
INSERT INTO numbered VALUES (7)
CREATE TABLE parted (p INT PRIMARY KEY, i INT, v VARCHAR(9)) PARTITION BY KEY () PARTITIONS 2
CREATE TABLE myisam (p INT PRIMARY KEY, i INT, v VARCHAR(9)) ENGINE = MyISAM
INSERT INTO bare VALUES (0, '1'), (5, '2')
INSERT INTO keyed VALUES (1, NULL, '1'), (2, 5, '0.4')
INSERT INTO counted VALUES (1, 0, '1'), (2, 5, '')
INSERT INTO parted SELECT * FROM keyed
INSERT INTO myisam SELECT * FROM keyed
"""
NEW_KEY = "ADD n INT AUTO_INCREMENT PRIMARY KEY, DROP PRIMARY KEY"


@pytest.mark.parametrize("same_engine", [True, False])
def test_what_is_certain(tmp_path: Path, follower: MySql, kafka: Kafka, same_engine: bool) -> None:
    name = own_name(tmp_path)
    with follower.root() as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", *TABLES.strip().splitlines()):
            cursor.execute(statement)
    engine = "" if same_engine else "of another engine"
    expected = {
        "bare MODIFY i INT AUTO_INCREMENT UNIQUE": engine or "no primary key",
        "bare CHANGE COLUMN I j SERIAL": engine or "no primary key",
        "bare MODIFY v INT AUTO_INCREMENT UNIQUE": "",  # no row has 0 there
        "keyed MODIFY i INT AUTO_INCREMENT UNIQUE": engine,
        "keyed MODIFY v INT AUTO_INCREMENT UNIQUE": engine,  # 0.4 becomes 0
        "keyed MODIFY p INT AUTO_INCREMENT": "",
        "keyed MODIFY `none` INT AUTO_INCREMENT": "",  # the server refuses it
        "parted MODIFY i INT AUTO_INCREMENT, ADD KEY (i)": engine,
        "myisam MODIFY i INT AUTO_INCREMENT, ADD KEY (i)": "of another engine",
        "counted MODIFY P BIGINT AUTO_INCREMENT": "",  # it has had numbers before
        "counted MODIFY p INT, MODIFY i INT AUTO_INCREMENT UNIQUE": "counter",
        "counted MODIFY p INT, CHANGE v i2 INT AUTO_INCREMENT UNIQUE": "counter",
        "counted DROP P, MODIFY i INT AUTO_INCREMENT UNIQUE": engine or "",
        "bare ADD n INT AUTO_INCREMENT PRIMARY KEY": "an order of its own",
        "keyed ADD n SERIAL": "an order of its own",
        "none ADD n INT AUTO_INCREMENT PRIMARY KEY": "",
        "single ADD COLUMN n INT AUTO_INCREMENT UNIQUE FIRST, RENAME TO s": "",
        "gone ADD n INT AUTO_INCREMENT PRIMARY KEY": "",  # the server refuses it
        "numbered ADD n INT AUTO_INCREMENT UNIQUE, MODIFY i INT": "counter",
        "numbered ADD n INT AUTO_INCREMENT UNIQUE, CHANGE i n2 INT": "counter",
        "numbered ADD n INT AUTO_INCREMENT UNIQUE, DROP i": "",
        f"keyed {NEW_KEY}": "",
        f"parted {NEW_KEY}": "partitions",
        f"myisam {NEW_KEY}": "of another engine",
        f"counted MODIFY p INT, {NEW_KEY}": "counter",
        f"counted DROP COLUMN p, {NEW_KEY}": "",
    }
    profile = load(write_profile(tmp_path, follower, kafka, name=name))
    with Session(profile.database) as session:
        session.connect()
        for statement, reason in expected.items():
            _, (effect, *_) = classify(f"ALTER TABLE {statement}", database=name, ansi_quotes=False)
            found = other_numbers(session, effect, same_engine=same_engine)
            assert (reason in found) if reason else not found, (statement, found)
        with follower.root(database=name) as connection, connection.cursor() as cursor:
            cursor.execute("SET lock_wait_timeout = 1")
            cursor.execute("ALTER TABLE bare ADD c INT")  # what was asked holds no lock
