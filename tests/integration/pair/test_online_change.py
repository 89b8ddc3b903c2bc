"""Online schema changes replicate as what they are: a ghost table that is filled and swapped while others write."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import begin_now, run_well, running, write_profile
from tests.harness.wait import until

pytestmark = pytest.mark.integration

ROWS = 300
CREATE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, name VARCHAR(20))"

# pt-online-schema-change: triggers keep the new table up while it is filled.
PT_BEGIN = """\
CREATE TABLE `DB`.`_t_new` (
  `id` int NOT NULL AUTO_INCREMENT,
  `n` int NOT NULL,
  `name` varchar(20) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci;
ALTER TABLE `DB`.`_t_new` ADD COLUMN added INT NOT NULL DEFAULT 7, MODIFY name VARCHAR(40);
CREATE TRIGGER `pt_osc_d_t_del` AFTER DELETE ON `DB`.`t` FOR EACH ROW \
BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; \
DELETE IGNORE FROM `DB`.`_t_new` WHERE `DB`.`_t_new`.`id` <=> OLD.`id`; END;
CREATE TRIGGER `pt_osc_d_t_upd` AFTER UPDATE ON `DB`.`t` FOR EACH ROW \
BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; \
DELETE IGNORE FROM `DB`.`_t_new` WHERE !(OLD.`id` <=> NEW.`id`) AND `DB`.`_t_new`.`id` <=> OLD.`id`; \
REPLACE INTO `DB`.`_t_new` (`id`, `n`, `name`) VALUES (NEW.`id`, NEW.`n`, NEW.`name`); END;
CREATE TRIGGER `pt_osc_d_t_ins` AFTER INSERT ON `DB`.`t` FOR EACH ROW \
BEGIN DECLARE CONTINUE HANDLER FOR 1146 begin end; \
REPLACE INTO `DB`.`_t_new` (`id`, `n`, `name`) VALUES (NEW.`id`, NEW.`n`, NEW.`name`); END"""
PT_COPY = """\
INSERT LOW_PRIORITY IGNORE INTO `DB`.`_t_new` (`id`, `n`, `name`) SELECT `id`, `n`, `name` FROM `DB`.`t`
    FORCE INDEX(`PRIMARY`) WHERE ((`id` >= {})) AND ((`id` <= {})) LOCK IN SHARE MODE
    /*pt-online-schema-change 4711 copy nibble*/"""
PT_END = """\
ANALYZE TABLE `DB`.`_t_new` /* pt-online-schema-change */;
RENAME TABLE `DB`.`t` TO `DB`.`_t_old`, `DB`.`_t_new` TO `DB`.`t`;
DROP TABLE IF EXISTS `_t_old`;
DROP TRIGGER IF EXISTS `DB`.`pt_osc_d_t_del`;
DROP TRIGGER IF EXISTS `DB`.`pt_osc_d_t_upd`;
DROP TRIGGER IF EXISTS `DB`.`pt_osc_d_t_ins`"""


@contextmanager
def writing(leader: MySql, database: str) -> Iterator[None]:
    """Somebody writes to the table all the time, whatever its columns are."""
    end = threading.Event()

    def work() -> None:
        with leader.connect(database=database) as connection, connection.cursor() as cursor:
            number = 0
            while not end.is_set():
                number += 1
                cursor.execute(f"INSERT INTO t (n) VALUES ({number})")
                cursor.execute(f"UPDATE t SET n = n + 1000 WHERE id = {number % ROWS + 1}")
                cursor.execute(f"DELETE FROM t WHERE id = {(number * 7) % ROWS + 1}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_a_rename_swap(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = "pt_osc"
    keys = {"resource": name, "topic": name}
    filters = {"include_tables": [f"{name}.t"], "shadow_tables": ["_{table}_new", "_{table}_old"]}
    producer = write_profile(tmp_path, leader, kafka, name=name, filters=filters, producer={"start": "now"}, **keys)
    consumer = write_profile(tmp_path, follower, kafka, name=f"{name}_consumer", **keys)
    begin_now(producer, leader)
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", CREATE):
            cursor.execute(statement)
        cursor.execute("INSERT INTO t (n, name) VALUES " + ", ".join(f"({n}, 'row {n}')" for n in range(ROWS)))
        with running("cdc-producer", producer), running("cdc-consumer", consumer):
            until(lambda: columns(follower, name) == ["id", "n", "name"], what="the table is there")
            with writing(leader, name):
                change(cursor, *(step.replace("`DB`", f"`{name}`") for step in (PT_BEGIN, PT_COPY, PT_END)))
            until(lambda: "added" in columns(follower, name), what="the new table is in its place")
    run_well("cdc-producer", producer, "--until-current")
    log = run_well("cdc-consumer", consumer, "--until-current")
    assert " conflict " not in log
    found = content(follower, name)
    assert found == content(leader, name)
    assert set(found) == {"its own definition", "t"}
    assert "`added` int" in found["t"]["definition"]


def columns(server: MySql, database: str) -> list[str]:
    """Those of the table, as it is just now."""
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = 't' "
            "ORDER BY ordinal_position",
            (database,),
        )
        return [name for (name,) in cursor.fetchall()]


def change(cursor: object, begin: str, copy: str, end: str) -> None:
    for statement in begin.split(";\n"):
        cursor.execute(statement)  # type: ignore[attr-defined]
    for first in range(1, ROWS + 1, 50):
        cursor.execute(copy.format(first, first + 49))  # type: ignore[attr-defined]
    for statement in end.split(";\n"):
        cursor.execute(statement)  # type: ignore[attr-defined]
