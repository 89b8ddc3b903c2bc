"""Changes of rows as a DataFrame: of one table typed, of all tables as the JSON texts that records have."""

from pyspark.sql import DataFrame

from cdc.spark.frames.rows import changed_rows, exploded, typed_columns
from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import Plan
from cdc.spark.input.records import parse

__all__ = ["of_all_tables", "of_table"]

_OP = """
    CASE WHEN chunk.repair THEN 'repair' WHEN chunk IS NOT NULL THEN 'copy' WHEN before IS NULL THEN 'insert'
        WHEN after IS NULL THEN 'delete' ELSE 'update' END AS op
"""
_PLACE = (
    "sequence", "row", "IF(startswith(transaction, 'copy:'), NULL, transaction) AS gtid",
    "named_struct('file', file, 'offset', position) AS position", "timestamp_micros(ts_us) AS commit_time",
    "last AS ends_transaction",
)  # fmt: skip
_BY_NAME = """
    IF({0} IS NULL, NULL, map_from_arrays(columns, transform({0}, v -> IF(v = 'Null', NULL, v)))) AS {0}
"""


def of_table(messages: DataFrame, plan: Plan, options: Options, *, since: int, upto: int) -> DataFrame:
    """The changes of one table: op, before and after with the plan's columns, and the place in the stream."""
    changed = changed_rows(messages, plan, since=since, upto=upto)
    images = [f"{_struct(plan, name, options)} AS {name}" for name in ("before", "after")]
    return changed.selectExpr(_OP, *images, *_PLACE)


def of_all_tables(messages: DataFrame, *, since: int, upto: int) -> DataFrame:
    """The changes of all tables: database, table, op, before and after as maps from column to JSON text, and the place.

    Spark fails where a message is no record.
    """
    fails = "raise_error(concat('not a record: partition ', partition, ', offset ', offset, '; see cdc-audit'))"
    within = f"IF(valid, sequence BETWEEN {since} AND {upto} AND rows IS NOT NULL, CAST({fails} AS BOOLEAN))"
    records = parse(messages)
    rows = exploded(records, within, *(name for name in records.columns if name != "rows"))
    named = rows.select("*", "image.*")
    return named.selectExpr(
        "database", "table", _OP, *(_BY_NAME.format(name) for name in ("before", "after")), *_PLACE
    )  # fmt: skip


def _struct(plan: Plan, image: str, options: Options) -> str:
    named = "concat('of sequence ', sequence)"
    made = typed_columns(plan, f"get({image}, {{}})", named, options)
    fields = ", ".join(f"{text} AS `{name.replace('`', '``')}`" for name, text in made.items())
    return f"IF({image} IS NULL, NULL, struct({fields}))"
