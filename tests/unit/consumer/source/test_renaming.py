"""Records under the follower's names of databases, and the filters, which go by the leader's."""

from dataclasses import replace

import pytest

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable
from cdc.consumer.source.renaming import Renaming
from cdc.errors import UserError
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri


def renaming(renames: dict[str, str], *, excluded: str = "") -> Renaming:
    return Renaming(Renames(renames), replicated=lambda uri: uri.database != excluded)


def rows(database: str) -> Record:
    row = Row(None, [{"SignedInteger": 1}])
    return Record(
        Uri("r", database, "t"), 7, Position("binlog.000001", 4), "id", 0, True, 0, "Add", columns=("i",), rows=(row,)
    )


def statement(text: str, database: str, *, context: str) -> Record:
    return Record(
        Uri("r", database), 7, Position("binlog.000001", 4), "id", 0, True, 0, "Query", text,
        context={"database": context}, affects=({"action": "CreateView", "uri": f"flv://r/{database}/v"},),
    )  # fmt: skip


def test_rows_get_the_new_name() -> None:
    names = renaming({"a": "b"})
    assert [names.rows(rows(name)).uri.database for name in ("a", "c")] == ["b", "c"]


def test_places_can_be_changed() -> None:
    names = renaming({"a": "b", "b": "a"})
    assert [names.rows(rows(name)).uri.database for name in ("a", "b")] == ["b", "a"]


def test_the_filters_go_by_the_leaders_names() -> None:
    names = renaming({"a": "b"}, excluded="a")
    assert not names.passes(names.rows(rows("a")).uri)
    names = renaming({"a": "b"}, excluded="b")
    assert names.passes(names.rows(rows("a")).uri)
    # The leader's own b is excluded, and would now be taken for a.
    left_out = names.rows(replace(rows("b"), types=("int",), copying=True))
    assert (left_out.rows, left_out.types, left_out.copying) == ((), (), False)
    assert names.on_follower(Uri("r", "b", "t")) is None
    assert names.on_follower(Uri("r", "a", "t")) == Uri("r", "b", "t")


def test_two_databases_never_become_one() -> None:
    with pytest.raises(UserError, match="databases would have the name b on the follower: b itself and a"):
        renaming({"a": "b"}).rows(rows("b"))
    with pytest.raises(UserError, match="two of the leader's databases would have the name b"):
        renaming({"a": "b"}).statement(statement("CREATE VIEW v AS SELECT 1", "b", context="b"))
    with pytest.raises(Unapplicable, match="a statement names the leader's b, but on the follower another database"):
        renaming({"a": "b"}).statement(statement("CREATE VIEW v AS SELECT * FROM b.t", "a", context="a"))


def test_a_statement_runs_in_the_new_database_or_in_none() -> None:
    names = renaming({"a": "b"})
    found = [names.statement(statement("CREATE VIEW a.v AS SELECT 1", "a", context=name)).context for name in "abc"]
    assert found == [{"database": "b"}, {"database": ""}, {"database": "c"}]


@pytest.mark.parametrize(
    "renames",
    [{"a": "c", "b": "c"}, {"a": "mysql"}, {"cdc": "x"}, {"a.t": "b.t"}, {"a": ""}, {"a": "x" * 65}, {"a": "é"}],
)
def test_names_that_cannot_be(renames: dict[str, str]) -> None:
    with pytest.raises(UserError, match="profile key renames"):
        Renames(renames)
