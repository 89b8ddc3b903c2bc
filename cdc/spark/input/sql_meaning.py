"""What SQL means in the sessions that read topics: settings that results depend on, whatever those of a user are."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

__all__ = ["MEANING", "of_session", "own_session", "with_meaning"]

MEANING: Mapping[str, str] = {
    # A cast that fails must raise an error, not give a NULL that a comparison ignores.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Names and values of the leader are in the SQL that is made here: there ${env:HOME} is a text, as any other.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
}
"""The settings that determine the meaning of SQL; other settings would change results."""
_FORMER = "spark.sql.legacy."  # how settings begin that bring back what SQL meant in former versions


def own_session(spark: SparkSession) -> SparkSession:
    """A session beside ``spark``, with settings of its own: those that give results their meaning."""
    return with_meaning(spark.newSession())


def of_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """``frame`` of an own session as one of ``spark``, whose views and queries it may be part of. What its SQL means
    is decided already."""
    plan, jvm = frame._jdf.queryExecution().analyzed(), spark._jvm
    assert jvm is not None  # it exists as long as the context
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def with_meaning(spark: SparkSession) -> SparkSession:
    """``spark`` with the settings that give results their meaning, and none of former versions."""
    for name in spark.conf.getAll:
        if name.startswith(_FORMER):
            spark.conf.unset(name)
    for name, value in MEANING.items():
        spark.conf.set(name, value)
    return spark
