"""Measures cdc-lake beside Spark that merges Debezium's messages of the same changes, and how far a lake is behind.

    python bench/lake.py [--records 200000] [--merged N] [--tables 1] [--format delta] [--rate 2000]
                         [--seconds 60] [--no-plain]

A leader has ``--records`` records of one row each in its topic, of ``--tables`` tables: a quarter inserts the rows, the
others update them, chosen at random. They become a lake in a first run, and a second lake in the same Spark. Then come
as many updates again (or ``--merged``), which each lake merges in its next run. Then the leader commits ``--rate``
transactions a second of one row each for ``--seconds``, while cdc-producer and a lake that runs again and again are
beside it.

    start           Spark starts, until it can run a query
    cdc-lake        a run, from its start until lake.json was replaced. The first lake pays for what the JVM loads,
                    compiles and plans for the first time; for the second one all of that is there
    plain           the messages of Debezium's format, in a topic for each table, from the same producer: parsed by
                    ``from_json`` with the columns' types, the last one of each key, written or merged into a table of
                    Delta; all as one would write it who knows the tables, in a session with Spark's own settings.
                    Neither statements, sequences nor values without a type of Spark are looked at
    newest, oldest  seconds from a commit on the leader until it was in the lake, at the end of each run but the first:
                    of the newest transaction that the run wrote, and of the oldest

CPU seconds are those of Spark's JVM, all threads, and of the program's own process; records a second are of these.
``tasks`` are those of Spark's tasks alone, without the driver, the compiler and the collector.
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pymysql
from confluent_kafka import Consumer, TopicPartition
from consumer import PLAIN, execute, in_transactions, plain
from jvm import Jvm
from measure import process_cpu_seconds, profile, run_program, running
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc.config.profile import load
from cdc.lake.folder import LakeFolder
from cdc.lake.pipeline import Lake, Run
from cdc.lake.program import FORMATS, identity, started
from cdc.sandbox.fetch.jars import lake_jars, spark_connector_jars
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.spark.folders import LocalFolder
from cdc.spark.frames.messages import Source
from cdc.spark.frames.typed import Options

_RATE_OF_A_SESSION = 700  # transactions a second, of which one can do about twice as many
_BOTH = '[kafka]\nformat = ["cdc", "debezium"]\n'
_DEBEZIUM = '[debezium]\ntopic_prefix = "plain"\ndecimal_handling_mode = "string"\n'
_ROW = "STRUCT<id: INT, name: STRING, amount: STRING, made: BIGINT, k: INT>"
_TYPED = ("id", "name", "CAST(amount AS DECIMAL(12, 2)) AS amount", "timestamp_millis(made) AS made", "k")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000, help="of a run (default %(default)s)")
    parser.add_argument("--merged", type=int, help="of the run that merges (default: as many)")
    parser.add_argument("--tables", type=int, default=1, help="(default %(default)s)")
    parser.add_argument("--format", choices=list(FORMATS), default="delta", help="of the lake (default %(default)s)")
    parser.add_argument("--no-plain", action="store_true", help="without Debezium's messages, and who merges them")
    parser.add_argument("--seconds", type=int, default=60, help="of following (default %(default)s)")
    parser.add_argument("--rate", type=int, default=2000, help="transactions a second (default %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
        measure(Path(folder), options)
    return 0


def measure(folder: Path, options: argparse.Namespace) -> None:
    leader, kafka = MySql(folder / "leader", server_id=1).start(), Kafka(folder / "kafka").start()
    source = profile(folder / "leader.toml", leader, kafka)
    if not options.no_plain:
        source.write_text(source.read_text().replace("[kafka]\n", _BOTH) + _DEBEZIUM)
    rows, merged = options.records // options.tables // 4, options.merged or options.records
    make(leader, options.tables)
    execute(leader, in_transactions(first_records(options, rows)))
    run_program("cdc-producer", source)
    with running_spark(options.format) as (spark, clock):
        lakes = [lake_of(spark, source, folder / name, options.format) for name in ("lake", "other")]
        merging = [] if options.no_plain else [Plain(spark, kafka, folder / f"plain{n}", options) for n in (0, 1)]
        for name in ("first", "merged"):
            if name == "merged":
                execute(leader, in_transactions(updates(options, rows, merged)))
                run_program("cdc-producer", source)
            for number, again in enumerate(("", " again")):
                clock.timed(f"cdc-lake {name}{again}", partial(advanced, spark, lakes[number]))
                if merging:
                    clock.timed(
                        f"plain {name}{again}",
                        partial(merging[number].advance, options.records if name == "first" else merged),
                    )
        if options.seconds:
            with running("cdc-producer", source), writing(leader, options, rows):
                follow(lakes[0], options.seconds, clock)
        for lake in lakes:
            lake.folder.close()
    leader.kill()
    kafka.kill()


# Fills the tables of the leader, and changes them.


def make(leader: MySql, tables: int) -> None:
    execute(leader, ["SET GLOBAL sync_binlog = 0, GLOBAL innodb_flush_log_at_trx_commit = 2", "CREATE DATABASE bench",
                     *(f"CREATE TABLE bench.t{number} ({PLAIN})" for number in range(tables))])  # fmt: skip


def first_records(options: argparse.Namespace, rows: int) -> Iterator[str]:
    for n in range(rows):
        for table in range(options.tables):
            yield f"INSERT INTO bench.t{table} VALUES {plain(n)}"
    yield from updates(options, rows, options.records - rows * options.tables)


def updates(options: argparse.Namespace, rows: int, count: int) -> Iterator[str]:
    chance = random.Random(count)
    for n in range(count):
        table, key = chance.randrange(options.tables), chance.randrange(rows)
        yield f"UPDATE bench.t{table} SET name = 'new {n}', k = k + 1 WHERE id = {key}"


@contextmanager
def writing(leader: MySql, options: argparse.Namespace, rows: int) -> Iterator[None]:
    """Lets processes commit transactions of one row, whose CPU time is not that of the lake."""
    sessions = -(-options.rate // _RATE_OF_A_SESSION)
    processes = [
        multiprocessing.get_context("spawn").Process(
            target=write, args=(leader.port, options.rate / sessions, options.tables, rows, number), daemon=True
        )
        for number in range(sessions)
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def write(port: int, rate: float, tables: int, rows: int, seed: int) -> None:
    chance, begun, done = random.Random(seed), time.monotonic(), 0
    connection = pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, autocommit=True)
    with connection, connection.cursor() as cursor:
        while True:
            table, key = chance.randrange(tables), chance.randrange(rows)
            cursor.execute(f"UPDATE bench.t{table} SET k = k + 1 WHERE id = {key}")
            done += 1
            time.sleep(max(0.0, begun + done / rate - time.monotonic()))


# Measures runs of cdc-lake, and of plain Spark beside them.


@dataclass
class Clock:
    """Measures the CPU seconds of Spark's JVM and of this process."""

    spark: SparkSession
    jvm: Jvm

    def cpu(self) -> float:
        return self.jvm.cpu_seconds() + process_cpu_seconds(os.getpid())

    def timed(self, name: str, work: Callable[[], int]) -> None:
        """Runs ``work``, which returns a number of records."""
        before, cpu, begun = self.jvm.task_seconds(), self.cpu(), time.monotonic()
        records = work()
        wall, used = time.monotonic() - begun, self.cpu() - cpu
        tasks = sum(seconds for stage, seconds in self.jvm.task_seconds().items() if stage not in before)
        line(name, records, wall, used, tasks)


