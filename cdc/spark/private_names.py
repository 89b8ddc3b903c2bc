"""Uses the names of PySpark and of Spark's JVM that are not public: no other module of cdc uses any. Functions that
work with each kind of session, of Spark Connect and with a JVM, are here, too.

| name | since | without it |
|---|---|---|
| ``SparkSession._jvm``, ``DataFrame._jdf``, ``SparkContext._jsc`` and ``_gateway`` | 2.0 | nothing works |
| ``org.apache.spark.sql.classic.Dataset.ofRows`` | 4.0 | ``sql.Dataset.ofRows`` of Spark 3 |
| ``QueryExecution.withCachedData`` | 1.3 | ``persisted`` returns the persisted frame itself, which is slower |
| ``SparkSession._jsparkSession`` | 2.0 | nothing works |
| ``functions``, ``PythonSQLUtils`` … as names of the JVM view | 1.3 | ``look_up_once`` saves nothing |
| ``SparkConnectClient._builder`` and ``_user_id``, ``ChannelBuilder._params`` | 3.4 | no audit over Spark Connect |
| ``SparkConnectClient.to_table_as_iterator``, ``DataFrame._plan`` | 4.0 | no audit over Spark Connect finds drift |
| ``DataFrame._explain_string`` of Spark Connect | 3.4 | each audit over it is one of much data, which is slower |

They are the same in Spark 4.0, 4.1 and 4.2: tests/spark/test_private_names.py calls each of them.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast
from uuid import uuid4

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

try:
    from py4j.java_gateway import JavaMember
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.java_gateway import ensure_callback_server_started
except ModuleNotFoundError:  # the package pyspark-client, which has no JVM: no function that needs it is called
    Py4JError = Py4JJavaError = type("Py4JError", (Exception,), {})

__all__ = [
    "Py4JError",
    "Py4JJavaError",
    "another_session",
    "arrow_tables",
    "by_connect",
    "call_from_java",
    "close_session",
    "cores",
    "explained_bytes",
    "frame_of_plan",
    "hadoop_settings",
    "has_stopped",
    "java_causes",
    "java_class",
    "java_errors",
    "java_session",
    "look_up_once",
    "make_active",
    "new_array",
    "persisted",
    "set_hidden",
    "size_in_bytes",
    "without_log",
]


# What sessions of both kinds can do.

_CONNECT_CORES = 8  # a client of Spark Connect does not know how many cores the server has
_KEPT = "cdc_kept_"  # prefix of the temporary views of a session of Spark Connect


def by_connect(spark: SparkSession) -> bool:
    """Whether ``spark`` is a session of Spark Connect, which has no JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def another_session(spark: SparkSession) -> SparkSession:
    """Creates another session in the application of ``spark``, with settings and temporary views of its own."""
    if not by_connect(spark):
        return spark.newSession()
    client = _client(spark)
    builder = copy.copy(client._builder)
    builder._params = {name: value for name, value in builder._params.items() if name != "session_id"}
    return type(spark)(builder, client._user_id)


def close_session(spark: SparkSession) -> None:
    """Ends a session from ``another_session``, and nothing else: ``SparkSession.stop`` may end the whole server."""
    if by_connect(spark):
        client = _client(spark)
        with suppress(Exception):  # a server ends sessions that are not used, and what went wrong is raised already
            client.release_session()
        client.close()


def _client(spark: SparkSession) -> Any:
    return cast(Any, spark).client


def cores(spark: SparkSession) -> int:
    """Returns the number of tasks that Spark can run at the same time."""
    return _CONNECT_CORES if by_connect(spark) else spark.sparkContext.defaultParallelism


def persisted(frame: DataFrame, level: StorageLevel) -> tuple[DataFrame, DataFrame]:
    """Persists ``frame`` when it is first computed. Returns the frame to unpersist, and a frame to read the data.

    The plan of the latter consists of the data of the persisted frame alone; with another version of Spark, which has
    other names for what is needed, it is the persisted frame itself. Over Spark Connect it is the name of a view: a
    frame is its whole plan, which a server would analyze again with each query, and would not know again if it reads
    Kafka.
    """
    spark = frame.sparkSession
    if by_connect(spark):
        name = _KEPT + uuid4().hex
        frame.createOrReplaceTempView(name)
        kept = spark.table(name).persist(level)
        return kept, kept
    kept = frame.persist(level)
    try:
        return kept, _of_plan(spark, kept._jdf.queryExecution().withCachedData())
    except (Py4JError, TypeError):
        return kept, kept


