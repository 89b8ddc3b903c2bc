"""Statements that change definitions: which of them arrive."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql

from bench.debezium.pipelines import Pipeline
from bench.debezium.stage import Stage, execute
from bench.debezium.table import Row
from cdc.sandbox.server.mysql import MySql

__all__ = ["DATABASE", "rows"]

DATABASE = "ddl"
_COLUMNS = ("SELECT column_name, column_type FROM information_schema.columns WHERE table_schema = 'ddl' "
            "AND table_name = '{0}' ORDER BY column_name")  # fmt: skip
_INDEXES = ("SELECT index_name, non_unique, column_name FROM information_schema.statistics WHERE table_schema = 'ddl' "
            "AND table_name = '{0}' ORDER BY 1, seq_in_index")  # fmt: skip
_ROWS = "SELECT * FROM ddl.{0} ORDER BY 1, 2"
_TABLES = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'ddl' AND table_name = '{0}'"
_CONSTRAINTS = ("SELECT constraint_type FROM information_schema.table_constraints WHERE table_schema = 'ddl' "
                "AND table_name = '{0}' ORDER BY 1")  # fmt: skip
_DEFAULTS = ("SELECT column_name, column_default, column_comment FROM information_schema.columns WHERE "
             "table_schema = 'ddl' AND table_name = '{0}' ORDER BY 1")  # fmt: skip
_CHARSETS = ("SELECT column_name, character_set_name FROM information_schema.columns WHERE table_schema = 'ddl' "
             "AND table_name = '{0}' ORDER BY 1")  # fmt: skip
_PARTITIONS = ("SELECT partition_name FROM information_schema.partitions WHERE table_schema = 'ddl' "
               "AND table_name = '{0}' ORDER BY 1")  # fmt: skip
_ROUTINES = "SELECT routine_type, routine_definition FROM information_schema.routines WHERE routine_name = '{0}'"
_TRIGGERS = "SELECT action_statement FROM information_schema.triggers WHERE trigger_name = '{0}'"
_EVENTS = "SELECT event_definition FROM information_schema.events WHERE event_name = '{0}'"


def _of(end: str, query: str) -> str:
    """The query for another object, whose name has this end."""
    return query.replace("{0}", "{0}" + end)


@dataclass(frozen=True)
class Change:
    """A statement about the table {0}, which has rows before, and the queries that show whether it has arrived."""

    statement: str
    probes: tuple[str, ...]
    after: str = ""  # a row that comes after the statement, so that a sink learns of the change


_EXTRA = "INSERT INTO ddl.{0}_new (id, a) VALUES (7, 7)"
_INSERT = "INSERT INTO ddl.{0} (id, a) VALUES (7, 7)"


def _altered(change: str, *probes: str) -> Change:
    """A change of the table {0}, after which a row of the old columns is inserted."""
    return Change(f"ALTER TABLE ddl.{{0}} {change}", probes, _INSERT)


CHANGES = {
    "CREATE TABLE": Change("CREATE TABLE ddl.{0}_new (id INT PRIMARY KEY, a INT, c VARCHAR(30), d DECIMAL(9,2))",
                           (_of("_new", _COLUMNS), _of("_new", _ROWS)),
                           "INSERT INTO ddl.{0}_new VALUES (1, 2, 'x', 1.5)"),
    "CREATE TABLE … SELECT": Change("CREATE TABLE ddl.{0}_new (PRIMARY KEY (id)) SELECT id, a FROM ddl.{0}",
                                    (_of("_new", _COLUMNS), _of("_new", _ROWS))),
    "CREATE TABLE … LIKE": Change("CREATE TABLE ddl.{0}_new LIKE ddl.{0}", (_of("_new", _INDEXES),), _EXTRA),
    "DROP TABLE": Change("DROP TABLE ddl.{0}", (_TABLES,)),
    "RENAME TABLE": Change("RENAME TABLE ddl.{0} TO ddl.{0}_new", (_TABLES, _of("_new", _ROWS)), _EXTRA),
    "TRUNCATE TABLE": Change("TRUNCATE TABLE ddl.{0}", (_ROWS,), _INSERT),
    "ADD COLUMN": Change("ALTER TABLE ddl.{0} ADD COLUMN n INT", (_COLUMNS, _ROWS),
                         "INSERT INTO ddl.{0} (id, a, n) VALUES (7, 7, 7)"),
    "ADD COLUMN … DEFAULT": _altered("ADD COLUMN n INT NOT NULL DEFAULT 5", _COLUMNS, _ROWS),
    "ADD COLUMN, generated": _altered("ADD COLUMN n INT AS (a * 2) STORED", _COLUMNS, _ROWS),
    "DROP COLUMN": _altered("DROP COLUMN c", _COLUMNS, _ROWS),
    "RENAME COLUMN": Change("ALTER TABLE ddl.{0} RENAME COLUMN a TO b", (_COLUMNS, _ROWS),
                            "INSERT INTO ddl.{0} (id, b) VALUES (7, 7)"),
    "MODIFY COLUMN, INT to BIGINT": _altered("MODIFY a BIGINT", _COLUMNS, _ROWS),
    "MODIFY COLUMN, a longer VARCHAR": _altered("MODIFY c VARCHAR(99)", _COLUMNS, _ROWS),
    "MODIFY COLUMN, INT to VARCHAR": _altered("MODIFY a VARCHAR(20)", _COLUMNS, _ROWS),
    "ALTER COLUMN … SET DEFAULT": _altered("ALTER a SET DEFAULT 9", _DEFAULTS),
    "a column's COMMENT": _altered("MODIFY a INT COMMENT 'amount'", _DEFAULTS),
    "CONVERT TO CHARACTER SET": _altered("CONVERT TO CHARACTER SET latin1", _CHARSETS),
    "ADD INDEX": _altered("ADD INDEX i (a)", _INDEXES),
    "CREATE UNIQUE INDEX": Change("CREATE UNIQUE INDEX i ON ddl.{0} (a)", (_INDEXES,), _INSERT),
    "DROP INDEX": Change("DROP INDEX k ON ddl.{0}", (_INDEXES,), _INSERT),
    "another PRIMARY KEY": _altered("DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)", _INDEXES),
    "ADD CHECK": _altered("ADD CHECK (a < 100)", _CONSTRAINTS),
    "ADD PARTITION": _altered("PARTITION BY HASH (id) PARTITIONS 3", _PARTITIONS),
    "CREATE VIEW": Change("CREATE VIEW ddl.{0}_v AS SELECT id FROM ddl.{0}", (_of("_v", _TABLES),)),
    "CREATE PROCEDURE": Change("CREATE PROCEDURE ddl.{0}_p() SELECT 1", (_of("_p", _ROUTINES),)),
    "CREATE FUNCTION": Change("CREATE FUNCTION ddl.{0}_f() RETURNS INT DETERMINISTIC RETURN 1",
                              (_of("_f", _ROUTINES),)),
    "CREATE TRIGGER": Change("CREATE TRIGGER ddl.{0}_t BEFORE INSERT ON ddl.{0} FOR EACH ROW SET NEW.a = 1",
                             (_of("_t", _TRIGGERS),)),
    "CREATE EVENT": Change("CREATE EVENT ddl.{0}_e ON SCHEDULE EVERY 1 YEAR DO DO 1", (_of("_e", _EVENTS),)),
}  # fmt: skip


def rows(stage: Stage, pipelines: Sequence[Pipeline]) -> Iterator[Row]:
    names = {statement: f"t{number}" for number, statement in enumerate(CHANGES)}
    stage.prepare(*(f"CREATE TABLE ddl.{name} (id INT PRIMARY KEY, a INT, c VARCHAR(30), KEY k (c))"
                    for name in names.values()))  # fmt: skip
    for name in names.values():
        execute(stage.leader, f"INSERT INTO ddl.{name} (id, a, c) VALUES (1, 1, 'one'), (2, 2, 'two')")
    for statement, name in names.items():
        change = CHANGES[statement]
        execute(stage.leader, *(each.format(name) for each in (change.statement, change.after) if each))
    answers = {}
    for each in pipelines:
        each.settle()
        lost = [statement for statement, name in names.items()
                if not arrived(stage, stage.followers[each.name], CHANGES[statement], name)]  # fmt: skip
        why = each.stopped(DATABASE)
        answers[each.name] = (
            f"{len(CHANGES) - len(lost)}" + f"; not {', '.join(lost)}" * bool(lost) + f"; stopped: {why}" * bool(why)
        )
    yield Row(f"DDL: statements of {len(CHANGES)} that arrive", answers)


def arrived(stage: Stage, follower: MySql, change: Change, name: str) -> bool:
    return all(shown(stage.leader, each.format(name)) == shown(follower, each.format(name)) for each in change.probes)


def shown(server: MySql, query: str) -> Any:
    """The answer to a query; None if there is no such table."""
    try:
        return execute(server, query)
    except pymysql.MySQLError:
        return None
