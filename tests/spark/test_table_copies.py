"""The law of copied tables: whatever was copied, and when, the audit compares what the tables hold."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.spark.compare.fold import changes, fold, segments
from cdc.spark.ddl.lineage import lineage
from cdc.spark.input.records import LEADER, parse
from cdc.spark.report.terminal import terminal
from cdc.spark.streams.chunks import copy_ends
from cdc.spark.streams.contents import statements, survey
from tests.checks.told import told
from tests.generators.copied_tables import Copied, CopiedTables
from tests.generators.streams import Stream, Table, checkpoint, follower_stream, messages, query, replicate
from tests.harness.programs import own_name
from tests.harness.seed import SEED
from tests.spark.conftest import Judge
from tests.spark.test_state import GrowingTopics

pytestmark = pytest.mark.spark

TABLES = int(os.environ.get("CDC_COPIED_TABLES", "12"))
LEFT = 2


def images(table: Copied) -> list[dict[str, str]]:
    return [
        {name: json.dumps(_tagged(content)) for name, content in zip(table.shape.columns, row, strict=False)}
        for _, row in sorted(table.leader.items())
    ]


def _tagged(content: object) -> Mapping[str, object]:
    return {"SignedInteger" if isinstance(content, int) else "String": content}


def test_what_is_copied_while_it_changes(judged: Judge, spark: SparkSession) -> None:
    made, which = CopiedTables(str(SEED), tables=TABLES, steps=30, left=LEFT), f"CDC_SEED={SEED}"
    # Of tables under copy, and of rows that an ALTER changed without a record, the stream does not tell all.
    told_whole = {table.name: images(table) for table in made.tables[LEFT:] if not table.altered}
    found = folded(spark, made.leader)
    assert {name: found.get(name, []) for name in told_whole} == told_whole, which
    # Drift, of copied tables and of one under copy; all else was copied as it is.
    certain = [table for table in made.tables[LEFT:] if table.leader and not table.altered and not table.stale]
    for table in (*certain[:4], *(each for each in made.tables[:1] if each.leader)):
        made.intrude(table, key=next(iter(table.leader)))
    audit, whole = (judged(made.leader, made.follower, folded=each) for each in (False, True))
    assert told(audit) == told(whole), which
    assert (audit.exit_status, audit.why, audit.breaks) == (1, [], []), which
    assert sorted((row.table, row.kind, row.cause) for row in audit.drifted) == sorted(
        (table.name, "different", "foreign write") for table in certain[:4]
    ), which
    assert ([each.table for each in audit.under_copy], audit.schema) == (
        sorted(table.name for table in made.tables[:LEFT]), []
    ), which  # fmt: skip
    assert (audit.foreign_writes, sum(audit.discontinuities.values())) == (made.intrusions, 0), which
    assert not {table.name for table in made.tables[:LEFT]} & {line.table for line in audit.tables}, which
    lines = {line.table: line for line in audit.tables}
    for table in made.tables[LEFT:]:
        if line := lines.get(table.name):
            assert line.leader_rows + line.not_compared == len(table.leader), f"{which}: {line}"
            assert not line.not_compared or table.stale, f"{which}: {line}"
    assert any(line.startswith("Not compared yet, since") for line in terminal(audit))


def folded(spark: SparkSession, leader: Stream) -> dict[str, list[dict[str, str]]]:
    """The rows of each table that the leader's stream adds up to."""
    records = parse(messages(spark, {LEADER: leader})).persist()
    acts = [*statements(records).answer()[LEADER], *copy_ends(records)]
    rows = fold(changes(records, segments(spark, lineage(survey(records).answer()[LEADER].tables, acts)))).collect()
    assert not [row for row in rows if row["breaks"]]
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        if row["image"] is not None:
            image = {pair["column"]: json.dumps(json.loads(pair["value"])) for pair in row["image"]}
            found.setdefault(row["table"], []).append(image)
    return {
        name: sorted(each, key=lambda image: int(json.loads(image["id"])["SignedInteger"]))
        for name, each in found.items()
    }


