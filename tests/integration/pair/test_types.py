"""Every MySQL type at its limits, through Kafka: equal on the follower, cell by cell, however the binlog is written."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cdc.consumer.literals.values import table_name
from cdc.model.record import Uri
from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content, databases
from tests.harness.leader_settings import MATRIX, LeaderSettings, across_settings
from tests.harness.long_runs import LONG, in_long_runs
from tests.harness.programs import json_lines, refused, run_well, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.server_pool import ON_80, know_vectors
from tests.harness.topic import LeaderTopic
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration

SQL = Path(__file__).parents[2] / "data" / "all_types.sql"
_OF_VECTORS = re.compile(r"VECTOR|\bt_vec")
_LONG_TIMES = re.compile(r"TIME'-?838:59:59' AS JSON")  # a follower of MySQL 8.0 stores such a member as another one
# The checkpoint can't commit together with rows of an engine without transactions: the consumer wants another engine.
NOT_TRANSACTIONAL = ["cdc_types.t_myisam", "cdc_types.t_memory"]
DURABLE_ENOUGH = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0")
# In make test those that differ in both.
SETTINGS = [(compression, checksum) for compression in ("OFF", "ON") for checksum in ("CRC32", "NONE")][
    :: 1 if LONG else 3
]


def load(server: MySql, *, compression: str = "OFF") -> None:
    client = [
        *mysql_programs().client,
        "--default-character-set=utf8mb4",
        f"--init-command=SET binlog_transaction_compression = {compression}",
        "-uroot",
        f"--socket={server.socket}",
    ]
    lines = SQL.read_text(encoding="utf-8").splitlines(keepends=True)
    left_out = [*([] if know_vectors() else [_OF_VECTORS]), *([_LONG_TIMES] if ON_80 else [])]
    text = "".join(line for line in lines if not any(each.search(line) for each in left_out))
    done = subprocess.run(
        client, input=text, capture_output=True, text=True, encoding="utf-8", timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def profile(folder: Path, leader: MySql, kafka: Kafka, *, name: str) -> Path:
    return write_profile(folder, leader, kafka, name=name, resource=name)


@across_settings
def test_all_types(
    tmp_path: Path, mysql_server: MySqlFactory, follower: MySql, kafka: Kafka, settings: LeaderSettings
) -> None:
    """In `make test` test_the_records_are_the_same_whatever_the_binlog_looks_like has the other settings."""
    leader = mysql_server(*DURABLE_ENOUGH, *settings.options, server_id=3)
    load(leader, compression=settings.compression)
    name = f"types-{settings.name}"
    run_well("cdc-producer", profile(tmp_path, leader, kafka, name=name), "--until-current")

    level = {"level": "debug"}
    target = write_profile(tmp_path, follower, kafka, name="target", topic=name, resource=name, log=level)
    for table in NOT_TRANSACTIONAL:
        line = refused("cdc-consumer", target, "--until-current", status=3)
        assert table.replace(".", "/") in line
        execute(follower, f"ALTER TABLE {table} ENGINE = InnoDB")
        execute(leader, "SET sql_log_bin = 0", f"ALTER TABLE {table} ENGINE = InnoDB")
    log = run_well("cdc-consumer", target, "--until-current")
    # Each before-image was found as it is in the record, whatever its types. An ENUM's error value is stored apart.
    noted = [line for line in log.splitlines() if "retrying row by row" in line or " conflict " in line]
    assert [line for line in noted if "Data truncated for column 'e'" not in line] == []

    assert len(databases(leader)) == 4
    for database in databases(leader):
        here, there = content(leader, database), content(follower, database)
        assert sorted(there) == sorted(here)
        for each in here:
            assert there[each] == here[each], f"{database}.{each}"
    if settings == MATRIX[0]:
        check_copies(tmp_path, follower, kafka, folded(json_lines(target)))
    for database in databases(leader):
        execute(follower, f"DROP DATABASE `{database}`")


def folded(lines: list[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """By the URI of each table with a key a record for each row, which adds it as it is at last."""
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for record in map(json.loads, lines):
        ((operation, content),) = list(record["operation"].items())[:1]
        for affect in record.get("affects", ()):
            tables.pop(affect["uri"], None)
        if operation == "Query" or "key" not in record:
            continue
        rows = tables.setdefault(record["uri"], {})
        places = [record["columns"].index(column) for column in record["key"]]
        for row in content["rows"]:
            gone = row.get("before_cols", row["cols"] if operation == "Delete" else None)
            come = row.get("after_cols", row["cols"] if operation == "Add" else None)
            if gone is not None:
                rows.pop(repr([gone[place] for place in places]), None)
            if come is not None:
                rows[repr([come[place] for place in places])] = record | {"cols": come}
    return tables


def check_copies(folder: Path, follower: MySql, kafka: Kafka, tables: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Copied into a stream, the rows are found equal, and after some were lost they are as before."""
    name = "types_copied"
    topic = LeaderTopic.create(kafka, name, resource=name)
    target = write_profile(folder, follower, kafka, name=name, resource=name)
    paths = {uri: uri.removeprefix("flv://").partition("/")[2] for uri in tables}
    assert len(tables) > 50

    def copied() -> str:
        chunks = []
        for uri, rows in tables.items():
            records = list(rows.values())
            columns, key = (records[0][each] for each in ("columns", "key"))
            chunks.append(topic.chunk(paths[uri], columns, *[each["cols"] for each in records], key=key))
        topic.send(*chunks)
        return run_well("cdc-consumer", target, "--until-current")

    # A message that is made by hand has no fragments, and a key of prefixes names no rows.
    tables = {uri: rows for uri, rows in tables.items() if rows and len(json.dumps(list(rows.values()))) < 900_000}
    tables = {uri: rows for uri, rows in tables.items() if not uri.endswith("/t_cpk")}
    log = copied()
    assert log.count("missing=0 different=0 extra=0") == len(tables), log
    uris = [*map(Uri.parse, tables)]
    names = sorted({uri.database for uri in uris})
    before = [content(follower, each) for each in names]
    execute(follower, *(f"DELETE FROM {table_name(uri)} LIMIT 2" for uri in uris), "COMMIT")
    log = copied()
    assert log.count("chunk changed rows") > 50
    assert [content(follower, each) for each in names] == before


