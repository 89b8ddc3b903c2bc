"""Measures the functions of ``cdc.spark`` and a lake, beside Spark that only reads and parses the same topic.

    python bench/table_on_spark.py [--rows 50000] [--updates 150000] [--copied] [--warm-up 10] [--rounds 5]
                                   [--works table,schema,tables,changes,all,feed,source,lake,seed,audit]

A leader with ``--rows`` and ``--updates`` single-row updates of them, in one Spark on local[2] after warm-up rounds of
all, the best of five rounds in turns. The figures are the CPU time of the JVM, all threads, and that of Spark's tasks
alone, without the driver, which plans and compiles queries, and without the collector. With ``--copied`` the rows come
into the topic by a copy of the table, as with an existing leader.

    read and parsed     the topic's messages, with the parser of the audit; nothing else
    table               the table as of now, all of its columns; with what finds its columns and versions before
    schema, tables      the columns of the table; all tables with their counts of changes
    changes, all        all changes of the table, and of all tables
    feed                the changes of the table as a change data feed
    source              by the data source ``cdc``, in a process of Python: it counts in the wall time only
    lake                the first run of a lake of plain Parquet
    seed                a follower that is made from the topic; of it the work of Spark
    audit               with a follower that has applied the topic and was captured; beside both topics read and parsed
"""

import argparse
import itertools
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import audit
from audit import session
from consumer import PLAIN, Shape, execute, fill, in_transactions, updates
from jvm import Jvm
from measure import profile, run_program
from pyspark.sql import DataFrame, SparkSession
from ratios import note

