"""Random views, routines, triggers, events and temporary tables around random tables. Pure, as SQL."""

from collections.abc import Mapping
from random import Random

from tests.generators.native.writes import random_write
from tests.generators.random_tables import RandomTable

__all__ = ["random_objects"]

_VIEWS, _PROCEDURES, _TRIGGERS, _EVENTS = ("w0", "w1", "вид"), ("do0", "do1"), ("tr0", "tr1", "tr2"), ("ev0", "ev1")
_EXPRESSIONS = (
    "1",
    "a.x + 1",
    "'ж''\\\\'",
    "NOW()",
    "CAST('a' AS CHAR CHARACTER SET latin1)",
    "DATABASE()",
    "'a' || 'b'",
    '"q"',
)


def random_objects(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    """Statements of one session, in order."""
    makers = [
        _view,
        _view,
        _through_view,
        _procedure,
        _procedure,
        _function,
        _trigger,
        _event,
        _temporary,
        _hiding,
        _locked,
    ]
    return chance.choice(makers)(chance, tables, number)


def _table(chance: Random, tables: Mapping[str, RandomTable]) -> RandomTable:
    return tables[chance.choice(sorted(tables))]


def _view(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    name, table = chance.choice(_VIEWS), _table(chance, tables)
    select = f"SELECT *, {chance.choice(_EXPRESSIONS)} AS `e` FROM `{table.name}`"
    if chance.random() < 0.5:
        select = f"SELECT * FROM `{table.name}` {chance.choice(['', 'WITH CHECK OPTION'])}"
    head = chance.choice(["", "ALGORITHM = MERGE ", "ALGORITHM = TEMPTABLE ", "SQL SECURITY INVOKER "])
    head += chance.choice(["", "", "DEFINER = CURRENT_USER "]) if not head else ""
    return [
        chance.choice(
            [
                f"CREATE OR REPLACE {head}VIEW `{name}` AS {select}",
                f"CREATE {head}VIEW `{name}` AS {select}",
                f"CREATE VIEW IF NOT EXISTS `{name}` AS {select}",
                f"ALTER {head}VIEW `{name}` AS {select}",
                f"DROP VIEW IF EXISTS `{name}`",
                f"RENAME TABLE `{name}` TO `{chance.choice(_VIEWS)}`",
                f"CREATE OR REPLACE VIEW `{name}` AS WITH q AS ({select}) SELECT * FROM q UNION SELECT * FROM q",
            ]
        )
    ]


def _through_view(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    name, table = chance.choice(_VIEWS), _table(chance, tables)
    statement = random_write(chance, {table.name: table}).replace(f"`{table.name}`", "`vw`")
    return [f"CREATE OR REPLACE VIEW `vw` AS SELECT * FROM `{table.name}`", statement, statement.replace("vw", name)]


def _procedure(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    name = chance.choice(_PROCEDURES)
    write, other = random_write(chance, tables), random_write(chance, tables)
    made = f"CREATE TABLE IF NOT EXISTS made_by_call (i INT PRIMARY KEY, n{number} INT)"
    extra = chance.choice(["", "SQL SECURITY INVOKER ", "COMMENT 'ж''s' ", "MODIFIES SQL DATA "])
    body = chance.choice(
        [
            write,
            f"BEGIN {write}; {other}; END",
            f"BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK; START TRANSACTION; {write}; {other}; COMMIT; END",
            f"BEGIN DECLARE v INT DEFAULT 1; WHILE v < 3 DO {write}; SET v = v + 1; END WHILE; END",
            f"BEGIN SET @s = '{made}'; PREPARE p FROM @s; EXECUTE p; DROP TABLE IF EXISTS made_by_call; END",
            f"BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS tt (i INT); {write}; DROP TEMPORARY TABLE tt; END",
        ]
    )
    make = [f"DROP PROCEDURE IF EXISTS {name}", f"CREATE PROCEDURE {name}(IN p INT) {extra}{body}", f"CALL {name}(1)"]
    return chance.choice(
        [
            make,
            make,
            [f"CALL {name}({number})"],
            [f"ALTER PROCEDURE {name} {extra}"],
            [f"DROP PROCEDURE IF EXISTS {name}"],
        ]
    )


def _function(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    write, table = random_write(chance, tables), _table(chance, tables)
    certain = chance.choice(["", "DETERMINISTIC ", "NOT DETERMINISTIC "])
    returns = chance.choice(
        ["INT", "VARCHAR(9) CHARACTER SET latin1", "VARCHAR(9)", "ENUM('a','ж')", "JSON", "DECIMAL(5,2)"]
    )
    return [
        "DROP FUNCTION IF EXISTS fn",
        f"CREATE FUNCTION fn(p VARCHAR(9)) RETURNS {returns} {certain}BEGIN {write}; RETURN '1'; END",
        f"UPDATE IGNORE `{table.name}` SET `{chance.choice(table.columns).name}` = fn('x') LIMIT 1",
        chance.choice(["DO fn('a')", "SET @x = fn('b')"]),
    ]


def _trigger(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    name, table = chance.choice(_TRIGGERS), _table(chance, tables)
    when, event = chance.choice(["BEFORE", "AFTER"]), chance.choice(["INSERT", "UPDATE", "DELETE"])
    others = {key: value for key, value in tables.items() if key != table.name}
    body = random_write(chance, others or tables)
    if when == "BEFORE" and event != "DELETE" and chance.random() < 0.5:
        column = chance.choice(table.columns)
        body = f"SET NEW.`{column.name}` = {column.values(chance)}"
    make = [
        f"DROP TRIGGER IF EXISTS {name}",
        f"CREATE TRIGGER {name} {when} {event} ON `{table.name}` FOR EACH ROW {body}",
    ]
    writes = [random_write(chance, {table.name: table}) for _ in range(3)]
    return chance.choice([make + writes, make + writes, [f"DROP TRIGGER IF EXISTS {name}"]])


def _event(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    name, write = chance.choice(_EVENTS), random_write(chance, tables)
    return [
        chance.choice(
            [
                f"CREATE EVENT IF NOT EXISTS {name} ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01' DO {write}",
                f"CREATE EVENT {name} ON SCHEDULE AT '2037-01-01' ON COMPLETION PRESERVE DISABLE DO DO 1",
                f"ALTER EVENT {name} COMMENT 'ж'",
                f"ALTER EVENT {name} DISABLE",
                f"DROP EVENT IF EXISTS {name}",
            ]
        )
    ]


def _temporary(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    table = _table(chance, tables)
    middle = chance.choice(
        [
            ["INSERT INTO tmp SELECT * FROM tmp2"],
            ["ALTER TABLE tmp ADD extra INT"],
            ["TRUNCATE tmp"],
            ["CREATE INDEX i ON tmp (x)"],
            ["RENAME TABLE tmp TO tmp3", "ALTER TABLE tmp RENAME tmp3", "DROP TABLE IF EXISTS tmp3"],
            ["BEGIN", "INSERT INTO tmp VALUES (1)", "ROLLBACK"],
            [
                "BEGIN",
                random_write(chance, tables),
                "DROP TEMPORARY TABLE IF EXISTS tmp",
                random_write(chance, tables),
                "COMMIT",
            ],
            ["CREATE TABLE from_tmp LIKE tmp", "DROP TABLE IF EXISTS from_tmp"],
            ["CREATE TABLE from_tmp SELECT * FROM tmp", "DROP TABLE IF EXISTS from_tmp"],
        ]
    )
    make = chance.choice(
        ["(x INT)", f"LIKE `{table.name}`", f"SELECT * FROM `{table.name}`", "(x INT) ENGINE = MyISAM"]
    )
    end = chance.choice(["DROP TABLE IF EXISTS tmp", "DROP TEMPORARY TABLE IF EXISTS tmp"])
    return [f"CREATE TEMPORARY TABLE tmp {make}", *middle, random_write(chance, tables), end]


def _hiding(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    """A temporary table that hides a table of its name: statements on it do not affect the other."""
    table = _table(chance, tables)
    middle = chance.choice(
        [
            f"INSERT INTO `{table.name}` VALUES (1)",
            f"TRUNCATE `{table.name}`",
            f"ALTER TABLE `{table.name}` ADD y INT",
            f"DROP TABLE `{table.name}`",
            f"CREATE INDEX i ON `{table.name}` (x)",
            f"ALTER TABLE `{table.name}` RENAME TO elsewhere",
            f"OPTIMIZE TABLE `{table.name}`",
            f"CREATE OR REPLACE VIEW hidden AS SELECT 1 AS c FROM `{table.name}`",
        ]
    )
    ends = [f"DROP TEMPORARY TABLE IF EXISTS `{table.name}`", "DROP TEMPORARY TABLE IF EXISTS elsewhere"]
    return [f"CREATE TEMPORARY TABLE `{table.name}` (x INT)", middle, random_write(chance, tables), *ends]


def _locked(chance: Random, tables: Mapping[str, RandomTable], number: int) -> list[str]:
    table = _table(chance, tables)
    write = random_write(chance, {table.name: table})
    return [
        f"LOCK TABLES `{table.name}` WRITE",
        write,
        f"ALTER TABLE `{table.name}` COMMENT 'n{number}'",
        write,
        "UNLOCK TABLES",
    ]
