"""Measures ``cdc.spark.table``, beside Spark that only reads and parses the same topic.

    python bench/table_on_spark.py [--updates 150000]

A leader with 50 000 rows and ``--updates`` single-row updates of them, in one Spark on local[2] after ten warm-up
rounds of both, the best of five rounds in turns. The figure is the CPU time of the JVM, all threads.

    read and parsed     the topic's messages, with the parser of the audit; nothing else
    table               the table as of now, all of its columns; with what finds its columns and versions before
"""

import argparse
import functools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from audit import session
from consumer import PLAIN, Shape, execute, fill, updates
from jvm import Jvm
from measure import profile, run_program
from pyspark.sql import DataFrame, SparkSession

from cdc.config.profile import load
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark import table
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import LEADER, parse, read
from cdc.spark.input.spans import span
from cdc.spark.job.session import configure_for

ROWS, WARM_UP, ROUNDS = 50_000, 10, 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=150_000, help="of single rows (default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        measure(Path(folder), options.updates)
    return 0


def measure(folder: Path, count: int) -> None:
    leader, kafka = MySql(folder / "leader", server_id=1).start(), Kafka(folder / "kafka").start()
    source = profile(folder / "leader.toml", leader, kafka)
    fill(leader, Shape("", PLAIN, ROWS, updates, 0))
    execute(leader, in_transactions(updates(count, random.Random(1))))
    run_program("cdc-producer", source)
    leader.kill()
    spark = session("2g")
    configure_for(spark, span(load(source).kafka).size)
    works = {
        "read and parsed": functools.partial(parsed, spark, source),
        "table": lambda: table(spark, source, "bench.t"),
    }
    best = dict.fromkeys(works, (float("inf"), float("inf")))
    for number in range(WARM_UP + ROUNDS):
        for name, work in works.items():
            found = spent(Jvm(spark), work)
            best[name] = min(best[name], found) if number >= WARM_UP else best[name]
    print(f"{'':20}{'CPU s':>8}{'wall s':>8}{'ratio':>8}")
    for name, (cpu, wall) in best.items():
        print(f"{name:20}{cpu:8.2f}{wall:8.2f}{cpu / best['read and parsed'][0]:8.2f}")
    spark.stop()
    kafka.kill()


def in_transactions(statements: Iterable[str]) -> Iterator[str]:
    """A thousand in each, which are there sooner: what is measured depends on records, not on transactions."""
    for number, statement in enumerate(statements):
        if number % 1000 == 0:
            yield from ("COMMIT", "BEGIN")
        yield statement
    yield "COMMIT"


def parsed(spark: SparkSession, source: Path) -> DataFrame:
    kafka = load(source).kafka
    return parse(read(spark, span(kafka), options=kafka_options(kafka), side=LEADER))


def spent(jvm: Jvm, work: Callable[[], DataFrame]) -> tuple[float, float]:
    """CPU and wall seconds, from the call until all rows were computed."""
    cpu, begun = jvm.cpu_seconds(), time.monotonic()
    work().write.format("noop").mode("overwrite").save()
    return jvm.cpu_seconds() - cpu, time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
