"""Groups the records of both topics into transactions (one row per transaction, with its state and its kind), and keeps
the transactions' ids.

The consumer commits its checkpoint row with the rows that it applies, and runs a leader's statement under a GTID whose
sequence is in the consumer's ledger (``cdc.model.gtid``). So the ``kind`` of each follower transaction can be
determined without comparing its rows or its statement with the leader's:

    applied       has a checkpoint row that the consumer moved, or a GTID under which the consumer ran a statement:
                  after this transaction the follower is equal to the leader at sequence ``upto``
    moved         has a checkpoint row that another client moved: the row shows the follower's position, but the
                  transaction is a foreign write
    bookkeeping   contains only changes that the consumer makes in its own database without moving the checkpoint; or
                  copies a table of the follower into the follower's topic, for the follower's own followers
    foreign       all others: writes that did not come through the consumer

The consumer moves the checkpoint only forward. It writes into the checkpoint row the id of the leader's transaction
that the checkpoint has reached. If a change of the row keeps the sequence, or contains the id of another transaction,
another client made the change. Only what was left out of parked tables is applied, or given up, behind the checkpoint:
such a transaction of the consumer keeps the sequence, and changes the table ``parked``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.model.gtid import StatementSequences, ddl_uuid
from cdc.spark.input.records import COPYING, FOLLOWER, LEADER
from cdc.spark.input.small_data import Query, beside, cached, in_one_part, local_frame, named, run_batched

__all__ = [
    "FOREIGN",
    "IdRange",
    "TransactionIds",
    "all_new",
    "id_ranges",
    "ids_from_json",
    "ids_to_json",
    "transactions",
    "with_ranges",
]

FOREIGN = "kind IN ('foreign', 'moved')"  # transactions that did not come through the consumer

_COUNTS = "(touched IS NOT NULL OR changed_own IS NOT NULL)"
_QUERY_SHOWN = 200
_POSITION = ["sequence", "file", "position", "partition", "offset"]
_PARKED = f"{CHECKPOINT_DATABASE}.parked"
_KIND = f"""
    CASE
        WHEN side != '{FOLLOWER}' OR state != 'whole' THEN NULL
        WHEN transaction LIKE '{COPYING}%' THEN 'bookkeeping'
        WHEN upto = since AND array_contains(changed_own, '{_PARKED}') THEN 'applied'
        WHEN upto = since AND (upto >= 0 OR size(tables) > 0) THEN 'foreign'
        WHEN upto IS NOT NULL THEN 'applied'
        WHEN size(tables) = 0 AND size(changed_own) = 0 THEN 'bookkeeping'
        ELSE 'foreign'
    END
