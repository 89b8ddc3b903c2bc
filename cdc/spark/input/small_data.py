"""Keeps the fixed cost of an audit of little data small, without changing any result: batched queries, cached frames,
frames of a few rows.

- ``in_one_part`` puts all rows into one partition, where Spark groups, sorts and joins without a shuffle. A shuffle
  ends a stage, and planning, sending and starting a stage costs more than a thousand rows.
- ``cached`` cuts plans off at cached data, and ``set_tiny`` turns off compiled code for a tiny audit.
- ``run_batched`` runs queries as one job: each job is planned and sent by itself, which costs more than the rows of a
  tiny audit.
- ``in_background`` does work in another thread: Spark plans a query in the thread that runs it, so two queries are
  planned at the same time.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from pyspark import StorageLevel, inheritable_thread_target
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from cdc.spark.private_names import persisted, size_in_bytes

__all__ = [
    "ANY_PARTITIONS",
    "ONE_SESSION",
    "Query",
    "beside",
    "cached",
    "in_background",
    "in_one_part",
    "is_tiny",
    "local_frame",
    "named",
    "run_batched",
    "set_tiny",
    "uncache",
]

Result = TypeVar("Result")


@contextmanager
def in_background(work: Callable[[], Result], spark: SparkSession | None = None) -> Iterator[Callable[[], Result]]:
    """Runs ``work`` in a thread; yields a function that waits for the work's result, or raises its exception.

    Jobs of ``spark`` have the job group, the tags and the scheduler pool of the caller. Even if the block fails, the
    work has ended when the block ends.
    """
    with ThreadPoolExecutor(1) as threads:
        target: Callable[[], Result] = inheritable_thread_target(spark)(work) if spark else work
        yield threads.submit(target).result


# With few rows, the code that Spark generates and compiles for a query costs more than it saves; without it, Spark
# evaluates expressions one by one. The results are the same: Spark's own SQL tests run with both settings.
_COMPILED = {
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
}
ONE_SESSION = ("spark.sql.sources.bucketing.autoBucketedScan.enabled", "false")
"""With this setting and ANY_PARTITIONS no frame that is persisted clones the session, as Spark does by default
(``CacheManager.getOrCloneSessionWithConfigsOff``). The clone stays in the heap when the data are gone, so a process
that persists frames again and again would fill its heap; large audits, which need adaptive execution and many
partitions, leave one for each persisted frame.
"""
ANY_PARTITIONS = ("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning", "true")
"""Lets adaptive execution merge the partitions of persisted data."""
_TINY: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
_PERSISTED: WeakKeyDictionary[SparkSession, list[DataFrame]] = WeakKeyDictionary()
_RECORDS, _ROWS, _BYTES = 20_000, 100_000, 64 << 20  # up to these limits, a second core saves less than shuffles cost


def set_tiny(spark: SparkSession, *, records: int, rows: int = 0, read: DataFrame | None = None) -> None:
    """Sets whether the audit's data is so small that one task should process all of it.

    ``read`` contains the records, which must be ``cached`` and computed. Their size in bytes counts too, because even a
    few records may contain images of many megabytes.
    """
    tiny = records <= _RECORDS and rows <= _ROWS and (read is None or size_in_bytes(read) <= _BYTES)
    _TINY[spark] = tiny
    for name, (of_tiny, of_others) in _COMPILED.items():
        spark.conf.set(name, of_tiny if tiny else of_others)


def is_tiny(frame: DataFrame) -> bool:
    """Whether one task should process all data of the audit."""
    return _TINY.get(frame.sparkSession, False)


def in_one_part(frame: DataFrame) -> DataFrame:
    """Puts ``frame`` into one partition if the audit is tiny. A union of two such frames has two partitions, and must
    be put into one again.
    """
    return frame.coalesce(1) if is_tiny(frame) else frame


def beside(few: DataFrame) -> DataFrame:
    """Marks the ``few`` rows for a join on equal columns, so that each task receives all of these rows. In a tiny
    audit, no Spark job is needed for this.
    """
    return few.hint("shuffle_hash") if is_tiny(few) else F.broadcast(few)


def cached(frame: DataFrame) -> DataFrame:
    """Persists ``frame`` when it is first computed, until ``uncache``; lost partitions are computed again.

    The plan of the result consists of the cached data alone. If a frame is only persisted, Spark analyzes the frame's
    whole plan with each query before it finds the cached data.
    """
    # Spark reads a block of MEMORY_AND_DISK that went to disk back into memory as a whole, and a block contains all
    # records of a task: for an audit of 2,400,000 records of the soak (tests/soak) a heap of 1 GB was not enough.
    kept, read = persisted(frame, StorageLevel.MEMORY_AND_DISK if is_tiny(frame) else StorageLevel.DISK_ONLY)
    _PERSISTED.setdefault(frame.sparkSession, []).append(kept)
    return read


def uncache(spark: SparkSession) -> None:
    """Unpersists all frames that were ``cached`` with this session. All sessions of a Spark application share persisted
    data."""
    for kept in _PERSISTED.pop(spark, []):
        kept.unpersist()


def named(*names: str) -> list[Column]:
    """Returns the columns of these names, to group by: for a name alone a client of Spark Connect asks for the columns
    of the frame, for which the server analyzes its whole plan.
    """
    return [F.col(name) for name in names]


@dataclass(frozen=True, slots=True)
class Query(Generic[Result]):
    """A frame of few ``rows``, and the function ``read`` that computes the query's result from them."""

    rows: DataFrame
    read: Callable[[Sequence[Row]], Result]

    def result(self) -> Result:
        """Runs the query in a separate Spark job."""
        return self.read(self.rows.collect())


def run_batched(*queries: Query[Any]) -> list[Any]:
    """Runs all ``queries``, in a tiny audit as one job, else one after the other; returns their results.

    If several queries of a large audit needed the same data at the same time, their tasks would wait for it, or compute
    it twice.
    """
    if len(queries) < 2 or not is_tiny(queries[0].rows):
        return [each.result() for each in queries]
    named = {f"q{number}": each for number, each in enumerate(queries)}
    frames = [each.rows.select(F.struct("*").alias(name)) for name, each in named.items()]
    together = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), frames)
    found = in_one_part(together).collect()
    return [each.read([row[name] for row in found if row[name] is not None]) for name, each in named.items()]


# Turns a few rows in the driver into a DataFrame, without starting Python on the executors.


def local_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """Returns a DataFrame of ``rows`` with the columns of ``schema``, in Spark's DDL. JSON must be able to represent
    the values.

    ``createDataFrame`` would start Python on the executors: this takes a second, and the executors may not have Python.
    """
    parsed = F.from_json(F.lit(json.dumps(rows)), f"ARRAY<STRUCT<{schema}>>", {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.explode(parsed).alias("row")).select("row.*")
