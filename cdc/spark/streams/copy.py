"""The copy of the leader that the follower began from (``consumer.start``), and what is left to compare behind it.

What the copy held is in no log of the follower, or came there past the consumer. So both sides count from where the
copy ends: of the leader what the copy did not hold, of the follower what came after the consumer's note of the copy,
which commits with its first checkpoint.
"""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.model.gtid import GtidSet
from cdc.spark.ddl.lineage import END, Act
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.streams.consumer_notes import copies
from cdc.spark.streams.transactions import COPYING

__all__ = ["Copy", "copy_of"]


@dataclass(frozen=True, slots=True)
class Copy:
    """The copy ``held`` these transactions; ``at`` is the follower's sequence of the consumer's note.

    What the leader's producer made to copy tables into the stream has no GTID. The copy has it, and the consumer passes
    it over, where no transaction before it is new: that is so up to the leader's sequence ``upto``.
    """

    held: GtidSet
    at: int
    upto: int = -1

    def holds(self, act: Act, side: str) -> bool:
        """Whether a statement's effect is in the copy."""
        if side == FOLLOWER:
            return act.sequence <= self.at
        return act.sequence <= self.upto if act.transaction.startswith(COPYING) else act.transaction in self.held

    def among(self, transactions: DataFrame) -> "Copy":
        """The copy with ``upto``, by all ``transactions`` of both sides."""
        new = transactions.where(
            f"side = '{LEADER}' AND transaction NOT LIKE '{COPYING}%' AND NOT {self.passed_over()}"
        )
        first = new.agg(F.min("start.sequence")).collect()[0][0]
        return replace(self, upto=END if first is None else first - 1)

    def passed_over(self) -> str:
        """SQL for whether a record of the leader is of a transaction that the copy held."""
        number = "try_cast(substring_index(transaction, ':', -1) AS BIGINT)"
        source = "left(transaction, length(transaction) - length(substring_index(transaction, ':', -1)) - 1)"
        cases = " ".join(
            f"WHEN '{name}' THEN exists(array({', '.join(f'struct({low}L, {high}L)' for low, high in intervals)}), "
            f"i -> {number} BETWEEN i.col1 AND i.col2)"
            for name, intervals in self.held.intervals()
        )
        return f"coalesce(side = '{LEADER}' AND CASE {source} {cases} ELSE false END, false)"

    def behind(self, records: DataFrame) -> DataFrame:
        """The ``records`` of both sides that come behind the copy."""
        older = f"side = '{LEADER}' AND transaction LIKE '{COPYING}%' AND sequence <= {self.upto}"
        held = f"{self.passed_over()} OR ({older})"
        return records.where(f"NOT ({held}) AND (side != '{FOLLOWER}' OR sequence > {self.at})")


def copy_of(records: DataFrame, resource: str) -> Copy | None:
    """The copy that the follower of the leader ``resource`` began from; None if it began empty."""
    noted = [(at, text) for text, at in copies(records, resource)]
    if not noted:
        return None
    at, text = min(noted)
    return Copy(GtidSet.parse(text), at)
