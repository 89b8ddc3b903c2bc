"""Values of all types, as ``tests/data/all_types.sql`` makes and changes them: which columns arrive equal."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pymysql
from confluent_kafka import Message

from bench.debezium.pipelines import KEYLESS, Cdc, Debezium, Pipeline, Sink, topic_name
from bench.debezium.stage import Stage, execute
from bench.debezium.table import Row
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content, databases, exact_cell, quoted
from tests.harness.dump import restore

__all__ = ["LENIENT", "RECORDS_LOGGED", "last_topic", "rows"]

_SQL = Path(__file__).parents[2] / "tests" / "data" / "all_types.sql"
_DATABASES = ("cdc_types", "Cdc_Mixed", "cdc schema-with.odd$chars", "схема")
# Debezium stops at statements that it can't parse, and at days such as 2023-02-29, unless it may pass them by.
LENIENT = {
    "event.processing.failure.handling.mode": "warn",
    "inconsistent.schema.handling.mode": "warn",
    "schema.history.internal.skip.unparseable.ddl": "true",
}
_COLUMNS = """SELECT c.table_schema, c.table_name, c.column_name, c.data_type,
 CONCAT_WS(' ', c.column_type, c.character_set_name, c.collation_name, c.is_nullable), c.column_key = 'PRI'
 FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
 WHERE t.table_type = 'BASE TABLE' AND c.table_schema IN %s ORDER BY 1, 2, c.ordinal_position"""

_SINKS = 4
# So that the last record that is logged is the one at which a sink stops.
_ONE_BY_ONE = {"consumer.override.max.poll.records": "1", "batch.size": "1"}
RECORDS_LOGGED = "-Dorg.slf4j.simpleLogger.log.io.debezium.connector.jdbc.JdbcChangeEventSink=trace"

Column = tuple[str, str, str]  # database, table, column


def rows(stage: Stage) -> Iterator[Row]:
    """Lets both pipelines replicate the file."""
    cdc = Cdc(stage, "types", _DATABASES, consumer='engine = "InnoDB"\n')
    debezium = Debezium(stage, "types", _DATABASES, source=LENIENT)
    # The sink creates tables, and no databases.
    execute(stage.followers["Debezium"], *(f"CREATE DATABASE {quoted(name)}" for name in _DATABASES))
    pipelines: tuple[Pipeline, ...] = (cdc, debezium)
    for each in pipelines:
        each.start()
    restore(stage.leader, _SQL.read_text(encoding="utf-8"))
    for each in pipelines:
        each.settle()
    stopped = sink(stage, debezium)
    why = {"cdc": cdc.stopped(""), "Debezium": f"sinks stopped at {len(stopped)} tables" if stopped else ""}
    yield from compared(stage, {name: f"; {text}" for name, text in why.items() if text})
    for each in pipelines:
        each.end()
    debezium.delete()


def sink(stage: Stage, debezium: Debezium) -> list[str]:
    """Lets sinks write all tables; one that stops goes on without the table at which it did. Returns these tables.

    A sink for each table would need more memory and CPU than all that is compared.
    """
    patterns = divided(stage, debezium.newest())
    sinks = {debezium.create_sink(each, number): each for number, each in enumerate(patterns, 1)}
    numbers = {name: number for number, name in enumerate(sinks, 1)}
    found: list[str] = []
    while True:
        debezium.settle()
        failed = [name for name in debezium.failures() if name in sinks]
        if not failed:
            return found
        for name in failed:
            topic = last_topic(stage.worker.process.said(), name)
            found += [topic] if topic not in found else []
            sinks[name] = sinks[name].without(topic.rpartition(".")[2])
            debezium.create_sink(sinks[name], numbers[name])


def divided(stage: Stage, newest: Mapping[str, Message]) -> list[Sink]:
    """The tables with messages, in some sinks that work side by side; each table without a key has its own."""
    names = ", ".join(f"'{each}'" for each in _DATABASES)
    there = execute(stage.leader, "SELECT table_schema, table_name FROM information_schema.tables WHERE "
                    f"table_type = 'BASE TABLE' AND table_schema IN ({names}) ORDER BY 1, 2")  # fmt: skip
    keyed: dict[str, list[str]] = {name: [] for name in _DATABASES}
    found = []
    for database, table in there:
        topic = f"types.{topic_name(database)}.{topic_name(table)}"
        if topic in newest and newest[topic].key() is None:
            found.append(Sink(database, re.escape(topic_name(table)), KEYLESS))
        elif topic in newest:
            keyed[database].append(topic_name(table))
    for database, tables in keyed.items():
        for first in range(_SINKS):
            if some := tables[first::_SINKS]:
                found.append(Sink(database, f"({'|'.join(map(re.escape, some))})", _ONE_BY_ONE))
    return found


def last_topic(log: str, sink: str) -> str:
    """The topic of the last record that a sink has logged, as it does before it writes it."""
    topics: list[str] = re.findall(
        rf"^\[task-thread-{sink}-0\] .* Processing .*? originalTopic=([^,]+),", log, re.MULTILINE
    )
    return topics[-1]


def compared(stage: Stage, stops: dict[str, str]) -> Iterator[Row]:
    there = columns(stage.leader)
    keys: dict[tuple[str, str], list[str]] = {(database, table): [] for database, table, _ in there}
    for (database, table, name), (_, _, is_key) in there.items():
        keys[database, table] += [name] if is_key else []
    found = {name: columns(follower) for name, follower in stage.followers.items()}
    values = {at: cells(stage.leader, at, kind, keys[at[:2]]) for at, (kind, _, _) in there.items()}
    equal, typed = Counter[str](), Counter[str]()
    for name, follower in stage.followers.items():
        for at, (kind, definition, _) in there.items():
            equal[name] += cells(follower, at, kind, keys[at[:2]]) == values[at]
            typed[name] += at in found[name] and found[name][at][1] == definition
    yield Row(
        f"columns of `all_types.sql` with equal values in all rows, of {len(there)} in {len(keys)} tables",
        {name: f"{equal[name]}{stops.get(name, '')}" for name in found},
    )
    yield Row(
        "the same columns with equal type, character set, collation and nullability",
        {name: str(typed[name]) for name in found},
    )
    objects = everything(stage.leader)
    same = {name: everything(follower) for name, follower in stage.followers.items()}
    yield Row(
        f"objects of the file (databases, tables, views, routines) with equal definition and rows, of {len(objects)}",
        {name: str(sum(those.get(at) == each for at, each in objects.items())) for name, those in same.items()},
    )


def columns(server: MySql) -> dict[Column, tuple[str, str, bool]]:
    """Each column's data type, its definition, and whether it belongs to the primary key."""
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(_COLUMNS, (_DATABASES,))
        return {(row[0], row[1], row[2]): (row[3], row[4], bool(row[5])) for row in cursor.fetchall()}


def cells(server: MySql, column: Column, kind: str, key: list[str]) -> list[Any] | None:
    """The values of a column, with those of the ``key``, in order; None if the server has no such column.

    The expression is that of the leader's type, so that a value is the same only if it behaves as there.
    """
    database, table, name = column
    shown = ", ".join([*(f"HEX({quoted(each)})" for each in key), exact_cell(name, kind)])
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00', sql_mode = ''")
        try:
            cursor.execute(f"SELECT {shown} FROM {quoted(database)}.{quoted(table)}")
        except pymysql.MySQLError:
            return None
        return sorted(cursor.fetchall(), key=repr)


def everything(server: MySql) -> dict[tuple[str, str], Any]:
    """All objects of the file's databases, by database and name."""
    here = [each for each in databases(server) if each in _DATABASES]
    return {(database, name): each for database in here for name, each in content(server, database).items()}
