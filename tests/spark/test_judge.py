"""What an audit tells besides its verdict, and of long streams; tests/verdicts has what it says of short ones."""

import pytest
from pyspark.sql import SparkSession

from cdc.model.gtid import statement_gtid
from tests.generators.streams import Stream, Table, both, checkpoint, query, replicate
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

KEYED = Table("flvDb/toy", ["id", "name"], ["id"])


def history() -> tuple[Stream, Stream]:
    """A table with rows, on both sides."""
    return both(
        [query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb"))],
        [KEYED.add((1, "ball"), (2, "bone"), (3, "mouse"))],
        [KEYED.update(((2, "bone"), (4, "bone")), ((1, "ball"), (1, "rope")))],
    )


def test_statements_are_known_by_the_ledger(judged: Judge) -> None:
    """By the numbers of their GTIDs, which are not their sequences; those without are somebody else's."""
    create = query("CREATE TABLE toy (…)", "flvDb", ("CreateTable", "flvDb/toy"))
    alter = query("ALTER TABLE toy …", "flvDb", ("AlterTable", "flvDb/toy"))
    leader, follower = both([create], [KEYED.add((1, "ball"))], [alter], [alter], numbered=True)
    # The last of what the follower has is a statement that ran before its checkpoint moved.
    leader.transaction(alter)
    replicate(follower, [alter], before=3, numbered=True)
    follower.messages, follower.sequence = follower.messages[:-2], follower.sequence - 2
    # Somebody else's alone is foreign, and the one statement that only one side has.
    other = statement_gtid("mysql-srv1", 9)
    follower.transaction(alter, gtid=other)
    audit = judged(leader, follower)
    assert (audit.verdict, audit.sequence, audit.foreign_writes, audit.schema_drift) == ("drift", 4, 1, 1)
    assert [write.transaction for write in audit.foreign] == [other]


def test_many_rows_in_few_records_are_sorted_by_many_tasks(
    judged: Judge, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc.spark.job.session._A_SMALL_TASK", 200)
    rows = [(number, "ball") for number in range(110)]
    create = query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb"))
    assert judged(*both([create], [KEYED.add(*rows)])).verdict == "no drift"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"  # 110 rows on each side, 200 a task


def test_a_change_the_consumer_lost_is_drift_without_a_foreign_write(judged: Judge) -> None:
    leader, follower = history()
    lost_us = follower.ts_us + 1_000
    leader.transaction(KEYED.update(((3, "mouse"), (3, "rat"))), ts_us=lost_us)
    leader.transaction(KEYED.update(((2, "bone"), (2, "bone"))))
    follower.transaction(checkpoint(2, 4), ts_us=lost_us + 9_000_000)
    audit = judged(leader, follower)
    found = [(row.kind, row.columns, row.foreign, row.since_us) for row in audit.drifted if row.columns == ["name"]]
    assert found == [("different", ["name"], None, lost_us)]


def test_values_of_more_than_spark_reads_by_itself(judged: Judge) -> None:
    long = "x" * 20_000_001
    leader, follower = both([KEYED.add((1, long), (2, "short"))])
    audit = judged(leader, follower)
    assert (audit.verdict, audit.reasons, [line.leader_rows for line in audit.tables]) == ("no drift", [], [2])
