"""The audit on a cluster: executors that are processes without Python, a skewed table, and many small ones."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from cdc.sandbox.kafka import Kafka
from tests.programs import BIN
from tests.spark.streams import Stream, Table, both
from tests.spark.test_cdc_audit import QUICK, environment, published
from tests.wait import LIMIT_SECONDS

pytestmark = pytest.mark.spark

TABLES = int(os.environ.get("CDC_TABLES", "200"))
TABLES_A_TRANSACTION = 50
HOT = 1_000  # changes of one row; those of the same table's other rows come on top


def skewed() -> tuple[Stream, Stream]:
    """Many tables of one row, and one table that has nearly all changes of rows, half of them of one row."""
    small = [Table(f"db/t{number}", ["id", "v"], ["id"]) for number in range(TABLES)]
    large = Table("db/large", ["id", "v"], ["id"])
    firsts = range(0, TABLES, TABLES_A_TRANSACTION)
    history = [[table.add((1, "x")) for table in small[first : first + TABLES_A_TRANSACTION]] for first in firsts]
    history.append([large.add((0, "0"))])
    for number in range(0, HOT, 100):
        steps = range(number, number + 100)
        history.append([large.update(*(((0, str(step)), (0, str(step + 1))) for step in steps))])
        history.append([large.add(*((step + 1, "new") for step in steps))])
    return both(*history)


def test_a_cluster_of_two_executors(kafka: Kafka, tmp_path: Path) -> None:
    leader, follower = skewed()
    follower.transaction(Table("db/t77", ["id", "v"], ["id"]).update(((1, "x"), (1, "y"))))
    options = published(kafka, tmp_path, leader, follower)
    # The driver alone has a Python.
    pythons = {"PYSPARK_DRIVER_PYTHON": str(BIN / "python"), "PYSPARK_PYTHON": "/nonexistent"}
    settings = environment(PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", **pythons)
    line = ["spark-submit", "--master", "local-cluster[2,1,1024]", "--jars", settings["CDC_SPARK_JARS"]]
    line += ["--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=1g"]
    # The JVMs end before their second compiler would be of use.
    line += ["--driver-java-options", QUICK, "--conf", f"spark.executor.extraJavaOptions={QUICK}"]
    # What reaches the driver is a line a table, whatever the number of rows.
    line += ["--conf", "spark.driver.maxResultSize=16m", "cdc/spark/audit.py", *options]
    done = subprocess.run(line, env=settings, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 1, done.stderr[-4000:] + done.stdout[-4000:]
    told = json.loads((tmp_path / "report/report.json").read_text())
    assert (told["verdict"], told["drifted_rows"], len(told["tables"])) == ("drift", 1, TABLES + 1)
    (row,) = told["drifted"]
    assert (row["table"], row["kind"], row["columns"]) == ("t77", "different", ["v"])
    (large,) = [line for line in told["tables"] if line["table"] == "large"]
    assert large["leader_rows"] == large["follower_rows"] == HOT + 1
