"""cdc-lake: its tables are the leader's at one sequence, through any statements and kills, for any reader."""

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.config.profile import load as load_profile
from cdc.errors import PromiseError
from cdc.kafka.partitions import backwards
from cdc.lake.change_tables import ChangeTables
from cdc.lake.folder import CHANGES, LakeFolder
from cdc.lake.folder import folder as folder_of
from cdc.lake.formats.delta import DeltaTables
from cdc.lake.formats.iceberg import IcebergTables, in_files, metadata_file
from cdc.lake.formats.parquet import POINTER, ParquetTables
from cdc.lake.pipeline import Lake, Refused, Run
from cdc.lake.program import identity
from cdc.model.names import Uri
from cdc.sandbox.server.kafka import Kafka
from cdc.service.spark_packages import lake_packages
from cdc.spark import changes
from cdc.spark.ddl.lineage import Act, Name, table_name
from cdc.spark.folders import Folder, LocalFolder
from cdc.spark.frames.messages import Source
from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import plan
from cdc.spark.hadoop_folder import HadoopFolder
from cdc.sql.column_types import read_type
from tests.checks.exact import Shown
from tests.checks.typed import server_row, typed_row
from tests.harness.pair import Pair
from tests.harness.programs import (
    begin_now,
    change_profile,
    end_offset,
    json_lines,
    records,
    run_well,
    running,
    write_profile,
)
from tests.harness.seed import SEED
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS, until
from tests.integration.pair.test_random_history import Moment, run_deeds

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DEEDS = int(os.environ.get("CDC_LAKE_DEEDS", "20"))
MANY = 200
MOMENTS = max(2, DEEDS // 10)
DATABASE = "lake_history"


FORMATS = {
    name: tables
    for name, tables in (("delta", DeltaTables), ("iceberg", IcebergTables), ("parquet", ParquetTables))
    if name == "parquet" or name in lake_packages(version("pyspark"))
}
"""The formats that this version of Spark has packages of."""
needs_iceberg = pytest.mark.skipif("iceberg" not in FORMATS, reason="there is no Iceberg for this version of Spark")
STATEMENTS = {"CreateTable", "AlterTable", "RenameTable", "TruncateTable", "DropTable", "DropDatabase"}


class Killed(BaseException):
    """Ends a run at a point, as a kill does."""


class Opened:
    """A lake in a folder, as a run of cdc-lake has it."""

    def __init__(
        self, spark: SparkSession, profile: Path, folder: Path, form: str, place: Folder | None = None, **options: str
    ) -> None:
        self.spark, self.profile, self.path, self.form = spark, load_profile(profile), folder, form
        # In make test, tables of Parquet are behind an address.
        place = place or (HadoopFolder(spark, folder.as_uri()) if form == "parquet" else LocalFolder(folder))
        self.folder = LakeFolder(place, identity(self.profile, form, history=True))
        tables = FORMATS[form](spark, place)
        state, self.left_out = self.folder.load(), set[Name]()
        self.lake = Lake(self.folder, tables, self.profile, Options(**options), self.selects, state)
        self.lake.changes = ChangeTables(tables, self.selects)

    def selects(self, name: Name) -> bool:
        return name not in self.left_out

    def advance(self, at: int | None = None) -> Run:
        return self.lake.advance(Source.of(self.spark, self.profile), at)

    def rows(self, folder: str) -> Counter[tuple[Any, ...]]:
        return Counter(self.lines(folder))

    def lines(self, folder: str) -> list[tuple[Any, ...]]:
        return list(map(tuple, self.read(folder).collect()))

    def read(self, folder: str) -> DataFrame:
        if self.form == "parquet":
            pointer = json.loads(self.folder.folder.read(f"{folder}/{POINTER}") or "")
            names = [f"{folder}/{each['name']}" for each in pointer["folders"]]
            return self.spark.read.parquet(*map(self.folder.folder.at, names))
        return self.spark.read.format(self.form).load(self.folder.folder.at(folder))

    def elsewhere(self, folder: str) -> tuple[int, str, list[dict[str, Any]]]:
        """The version, the note and the rows of a table, as a reader that is not Spark has them."""
        if self.form == "delta":
            table = DeltaTable(self.path / folder)
            return table.version(), table.history(1)[0]["userMetadata"], table.to_pyarrow_table().to_pylist()
        if self.form == "parquet":
            pointer = json.loads((self.path / folder / POINTER).read_text())
            rows = [row for part in parquet_folders(self.path / folder) for row in pq.read_table(part).to_pylist()]
            return pointer["version"], pointer["note"], rows
        static = StaticTable.from_metadata(f"{self.path}/{metadata_file(LocalFolder(self.path), folder)}")
        snapshot = static.current_snapshot()
        assert snapshot is not None and snapshot.summary is not None
        return snapshot.snapshot_id, snapshot.summary["cdc_lake"], static.scan().to_arrow().to_pylist()


def parquet_folders(table: Path) -> list[Path]:
    """Those that are the rows of a table, as its pointer lists them."""
    return [table / each["name"] for each in json.loads((table / POINTER).read_text())["folders"]]


def test_a_lake_follows_its_leader(pair: Pair, lake_spark: SparkSession, tmp_path: Path) -> None:
    follows(pair, lake_spark, tmp_path, "delta", "a_lake_follows_its_leader")


@needs_iceberg
@pytest.mark.long
def test_an_iceberg_lake_follows_its_leader(pair: Pair, lake_spark: SparkSession, tmp_path: Path) -> None:
    """In `make test` the lake of test_killed_lake.test_a_lake_that_is_killed is of this format, with its changes."""
    follows(pair, lake_spark, tmp_path, "iceberg", "an_iceberg_lake_follows_its_leader")


@pytest.mark.long
def test_a_parquet_lake_follows_its_leader(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    """In `make test` the lake of test_random_histories is of this format, through statements and kills."""
    follows(pair, spark, tmp_path, "parquet", "a_parquet_lake_follows_its_leader")


def follows(pair: Pair, spark: SparkSession, tmp_path: Path, form: str, database: str) -> None:
    """The lake is as the leader was, after rows, and after statements."""
    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20), took TIME(3))",
        "INSERT INTO orders VALUES (1, 'a', '-01:02:03.5'), (2, 'é', NULL), (3, 'c', '00:00:01')",
        "CREATE TABLE bare (n INT, t TEXT)", "INSERT INTO bare VALUES (1, 'x'), (1, 'x'), (2, NULL)",
        "CREATE TABLE untouched (`a b` INT PRIMARY KEY, `c.``d` INT)", "INSERT INTO untouched VALUES (1, 2)",
        "CREATE TABLE later (id INT PRIMARY KEY)",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    lake = Opened(spark, pair.source, tmp_path / "lake", form)
    run = lake.advance()
    assert (run.counts["written"], run.waiting) == (3, ((database, "later"),))
    assert lake.rows(f"{database}/orders") == Counter({(1, "a", -3723500000): 1, (2, "é", None): 1, (3, "c", 10**6): 1})
    pair.on_leader(
        "UPDATE orders SET id = 4, name = 'd' WHERE id = 3", "DELETE FROM orders WHERE id = 1",
        "INSERT INTO orders VALUES (1, 'again', NULL)", "DELETE FROM orders WHERE id = 2",
        "DELETE FROM bare WHERE n = 1 LIMIT 1", "INSERT INTO later VALUES (7)", "UPDATE untouched SET `c.``d` = 3",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    run = lake.advance()
    assert run.counts == {"kept": 0, "merged": 2, "written": 2, "emptied": 0, "without columns yet": 0, "removed": 0}
    assert lake.rows(f"{database}/orders") == Counter({(1, "again", None): 1, (4, "d", 10**6): 1})
    assert lake.rows(f"{database}/bare") == Counter({(1, "x"): 1, (2, None): 1})
    assert lake.rows(f"{database}/untouched") == Counter({(1, 3): 1})
    pair.on_leader(
        "ALTER TABLE orders DROP COLUMN took, ADD more INT DEFAULT 5, ADD at DATETIME, RENAME COLUMN name TO title",
        "TRUNCATE later", "DROP TABLE bare", "RENAME TABLE untouched TO renamed",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    run = lake.advance()
    assert run.counts == {"kept": 0, "merged": 0, "written": 2, "emptied": 1, "without columns yet": 0, "removed": 2}
    assert lake.rows(f"{database}/orders") == Counter({(1, "again", 5, None): 1, (4, "d", 5, None): 1})
    listed = json.loads((tmp_path / "lake/lake.json").read_text())
    assert listed["sequence"] == run.sequence
    assert [each["table"] for each in listed["tables"]] == ["later", "orders", "renamed"]
    for each in listed["tables"]:
        version, note, _ = lake.elsewhere(each["folder"])
        assert (version, json.loads(note)["cdc_lake"]["sequence"]) == (each["version"], run.sequence)
        if form == "parquet":
            assert parquet_folders(tmp_path / "lake" / each["folder"]) == [tmp_path / "lake" / each["path"]]
    _, _, rows = lake.elsewhere(f"{database}/orders")
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "title": "again", "more": 5, "at": None}, {"id": 4, "title": "d", "more": 5, "at": None},
    ]  # fmt: skip
    assert lake.advance().counts["kept"] == 3
    has_changes(lake, database)
    if form != "parquet":
        finds_rows_of_others(pair, lake, database)
    lake.folder.close()


