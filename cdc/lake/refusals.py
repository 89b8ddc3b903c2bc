"""Finds values that a lake table can't contain. Values that an ALTER made uncertain are found before the table is
written; all other such values raise an error when the table is written.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.table_globs import copy_command
from cdc.errors import CdcError, UserError
from cdc.spark.ddl.lineage import Name
from cdc.spark.frames.rows import NAMED, changed_rows, left_rows
from cdc.spark.frames.typed import DOUBT, literal
from cdc.spark.frames.versions import Plan
from cdc.spark.job.error_text import raised_message, root_cause

__all__ = ["NoValue", "has_doubts", "of_error", "uncertain_value"]

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
