"""The law of digests: an audit that goes by them first tells what one tells that folds every row."""

import os
from collections.abc import Callable, Mapping

import pytest
from pyspark.sql import SparkSession

from cdc.spark.compare import digest_agreement
from cdc.spark.compare.copied_tables import Copied
from cdc.spark.compare.digest_agreement import Agreement, agreement, comparable_tables
from cdc.spark.ddl.lineage import Name, lineage
from cdc.spark.ddl.table_copies import TableCopy
from cdc.spark.input.records import FOLLOWER, LEADER, parse
from cdc.spark.streams.contents import statements, survey
from tests.checks.told import told
from tests.generators.random_streams import RandomStreams
from tests.generators.streams import Part, Stream, Table, both, messages, query
from tests.harness.seed import SEED
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

STREAMS = int(os.environ.get("CDC_DIGESTED_STREAMS", "1"))
STEPS = 200 if STREAMS > 1 else 80
TOY = Table("db/toy", ["id", "name"], ["id"])
PET = Table("db/pet", ["name", "owner"])


@pytest.mark.parametrize("number", range(STREAMS))
def test_digests_first_or_every_row_folded_the_audit_is_the_same(judged: Judge, number: int) -> None:
    """One of two streams has tables that are altered: those are folded whole."""
    alters = (SEED + number) % 2 == 0
    streams = RandomStreams(f"{SEED} {number}", steps=STEPS, alters=alters, unlogged=0.1)
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


def agreed(
    spark: SparkSession, leader: Stream, follower: Stream, copies: Mapping[Name, TableCopy] | None = None
) -> Agreement:
    """What digests tell of both streams, all of them."""
    records = parse(messages(spark, {LEADER: leader, FOLLOWER: follower})).persist()
    contents, acts = survey(records).result(), statements(records).result()
    lives = {side: lineage(contents[side].tables, acts.get(side, [])) for side in contents}
    return agreement(records, lives, contents, Copied(copies or {}))


def open_rows(found: Agreement) -> int:
    return 0 if found.among is None else found.among.count()


def open_by_table(found: Agreement) -> dict[str, int]:
    assert found.among is not None
    return {row["table"]: row["count"] for row in found.among.groupBy("table").count().collect()}


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
    assert found.whole == {("db", "long"), ("db", "moved")}
    assert (counted(found), open_rows(found)) == ({"toy": (1, 1), "pet": (1, 1), "altered": (1, 1)}, 4)


WIDER = Table("db/toy", ["id", "name", "price"], ["id"])
ALTER = query("ALTER TABLE toy ADD price INT", "db", ("AlterTable", "db/toy"))


def test_rows_changed_before_and_after_an_alter_leave_nothing_to_fold(spark: SparkSession) -> None:
    """Values that the ALTER has changed included: no log has these."""
    found = agreed(
        spark,
        *both(
            [TOY.add((1, "ball"), (2, "bone"), (3, "rope"), (4, "ring"))],
            [TOY.update(((2, "bone"), (2, "bones")))],
            [ALTER],
            [WIDER.update(((1, "ball", 5), (1, "ball", 6)), ((2, "bones", 5), (2, "bones", None)))],
            [WIDER.delete((3, "rope", 5)), WIDER.add((5, "cube", 7))],
            [query("RENAME TABLE", "db", ("RenameTable", "db/toy", "db/game"))],
        ),
    )
    assert found.complete
    assert counted(found) == {"game": (4, 4)}


def altered(name: str) -> tuple[Table, Table, Part]:
    """A table before and after an ALTER, and the statement."""
    alter = query(f"ALTER TABLE {name} ADD price INT", "db", ("AlterTable", f"db/{name}"))
    return Table(f"db/{name}", TOY.columns, ["id"]), Table(f"db/{name}", WIDER.columns, ["id"]), alter


# What each side does then to a table (its shapes before and after an ALTER, and the statement); a table each.
LEFT_OPEN: dict[str, Callable[[Table, Table, Part], tuple[list[Part], list[Part]]]] = {
    "one side after it": lambda _, wide, alter: ([alter, wide.update(((1, "ball", 5), (1, "rope", 5)))], [alter]),
    "to what it was": lambda _, wide, alter: ([alter], [alter, wide.update(((1, "ball", 5), (1, "ball", None)))]),
    "on different sides of it": lambda toy, wide, alter: (
        [toy.update(((1, "ball"), (1, "rope"))), alter], [alter, wide.update(((1, "x", 5), (1, "rope", None)))],
    ),
    "a break before it": lambda toy, _, alter: ([alter], [toy.update(((1, "not the ball"), (1, "ball"))), alter]),
    "only the leader": lambda _, __, alter: ([alter], []),
}  # fmt: skip


def test_a_row_of_an_altered_table_is_left_open(spark: SparkSession) -> None:
    """Where an ALTER lies between the last changes on both sides, how each side found the row counts, too."""
    shapes = {name: altered(f"t{at}") for at, name in enumerate(LEFT_OPEN)}
    leader, follower = both(*([toy.add((1, "ball"), (2, "bone"))] for toy, _, _ in shapes.values()))
    for name, steps in LEFT_OPEN.items():
        for stream, parts in zip((leader, follower), steps(*shapes[name]), strict=True):
            for part in parts:
                stream.transaction(part)
    found = agreed(spark, leader, follower)
    # Of the table that the follower has not altered both rows.
    wanted = {f"t{at}": 1 + (name == "only the leader") for at, name in enumerate(LEFT_OPEN)}
    assert (found.whole, open_by_table(found)) == (frozenset(), wanted)


