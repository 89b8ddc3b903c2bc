"""What makes an audit's fixed cost small: plans that end at cached data, tiny audits in one partition and not compiled.

Each shuffle ends a stage, and planning, sending and starting a stage costs more than a thousand rows do; in one
partition Spark needs none to group, sort or join. All this changes how Spark gets to a result, never the result.

Work in a thread beside other work: Spark plans a query in the thread that asks it, so two are planned at once.

Questions to data: each is a frame of few rows and how the answer is read from them. Several are asked together.

A job costs more than a tiny audit's rows do: it is planned, its functions are prepared and its plan is sent, by itself.
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

__all__ = ["Question", "answers", "beside", "cached", "in_one_part", "is_tiny", "meanwhile", "set_tiny", "uncache"]

Result = TypeVar("Result")


@contextmanager
def meanwhile(work: Callable[[], Result], spark: SparkSession | None = None) -> Iterator[Callable[[], Result]]:
    """Begin ``work`` in a thread, and give the block a function that waits for its result, or raises what it raised.

    Jobs of ``spark`` have the job group, the tags and the scheduler pool of the caller. At the end of the block, also
    where that fails, the work has ended.
    """
    with ThreadPoolExecutor(1) as threads:
        target: Callable[[], Result] = inheritable_thread_target(spark)(work) if spark else work
        yield threads.submit(target).result


_TINY = "spark.cdc.audit.tiny"
# With few rows, code that Spark makes and compiles for a query costs more than it saves; without it, expressions are
# evaluated one by one. Spark's own SQL tests run with both.
_COMPILED = {
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
}
_PERSISTED: WeakKeyDictionary[SparkSession, list[DataFrame]] = WeakKeyDictionary()
_RECORDS, _ROWS, _BYTES = 20_000, 100_000, 64 << 20  # up to that a second core saves less than shuffles cost


def set_tiny(spark: SparkSession, *, records: int, rows: int = 0, read: DataFrame | None = None) -> None:
    """Set whether what the audit reads and holds is so little that one task should have all of it.

    ``read`` are the records, ``cached`` and computed: a few may have images of many megabytes.
    """
    tiny = records <= _RECORDS and rows <= _ROWS and (read is None or _bytes(read) <= _BYTES)
    spark.conf.set(_TINY, str(tiny).lower())
    for name, (of_tiny, of_others) in _COMPILED.items():
        spark.conf.set(name, of_tiny if tiny else of_others)


def is_tiny(frame: DataFrame) -> bool:
    """Whether one task should have all of what the audit reads and holds."""
    return frame.sparkSession.conf.get(_TINY, "false") == "true"


def in_one_part(frame: DataFrame) -> DataFrame:
    """``frame`` in one partition where the audit is tiny, else as it is. A union of two such frames has two again."""
    return frame.coalesce(1) if is_tiny(frame) else frame


def beside(few: DataFrame) -> DataFrame:
    """``few`` rows for a join by equal columns: every task gets all of them, in a tiny audit without a job for that."""
    return few.hint("shuffle_hash") if is_tiny(few) else F.broadcast(few)


def cached(frame: DataFrame) -> DataFrame:
    """``frame``, persisted once it was computed until ``uncache``, and computed again where that is lost.

    Its plan is the cached data alone. Of a frame that is only persisted, Spark analyzes all that leads to it again with
    each query, to find out that it is cached.
    """
    kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
    spark = frame.sparkSession
    _PERSISTED.setdefault(spark, []).append(kept)
    jvm = spark._jvm
    assert jvm is not None  # it exists as long as the context
    try:
        plan = kept._jdf.queryExecution().withCachedData()
        # By its whole name, which is looked up once; each of its parts would be looked up in 300 jars.
        datasets = getattr(jvm, "org.apache.spark.sql.classic.Dataset")
        return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)
    except (Py4JError, TypeError):  # Spark names these otherwise: they are none of its public interface
        return kept


def uncache(spark: SparkSession) -> None:
    """Give back what was ``cached`` with this session. Sessions of one Spark share what others have persisted."""
    for kept in _PERSISTED.pop(spark, []):
        kept.unpersist()


def _bytes(read: DataFrame) -> int:
    """The size of cached data; of what was not computed yet, or if Spark can't tell, more than there can be."""
    try:
        return int(str(read._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Py4JError:
        return 1 << 63


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """What ``read`` tells from the ``rows`` of a frame."""

    rows: DataFrame
    read: Callable[[Sequence[Row]], Answer]

    def answer(self) -> Answer:
        """The answer, by a job of its own."""
        return self.read(self.rows.collect())


def answers(*questions: Question[Any]) -> list[Any]:
    """The answers to all ``questions``: in a tiny audit by one job, else one after the other.

    In a large audit tasks of several questions that need the same data at once would wait for it, or compute it twice.
    """
    if len(questions) < 2 or not is_tiny(questions[0].rows):
        return [each.answer() for each in questions]
    named = {f"q{number}": each for number, each in enumerate(questions)}
    frames = [each.rows.select(F.struct("*").alias(name)) for name, each in named.items()]
    together = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), frames)
    found = in_one_part(together).collect()
    return [each.read([row[name] for row in found if row[name] is not None]) for name, each in named.items()]