def size_in_bytes(read: DataFrame) -> int:
    """Returns the size in bytes of persisted data; a very large number if the data was not computed yet, or Spark does
    not know its size.
    """
    if by_connect(read.sparkSession):
        return explained_bytes(cast(Any, read)._explain_string(mode="cost"))
    try:
        return int(str(read._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Py4JError:
        return _UNKNOWN


_UNKNOWN = 1 << 63
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}  # a larger unit is not little data, either
_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.]+) (\w+)")


def explained_bytes(plan: str) -> int:
    """Returns the size in bytes of the result of a ``plan``, as Spark explains its cost."""
    found = _SIZE.search(plan)
    return int(float(found[1]) * _UNITS[found[2]]) if found and found[2] in _UNITS else _UNKNOWN


def arrow_tables(frame: DataFrame) -> Iterator[Any]:
    """Yields the rows of a frame of Spark Connect as they arrive, in tables of PyArrow."""
    client, plan = _client(frame.sparkSession), cast(Any, frame)._plan
    for found in client.to_table_as_iterator(plan.to_proto(client), {}):
        if hasattr(found, "schema"):  # Spark's own schema, which may come before, has none
            yield found


# What needs the JVM.


def java_class(spark: SparkSession, name: str) -> Any:
    """Returns the class ``name`` of Spark's JVM. It is looked up by its whole name at once: Py4J would look up each
    part of a dotted name in 300 jars.
    """
    jvm = spark._jvm
    assert jvm is not None  # the JVM exists as long as the context
    return getattr(jvm, name)


def java_errors(error: Exception) -> list[str]:
    """Returns the names of the Java classes of an error that Spark has raised, and of its causes."""
    return [name for name, _ in java_causes(error)]


def java_causes(error: Exception) -> list[tuple[str, str]]:
    """Returns the Java class and the message of an error that Spark has raised, and of its causes."""
    raised: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found: list[tuple[str, str]] = []
    while raised is not None and len(found) < _MOST_CAUSES:
        found.append((str(raised.getClass().getName()), str(raised.getMessage())))
        raised = raised.getCause()
    return found


_MOST_CAUSES = 20


def java_session(spark: SparkSession) -> Any:
    """Returns the Java object of the session."""
    return spark._jsparkSession


def set_hidden(spark: SparkSession, prefix: str, settings: Mapping[str, str]) -> None:
    """Sets ``settings`` of the session, whose names begin with ``prefix``, so that Spark's log of events has none of
    their values.
    """
    own = prefix.replace(".", r"\.")
    # The log of events redacts a setting of a job only if the context has it, too. That it has set for all sessions.
    context = spark.sparkContext._jsc.sc().conf()
    hidden = context.get(_REDACTED, _REDACTED_BY_DEFAULT)
    if own not in hidden:
        context.set(_REDACTED, f"{hidden}|{own}")
    of_session = spark.conf.get(_REDACTED_OF_SQL, None)
    if own not in (of_session or ""):
        spark.conf.set(_REDACTED_OF_SQL, f"{of_session}|{own}" if of_session else own)
    for name, value in settings.items():
        context.set(name, value)
        spark.conf.set(name, value)


_REDACTED, _REDACTED_BY_DEFAULT = "spark.redaction.regex", "(?i)secret|password|token|access[.]?key"
_REDACTED_OF_SQL = "spark.sql.redaction.options.regex"


def make_active(spark: SparkSession) -> None:
    """Makes ``spark`` the active session of this thread, whose settings Java code reads that is not given a session."""
    java_class(spark, "org.apache.spark.sql.classic.SparkSession").setActiveSession(java_session(spark))


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


@contextmanager
def without_log(spark: SparkSession) -> Iterator[None]:
    """Switches the log of Spark's JVM off in the ``with`` block, and back to its level behind it."""
    level = str(java_class(spark, "org.apache.logging.log4j.LogManager").getRootLogger().getLevel())
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        if not has_stopped(spark):
            spark.sparkContext.setLogLevel(level)


def frame_of_plan(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Converts ``frame`` to a frame of the session ``spark``, with the plan that is analyzed already."""
    return _of_plan(spark, frame._jdf.queryExecution().analyzed())


def _of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    datasets = java_class(spark, "org.apache.spark.sql.classic.Dataset")
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)


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