def line(name: str, records: int, wall: float, cpu: float, tasks: float) -> None:
    rate = f"{records / cpu:10.0f} records a CPU second" if records else ""
    print(f"{name:22}{records:>9}{wall:8.1f} s{cpu:8.1f} CPU s{tasks:8.1f} tasks{rate}", flush=True)


@contextmanager
def running_spark(form: str) -> Iterator[tuple[SparkSession, Clock]]:
    begun, own = time.monotonic(), process_cpu_seconds(os.getpid())
    jars = ",".join(map(str, [*spark_connector_jars(version("pyspark")), *lake_jars(version("pyspark"))]))
    spark = started({**os.environ, "CDC_SPARK_JARS": jars}, form, FORMATS[form].settings)
    clock = Clock(spark, Jvm(spark))
    line("start", 0, time.monotonic() - begun, clock.cpu() - own, 0.0)
    yield spark, clock
    spark.stop()


def lake_of(spark: SparkSession, source: Path, to: Path, form: str) -> Lake:
    leader = load(source)
    folder = LakeFolder(LocalFolder(to), identity(leader, form))
    return Lake(folder, FORMATS[form](spark, folder.folder), leader, Options(), lambda name: True, folder.load())


def advance(spark: SparkSession, lake: Lake) -> Run:
    return lake.advance(Source.of(spark, lake.profile))


