"""Computes the rows of a lake table, either all rows or only the changed rows, in types that all lake formats
support."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DayTimeIntervalType

from cdc.lake.folder import quoted
from cdc.spark.frames.rows import NAMED, changed_rows, last_images, left_rows, typed_columns, typed_rows
from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import Plan

__all__ = ["GONE", "all_rows", "net_rows"]

GONE = "gone"
"""The column of ``net_rows`` that is true for deleted rows."""


def all_rows(messages: DataFrame, plan: Plan, options: Options, *, upto: int) -> DataFrame:
    """Computes the rows that the plan's table contains once all records through sequence ``upto`` are applied, with the
    plan's columns.
    """
    changed = changed_rows(messages, plan, since=0, upto=upto)
    return _for_lakes(typed_rows(left_rows(changed, plan), plan, options))


def net_rows(messages: DataFrame, plan: Plan, options: Options, *, since: int, upto: int) -> DataFrame:
    """Computes the newest state of each row that was changed after ``since`` up to ``upto``. The table must have a key.

    The columns are ``c0``, ``c1``, … in the order of the plan's columns, and GONE; a deleted row has values only in the
    key's columns.
    """
    names = [name for name, _ in plan.columns]
    known = {names.index(name): at for at, name in enumerate(plan.stretches[-1].key)}
    only_key = ", ".join(f"known[{known[at]}]" if at in known else "'Null'" for at in range(len(names)))
    last = last_images(changed_rows(messages, plan, since=since + 1, upto=upto))
    whole = last.select(
        F.expr(f"coalesce(image, array({only_key}))").alias("image"),
        F.expr("image IS NULL").alias(GONE),
        "known",
    )
    made = typed_columns(plan, "get(image, {})", NAMED, options)
    typed = whole.select(*(F.expr(text).alias(f"c{at}") for at, text in enumerate(made.values())), GONE)
    return _for_lakes(typed)


def _for_lakes(frame: DataFrame) -> DataFrame:
    """Converts TIME values to microseconds, since no lake format supports intervals."""
    times = [each.name for each in frame.schema if isinstance(each.dataType, DayTimeIntervalType)]
    if not times:
        return frame
    return frame.select(*(_microseconds(name) if name in times else F.col(quoted(name)) for name in frame.columns))


def _microseconds(name: str) -> Column:
    parts = (("DAY", 86_400_000_000), ("HOUR", 3_600_000_000), ("MINUTE", 60_000_000))
    whole = " + ".join(f"CAST(extract({part} FROM {quoted(name)}) AS BIGINT) * {size}" for part, size in parts)
    text = f"{whole} + CAST(extract(SECOND FROM {quoted(name)}) * 1000000 AS BIGINT)"
    return F.expr(text).alias(name)
