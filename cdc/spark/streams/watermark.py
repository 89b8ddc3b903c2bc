"""Finds the bounds of what both streams have in common: the base copy that the follower began with, and the watermark,
the leader sequence up to which the follower has applied the leader's stream.
"""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.model.gtid import GtidSet
from cdc.spark.ddl.lineage import END, Act
from cdc.spark.input.records import COPYING, FOLLOWER, LEADER
from cdc.spark.input.small_data import Query
from cdc.spark.streams.consumer_notes import copies
from cdc.spark.streams.transactions import FOREIGN

__all__ = ["BaseCopy", "Watermark", "base_copy_of", "joined", "unlogged_gap", "unreached", "watermark"]

_MOVES_CHECKPOINT = "kind IN ('applied', 'moved')"
_COPIES_CHECKPOINT = "kind = 'bookkeeping' AND upto >= 0"  # all others that write it move it


@dataclass(frozen=True, slots=True)
class Watermark:
    """The progress of a follower. ``sequence`` is the leader sequence up to which it has applied everything: -1 if it
    has applied nothing yet, None without a checkpoint.

    ``highest`` is the highest sequence that the checkpoint ever had; ``begins`` is the sequence that the checkpoint had
    where the follower's log begins, and ``settled`` the one after the first transaction in it. ``open_from`` is the
    follower sequence of the first record of a transaction whose last records are not in the topic yet, else None.
    ``foreign`` is the number of the follower's transactions that did not come through the consumer, and ``torn`` is the
    number of incomplete transactions in both topics.
    """

    sequence: int | None
    highest: int | None
    begins: int | None
    open_from: int | None
    foreign: int
    torn: int
    settled: int | None = None


def watermark(transactions: DataFrame) -> Query[Watermark]:
    """Computes the watermark of ``transactions``, in one pass over them.

    A late capture may have copied the checkpoint's table before the first transaction that moves the checkpoint: then
    the log begins there.
    """
    moves, shows = F.expr(_MOVES_CHECKPOINT), F.expr(f"{_MOVES_CHECKPOINT} OR {_COPIES_CHECKPOINT}")
    row = transactions.agg(
        F.max_by("upto", F.when(moves, F.col("final"))).alias("sequence"),
        F.max(F.when(shows, F.col("upto"))).alias("highest"),
        F.min_by(F.when(moves, F.col("since")).otherwise(F.col("upto")), F.when(shows, F.col("final"))).alias("begins"),
        F.min(F.when(F.expr(f"state = 'open' AND side = '{FOLLOWER}'"), F.col("start.sequence"))).alias("open_from"),
        F.expr(f"count_if({FOREIGN})").alias("foreign"),
        F.expr("count_if(state = 'torn')").alias("torn"),
        F.min_by("upto", F.when(shows, F.col("final"))).alias("settled"),
    )
    return Query(row, lambda rows: _watermark(Watermark(**rows[0].asDict())))


def _watermark(found: Watermark) -> Watermark:
    """Adds the sequence of a checkpoint that was copied and has not moved since."""
    return found if found.sequence is not None else replace(found, sequence=found.highest)


def joined(before: Watermark, since: Watermark) -> Watermark:
    """Joins two watermarks to the watermark of all transactions: ``before`` is the watermark of earlier audits'
    transactions, ``since`` the watermark of new transactions.
    """
    latest = before if since.sequence is None else since
    return Watermark(
        sequence=latest.sequence,
        highest=max((each.highest for each in (before, since) if each.highest is not None), default=None),
        begins=since.begins if before.begins is None else before.begins,
        open_from=since.open_from,
        foreign=before.foreign + since.foreign,
        torn=before.torn + since.torn,
        settled=since.settled if before.begins is None else before.settled,
    )


def unreached(transactions: DataFrame) -> Query[tuple[int, int] | None]:
    """Finds the applied transactions that do not start where another transaction ended. Returns the lowest and the
    highest leader sequence at which they start. Returns None if there is no such transaction.

    In nearly all follower streams this is only the first transaction; then there is no gap.
    """
    found = _starts(transactions).where("NOT reached").agg(F.min("at").alias("low"), F.max("at").alias("high"))
    return Query(found, lambda rows: None if rows[0]["low"] is None else (rows[0]["low"], rows[0]["high"]))


