"""The verdict on streams made by hand: faithful ones, drift of every kind, and what can't be judged."""

import json

import pytest
from pyspark.sql import SparkSession

from cdc.config.filters import Filters
from cdc.model.statement_gtid import statement_gtid
from cdc.spark.page.document import page
from cdc.spark.report.terminal import terminal
from tests.generators.streams import Part, Stream, Table, both, checkpoint, follower_stream, query, replicate, tutorial
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

KEYED = Table("flvDb/toy", ["id", "name"], ["id"])
KEYLESS = Table("flvDb/pet", ["name", "owner"])


def history() -> tuple[Stream, Stream]:
    """Two tables with rows, on both sides."""
    return both(
        [query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb"))],
        [KEYED.add((1, "ball"), (2, "bone"), (3, "mouse"))],
        [KEYLESS.add(("Jack", "Peter"), ("Jack", "Peter"), ("Spot", "Jane"))],
        [KEYED.update(((2, "bone"), (4, "bone")), ((1, "ball"), (1, "rope")))],
    )


def conflict(sequence: int, removed: str) -> Part:
    """The consumer's note of a conflict with the leader's record ``sequence``."""
    texts = [{"String": "the row is not there"}, {"String": removed}]
    image = [{"String": "mysql-srv1"}, {"SignedInteger": sequence}, *texts]
    columns = ["resource", "sequence", "reason", "removed"]
    return {"path": "cdc/conflicts", "columns": columns, "operation": {"Add": {"rows": [{"cols": image}]}}}


def test_faithful_copy(judged: Judge) -> None:
    audit = judged(*tutorial())
    assert (audit.verdict, audit.exit_status, audit.sequence) == ("no drift", 0, 8)
    assert [(t.table, t.leader_rows, t.follower_rows) for t in audit.tables] == [("pet", 2, 2)]
    assert audit.tables[0].leader_checksum == audit.tables[0].follower_checksum
    assert audit.foreign_writes == 0
    assert audit.lag is not None
    assert (audit.lag.transactions, audit.breaks, sum(audit.discontinuities.values())) == (9, [], 0)


def test_statements_are_known_by_the_ledger(judged: Judge) -> None:
    """By the numbers of their GTIDs, which are not their sequences; those without are somebody else's."""
    create = query("CREATE TABLE toy (…)", "flvDb", ("CreateTable", "flvDb/toy"))
    alter = query("ALTER TABLE toy …", "flvDb", ("AlterTable", "flvDb/toy"))
    leader, follower = both([create], [KEYED.add((1, "ball"))], [alter], [alter], numbered=True)
    # The last of what the follower has is a statement that ran before its checkpoint moved.
    leader.transaction(alter)
    replicate(follower, [alter], before=3, numbered=True)
    follower.messages, follower.sequence = follower.messages[:-2], follower.sequence - 2
    audit = judged(leader, follower)
    assert (audit.verdict, audit.sequence, audit.foreign_writes, audit.schema_drift) == ("no drift", 4, 0, 0)
    follower.transaction(alter, gtid=statement_gtid("mysql-srv1", 9))
    audit = judged(leader, follower)
    assert (audit.verdict, audit.foreign_writes, audit.schema_drift) == ("drift", 1, 1)


def test_many_rows_in_few_records_are_sorted_by_many_tasks(judged: Judge, spark: SparkSession) -> None:
    rows = [(number, "ball") for number in range(110_000)]
    create = query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb"))
    assert judged(*both([create], [KEYED.add(*rows)])).verdict == "no drift"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"  # 110 000 rows on each side, 200 000 a task


def test_what_an_operator_skipped_is_told(judged: Judge) -> None:
    leader, follower = history()
    leader.transaction(KEYED.add((7, "long")))
    columns = ["resource", "sequence", "state", "statement", "note"]
    texts = [{"String": "Add, 1 rows of …"}, {"String": "too long"}]
    for resource, state, *more in (
        ("mysql-srv1", "skipped", checkpoint(3, 4)),
        ("mysql-srv1", "done"),
        ("another", "skipped"),
    ):
        image = [{"String": resource}, {"SignedInteger": 4}, {"Enum": state}, *texts]
        ledger = {"path": "cdc/ledger", "columns": columns, "operation": {"Add": {"rows": [{"cols": image}]}}}
        follower.transaction(ledger, *more)
    audit = judged(leader, follower)
    # The consumer writes "done" with the checkpoint only.
    assert (audit.verdict, audit.drifted_rows, audit.foreign_writes) == ("drift", 1, 1)
    (skip,) = audit.skipped
    assert (skip.sequence, skip.statement, skip.note) == (4, "Add, 1 rows of …", "too long")
    line = "skipped on the follower by an operator: sequence 4: Add, 1 rows of … (too long)"
    assert line in list(terminal(audit))
    assert "too long" in page(audit)


def test_rows_in_flight_are_no_drift(judged: Judge) -> None:
    leader, follower = history()
    leader.transaction(KEYED.delete((1, "rope")))
    audit = judged(leader, follower)
    assert (audit.verdict, audit.sequence) == ("no drift", 3)


def test_nothing_applied_yet(judged: Judge) -> None:
    leader, _ = history()
    audit = judged(leader, follower_stream())
    assert (audit.verdict, audit.sequence) == ("no drift", -1)


def test_drift_of_every_kind_and_whom_it_is_blamed_on(judged: Judge) -> None:
    leader, follower = history()
    follower.transaction(KEYED.update(((1, "rope"), (1, "stick"))), KEYED.delete((3, "mouse")))
    follower.transaction(KEYED.add((9, "ghost")))
    follower.transaction(KEYLESS.delete(("Jack", "Peter")), KEYLESS.add(("Jack", None)))
    audit = judged(leader, follower)
    assert (audit.verdict, audit.exit_status, audit.drifted_rows) == ("drift", 1, 5)
    found = {(row.table, row.kind, row.rows, *row.columns): row for row in audit.drifted}
    assert set(found) == {
        ("toy", "different", 1, "name"),
        ("toy", "missing", 1),
        ("toy", "extra", 1),
        ("pet", "missing", 1),
        ("pet", "extra", 1),
    }
    changed = found["toy", "different", 1, "name"]
    assert changed.leader_image is not None
    assert changed.follower_image is not None
    assert (json.loads(changed.leader_image["name"]), json.loads(changed.follower_image["name"])) == (
        {"String": "rope"},
        {"String": "stick"},
    )
    assert changed.leader_last == {"sequence": 3, "file": "binlog.000001", "position": 604}
    assert [write.transaction for write in audit.foreign] == [f"{follower.uuid}:{n}" for n in (9, 10, 11)]
    assert {row.foreign["transaction"] for row in audit.drifted if row.foreign} == {
        w.transaction for w in audit.foreign
    }
    assert all(row.foreign and row.follower_last for row in audit.drifted)
    assert all(row.foreign and row.foreign["ts_us"] == row.since_us for row in audit.drifted)
    assert audit.discontinuities == {"leader": 0, "follower": 0}


def test_a_change_the_consumer_lost_is_drift_without_a_foreign_write(judged: Judge) -> None:
    leader, follower = history()
    lost_us = follower.ts_us + 1_000
    leader.transaction(KEYED.update(((3, "mouse"), (3, "rat"))), ts_us=lost_us)
    leader.transaction(KEYED.update(((2, "bone"), (2, "bone"))))
    follower.transaction(checkpoint(3, 5), ts_us=lost_us + 9_000_000)
    audit = judged(leader, follower)
    found = [(row.kind, row.columns, row.foreign, row.since_us) for row in audit.drifted if row.columns == ["name"]]
    assert found == [("different", ["name"], None, lost_us)]


def test_lost_delete_of_a_row_from_before_the_topic(judged: Judge) -> None:
    leader, follower = history()
    leader.transaction(KEYED.delete((77, "older than the topic")))
    follower.transaction(checkpoint(3, 4))
    audit = judged(leader, follower)
    assert [(row.kind, row.table) for row in audit.drifted] == [("extra", "toy")]


def test_foreign_write_that_was_undone_is_told_but_no_drift(judged: Judge) -> None:
    leader, follower = history()
    follower.transaction(KEYED.add((9, "ghost")))
    follower.transaction(KEYED.delete((9, "ghost")))
    audit = judged(leader, follower)
    assert (audit.verdict, audit.exit_status, audit.foreign_writes) == ("no drift", 0, 2)
    assert [(write.tables, write.rows) for write in audit.foreign] == [(["flvDb.toy"], 1)] * 2


def test_foreign_statement_is_told_with_its_text(judged: Judge) -> None:
    leader, follower = history()
    follower.transaction(query("TRUNCATE TABLE toy", "flvDb", ("TruncateTable", "flvDb/toy")))
    audit = judged(leader, follower)
    assert [write.statement for write in audit.foreign] == ["TRUNCATE TABLE toy"]
    assert {row.kind for row in audit.drifted} == {"missing"}


def test_before_image_that_does_not_continue_its_row(judged: Judge) -> None:
    leader, follower = both([KEYED.add((1, "ball"))], [KEYED.update(((1, "not the ball"), (1, "rope")))])
    audit = judged(leader, follower)
    assert audit.verdict == "no drift"
    assert audit.discontinuities == {"leader": 1, "follower": 1}
    assert {(each.side, each.times) for each in audit.discontinued} == {("leader", 1), ("follower", 1)}


def test_a_row_that_came_unlogged_and_that_the_consumer_did_not_find(judged: Judge) -> None:
    leader, follower = history()
    leader.transaction(KEYED.delete((77, "put with the binlog off")))
    follower.transaction(conflict(4, ""), checkpoint(3, 4))
    assert judged(leader, follower).verdict == "no drift"


def test_a_row_that_both_deleted_is_no_drift_whatever_came_unlogged(judged: Judge) -> None:
    leader, follower = history()
    leader.transaction(KEYED.delete((77, "put with the binlog off")))
    leader.transaction(KEYED.add((78, "ball")), KEYED.delete((78, "ball")))
    follower.transaction(KEYED.add((77, "put by hand")))
    follower.transaction(KEYED.delete((77, "put by hand")), checkpoint(3, 4))
    follower.transaction(KEYED.add((78, "ball")), KEYED.delete((78, "ball")), checkpoint(4, 6))
    follower.transaction(KEYED.delete((78, "put with the binlog off")))
    audit = judged(leader, follower)
    assert (audit.verdict, audit.drifted) == ("no drift", [])
    assert [(line.leader_rows, line.follower_rows) for line in audit.tables if line.table == "toy"] == [(3, 3)]


def test_what_came_after_a_conflict_is_not_blamed_on_it(judged: Judge) -> None:
    leader, follower = history()
    leader.transaction(KEYED.delete((3, "mouse")))
    leader.transaction(KEYED.add((3, "rat")))
    leader.transaction(KEYED.add((6, "rope")))
    follower.transaction(conflict(4, ""), KEYED.delete((3, "mouse")), checkpoint(3, 4))
    follower.transaction(checkpoint(4, 5))
    follower.transaction(
        conflict(6, "flvDb.toy id 1"), KEYED.delete((1, "rope")), KEYED.add((6, "rope")), checkpoint(5, 6)
    )
    audit = judged(leader, follower)
    causes = {json.loads(row.identity["id"])["SignedInteger"]: row.cause for row in audit.drifted}
    assert causes == {3: "missing apply", 1: "conflict converged"}


def test_rows_of_a_table_that_the_follower_does_not_know(judged: Judge) -> None:
    leader, follower = history()
    leader.transaction(Table("flvDb/old", ["id"], ["id"]).delete((1,)))
    follower.transaction(checkpoint(3, 4))
    audit = judged(leader, follower)
    assert (audit.verdict, ["flvDb.old" in each for each in audit.reasons]) == ("could not judge", [True])


def ledger(state: str, before: str | None = None, *, resource: str = "mysql-srv1") -> Part:
    """A row of the consumer's ledger that was put, or updated."""
    images = [[{"String": resource}, {"SignedInteger": 7}, {"Enum": each}] for each in (before, state) if each]
    row = {"cols": images[0]} if before is None else {"before_cols": images[0], "after_cols": images[1]}
    operation = {"Add" if before is None else "Update": {"rows": [row]}}
    return {"path": "cdc/ledger", "columns": ["resource", "sequence", "state"], "operation": operation}


def test_what_only_looks_like_the_consumer_s_doing(judged: Judge) -> None:
    leader, follower = history()
    at = f"{leader.uuid}:"
    leader.transaction(KEYED.add((5, "leash")))
    leader.transaction(KEYED.update(((3, "mouse"), (3, "rat"))), KEYED.add((6, "bowl")))
    leader.transaction(KEYED.add((7, "lost")))
    # Of the consumer: it moves the checkpoint on, and names the leader's transaction there; what it notes without.
    follower.transaction(KEYED.add((5, "leash")), checkpoint(3, 4, names=f"{at}5"))
    follower.transaction(query("CREATE TABLE cdc.ledger (…)", "cdc", ("CreateTable", "cdc/ledger")))
    upgrade = "ALTER TABLE `cdc`.`ledger` MODIFY state ENUM('intent', …)"
    follower.transaction(query(upgrade, "cdc", ("AlterTable", "cdc/ledger")))
    follower.transaction(ledger("intent"))
    follower.transaction(ledger("skipped", "intent", resource="another"), checkpoint(7, 7, resource="another"))
    own = follower.commits
    # Something on the follower, a trigger say, makes other rows of it.
    follower.transaction(
        KEYED.update(((3, "mouse"), (3, "RAT!"))),
        KEYED.add((6, "bowl")),
        KEYED.delete((6, "bowl")),
        checkpoint(4, 6, names=f"{at}6"),
    )
    # Of others: the checkpoint is touched, or moved as nobody applied anything; and what they do to the notes alone.
    follower.transaction(KEYED.update(((1, "rope"), (1, "stick"))), checkpoint(6, 6, names=f"{at}6"))
    follower.transaction(KEYED.add((9, "ghost")), checkpoint(6, 7, names=f"{at}6"))
    follower.transaction(ledger("done", "intent"))
    follower.transaction(conflict(3, ""))
    follower.transaction(query("TRUNCATE TABLE conflicts", "cdc", ("TruncateTable", "cdc/conflicts")))
    audit = judged(leader, follower)
    assert (audit.verdict, audit.sequence, audit.reasons) == ("drift", 7, [])
    assert [(write.transaction, write.tables) for write in audit.foreign] == [
        (f"{follower.uuid}:{own + 1 + number}", tables)
        for number, tables in enumerate(
            [
                ["cdc.checkpoint", "flvDb.toy"],
                ["cdc.checkpoint", "flvDb.toy"],
                ["cdc.ledger"],
                ["cdc.conflicts"],
                ["cdc.conflicts"],
            ],
            start=1,
        )
    ]
    assert (audit.foreign_writes, audit.foreign[2].rows, audit.foreign[4].statement) == (
        5,
        1,
        "TRUNCATE TABLE conflicts",
    )
    found = {json.loads(row.identity["id"])["SignedInteger"]: row for row in audit.drifted}
    assert {key: (row.kind, row.cause) for key, row in found.items()} == {
        1: ("different", "foreign write"),
        3: ("different", "schema drift"),
        6: ("missing", "schema drift"),
        7: ("missing", "missing apply"),
        9: ("extra", "foreign write"),
    }
    assert "applied the leader's change at binlog.000001:1004 (sequence 5) and left another row" in found[3].evidence
    assert "(a trigger?)" in found[6].evidence
    assert "is not in the follower's log" in found[7].evidence


def test_values_of_more_than_spark_reads_by_itself(judged: Judge) -> None:
    long = "x" * 20_000_001
    leader, follower = both([KEYED.add((1, long), (2, "short"))])
    audit = judged(leader, follower)
    assert (audit.verdict, audit.reasons, [line.leader_rows for line in audit.tables]) == ("no drift", [], [2])


def damaged(leader: Stream, follower: Stream, damage: str) -> None:
    """Break the streams in one way."""
    if damage == "gap":
        del leader.messages[2]
    elif damage == "repeat":
        leader.messages.insert(2, leader.messages[2])
    elif damage == "instead":
        # As many records as there should be, from the first to the last.
        leader.messages[2] = leader.messages[2].replace('"sequence": 2', '"sequence": 1')
    elif damage == "torn":
        leader.messages[2] = leader.messages[2].replace('"last": true', '"last": false')
    elif damage == "same transaction":
        leader.messages[3] = leader.messages[3].replace(f'"{leader.uuid}:4"', f'"{leader.uuid}:2"')
    elif damage == "two lasts":
        follower.messages[:] = [message.replace('"last": false', '"last": true') for message in follower.messages]
    elif damage == "broken":
        follower.messages.insert(3, '{"uri": "flv://')
    elif damage == "event":
        leader.messages.insert(2, '{"uri": "flv://any", "bn_file": {}, "event": {"Stop": {}}}')
    elif damage == "width":
        leader.messages[1] = leader.messages[1].replace('["id", "name"]', '["id"]')
    elif damage == "retention":
        del leader.messages[:2]
    elif damage == "ahead":
        del leader.messages[2:]
    elif damage == "back":
        follower.transaction(checkpoint(3, 1))
    elif damage == "late":
        bodies = [json.loads(message) | {"sequence": at} for at, message in enumerate(follower.messages[5:])]
        follower.messages[:] = map(json.dumps, bodies)
    elif damage == "hole":
        leader.transaction(KEYED.add((5, "leash")))
        leader.transaction(KEYED.add((6, "bowl")))
        follower.transaction(KEYED.add((6, "bowl")), checkpoint(4, 5))
    elif damage == "no checkpoint":
        follower.messages[:] = follower.messages[:2]
    elif damage == "other leader":
        leader.messages[:] = [message.replace("mysql-srv1", "other") for message in leader.messages]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("gap", "sequence 3 comes, but 2 does not"),
        ("repeat", "sequence 2 comes 2 times"),
        ("instead", "sequence 1 comes 2 times"),
        ("torn", "do not run from its first to its last (partition leader/0, offset 2)"),
        ("same transaction", "transaction 11111111-1111-1111-1111-111111111111:2: its"),
        ("two lasts", "topic follower is broken (torn, 3 in all)"),
        ("broken", "not a record (partition follower/0, offset 3)"),
        ("event", "not a record (partition leader/0, offset 2)"),
        ("width", "not a record (partition leader/0, offset 1)"),
        ("retention", "begins at sequence 2"),
        ("ahead", "the follower is at sequence 3, topic rust-mysql-cdc ends at 1"),
        ("back", "went back from sequence 3 to 1"),
        ("late", "topic follower begins when the follower was at sequence 0 of the leader already"),
        ("hole", "does not show how the follower came from sequence 3 of the leader to 4"),
        ("no checkpoint", "has no checkpoint of mysql-srv1"),
        ("other leader", "holds records of other"),
    ],
)
def test_could_not_judge(judged: Judge, damage: str, reason: str) -> None:
    leader, follower = history()
    damaged(leader, follower, damage)
    audit = judged(leader, follower)
    assert (audit.verdict, audit.exit_status, audit.sequence) == ("could not judge", 2, None)
    assert any(reason in each for each in audit.reasons), audit.reasons


def test_follower_capture_that_leaves_tables_out(judged: Judge) -> None:
    audit = judged(*history(), filters=Filters(include_dbs=("flvDb",), exclude_tables=("flvDb.pet",)))
    assert audit.verdict == "could not judge"
    assert any("leave out database cdc" in each for each in audit.reasons)
    assert any("flvDb.pet" in each for each in audit.reasons)


def test_transaction_that_the_end_of_the_topic_cuts_is_left_for_later(judged: Judge) -> None:
    leader, follower = history()
    follower.transaction(KEYED.add((5, "leash")), KEYED.add((6, "bowl")), checkpoint(3, 4))
    del follower.messages[-1]
    audit = judged(leader, follower)
    assert (audit.verdict, audit.foreign_writes) == ("no drift", 0)
