"""An event that a producer was told to skip: in neither topic, so the audit must not call the servers alike."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.ddl.definitions import CAUSE, skipped_event_drift
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, Act
from cdc.spark.report.renderers import page, terminal
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, refused, run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_a_skipped_event_is_drift_for_as_long_as_its_table_lives(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    name = "left_out"
    only = {"producer": {"start": "now"}, "filters": {"include_dbs": [name, "cdc"]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, **only)
    begin_now(pair.source, leader)
    begin_now(pair.capture, follower)
    pair.on_leader(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.a (i INT PRIMARY KEY, c INT)")
    pair.on_leader("INSERT INTO a VALUES (1, 1)", "SET binlog_format = STATEMENT", "UPDATE a SET c = 2", database=name)
    pair.on_leader("CREATE TABLE b (i INT)", "INSERT INTO b VALUES (1)", database=name)
    rows_by_a_file(pair, name)
    skipped: list[str] = []
    for said in ("not as rows: UPDATE a", "a discarded or imported tablespace are in no binlog: ALTER TABLE f IMPORT"):
        line = refused("cdc-producer", pair.source, "--until-current", *skipped, status=3)
        assert said in line
        skipped = ["--skip", line.rpartition(" ")[2]]
    run_well("cdc-producer", pair.source, "--until-current", *skipped)
    pair.replicate()
    audit = pair.audit(spark, tmp_path / "report")
    assert (audit.exit_status, audit.drifted_rows) == (1, 0), audit
    assert [(each.kind, each.database, each.name, each.cause) for each in audit.schema] == [
        ("Table", name, table, CAUSE) for table in "af"
    ]
    evidence = audit.schema[0].evidence
    assert "Query at binlog." in evidence
    assert "not as rows: UPDATE a SET c = 2 (sequence 3 of the leader)" in evidence
    assert any("table left_out.a may differ from the leader's: skipped event" in line for line in terminal(audit))
    assert "skipped event" in page(audit)
    pair.on_leader(f"DROP TABLE {name}.a, {name}.f")
    pair.replicate()
    assert pair.audit(spark, tmp_path / "again").exit_status == 0


def rows_by_a_file(pair: Pair, name: str) -> None:
    """The leader discards the rows of ``f`` and ``g``, which followers repeat, and gets those of ``f`` back."""
    tables = [f"CREATE TABLE {table} (i INT PRIMARY KEY)" for table in "fg"]
    pair.on_leader(*tables, "INSERT INTO f VALUES (1)", "INSERT INTO g VALUES (1)", database=name)
    file = pair.leader.data / name / "f.ibd"
    with pair.leader.root(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH TABLES f FOR EXPORT")
        kept = file.read_bytes()
        cursor.execute("UNLOCK TABLES")
        for table in "fg":
            cursor.execute(f"ALTER TABLE {table} DISCARD TABLESPACE")
        file.write_bytes(kept)
        cursor.execute("ALTER TABLE f IMPORT TABLESPACE")


def act(sequence: int, action: str, path: str, to: str | None = None) -> Act:
    return Act(sequence, 0, action, f"flv://r/{path}", to and f"flv://r/{to}", text="an event")


@pytest.mark.parametrize(
    ("skip", "later", "lives"),
    [
        (("SkipTable", "d/a"), [("DropTable", "d/a")], None),
        (("SkipTable", "d/a"), [("DropTable", "d/b"), ("TruncateTable", "d/a")], ("d", "a")),
        (("SkipTable", "d/a"), [("RenameTable", "d/a", "e/b"), ("DropTable", "d/a")], ("e", "b")),
        (("SkipTable", "d/a"), [("RenameTable", "d/a", "e/b"), ("DropDatabase", "e")], None),
        (("SkipView", "d/a"), [("DropTable", "d/a")], ("d", "a")),
        (("SkipDatabase", "d"), [("DropTable", "d/a")], ("d", None)),
        (("SkipDatabase", "d"), [("DropDatabase", "d")], None),
        (("SkipDatabase", "%2A"), [("DropDatabase", "d")], ("*", None)),
    ],
)
def test_how_long_what_was_skipped_matters(
    skip: tuple[str, str], later: list[tuple[str, ...]], lives: tuple[str, str | None] | None
) -> None:
    acts = [act(0, "DropTable", "d/a"), *(act(number, *each) for number, each in enumerate(later, start=5))]
    found = list(skipped_event_drift([act(4, *skip)], acts, side="leader"))
    assert [(each.database, each.name) for each in found] == ([lives] if lives else [])


NAMES = ("t", "_t_old", "_t_new")
SWAP = ("d/t", "d/_t_old"), ("d/_t_new", "d/t")


@pytest.mark.parametrize(
    ("create", "copies", "alike"),
    [
        ("CREATE TABLE `d`.`_t_new` (i INT)", None, True),
        ("CREATE TABLE IF NOT EXISTS d._t_new (i INT)", None, False),
        ("CREATE TABLE d._t_new LIKE d.t", "flv://r/d/t", False),
        ("CREATE TABLE d._t_new LIKE d.other", "flv://r/d/other", True),
    ],
)
def test_a_table_made_again_by_a_tool_is_a_new_one(create: str, copies: str | None, alike: bool) -> None:
    """A swap was skipped, and later the tool swapped the table again."""
    text = "Query at binlog.000001:4: RENAME TABLE …"
    skips = [Act(1, place, "SkipTable", f"flv://r/d/{name}", text=text) for place, name in enumerate(NAMES)]
    made = Act(2, 0, "CreateTable", "flv://r/d/_t_new", like=copies, text=create)
    swap = [Act(3, place, "RenameTable", f"flv://r/{old}", f"flv://r/{new}") for place, (old, new) in enumerate(SWAP)]
    dropped = Act(4, 0, "DropTable", "flv://r/d/_t_old")
    assert (not list(skipped_event_drift(skips, [made, *swap, dropped], side="leader"))) == alike


@pytest.mark.parametrize("skipped", ["t", "parts"])
def test_rows_that_an_exchange_of_partitions_has_moved(skipped: str) -> None:
    skip = Act(1, 0, "SkipTable", f"flv://r/d/{skipped}", text="WriteRows at binlog.000001:4: a reason")
    exchange = [Act(2, place, "AlterTable", f"flv://r/d/{name}") for place, name in enumerate(("parts", "t"))]
    other = Act(3, 0, "AlterTable", "flv://r/d/other")
    dropped = Act(4, 0, "DropTable", f"flv://r/d/{skipped}")
    left = {"t": "parts", "parts": "t"}[skipped]
    assert [each.name for each in skipped_event_drift([skip], [*exchange, other, dropped], side="leader")] == [left]


@pytest.mark.parametrize(("event", "names"), [("Query", ["t"]), ("WriteRows", [])])
def test_a_copy_of_a_definition_has_what_a_skipped_statement_did_to_it(event: str, names: list[str]) -> None:
    """gh-ost makes its table LIKE the one that it replaces; rows it copies through the topic."""
    skip = Act(1, 0, "SkipTable", "flv://r/d/t", text=f"{event} at binlog.000001:4: a reason")
    made = Act(2, 0, "CreateTable", "flv://r/d/_t_new", like="flv://r/d/t", text="create table _t_new like t")
    swap = [Act(3, place, "RenameTable", f"flv://r/{old}", f"flv://r/{new}") for place, (old, new) in enumerate(SWAP)]
    acts = [made, *swap, Act(4, 0, "DropTable", "flv://r/d/_t_old")]
    assert [each.name for each in skipped_event_drift([skip], acts, side="leader")] == names


@pytest.mark.parametrize(
    ("text", "copied", "healed"),
    [
        ("WriteRows at binlog.1:4: …", [(5, BEGINS_COPY, "db/a"), (7, ENDS_COPY, "db/a")], True),
        ("WriteRows at binlog.1:4: …", [(7, ENDS_COPY, "db/a")], False),
        ("WriteRows at binlog.1:4: …", [(5, BEGINS_COPY, "db/b"), (7, ENDS_COPY, "db/b")], False),
        ("Query at binlog.1:4: …", [(5, BEGINS_COPY, "db/a"), (7, ENDS_COPY, "db/a")], False),
    ],
    ids=["all of it", "began before", "another table", "a statement may have defined it otherwise"],
)
def test_a_copy_of_the_table_makes_up_for_rows_that_were_skipped(
    text: str, copied: list[tuple[int, str, str]], *, healed: bool
) -> None:
    skip = replace(act(4, "SkipTable", "db/a"), text=text)
    assert (not list(skipped_event_drift([skip], [act(*each) for each in copied], side="leader"))) == healed
