"""A lake whose tables are in a catalog that others use: an Iceberg REST catalog, or a Hive metastore."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from cdc.config.profile import load as load_profile
from cdc.errors import UserError
from cdc.lake.catalog_file import CatalogFile
from cdc.lake.change_tables import ChangeTables
from cdc.lake.folder import LakeFolder
from cdc.lake.formats.iceberg import IcebergTables
from cdc.lake.formats.iceberg_catalog import CatalogGone, SharedCatalog
from cdc.lake.pipeline import Lake, Refused, Run
from cdc.lake.program import identity
from cdc.sandbox.fetch.jars import lake_jars, spark_connector_jars
from cdc.spark.folders import LocalFolder
from cdc.spark.frames.messages import Source
from cdc.spark.frames.typed import Options
from tests.harness.iceberg_catalogs import CatalogServer, catalog_server
from tests.harness.lossy_catalog import lossy_catalog
from tests.harness.pair import Pair
from tests.harness.programs import BIN, run_well
from tests.harness.wait import LIMIT_SECONDS
from tests.spark.test_cdc_audit import QUICK
from tests.spark.test_lake import Killed, needs_iceberg
from tests.spark.test_object_store import LAKE

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.long, needs_iceberg]


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    with catalog_server("rest", tmp_path_factory.mktemp("rest")) as started:
        yield started


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    with catalog_server("hive", tmp_path_factory.mktemp("hive")) as started:
        yield started


class Opened:
    """A lake in ``folder`` with its tables in a catalog, as a run of cdc-lake has it."""

    def __init__(self, spark: SparkSession, profile: Path, folder: Path, file: CatalogFile, database: str) -> None:
        self.spark, self.profile, self.file = spark, load_profile(profile), file
        place = LocalFolder(folder)
        self.folder = LakeFolder(place, identity(self.profile, "iceberg", history=True, catalog=file))
        self.folder.identifier = file.identifier
        self.catalog = SharedCatalog(spark, file, self.folder.owner())
        tables, state = IcebergTables(spark, place, self.catalog), self.folder.load()
        self.lake = Lake(
            self.folder, tables, self.profile, Options(), lambda name: name[0].startswith(database), state,
            catalog=self.catalog, changes=ChangeTables(tables, lambda name: name == (database, "orders")),
        )  # fmt: skip

    def advance(self) -> Run:
        return self.lake.advance(Source.of(self.spark, self.profile))

    def refused(self) -> Refused:
        with pytest.raises(Refused) as refused:
            self.advance()
        return refused.value

    def rows(self, identifier: str, columns: str = "*") -> Counter[tuple[Any, ...]]:
        name = ".".join(f"`{part}`" for part in (self.catalog.name, *identifier.split(".")))
        return Counter(map(tuple, self.spark.sql(f"SELECT {columns} FROM {name}").collect()))

    def names(self, namespace: str) -> set[str]:
        return {row["tableName"] for row in self.spark.sql(f"SHOW TABLES IN {self.catalog.name}.{namespace}").collect()}

    def elsewhere(self, identifier: str) -> tuple[int | None, list[dict[str, Any]]]:
        """The snapshot and the rows of a table, as a reader that is not Spark has them."""
        if self.file.kind == "rest":
            found = RestCatalog("lake", uri=self.file.uri).load_table(tuple(identifier.split(".")))
            assert found.current_snapshot() is not None
            return found.metadata.current_snapshot_id, found.scan().to_arrow().to_pylist()
        name = f"{self.catalog.name}.{identifier}"
        [row] = self.spark.sql(
            f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
        ).collect()
        static = StaticTable.from_metadata(row["file"])
        return static.metadata.current_snapshot_id, static.scan().to_arrow().to_pylist()


def test_a_lake_in_a_rest_catalog(pair: Pair, lake_spark: SparkSession, tmp_path: Path, rest: CatalogServer) -> None:
    """`make test` has test_lake.test_a_lake_follows_its_leader, and refusals in unit tests."""
    follows(pair, lake_spark, tmp_path, rest, "a_lake_in_a_rest_catalog")


def test_a_lake_in_a_hive_metastore(pair: Pair, lake_spark: SparkSession, tmp_path: Path, hive: CatalogServer) -> None:
    """`make test` has test_lake.test_a_lake_follows_its_leader, and refusals in unit tests."""
    follows(pair, lake_spark, tmp_path, hive, "a_lake_in_a_hive_metastore")


def follows(pair: Pair, lake_spark: SparkSession, tmp_path: Path, server: CatalogServer, database: str) -> None:
    file = CatalogFile(server.kind, {"uri": server.uri, "warehouse": server.warehouse})

    def opened() -> Opened:
        return Opened(lake_spark, pair.source, tmp_path / "lake", file, database)

    def changed(*statements: str) -> None:
        pair.on_leader(*statements, database=database)
        run_well("cdc-producer", pair.source, "--until-current")

    changed(
        "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO orders VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE `Odd é-1` (n INT)", "INSERT INTO `Odd é-1` VALUES (1), (1)",
        "CREATE TABLE cased (id INT PRIMARY KEY)", "INSERT INTO cased VALUES (1)",
        "CREATE TABLE Cased (id INT PRIMARY KEY)", "INSERT INTO Cased VALUES (2)",
        "CREATE TABLE theirs (id INT PRIMARY KEY)", "INSERT INTO theirs VALUES (1)",
        "CREATE TABLE taken (id INT PRIMARY KEY)", "INSERT INTO taken VALUES (1)",
    )  # fmt: skip
    lake = opened()
    theirs = f"{lake.catalog.name}.{database}.theirs"
    lake_spark.sql(f"CREATE NAMESPACE {lake.catalog.name}.{database}")
    lake_spark.sql(f"CREATE TABLE {theirs} USING iceberg AS SELECT 99 AS other")
    if server.kind == "rest":
        lake_spark.sql(f"CREATE VIEW {lake.catalog.name}.{database}.taken AS SELECT 1 AS other")
    else:
        make_hive_table(lake_spark, server, database, "taken")
    refused = lake.refused()
    same = {(database, "cased"), (database, "Cased")} if server.kind == "hive" else set()
    assert set(refused.names) == {(database, "theirs"), (database, "taken")} | same
    assert {refused.run.refused[database, name].code for name in ("theirs", "taken")} == {"CDC-LAKE-CATALOG-TABLE"}
    assert {refused.run.refused[name].code for name in same} <= {"CDC-LAKE-CATALOG-NAMES"}
    odd = lake.catalog.identifier(f"{database}/Odd~20~~e9~-1")
    assert lake.rows(f"{database}.orders") == Counter([(1, "a"), (2, "b")])
    assert lake.rows(odd) == Counter({(1,): 2})
    if not same:
        assert [lake.rows(f"{database}.{name}") for name in ("cased", "Cased")] == [Counter([(1,)]), Counter([(2,)])]

    another = Opened(lake_spark, pair.source, tmp_path / "another", file, database)
    another.lake.changes = None
    assert (database, "orders") in another.refused().names, "a table of another lake"
    another.folder.close()

    changed(
        "UPDATE orders SET name = 'B' WHERE id = 2", "INSERT INTO orders VALUES (3, 'c')", "DROP TABLE `Odd é-1`",
        "DROP TABLE theirs", "DROP TABLE taken", "DROP TABLE Cased",
    )  # fmt: skip
    lake.lake.passed = killed
    with pytest.raises(Killed):
        lake.advance()
    lake.folder.close()
    lake = opened()
    run = lake.advance()
    assert run.counts["removed"] == (1 if same else 2)
    assert lake.rows(theirs.partition(".")[2]) == Counter([(99,)]), "never touched"
    assert lake.rows(f"{database}.orders") == Counter([(1, "a"), (2, "B"), (3, "c")])
    assert lake.rows(f"{database}.cased") == Counter([(1,)])
    assert lake.names(database) == {"orders", "cased", "theirs"}
    [dropped] = [name for name in lake.names(f"{database}_dropped") if name.lower().startswith("odd")]
    assert lake.rows(f"{database}_dropped.{dropped}") == Counter({(1,): 2})
    listed = {each["identifier"]: each for each in json.loads((tmp_path / "lake/lake.json").read_text())["tables"]}
    assert listed.keys() == {f"{database}.orders", f"{database}.cased"}
    snapshot, rows = lake.elsewhere(f"{database}.orders")
    assert snapshot == listed[f"{database}.orders"]["version"]
    assert sorted(row["name"] for row in rows) == ["B", "a", "c"]
    assert Counter(name for (name,) in lake.rows(f"{database}_history.orders", "op").elements()) == {
        "statement": 1,
        "insert": 3,
        "update": 1,
    }, "each change once"

    for number in range(6):
        changed(f"INSERT INTO orders VALUES ({10 + number}, 'x')")
        assert lake.advance().counts["merged"] == 1
    lake.lake.maintain()
    changed("ALTER TABLE orders ADD more INT DEFAULT 7", "TRUNCATE cased", "DELETE FROM orders WHERE id >= 10")
    assert lake.advance().counts == {
        "kept": 0, "merged": 0, "written": 1, "emptied": 1, "without columns yet": 0, "removed": 0,
    }  # fmt: skip
    assert lake.rows(f"{database}.orders") == Counter([(1, "a", 7), (2, "B", 7), (3, "c", 7)])
    assert lake.rows(f"{database}.cased") == Counter()

    lake_spark.sql(f"DROP TABLE {lake.catalog.name}.{database}.orders")
    lake_spark.sql(f"CREATE TABLE {lake.catalog.name}.{database}.orders USING iceberg AS SELECT 5 AS theirs")
    changed("UPDATE orders SET more = 8 WHERE id = 1")
    assert lake.refused().names == [(database, "orders")]
    changed("DROP TABLE orders")
    lake.advance()
    assert lake.rows(f"{database}.orders") == Counter([(5,)]), "a table of others is not renamed either"
    lake.folder.close()


def make_hive_table(spark: SparkSession, server: CatalogServer, database: str, table: str) -> None:
    """Makes a table that is none of Iceberg."""
    jvm: Any = spark._jvm
    api = jvm.org.apache.hadoop.hive.metastore.api
    settings = jvm.org.apache.hadoop.hive.conf.HiveConf()
    made, stored, form = api.Table(), api.StorageDescriptor(), api.SerDeInfo()
    settings.set("hive.metastore.uris", server.uri)
    form.setSerializationLib("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")
    stored.setSerdeInfo(form)
    columns = jvm.java.util.ArrayList()
    columns.add(api.FieldSchema("other", "int", ""))
    stored.setCols(columns)
    made.setDbName(database)
    made.setTableName(table)
    made.setSd(stored)
    made.setParameters(jvm.java.util.HashMap())
    made.setPartitionKeys(jvm.java.util.ArrayList())
    jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(settings).createTable(made)


def test_a_rest_catalog_that_is_away(pair: Pair, lake_spark: SparkSession, tmp_path: Path, rest: CatalogServer) -> None:
    """`make test` has test_lake.test_a_lake_follows_its_leader."""
    goes_on(pair, lake_spark, tmp_path, rest, "a_rest_catalog_that_is_away")


def test_a_hive_metastore_that_is_away(
    pair: Pair, lake_spark: SparkSession, tmp_path: Path, hive: CatalogServer
) -> None:
    """`make test` has test_lake.test_a_lake_follows_its_leader."""
    goes_on(pair, lake_spark, tmp_path, hive, "a_hive_metastore_that_is_away")


def goes_on(pair: Pair, lake_spark: SparkSession, tmp_path: Path, server: CatalogServer, database: str) -> None:
    properties = {"uri": server.uri, "warehouse": server.warehouse, "rest.client.max-retries": "1"}
    properties["hadoop.iceberg.hive.lock-creation-timeout-ms"] = "3000"  # otherwise minutes
    lake = Opened(lake_spark, pair.source, tmp_path / "lake", CatalogFile(server.kind, properties), database)

    def changed(*statements: str) -> None:
        pair.on_leader(*statements, database=database)
        run_well("cdc-producer", pair.source, "--until-current")

    changed("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    lake.advance()
    changed("INSERT INTO orders VALUES (2)")
    server.stop()
    try:
        with pytest.raises(CatalogGone, match="does not answer"):
            lake.advance()
    finally:
        server.start()
    assert lake.advance().counts["merged"] == 1
    assert lake.rows(f"{database}.orders") == Counter([(1,), (2,)])

    def stopped(point: str, table: str) -> None:
        if point == "before" and table.startswith(f"{database}.orders"):
            server.stop()

    changed("INSERT INTO orders VALUES (3)", "DELETE FROM orders WHERE id = 1")
    lake.lake.passed = stopped
    try:
        with pytest.raises(CatalogGone):
            lake.advance()
    finally:
        server.start()
    lake.lake.passed = lambda point, table: None
    lake.advance()
    assert lake.rows(f"{database}.orders") == Counter([(2,), (3,)])
    lake.folder.close()


def test_a_catalog_that_refuses(pair: Pair, lake_spark: SparkSession, tmp_path: Path, rest: CatalogServer) -> None:
    """A user may lack rights, and a catalog may rename no tables. `make test` has
    test_lake.test_a_lake_follows_its_leader.
    """
    database = "a_catalog_that_refuses"

    def changed(*statements: str) -> None:
        pair.on_leader(*statements, database=database)
        run_well("cdc-producer", pair.source, "--until-current")

    changed("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    changed("CREATE TABLE old (id INT PRIMARY KEY)", "INSERT INTO old VALUES (1)")
    with lossy_catalog(rest.uri) as proxy:
        file = CatalogFile("rest", {"uri": proxy.uri, "rest.client.max-retries": "1"})
        lake = Opened(lake_spark, pair.source, tmp_path / "lake", file, database)

        def refuses(part: str, status: int, name: str) -> str:
            proxy.refused = {part: (status, name)}
            with pytest.raises(UserError, match="refused by the test") as refused:
                lake.advance()
            proxy.refused = {}
            assert refused.value.code == "CDC-LAKE-CATALOG-REFUSES"
            return str(refused.value)

        refuses("/v1/", 401, "NotAuthorizedException")
        refuses("/tables/orders", 403, "ForbiddenException")
        assert lake.advance().counts["written"] == 2
        changed("DROP TABLE old", "INSERT INTO orders VALUES (2)")
        for status, name in ((501, "UnsupportedOperationException"), (403, "ForbiddenException")):
            assert f"table {database}.old of catalog" in refuses("/tables/rename", status, name)
        proxy.refused = {"/tables/rename": (501, "UnsupportedOperationException")}
        lake_spark.sql(f"DROP TABLE {lake.catalog.name}.{database}.old")
        lake.advance()
        assert lake.names(database) == {"orders"}
        assert lake.rows(f"{database}.orders") == Counter([(1,), (2,)])
        lake.folder.close()


def test_tables_of_changes_with_one_name(
    pair: Pair, lake_spark: SparkSession, tmp_path: Path, rest: CatalogServer, hive: CatalogServer
) -> None:
    """Those of a lake whose leader has a database that is called as one of changes, and of tables of one name in Hive.
    `make test` has the refusals in unit tests.
    """
    database = "tables_of_changes_with_one_name"
    pair.on_leader(
        f"CREATE DATABASE {database}_history", f"CREATE TABLE {database}_history.orders (id INT PRIMARY KEY)",
        f"INSERT INTO {database}_history.orders VALUES (7)", "CREATE TABLE orders (id INT PRIMARY KEY)",
        "INSERT INTO orders VALUES (1)", "CREATE TABLE Other (id INT PRIMARY KEY)", "INSERT INTO Other VALUES (2)",
        "CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (3)",
        "CREATE TABLE free (id INT PRIMARY KEY)", "INSERT INTO free VALUES (4)", database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    for server in (rest, hive):
        file = CatalogFile(server.kind, {"uri": server.uri, "warehouse": server.warehouse})
        lake = Opened(lake_spark, pair.source, tmp_path / server.kind, file, database)
        assert lake.lake.changes is not None
        lake.lake.changes.selects = lake.lake.selects
        of_case = {(database, "Other"), (database, "other")} if server.kind == "hive" else set()
        for _ in range(2):
            refused = lake.refused()
            assert set(refused.names) == {(database, "orders")} | of_case
            assert {why.code for why in refused.run.refused.values()} == {"CDC-LAKE-CATALOG-NAMES"}
        assert lake.rows(f"{database}_history.orders") == Counter([(7,)])
        assert lake.rows(f"{database}.free") == Counter([(4,)])
        assert lake.rows(f"{database}_history.free", "op") == Counter([("statement",), ("insert",)])
        lake.folder.close()
    pair.on_leader(f"DROP DATABASE {database}_history")


def test_a_metastore_that_refuses(pair: Pair, lake_spark: SparkSession, tmp_path: Path, hive: CatalogServer) -> None:
    """It answers with the same exception that a client has for one that is away. `make test` has
    test_lake.test_a_lake_follows_its_leader.
    """
    database = "a_metastore_that_refuses"
    pair.on_leader("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1)", database=database)
    run_well("cdc-producer", pair.source, "--until-current")
    (tmp_path / "no-folder").touch()
    file = CatalogFile("hive", {"uri": hive.uri, "warehouse": (tmp_path / "no-folder/warehouse").as_uri()})
    lake = Opened(lake_spark, pair.source, tmp_path / "lake", file, database)
    with pytest.raises(UserError, match="no-folder") as refused:
        lake.advance()
    assert refused.value.code == "CDC-LAKE-CATALOG-REFUSES"
    lake.folder.close()


def test_a_commit_of_which_nothing_is_known(
    pair: Pair, lake_spark: SparkSession, tmp_path: Path, rest: CatalogServer
) -> None:
    """The catalog has committed, and its answer is lost. Iceberg for Spark 4.1 and newer finds out by itself that a
    commit to a table that was there before has been made. `make test` has test_lake.test_a_lake_follows_its_leader.
    """
    database, raising = "a_commit_of_which_nothing_is_known", 1 if lake_spark.version >= "4.1" else len(ROUNDS)

    def changed(*statements: str) -> None:
        pair.on_leader(*statements, database=database)
        run_well("cdc-producer", pair.source, "--until-current")

    with lossy_catalog(rest.uri) as proxy:
        file = CatalogFile("rest", {"uri": proxy.uri, "rest.client.max-retries": "1"})
        lake = Opened(lake_spark, pair.source, tmp_path / "lake", file, database)
        for number, statements in enumerate(ROUNDS):
            changed(*statements)
            lake.lake.passed = lambda point, table: setattr(proxy, "losing", 502 if point == "before" else proxy.losing)
            lost = proxy.lost
            with pytest.raises(CatalogGone) if number < raising else suppress(CatalogGone):
                lake.advance()
            assert proxy.lost > lost
            proxy.losing, lake.lake.passed = 0, lambda point, table: None
            lake.advance()
            assert lake.rows(f"{database}.orders") == Counter((row,) for row in range(number + 1))
            assert lake.rows(f"{database}_history.orders", "count(*)") == Counter([(number + 2,)])
        lake.folder.close()


ROUNDS = (
    ("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (0)"),
    ("INSERT INTO orders VALUES (1)",),
    ("CREATE INDEX again ON orders (id)", "INSERT INTO orders VALUES (2)"),
)
"""A table is created, merged into, and replaced."""


def test_no_secret_gets_out(pair: Pair, tmp_path: Path, rest: CatalogServer) -> None:
    """Neither into what the program writes, nor into Spark's log of events or the arguments of a process. `make test`
    has tests/unit/lake/test_catalog_file.py.
    """
    database, events, secrets = "no_secret_gets_out", tmp_path / "events", ("a-client:with-a-secret", "a-word-for-s3")
    events.mkdir()
    file = tmp_path / "catalog.toml"
    file.write_text(
        f'type = "rest"\nuri = "{rest.uri}"\nwarehouse = "{rest.warehouse}"\ncredential = "{secrets[0]}"\n'
        f's3.secret-access-key = "{secrets[1]}"\nscope = "any"\n'
    )
    pair.on_leader("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1), (2)", database=database)
    run_well("cdc-producer", pair.source, "--until-current")
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }

    def run(*options: str | Path) -> "subprocess.CompletedProcess[str]":
        spark = version("pyspark")
        jars = ",".join(map(str, [*spark_connector_jars(spark), *lake_jars(spark)]))
        settings = [word for name, value in logged.items() for word in ("--conf", f"{name}={value}")]
        line = [BIN / "spark-submit", "--master", "local[2]", "--jars", jars, "--driver-java-options", QUICK, *settings]
        own = dict(os.environ) | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
        given = [LAKE, pair.source, "--to", tmp_path / "lake", "--format", "iceberg", "--tables", f"{database}.*"]
        return subprocess.run(
            [*line, *given, *options], env=own, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )

    done = run("--catalog", file)
    assert done.returncode == 0 and "1 written" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
    found = RestCatalog("lake", uri=rest.uri).load_table((database, "orders"))
    assert sorted(row["id"] for row in found.scan().to_arrow().to_pylist()) == [1, 2]
    texts = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file() and each != file]
    assert any(b"spark.sql.catalog.cdc_lake_" in each for each in texts), "the log of events has settings"
    for secret in secrets:
        assert secret not in done.stdout + done.stderr
        assert not any(secret.encode() in each for each in texts)
    without = run()
    assert without.returncode == 2 and "it is 'none'" in without.stdout, without.stdout[-3000:]


def killed(point: str, table: str) -> None:
    if point == "removed":
        raise Killed