def test_on_from_a_state_in_the_midst_of_copies(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    made, which = CopiedTables(f"{SEED} state", tables=5, steps=16, left=1), f"CDC_SEED={SEED}"
    pair = GrowingTopics(spark, kafka, tmp_path, own_name(tmp_path), fragmented=True)
    pair.grow(made.leader, made.follower, made.moments[len(made.moments) // 2])
    assert pair.on_from(tmp_path / "state").sequence is not None
    pair.grow(made.leader, made.follower)
    copied = pair.on_from(tmp_path / "state")
    assert (copied.verdict, copied.exit_status, copied.reasons) == ("could not judge", 2, []), which
    assert ([each.table for each in copied.under_copy], copied.drifted_rows) == ([made.tables[0].name], 0), which
    if TABLES <= 12:
        assert told(copied) == told(pair.from_the_start()), which
        return
    # A few rows are looked up in the state: of a table that was copied, and of the one that is not yet.
    for table in (made.tables[0], made.tables[1], made.tables[2]):
        table.leader.setdefault(0, (0, "new"))
        made.change(table)
        made.intrude(table)
    pair.grow(made.leader, made.follower)
    stepwise, whole = pair.on_from(tmp_path / "state"), pair.from_the_start()
    assert told(stepwise) == told(whole), which
    assert whole.foreign_writes > copied.foreign_writes, which


TOY = Table("db/toy", ["id", "name"], ["id"])


def test_what_the_follower_s_log_does_not_have_of_a_copy_is_not_compared(judged: Judge) -> None:
    """The follower began from a copy of the leader itself: what that held of the table is in no log."""
    leader, follower = Stream(), follower_stream()
    leader.transaction(TOY.chunk(None, None, (1, "long past"), (9, "gone since")), gtid="copy:one:1")
    leader.transaction(Table("db/other", ["id"], ["id"]).add((1,)))
    note = Table("cdc/copies", ["resource", "gtid_set"], ["resource"]).add(("mysql-srv1", f"{leader.uuid}:1-2"))
    follower.transaction(note, checkpoint(-1, 1))
    leader.transaction(Table("db/other", ["id"], ["id"]).add((2,)))
    follower.transaction(Table("db/other", ["id"], ["id"]).add((2,)), checkpoint(1, 2, names=f"{leader.uuid}:3"))
    leader.transaction(TOY.chunk(None, (5,), (1, "ball"), (2, "bone"), (3, "rope")), gtid="copy:two:1")
    follower.transaction(TOY.update(((2, "stick"), (2, "bone"))), checkpoint(2, 3, names=f"{leader.uuid}:3"))
    leader.transaction(TOY.chunk((5,), None, (7, "bowl"), (8, "leash")), gtid="copy:two:2")
    follower.transaction(TOY.add((8, "leash")), TOY.delete((10, "stray")), checkpoint(3, 4, names=f"{leader.uuid}:3"))
    leader.transaction(TOY.update(((1, "ball"), (1, "net"))))
    follower.transaction(TOY.update(((1, "ball"), (1, "net"))), checkpoint(4, 5))
    leader.transaction(TOY.delete((7, "bowl")))
    follower.transaction(checkpoint(5, 6))
    audit = judged(leader, follower)
    assert (audit.reasons, audit.under_copy, audit.foreign_writes) == ([], [], 0)
    assert [(row.kind, row.cause, row.identity["id"]) for row in audit.drifted] == [
        ("extra", "missing apply", '{"SignedInteger":7}')
    ]
    (line,) = [each for each in audit.tables if each.table == "toy"]
    assert (line.leader_rows, line.follower_rows, line.not_compared) == (3, 3, 1)
    assert "Not compared: 1 row of copied tables (db.toy)" in "\n".join(terminal(audit))


def test_chunks_that_the_follower_did_not_apply_and_one_that_is_not_as_the_log(judged: Judge) -> None:
    leader, follower, last = Stream(), follower_stream(), -1
    for part in (query("CREATE TABLE toy", "db", ("CreateTable", "db/toy")), TOY.add((1, "ball"), (2, "bone"))):
        leader.transaction(part)
        last = replicate(follower, [part], before=last)
    leader.transaction(TOY.chunk(None, (3,), (2, "new"), (3, "rope")), gtid="copy:one:1")
    leader.transaction(TOY.add((4, "net"), (5, "leash")) | {"copying": True})
    leader.transaction(TOY.chunk((3,), None, (4, "not the net"), (5, "leash")), gtid="copy:one:2")
    follower.transaction(checkpoint(1, 2))
    # As a row that refers to one that is not there yet.
    follower.transaction(TOY.add((4, "net"), (5, "leash")) | {"flags": 2}, checkpoint(2, 3))
    follower.transaction(TOY.update(((4, "net"), (4, "not the net"))), TOY.add((9, "by a trigger")), checkpoint(3, 4))
    audit = judged(leader, follower)
    found = {json.loads(row.identity["id"])["SignedInteger"]: row for row in audit.drifted}
    assert {key: (row.kind, row.cause) for key, row in found.items()} == {
        1: ("extra", "missing apply"),
        2: ("different", "missing apply"),
        3: ("missing", "missing apply"),
        9: ("extra", "schema drift"),
    }
    assert "that begins with sequence 2 does not name the row" in found[1].evidence
    assert (audit.discontinuities, audit.lag and audit.lag.transactions) == ({"leader": 1, "follower": 0}, 3)


@pytest.mark.parametrize("folded", [False, True])
def test_rows_that_were_repaired(judged: Judge, folded: bool) -> None:
    """Also where the leader's log does not tell that it has no such row: it was deleted with the binlog off."""
    leader, follower = Stream(), follower_stream()
    unlogged = [(number, "unlogged") for number in (5, 6)]
    leader.transaction(query("CREATE TABLE toy", "db", ("CreateTable", "db/toy")))
    last = replicate(follower, [query("CREATE TABLE toy", "db", ("CreateTable", "db/toy"))], before=-1)
    leader.transaction(TOY.add((1, "ball"), (2, "bone"), (3, "rope"), (4, "net"), *unlogged))
    leader.transaction(TOY.delete((4, "net")))
    follower.transaction(TOY.add((1, "ball"), (2, "bone"), (3, "rope"), (4, "net"), unlogged[0]), checkpoint(last, 1))
    follower.transaction(TOY.delete((4, "net")), checkpoint(1, 2))
    follower.transaction(TOY.update(((1, "ball"), (1, "bell"))), TOY.add((8, "still there"), (9, "ghost")))
    follower.transaction(TOY.delete((2, "bone")))
    before = judged(leader, follower, folded=folded)
    assert sorted((row.kind, row.identity["id"][-2]) for row in before.drifted) == [
        ("different", "1"), ("extra", "8"), ("extra", "9"), ("missing", "2"), ("missing", "6"),
    ]  # fmt: skip
    keys = [(number,) for number in (10, 9, 8, 6, 5, 4, 2, 1)]
    leader.transaction(TOY.repair(keys, (1, "ball"), (2, "bone"), (3, "rope")), gtid="copy:1")
    follower.transaction(
        TOY.delete((1, "bell"), (9, "ghost"), unlogged[0]), TOY.add((1, "ball"), (2, "bone")), checkpoint(2, 3)
    )
    audit = judged(leader, follower, folded=folded)
    assert (audit.reasons, audit.breaks, audit.under_copy) == ([], [], [])
    assert [(row.kind, row.identity["id"][-2]) for row in audit.drifted] == [("extra", "8")]
    assert audit.discontinuities == {"leader": 2, "follower": 0}
    (line,) = audit.tables
    assert (line.leader_rows, line.follower_rows, line.not_compared) == (3, 4, 0)
    # Also of a table of which nothing else is known, and for a follower of this follower.
    follower.transaction(TOY.repair([(8,)]), gtid="copy:2")
    follower.transaction(TOY.delete((8, "still there")))
    assert judged(leader, follower, folded=folded).verdict == "no drift"


def test_a_chunk_that_is_missing_in_the_midst_of_a_copy(judged: Judge, spark: SparkSession) -> None:
    again, gone = (Table(f"db/{name}", ["id"], ["id"]) for name in ("again", "gone"))
    leader, follower = Stream(), follower_stream()
    for table in (TOY, again, gone):
        leader.transaction(table.chunk(None, (3,)), gtid=f"copy:{table.name}:1")
        leader.transaction(table.chunk((5,), None), gtid=f"copy:{table.name}:2")
    leader.transaction(query("DROP TABLE gone", "db", ("DropTable", "db/gone")))
    leader.transaction(again.chunk(None, None), gtid="copy:again:3")
    # Its producer copies the follower's tables for followers of its own: that is none of this audit's business.
    create = query("CREATE TABLE IF NOT EXISTS toy", "db", ("CreateTable", "db/toy")) | {"copying": True}
    follower.transaction(create, gtid="copy:other:1")
    follower.transaction(TOY.chunk(None, None, (1, "ball")), gtid="copy:other:2")
    audit = judged(leader, follower)
    (reason,) = audit.reasons
    assert "(gap, 1 in all): the copy of db.toy goes on after key" in reason
    assert "(partition leader/0, offset 1)" in reason
    leader.transaction(TOY.chunk(None, None), gtid="copy:toy:3")
    audit = judged(leader, follower)
    assert (audit.verdict, audit.foreign_writes, audit.breaks) == ("no drift", 0, [])
    bad = Stream()
    for part in (
        TOY.chunk(None, None) | {"key": []},
        Table("db/toy", ["id"]).chunk(None, None),
        TOY.chunk((1, 2), None),
        TOY.chunk(None, (None,)) | {"operation": {"Copy": {"after": None, "upto": {}, "rows": []}}},
        TOY.chunk(None, None) | {"operation": {"Copy": {"after": None, "upto": None}}},
        TOY.chunk(None, None, (1,)),
        BARE.piece(1, (1, "a")) | {"operation": {"Copy": {"piece": 1, "after": None, "upto": None, "rows": []}}},
        TOY.chunk((1,), None) | {"operation": {"Copy": {"piece": 1} | TOY.chunk((1,), None)["operation"]["Copy"]}},
        TOY.repair([]),
        TOY.repair([(1, 2)]),
        TOY.repair([(None,)]),
        TOY.repair([(1,)], (1,)),
        TOY.repair([(1,)]) | {"operation": {"Repair": {"rows": []}}},
        TOY.repair([(1,)]) | {"key": []},
        Table("db/toy", ["id"]).repair([(1,)]),
    ):
        bad.transaction(part)
    assert {row["valid"] for row in parse(messages(spark, {LEADER: bad})).collect()} == {False}


BARE = Table("db/bare", ["id", "name"])


@pytest.mark.parametrize("folded", [False, True])
def test_a_table_without_a_key_is_what_its_pieces_say(judged: Judge, folded: bool) -> None:
    """What the follower had before is gone with the first piece, whether its log has it or not."""
    leader, follower = Stream(), follower_stream()
    leader.transaction(BARE.add((1, "a"), (2, "b")))
    last = replicate(follower, [BARE.add((1, "a"), (2, "b"))], before=-1)
    for number in (1, 2):  # a copy that a kill ends, and another one
        leader.transaction(BARE.piece(0, (1, "a"), (1, "a"), (3, "c")), gtid=f"copy:{number}")
        gone = BARE.delete((1, "a"), (2, "b"), (9, "long past"), *([(3, "c")] if number == 2 else []))
        follower.transaction(gone, BARE.add((1, "a"), (1, "a"), (3, "c")), checkpoint(last, last + 1))
        last += 1
    audit = judged(leader, follower, folded=folded)
    assert ([each.table for each in audit.under_copy], audit.drifted) == (["bare"], [])
    leader.transaction(TOY.add((1, "ball")))
    last = replicate(follower, [TOY.add((1, "ball"))], before=last)
    leader.transaction(BARE.piece(1, (3, "c"), last=True), gtid="copy:3")
    follower.transaction(BARE.add((3, "c")), checkpoint(last, last + 1))
    leader.transaction(BARE.update(((3, "c"), (4, "d"))), BARE.delete((1, "a")))
    parts = [BARE.update(((3, "c"), (4, "d"))), BARE.delete((1, "a"))]
    follower.transaction(*parts, checkpoint(last + 1, last + 3))
    audit = judged(leader, follower, folded=folded)
    assert (audit.verdict, audit.reasons, audit.under_copy, audit.foreign_writes) == ("no drift", [], [], 0)
    (line,) = [each for each in audit.tables if each.table == "bare"]
    assert (line.leader_rows, line.follower_rows) == (3, 3)
    follower.transaction(BARE.delete((4, "d")), BARE.add((5, "e")))
    audit = judged(leader, follower, folded=folded)
    assert sorted((row.kind, row.identity["id"]) for row in audit.drifted) == [
        ("extra", '{"SignedInteger":5}'), ("missing", '{"SignedInteger":4}'),
    ]  # fmt: skip
    # A piece with no rows, of which the follower logs nothing but that it was applied.
    leader.transaction(BARE.piece(0, last=True), gtid="copy:4")
    follower.transaction(BARE.delete((5, "e"), (1, "a"), (3, "c")), checkpoint(last + 3, last + 4))
    audit = judged(leader, follower, folded=folded)
    assert audit.drifted == []