"""
# Columns that are needed only for finding checkpoints that another client moved.
_FOR_THE_SEARCH = ("changed_own", "claim")


def transactions(
    records: DataFrame,
    *,
    sequences: StatementSequences,
    ends: Mapping[str, int],
    queries: Sequence[Callable[[DataFrame], Query[Any]]] = (),
) -> tuple[DataFrame, list[Any]]:
    """Computes one row per transaction of the valid ``records``, and caches these rows. Returns them, and the results
    of the ``queries`` on them.

    ``sequences`` belongs to the leader whose checkpoints count; ``ends`` are the last sequences of each side. The
    column ``state`` is ``whole``, ``torn`` (incomplete), or ``open`` (only the beginning of the transaction is in the
    topic yet, since the producer writes large transactions in parts). ``since`` (exclusive) and ``upto`` (inclusive)
    bound the leader sequences that a follower's transaction applied. ``kind`` is explained in the module's docstring;
    it is NULL for the leader's transactions.
    """
    narrow = _narrow(records, sequences.resource)
    alone = F.expr("index = 0 AND last")
    # On many servers most transactions consist of one record. These are kept apart, so that Spark sorts by transaction
    # only the records of the other transactions.
    grouped = in_one_part(_of_one_record(narrow.where(alone)).unionByName(_grouped(narrow.where(~alone))))
    found = cached(_classified(grouped, sequences, ends))
    (repeated, unproven), *results = run_batched(_needs_closer_look(found), *(each(found) for each in queries))
    if repeated:
        found = cached(_classified(_grouped(narrow), sequences, ends))
    if unproven:
        found = _with_moved(found, records)
    if repeated or unproven:
        results = run_batched(*(each(found) for each in queries))
    return found.drop(*_FOR_THE_SEARCH), results


def _needs_closer_look(transactions: DataFrame) -> Query[tuple[bool, bool]]:
    """Determines two facts: whether a transaction may occur twice, because two transactions have the same hash; and
    whether the id of a leader transaction in a checkpoint is not the id of the transaction that ends at the
    checkpoint's sequence. Both are False for an undamaged stream.

    A checkpoint at a record that copies a table does not count: it contains an earlier transaction (``_with_moved``).
    """
    of, none = "named_struct('hash', {}, 'times', {}, 'ended', {}, 'copies', {}, 'claimed', {})", "CAST(NULL AS BIGINT)"
    once = of.format("xxhash64(side, transaction)", 1, none, "false", none)
    ends = of.format("xxhash64(final)", 0, "xxhash64(transaction)", f"transaction LIKE '{COPYING}%'", none)
    claims = of.format("xxhash64(upto)", 0, none, "false", "xxhash64(claim)")
    each = f"""
        CASE WHEN side = '{LEADER}' THEN array({once}, {ends})
            WHEN kind = 'applied' AND claim IS NOT NULL THEN array({once}, {claims}) ELSE array({once}) END
    """
    hashes = transactions.select(F.explode(F.expr(each)).alias("of")).select("of.*")
    counted = hashes.groupBy("hash").agg(
        F.sum("times").alias("times"),
        F.expr("bool_or(copies)").alias("copies"),
        F.max("ended").alias("ended"),
        *(F.expr(f"{one}(claimed)").alias(one) for one in ("min", "max")),
    )
    unproven = "NOT copies AND max IS NOT NULL AND NOT (min <=> ended AND max <=> ended)"
    found = counted.agg(
        F.expr("bool_or(times > 1)").alias("repeated"), F.expr(f"bool_or({unproven})").alias("unproven")
    )
    return Query(found, lambda rows: (bool(rows[0]["repeated"]), bool(rows[0]["unproven"])))


def _with_moved(transactions: DataFrame, records: DataFrame) -> DataFrame:
    """Returns ``transactions`` with the kind ``moved`` for those in which another client wrote the checkpoint. The
    consumer writes a sequence of the leader, with the id of the leader's transaction at this sequence. The other client
    wrote the id of another transaction.

    Records that copy a table belong to no transaction of the leader: at such a record, the checkpoint contains an
    earlier transaction.
    """
    leader = records.where(f"valid AND side = '{LEADER}'")
    leader = leader.select(F.col("sequence").alias("upto"), F.col("transaction").alias("recorded"))
    claims = transactions.where("kind = 'applied' AND claim IS NOT NULL").select("side", "transaction", "upto", "claim")
    differing = claims.join(leader, "upto").where(f"recorded != claim AND recorded NOT LIKE '{COPYING}%'")
    moved = differing.select("side", "transaction", F.lit(True).alias("moved")).distinct()
    joined = transactions.join(moved, ["side", "transaction"], "left")
    return cached(joined.withColumns({
        "kind": F.expr("IF(moved, 'moved', kind)"),
        "tables": F.expr("IF(moved, array_union(tables, changed_own), tables)"),
    }).select(*transactions.columns))  # fmt: skip


def _narrow(records: DataFrame, resource: str) -> DataFrame:
    """Selects the columns of ``records`` from which transactions are built. Contents of rows are left out, since they
    would be sorted, too, when records are grouped by transaction.
    """
    touched = F.when(F.col("database") != CHECKPOINT_DATABASE, F.concat_ws(".", "database", "table"))
    return records.where("valid").select(
        *("side", "transaction", "sequence", "index", "last", "file", "position", "partition", "offset", "ts_us"),
        touched.alias("touched"),
        F.expr(changed_by_others(resource)).alias("changed_own"),
        F.expr("coalesce(size(rows), 0)").alias("rows"),
        F.substring("query", 1, _QUERY_SHOWN).alias("statement"),
        F.expr(checkpoint(resource)).alias("checkpoint"),
    )


def _grouped(narrow: DataFrame) -> DataFrame:
    return narrow.groupBy(*named("side", "transaction")).agg(
        F.count("*").alias("records"),
        F.min(F.struct(*_POSITION)).alias("start"),
        F.max("sequence").alias("final"),
        F.min("ts_us").alias("ts_us"),
        F.expr("min(index) = 0 AND min(sequence - index) = max(sequence - index)").alias("contiguous"),
        F.expr("count_if(last)").alias("lasts"),
        F.expr("max(index) = max(IF(last, index, -1))").alias("ends_in_last"),
        F.collect_set("touched").alias("tables"),
        F.collect_set("changed_own").alias("changed_own"),
        F.sum(F.expr(f"IF({_COUNTS}, rows, 0)")).alias("rows"),
        F.min(F.expr(f"IF({_COUNTS}, statement, NULL)")).alias("statement"),
        F.min("checkpoint.since").alias("checkpoint_since"),
        F.max("checkpoint.upto").alias("checkpoint_upto"),
        F.max_by("checkpoint.claim", "checkpoint.upto").alias("claim"),
    )


def _of_one_record(narrow: DataFrame) -> DataFrame:
    """Returns the result of ``_grouped`` for transactions that consist of one record each."""
    return narrow.select(
        *("side", "transaction"),
        F.lit(1).cast("bigint").alias("records"),
        F.struct(*_POSITION).alias("start"),
        F.col("sequence").alias("final"),
        "ts_us",
        F.lit(True).alias("contiguous"),
        F.lit(1).cast("bigint").alias("lasts"),
        F.lit(True).alias("ends_in_last"),
        F.expr("IF(touched IS NULL, array(), array(touched))").alias("tables"),
        F.expr("IF(changed_own IS NULL, array(), array(changed_own))").alias("changed_own"),
        F.expr(f"IF({_COUNTS}, bigint(rows), 0L)").alias("rows"),
        F.expr(f"IF({_COUNTS}, statement, NULL)").alias("statement"),
        F.col("checkpoint.since").alias("checkpoint_since"),
        F.col("checkpoint.upto").alias("checkpoint_upto"),
        F.col("checkpoint.claim").alias("claim"),
    )


def _classified(grouped: DataFrame, sequences: StatementSequences, ends: Mapping[str, int]) -> DataFrame:
    at_end = F.concat_ws("/", "side", "final").isin([f"{side}/{end}" for side, end in ends.items()])
    state = (
        F.when(F.expr("contiguous AND lasts = 1 AND ends_in_last"), "whole")
        .when(F.expr("contiguous AND lasts = 0") & at_end, "open")
        .otherwise("torn")
    )
    # The GTIDs under which the consumer runs statements occur only on the follower.
    statement = F.when(F.col("side") == FOLLOWER, F.coalesce("noted", F.expr(_former(sequences.resource))))
    classified = _noted(grouped, sequences).withColumns({
        "state": state,
        "since": F.coalesce("checkpoint_since", statement - 1),
        "upto": F.greatest("checkpoint_upto", statement),
    })  # fmt: skip
    classified = classified.withColumn("kind", F.expr(_KIND))
    tables = F.expr(f"IF({FOREIGN}, array_union(tables, changed_own), tables)").alias("tables")
    # A state keeps these columns in its Parquet files, except the columns ``_FOR_THE_SEARCH``.
    return classified.select(
        *("side", "transaction", "records", "start", "final", "ts_us"),
        tables,
        *("rows", "statement", "state", "since", "upto", "kind"),
        *_FOR_THE_SEARCH,
    )


def _former(resource: str) -> str:
    """Returns SQL for the leader's sequence of a statement that an earlier version of ``cdc`` ran on the follower. In
    that version, the number in the statement's GTID was the sequence plus 1, since GTIDs count from 1.
    """
    return f"try_cast(regexp_extract(transaction, '^{ddl_uuid(resource)}:([0-9]+)$', 1) AS BIGINT) - 1"


def _noted(grouped: DataFrame, sequences: StatementSequences) -> DataFrame:
    """Adds the column ``noted`` to ``grouped``: the leader's sequence of the transaction according to the ledger, or
    NULL."""
    if not sequences.noted:
        return grouped.withColumn("noted", F.lit(None).cast("bigint"))
    rows = [{"transaction": gtid, "noted": sequence} for gtid, sequence in sequences.noted.items()]
    noted = local_frame(grouped.sparkSession, rows, "transaction STRING, noted BIGINT")
    return grouped.join(beside(noted), "transaction", "left")


_IN_OWN_DATABASE = f"side = '{FOLLOWER}' AND database = '{CHECKPOINT_DATABASE}'"
# An earlier version of ``cdc`` created ``rewinds``, which may still be in a topic.
_TABLES = "checkpoint|chunks|ledger|conflicts|copies|names|offsets|parked|rewinds|seeds|types"
# SQL that is true for the statements with which the consumer creates its tables, and upgrades the ledger of an earlier
# version of cdc.
_CREATES_OWN_TABLES = f"""
    coalesce(forall(affects, a -> a.action = 'CreateDatabase'
        OR (a.action = 'CreateTable' AND a.uri RLIKE '/({_TABLES})$')
        OR (a.action = 'AlterTable' AND a.uri LIKE '%/ledger'
            AND query LIKE 'ALTER TABLE `%`.`ledger` MODIFY state %')), true)
