"""The audit on a cluster: executors that are processes without Python, a skewed table, and many small ones."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.spark.job.launch import mapped
from tests.generators.streams import Stream, Table, both, checkpoint, tutorial
from tests.harness.programs import BIN
from tests.harness.wait import LIMIT_SECONDS
from tests.spark.conftest import archive_of_classes
from tests.spark.test_cdc_audit import PET, QUICK, environment, published
from tests.spark.test_watch import open_to_others

pytestmark = pytest.mark.spark

TABLES = int(os.environ.get("CDC_TABLES", "20"))
# Those that executors may not share.
FOLDERS = ["state", "report"]
TABLES_A_TRANSACTION = 10
HOT = 1_000  # changes of one row; those of the same table's other rows come on top
EXECUTORS = 2


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


# One cluster for all: what costs most is to start it.
DRIVER = """
import json, sys
from cdc.spark.audit import main

for options in json.loads(sys.argv[1]):
    status = main(options)
    print(f"exit status {status}", flush=True)
sys.exit(status)
"""


def on_cluster(audits: Sequence[Sequence[str]], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Audits on a cluster whose executors have another working directory than the driver, which has ``folder``."""
    (folder / "driver.py").write_text(DRIVER)
    # The driver alone has a Python.
    pythons = {"PYSPARK_DRIVER_PYTHON": str(BIN / "python"), "PYSPARK_PYTHON": "/nonexistent"}
    settings = environment(PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", **pythons)
    line = ["spark-submit", "--master", f"local-cluster[{EXECUTORS},1,1024]", "--jars", settings["CDC_SPARK_JARS"]]
    jars = settings["CDC_SPARK_JARS"].replace(",", os.pathsep)
    line += ["--driver-class-path", jars, "--conf", f"spark.executor.extraClassPath={jars}"]
    line += ["--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=1g"]
    # The JVMs end before their second compiler would be of use, and all map the classes that they load: the archive is
    # that of a class path that begins with the connector's jars.
    options = " ".join([QUICK, *mapped(archive_of_classes())])
    line += ["--driver-java-options", options, "--conf", f"spark.executor.extraJavaOptions={options}"]
    # What reaches the driver is a line a table, whatever the number of rows.
    line += ["--conf", "spark.driver.maxResultSize=16m", str(folder / "driver.py"), json.dumps(audits)]
    return subprocess.run(
        line, env=settings, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, cwd=folder
    )


def not_shared(kafka: Kafka, folder: Path, option: str) -> list[str]:
    """The options of an audit that names, as its ``option``, a folder that executors do not share."""
    folder.mkdir()
    leader, follower = tutorial()
    follower.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
    if option == "state":
        leader.transaction(PET.add(("Ghost", "Nobody", "2000-01-01", None)))
        follower.transaction(checkpoint(8, 9))
    options = [*published(kafka, folder, leader, follower), "--state", str(folder / "state")]
    # To each process it is a folder of its own, as a disk of the machine is on each of a cluster.
    options[options.index(f"--{option}") + 1] = f"/proc/self/cwd/{folder.name}/{option}"
    return options


@pytest.mark.long
def test_a_cluster(kafka: Kafka, tmp_path: Path) -> None:
    """Two executors have parts of the rows. `make test` has test_cdc_audit.test_no_drift."""
    leader, follower = skewed()
    follower.transaction(Table("db/t7", ["id", "v"], ["id"]).update(((1, "x"), (1, "y"))))
    audits = [not_shared(kafka, tmp_path / f"own_{option}", option) for option in FOLDERS]
    shared = [*published(kafka, tmp_path, leader, follower), "--state", str(tmp_path / "state")]
    done = on_cluster([*audits, shared], tmp_path)
    # spark-submit gives a driver one stream for both, standard output.
    *refusals, last, end = re.split(r"^exit status (?=[0-9]$)", done.stdout, flags=re.MULTILINE)
    assert (done.returncode, end) == (1, "1\n"), done.stderr[-4000:] + done.stdout[-4000:]
    assert last.startswith("2\n")
    for option, refusal in zip(FOLDERS, refusals, strict=True):
        require_refused(tmp_path / f"own_{option}", option, refusal)
    told = json.loads((tmp_path / "report/report.json").read_text())
    assert (told["verdict"], told["drifted_rows"], len(told["tables"])) == ("drift", 1, TABLES + 1)
    (row,) = told["drifted"]
    assert (row["table"], row["kind"], row["columns"]) == ("t7", "different", ["v"])
    (large,) = [line for line in told["tables"] if line["table"] == "large"]
    assert large["leader_rows"] == large["follower_rows"] == HOT + 1
    state = json.loads((tmp_path / "state/state.json").read_text())
    assert state["counts"]["1/rows"] == state["rows"] == TABLES + HOT + 1
    assert open_to_others(tmp_path / "state", tmp_path / "report") == []


def require_refused(folder: Path, option: str, said: str) -> None:
    """An audit that named a folder of its own for each process said so, and left neither a state nor a report."""
    told = [line for line in said.splitlines() if line.startswith("cdc-audit: ")]
    assert len(told) == 1, told
    assert "rows, but the driver finds 0; at option --" + option in told[0]
    assert "name a folder that the driver and all executors share" in told[0]
    # Nothing of it counts: neither a state without rows nor a report without them.
    assert not (folder / "state/state.json").exists()
    assert not list((folder / "report").glob("report.*"))
