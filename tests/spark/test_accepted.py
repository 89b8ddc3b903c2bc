"""Drift that is accepted: no part of the verdict, listed, and only what the entries name."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.spark.ddl.accepted_drift import Entry
from cdc.spark.job.options import Terms
from cdc.spark.report.outcome import Audit, to_json
from cdc.spark.report.page import page
from cdc.spark.report.terminal import terminal
from tests.checks.json_schema import SCHEMA, faults
from tests.generators.streams import Part, Stream, Table, both, query
from tests.harness.long_runs import LONG
from tests.spark.conftest import Judge, RunAudit
from tests.spark.test_cdc_audit import published, reported

pytestmark = pytest.mark.spark

ROWS = Entry(1, ("rows",), "flvDb.toy", "known")


def drifted(*databases: str) -> tuple[Stream, Stream]:
    """A follower with drift of all kinds and an index of its own, in ``flvDb`` or in each of these databases."""
    names = databases or ("flvDb",)
    leader, follower = both(*(transaction for name in names for transaction in created(name)))
    for name in names:
        toy, pet = tables(name)
        follower.transaction(query("CREATE INDEX i ON toy (name)", name, ("CreateIndex", f"{name}/toy")))
        follower.transaction(toy.update(((1, "ball", "red"), (1, "ball", "blue"))), toy.delete((2, "ball", "red")))
        follower.transaction(toy.update(((3, "ball", "red"), (3, "bone", "blue"))), toy.add((9, "ghost", "red")))
        follower.transaction(pet.add(("Spot", "Jane"), ("Spot", "Jane")))
    return leader, follower


def created(database: str) -> list[list[Part]]:
    toy, pet = tables(database)
    return [
        [query(f"CREATE DATABASE {database}", database, ("CreateDatabase", database))],
        [query("CREATE TABLE toy (…)", database, ("CreateTable", f"{database}/toy"))],
        [toy.add(*((number, "ball", "red") for number in range(1, 6)))],
        [pet.add(("Jack", "Peter"), ("Jack", "Peter"))],
    ]


def tables(database: str) -> tuple[Table, Table]:
    """A table with a key and one without."""
    return Table(f"{database}/toy", ["id", "name", "note"], ["id"]), Table(f"{database}/pet", ["name", "owner"])


def left(audit: Audit, databases: int = 1) -> set[tuple[str, str, str, int]]:
    """What still counts as drift, with the numbers of the report all of one opinion."""
    assert sum(row.rows for row in audit.drifted) == audit.drifted_rows == sum(t.drifted for t in audit.tables)
    assert sum(audit.drifted_by_cause.values()) == audit.drifted_rows
    assert audit.accepted_rows + audit.drifted_rows == 6 * databases
    assert audit.accepted_rows == sum(table.accepted for table in audit.tables)
    return {(row.database, row.table, row.kind, number(row.identity.get("id"))) for row in audit.drifted}


def number(text: str | None) -> int:
    return int(json.loads(text)["SignedInteger"]) if text else 0


ALL = {
    ("toy", "different", 1),
    ("toy", "missing", 2),
    ("toy", "different", 3),
    ("toy", "extra", 9),
    ("pet", "extra", 0),
}


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


def test_an_entry_takes_what_it_names_and_nothing_else(judged: Judge) -> None:
    databases = [f"db{number}" for number in range(len(ENTRIES))]
    entries = [
        replace(entry, number=number, name=entry.name.replace("flvDb", name))
        for number, (name, (entry, _)) in enumerate(zip(databases, ENTRIES, strict=True), 1)
    ]
    audit = judged(*drifted(*databases), terms=Terms(accepted=tuple(entries)))
    found = left(audit, len(databases))
    for name, (entry, accepted) in zip(databases, ENTRIES, strict=True):
        assert {tuple(row) for database, *row in found if database == name} == ALL - accepted, entry
    assert (audit.verdict, audit.exit_status) == ("drift", 1)
    # The last entry accepts a definition, and no row.
    assert audit.schema_drift == len(databases) - 1


def test_all_accepted_is_no_drift_and_is_told(judged: Judge, spark: SparkSession, tmp_path: Path) -> None:
    index = Entry(1, ("definition",), "flvDb.toy", "for reports", statements=("CREATE INDEX i ON toy (name)",))
    rows = Entry(2, ("rows",), "flvDb.toy", "known", until=date(9999, 1, 1))
    others, past, idle = (
        Entry(3, ("rows",), "flvDb.*", "all others"), Entry(4, ("rows",), "flvDb.*", "old", until=date(2020, 1, 1)),
        Entry(5, ("definition",), "flvDb.pet", "none"),
    )  # fmt: skip
    audit = judged(*drifted(), terms=Terms(accepted=(index, rows, others, past, idle)))
    assert (audit.verdict, audit.exit_status, left(audit), audit.schema) == ("no drift", 0, set(), [])
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
    # What was accepted yesterday does not hide what came since.
    leader, follower = drifted()
    follower.transaction(query("ALTER TABLE toy DROP COLUMN note", "flvDb", ("AlterTable", "flvDb/toy")))
    audit = judged(leader, follower, terms=Terms(accepted=(index, rows, others)))
    assert (audit.verdict, audit.schema_drift) == ("drift", 1)


def test_the_command_reads_the_file(kafka: Kafka, tmp_path: Path, run_audit: RunAudit) -> None:
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
    if LONG:  # test_all_accepted_is_no_drift_and_is_told has the exit status
        accept.write_text(accept.read_text().replace("flvDb.toy", "flvDb.*"))
        assert run_audit(*options, "--accept", str(accept)).returncode == 0
