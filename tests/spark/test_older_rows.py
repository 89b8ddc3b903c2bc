"""Rows older than the topics, or than an ALTER: one log has them only from a change on, the other not at all."""

import json
import os
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.spark.compare.copied_tables import Copied
from cdc.spark.compare.fold import carried, changes, fold, segments
from cdc.spark.compare.row_drift import as_folded, compare, fold_of
from cdc.spark.ddl.lineage import Beginning, lineage
from cdc.spark.input.records import LEADER, parse
from cdc.spark.streams.contents import statements
from tests.generators.streams import Stream, Table, checkpoint, follower_stream, messages, query
from tests.harness.long_runs import in_long_runs
from tests.harness.seed import SEED
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

STEPS = int(os.environ.get("CDC_OLDER_STEPS", "400"))
TOY = Table("db/toy", ["id", "name"], ["id"])
WIDER = Table("db/toy", ["id", "name", "size"], ["id"])


def images(found: dict[str, str] | None) -> dict[str, Any]:
    return {} if found is None else {name: json.loads(value).popitem()[1] for name, value in found.items()}


class Older:
    """Three tables of which both servers have the same rows before their logs, and one that is made then."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.shapes = [Table(f"db/{name}", ["id", "name"], ["id"]) for name in ("a", "b", "c", "made")]
        first = {
            (shape.name, key): "old" for shape in self.shapes[:3] for key in range(60) if self.random.random() < 0.7
        }
        self.rows = {side: dict(first) for side in ("leader", "follower")}
        self.streams = {"leader": Stream(), "follower": follower_stream()}
        self.streams["leader"].transaction(query("CREATE TABLE made", "db", ("CreateTable", "db/made")))
        create = query("CREATE TABLE made", "db", ("CreateTable", "db/made"))
        self.streams["follower"].transaction(create, checkpoint(-1, 0))
        for _ in range(STEPS):
            self.step()

    def step(self) -> None:
        """A change of the leader, which the consumer loses now and then, or one of somebody on the follower."""
        shape, key = self.random.choice(self.shapes), self.random.randrange(60)
        new = self.random.choice([None, "old", "x", "y"])
        pick, last = self.random.random(), self.streams["leader"].sequence - 1
        if pick < 0.8 and (part := self.part("leader", shape, key, new)):
            self.streams["leader"].transaction(part)
            applied = self.part("follower", shape, key, new) if pick < 0.7 else None
            self.streams["follower"].transaction(*([applied] if applied else []), checkpoint(last, last + 1))
        elif pick > 0.8 and (by_hand := self.part("follower", shape, key, new)):
            self.streams["follower"].transaction(by_hand)

    def part(self, side: str, shape: Table, key: int, new: str | None) -> dict[str, object] | None:
        """How one server logs that a row is as it should be; None where it is."""
        rows, at = self.rows[side], (shape.name, key)
        before = rows.pop(at, None)
        if new is not None:
            rows[at] = new
        if before == new:
            return None
        if before is None:
            return shape.add((key, new))
        return shape.delete((key, before)) if new is None else shape.update(((key, before), (key, new)))


@pytest.mark.parametrize("folded", [False, in_long_runs(True)])
def test_whatever_was_there_before_what_differs_is_told(judged: Judge, folded: bool) -> None:
    """All differences are of rows that one of the sides has changed, and logged."""
    made, which = Older(f"{SEED} {folded}"), f"CDC_SEED={SEED}"
    audit = judged(made.streams["leader"], made.streams["follower"], folded=folded)
    leader, follower = made.rows["leader"], made.rows["follower"]
    wanted = {
        (*name.split("/")[1:], key): (one, other)
        for name, key in leader.keys() | follower.keys()
        if (one := leader.get((name, key))) != (other := follower.get((name, key)))
    }
    found = {
        (row.table, images(row.identity)["id"]): (
            images(row.leader_image).get("name"), images(row.follower_image).get("name")
        )
        for row in audit.drifted
    }  # fmt: skip
    assert found == wanted, which
    kinds = {(True, True): "different", (True, False): "missing", (False, True): "extra"}
    assert all(row.kind == kinds[row.leader_image is not None, row.follower_image is not None] for row in audit.drifted)
    assert {line.table: line.older for line in audit.tables} == {"a": True, "b": True, "c": True, "made": False}
    assert audit.discontinuities == {"leader": 0, "follower": 0}, which


def test_how_rows_were_found_is_known_on_from_a_state(spark: SparkSession) -> None:
    alter = query("ALTER TABLE toy ADD size INT DEFAULT 4", "db", ("AlterTable", "db/toy"))
    stream = Stream()
    for old, new in (("1", "one"), ("one", "two"), ("two", "1")):
        stream.transaction(TOY.update(((1, old), (1, new))), TOY.update(((2, old), (2, new))))
        stream.transaction(TOY.add((3, new)), TOY.delete((3, new)))
    stream.transaction(alter)
    stream.transaction(WIDER.update(((2, "1", 4), (2, "2", 4))), WIDER.update(((4, "4", 4), (4, "IV", 4))))
    stream.transaction(WIDER.update(((2, "2", 4), (2, "1", 4))), WIDER.add((3, "3", None)))
    records = parse(messages(spark, {LEADER: stream})).persist()
    acts = statements(records).result()[LEADER]
    lives = segments(spark, lineage([("db", "toy")], acts))
    whole = fold(changes(records, lives))
    for cut in (6, 13, 14, 15):
        first = segments(spark, lineage([("db", "toy")], [act for act in acts if act.sequence < cut]))
        held = fold(changes(records.where(f"sequence < {cut}"), first))
        # Whatever is known since.
        known = {("db", "toy"): Beginning.KNOWN} if cut > 14 else {}
        again = segments(spark, lineage([("db", "toy")], [act for act in acts if act.sequence >= cut], known))
        late = changes(records.where(f"sequence >= {cut}"), again)
        stepwise = fold(late.unionByName(carried(held, again)))
        told = [
            sorted(map(str, frame.select("identity", "net", "era", "found", "stood").collect()))
            for frame in (whole, stepwise)
        ]
        assert told[0] == told[1], cut
    assert [line.count("found=None") for line in told[0]] == [0, 0, 1, 0]
    assert [line.count("stood=None") for line in told[0]] == [1, 0, 1, 1]
    # What a state keeps is what was folded, not what was concluded from it.
    former = fold(changes(records.where("sequence < 12"), lives))
    compared = compare(former, whole, Copied(older=frozenset([("db", "toy")])))
    assert compared.where("leader_image != leader_folded").count() == 1
    for side, folded in (("leader", former), ("follower", whole)):
        kept = fold_of(as_folded(compared), side)
        assert sorted(map(str, kept.collect())) == sorted(map(str, folded.select(kept.columns).collect()))
    records.unpersist()
