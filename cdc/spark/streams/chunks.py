"""Finds chunks in the leader's records that do not continue a copy, and the places where a copy replaced all rows.

A chunk contains all rows of a table whose keys are after one key and up to another, as they are at the chunk's place in
the stream. The audit does not compare keys, since only MySQL knows the order of their collations. It need not compare
them: from a copy's first chunk on, the stream contains each change of the table, and the chunks contain each row that
was not changed since.

A table without a key is copied as a whole, in pieces. With the first piece the consumer removes all rows of the table,
including rows that are missing in the follower's log. From then on the follower's log is complete, like the leader's.

The records of a repair, which contain the rows of some keys, begin and end no copy.

A server's own stream contains all of its rows already. So chunks in the follower's topic, which copy its tables to
followers of its own, are left out (``streams.contents.statements``, ``comparison.histories``).
"""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from cdc.model.names import Uri
from cdc.spark.ddl.lineage import BEGINS_COPY, Act, Name, lineage, named_tables
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import beside
from cdc.spark.streams.contents import LEADERS_CHUNKS
from cdc.spark.streams.integrity import Break

__all__ = ["lost_chunks", "replacements"]

_SHOWN = 100  # maximum number of characters of a key in a text
_MOST = 10_000
_KEY = f"coalesce(left(array_join(chunk.{{0}}, ', '), {_SHOWN}), 'the end')"


def replacements(records: DataFrame, transactions: DataFrame) -> list[Act]:
    """Finds the follower's sequences at which the consumer removed all rows of a table without a key, to replace them
    by the rows of a copy.

    ``transactions`` are the transactions of ``records``.
    """
    begun = (
        records.where(LEADERS_CHUNKS)
        .where("key IS NULL AND chunk.after IS NULL")
        .select("database", "table", "sequence")
    )
    rows = [row.asDict() for row in begun.collect()]
    if not rows:
        return []
    copies = local_frame(records.sparkSession, rows, "database STRING, table STRING, sequence BIGINT")
    copies = beside(copies.withColumnRenamed("sequence", "stated"))
    applied = transactions.where(f"side = '{FOLLOWER}' AND upto IS NOT NULL").join(
        copies, F.expr("since < stated AND stated <= upto")
    )
    applied = applied.select("transaction", "database", "table", "final", "stated")
    added = records.where(f"valid AND side = '{FOLLOWER}' AND exists(rows, r -> r.after IS NOT NULL)")
    added = added.groupBy("transaction", "database", "table").agg(F.min("sequence").alias("added"))
    found = applied.join(added, ["transaction", "database", "table"], "left").collect()
    names = [(row["database"], row["table"], row["final"] if row["added"] is None else row["added"]) for row in found]
    return [Act(sequence, 0, BEGINS_COPY, str(Uri("follower", database, table))) for database, table, sequence in names]


def lost_chunks(records: DataFrame, acts: Sequence[Act], *, after: int = -1) -> list[Break]:
    """Finds chunks after sequence ``after`` that don't begin at the key at which the chunk before them ended.

    Chunks of tables that were dropped or copied again later don't count. ``acts`` are the leader's statements, and the
    beginnings and ends of copies.
    """
    along = Window.partitionBy("database", "table").orderBy("sequence")
    before = F.lag("chunk").over(along)
    found = (
        records.where(LEADERS_CHUNKS)
        .select("*", F.expr(_KEY.format("after")).alias("from"), before.alias("before"))
        .where("chunk.after IS NOT NULL AND NOT (chunk.after <=> before.upto)")
        .select(
            *("database", "table", "sequence", "partition", "offset", "from"),
            F.expr(f"IF(before IS NULL, NULL, {_KEY.replace('chunk', 'before').format('upto')})").alias("to"),
        )
    )
    rows = found.where(F.col("sequence") > after).orderBy("sequence").limit(_MOST).collect()
    if not rows:
        return []
    counts = _counting(acts, {(row["database"], row["table"]) for row in rows})
    return [
        Break(LEADER, "gap", row["partition"], row["offset"], _detail(row))
        for row in rows
        if any(first <= row["sequence"] < end for first, end in counts.get((row["database"], row["table"]), ()))
    ]


def _detail(row: Row) -> str:
    before = "it has no chunk before that" if row["to"] is None else f"the chunk before ended at {row['to']}"
    return f"the copy of {row['database']}.{row['table']} goes on after key {row['from']}, and {before}"


def _counting(acts: Sequence[Act], names: Iterable[Name]) -> Mapping[Name, list[tuple[int, int]]]:
    """Maps each name to the sequences (first, end) between which its records belong to a table that still exists."""
    found: dict[Name, list[tuple[int, int]]] = {}
    for each in lineage({*names, *named_tables(acts)}, acts):
        if each.owner:
            found.setdefault((each.database, each.table), []).append((each.first, each.end))
    return found