def advanced(spark: SparkSession, lake: Lake) -> int:
    return advance(spark, lake).records


class Plain:
    """Merges Debezium's messages as one would write it."""

    def __init__(self, spark: SparkSession, kafka: Kafka, to: Path, options: argparse.Namespace) -> None:
        self._spark = spark.newSession()
        self._kafka, self._to, self._tables = kafka.bootstrap_servers, to, options.tables
        self._consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "bench", "log_level": 0})
        self._begin: dict[str, int] = {}

    def advance(self, records: int) -> int:
        for table in range(self._tables):
            self._table(f"plain.bench.t{table}", f"delta.`{self._to / f't{table}'}`")
        return records

    def _table(self, topic: str, name: str) -> None:
        begin, end = self._begin.get(topic, 0), self._consumer.get_watermark_offsets(TopicPartition(topic, 0))[1]
        offsets = {name: json.dumps({topic: {"0": at}}) for name, at in (("starting", begin), ("ending", end))}
        reader = self._spark.read.format("kafka").option("kafka.bootstrap.servers", self._kafka)
        reader = reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed")
        messages = reader.options(**{f"{name}Offsets": text for name, text in offsets.items()}).load()
        body = F.from_json(F.col("value").cast("string"), f"before {_ROW}, after {_ROW}, op STRING").alias("body")
        changes = messages.where("value IS NOT NULL").select("offset", body).select("offset", "body.*")
        last = changes.groupBy(F.coalesce("after.id", "before.id").alias("key")).agg(
            F.max_by(F.struct("op", "after"), "offset").alias("last")
        )
        if not begin:
            last.where("last.op != 'd'").select("last.after.*").selectExpr(*_TYPED).writeTo(name).using(
                "delta"
            ).create()
        else:
            net = last.select("key", "last.op", "last.after.*").selectExpr("key", "op", *_TYPED)
            net.createOrReplaceTempView("net")
            self._spark.sql(
                f"MERGE INTO {name} t USING net s ON t.id = s.key WHEN MATCHED AND s.op = 'd' THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND s.op != 'd' THEN INSERT *"
            )
        self._begin[topic] = end


def follow(lake: Lake, seconds: float, clock: Clock) -> None:
    newest, oldest, records, before = list[float](), list[float](), 0, 0.0
    begun, cpu = time.monotonic(), clock.cpu()
    while time.monotonic() - begun < seconds or len(newest) < 2:  # a busy machine may need longer
        run = advance(clock.spark, lake)
        now, committed = time.time(), (run.ts_us or 0) / 1e6
        if before and run.records:
            newest.append(now - committed)
            oldest.append(now - before)
            records += run.records
        before = committed or before
    for name, lags in (("newest", newest), ("oldest", oldest)):
        print(f"{name:10}{statistics.median(lags):8.1f} s median{max(lags):8.1f} s at most, {len(lags)} runs")
    line("followed", records, time.monotonic() - begun, clock.cpu() - cpu, 0.0)


if __name__ == "__main__":
    sys.exit(main())