def unlogged_gap(transactions: DataFrame, *, begins: int, reached: int | None = None) -> tuple[int, int] | None:
    """Finds the first gap: leader sequences (after, up to) that the checkpoint passed without a logged transaction.
    Returns None if there is no gap.

    Each applied transaction starts at the sequence where another transaction ended. If one starts at another sequence,
    the log lacks the transactions before it. ``begins`` is the sequence at which the log begins. ``reached`` is a
    sequence at which a transaction ended that came before all ``transactions``.
    """
    applied, starts = transactions.where(_MOVES_CHECKPOINT), _starts(transactions)
    logged = "reached" if reached is None else f"(reached OR at = {reached})"
    lost = starts.where(f"NOT {logged} AND at > {begins}").agg(F.min("at").alias("upto")).collect()[0]["upto"]
    if lost is None:
        return None
    after = applied.where(f"upto < {lost}").agg(F.max("upto").alias("after")).collect()[0]["after"]
    return (begins if after is None else after), lost


def _starts(transactions: DataFrame) -> DataFrame:
    """Returns the leader sequences at which applied transactions start or end (``at``), and whether a transaction ended
    there (``reached``). A transaction that starts where it ends does not show how the checkpoint came there."""
    limits = transactions.where(_MOVES_CHECKPOINT).select(
        F.explode(F.expr("array(struct(upto AS at, upto > since AS end), struct(since AS at, false AS end))"))
    )
    return limits.select("col.*").groupBy("at").agg(F.expr("bool_or(end)").alias("reached"))


# Finds the base copy, the dump of the leader that the follower began with (``consumer.start``), and the changes after
# it.
#
# The follower's log does not contain the rows of the base copy, or contains them as writes of another client. So the
# audit compares only the leader's transactions that the base copy does not contain, and the follower's transactions
# after the consumer's note of the base copy, which commits with the consumer's first checkpoint.


@dataclass(frozen=True, slots=True)
class BaseCopy:
    """The base copy with which a follower began. It contains the transactions ``held``; ``at`` is the follower's
    sequence of the consumer's note about the base copy.

    Records with which the leader's producer copies tables into the stream have no GTID. If all transactions before such
    a record are in the base copy, so are the record's rows, and the consumer skips the record. These are the records up
    to the leader's sequence ``upto``.
    """

    held: GtidSet
    at: int
    upto: int = -1

    def holds(self, act: Act, side: str) -> bool:
        """Whether the base copy contains a statement's effect."""
        if side == FOLLOWER:
            return act.sequence <= self.at
        return act.sequence <= self.upto if act.transaction.startswith(COPYING) else act.transaction in self.held

    def among(self, transactions: DataFrame) -> "BaseCopy":
        """Returns the base copy with its field ``upto`` computed from all ``transactions`` of both sides."""
        new = transactions.where(
            f"side = '{LEADER}' AND transaction NOT LIKE '{COPYING}%' AND NOT {self.passed_over()}"
        )
        first = new.agg(F.min("start.sequence")).collect()[0][0]
        return replace(self, upto=END if first is None else first - 1)

    def passed_over(self) -> str:
        """Returns the SQL of a condition that is true for a record of the leader if the base copy contains its
        transaction.
        """
        number = "try_cast(substring_index(transaction, ':', -1) AS BIGINT)"
        source = "left(transaction, length(transaction) - length(substring_index(transaction, ':', -1)) - 1)"
        cases = " ".join(
            f"WHEN '{name}' THEN exists(array({', '.join(f'struct({low}L, {high}L)' for low, high in intervals)}), "
            f"i -> {number} BETWEEN i.col1 AND i.col2)"
            for name, intervals in self.held.intervals()
        )
        return f"coalesce(side = '{LEADER}' AND CASE {source} {cases} ELSE false END, false)"

    def behind(self, records: DataFrame) -> DataFrame:
        """Selects the ``records`` of both sides that come after the base copy."""
        older = f"side = '{LEADER}' AND transaction LIKE '{COPYING}%' AND sequence <= {self.upto}"
        held = f"{self.passed_over()} OR ({older})"
        return records.where(f"NOT ({held}) AND (side != '{FOLLOWER}' OR sequence > {self.at})")


def base_copy_of(records: DataFrame, resource: str) -> BaseCopy | None:
    """Finds the base copy with which the follower of leader ``resource`` began; None if that follower began empty."""
    noted = [(at, text) for text, at in copies(records, resource)]
    if not noted:
        return None
    at, text = min(noted)
    return BaseCopy(GtidSet.parse(text), at)
