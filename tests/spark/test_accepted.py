"""Drift that is accepted: no part of the verdict, listed, and only what the entries name."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.spark.compare.row_drift import DriftedRow
from cdc.spark.compare.tally import Table as Line
from cdc.spark.ddl.accepted_drift import Entry
from cdc.spark.findings import with_entries
from cdc.spark.job.options import Terms
from cdc.spark.report.outcome import Audit, to_json
from cdc.spark.report.renderers import page, terminal
from tests.checks.json_schema import SCHEMA, faults
from tests.generators.frames import frame_of
from tests.generators.streams import Stream, Table, both, query
from tests.spark.conftest import Judge, RunAudit
from tests.spark.test_cdc_audit import published, reported

pytestmark = pytest.mark.spark

TOY = Table("flvDb/toy", ["id", "name", "note"], ["id"])
PET = Table("flvDb/pet", ["name", "owner"])
ROWS = Entry(1, ("rows",), "flvDb.toy", "known")


def drifted() -> tuple[Stream, Stream]:
    """A follower with drift of all kinds and an index of its own."""
    leader, follower = both(
        [query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb"))],
        [query("CREATE TABLE toy (…)", "flvDb", ("CreateTable", "flvDb/toy"))],
        [TOY.add(*((number, "ball", "red") for number in range(1, 6)))],
        [PET.add(("Jack", "Peter"), ("Jack", "Peter"))],
    )
    follower.transaction(query("CREATE INDEX i ON toy (name)", "flvDb", ("CreateIndex", "flvDb/toy")))
    follower.transaction(TOY.update(((1, "ball", "red"), (1, "ball", "blue"))), TOY.delete((2, "ball", "red")))
    follower.transaction(TOY.update(((3, "ball", "red"), (3, "bone", "blue"))), TOY.add((9, "ghost", "red")))
    follower.transaction(PET.add(("Spot", "Jane"), ("Spot", "Jane")))
    return leader, follower


def left(audit: Audit) -> list[DriftedRow]:
    """What still counts as drift, with the numbers of the report all of one opinion."""
    assert sum(row.rows for row in audit.drifted) == audit.drifted_rows == sum(t.drifted for t in audit.tables)
    assert sum(audit.drifted_by_cause.values()) == audit.drifted_rows
    assert audit.accepted_rows + audit.drifted_rows == 6
    assert audit.accepted_rows == sum(table.accepted for table in audit.tables)
    return audit.drifted


def identified(text: str | None) -> int:
    return int(json.loads(text)["SignedInteger"]) if text else 0


ALL = {
    ("toy", "different", 1),
    ("toy", "missing", 2),
    ("toy", "different", 3),
    ("toy", "extra", 9),
    ("pet", "extra", 0),
}
# The same rows as the comparison of both sides finds them, without what no entry asks for.
DRIFTED_SCHEMA = (
    "database STRING, table STRING, kind STRING, keyed BOOLEAN, identity MAP<STRING,STRING>, columns ARRAY<STRING>"
)
DRIFTED = [
    ("toy", "different", True, {"id": '{"SignedInteger":1}'}, ["note"]),
    ("toy", "missing", True, {"id": '{"SignedInteger":2}'}, []),
    ("toy", "different", True, {"id": '{"SignedInteger":3}'}, ["name", "note"]),
    ("toy", "extra", True, {"id": '{"SignedInteger":9}'}, []),
    ("pet", "extra", False, {"name": '{"String":"Spot"}', "owner": '{"String":"Jane"}'}, []),
]


# Each entry is of a database of its own, with the rows that it takes there.
ENTRIES: list[tuple[Entry, set[tuple[str, str, int]]]] = [
    (ROWS, {row for row in ALL if row[0] == "toy"}),
    (replace(ROWS, name="flvDb.*"), ALL),
    (replace(ROWS, name="other.toy"), set()),
    (replace(ROWS, kinds=("extra", "missing")), {("toy", "missing", 2), ("toy", "extra", 9)}),
    (replace(ROWS, columns=("note",)), {("toy", "different", 1)}),
    (replace(ROWS, keys=({"id": "1"}, {"id": "9"})), {("toy", "different", 1), ("toy", "extra", 9)}),
    (replace(ROWS, keys=({"id": "1", "name": "ball"},)), set()),
    (replace(ROWS, name="flvDb.pet", keys=({"name": "Spot", "owner": "Jane"},)), set()),
    (replace(ROWS, what=("definition",)), set()),
]


def test_an_entry_takes_what_it_names_and_nothing_else(spark: SparkSession) -> None:
    databases = [f"db{number}" for number in range(len(ENTRIES))]
    entries = [
        replace(entry, number=number, name=entry.name.replace("flvDb", name))
        for number, (name, (entry, _)) in enumerate(zip(databases, ENTRIES, strict=True), 1)
    ]
    rows = frame_of(spark, [(name, *row) for name in databases for row in DRIFTED], DRIFTED_SCHEMA)
    counted = [Line(name, table, 0, 0, 1, 1, 1, "0", "0") for name in databases for table in ("toy", "pet")]
    found = with_entries(rows, counted, entries).selectExpr("*", "identity['id'] AS id").collect()
    for number, (name, (entry, accepted)) in enumerate(zip(databases, ENTRIES, strict=True), 1):
        taken = {(row["table"], row["kind"], identified(row["id"])): row["accepted"] for row in found if row[0] == name}
        assert taken == {row: number if row in accepted else None for row in ALL}, entry


def test_all_accepted_is_no_drift_and_is_told(judged: Judge, spark: SparkSession, tmp_path: Path) -> None:
    index = Entry(1, ("definition",), "flvDb.toy", "for reports", statements=("CREATE INDEX i ON toy (name)",))
    rows = Entry(2, ("rows",), "flvDb.toy", "known", until=date(9999, 1, 1))
    others, past, idle = (
        Entry(3, ("rows",), "flvDb.*", "all others"), Entry(4, ("rows",), "flvDb.*", "old", until=date(2020, 1, 1)),
        Entry(5, ("definition",), "flvDb.pet", "none"),
    )  # fmt: skip
    audit = judged(*drifted(), terms=Terms(accepted=(index, rows, others, past, idle)))
    assert (audit.verdict, audit.exit_status, left(audit), audit.schema) == ("no drift", 0, [], [])
    assert [(each.rows, each.objects, each.expired) for each in audit.accepted] == [
        ({}, ["table flvDb.toy"], False), ({"flvDb.toy": 4}, [], False), ({"flvDb.pet": 2}, [], False), ({}, [], True),
        ({}, [], False),
    ]  # fmt: skip
    lines = list(terminal(audit))
    assert "apart from accepted drift (6 rows and 1 definition)" in lines[1]
    for line in (
        "accepted (for reports): definition of flvDb.toy: table flvDb.toy",
        "accepted (known, until 9999-01-01): rows of flvDb.toy: 4 rows of flvDb.toy",
        "accepted (old): rows of flvDb.*: expired on 2020-01-01: nothing is accepted by it",
    ):
        assert line in lines
    assert any("(none): definition of flvDb.pet: matches nothing" in line for line in lines)
    assert "matches nothing" in page(audit)
    assert list(faults(json.loads(to_json(audit)), SCHEMA)) == []
    written = spark.read.parquet((tmp_path / "drift.parquet").as_uri()).collect()
    assert sorted(row["accepted"] for row in written) == [2, 2, 2, 2, 3]
    assert not (tmp_path / "drift.keys.jsonl").exists()


@pytest.mark.long
def test_what_was_accepted_does_not_hide_what_came_since(judged: Judge) -> None:
    """`make test` has test_all_accepted_is_no_drift_and_is_told, and a unit test of the statements of an entry."""
    index = Entry(1, ("definition",), "flvDb.toy", "for reports", statements=("CREATE INDEX i ON toy (name)",))
    leader, follower = drifted()
    follower.transaction(query("ALTER TABLE toy DROP COLUMN note", "flvDb", ("AlterTable", "flvDb/toy")))
    audit = judged(leader, follower, terms=Terms(accepted=(index, ROWS)))
    assert (audit.verdict, audit.schema_drift) == ("drift", 1)


@pytest.mark.long
def test_the_command_reads_the_file(kafka: Kafka, tmp_path: Path, run_audit: RunAudit) -> None:
    """`make test` has test_all_accepted_is_no_drift_and_is_told."""
    options = published(kafka, tmp_path, *drifted())
    accept = tmp_path / "accept.toml"
    accept.write_text('''
        [[accept]]
        what = ["rows", "definition"]
        name = "flvDb.toy"
        reason = "a table of tests"
    ''')  # fmt: skip
    done = run_audit(*options, "--accept", str(accept))
    assert (done.returncode, done.stderr) == (1, "")
    assert "accepted (a table of tests): rows, definition of flvDb.toy: 4 rows of flvDb.toy and table" in done.stdout
    assert [(each["table"], each["accepted"]) for each in reported(tmp_path)["tables"]] == [("pet", 0), ("toy", 4)]
    lines = (tmp_path / "report/drift.keys.jsonl").read_text().splitlines()
    assert [json.loads(line)["table"] for line in lines] == ["pet"]
    accept.write_text(accept.read_text().replace("flvDb.toy", "flvDb.*"))
    assert run_audit(*options, "--accept", str(accept)).returncode == 0
