"""The functions of ``cdc.spark``: a leader's tables as of any moment, from its topics, as DataFrames.

Nothing is asked of a server, and executors need nothing of ``cdc``.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from cdc.config.profile import Profile, load
from cdc.errors import UserError
from cdc.spark.schema.lineage import Name
from cdc.spark.tables.history import read_history
from cdc.spark.tables.messages import Source
from cdc.spark.tables.moments import Moment, sequence_at
from cdc.spark.tables.rows import changed_rows, left_rows, typed_rows
from cdc.spark.tables.typed import Options
from cdc.spark.tables.versions import plan

__all__ = ["table"]


def table(
    spark: SparkSession,
    profile: str | Path | Profile,
    name: str,
    *,
    at: Moment = None,
    zero_dates: str = "error",
    on_alter: str = "error",
) -> DataFrame:
    """The table ``name`` (DATABASE.TABLE) as it is now or, with ``at``, as it was then, with its columns of then.

    ``profile`` is that of the leader's cdc-producer. ``at`` is a sequence, a GTID, or a time (in the session's time
    zone where the text names none), which means the newest transaction that was complete then. docs/tables.md says
    which type each MySQL type becomes, and what ``zero_dates`` and ``on_alter`` do.

    Raises UserError where there is no such table then, or where the stream does not tell all of its rows and columns.
    Spark raises an error that names the row where a value can't be had.
    """
    options = Options(zero_dates, on_alter)
    source = Source.of(spark, _profile(profile))
    sequence = sequence_at(source, at)
    wanted = plan(read_history(source), _name(name), sequence, cut=source.cut)
    messages = source.of_tables({each.name for each in wanted.stretches})
    changed = changed_rows(messages, wanted, since=0, upto=sequence)
    return typed_rows(left_rows(changed, wanted), wanted, options)


def _profile(profile: str | Path | Profile) -> Profile:
    return profile if isinstance(profile, Profile) else load(Path(profile))


def _name(name: str) -> Name:
    """Database and table. Raises UserError where the text does not name both."""
    database, dot, table = name.partition(".")
    if not (database and dot and table):
        raise UserError(f"not a table: {name!r}", hint="DATABASE.TABLE")
    return database, table
