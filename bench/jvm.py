"""The JVM of a Spark session, seen from outside: its CPU time, its size, and how much of its memory is cache."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import process_cpu_seconds
from pyspark.sql import SparkSession

__all__ = ["Cache", "Jvm"]

_EVERY_SECONDS = 0.5
_MEGABYTE = 1 << 20


@dataclass
class Cache:
    """What Spark held of cached tables at most, in memory and spilled to disk, and how much memory it has for them."""

    megabytes: float
    room: float


class Jvm:
    """The one that runs the driver; with ``local[N]`` it is also the only executor."""

    def __init__(self, spark: SparkSession) -> None:
        self._java = spark.sparkContext._jvm.java
        self._context = spark.sparkContext._jsc.sc()
        self._pid = self._java.lang.ProcessHandle.current().pid()

    def cpu_seconds(self) -> float:
        """All threads' since its start."""
        return process_cpu_seconds(self._pid)

    def peak_megabytes(self) -> float:
        """The largest resident size since its start (proc(5), VmHWM), which is more than its heap."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self._pid}/status").read_text().splitlines())
        return int(status["VmHWM"].split()[0]) / 1024

    @contextmanager
    def cache_watched(self) -> Iterator[Cache]:
        """Ask again and again what is cached, from a thread; the answer is whole when the block ends."""
        ended = threading.Event()
        # Of the driver's block manager: how much it can ever take, and how much is left of that.
        room = self._context.getExecutorMemoryStatus().values().head()._1() / _MEGABYTE
        cache = Cache(0, room)

        def watch() -> None:
            while not ended.wait(_EVERY_SECONDS):
                cache.megabytes = max(cache.megabytes, self._cached_megabytes())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield cache
        finally:
            ended.set()
            watcher.join()

    def _cached_megabytes(self) -> float:
        tables = self._context.getRDDStorageInfo()
        return sum(table.memSize() + table.diskSize() for table in tables) / _MEGABYTE
