"""Keeps the fixed cost of an audit of little data small, and never changes a result.

- One partition (``in_one_part``): a shuffle ends a stage, and to plan, send and start a stage costs more than a
  thousand rows do. In one partition Spark groups, sorts and joins without a shuffle.
- Plans that end at cached data (``cached``), and no compiled code for a tiny audit (``set_tiny``).
- Queries that run as one job (``run_batched``): a job costs more than a tiny audit's rows do, since each is planned and
  sent by itself.
- Work in a thread beside other work (``in_background``): Spark plans a query in the thread that runs it, so two are
  planned at once.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import StorageLevel, inheritable_thread_target
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

__all__ = ["Query", "beside", "cached", "in_background", "in_one_part", "is_tiny", "run_batched", "set_tiny", "uncache"]

Result = TypeVar("Result")


@contextmanager
def in_background(work: Callable[[], Result], spark: SparkSession | None = None) -> Iterator[Callable[[], Result]]:
    """Runs ``work`` in a thread; the block gets a function that waits for its result, or raises its exception.

    Jobs of ``spark`` have the job group, the tags and the scheduler pool of the caller. The work has ended when the
    block ends, even if the block fails.
    """
    with ThreadPoolExecutor(1) as threads:
        target: Callable[[], Result] = inheritable_thread_target(spark)(work) if spark else work
        yield threads.submit(target).result


_TINY = "spark.cdc.audit.tiny"
# With few rows, code that Spark generates and compiles for a query costs more than it saves; without it, expressions
# are evaluated one by one. Spark's own SQL tests run with both.
_COMPILED = {
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
}
_PERSISTED: WeakKeyDictionary[SparkSession, list[DataFrame]] = WeakKeyDictionary()
_RECORDS, _ROWS, _BYTES = 20_000, 100_000, 64 << 20  # limits up to which a second core saves less than shuffles cost


def set_tiny(spark: SparkSession, *, records: int, rows: int = 0, read: DataFrame | None = None) -> None:
    """Sets whether the audit's data is so small that one task should process all of it.

    ``read`` contains the records, ``cached`` and computed: a few records may have images of many megabytes.
    """
    tiny = records <= _RECORDS and rows <= _ROWS and (read is None or _bytes(read) <= _BYTES)
    spark.conf.set(_TINY, str(tiny).lower())
    for name, (of_tiny, of_others) in _COMPILED.items():
        spark.conf.set(name, of_tiny if tiny else of_others)


def is_tiny(frame: DataFrame) -> bool:
    """Whether one task should process all data of the audit."""
    return frame.sparkSession.conf.get(_TINY, "false") == "true"


def in_one_part(frame: DataFrame) -> DataFrame:
    """``frame`` in one partition if the audit is tiny, else unchanged. A union of two such frames has two again."""
    return frame.coalesce(1) if is_tiny(frame) else frame


def beside(few: DataFrame) -> DataFrame:
    """Marks the ``few`` rows for a join by equal columns: each task gets all of them, in a tiny audit without a job."""
    return few.hint("shuffle_hash") if is_tiny(few) else F.broadcast(few)


def cached(frame: DataFrame) -> DataFrame:
    """Persists ``frame`` when it is computed first, until ``uncache``; lost partitions are computed again.

    The plan of the result is the cached data alone. Spark analyzes the whole plan of a frame that is only persisted
    with each query, to find out that it is cached.
    """
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    spark = frame.sparkSession
    _PERSISTED.setdefault(spark, []).append(kept)
    jvm = spark._jvm
    assert jvm is not None  # it exists as long as the context
    try:
        plan = kept._jdf.queryExecution().withCachedData()
        # The whole name is looked up once; Py4J would look up each of its parts in 300 jars.
        datasets = getattr(jvm, "org.apache.spark.sql.classic.Dataset")
        return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)
    except (Py4JError, TypeError):  # this Spark has other names for these internals, which are not public
        return kept


def uncache(spark: SparkSession) -> None:
    """Unpersists all frames that were ``cached`` with this session. Sessions of one Spark share persisted data."""
    for kept in _PERSISTED.pop(spark, []):
        kept.unpersist()


def _bytes(read: DataFrame) -> int:
    """The size in bytes of cached data; a very large number if it was not computed yet, or Spark does not know its
    size."""
    try:
        return int(str(read._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Py4JError:
        return 1 << 63


@dataclass(frozen=True, slots=True)
class Query(Generic[Result]):
    """A frame of few ``rows``, and the function ``read`` that makes the result from them."""

    rows: DataFrame
    read: Callable[[Sequence[Row]], Result]

    def result(self) -> Result:
        """Runs the query as a job of its own."""
        return self.read(self.rows.collect())


def run_batched(*queries: Query[Any]) -> list[Any]:
    """Runs all ``queries`` and returns their results: in a tiny audit by one job, else one after the other.

    In a large audit the tasks of several queries that need the same data at once would wait for it, or compute it
    twice.
    """
    if len(queries) < 2 or not is_tiny(queries[0].rows):
        return [each.result() for each in queries]
    named = {f"q{number}": each for number, each in enumerate(queries)}
    frames = [each.rows.select(F.struct("*").alias(name)) for name, each in named.items()]
    together = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), frames)
    found = in_one_part(together).collect()
    return [each.read([row[name] for row in found if row[name] is not None]) for name, each in named.items()]
