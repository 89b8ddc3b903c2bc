"""The copy of the leader that the follower began from (``consumer.start``), and what is left to compare behind it.

What the copy held is in no log of the follower, or came there past the consumer. So both sides count from where the
copy ends: of the leader what the copy did not hold, of the follower what came after the consumer's note of the copy,
which commits with its first checkpoint.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from cdc.model.gtid import GtidSet
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.schema.lineage import Act
from cdc.spark.streams.consumer_notes import copies

__all__ = ["Copy", "copy_of"]


@dataclass(frozen=True, slots=True)
class Copy:
    """The copy ``held`` these transactions; ``at`` is the follower's sequence of the consumer's note."""

    held: GtidSet
    at: int

    def holds(self, act: Act, side: str) -> bool:
        """Whether a statement's effect is in the copy."""
        return act.sequence <= self.at if side == FOLLOWER else act.transaction in self.held

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
        return records.where(f"NOT {self.passed_over()} AND (side != '{FOLLOWER}' OR sequence > {self.at})")


def copy_of(records: DataFrame, resource: str) -> Copy | None:
    """The copy that the follower of the leader ``resource`` began from; None if it began empty."""
    noted = [(at, text) for text, at in copies(records, resource)]
    if not noted:
        return None
    at, text = min(noted)
    return Copy(GtidSet.parse(text), at)