def finds_rows_of_others(pair: Pair, lake: Opened, database: str) -> None:
    """A row that something else writes to a table right before a run merges into it does not stay there."""

    def beside(point: str, table: str) -> None:
        if point == "before" and table.startswith(f"{database}.orders"):
            assert not isinstance(lake.lake.tables, ParquetTables)
            name = lake.lake.tables._name(f"{database}/orders")
            lake.spark.sql(f"INSERT INTO {name} VALUES (9, 'other', 0, NULL)")

    pair.on_leader("UPDATE orders SET more = 6 WHERE id = 4", database=database)
    run_well("cdc-producer", pair.source, "--until-current")
    lake.lake.passed = beside
    with pytest.raises(PromiseError, match=r"something else wrote to table \S+\.orders meanwhile"):
        lake.advance()
    lake.lake.passed = lambda point, table: None
    run = lake.advance()
    assert (run.counts["written"], run.counts["kept"]) == (1, 2)
    assert lake.rows(f"{database}/orders") == Counter({(1, "again", 5, None): 1, (4, "d", 6, None): 1})


def has_changes(lake: Opened, database: str) -> None:
    """All that ``follows`` did to tables is in those of changes, once, also for a reader that is not Spark."""
    _, note, rows = lake.elsewhere(f"{CHANGES}/{database}/orders")
    assert json.loads(note)["cdc_lake"]["sequence"] == lake.lake.state.sequence
    rows.sort(key=lambda row: (row["sequence"], row["row"]))
    assert [(row["op"], row["statement"], *(image(row[name]) for name in ("before", "after"))) for row in rows] == [
        ("statement", f"CreateTable {database}.orders", None, None),
        ("insert", None, None, [1, "a"]), ("insert", None, None, [2, "é"]), ("insert", None, None, [3, "c"]),
        ("update", None, [3, "c"], [4, "d"]), ("delete", None, [1, "a"], None),
        ("insert", None, None, [1, "again"]), ("delete", None, [2, "é"], None),
        ("statement", f"AlterTable {database}.orders", None, None),
    ]  # fmt: skip
    for table, statement in (
        ("later", "TruncateTable {0}.later"), ("bare", "DropTable {0}.bare"),
        ("untouched", "RenameTable {0}.untouched to {0}.renamed"),
    ):  # fmt: skip
        told = [row["statement"] for row in lake.elsewhere(f"{CHANGES}/{database}/{table}")[2] if row["statement"]]
        assert sorted(told) == sorted([f"CreateTable {database}.{table}", statement.format(database)])


