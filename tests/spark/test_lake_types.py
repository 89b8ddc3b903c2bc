"""all_types.sql through cdc-lake in each format: a table is what the server has, merged too, or refused by name."""

import os
import random
import re
from calendar import monthrange
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from cdc.lake.folder import folder as folder_of
from cdc.lake.folder import quoted
from cdc.lake.pipeline import Refused
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.ddl.lineage import Name
from cdc.spark.frames.versions import plan
from tests.checks.exact import Shown
from tests.checks.folded import Rows, shown
from tests.checks.type_table import lake_type
from tests.checks.typed import server_row, typed_row
from tests.generators.random_tables import LAX
from tests.harness.programs import run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_fixtures import MySqlFactory
from tests.integration.pair.test_types import DURABLE_ENOUGH, load
from tests.spark.test_lake import FORMATS, Opened, with_times

pytestmark = [pytest.mark.spark, pytest.mark.integration]

TABLES = int(os.environ.get("CDC_LAKE_TABLES", "3"))  # of those in all_types.sql, some 110, which are in each format
DATABASES = ("cdc_types", "Cdc_Mixed", "cdc schema-with.odd$chars", "схема")
NOT_READ = ("t_json",)  # a name of 65 535 characters, more than Spark's parser takes


@pytest.mark.long
def test_all_types(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, lake_spark: SparkSession) -> None:
    """`make test` has the types by test_tables.test_all_types, and random ones in test_lake.test_random_histories."""
    leader, chance = mysql_server(*DURABLE_ENOUGH, server_id=3), random.Random(f"{SEED} lake types")
    load(leader)
    profile = write_profile(tmp_path, leader, kafka, name="lake-types")
    run_well("cdc-producer", profile, "--until-current")
    every = held(leader)
    forms = list(FORMATS) if len(every) <= TABLES else [chance.choice(list(FORMATS))]
    lakes = [Opened(lake_spark, profile, tmp_path / form, form, typed_json="record") for form in forms]
    for lake in lakes:
        chosen = chance.sample(sorted(every), min(TABLES, len(every)))
        lake.left_out, lake.lake.changes = every.keys() - set(chosen), None
        advanced(lake, every)
    # What is merged is found by keys of all types.
    for database, table in every:
        one = f"DELETE FROM `{database}`.{quoted(table)} LIMIT 1"
        with leader.root(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION foreign_key_checks = 0")
            cursor.execute(one)
    run_well("cdc-producer", profile, "--until-current")
    every = held(leader)
    for lake in lakes:
        merged = advanced(lake, every)["merged"]
        assert merged or len(every) > TABLES
        lake.folder.close()


def held(leader: MySql) -> dict[Name, Rows]:
    """All tables of the server."""
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(LAX)
        return {(database, table): rows for database in DATABASES for table, rows in shown(cursor, database).items()}


def advanced(lake: Opened, every: dict[Name, Rows]) -> dict[str, int]:
    """Run, and compare the tables but those that may be refused; gives how many were merged, written, …."""
    try:
        run = lake.advance()
    except Refused as error:
        run = error.run
        for name, why in run.refused.items():
            assert may_be_refused(str(why), name, every[name]), (SEED, lake.form, name, why)
        lake.left_out |= run.refused.keys()
    there = {each.name: each for each in lake.lake.state.tables}
    for name, rows in every.items():
        if name in lake.left_out or (name not in there and not rows):
            continue
        types = [kind for _, kind in plan(lake.lake.state.history, name, run.sequence, cut=False).columns]
        here, found = Counter[tuple[Shown, ...]](), Counter[tuple[Shown, ...]]()
        for row, times in rows.items():
            here[server_row(row, types)] += times
        there_now = lake.read(folder_of(*name))
        wanted = [StructType.fromDDL(f"c {lake_type(kind, lake.form)}")[0].dataType for kind in types]
        assert [each.dataType for each in there_now.schema] == wanted, (SEED, lake.form, name)
        for row in as_texts(there_now).collect():
            found[typed_row(with_times(row, types), types)] += 1
        assert found == here, (SEED, lake.form, name, found - here, here - found)
        _, _, elsewhere = lake.elsewhere(folder_of(*name))
        assert len(elsewhere) == rows.total(), (SEED, lake.form, name)
    return dict(run.counts)


def may_be_refused(why: str, name: Name, rows: Rows) -> bool:
    """Whether the table has what the reason says: a date of no calendar, or a member that records have by its number,
    since they have no text for it."""
    if "is no date in Spark" in why:
        return has_zero_dates(rows)
    return name[1] in NOT_READ or re.search(r'can not be had as .*\{"(Enum|Set)":\d', why) is not None


def has_zero_dates(rows: Rows) -> bool:
    """Whether a value is a date that no calendar has."""
    return any(isinstance(value, str) and is_zero_date(value) for row in rows for value in row)


def is_zero_date(value: str) -> bool:
    found = re.match(r"(\d{4})-(\d\d)-(\d\d)", value)
    if found is None:
        return value == "@0.000000"
    year, month, day = map(int, found.groups())
    # Also 2024-02-31, which a server has with ALLOW_INVALID_DATES.
    return not (year and 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1])


def as_texts(rows: DataFrame) -> DataFrame:
    """Dates and times as texts with six digits, since Python has not all of them."""
    return rows.select(*(as_text(each.name, each.dataType).alias(each.name) for each in rows.schema))


def as_text(name: str, kind: DataType) -> Any:
    column = F.col(quoted(name))
    if isinstance(kind, DateType):
        return column.cast("string")
    if isinstance(kind, TimestampType | TimestampNTZType):
        return F.date_format(column, "yyyy-MM-dd HH:mm:ss.SSSSSS")
    return column
