"""Makes PySpark look up only once the Java classes that it uses with each column: every look-up searches 300 jars."""

from typing import Any

from py4j.java_gateway import JavaMember
from pyspark.sql import SparkSession

__all__ = ["look_up_once"]

_CLASSES = ("org.apache.spark.sql.functions", "functions", "PythonUtils", "PythonSQLUtils")


class _Static:
    """A Java class whose static methods are looked up once each."""

    def __init__(self, java_class: Any) -> None:
        self._class = java_class

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._class, name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


def look_up_once(spark: SparkSession) -> None:
    """Caches the classes of ``_CLASSES`` in this process, by the names that PySpark requests from its JVM."""
    jvm = spark._jvm
    assert jvm is not None  # it exists as long as the context
    for name in _CLASSES:
        if not isinstance(getattr(jvm, name), _Static):
            setattr(jvm, name, _Static(getattr(jvm, name)))