def image(columns: list[tuple[str, str]] | None) -> list[Any] | None:
    """The values of a row of ``orders`` as the changes have it, but what it took."""
    return columns and [next(iter(json.loads(text).values())) for name, text in columns if name != "took"]


@needs_iceberg
def test_names_of_columns_in_files_are_those_of_iceberg(spark: SparkSession) -> None:
    names = ["id", "2024", "_2024", "a.b", "a_x2Eb", "é", "a b", "$", "٣x", "x٣", "日本", "a-b", "_"]
    jvm: Any = spark._jvm
    written = jvm.org.apache.iceberg.avro.AvroSchemaUtil.makeCompatibleName
    assert [in_files(name) for name in names] == [written(name) for name in names]


def test_what_the_topic_does_not_tell(pair: Pair, kafka: Kafka, spark: SparkSession, tmp_path: Path) -> None:
    """A table is refused by its name where retention has cut off all but rows of it, or a record is missing, and the
    topics of a lake are known from before its first table on."""
    database, topic = "what_the_topic_does_not_tell", load_profile(pair.source).kafka.topic
    uri = Uri(load_profile(pair.source).mysql_resource_name, database, "old")

    def has(rows: int) -> bool:
        return sum(f'"{uri}"' in each and '"Add"' in each for each in json_lines(pair.source)) == rows

    run_well("cdc-producer", pair.source, "--until-current")
    with running("cdc-producer", pair.source):
        pair.on_leader("CREATE TABLE old (id INT PRIMARY KEY)", "INSERT INTO old VALUES (1)", database=database)
        until(lambda: has(1), what="the row that tells the columns")
        begin = end_offset(kafka, topic)
        pair.on_leader("INSERT INTO old VALUES (2)", database=database)
        pair.on_leader("INSERT INTO old VALUES (3)", database=database)
        until(lambda: has(3), what="rows that do not")
    lost = Opened(spark, without_record(pair.source, tmp_path, kafka, at=begin), tmp_path / "lost", "parquet")
    with pytest.raises(Refused, match=f"{database}.old"):
        lost.advance()
    assert lost.folder.load().gap == lost.folder.load().sequence - 1
    lost.folder.close()
    admin = kafka.admin()  # what it was asked for is dropped with it
    (cut,) = admin.delete_records([TopicPartition(topic, 0, begin)]).values()
    cut.result(LIMIT_SECONDS)
    lake = Opened(spark, pair.source, tmp_path / "lake", "parquet")
    with pytest.raises(Refused, match=f"{database}.old"):
        lake.advance()
    assert lake.folder.load().topics.keys() == {topic}
    lake.folder.close()