"""


def _cell(image: str, column: str, tag: str) -> str:
    return f"get_json_object(get({image}, int(array_position(columns, '{column}')) - 1), '$.{tag}')"


def _is_of(image: str, resource: str) -> str:
    quoted = resource.replace("\\", "\\\\").replace("'", "\\'")
    return f"{_cell(image, 'resource', 'String')} = '{quoted}'"


def checkpoint(resource: str) -> str:
    """Returns the SQL of a struct with the checkpoint of the leader ``resource`` in a record of the checkpoint table;
    the struct is NULL for any other record.

    The fields are the leader sequences before (``since``) and after (``upto``) the change, and ``claim``, the leader
    transaction in the row. ``claim`` is empty if the row contains no transaction, and NULL if the table has no column
    for it.
    """
    since = _cell("r.before", "sequence", "SignedInteger")
    upto = _cell("r.after", "sequence", "SignedInteger")
    claim = (
        f"IF(array_contains(columns, 'leader_gtid'), coalesce({_cell('r.after', 'leader_gtid', 'String')}, ''), NULL)"
    )
    # The consumer inserts the first row before it applies anything: this row contains no leader transaction.
    claim = f"IF(r.before IS NULL AND {upto} = '-1', NULL, {claim})"
    of_leader = f"filter(rows, r -> {_is_of('r.after', resource)})"
    position = f"named_struct('upto', bigint({upto}), 'since', coalesce(bigint({since}), -1), 'claim', {claim})"
    all_ = f"transform({of_leader}, r -> {position})"
    return f"""
        CASE WHEN {_IN_OWN_DATABASE} AND table = 'checkpoint' AND size(rows) > 0 THEN named_struct(
            'since', array_min(transform({all_}, p -> p.since)),
            'upto', array_max({all_}).upto, 'claim', array_max({all_}).claim) END
    """


def changed_by_others(resource: str) -> str:
    """Returns the SQL of the full name of the consumer's own table that a record changes.

    The expression is NULL for a change that the consumer of the leader ``resource`` also makes without moving its
    checkpoint, and for a record of any other table. It is NULL, too, for the removal of the last chunk, the way out of
    CDC-TOPIC-OTHER-CHUNK. Rows that consumers of other leaders keep in the same tables are ignored.
    """
    # Before the consumer runs a statement, it commits an "intent" to the ledger. Without the privilege to assign GTIDs,
    # it updates this row at each attempt to run the statement.
    was_one = f"(r.before IS NULL OR {_cell('r.before', 'state', 'Enum')} = 'intent')"
    notes_an_intent = f"forall(rows, r -> {was_one} AND {_cell('r.after', 'state', 'Enum')} = 'intent')"
    first_checkpoint = f"forall(rows, r -> r.before IS NULL AND {_cell('r.after', 'sequence', 'SignedInteger')} = '-1')"
    return f"""
        CASE
            WHEN NOT ({_IN_OWN_DATABASE}) THEN NULL
            WHEN query IS NOT NULL THEN IF({_CREATES_OWN_TABLES}, NULL,
                concat_ws('.', database, url_decode(get(split(affects[0].uri, '/'), 4))))
            WHEN table = 'ledger' AND coalesce({notes_an_intent}, false) THEN NULL
            WHEN table = 'checkpoint' AND coalesce({first_checkpoint}, false) THEN NULL
            WHEN table IN ('seeds', 'chunks') AND coalesce(forall(rows, r -> r.after IS NULL), false) THEN NULL
            WHEN NOT exists(rows, r -> coalesce({_is_of("coalesce(r.after, r.before)", resource)}, true)) THEN NULL
            ELSE concat_ws('.', database, table)
        END
    """


# Keeps the ids of transactions as intervals of numbers for each prefix, like a GTID set, to recognize new ids.
#
# An id consists of a **prefix** and a number: a GTID's prefix is its server's UUID, its tag if there is one, and the
# colon; in MariaDB it is domain and server, each with a hyphen. An id without a number is a prefix with the number 0.
# The intervals contain each id that occurred, and perhaps others: an id outside of the intervals is new.

_MOST_RANGES = 20_000  # maximum number of ranges that the driver reads
_MOST_INTERVALS = 1_000  # maximum number of intervals that are kept for a prefix
_EXACT = 4_096  # with fewer records, each range is a single id, so that late transactions are known to be new

TransactionIds = Mapping[tuple[str, str], Sequence[tuple[int, int]]]
"""Maps a side and a prefix to intervals of numbers (first, last), in ascending order."""

# The number of MariaDB's domain-server-number comes after a hyphen.
_LAST_PART = "substring_index(transaction, IF(contains(transaction, ':'), ':', '-'), -1)"
# A number in a form that servers do not write, such as a number with leading zeros, does not count as a number.
_NUMBERED = f"coalesce(string(try_cast({_LAST_PART} AS BIGINT)) = {_LAST_PART}, false)"


@dataclass(frozen=True, slots=True)
class IdRange:
    """Transactions of one side whose ids have the same prefix and numbers from ``low`` to ``high``.

    ``first`` is the sequence at which the earliest of these transactions ends.
    """

    side: str
    prefix: str
    low: int
    high: int
    first: int


def id_ranges(transactions: DataFrame, *, records: int) -> Query[list[IdRange] | None]:
    """Computes the ranges of the ids of ``transactions``; None if there are too many ranges. There are at most
    ``records`` transactions.
    """
    width = 1 + records // _EXACT
    numbered = transactions.select(
        *("side", "final"),
        F.expr(f"IF({_NUMBERED}, left(transaction, length(transaction) - length({_LAST_PART})), transaction)")
        .alias("prefix"),
        F.expr(f"IF({_NUMBERED}, bigint({_LAST_PART}), 0L)").alias("number"),
    )  # fmt: skip
    ranges = numbered.groupBy("side", "prefix", F.expr(f"number DIV {width}L").alias("range")).agg(
        F.min("number").alias("low"), F.max("number").alias("high"), F.min("final").alias("first")
    )

    def read(rows: Sequence[Any]) -> list[IdRange] | None:
        fields = IdRange.__dataclass_fields__
        return [IdRange(*(row[name] for name in fields)) for row in rows] if len(rows) <= _MOST_RANGES else None

    return Query(ranges.limit(_MOST_RANGES + 1), read)


def all_new(known: TransactionIds | None, ranges: Iterable[IdRange] | None) -> bool:
    """Whether it is certain that no id of the ``ranges`` is among the ``known`` ids."""
    if known is None or ranges is None:
        return False
    return not any(
        each.low <= last and first <= each.high
        for each in ranges
        for first, last in known.get((each.side, each.prefix), ())
    )


def with_ranges(
    known: TransactionIds | None, ranges: Iterable[IdRange] | None, ends: Mapping[str, int]
) -> TransactionIds | None:
    """Adds the ids in ``ranges`` to the ``known`` ids. Leaves out a range if all of its transactions end after the
    sequence in ``ends`` of their side. Returns None if ``known`` or ``ranges`` is None, or if the ids have too many
    prefixes (a prefix is an id without the number at its end).

    If the ids with a prefix form too many intervals, the intervals with the smallest gaps between them are merged.
    """
    if known is None or ranges is None:
        return None
    found = {key: list(intervals) for key, intervals in known.items()}
    for each in ranges:
        if each.first <= ends[each.side]:
            found.setdefault((each.side, each.prefix), []).append((each.low, each.high))
    return {key: _few(intervals) for key, intervals in found.items()} if len(found) <= _MOST_RANGES else None


def ids_to_json(ids: TransactionIds | None) -> list[list[Any]] | None:
    """Converts the ids to JSON: a list of the side, the prefix and the intervals for each prefix."""
    return None if ids is None else [[*key, intervals] for key, intervals in sorted(ids.items())]


def ids_from_json(body: Sequence[Sequence[Any]] | None) -> TransactionIds | None:
    """Parses the result of ``ids_to_json``."""
    return None if body is None else {(side, prefix): [*map(tuple, found)] for side, prefix, found in body}


def _few(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    gap, found = 1, _closed(intervals, 1)
    while len(found) > _MOST_INTERVALS:
        gap *= 2
        found = _closed(found, gap)
    return found


def _closed(intervals: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Sorts the intervals, and merges two if the second begins at most ``gap`` after the end of the first."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1] + gap:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
