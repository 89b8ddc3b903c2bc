"""Finds the drifted rows that an entry of ``--accept FILE`` accepts."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc.spark.compare.tally import Table
from cdc.spark.ddl.accepted_drift import ROWS, Entry
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.small_data import beside

__all__ = ["with_entries"]

_END, _IS = "\x1e", "\x1f"  # the separators between the columns of a key, and between a column and its value
# Values with these tags are compared as users write them; other values as their JSON text in drift.keys.jsonl.
_TAGS = ("String", "Enum", "SignedInteger", "UnsignedInteger", "Decimal", "Year", "Bit")
_PLAIN = "coalesce(" + "".join(f"get_json_object(e.value, '$.{tag}'), " for tag in _TAGS) + "e.value)"
_KEY = f"array_join(transform(array_sort(map_entries(identity)), e -> concat(e.key, '{_IS}', {_PLAIN})), '{_END}')"


def with_entries(drifted: DataFrame, tables: Sequence[Table], entries: Sequence[Entry]) -> DataFrame:
    """Adds a column ``accepted`` to ``drifted_rows``: the number of the first entry that accepts the row, or NULL.

    ``tables`` contains the counts of these rows.
    """
    of_rows = [each for each in entries if ROWS in each.what]
    named = [
        {"database": table.database, "table": table.table, "naming": places}
        for table in tables
        if table.drifted and (places := [at for at, each in enumerate(of_rows) if each.names(*table.name)])
    ]
    if not named:
        return drifted.withColumn("accepted", F.lit(None).cast("int"))
    naming = local_frame(drifted.sparkSession, named, "database STRING, table STRING, naming ARRAY<INT>")
    numbers = F.array(*(F.lit(each.number) for each in of_rows))
    found = drifted.join(beside(naming), ["database", "table"], "left").withColumns({
        "hold": F.array(*map(_holds, of_rows)), "numbers": numbers,
    })  # fmt: skip
    first = "get(numbers, try_element_at(filter(naming, n -> get(hold, n)), 1))"
    return found.withColumn("accepted", F.expr(first)).select(*drifted.columns, "accepted")


def _holds(entry: Entry) -> Column:
    """Whether the conditions of an entry hold for a row of a table that the entry names."""
    found = F.lit(True)
    if entry.kinds is not None:
        found &= F.col("kind").isin(*entry.kinds)
    if entry.columns is not None:
        found &= F.expr("kind = 'different'")
        found &= F.size(F.array_except("columns", F.array(*map(F.lit, entry.columns)))) == 0
    if entry.keys is not None:
        found &= F.col("keyed") & F.expr(_KEY).isin(*map(_text, entry.keys))
    return F.coalesce(found, F.lit(False))


def _text(key: Mapping[str, str]) -> str:
    return _END.join(f"{name}{_IS}{key[name]}" for name in sorted(key))
