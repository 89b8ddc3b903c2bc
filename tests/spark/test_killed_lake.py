"""cdc-lake, killed with its Spark: the next run's lake is the leader's, and no table has the same commit twice.

The tables of changes have each change once, whichever of a run's commits were there already.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from cdc.lake.commits import Note
from cdc.lake.folder import CHANGES
from cdc.lake.formats.iceberg import metadata_file
from cdc.lake.formats.parquet import POINTER
from cdc.sandbox.fetch.jars import lake_jars, spark_connector_jars
from cdc.spark.folders import LocalFolder
from tests.harness.pair import Pair
from tests.harness.programs import run_well
from tests.harness.seed import SEED
from tests.harness.wait import LIMIT_SECONDS
from tests.spark.test_cdc_audit import QUICK
from tests.spark.test_lake import FORMATS, Opened, changes_compared

pytestmark = [pytest.mark.spark, pytest.mark.integration]

KILLS = int(os.environ.get("CDC_LAKE_KILLS", "1"))
DATABASE = "a_lake_that_is_killed"
TABLES = ("orders", "bare", "parts")
STATEMENTS = (
    "ALTER TABLE parts ADD COLUMN c{0} INT DEFAULT 5", "DELETE FROM orders ORDER BY id LIMIT 1", "TRUNCATE bare",
    "RENAME TABLE orders TO a, bare TO orders, a TO bare, orders TO a, bare TO orders, a TO bare",
)  # fmt: skip
ROOT = Path(__file__).parents[2]


def test_a_lake_that_is_killed(
    pair: Pair, lake_spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, found = random.Random(f"{SEED} killed lake"), Counter[str]()
    # In make test that which has no other test there.
    form = "iceberg" if KILLS == 1 else chance.choice(list(FORMATS))
    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT)", "CREATE TABLE bare (n INT, t TEXT)",
        "CREATE TABLE parts (id INT, at INT, n INT, PRIMARY KEY (id, at))", database=DATABASE,
    )  # fmt: skip
    worked(pair, KILLS, chance)
    lake = opened(pair, lake_spark, tmp_path / "lake", form)
    lake.advance()
    lake.folder.close()
    for number in range(KILLS):
        worked(pair, number, chance)
        # The first is where all tables have their commit, and one of three has that of its changes. Others are amid
        # commits, too.
        point = ("after", 4, 0.0) if number == 0 else random_point(chance)
        found[killed(pair.source, tmp_path / "lake", form, *point)] += 1
        if number == KILLS - 1 or chance.random() < 0.5:
            compared(pair, lake_spark, tmp_path / "lake", form, f"CDC_SEED={SEED}, kill {number} at {point}")
    with capsys.disabled():
        print(f"\n{form}: {dict(found)} (CDC_SEED={SEED})")
    assert found["killed"]


def worked(pair: Pair, number: int, chance: random.Random) -> None:
    """Before a run, rows come into the leader and its topic, change and go, and now and then there is a statement."""
    rows = [f"INSERT INTO {each}" for each in ("orders VALUES ({0}, 0)", "bare VALUES (7, 'x'), (7, 'x'), ({0}, NULL)")]
    made = [each.format(number) for each in (*rows, "INSERT INTO parts (id, at, n) VALUES ({0}, 1, 0), ({0}, 2, 0)")]
    made += ["UPDATE orders SET n = n + 1", "DELETE FROM bare WHERE n = 7 LIMIT 1", "UPDATE parts SET n = n + at"]
    if number % 3 == 2:
        made.append(chance.choice(STATEMENTS).format(number))
    pair.on_leader(*made, database=DATABASE)
    run_well("cdc-producer", pair.source, "--until-current")


def random_point(chance: random.Random) -> tuple[str, int, float]:
    """A point, the how manyth time, and so many seconds later."""
    point = chance.choice(["before", "before", "after", "removed", "saved"])
    return point, chance.randint(1, 6) if point in ("before", "after") else 1, chance.choice([0.0, chance.random() * 2])


def killed(profile: Path, lake: Path, form: str, point: str, number: int, seconds: float) -> str:
    """Run the program, which kills itself, and say whether it did: it may have ended before."""
    jars = ",".join(map(str, [*spark_connector_jars(version("pyspark")), *lake_jars(version("pyspark"))]))
    command = [sys.executable, "-m", "tests.altered.killed_lake", point, str(number), str(seconds)]
    done = subprocess.run(
        [*command, profile, "--to", lake, "--format", form, "--history"],
        env=dict(os.environ) | {"CDC_SPARK_JARS": jars, "SPARK_SUBMIT_OPTS": QUICK}, cwd=ROOT,
        start_new_session=True, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return "ended" if done.returncode == 0 else "killed"


def opened(pair: Pair, spark: SparkSession, path: Path, form: str) -> Opened:
    """As the program has it, without Hadoop, whose checksums would be those of what it wrote itself."""
    return Opened(spark, pair.source, path, form, LocalFolder(path))


def compared(pair: Pair, spark: SparkSession, path: Path, form: str, which: str) -> None:
    """The next run ends; then each table has the leader's rows, its commits are of growing sequences, and its changes
    are those of the stream."""
    lake = opened(pair, spark, path, form)
    run = lake.advance()
    lake.folder.close()
    with pair.leader.root(database=DATABASE) as session, session.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT * FROM {table}")
            assert lake.rows(f"{DATABASE}/{table}") == Counter(cursor.fetchall()), f"{which}: {table}"
            sequences = commits(path / DATABASE / table, form)
            assert sequences == sorted(set(sequences)), f"{which}: {table} {sequences}"
            assert sequences[-1] == run.sequence, which
            changes_compared(lake, (DATABASE, table), run.sequence, which)
            sequences = commits(path / CHANGES / DATABASE / table, form)
            assert sequences == sorted(set(sequences)), f"{which}: changes of {table} {sequences}"


def commits(folder: Path, form: str) -> list[int]:
    """The sequences of a table's commits, oldest first, as readers that are not Spark have them."""
    if form == "delta":
        texts = [each["userMetadata"] for each in reversed(DeltaTable(folder).history())]
    elif form == "parquet":  # which keeps the newest alone
        texts = [json.loads((folder / POINTER).read_text())["note"]]
    else:
        snapshots = StaticTable.from_metadata(f"{folder}/{metadata_file(LocalFolder(folder), '.')}").metadata.snapshots
        texts = [each.summary["cdc_lake"] for each in snapshots if each.summary is not None]
    notes = [Note.parse(text) for text in texts]
    return [note.sequence for note in notes if note is not None]
