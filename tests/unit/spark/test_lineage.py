"""Which table a row finally belongs to, after statements that drop, empty and rename tables."""

import pytest

from cdc.spark.schema.lineage import Act, lineage
from cdc.spark.state.layers import tables_unchanged

Name = tuple[str, str]


def owner(acts: list[Act], name: Name, sequence: int) -> Name | None:
    """The table that a row logged for ``name`` at ``sequence`` finally belongs to."""
    matching = [
        each
        for each in lineage([("db", "a"), ("db", "b"), ("other", "a")], acts)
        if (each.database, each.table) == name and each.first <= sequence < each.end
    ]
    assert len(matching) == 1, "every sequence of every table is covered once"
    return matching[0].owner


def act(sequence: int, action: str, path: str, to: str | None = None, place: int = 0) -> Act:
    return Act(sequence, place, action, f"flv://srv/{path}", to and f"flv://srv/{to}")


SWAP = [
    act(10, "RenameTable", "db/a", "db/c"),
    act(10, "RenameTable", "db/b", "db/a", place=1),
    act(10, "RenameTable", "db/c", "db/b", place=2),
]


@pytest.mark.parametrize(
    ("acts", "name", "sequence", "expected"),
    [
        ([], ("db", "a"), 5, ("db", "a")),
        ([act(10, "DropTable", "db/a")], ("db", "a"), 5, None),
        ([act(10, "DropTable", "db/a")], ("db", "a"), 15, ("db", "a")),
        ([act(10, "DropTable", "db/a")], ("db", "b"), 5, ("db", "b")),
        ([act(10, "TruncateTable", "db/a")], ("db", "a"), 9, None),
        ([act(10, "DropDatabase", "db")], ("db", "b"), 5, None),
        ([act(10, "DropDatabase", "db")], ("other", "a"), 5, ("other", "a")),
        ([act(10, "RenameTable", "db/a", "db/n")], ("db", "a"), 5, ("db", "n")),
        ([act(10, "RenameTable", "db/a", "db/n")], ("db", "n"), 15, ("db", "n")),
        ([act(10, "RenameTable", "db/a", "db/n")], ("db", "a"), 15, ("db", "a")),
        ([act(10, "RenameTable", "db/a", "db/n"), act(20, "DropTable", "db/n")], ("db", "a"), 5, None),
        (SWAP, ("db", "a"), 5, ("db", "b")),
        (SWAP, ("db", "b"), 5, ("db", "a")),
        (SWAP, ("db", "a"), 15, ("db", "a")),
        # IF NOT EXISTS is logged for a table that exists: CREATE ends nothing.
        ([act(10, "CreateTable", "db/a")], ("db", "a"), 5, ("db", "a")),
        ([act(10, "DropView", "db/a")], ("db", "a"), 5, ("db", "a")),
    ],
)
def test_owner(acts: list[Act], name: Name, sequence: int, expected: Name | None) -> None:
    assert owner(acts, name, sequence) == expected


def test_alter_begins_an_era_of_the_same_table() -> None:
    eras = {each.era: each.owner for each in lineage([("db", "a")], [act(10, "AlterTable", "db/a")])}
    assert eras == {0: ("db", "a"), 1: ("db", "a")}


def test_rows_are_unchanged_if_no_statement_moved_or_altered_their_table() -> None:
    def unchanged(action: str, path: str, to: str | None = None) -> bool:
        return tables_unchanged({("db", "kept")}, lineage([("db", "kept")], [act(10, action, path, to)]))

    assert all(unchanged(action, "db/other") for action in ("CreateTable", "AlterTable", "DropTable", "TruncateTable"))
    assert unchanged("CreateTable", "db/kept")
    assert not any(unchanged(action, "db/kept") for action in ("AlterTable", "DropTable", "TruncateTable"))
    assert not unchanged("RenameTable", "db/kept", "db/other")
    assert not unchanged("RenameTable", "db/other", "db/kept")
    assert not unchanged("DropDatabase", "db")