from cdc.config.profile import Profile, load
from cdc.lake.folder import LakeFolder
from cdc.lake.formats.parquet import ParquetTables
from cdc.lake.pipeline import Lake
from cdc.lake.program import identity
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.seed.pipeline import run as load_seed
from cdc.service.retry import Retry
from cdc.spark import changes, register, schema, table, tables
from cdc.spark.folders import LocalFolder
from cdc.spark.frames.messages import Source
from cdc.spark.frames.typed import Options
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import FOLLOWER, LEADER, parse, read
from cdc.spark.input.spans import span
from cdc.spark.job.session import configure_for


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000, help="of the table (default %(default)s)")
    parser.add_argument("--updates", type=int, default=150_000, help="of single rows (default %(default)s)")
    parser.add_argument("--copied", action="store_true", help="the rows come into the topic by a copy")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds that are not counted (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default %(default)s)")
    parser.add_argument(
        "--works", default="table,schema,tables,changes,all,feed,lake,seed,audit", help="(default: all but source)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        measure(Path(folder), options)
    return 0


def measure(folder: Path, options: argparse.Namespace) -> None:
    kafka = Kafka(folder / "kafka").start()
    source = write_topic(folder, kafka, options)
    wanted = options.works.split(",")
    profiles = captured(folder, kafka, source) if "audit" in wanted else {}
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session("2g")
    configure_for(spark, span(load(source).kafka).size)
    register(spark)
    numbers = itertools.count(10)
    works: dict[str, Callable[[], object]] = {
        "read and parsed": lambda: computed(parsed(spark, source)),
        "table": lambda: computed(table(spark, source, "bench.t")),
        "schema": lambda: computed(schema(spark, source, "bench.t")),
        "tables": lambda: computed(tables(spark, source)),
        "changes": lambda: computed(changes(spark, source, "bench.t")),
        "all": lambda: computed(changes(spark, source)),
        "feed": lambda: computed(changes(spark, source, "bench.t", shape="cdf")),
        "source": lambda: computed(spark.read.format("cdc").option("profile", str(source)).load("bench.t")),
        "lake": lambda: lake_of(spark, source, folder / f"lake{next(numbers)}"),
        "seed": lambda: seed_of(spark, source, folder, kafka, next(numbers)),
        "both read and parsed": lambda: audit.parsed(spark, profiles),
        "audit": lambda: audit.audited(spark, profiles, folder),
    }
    floors = {"audit": "both read and parsed"}
    shown = [each for each in works if each in {"read and parsed", *wanted, *map(floors.get, wanted)}]
    best = dict.fromkeys(shown, (float("inf"),) * 3)
    for number in range(options.warm_up + options.rounds):
        for name in shown:
            found = spent(Jvm(spark), works[name])
            best[name] = min(best[name], found) if number >= options.warm_up else best[name]
    print(f"{'':20}{'CPU s':>8}{'wall s':>8}{'ratio':>8}{'tasks s':>9}{'ratio':>8}")
    for name, (cpu, wall, tasks) in best.items():
        floor, _, of_tasks = best[floors.get(name, "read and parsed")]
        print(f"{name:20}{cpu:8.2f}{wall:8.2f}{cpu / floor:8.2f}{tasks:9.2f}{tasks / of_tasks:8.2f}")
        if cpu != floor:
            note(f"cdc.spark, {name}: CPU of a Spark that reads and parses", floor / cpu)
    spark.stop()
    kafka.kill()


def write_topic(folder: Path, kafka: Kafka, options: argparse.Namespace) -> Path:
    """The profile of a producer that has written all of the topic."""
    leader = MySql(folder / "leader", server_id=1).start()
    source = profile(folder / "leader.toml", leader, kafka)
    if options.copied:
        source.write_text(source.read_text() + '[producer]\nstart = "copy"\n')
    fill(leader, Shape("", PLAIN, options.rows, updates, 0))
    if options.copied:
        run_program("cdc-producer", source)
    execute(leader, in_transactions(updates(options.updates, random.Random(1))))
    run_program("cdc-producer", source)
    leader.kill()
    return source


def lake_of(spark: SparkSession, source: Path, to: Path) -> None:
    of, place = load(source), LocalFolder(to)
    folder = LakeFolder(place, identity(of, "parquet"))
    lake = Lake(folder, ParquetTables(spark, place), of, Options(), lambda name: True, folder.load())
    lake.advance(Source.of(spark, of))
    folder.close()


def seed_of(spark: SparkSession, source: Path, folder: Path, kafka: Kafka, number: int) -> None:
    """An empty follower is made equal to the leader. Servers and this process are not in the JVM's CPU time."""
    server = MySql(folder / f"s{number}", server_id=number).start()
    to = profile(folder / f"{number}.toml", server, kafka)
    stop = threading.Event()
    retry = Retry(seconds=60, log=lambda name, **fields: None, stop=stop)
    loaded = load_seed(lambda: spark, load(source), load(to), at=None, retry=retry, stop=stop)
    assert loaded is not None
    server.kill()


def captured(folder: Path, kafka: Kafka, source: Path) -> dict[str, Profile]:
    """The profiles of both sides, of a follower that has applied the whole topic, its own log captured."""
    server = MySql(folder / "follower", server_id=2).start()
    applies = profile(folder / "consumer.toml", server, kafka)
    captures = folder / "follower.toml"
    words = applies.read_text().replace('topic = "bench"', 'topic = "bench-follower"')
    captures.write_text('mysql_resource_name = "mysql-srv1-follower"\n' + words)
    run_program("cdc-producer", captures)
    run_program("cdc-consumer", applies)
    run_program("cdc-producer", captures)
    server.kill()
    return {LEADER: load(source), FOLLOWER: load(captures)}


def parsed(spark: SparkSession, source: Path) -> DataFrame:
    kafka = load(source).kafka
    return parse(read(spark, span(kafka), options=kafka_options(kafka), side=LEADER))


def computed(frame: DataFrame) -> None:
    """Computes all rows."""
    frame.write.format("noop").mode("overwrite").save()


def spent(jvm: Jvm, work: Callable[[], object]) -> tuple[float, float, float]:
    """CPU and wall seconds of the work, and CPU seconds of Spark's tasks in it."""
    before, cpu, begun = jvm.task_seconds(), jvm.cpu_seconds(), time.monotonic()
    work()
    used, wall = jvm.cpu_seconds() - cpu, time.monotonic() - begun
    return used, wall, sum(seconds for stage, seconds in jvm.task_seconds().items() if stage not in before)


if __name__ == "__main__":
    sys.exit(main())
