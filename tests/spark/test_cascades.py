"""Rows that only the follower's foreign keys changed, under a leader that logs no cascades, and then is upgraded."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from tests.checks.told import told
from tests.generators.streams import Part, Stream, Table, checkpoint, follower_stream, query, replicate
from tests.harness.programs import own_name
from tests.spark.test_state import GrowingTopics, kept

pytestmark = pytest.mark.spark

PARENT = Table("db/parent", ["id"], ["id"])
CHILD = Table("db/child", ["id", "parent"], ["id"])
UNCHECKED, LOGS_ALL = 2, 16  # flags of rows events


class History:
    """A leader before 9.6, and a follower since, whose foreign keys do what the leader does not log."""

    def __init__(self) -> None:
        self.leader, self.follower, self._last = Stream(), follower_stream(), -1
        for name in ("parent", "child"):
            create = query(f"CREATE TABLE {name}", "db", ("CreateTable", f"db/{name}"))
            self.leader.transaction(create)
            self._last = replicate(self.follower, [create], before=self._last)

    def applied(self, *parts: Part, cascades: tuple[Part, ...] = (), flags: int = 0) -> None:
        """A transaction of the leader, ``flags`` on each of its records, and what comes with it on the follower."""
        self.leader.transaction(*(part | {"flags": part.get("flags", 0) | flags} for part in parts))
        theirs = [part | {"flags": part.get("flags", 0) | flags | LOGS_ALL} for part in parts]
        theirs += [part | {"flags": UNCHECKED | LOGS_ALL} for part in cascades]
        self.follower.transaction(*theirs, checkpoint(self._last, self._last + len(parts)))
        self._last += len(parts)


def test_cascades_are_told_by_the_sequences_they_came_with_and_a_state_goes_on_from_them(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    history, pair, state = History(), GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path)), tmp_path / "state"
    # As a dump is loaded.
    history.applied(PARENT.add((1,), (2,), (3,)), CHILD.add((10, 1), (20, 2), (30, 3)), flags=UNCHECKED)
    history.applied(PARENT.delete((1,)), cascades=(CHILD.delete((10, 1)),))
    # A child row comes with the checks off, and goes with its parent in the same transaction.
    history.applied(
        PARENT.add((5,)), CHILD.add((50, 5)) | {"flags": UNCHECKED}, PARENT.delete((5,)),
        cascades=(CHILD.delete((50, 5)),),
    )  # fmt: skip
    # And once more: the cascade was before it.
    history.applied(CHILD.add((21, 2)), flags=UNCHECKED)
    pair.grow(history.leader, history.follower)
    audit = pair.on_from(state)
    assert (audit.verdict, audit.sequence, [each.follower_rows for each in audit.tables]) == ("no drift", 8, [5, 2])
    assert kept(state)["next"] == {"leader": 9, "follower": len(history.follower.messages)}
    # A leader that was upgraded logs what its foreign keys do, with the checks off; the consumer takes them off.
    history.applied(PARENT.delete((2,)), CHILD.delete((20, 2), (21, 2)) | {"flags": UNCHECKED}, flags=LOGS_ALL)
    history.applied(CHILD.add((31, 3)), flags=LOGS_ALL)
    history.follower.messages[-2] = history.follower.messages[-2].replace('"flags": 16', '"flags": 18')
    # Nobody logged that, and nothing of the leader's is behind it.
    history.applied(PARENT.add((4,)), cascades=(CHILD.delete((31, 3)),))
    # A write of somebody else's is none of them: of all these rows it alone is drift.
    history.follower.transaction(CHILD.delete((30, 3)) | {"flags": UNCHECKED | LOGS_ALL})
    pair.grow(history.leader, history.follower)
    stepwise, whole = pair.on_from(state), pair.from_the_start()
    assert (whole.sequence, [each.follower_rows for each in whole.tables]) == (12, [3, 2])
    assert (whole.verdict, whole.drifted_rows, whole.drifted_by_cause) == ("drift", 1, {"foreign write": 1})
    assert [row.identity for row in whole.drifted] == [{"id": '{"SignedInteger":30}'}]
    assert told(stepwise) == told(whole)
