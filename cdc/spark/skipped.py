"""The records that an operator let the follower do without (``cdc-consumer --skip``), as its ledger says."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc.filters import CHECKPOINT_DATABASE
from cdc.spark.topics import FOLLOWER

__all__ = ["Skip", "skipped"]


@dataclass(frozen=True, slots=True)
class Skip:
    """A leader record that was left out; ``statement`` says what it was, ``note`` what the follower refused."""

    sequence: int
    statement: str
    note: str


def skipped(records: DataFrame, *, resource: str, limit: int) -> list[Skip]:
    """The first ``limit`` of the leader ``resource``, in its order."""
    of_ledger = f"valid AND side = '{FOLLOWER}' AND database = '{CHECKPOINT_DATABASE}' AND table = 'ledger'"
    rows = records.where(of_ledger).select("columns", F.explode("rows.after").alias("image")).where("image IS NOT NULL")
    found = (
        rows.where((_cell("state", "Enum") == "skipped") & (_cell("resource", "String") == resource))
        .select(
            _cell("sequence", "SignedInteger").cast("bigint").alias("sequence"),
            _cell("statement", "String").alias("statement"),
            _cell("note", "String").alias("note"),
        )
        .distinct()
        .orderBy("sequence")
        .limit(limit)
    )
    return [Skip(**row.asDict()) for row in found.collect()]


def _cell(column: str, tag: str) -> Column:
    return F.get_json_object(F.expr(f"get(image, int(array_position(columns, '{column}')) - 1)"), f"$.{tag}")
