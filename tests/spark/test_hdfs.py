"""Lakes on a real HDFS: in each format, with a lock that is the lease of a file."""

import os
import random
import subprocess
from collections import Counter
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.lake.folder import LakeFolder
from cdc.sandbox.fetch.jars import lake_jars, spark_connector_jars
from cdc.spark.hadoop_folder import HadoopFolder
from tests.harness.pair import Pair
from tests.harness.programs import BIN, run_well
from tests.harness.seed import SEED
from tests.spark.test_folders import has_files, moves_folders
from tests.spark.test_lake import DEEDS, FORMATS, MANY, Opened

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_files(store: str, spark: SparkSession) -> None:
    folder = HadoopFolder(spark, f"{store}/files")
    has_files(folder)
    moves_folders(folder)


def test_one_process_writes(store: str, spark: SparkSession) -> None:
    address = f"{store}/locked"
    first = LakeFolder(HadoopFolder(spark, address), {"format": "delta"})
    with pytest.raises(UserError, match="another cdc-lake writes to this lake"):
        LakeFolder(HadoopFolder(spark, address), {"format": "delta"})
    first.close()
    LakeFolder(HadoopFolder(spark, address), {"format": "delta"}).close()


@pytest.mark.long
def test_a_lake_on_hdfs(pair: Pair, store: str, lake_spark: SparkSession, tmp_path: Path) -> None:
    """`make test` has test_files and test_one_process_writes here, and test_lake on a folder of this machine."""
    database = "a_lake_on_hdfs"
    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT)", "INSERT INTO orders VALUES (1, 1), (2, 2)",
        "CREATE TABLE gone (id INT PRIMARY KEY)", "INSERT INTO gone VALUES (1)", database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    forms = list(FORMATS) if DEEDS >= MANY else [random.Random(SEED).choice(list(FORMATS))]
    lakes = [
        Opened(lake_spark, pair.source, tmp_path, form, HadoopFolder(lake_spark, f"{store}/{form}")) for form in forms
    ]
    for lake in lakes:
        assert lake.advance().counts["written"] == 2
        assert lake.rows(f"{database}/orders") == Counter([(1, 1), (2, 2)])
    changed = ("UPDATE orders SET n = 3 WHERE id = 1", "DELETE FROM orders WHERE id = 2", "DROP TABLE gone")
    pair.on_leader(*changed, database=database)
    run_well("cdc-producer", pair.source, "--until-current")
    for lake in lakes:
        counts = lake.advance().counts
        assert (counts["merged"], counts["removed"], lake.advance().counts["kept"]) == (1, 1, 1)
        assert lake.rows(f"{database}/orders") == Counter([(1, 3)])
        assert lake.read(f"_history/{database}/orders").count() == 5
        assert [each for each in lake.folder.folder.names(f"_dropped/{database}") if each.startswith("gone~")]
        lake.folder.close()
    if DEEDS >= MANY:
        assert "1 kept" in program(pair.source, f"{store}/{lakes[-1].form}", lakes[-1].form)


def program(profile: Path, to: str, form: str) -> str:
    """What cdc-lake prints."""
    version = pyspark.__version__
    jars = {"CDC_SPARK_JARS": ",".join(map(str, [*spark_connector_jars(version), *lake_jars(version)]))}
    command = [BIN / "cdc-lake", profile, "--to", to, "--format", form, "--history"]
    return subprocess.run(command, env=dict(os.environ) | jars, check=True, capture_output=True, text=True).stdout
