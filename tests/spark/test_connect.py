"""Tables and audits by a server of Spark Connect and the package pyspark-client: as in a session with a JVM."""

import json
import os
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import pyspark
import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.process import free_port, wait_until
from cdc.spark import changes, schema, table, tables
from cdc.spark.report.files import JSON, KEYS
from cdc.spark.verdict import audit
from tests.harness.pair import Pair
from tests.harness.programs import run_well, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.integration.pair.test_types import DURABLE_ENOUGH, execute, load

pytestmark = [pytest.mark.spark, pytest.mark.integration]

ROOT = Path(__file__).parents[2]
CHOICES = {"zero_dates": "string", "typed_json": "record"}
NAMES = ("cdc_types.t_int", "cdc_types.t_dec", "cdc_types.t_float", "cdc_types.t_bit", "cdc_types.t_str",
         "connect.odd")  # fmt: skip
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from cdc.errors import UserError
import cdc.spark
from cdc.spark import changes, schema, table, tables
address, profile, names, choices = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
spark = SparkSession.builder.remote(address).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
refused = []
landed = {"from_lake": "s3a://bucket/landed"}
for call in (lambda: table(spark, profile, names[0]), lambda: cdc.spark.audit(spark, profile, profile, **landed)):
    try:
        call()
    except UserError as error:
        refused.append([error.code, error.hint])
spark.conf.set("spark.sql.variable.substitute", "false")
texts = "to_json(struct(*), map('ignoreNullFields', 'false')) AS text"
frames = [tables(spark, profile), changes(spark, profile, names[0])]
for name in names:
    frames += [table(spark, profile, name, **choices), schema(spark, profile, name)]
