"""The law of the fold on a real server: whatever its history, the fold of its records is what its tables hold.

An ALTER TABLE can change rows without a word in the log. Of tables that one touched, only the number of rows is
compared with the server; that both sides' folds agree is checked of all.
"""

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.compare.fold import changes, fold, segments
from cdc.spark.ddl.lineage import Segment, lineage
from cdc.spark.input.records import LEADER, parse
from cdc.spark.streams.contents import statements, survey
from tests.checks.exact import Shown, from_record
from tests.checks.folded import Rows, shown
from tests.generators.random_tables import LAX
from tests.generators.streams import Stream, messages
from tests.harness.pair import Pair
from tests.harness.programs import json_lines
from tests.harness.seed import SEED
from tests.harness.server_fixtures import MySqlFactory
from tests.integration.pair.test_random_history import run_deeds

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DEEDS = int(os.environ.get("CDC_FOLDED_DEEDS", "90"))
A_ROUND = 30  # deeds in one database: many tables have not been altered yet

Name = tuple[str, str]


def test_random_histories(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    leader, follower = mysql_server(server_id=1), mysql_server(server_id=2)
    pair = Pair.make(tmp_path, leader, follower, kafka, name="law")
    databases = [f"law_{number}" for number in range(DEEDS // A_ROUND)]
    for database in databases:
        with (tmp_path / f"{database}.sql").open("w") as log:
            run_deeds(leader, database, random.Random(f"{SEED} {database}"), deeds=A_ROUND, log=log)
    pair.replicate()
    audit = pair.audit(spark, tmp_path)
    assert (audit.verdict, audit.reasons, audit.schema) == ("no drift", [], []), f"CDC_SEED={SEED}: {audit.drifted[:3]}"
    assert (audit.foreign_writes, audit.discontinuities) == (0, {"leader": 0, "follower": 0}), f"CDC_SEED={SEED}"
    records = parse(messages(spark, {LEADER: Stream(messages=json_lines(pair.source))})).persist()
    exact, counted = compare(spark, records, leader, databases)
    records.unpersist()
    with capsys.disabled():
        print(f"\n{exact} tables are as their records fold, {counted} of as many rows (CDC_SEED={SEED})")
    assert exact


def compare(spark: SparkSession, records: DataFrame, leader: MySql, databases: list[str]) -> tuple[int, int]:
    """How many tables were found to be what their records fold to, and how many to have as many rows."""
    lives = lineage(survey(records).result()[LEADER].tables, statements(records).result()[LEADER])
    altered = {segment.owner for segment in lives if segment.era}
    folded = held(spark, records, lives)
    exact = counted = 0
    for database in databases:
        for table, (columns, rows) in tables(leader, database).items():
            found = folded.pop((database, table), [])
            which = f"CDC_SEED={SEED}, {database}.{table}"
            if (database, table) in altered:
                assert sum(net for _, _, net in found) == rows.total(), which
                counted += 1
            else:
                assert Counter(unfolded(columns, found)) == rows, which
                exact += 1
    assert not any(net for found in folded.values() for _, _, net in found), f"CDC_SEED={SEED}: {folded.keys()}"
    return exact, counted


def held(spark: SparkSession, records: DataFrame, lives: list[Segment]) -> dict[Name, list[tuple[bool, Any, int]]]:
    """The fold's rows by table: whether keyed, the image that is there, and net."""
    found: dict[Name, list[tuple[bool, Any, int]]] = {}
    for row in fold(changes(records.where(f"side = '{LEADER}'"), segments(spark, lives))).collect():
        image = row["image"] if row["keyed"] else row["identity"]
        found.setdefault((row["database"], row["table"]), []).append((row["keyed"], image, row["net"]))
    return found


def unfolded(columns: list[str], found: list[tuple[bool, Any, int]]) -> list[tuple[Shown, ...]]:
    """The rows of one table as its server shows them."""
    rows = []
    for keyed, image, net in found:
        if image is None or not net:
            continue
        values = {pair["column"]: from_record(json.loads(pair["value"])) for pair in image}
        rows += [tuple(values.get(column) for column in columns)] * (1 if keyed else net)
    return rows


def tables(leader: MySql, database: str) -> dict[str, tuple[list[str], Rows]]:
    """The server's tables, with their columns in order."""
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(LAX)
        columns: dict[str, list[str]] = {}
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s "
            "ORDER BY table_name, ordinal_position",
            (database,),
        )
        for table, column in cursor.fetchall():
            columns.setdefault(table, []).append(column)
        return {table: (columns[table], rows) for table, rows in shown(cursor, database).items()}
