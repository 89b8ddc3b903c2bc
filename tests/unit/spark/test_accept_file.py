"""The file of ``--accept``: what it says, what it refuses, and which definitions an entry names."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from cdc.errors import UserError
from cdc.spark.ddl.accepted_drift import SKIPPED_EVENT, Entry, first_entry
from cdc.spark.ddl.definitions import CAUSE, SchemaDrift
from cdc.spark.ddl.lineage import TEXT
from cdc.spark.job.options import Terms, accepted_drift

INDEX = SchemaDrift("Table", "shop", "order", "schema drift", "…", ("CREATE INDEX by_day ON `order` (day)",))


def written(folder: Path, text: str) -> tuple[Entry, ...]:
    (folder / "accept.toml").write_text(text, encoding="utf-8")
    return accepted_drift(folder / "accept.toml")


def test_every_key(tmp_path: Path) -> None:
    entries = written(tmp_path, """
        [[accept]]
        what = ["rows", "definition"]
        name = "shop.*"
        reason = "reports"
        until = 2027-01-31
        kinds = ["extra", "different"]
        keys = [{id = 5, name = "é"}]
        statements = ["CREATE INDEX i ON t (c)"]
        [[accept]]
        what = "rows"
        name = "shop.settings"
        columns = ["note"]
        reason = "notes of the report team"
    """)  # fmt: skip
    assert entries == (
        Entry(
            1, ("rows", "definition"), "shop.*", "reports", date(2027, 1, 31), ("extra", "different"), None,
            ({"id": "5", "name": "é"},), ("CREATE INDEX i ON t (c)",),
        ),
        Entry(2, ("rows",), "shop.settings", "notes of the report team", columns=("note",)),
    )  # fmt: skip
    assert written(tmp_path, "") == ()
    terms = Terms(accepted=entries)
    assert terms.in_force("2027-01-31T23:59:59+00:00") == entries
    assert terms.in_force("2027-02-01T00:00:00+00:00") == entries[1:]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('name = "a.b"\nreason = "r"', "there is no what"),
        ('what = "rows"\nname = "a.b"', "there is no reason"),
        ('what = "rows"\nname = "a.b"\nreason = " "', "reason: it is no text"),
        ('what = "row"\nname = "a.b"\nreason = "r"', "'row' is none of rows, definition, skipped event"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nkind = "extra"', "unknown key kind"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nuntil = "2027-01-31"', "until: it is no day"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nuntil = 2027-01-31T12:00:00Z', "until: it is no day"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nkeys = [{id = true}]', "id is neither a whole number nor text"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nkinds = []', "kinds: it is no list of texts"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nkeys = [{id = 1.5}]', "id is neither a whole number nor text"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nstatements = ["x"]', "statements is about definition"),
        ('what = "rows"\nname = "a.b"\nreason = "r"\nkinds = ["extra"]\ncolumns = ["c"]', "columns is about rows"),
        ('what = "rows"\nname = "a.b.c"\nreason = "r"', "accept.name"),
        ("what = ", "broken TOML"),
    ],
)
def test_mistakes_are_refused(tmp_path: Path, entry: str, told: str) -> None:
    with pytest.raises(UserError) as refused:
        written(tmp_path, f"[[accept]]\n{entry}\n")
    assert told in f"{refused.value} {refused.value.where}"


def test_other_files_are_refused(tmp_path: Path) -> None:
    for text in ("[accept]\nwhat = 1", "x = 1"):
        with pytest.raises(UserError, match="something else than tables"):
            written(tmp_path, text)
    many = ", ".join(f"{{id = {number}}}" for number in range(1_001))
    with pytest.raises(UserError, match="more than 1,000 keys"):
        written(tmp_path, f'[[accept]]\nwhat = "rows"\nname = "a.b"\nreason = "r"\nkeys = [{many}]')
    with pytest.raises(UserError, match="cannot read the file"):
        accepted_drift(tmp_path / "none.toml")


def test_a_definition_is_accepted_for_the_statements_that_are_listed() -> None:
    entry = Entry(3, ("definition",), "shop.order", "reports", statements=("create index by_day on `order`(day)",))
    assert first_entry(INDEX, [entry]) == 3
    assert first_entry(INDEX, [replace(entry, statements=None)]) == 3
    for other in (
        replace(INDEX, statements=(*INDEX.statements, "ALTER TABLE `order` DROP COLUMN total")),
        replace(INDEX, statements=()),
        replace(INDEX, name="orders"),
        replace(INDEX, database="Shop"),
        replace(INDEX, name=None),
        replace(INDEX, cause=CAUSE),
    ):
        assert first_entry(other, [entry]) is None
    long = "CREATE INDEX i ON t (c) COMMENT '" + "x" * TEXT
    cut = replace(INDEX, statements=(long[:TEXT],))
    assert first_entry(cut, [replace(entry, statements=(long[:TEXT],))]) is None
    assert first_entry(INDEX, [replace(entry, what=("rows",), statements=None)]) is None
    database = replace(INDEX, kind="Database", database="reports", name=None)
    assert first_entry(database, [replace(entry, name="reports", statements=None)]) == 3


def test_a_skipped_event_is_accepted_as_such_only() -> None:
    assert CAUSE == SKIPPED_EVENT
    skipped = replace(INDEX, cause=CAUSE, statements=())
    for what, number in (("definition", None), (SKIPPED_EVENT, 1)):
        assert first_entry(skipped, [Entry(1, (what,), "shop.order", "r")]) == number