def test_an_altered_table_without_one_shape_each_era_or_without_a_key_is_folded_whole(spark: SparkSession) -> None:
    other, keyless = Table("db/toy", ["name", "id"], ["id"]), Table("db/pet", ["name", "owner", "sex"])
    alter = query("ALTER TABLE pet ADD sex", "db", ("AlterTable", "db/pet"))
    rekeyed = Table("db/key", ["id", "name"], ["name"])
    found = agreed(
        spark,
        *both(
            [TOY.add((1, "ball")), PET.add(("Jack", "Jane")), Table("db/key", ["id", "name"], ["id"]).add((1, "one"))],
            [ALTER],
            [alter],
            [query("ALTER TABLE `key`", "db", ("AlterTable", "db/key"))],
            [WIDER.add((2, "bone", 1)), keyless.add(("Rex", "Jim", "m")), rekeyed.add((2, "two"))],
            [other.add(("rope", 3))],
        ),
    )
    assert found.whole == {("db", "toy"), ("db", "pet"), ("db", "key")}


def test_rows_that_came_and_went_before_the_follower_saw_them_are_settled(spark: SparkSession) -> None:
    leader, follower = both([TOY.add((1, "ball"))])
    leader.transaction(TOY.add((2, "job"), (3, "job")), TOY.update(((2, "job"), (2, "done"))))
    leader.transaction(TOY.delete((2, "done"), (3, "job")))
    found = agreed(spark, leader, follower)
    assert (found.complete, counted(found)) == (True, {"toy": (1, 1)})
    # Of what a chunk states, the follower may have had rows without a record.
    found = agreed(spark, leader, follower, copies={("db", "toy"): TableCopy(0, 0, complete=True)})
    assert open_rows(found) == 2


# What the leader alone does to a table, of which both have another row; a table each.
NEVER_HAD: dict[str, Callable[[Table, Table, Part], list[Part]]] = {
    "stays": lambda toy, _, __: [toy.add((2, "job"))],
    "was there": lambda toy, _, __: [toy.delete((2, "job"))],
    "was there and came again": lambda toy, _, __: [
        toy.delete((2, "job")), toy.add((2, "job")), toy.delete((2, "job")),
    ],
    "went as another": lambda toy, _, __: [toy.add((2, "job")), toy.delete((2, "another"))],
    "went after an ALTER": lambda toy, wide, alter: [toy.add((2, "job")), alter, wide.delete((2, "job", None))],
}  # fmt: skip


def test_other_rows_that_the_follower_never_had_are_left_open(spark: SparkSession) -> None:
    shapes = [altered(f"t{at}") for at in range(len(NEVER_HAD))]
    leader, follower = both(*([toy.add((1, "ball"))] for toy, _, _ in shapes))
    for shape, changes in zip(shapes, NEVER_HAD.values(), strict=True):
        for change in changes(*shape):
            leader.transaction(change)
            if change is shape[2]:
                follower.transaction(change)
    assert open_by_table(agreed(spark, leader, follower)) == {f"t{at}": 1 for at in range(len(NEVER_HAD))}


def test_open_rows_of_all_tables_together_are_few(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [Table(f"db/t{number}", ["id"], ["id"]) for number in range(3)]
    leader, follower = both(*([table.add((0,))] for table in tables))
    for number, table in enumerate(tables):
        leader.transaction(table.add(*((at,) for at in range(1, 4 - number))))
    monkeypatch.setattr(digest_agreement, "_FEW", 4)
    found = agreed(spark, leader, follower)
    assert (found.whole, found.among_of) == ({("db", "t0")}, {("db", "t1"), ("db", "t2")})
    assert open_rows(found) == 3


# A table each, of which both have a ball and a bone.
NOT_CONTINUED: dict[str, Callable[[Table], list[Part]]] = {
    "another before": lambda toy: [toy.update(((1, "not the ball"), (1, "rope")))],
    "put where one was": lambda toy: [toy.add((1, "ball"))],
    "taken is put": lambda toy: [toy.update(((1, "rope"), (1, "rope")))],
    "taken twice": lambda toy: [toy.delete((1, "ball")), toy.delete((1, "ball"))],
    "twice the same": lambda toy: [toy.update(((1, "rope"), (1, "ball"))), toy.update(((1, "rope"), (1, "ball")))],
}


def test_images_that_do_not_continue_are_left_open(spark: SparkSession) -> None:
    tables = [Table(f"db/t{at}", TOY.columns, ["id"]) for at in range(len(NOT_CONTINUED))]
    changes = [[change] for table, made in zip(tables, NOT_CONTINUED.values(), strict=True) for change in made(table)]
    found = agreed(spark, *both([table.add((1, "ball"), (2, "bone")) for table in tables], *changes))
    assert counted(found) == dict.fromkeys(open_by_table(found), (1, 1))
    assert open_by_table(found) == {f"t{at}": 1 for at in range(len(NOT_CONTINUED))}


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
    """But not by those of another table that had the name before."""
    leader, follower = both(
        [TOY.add((1, "ball"))],
        [query("DROP TABLE toy", "db", ("DropTable", "db/toy"))],
        [Table("db/toy", ["id"], ["id"]).add((1,)), PET.add(("Jack", "Jane"))],
        [query("RENAME TABLE", "db", ("RenameTable", "db/toy", "db/game"))],
    )
    records = parse(messages(spark, {LEADER: leader, FOLLOWER: follower}))
    contents, acts = survey(records).result(), statements(records).result()
    lives = {side: lineage(contents[side].tables, acts.get(side, [])) for side in contents}
    assert comparable_tables(lives, contents) == ([("db", "game"), ("db", "pet")], frozenset(), frozenset())
