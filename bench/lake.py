"""Measures cdc-lake: how fast it takes a topic in, and how far a lake that follows is behind.

    python bench/lake.py [--updates 150000] [--seconds 60] [--rate 1000]

A leader with 50 000 rows and ``--updates`` single-row updates of them becomes a lake of Delta in a first run, in one
Spark on all cores; then come as many updates again, which a second run merges. Then the leader commits ``--rate``
transactions a second for ``--seconds``, while cdc-producer and a lake that runs again and again are beside it.

    first, merged   records a second of a run, from its start until lake.json was replaced
    newest, oldest  seconds from a commit on the leader until it was in the lake, at the end of each run but the first:
                    of the newest transaction that the run wrote, and of the oldest
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path

from consumer import PLAIN, Shape, execute, fill, updates
from measure import profile, run_program, running
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.lake.folder import LakeFolder
from cdc.lake.formats.delta import DeltaTables
from cdc.lake.pipeline import Lake
from cdc.lake.program import identity, started
from cdc.sandbox.fetch.jars import lake_jars, spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.folders import LocalFolder
from cdc.spark.frames.messages import Source
from cdc.spark.frames.typed import Options

ROWS = 50_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=150_000, help="of single rows (default %(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="of following (default %(default)s)")
    parser.add_argument("--rate", type=int, default=1000, help="transactions a second (default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        measure(Path(folder), options)
    return 0


def measure(folder: Path, options: argparse.Namespace) -> None:
    leader, kafka = MySql(folder / "leader", server_id=1).start(), Kafka(folder / "kafka").start()
    source = profile(folder / "leader.toml", leader, kafka)
    jars = ",".join(map(str, [*spark_connector_jars(version("pyspark")), *lake_jars(version("pyspark"))]))
    spark = started({**os.environ, "CDC_SPARK_JARS": jars}, "delta", DeltaTables.settings)
    leaders = load(source)
    path = LakeFolder(LocalFolder(folder / "lake"), identity(leaders, "delta"))
    lake = Lake(path, DeltaTables(spark, path.folder), leaders, Options(), lambda name: True, path.load())
    fill(leader, Shape("", PLAIN, ROWS, updates, 0))
    for name in ("first", "merged"):
        execute(leader, updates(options.updates, random.Random(name)))
        run_program("cdc-producer", source)
        begun = time.monotonic()
        run = lake.advance(Source.of(spark, leaders))
        wall = time.monotonic() - begun
        print(f"{name:10}{run.records:>10} records{wall:8.1f} s{run.records / wall:10.0f} records/s", flush=True)
    with running("cdc-producer", source):
        follow(spark, lake, leader, options)
    path.close()
    spark.stop()
    leader.kill()
    kafka.kill()


def follow(spark: SparkSession, lake: Lake, leader: MySql, options: argparse.Namespace) -> None:
    stop = threading.Event()
    writer = threading.Thread(target=write, args=(leader, options.rate, stop))
    writer.start()
    newest, oldest, records, before = list[float](), list[float](), 0, 0.0
    begun = time.monotonic()
    while time.monotonic() - begun < options.seconds:
        run = lake.advance(Source.of(spark, lake.profile))
        now, committed = time.time(), (run.ts_us or 0) / 1e6
        if before and run.records:
            newest.append(now - committed)
            oldest.append(now - before)
            records += run.records
        before = committed or before
    stop.set()
    writer.join()
    for name, lags in (("newest", newest), ("oldest", oldest)):
        print(f"{name:10}{statistics.median(lags):8.1f} s median{max(lags):8.1f} s at most, {len(lags)} runs")
    print(f"followed  {records / (time.monotonic() - begun):10.0f} records/s")


def write(leader: MySql, rate: int, stop: threading.Event) -> None:
    """``rate`` transactions a second of one row each."""
    chance, begun, done = random.Random(3), time.monotonic(), 0
    with leader.connect() as connection, connection.cursor() as cursor:
        while not stop.is_set():
            cursor.execute(f"UPDATE bench.t SET k = k + 1 WHERE id = {chance.randrange(1, ROWS)}")
            done += 1
            stop.wait(max(0.0, begun + done / rate - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
