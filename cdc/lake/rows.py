"""Computes the rows of a lake table, in types that all lake formats have, and finds values that it can't contain."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DayTimeIntervalType

from cdc.config.table_globs import copy_command
from cdc.errors import CdcError, UserError
from cdc.lake.folder import quoted
from cdc.spark.ddl.lineage import Name
from cdc.spark.frames.rows import NAMED, changed_rows, last_images, left_rows, typed_columns, typed_rows
from cdc.spark.frames.typed import DOUBT, Options, literal
from cdc.spark.frames.versions import Plan
from cdc.spark.job.output import raised_message, root_cause

__all__ = ["GONE", "NoValue", "all_rows", "has_doubts", "net_rows", "of_error", "uncertain_value"]

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

    The columns are ``c0``, ``c1``, … in the order of the plan's columns, and GONE, which is true for a deleted row; a
    deleted row has values only in the key's columns.
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


# Finds values that a lake table can't contain. Values that an ALTER made uncertain are found before the table is
# written; all other such values raise an error when the table is written.

_DOUBT = f"IF(startswith(get(image, {{0}}), {literal(DOUBT)}), struct({{0}} AS column, get(image, {{0}}) AS why), NULL)"


class NoValue(UserError):
    """A table has a value that the lake can't contain, or one of its messages is not a record of rows."""


def has_doubts(plan: Plan) -> bool:
    """Whether an ALTER may have made values of the table uncertain. Only the rows that remain show whether it did."""
    return any(_columns_in_doubt(plan))


def uncertain_value(messages: DataFrame, plan: Plan, *, upto: int) -> UserError | None:
    """Returns an error if a row that remains after ``upto`` has a value that an ALTER computed, because no record
    contains such a value; otherwise returns None.

    Spark raises an error if a message is not a record of rows. This function reads the table's rows once more, so it is
    called only if the plan ``has_doubts``.
    """
    doubts = ", ".join(_DOUBT.format(at) for at, doubtful in enumerate(_columns_in_doubt(plan)) if doubtful)
    rows = left_rows(changed_rows(messages, plan, since=0, upto=upto), plan)
    doubt = F.expr(f"coalesce({doubts}, NULL)").alias("doubt")
    found = rows.select(F.expr(NAMED).alias("named"), doubt).where("doubt IS NOT NULL").first()
    if found is None:
        return None
    name, (column, why) = ".".join(plan.name), found["doubt"]
    return UserError(
        f"values of column {plan.columns[column][0]} are not certain: {why.removeprefix(DOUBT)}",
        code="CDC-LAKE-UNCERTAIN-VALUES",
        where=f"table {name}, row {found['named'][:200]}, sequence {upto}",
        hint=f"copy the table again: {copy_command(plan.name)}; or see --on-alter",
    )


def of_error(error: Exception, name: Name) -> CdcError:
    """Converts an error of Spark to an error without a stack trace; to NoValue if a value or a record is the cause."""
    message, where = raised_message(error), f"table {'.'.join(name)}"
    if message is None:
        hint = "run cdc-lake again once its cause is gone"
        return UserError(f"Spark failed: {root_cause(error)[:500]}", code="CDC-SPARK-FAILED", where=where, hint=hint)
    hint = "see --zero-dates, --typed-json and --on-alter, or leave the table out with --without"
    return NoValue(f"the lake can't have a value: {message}", code="CDC-LAKE-VALUE", where=where, hint=hint)


def _columns_in_doubt(plan: Plan) -> list[bool]:
    of_stretches = [each.origins for each in plan.stretches]
    return [any(origins[at].doubt or origins[at].null_doubt for origins in of_stretches if origins)
            for at in range(len(plan.columns))]  # fmt: skip
