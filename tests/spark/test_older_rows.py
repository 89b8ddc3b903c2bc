"""Rows older than the topics, or than an ALTER: one log has them only from a change on, the other not at all."""

import json
import os
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.spark.compare import causes
from cdc.spark.compare.copied_tables import Copied
from cdc.spark.compare.fold import carried, changes, fold, segments
from cdc.spark.compare.row_drift import as_folded, compare, fold_of
from cdc.spark.ddl.lineage import Beginning, lineage
from cdc.spark.input.records import LEADER, parse
from cdc.spark.streams.contents import statements
from tests.generators.streams import Stream, Table, both, checkpoint, follower_stream, messages, query
from tests.harness.seed import SEED
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

STEPS = int(os.environ.get("CDC_OLDER_STEPS", "400"))
TOY = Table("db/toy", ["id", "name"], ["id"])
WIDER = Table("db/toy", ["id", "name", "size"], ["id"])
MADE, PERHAPS, ANEW = (Table(f"db/{name}", ["id", "name"], ["id"]) for name in ("made", "perhaps", "anew"))


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


@pytest.mark.parametrize("folded", [False, True])
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


@pytest.mark.parametrize("folded", [False, True])
def test_one_side_s_change_of_a_row_that_was_there_before(judged: Judge, folded: bool) -> None:
    leader, follower = Stream(), follower_stream()
    leader.transaction(query("CREATE TABLE made", "db", ("CreateTable", "db/made")))
    follower.transaction(query("CREATE TABLE made", "db", ("CreateTable", "db/made")), checkpoint(-1, 0))
    leader.transaction(TOY.update(((1, "1"), (1, "one"))))
    follower.transaction(TOY.update(((1, "1"), (1, "one"))), checkpoint(0, 1))
    leader.transaction(TOY.update(((2, "2"), (2, "two"))), TOY.delete((3, "3")), TOY.update(((4, "4"), (4, "4"))))
    follower.transaction(checkpoint(1, 4))  # what the consumer lost
    follower.transaction(TOY.update(((5, "5"), (5, "five"))), TOY.delete((6, "6")))
    # What is put back by hand, in one way or another.
    follower.transaction(TOY.update(((7, "7"), (7, "seven"))), TOY.delete((8, "8")))
    follower.transaction(TOY.update(((7, "seven"), (7, "7"))), TOY.add((8, "8")))
    # No row of this table was there before: this one came with the binlog off.
    follower.transaction(MADE.update(((1, "ghost"), (1, "spirit"))), MADE.update(((1, "spirit"), (1, "ghost"))))
    audit = judged(leader, follower, folded=folded)
    found = {(row.table, json.loads(row.identity["id"])["SignedInteger"]): row for row in audit.drifted}
    assert {key: (row.kind, row.cause, row.columns) for key, row in found.items()} == {
        ("toy", 2): ("different", causes.MISSING, ["name"]),
        ("toy", 3): ("extra", causes.MISSING, []),
        ("toy", 5): ("different", causes.FOREIGN, ["name"]),
        ("toy", 6): ("missing", causes.FOREIGN, []),
        ("made", 1): ("extra", causes.FOREIGN, []),
    }
    assert found["toy", 5].leader_image == {"id": '{"SignedInteger":5}', "name": '{"String":"5"}'}
    assert found["toy", 2].follower_image == {"id": '{"SignedInteger":2}', "name": '{"String":"2"}'}
    (made, toy) = audit.tables
    assert (made.leader_rows, made.follower_rows) == (0, 1)
    assert (toy.leader_rows, toy.follower_rows, toy.missing, toy.extra, toy.different) == (7, 7, 1, 1, 2)


def test_a_table_that_one_side_has_from_its_beginning_or_perhaps_both(judged: Judge) -> None:
    """What came there with the binlog off is not taken for what was there before."""
    there = query("CREATE TABLE IF NOT EXISTS perhaps (id INT)", "db", ("CreateTable", "db/perhaps"))
    anew = query("CREATE TABLE anew (id INT)", "db", ("CreateTable", "db/anew"))
    leader, follower = both([there], [TOY.update(((1, "1"), (1, "one")))])
    leader.transaction(anew)  # skipped on the follower
    follower.transaction(checkpoint(1, 2))
    for table in (PERHAPS, ANEW):
        follower.transaction(table.update(((1, "ghost"), (1, "spirit"))), table.update(((1, "spirit"), (1, "ghost"))))
    audit = judged(leader, follower)
    assert [(row.table, row.kind) for row in audit.drifted] == [("anew", "extra"), ("perhaps", "extra")]
    assert {line.table: line.older for line in audit.tables} == {"anew": False, "perhaps": True, "toy": True}


@pytest.mark.parametrize(("folded", "entire"), [(False, False), (True, True)])
def test_a_write_after_an_alter_that_was_undone(judged: Judge, folded: bool, entire: bool) -> None:
    alter = query("ALTER TABLE toy ADD size INT DEFAULT 4", "db", ("AlterTable", "db/toy"))
    create = query("CREATE TABLE toy", "db", ("CreateTable", "db/toy"))
    rows = [(number, str(number)) for number in range(1, 7)]
    known = TOY.add(*rows) if entire else TOY.update(*(((key, "old"), (key, name)) for key, name in rows))
    leader, follower = both([create] if entire else [MADE.add((1, "1"))], [known], [alter])
    undone = ((1, "1", 4), (1, "one", 4)), ((1, "one", 4), (1, "1", 4))
    follower.transaction(WIDER.update(undone[0], ((2, "2", 4), (2, "two", 4)), ((3, "3", 4), (3, "3", None))))
    follower.transaction(WIDER.update(undone[1]), WIDER.delete((4, "4", 4)), WIDER.delete((5, "5", 4)))
    # With the binlog off since the ALTER, and then as it was before that.
    follower.transaction(WIDER.update(((6, "six", 4), (6, "VI", 4))), WIDER.update(((6, "VI", 4), (6, "six", 4))))
    follower.transaction(WIDER.add((5, "5", 4)))
    audit = judged(leader, follower, folded=folded)
    assert [(images(row.identity)["id"], row.kind, row.columns) for row in audit.drifted] == [
        (2, "different", ["name"]), (3, "different", ["size"]), (6, "different", ["name", "size"]), (4, "missing", []),
    ]  # fmt: skip
    # The leader's changes that the follower has not logged, one of them undone.
    leader.transaction(WIDER.update(((2, "2", 4), (2, "II", 4))), WIDER.update(undone[0]), WIDER.update(undone[1]))
    follower.transaction(checkpoint(leader.sequence - 4, leader.sequence - 1))
    audit = judged(leader, follower, folded=folded)
    assert sorted(images(row.identity)["id"] for row in audit.drifted) == [2, 3, 4, 6]


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
    acts = statements(records).answer()[LEADER]
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
