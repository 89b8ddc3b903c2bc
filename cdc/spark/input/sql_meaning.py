"""Sets the session settings on which the results of SQL depend, regardless of the user's settings."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from cdc.errors import UserError
from cdc.spark.private_names import another_session, by_connect, frame_of_plan

__all__ = ["MEANING", "TIME_ZONE", "of_session", "own_session", "with_meaning"]

TIME_ZONE = "spark.sql.session.timeZone"
MEANING: Mapping[str, str] = {
    # A cast that fails must raise an error, not return a NULL that a comparison ignores.
    "spark.sql.ansi.enabled": "true",
    TIME_ZONE: "UTC",
    # The generated SQL contains names and values of the leader, in which ${env:HOME} is ordinary text.
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
"""The settings that determine the meaning of SQL; other values of these settings would change results."""
_FORMER = "spark.sql.legacy."  # prefix of settings that restore the behaviour of earlier versions of Spark


def own_session(spark: SparkSession) -> SparkSession:
    """Creates another session in the application of ``spark``, with the settings that determine the results of SQL.

    A session of Spark Connect is returned itself, since a frame can't be moved from one to another: a server analyzes
    its plan when it is computed, with the settings of that moment. Raises UserError if its settings would change
    results; the time zone may be any.
    """
    if not by_connect(spark):
        return with_meaning(another_session(spark))
    wrong = [name for name, value in MEANING.items() if name != TIME_ZONE and spark.conf.get(name) != value]
    former = [name for name in spark.conf.getAll if name.startswith(_FORMER)]
    if wrong or former:
        settings = ", ".join([f'("{name}", "{MEANING[name]}")' for name in wrong])
        unset = "".join(f'; spark.conf.unset("{name}")' for name in former)
        raise UserError(
            f"settings of the session would change what a table has: {', '.join([*wrong, *former])}",
            code="CDC-SPARK-CONNECT-SETTINGS",
            hint=f"for name, value in [{settings}]: spark.conf.set(name, value){unset}",
        )
    return spark


def of_session(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Converts ``frame``, which belongs to a session from ``own_session``, to a frame of the session ``spark``, for
    views and queries in that session. The plan is already analyzed, so settings of ``spark`` do not change its meaning.
    """
    return frame if by_connect(spark) else frame_of_plan(frame, spark)


def with_meaning(spark: SparkSession) -> SparkSession:
    """Sets the settings of ``spark`` that determine the results of SQL, and unsets the settings that restore the
    behaviour of earlier versions.
    """
    for name in spark.conf.getAll:
        if name.startswith(_FORMER):
            spark.conf.unset(name)
    for name, value in MEANING.items():
        if spark.conf.get(name) != value:  # a client of Spark Connect warns of those that Spark calls deprecated
            spark.conf.set(name, value)
    return spark
