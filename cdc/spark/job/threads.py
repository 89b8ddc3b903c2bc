"""Work in a thread beside other work: Spark plans a query in the thread that asks it, so two are planned at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

__all__ = ["meanwhile"]

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
