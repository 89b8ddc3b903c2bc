"""Checks the integrity of both topics: finds gaps, repeats, incomplete transactions, invalid records, and chunks that
do not continue a copy.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from cdc.model.names import Uri
from cdc.spark.ddl.lineage import BEGINS_COPY, Act, Name, lineage, named_tables
from cdc.spark.input.records import FOLLOWER
from cdc.spark.input.small_data import beside, in_one_part, local_frame
from cdc.spark.streams.contents import CHUNKS, LEADERS_CHUNKS, Contents

__all__ = ["Break", "Earlier", "Integrity", "integrity", "lost_chunks", "replacements"]

_EXAMPLES = 20
_FEW = 1_000_000


@dataclass(frozen=True, slots=True, order=True)
class Break:
    """A break of a stream, at an ``offset`` of a ``partition`` (topic/number).

    ``kind`` is ``gap``, ``repeat``, ``torn`` (an incomplete transaction) or ``broken`` (not a record of this stream).
    """

    side: str
    kind: str
    partition: str
    offset: int
    detail: str


@dataclass(frozen=True, slots=True)
class Integrity:
    """The number of breaks of each (side, kind), and the first few breaks as examples."""

    counts: Mapping[tuple[str, str], int]
    examples: list[Break]

    def with_more(self, breaks: Sequence[Break]) -> "Integrity":
        """Adds ``breaks`` to the counts and examples."""
        counts = Counter(self.counts)
        counts.update((each.side, each.kind) for each in breaks)
        return Integrity(counts, sorted([*self.examples, *breaks[:_EXAMPLES]]))


@dataclass(frozen=True, slots=True)
class Earlier:
    """The part of the streams that earlier audits checked: ``next`` is each side's first unchecked sequence.
    ``transactions`` are the earlier transactions. The audit searches them for the ids of new transactions, since no id
    may occur twice. ``transactions`` is None if it is certain that all ids are new.
    """

    next: Mapping[str, int]
    transactions: DataFrame | None


def integrity(
    records: DataFrame,
    transactions: DataFrame,
    contents: Mapping[str, Contents],
    resources: Mapping[str, str],
    *,
    earlier: Earlier | None = None,
    incomplete: bool = True,
) -> Integrity:
    """Finds the breaks in the ``records``, ``transactions`` and ``contents`` of both streams.

    ``resources`` maps each side to the server whose records its topic should contain. A stream that does not start at
    sequence 0 has no gap at its start: the caller checks whether retention deleted records. ``incomplete`` is False if
    all ``transactions`` are known to be complete, which saves a pass over them.
    """
    next_ones = earlier.next if earlier else {}
    parts = [_incomplete(transactions)] if incomplete else []
    if earlier is not None and earlier.transactions is not None:
        few = sum(each.records for each in contents.values()) <= _FEW
        parts.append(_repeated(transactions, earlier.transactions, few=few))
    if any(each.broken or each.resources - {resources[side]} for side, each in contents.items()):
        parts.append(_broken(records, resources))
    if not _has_every_sequence(contents, next_ones):
        parts.append(_sequence_breaks(records, next_ones))
    if not parts:
        return Integrity({}, [])
    found = in_one_part(reduce(DataFrame.unionByName, parts))
    counts = {(row["side"], row["kind"]): row["count"] for row in found.groupBy("side", "kind").count().collect()}
    if not counts:
        return Integrity({}, [])
    order = Window.partitionBy("side", "kind").orderBy("partition", "offset")
    first = found.withColumn("number", F.row_number().over(order)).where(F.col("number") <= _EXAMPLES).drop("number")
    return Integrity(counts, sorted(Break(**row.asDict()) for row in first.collect()))


def _has_every_sequence(contents: Mapping[str, Contents], next_ones: Mapping[str, int]) -> bool:
    """Whether each side contains every sequence from its first to its last exactly once, as nearly all streams do.

    The number and the fingerprint of the sequences are compared, without another pass over the records.
    """
    for side, each in contents.items():
        if each.first is not None:
            first = next_ones.get(side, each.first)
            after_last = first + each.records - each.broken
            if (each.first, each.end + 1) != (first, after_last) or each.fingerprint:
                return False
    return True


def _incomplete(transactions: DataFrame) -> DataFrame:
    text = "transaction %s: its %d records, sequence %d to %d, do not run from its first to its last"
    return transactions.where("state = 'torn'").select(
        "side",
        F.lit("torn").alias("kind"),
        F.col("start.partition").alias("partition"),
        F.col("start.offset").alias("offset"),
        F.format_string(text, "transaction", "records", "start.sequence", "final").alias("detail"),
    )


def _repeated(transactions: DataFrame, earlier: DataFrame, *, few: bool) -> DataFrame:
    """Finds the ``transactions`` that also occur in ``earlier``. ``few`` is true if all of ``transactions`` fit into
    memory."""
    text = "transaction %s: it came before, and comes again with sequence %d to %d"
    known_by = ["side", "transaction"]
    before = earlier.select(known_by)
    if few:
        # The earlier transactions are scanned, not sorted: there may be any number of them.
        named = F.xxhash64(*known_by).alias("hash")
        alike = before.withColumn("hash", named).join(F.broadcast(transactions.select(named)), "hash", "left_semi")
        before = F.broadcast(alike.drop("hash"))
    again = transactions.join(before, known_by, "left_semi")
    return again.where("state != 'torn'").select(
        "side",
        F.lit("torn").alias("kind"),
        F.col("start.partition").alias("partition"),
        F.col("start.offset").alias("offset"),
        F.format_string(text, "transaction", "start.sequence", "final").alias("detail"),
    )


def _broken(records: DataFrame, resources: Mapping[str, str]) -> DataFrame:
    ours = F.concat_ws("/", "side", "resource").isin([f"{side}/{resource}" for side, resource in resources.items()])
    detail = F.when(F.col("valid"), F.concat(F.lit("a record of "), "resource")).otherwise("not a record")
    found = records.where(~F.col("valid") | ~ours)
    return found.select("side", F.lit("broken").alias("kind"), "partition", "offset", detail.alias("detail"))


def _sequence_breaks(records: DataFrame, next_ones: Mapping[str, int]) -> DataFrame:
    """Finds gaps and repeats. Each record has a number n and announces n+1; if no record announced the number of a
    record, this record follows a gap."""
    here = F.struct("sequence", F.lit(True).alias("here"), "partition", "offset")
    next_one = F.struct((F.col("sequence") + 1).alias("sequence"), F.lit(False).alias("here"), "partition", "offset")
    numbers = records.where("valid").select("side", F.explode(F.array(here, next_one)).alias("number"))
    numbers = numbers.select("side", "number.*")
    counted = numbers.groupBy("side", "sequence").agg(
        F.expr("count_if(here)").alias("times"),
        F.expr("count_if(NOT here)").alias("announced"),
        F.max(F.when(F.col("here"), F.struct("offset", "partition"))).alias("at"),
        F.min(F.when(F.col("here"), F.struct("offset", "partition"))).alias("before"),
    )
    # Earlier audits have read each sequence before ``resumed`` once. So a record with an earlier sequence is a repeat,
    # and the sequence ``resumed`` has been announced.
    resumed = F.coalesce(*(F.when(F.col("side") == side, number) for side, number in next_ones.items()), F.lit(0))
    counted = counted.withColumns({
        "times": F.col("times") + F.expr("int(times > 0)") * (F.col("sequence") < resumed).cast("int"),
        "announced": F.col("announced") + ((F.col("sequence") == resumed) & (resumed > 0)).cast("int"),
    })  # fmt: skip
    first = counted.where("times > 0").groupBy("side").agg(F.min("sequence").alias("first"))
    first = first.withColumn("first", F.when(resumed > 0, resumed).otherwise(F.col("first")))
    kind = F.when(F.col("times") > 1, "repeat").when(F.col("announced") == 0, "gap")
    times = "sequence %d comes %d times, first at offset %d of %s"
    detail = F.when(
        F.col("times") > 1, F.format_string(times, "sequence", "times", "before.offset", "before.partition")
    ).otherwise(F.format_string("sequence %d comes, but %d does not", "sequence", F.col("sequence") - 1))
    found = counted.where("times > 0").join(F.broadcast(first), "side")
    found = found.where("times > 1 OR (announced = 0 AND sequence > first)")
    return found.select(
        "side",
        kind.alias("kind"),
        F.col("at.partition").alias("partition"),
        F.col("at.offset").alias("offset"),
        detail.alias("detail"),
    )


# Finds chunks that do not continue a copy, and the places where a copy replaced all rows.
#
# A chunk contains all rows of a table whose keys are after one key and up to another, as they are at the chunk's place
# in the stream. The audit does not compare keys, since only MySQL knows the order of their collations. It need not
# compare them: from a copy's first chunk on, the stream contains each change of the table, and the chunks contain each
# row that was not changed since.
#
# A table without a key is copied from one snapshot, in numbered chunks that are called pieces. With the first piece the
# consumer removes all rows of the table, including rows that are missing in the follower's log. From then on the
# follower's log is complete, like the leader's.
#
# The records of a repair, which contain the rows of some keys, begin and end no copy.
#
# A follower can be the leader of further servers; then its topic contains chunks that copy its tables to these servers.
# These chunks are left out, because all rows in them are already in other records of the follower's topic
# (``comparison.histories``), unless that topic begins late (``ddl.late_capture``).

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


def lost_chunks(records: DataFrame, acts: Sequence[Act], *, side: str, after: int = -1) -> list[Break]:
    """Finds chunks of one side after sequence ``after`` that don't begin at the key at which the chunk before them
    ended.

    Chunks of tables that were dropped or copied again later don't count. ``acts`` are the side's statements, and the
    beginnings and ends of copies.
    """
    along = Window.partitionBy("database", "table").orderBy("sequence")
    before = F.lag("chunk").over(along)
    found = (
        records.where(CHUNKS)
        .where(F.col("side") == side)
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
        Break(side, "gap", row["partition"], row["offset"], _detail(row))
        for row in rows
        if any(first <= row["sequence"] < end for first, end in counts.get((row["database"], row["table"]), ()))
    ]


def _detail(row: Row) -> str:
    before = "it has no chunk before that" if row["to"] is None else f"the chunk before ended at {row['to']}"
    return f"the copy of {row['database']}.{row['table']} continues after key {row['from']}, and {before}"


def _counting(acts: Sequence[Act], names: Iterable[Name]) -> Mapping[Name, list[tuple[int, int]]]:
    """Maps each name to the sequences (first, end) between which its records belong to a table that still exists."""
    found: dict[Name, list[tuple[int, int]]] = {}
    for each in lineage({*names, *named_tables(acts)}, acts):
        if each.owner:
            found.setdefault((each.database, each.table), []).append((each.first, each.end))
    return found
