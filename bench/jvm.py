"""Measures the JVM of a Spark session: its CPU time, its size, and the rows that it spilled to disk."""

from pathlib import Path
from typing import Any

from measure import process_cpu_seconds
from pyspark.sql import SparkSession

__all__ = ["Jvm"]

_MEGABYTE = 1 << 20


class Jvm:
    """The JVM of the driver, which with ``local[N]`` is also the only executor."""

    def __init__(self, spark: SparkSession) -> None:
        self._gateway = spark.sparkContext._gateway
        self._context = spark.sparkContext._jsc.sc()
        self._pid = self._gateway.jvm.java.lang.ProcessHandle.current().pid()

    def cpu_seconds(self) -> float:
        """CPU seconds of all threads since its start."""
        return process_cpu_seconds(self._pid)

    def peak_megabytes(self) -> float:
        """The largest resident size since its start (proc(5), VmHWM), which is more than its heap."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self._pid}/status").read_text().splitlines())
        return int(status["VmHWM"].split()[0]) / 1024

    def room_megabytes(self) -> float:
        """The part of the heap that Spark can use to sort and cache rows (``spark.memory.fraction``)."""
        return self._context.getExecutorMemoryStatus().values().head()._1() / _MEGABYTE

    def spilled_megabytes(self) -> float:
        """The size in memory of the rows that one stage spilled, at most; Spark's own count."""
        return max(each.memoryBytesSpilled() for each in self._stages()) / _MEGABYTE

    def task_seconds(self) -> dict[int, float]:
        """The CPU seconds of the tasks of each stage, by its number: without the driver, the compiler and the garbage
        collector. Spark keeps the newest thousand stages.
        """
        self._context.listenerBus().waitUntilEmpty()
        return {each.stageId(): each.executorCpuTime() / 1e9 for each in self._stages()}

    def _stages(self) -> list[Any]:
        # Stages in any state, without their tasks.
        none = self._gateway.new_array(self._gateway.jvm.double, 0)
        stages = self._context.statusStore().stageList(None, False, False, none, None)
        return [stages.apply(each) for each in range(stages.size())]
