"""The records that an operator let the follower do without (``cdc-consumer --skip``), as its ledger says."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from cdc.spark.streams.consumer_notes import ledger_rows

__all__ = ["Skip", "skipped"]


@dataclass(frozen=True, slots=True)
class Skip:
    """A leader record that was left out; ``statement`` says what it was, ``note`` what the follower refused."""

    sequence: int
    statement: str
    note: str


def skipped(records: DataFrame, *, resource: str, limit: int) -> list[Skip]:
    """The first ``limit`` of the leader ``resource``, in its order."""
    rows = ledger_rows(records, resource).where("state = 'skipped'").select("sequence", "statement", "note")
    return [Skip(**row.asDict()) for row in rows.distinct().orderBy("sequence").limit(limit).collect()]
