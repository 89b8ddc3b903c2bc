"""Tables through a server of Spark Connect, by the package pyspark-client: the same rows as in a session with a JVM."""

import json
import os
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.fetch.jars import spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.process import free_port, wait_until
from cdc.spark import changes, schema, table, tables
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
for call in (lambda: table(spark, profile, names[0]), lambda: cdc.spark.audit(spark, profile, profile)):
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


@pytest.mark.long
def test_the_same_rows(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, spark: SparkSession) -> None:
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
    venv.create(tmp_path / "client", with_pip=True)
    python = tmp_path / "client/bin/python"
    install = [python, "-m", "pip", "install", "--quiet", "--editable", ROOT, f"pyspark-client=={pyspark.__version__}"]
    subprocess.run(install, check=True)
    with connect_server(tmp_path) as address:
        given = [address, profile, json.dumps(NAMES), json.dumps(CHOICES)]
        done = subprocess.run([python, "-c", CLIENT, *given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    refused, found = json.loads(done.stdout)
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


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a server of Spark Connect that runs in the block."""
    home, port = Path(pyspark.__file__).parent, free_port()
    jars = ",".join(map(str, spark_connector_jars(pyspark.__version__)))
    settings = {
        "spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC",
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
        yield f"sc://localhost:{port}"
    finally:
        server.terminate()
        server.wait()
