"""Uses the names of PySpark and of Spark's JVM that are not public: no other module of cdc uses any.

| name | since | without it |
|---|---|---|
| ``SparkSession._jvm``, ``DataFrame._jdf``, ``SparkContext._jsc`` and ``_gateway`` | 2.0 | nothing works |
| ``org.apache.spark.sql.classic.Dataset.ofRows`` | 4.0 | ``sql.Dataset.ofRows`` of Spark 3 |
| ``QueryExecution.withCachedData`` | 1.3 | ``frame_of_cache`` returns the persisted frame itself, which is slower |
| ``SparkSession._jsparkSession`` | 2.0 | nothing works |
| ``functions``, ``PythonSQLUtils`` … as names of the JVM view | 1.3 | ``look_up_once`` saves nothing |

They are the same in Spark 4.0, 4.1 and 4.2: tests/spark/test_private_names.py calls each of them.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cdc.errors import UserError

try:
    from py4j.java_gateway import JavaMember
    from py4j.protocol import Py4JError
    from pyspark.java_gateway import ensure_callback_server_started
except ModuleNotFoundError:
    pass  # the package pyspark-client, which has no JVM: no function that needs it is called

__all__ = [
    "by_connect",
    "call_from_java",
    "frame_of_cache",
    "frame_of_plan",
    "hadoop_settings",
    "has_stopped",
    "java_class",
    "java_session",
    "look_up_once",
    "new_array",
    "size_in_bytes",
    "without_jvm",
]


def by_connect(spark: SparkSession) -> bool:
    """Whether ``spark`` is a session of Spark Connect, which has no JVM: no other function of this module works."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def without_jvm() -> UserError:
    """Returns the error for an audit where there is no JVM."""
    return UserError(
        "Spark Connect can't run an audit, which works beside Spark's driver",
        code="CDC-SPARK-CONNECT-AUDIT",
        hint="run cdc-audit, or call audit with a session of the driver's machine (docs/audit-operations.md)",
    )


def java_class(spark: SparkSession, name: str) -> Any:
    """Returns the class ``name`` of Spark's JVM. It is looked up by its whole name at once: Py4J would look up each
    part of a dotted name in 300 jars.
    """
    jvm = spark._jvm
    assert jvm is not None  # the JVM exists as long as the context
    return getattr(jvm, name)


def java_session(spark: SparkSession) -> Any:
    """Returns the Java object of the session."""
    return spark._jsparkSession


def new_array(spark: SparkSession, element: Any, size: int) -> Any:
    """Returns a Java array with ``size`` elements of the class ``element``."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # it exists as long as the context
    return gateway.new_array(element, size)


def hadoop_settings(spark: SparkSession) -> Any:
    """Returns Spark's settings of Hadoop, a Java object."""
    return spark.sparkContext._jsc.sc().hadoopConfiguration()


def has_stopped(spark: SparkSession) -> bool:
    """Whether Spark or its JVM has stopped."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True


def frame_of_plan(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Converts ``frame`` to a frame of the session ``spark``, with the plan that is analyzed already."""
    return _of_plan(spark, frame._jdf.queryExecution().analyzed())


def frame_of_cache(kept: DataFrame) -> DataFrame:
    """Returns a frame whose plan consists of the data of the persisted frame ``kept`` alone; ``kept`` itself if this
    version of Spark has other names for what is needed.
    """
    try:
        return _of_plan(kept.sparkSession, kept._jdf.queryExecution().withCachedData())
    except (Py4JError, TypeError):
        return kept


def _of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    datasets = java_class(spark, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)


def size_in_bytes(read: DataFrame) -> int:
    """Returns the size in bytes of persisted data; a very large number if the data was not computed yet, or Spark does
    not know its size.
    """
    try:
        return int(str(read._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Py4JError:
        return 1 << 63


_CLASSES = ("org.apache.spark.sql.functions", "functions", "PythonUtils", "PythonSQLUtils")


class _Static:
    """A Java class that looks up each of its static methods only once."""

    def __init__(self, java_class: Any) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._class, name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


def look_up_once(spark: SparkSession) -> None:
    """Caches the classes in ``_CLASSES`` under the names that PySpark requests from its JVM."""
    jvm = spark._jvm
    assert jvm is not None  # the JVM exists as long as the context
    for name in _CLASSES:
        if not isinstance(getattr(jvm, name), _Static):
            setattr(jvm, name, _Static(getattr(jvm, name)))


def call_from_java(spark: SparkSession, work: Callable[[], object], through: Callable[[Any], object]) -> None:
    """Calls ``through`` with a Java ``Callable`` that runs ``work`` in the thread in which Java calls it. Raises the
    exception that ``work`` raised.
    """
    gateway = spark.sparkContext._gateway
    assert gateway is not None  # it exists as long as the context
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    called = _Called(work)
    through(called)
    if called.error is not None:
        raise called.error


class _Called:
    """A Java ``Callable`` that runs ``work`` in the thread that calls it; ``error`` is the exception that ``work``
    raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.error: Exception | None = None

    def call(self) -> Any:
        """Runs ``work``. Java calls this method."""
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 - ``call_from_java`` raises it again, in Python
            self.error = error

    class Java:
        """Declares to Py4J which Java interfaces ``_Called`` implements."""

        implements = ("java.util.concurrent.Callable",)
