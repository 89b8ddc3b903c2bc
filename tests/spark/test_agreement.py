"""The law of digests: an audit that goes by them first tells what one tells that folds every row."""

import os
import random

import pytest
from pyspark.sql import SparkSession

from cdc.spark.compare.digest_agreement import Agreement, agreement, comparable_tables
from cdc.spark.ddl.lineage import lineage
from cdc.spark.input.records import FOLLOWER, LEADER, parse
from cdc.spark.streams.contents import statements, survey
from tests.checks.told import told
from tests.generators.random_streams import RandomStreams
from tests.generators.streams import Stream, Table, both, messages, query
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("CDC_SEED", str(random.randrange(1 << 32))))
STREAMS = int(os.environ.get("CDC_DIGESTED_STREAMS", "1"))
TOY = Table("db/toy", ["id", "name"], ["id"])
PET = Table("db/pet", ["name", "owner"])


@pytest.mark.parametrize("number", range(STREAMS))
def test_digests_first_or_every_row_folded_the_audit_is_the_same(judged: Judge, number: int) -> None:
    """One of two streams has tables that are altered: those are folded whole."""
    alters = (SEED + number) % 2 == 0
    streams = RandomStreams(f"{SEED} {number}", steps=200, alters=alters, unlogged=0.1)
    first, whole = (told(judged(streams.leader, streams.follower, folded=each)) for each in (False, True))
    which = f"CDC_SEED={SEED}, stream {number}, alters {alters}"
    # Of a row with many changes, digests can miss breaks that together are none.
    of_rows = {
        side: (first["discontinuities"].pop(side), whole["discontinuities"].pop(side)) for side in (LEADER, FOLLOWER)
    }
    assert all(some <= all_ and (all_ - some) != 1 for some, all_ in of_rows.values()), f"{which}: {of_rows}"
    if any(some < all_ for some, all_ in of_rows.values()):
        del first["discontinued"], whole["discontinued"]
    assert first == whole, which


def agreed(spark: SparkSession, leader: Stream, follower: Stream) -> Agreement:
    """What digests tell of both streams, all of them."""
    records = parse(messages(spark, {LEADER: leader, FOLLOWER: follower})).persist()
    contents, acts = survey(records).answer(), statements(records).answer()
    return agreement(records, {side: lineage(contents[side].tables, acts.get(side, [])) for side in contents}, contents)


def open_rows(found: Agreement) -> int:
    return 0 if found.among is None else found.among.count()


def counted(found: Agreement) -> dict[str, tuple[int, int]]:
    return {each.table: (each.leader_rows, each.follower_rows) for each in found.tally.lines}


def test_a_faithful_copy_leaves_nothing_to_fold(spark: SparkSession) -> None:
    found = agreed(
        spark,
        *both(
            [query("CREATE TABLE toy", "db", ("CreateTable", "db/toy"))],
            [TOY.add((1, "ball"), (2, "bone")), PET.add(("Jack", "Jane"), ("Jack", "Jane"), ("Rex", "Jim"))],
            [TOY.update(((1, "ball"), (3, "ball")), ((2, "bone"), (2, None))), PET.delete(("Rex", "Jim"))],
            [TOY.delete((2, None)), TOY.add((2, "rope"))],
            [query("RENAME TABLE", "db", ("RenameTable", "db/toy", "db/game"))],
        ),
    )
    assert found.complete
    assert counted(found) == {"game": (2, 2), "pet": (2, 2)}
    assert all(line.leader_checksum == line.follower_checksum != "0" for line in found.tally.lines)


def test_what_digests_do_not_tell_is_left_open(spark: SparkSession) -> None:
    long_key = Table("db/long", list("abcde"), list("abcde"))
    moved = Table("db/moved", ["id", "name"], ["id"])
    altered = Table("db/altered", ["id"], ["id"])
    leader, follower = both(
        [TOY.add((1, "ball"), (2, "bone"), (3, "rope"))],
        [long_key.add((1, 2, 3, 4, 5)), altered.add((1,))],
        [query("ALTER TABLE altered", "db", ("AlterTable", "db/altered"))],
        [PET.add(("Jack", "Jane"), ("Rex", "Jim"))],
    )
    leader.transaction(moved.add((1, "x")))
    follower.transaction(Table("db/moved", ["name", "id"], ["id"]).add(("x", 1)))
    follower.transaction(TOY.update(((2, "bone"), (2, "bones"))), TOY.delete((3, "rope")))
    follower.transaction(TOY.add((9, "ghost")), PET.add(("Jack", "Jane")))
    found = agreed(spark, leader, follower)
    assert found.whole == {("db", "long"), ("db", "moved"), ("db", "altered")}
    assert (counted(found), open_rows(found)) == ({"toy": (1, 1), "pet": (1, 1)}, 4)


@pytest.mark.parametrize(
    "changes",
    [
        [TOY.update(((1, "not the ball"), (1, "rope")))],
        [TOY.add((1, "ball"))],
        [TOY.update(((1, "rope"), (1, "rope")))],
        [TOY.delete((1, "ball")), TOY.delete((1, "ball"))],
        [TOY.update(((1, "rope"), (1, "ball"))), TOY.update(((1, "rope"), (1, "ball")))],
    ],
    ids=["another before", "put where one was", "taken is put", "taken twice", "twice the same"],
)
def test_images_that_do_not_continue_are_left_open(spark: SparkSession, changes: list[dict[str, object]]) -> None:
    found = agreed(spark, *both([TOY.add((1, "ball"), (2, "bone"))], *([change] for change in changes)))
    assert (counted(found), open_rows(found)) == ({"toy": (1, 1)}, 1)


def test_spark_neither_sorts_nor_leaves_its_compiled_code(spark: SparkSession) -> None:
    leader, follower = both([TOY.add((1, "ball"))])
    follower.transaction(TOY.add((2, "ghost")))
    found = agreed(spark, leader, follower)
    assert found.among is not None
    plan = found.among._jdf.queryExecution().executedPlan().toString()
    assert "HashAggregate" in plan
    assert "SortAggregate" not in plan
    assert "ObjectHashAggregate" not in plan


def test_a_table_is_told_of_by_all_names_that_its_rows_were_logged_under(spark: SparkSession) -> None:
    """A name that had another shape once makes all tables unfit that ever had it, its next one too."""
    leader, follower = both(
        [TOY.add((1, "ball"))],
        [query("DROP TABLE toy", "db", ("DropTable", "db/toy"))],
        [Table("db/toy", ["id"], ["id"]).add((1,)), PET.add(("Jack", "Jane"))],
        [query("RENAME TABLE", "db", ("RenameTable", "db/toy", "db/game"))],
    )
    records = parse(messages(spark, {LEADER: leader, FOLLOWER: follower}))
    contents, acts = survey(records).answer(), statements(records).answer()
    lives = {side: lineage(contents[side].tables, acts.get(side, [])) for side in contents}
    assert comparable_tables(lives, contents) == ([("db", "pet")], {("db", "game"), ("db", "toy")})
