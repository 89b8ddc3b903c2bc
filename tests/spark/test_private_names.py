"""The names of Spark and PySpark that are not public: one module has them all, and this Spark has each of them."""

import re
from pathlib import Path

import pytest
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from cdc.spark.private_names import (
    call_from_java,
    frame_of_plan,
    hadoop_settings,
    has_stopped,
    java_class,
    new_array,
    persisted,
    size_in_bytes,
    without_log,
)

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]


def test_no_other_module_uses_any() -> None:
    private = re.compile(r"\._(jvm|jdf|jsc|jsparkSession|gateway)\b|java_gateway import")
    users = [path for path in (ROOT / "cdc").rglob("*.py") if private.search(path.read_text(encoding="utf-8"))]
    users = [path for path in users if "sandbox" not in path.parts]  # whose Kafka has a JVM of its own
    assert [path.name for path in users] == ["private_names.py"]


def test_this_spark_has_each_of_them(spark: SparkSession) -> None:
    assert not has_stopped(spark)
    kept, cached = persisted(spark.range(5), StorageLevel.MEMORY_ONLY)
    try:
        assert cached is not kept, "this Spark has no QueryExecution.withCachedData"
        assert cached._jdf.queryExecution().analyzed().toString().startswith("InMemoryRelation")
        assert cached.count() == 5 and 0 < size_in_bytes(kept) < 1 << 20
    finally:
        kept.unpersist()
    other = spark.newSession()
    moved = frame_of_plan(spark.range(3).selectExpr("id + 1 AS n"), other)
    assert moved.sparkSession is other and [row.n for row in moved.collect()] == [1, 2, 3]
    assert list(new_array(spark, java_class(spark, "java.lang.String"), 2)) == [None, None]
    assert hadoop_settings(spark).get("fs.defaultFS")


def test_the_log_has_its_level_again(spark: SparkSession) -> None:
    root = java_class(spark, "org.apache.logging.log4j.LogManager").getRootLogger
    for level in ("FATAL", "ERROR"):  # the second one is that of the tests
        spark.sparkContext.setLogLevel(level)
        with pytest.raises(ZeroDivisionError), without_log(spark):
            assert str(root().getLevel()) == "OFF"
            1 / 0  # noqa: B018
        assert str(root().getLevel()) == level


def test_java_calls_python_and_errors_of_it_are_raised(spark: SparkSession) -> None:
    executors = java_class(spark, "java.util.concurrent.Executors")
    service, done = executors.newSingleThreadExecutor(), []
    try:
        call_from_java(spark, lambda: done.append(1), lambda work: service.submit(work).get())
        assert done == [1]
        with pytest.raises(ZeroDivisionError):
            call_from_java(spark, lambda: 1 / 0, lambda work: service.submit(work).get())
    finally:
        service.shutdown()