@pytest.mark.parametrize("gtids", [in_long_runs("ON"), "OFF"])
def test_the_records_are_the_same_whatever_the_binlog_looks_like(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, gtids: str
) -> None:
    split = LeaderSettings(gtids=gtids, row_events="split" if gtids == "OFF" else "whole")
    leader = mysql_server(*DURABLE_ENOUGH, *split.options, server_id=3)
    for compression, checksum in SETTINGS:
        # Each change of the checksum begins a new binlog.
        execute(leader, f"SET GLOBAL binlog_checksum = {checksum}", "FLUSH BINARY LOGS", "CREATE DATABASE next_round")
        execute(leader, "DROP DATABASE next_round")
        load(leader, compression=compression)
    name = f"types-gtid-{gtids}"
    path = profile(tmp_path, leader, kafka, name=name)
    run_well("cdc-producer", path, "--until-current")
    first, *others = rounds(json_lines(path))
    assert len(first) > 500
    assert len(others) == len(SETTINGS) - 1
    for settings, other in zip(SETTINGS[1:], others, strict=True):
        assert other == first, settings


def rounds(lines: list[str]) -> list[list[dict[str, Any]]]:
    """What the records say, without their places and times, for each time that the script was loaded."""
    found: list[list[dict[str, Any]]] = []
    for line in lines:
        record = json.loads(line)
        if record["uri"].endswith("/t_def") and "Query" not in record["operation"]:
            continue  # its defaults are of the moment and of chance
        if str(record["operation"].get("Query")).startswith("DROP"):
            continue  # what is there to be dropped differs from round to round
        if "CREATE DATABASE next_round" in str(record["operation"].get("Query")):
            found.append([])
        for place in ("sequence", "bn_file", "transaction"):
            del record[place]
        record.get("context", {}).pop("timestamp_us", None)
        found[-1].append(record)
    return found