def without_record(profile: Path, folder: Path, kafka: Kafka, *, at: int) -> Path:
    """The profile of a topic that has what a leader's topic has, but for the record ``at`` an offset."""
    names = load_profile(profile).kafka.topics()
    copy = folder / "without.toml"
    copy.write_text(profile.read_text())
    change_profile(copy, kafka={"topic": f"{names.main}-without"})
    copied = load_profile(copy).kafka.topics()
    admin = kafka.admin()  # what it was asked for is dropped with it
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in (copied.main, copied.commits)]).values():
        made.result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for name, new in ((names.main, copied.main), (names.commits, copied.commits)):
        for message in reversed(list(backwards(load_profile(profile).kafka.properties(), (name, 0)))):
            if (name, message.offset()) != (names.main, at):
                producer.produce(new, message.value(), message.key(), headers=message.headers())
    producer.flush()
    return copy


def test_random_histories(
    tmp_path: Path,
    mysql_server: MySqlFactory,
    kafka: Kafka,
    lake_spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The law: at each moment, through kills, all tables are what the server held then, or are refused by name."""
    leader, chance, database = mysql_server(server_id=1), random.Random(f"{SEED} lake law"), DATABASE
    layout = {"layout": "per_table", "prefix": "lake."} if chance.random() < 0.5 else {}
    own = {"producer": {"start": "now"}, "filters": {"include_dbs": [database]}}
    profile = write_profile(tmp_path, leader, kafka, name=database, kafka=layout, **own)
    begin_now(profile, leader)
    with (tmp_path / "history.sql").open("w") as log:
        done = run_deeds(leader, database, chance, deeds=DEEDS, log=log)
    run_well("cdc-producer", profile, "--until-current")
    logged, found, form = records(profile), Counter[str](), chance.choice(list(FORMATS))
    form = form if DEEDS >= MANY else "parquet"  # the other two have tests of their own in make test
    at = sorted([*chance.sample(range(len(done.moments)), min(MOMENTS, len(done.moments))), len(done.moments) - 1])
    for moment in (done.moments[each] for each in dict.fromkeys(at)):
        sequence = max((each.sequence for each in logged if each.position < moment.position), default=-1)
        if sequence >= 0:
            lake = advanced_through_kills(lake_spark, profile, tmp_path / form, sequence, chance, found)
            try:
                compared(lake, moment, sequence, found)
            finally:
                lake.folder.close()
    with capsys.disabled():
        print(f"\n{form}: {dict(found)} (CDC_SEED={SEED})")
    # A short history may end without any row.
    assert found["equal"] + found["empty"] + found["refused"] > 0
    if DEEDS >= MANY:
        assert found["equal"] * 4 > found["refused"] and found["killed"]


def advanced_through_kills(
    spark: SparkSession, profile: Path, path: Path, sequence: int, chance: random.Random, found: Counter[str]
) -> Opened:
    """The lake as of ``sequence``, after runs that were killed at random points, and without what is refused."""
    left_out, form = set[Name](), path.name
    while True:
        lake = Opened(spark, profile, path, form, zero_dates="string", typed_json="record")
        lake.left_out, lake.lake.passed = left_out, killing(chance.randrange(12))
        try:
            lake.advance(sequence)
        except Killed:
            found["killed"] += 1
        except Refused as error:
            left_out |= set(error.names)
            found["refused"] += len(error.names)
        else:
            return lake
        lake.folder.close()


def killing(after: int) -> Callable[[str, str], None]:
    """Ends the run at that point of those that it passes."""
    points = iter(range(after))

    def passed(point: str, table: str) -> None:
        if next(points, None) is None:
            raise Killed(f"{point} {table}")

    return passed


def compared(lake: Opened, moment: Moment, sequence: int, found: Counter[str]) -> None:
    """The lake has the tables that the server had, but those that are left out, and exactly their rows."""
    which, database = f"CDC_SEED={SEED}, sequence {sequence}", DATABASE
    held = {each.name[1] for each in lake.lake.state.tables}
    for table, rows in moment.tables.items():
        if (database, table) in lake.left_out:
            continue
        if table not in held:
            assert not rows, f"{which}: {table} is not there"
            found["empty"] += 1
            continue
        there = lake.lines(folder_of(database, table))  # whose values may be lists
        if not rows:
            assert not there, f"{which}, {table}: {there}"
            continue
        types = [kind for _, kind in plan(lake.lake.state.history, (database, table), sequence, cut=False).columns]
        here, shown = Counter[tuple[Shown, ...]](), Counter[tuple[Shown, ...]]()
        for row, times in rows.items():
            here[server_row(row, types)] += times
        shown.update(typed_row(with_times(row, types), types) for row in there)
        assert shown == here, f"{which}, {table}: {shown - here}, {here - shown}"
        found["equal"] += 1
        changes_compared(lake, (database, table), sequence, which)
    gone = held - moment.tables.keys()
    assert not gone, f"{which}: {gone}"


def changes_compared(lake: Opened, name: Name, sequence: int, which: str) -> None:
    """A table of changes has what was logged under its name, as one question to the topics has it, once."""
    every = changes(lake.spark, lake.profile, upto=sequence)
    of_table = every.where((F.col("database") == name[0]) & (F.col("table") == name[1]))
    logged = Counter(map(str, of_table.drop("database", "table").collect()))
    appended = lake.read(f"{CHANGES}/{folder_of(*name)}").persist()
    there = Counter(map(str, appended.where("op != 'statement'").drop("statement").collect()))
    assert there == logged, f"{which}, changes of {name}: {there - logged}, {logged - there}"
    acts = [act for act in lake.lake.state.history.acts if act.action in STATEMENTS and acts_on(act, name)]
    told = appended.where("op = 'statement'").select("sequence", "row").collect()
    assert sorted(map(tuple, told)) == sorted((act.sequence, act.place) for act in acts), f"{which}: {name}"
    appended.unpersist()


def acts_on(act: Act, name: Name) -> bool:
    """Whether a statement is on what is called so, before or after it."""
    if act.action == "DropDatabase":
        return Uri.parse(act.uri).database == name[0]
    return name in (table_name(act.uri), act.to and table_name(act.to))


def with_times(row: Sequence[Any], types: list[str]) -> list[Any]:
    """A TIME as ``cdc.spark.table`` has it."""
    is_time = [value is not None and read_type(kind).name == "time" for value, kind in zip(row, types, strict=True)]
    return [timedelta(microseconds=value) if of else value for value, of in zip(row, is_time, strict=True)]
