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
from cdc.spark.report.renderers import terminal
from cdc.spark.streams.contents import statements, survey
from tests.checks.told import told
from tests.generators.copied_tables import Copied, CopiedTables
from tests.generators.streams import Stream, Table, messages
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
    acts = statements(records).result()[LEADER]
    rows = fold(changes(records, segments(spark, lineage(survey(records).result()[LEADER].tables, acts)))).collect()
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


TOY, BARE = Table("db/toy", ["id", "name"], ["id"]), Table("db/bare", ["id", "name"])


def test_a_copy_that_no_producer_writes_is_no_record(spark: SparkSession) -> None:
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
