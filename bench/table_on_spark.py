"""Measures the functions of ``cdc.spark`` and a lake, beside Spark that only reads and parses the same topic.

    python bench/table_on_spark.py [--rows 50000] [--updates 150000] [--copied] [--warm-up 10] [--rounds 5]

A leader with ``--rows`` and ``--updates`` single-row updates of them, in one Spark on local[2] after warm-up rounds of
all, the best of five rounds in turns. The figure is the CPU time of the JVM, all threads. With ``--copied`` the rows
come into the topic by a copy of the table, as with an existing leader.

    read and parsed     the topic's messages, with the parser of the audit; nothing else
    table               the table as of now, all of its columns; with what finds its columns and versions before
    schema, tables      the columns of the table; all tables with their counts of changes
    changes             all changes of the table, and of all tables
    lake                the first run of a lake of plain Parquet
"""

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from audit import session
from consumer import PLAIN, Shape, execute, fill, updates
from jvm import Jvm
from measure import BIN, profile, run_program
from pyspark.sql import DataFrame, SparkSession

from cdc.config.profile import load
from cdc.lake.folder import LakeFolder
from cdc.lake.formats.parquet import ParquetTables
from cdc.lake.pipeline import Lake
from cdc.lake.program import identity
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark import changes, schema, table, tables
from cdc.spark.folders.local import LocalFolder
from cdc.spark.frames.messages import Source
from cdc.spark.frames.typed import Options
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import LEADER, parse, read
from cdc.spark.input.spans import span
from cdc.spark.job.session import configure_for


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000, help="of the table (default %(default)s)")
    parser.add_argument("--updates", type=int, default=150_000, help="of single rows (default %(default)s)")
    parser.add_argument("--copied", action="store_true", help="the rows come into the topic by a copy")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds that are not counted (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        measure(Path(folder), options)
    return 0


def measure(folder: Path, options: argparse.Namespace) -> None:
    kafka = Kafka(folder / "kafka").start()
    source = write_topic(folder, kafka, options)
    spark = session("2g")
    configure_for(spark, span(load(source).kafka).size)
    lakes = (folder / f"lake{number}" for number in itertools.count())
    works: dict[str, Callable[[], object]] = {
        "read and parsed": lambda: computed(parsed(spark, source)),
        "table": lambda: computed(table(spark, source, "bench.t")),
        "schema": lambda: computed(schema(spark, source, "bench.t")),
        "tables": lambda: computed(tables(spark, source)),
        "changes": lambda: computed(changes(spark, source, "bench.t")),
        "changes of all": lambda: computed(changes(spark, source)),
        "lake": lambda: lake_of(spark, source, next(lakes)),
    }
    best = dict.fromkeys(works, (float("inf"), float("inf")))
    for number in range(options.warm_up + options.rounds):
        for name, work in works.items():
            found = spent(Jvm(spark), work)
            best[name] = min(best[name], found) if number >= options.warm_up else best[name]
    print(f"{'':20}{'CPU s':>8}{'wall s':>8}{'ratio':>8}")
    for name, (cpu, wall) in best.items():
        print(f"{name:20}{cpu:8.2f}{wall:8.2f}{cpu / best['read and parsed'][0]:8.2f}")
    spark.stop()
    kafka.kill()


def write_topic(folder: Path, kafka: Kafka, options: argparse.Namespace) -> Path:
    """The profile of a producer that has written all of the topic."""
    leader = MySql(folder / "leader", server_id=1).start()
    source = profile(folder / "leader.toml", leader, kafka)
    if options.copied:
        source.write_text(source.read_text() + '[producer]\nstart = "now"\n')
    fill(leader, Shape("", PLAIN, options.rows, updates, 0))
    if options.copied:
        run_program("cdc-producer", source)
        subprocess.run([BIN / "cdc-producer", source, "--copy", "bench.t"], check=True)
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


def in_transactions(statements: Iterable[str]) -> Iterator[str]:
    """Writes a thousand rows in each transaction, which is faster: the measured figure depends on records, not on
    transactions.
    """
    for number, statement in enumerate(statements):
        if number % 1000 == 0:
            yield from ("COMMIT", "BEGIN")
        yield statement
    yield "COMMIT"


def parsed(spark: SparkSession, source: Path) -> DataFrame:
    kafka = load(source).kafka
    return parse(read(spark, span(kafka), options=kafka_options(kafka), side=LEADER))


def computed(frame: DataFrame) -> None:
    """Computes all rows."""
    frame.write.format("noop").mode("overwrite").save()


def spent(jvm: Jvm, work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of the work."""
    cpu, begun = jvm.cpu_seconds(), time.monotonic()
    work()
    return jvm.cpu_seconds() - cpu, time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