print(json.dumps([refused, [sorted(row.text for row in frame.selectExpr(texts).collect()) for frame in frames]]))
"""
AUDIT = """
import json, sys
from pyspark.sql import SparkSession
from cdc.spark import audit
address, report, leader, follower, consumer = sys.argv[1:]
spark = SparkSession.builder.remote(address).getOrCreate()
before = spark.conf.getAll
verdict = audit(spark, leader, follower, consumer=consumer, report=report)
assert before == spark.conf.getAll and not spark.catalog.listTables()
texts = "to_json(struct(*), map('ignoreNullFields', 'false')) AS text"
frames = [verdict.tables, verdict.drift, verdict.foreign]
rows = [sorted(row.text for row in frame.selectExpr(texts).collect()) for frame in frames]
print(json.dumps([str(verdict), verdict.exit_status, rows, [frame.dtypes for frame in frames]]))
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with cdc and pyspark-client, without PySpark."""
    folder = tmp_path_factory.mktemp("client")
    venv.create(folder, with_pip=True)
    install = ["-m", "pip", "install", "--quiet", "--editable", ROOT, f"pyspark-client=={pyspark.__version__}"]
    subprocess.run([folder / "bin/python", *install], check=True)
    return folder / "bin/python"


@dataclass(frozen=True)
class Server:
    """A server of Spark Connect: its ``address``, and that of its web page."""

    address: str
    page: str

    def persisted(self) -> object:
        """The persisted data that the server still has."""
        (application,) = self._asked("")
        return self._asked(f"/{application['id']}/storage/rdd")

    def _asked(self, path: str) -> Any:
        with urlopen(f"{self.page}/api/v1/applications{path}") as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server


def said_by(client: Path, code: str, *given: object) -> list[Any]:
    """What ``code`` prints as JSON."""
    done = subprocess.run([client, "-c", code, *map(str, given)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[Any] = json.loads(done.stdout)
    return found


@pytest.mark.long
def test_the_same_rows(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, spark: SparkSession, client: Path, connect: Server
) -> None:
    """`make test` has test_tables."""
    leader = mysql_server(*DURABLE_ENOUGH, server_id=3)
    load(leader)
    execute(
        leader, "CREATE DATABASE connect", "CREATE TABLE connect.odd (`${env:HOME}` INT PRIMARY KEY, t TEXT)",
        "INSERT INTO connect.odd VALUES (1, '${spark.master}'), (2, 'é\"')", "UPDATE connect.odd SET t = NULL",
        "ALTER TABLE connect.odd ADD n INT DEFAULT 7",
    )  # fmt: skip
    profile = write_profile(tmp_path, leader, kafka, name="connected")
    run_well("cdc-producer", profile, "--until-current")
    refused, found = said_by(client, CLIENT, connect.address, profile, json.dumps(NAMES), json.dumps(CHOICES))
    assert refused == [
        ["CDC-SPARK-CONNECT-SETTINGS",
         'for name, value in [("spark.sql.variable.substitute", "false")]: spark.conf.set(name, value)'],
        ["CDC-SPARK-CONNECT-AUDIT", refused[1][1]],
    ]  # fmt: skip
    frames = [tables(spark, profile), changes(spark, profile, NAMES[0])]
    for name in NAMES:
        frames += [table(spark, profile, name, **CHOICES), schema(spark, profile, name)]
    texts = "to_json(struct(*), map('ignoreNullFields', 'false')) AS text"
    expected = [sorted(row.text for row in frame.selectExpr(texts).collect()) for frame in frames]
    assert found == expected
    assert all(expected)


@pytest.mark.long
def test_the_same_verdicts(pair: Pair, spark: SparkSession, tmp_path: Path, client: Path, connect: Server) -> None:
    """`make test` has test_verdict."""
    database = "the_same_verdicts"

    def audited(expected: str) -> tuple[list[list[str]], dict[str, Any]]:
        """The rows and the report of an audit over Spark Connect, which are those of one in a session with a JVM."""
        for profile in (pair.source, pair.capture):
            run_well("cdc-producer", profile, "--until-current")
        profiles, reports = (pair.source, pair.capture, pair.target), [tmp_path / name for name in ("there", "here")]
        said = said_by(client, AUDIT, f"{connect.address}/;session_id={uuid4()}", reports[0], *profiles)
        verdict = audit(spark, pair.source, pair.capture, consumer=pair.target, report=reports[1])
        frames = [verdict.tables, verdict.drift, verdict.foreign]
        texts = "to_json(struct(*), map('ignoreNullFields', 'false')) AS text"
        rows = [sorted(row.text for row in frame.selectExpr(texts).collect()) for frame in frames]
        types = [[list(each) for each in frame.dtypes] for frame in frames]
        assert said == [str(verdict), verdict.exit_status, rows, types]
        assert said[0] == expected
        assert wait_until(lambda: connect.persisted() == [], seconds=60)
        there, here = (report_in(folder) for folder in reports)
        assert there == here
        keys = [sorted((folder / KEYS).read_text().splitlines()) if rows[1] else [] for folder in reports]
        assert keys[0] == keys[1]
        return rows, here

    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(9, 2), s VARCHAR(40), at DATETIME(6))", "CREATE TABLE k (n INT)",
        "INSERT INTO t WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 300) "
        "SELECT n, n / 3, CONCAT('é${env:HOME}', n), '2026-11-28 12:00:00.123456' FROM r",
        "INSERT INTO k VALUES (1), (1), (2)", "UPDATE t SET s = '\\'\"' WHERE id = 7", database=database,
    )  # fmt: skip
    pair.replicate()
    rows, _ = audited("no drift")
    assert [len(each) for each in rows] == [2, 0, 0]
    # Rows that the leader has and the follower has not yet are no drift.
    pair.on_leader("INSERT INTO t (id) VALUES (1000), (1001)", "ALTER TABLE k ADD m INT", database=database)
    _, report = audited("no drift")
    assert report["behind_records"] > 0
    pair.replicate()
    pair.on_follower(
        "DELETE FROM t WHERE id = 5", "UPDATE t SET d = 1 WHERE id = 6", "INSERT INTO k (n) VALUES (1)",
        "CREATE TABLE extra (id INT)", database=database,
    )  # fmt: skip
    rows, _ = audited("drift")
    assert [len(each) for each in rows] == [2, 3, 4]
    # More rows than a report lists: their keys are read from those that were written.
    pair.on_follower("UPDATE t SET s = 'x' WHERE id > 100", database=database)
    rows, report = audited("drift")
    assert len(rows[1]) == report["drifted_rows"] == 205


def report_in(folder: Path) -> dict[str, Any]:
    """The report of an audit without what depends on the moment."""
    report: dict[str, Any] = json.loads((folder / JSON).read_text(encoding="utf-8"))
    for name in ("audited_at", "ages_seconds", "behind_seconds", "repair"):
        report.pop(name, None)
    return report


@contextmanager
def connect_server(folder: Path) -> Iterator[Server]:
    """A server of Spark Connect that runs in the block."""
    home, port, page = Path(pyspark.__file__).parent, free_port(), free_port()
    jars = ",".join(map(str, spark_connector_jars(pyspark.__version__)))
    settings = {
        "spark.connect.grpc.binding.port": port, "spark.ui.port": page, "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": folder / "warehouse",
    }  # fmt: skip
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    named = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--jars", jars]
    command = [home / "bin/spark-submit", "--master", "local[2]", *named, *given, "spark-internal"]
    log = folder / "connect.log"
    with log.open("w") as written:
        server = subprocess.Popen(command, stderr=written, cwd=folder, env=os.environ | {"SPARK_HOME": str(home)})
    try:
        assert wait_until(lambda: "Spark Connect server started" in log.read_text(), seconds=300)
        yield Server(f"sc://localhost:{port}", f"http://localhost:{page}")
    finally:
        server.terminate()
        server.wait()
