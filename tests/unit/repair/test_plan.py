"""What is asked for the drifted rows of an audit's report, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc.errors import UserError
from cdc.producer.copy.definition import CopiedColumn, TableDefinition
from cdc.repair.__main__ import definition_lines, row_lines
from cdc.repair.plan import Plan, planned, requests, statement_of
from cdc.repair.report import Report, read_report
from cdc.spark.ddl.definitions import EMPTIED

TEXT, NUMBER = CopiedColumn("name", "varchar", False, charset="utf8mb4"), CopiedColumn("n", "int", False)
DEFINITION = TableDefinition("d", "t", (NUMBER, TEXT), ("name", "n"), "PRIMARY", "", "CREATE TABLE")


def identity(number: int, **more: str) -> dict[str, Any]:
    known = {"n": f'{{"SignedInteger":{number}}}', "name": '{"String":"é"}'} | more
    return {"database": "d", "table": "t", "keyed": True, "identity": known}


def drifted(number: int, kind: str = "extra", **images: Any) -> dict[str, Any]:
    made = {"kind": kind, "columns": ["v"], "leader_image": None, "follower_image": None}
    return identity(number) | made | images


def report(folder: Path, *rows: dict[str, Any], keys: int = 0, total: int | None = None, **more: Any) -> Report:
    line = {"database": "d", "table": "t", "leader_rows": 50, "missing": 0, "extra": total or keys or len(rows)}
    body = {
        "version": 1, "verdict": "drift", "reasons": [], "leader": {"resource": "srv", "topic": "t"}, "schema": [],
        "schema_drift": 0, "drifted": list(rows), "tables": [line | {"different": 0}],
    }  # fmt: skip
    (folder / "report.json").write_text(json.dumps(body | more))
    lines = [json.dumps(identity(number)) for number in range(keys)]
    (folder / "drift.keys.jsonl").write_text("\n".join(lines))
    return read_report(folder, resource="srv", topic="t")


def plan(
    found: Report, definition: TableDefinition = DEFINITION, *, different: bool = False, wanted: bool = True
) -> Plan:
    names = {("d", "t")} if different else set()
    return planned(found.tables[0], definition, differently_defined=names, is_wanted=wanted)


def test_rows_are_asked_for_by_the_leader_s_key(tmp_path: Path) -> None:
    made = plan(report(tmp_path, drifted(1), drifted(2)))
    assert made.keys is not None
    assert made.keys.columns == ("name", "n")
    assert made.keys.values == tuple(('{"String":"é"}', f'{{"SignedInteger":{n}}}') for n in (1, 2))
    assert made.summary == "d.t: 0 missing, 2 extra, 0 different; by their keys"


def test_it_says_that_a_whole_table_overwrites_accepted_rows(tmp_path: Path) -> None:
    line = {"database": "d", "table": "t", "leader_rows": 50, "missing": 0, "extra": 1, "different": 0, "accepted": 3}
    assert plan(report(tmp_path, drifted(1), tables=[line])).summary.endswith("; by their keys")
    made = plan(report(tmp_path, drifted(1) | {"keyed": False}, tables=[line]))
    assert made.summary.endswith("since it has no key; 3 accepted rows become the leader's, too")


def test_many_keys_are_listed_in_a_file_and_asked_for_in_parts(tmp_path: Path) -> None:
    made = plan(report(tmp_path, drifted(1), keys=1000))
    assert made.keys is not None
    parts = [len(part.values) for part in requests(made.keys)]
    assert (parts, len(made.keys.values)) == ([500, 500], 1000)
    long = made.keys._replace(values=(("x" * 150_000,),) * 3)
    assert [len(part.values) for part in requests(long)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("rows", "keys", "total", "why"),
    [
        ([drifted(1)], 0, 2, "the report does not have all keys"),
        ([drifted(1), drifted(1)], 0, 2, "the report does not have all keys"),
        ([drifted(1), drifted(2) | {"identity": {"n": "1"}}], 0, 2, "the report does not have all keys"),
        ([drifted(1) | {"keyed": False}], 0, 1, "it has no key"),
        ([], 1001, None, "so many rows drifted"),
        ([drifted(1) | {"identity": {"n": "1", "other": "2"}}], 0, 1, "its key is (name, n), the report's (n, other)"),
        ([identity(1, name='{"SignedInteger":1}') | drifted(1) | {"identity": identity(1, name="1")["identity"]}], 0, 1,
         "1 is no value of its column name (varchar)"),
    ],
)  # fmt: skip
def test_a_part_is_never_repaired_in_silence(
    tmp_path: Path, rows: list[dict[str, Any]], keys: int, total: int | None, why: str
) -> None:
    made = plan(report(tmp_path, *rows, keys=keys, total=total))
    assert (made.whole, made.keys, made.why) == (True, None, why)


def test_what_can_not_be_repaired_is_named(tmp_path: Path) -> None:
    found = report(tmp_path, drifted(1))
    refused = TableDefinition("d", "t", (), (), "", "", "CREATE", "its engine is MyISAM")
    for made, why in (
        (plan(found, refused), "it can't be copied: its engine is MyISAM"),
        (plan(found, different=True), "it is not defined as on the leader"),
        (plan(found, wanted=False), "the profile's filters leave the table out"),
    ):
        assert (made.keys, made.whole) == (None, False)
        assert f"NOT repaired: {why}" in made.summary


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"verdict": "could not judge", "reasons": ["a gap"]}, "could not judge: a gap"),
        ({"leader": {"resource": "other", "topic": "t"}}, "another leader: its mysql_resource_name is other"),
        ({"leader": {"resource": "srv", "topic": "old"}}, "another leader: its kafka.topic is old"),
        ({"version": 2}, "of version 2, not 1"),
        ({"tables": None}, "no report of cdc-audit"),
    ],
)
def test_a_report_that_does_not_tell_what_drifted_here_is_refused(
    tmp_path: Path, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        report(tmp_path, drifted(1), **more)
    with pytest.raises(UserError, match="there is no report"):
        read_report(tmp_path / "none", resource="srv", topic="t")


def test_rows_are_shown_side_by_side(tmp_path: Path) -> None:
    image = identity(1)["identity"] | {"v": '{"String":"old"}'}
    found = report(
        tmp_path, drifted(1, "different", leader_image=image, follower_image=image | {"v": '{"String":"new"}'}),
        drifted(2, "missing", leader_image=identity(2)["identity"]), drifted(3), total=4,
    )  # fmt: skip
    assert list(row_lines(found.tables[0])) == [
        "  different: n=1, name='é'", "    leader   v='old'", "    follower v='new'",
        "  missing: n=2, name='é'", "    leader   n=2, name='é'", "    follower no such row",
        "  extra: n=3, name='é'", "    leader   no such row", "    follower n=3, name='é'",
        "  … 3 of 4 rows are in report.json, all in drift.parquet",
    ]  # fmt: skip


def test_a_table_that_one_side_emptied_is_asked_for_as_a_whole(tmp_path: Path) -> None:
    schema = [
        {"kind": "Table", "database": "d", "name": name, "cause": cause, "evidence": "…"}
        for name, cause in (("t", EMPTIED), ("older", EMPTIED), ("other", "schema drift"))
    ]
    found = report(tmp_path, drifted(1), schema=schema, schema_drift=5)
    assert ([each["name"] for each in found.schema], found.schema_drift) == (["other"], 3)
    assert [(each.name, each.drifted) for each in found.tables] == [(("d", "t"), 1), (("d", "older"), 0)]
    assert (
        plan(found).summary == "d.t: 0 missing, 1 extra, 0 different; with the whole table, since one side emptied it"
    )
    own = planned(found.tables[1], replace(DEFINITION, created=""), differently_defined=set(), is_wanted=True)
    assert own.summary.endswith("NOT repaired: the leader does not have the table")


def test_a_statement_that_the_follower_lacks_is_shown_where_all_of_it_is_known() -> None:
    end = "(sequence 7 at binlog.000001:99, 2026-01-02 03:04:05 UTC)"
    drift = {"kind": "Table", "database": "d", "name": "t", "cause": "schema drift"}
    whole = drift | {"evidence": f"only the leader has: ALTER TABLE t ADD x DECIMAL(5,2) {end}"}
    assert list(definition_lines(whole))[1].endswith(": ALTER TABLE t ADD x DECIMAL(5,2)")
    for unknown in (
        f"only the leader has: ALTER TABLE t COMMENT … {end}",
        f"only the leader has: ALTER TABLE t ADD x INT {end}; only the leader has: ALTER TABLE t ADD y INT {end}",
        "only the follower has: ALTER TABLE t ADD x INT (transaction a:1 at b:9, 2026-01-02 03:04:05 UTC)",
    ):
        assert statement_of(drift | {"evidence": unknown}) is None
        assert len(list(definition_lines(drift | {"evidence": unknown}))) == 1
