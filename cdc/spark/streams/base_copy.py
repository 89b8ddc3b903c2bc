"""Finds the base copy, the dump of the leader that the follower began with (``consumer.start``), and the changes
after it.

The follower's log does not contain the rows of the base copy, or contains them as writes of another client. So the
audit compares only the leader's transactions that the base copy does not contain, and the follower's transactions after
the consumer's note of the base copy, which commits with the consumer's first checkpoint.
"""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.model.gtid import GtidSet
from cdc.spark.ddl.lineage import END, Act
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.streams.consumer_notes import copies
from cdc.spark.streams.transactions import COPYING

__all__ = ["BaseCopy", "base_copy_of"]


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
        """Returns the base copy with ``upto``, which is computed from all ``transactions`` of both sides."""
        new = transactions.where(
            f"side = '{LEADER}' AND transaction NOT LIKE '{COPYING}%' AND NOT {self.passed_over()}"
        )
        first = new.agg(F.min("start.sequence")).collect()[0][0]
        return replace(self, upto=END if first is None else first - 1)

    def passed_over(self) -> str:
        """Writes the SQL of a condition that is true for a record of the leader if the base copy contains its
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
