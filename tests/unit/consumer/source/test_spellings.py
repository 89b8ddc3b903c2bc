"""The leader's names on a follower to which names that differ in case only are one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.source.renaming import Spellings
from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.model.record import Record, Uri

NAMES = ("Pet", "pet", "PET", "Owner", "owner")


def spellings(*, without: str = "") -> Spellings:
    return Spellings("cdc", "r", passes=lambda uri: uri.table != without)


def rows(sequence: int, table: str, database: str = "Shop") -> Record:
    return _record(sequence, Uri("r", database, table), "Add", ())


def statement(sequence: int, action: str, name: str | None, *, to: str = "", database: str = "Shop") -> Record:
    affect = {"action": action, "uri": str(Uri("r", database, name))}
    more = {"to": str(Uri("r", database, to))} if to else {}
    return _record(sequence, Uri("r", database), "Query", (affect | more,))


def _record(sequence: int, uri: Uri, operation: str, affects: tuple[dict[str, Any], ...]) -> Record:
    context = {"database": uri.database}
    place = Position("binlog.000001", 4)
    return Record(uri, sequence, place, "id", 0, True, 0, operation, "…", context=context, affects=affects)


def refused(found: Spellings, record: Record) -> bool:
    try:
        found.check(found.folded(record))
    except PromiseError as error:
        assert error.code == "CDC-FOLLOWER-NAMES-MEET"
        return True
    return False


def test_records_get_the_names_of_the_follower() -> None:
    found = spellings()
    created = found.folded(statement(1, "RenameTable", "Ä b", to="É"))
    assert created.uri == Uri("r", "shop")
    assert created.affects == (
        {"action": "RenameTable", "uri": "flv://r/shop/%C3%A4%20b", "to": "flv://r/shop/%C3%A9"},
    )
    assert created.context == {"database": "shop"}
    assert found.folded(rows(2, "É")).uri == Uri("r", "shop", "é")
    routine = found.folded(statement(3, "CreateProcedure", "Take"))
    assert routine.affects[0]["uri"] == "flv://r/shop/Take"


def test_databases_and_tables_that_meet() -> None:
    found = spellings()
    assert not refused(found, statement(1, "CreateDatabase", None))
    assert refused(found, statement(2, "CreateDatabase", None, database="SHOP"))
    assert not refused(found, statement(3, "CreateTable", "Pet"))
    assert refused(found, statement(4, "DropTable", "pet"))
    assert refused(found, rows(5, "pet"))
    assert not refused(found, rows(6, "Pet"))
    with pytest.raises(PromiseError, match=r"the leader's Shop\.Pet and Shop\.PET would be one table") as stop:
        found.folded(rows(7, "PET"))
    # Rows never get to where they could be skipped.
    assert "--skip" not in str(stop.value)
    assert not refused(found, statement(8, "DropDatabase", None))
    assert not refused(found, statement(9, "CreateTable", "pet", database="shop"))


def test_what_only_the_leader_has_does_not_count() -> None:
    found = spellings(without="pet")
    assert not refused(found, rows(1, "Pet"))
    assert not refused(found, rows(2, "pet"))
    assert not refused(found, statement(3, "CreateTrigger", "Owner"))
    assert not refused(found, rows(4, "owner"))
    assert len(found.notes(after=0, through=4)) == 2


def test_what_is_noted_with_a_checkpoint() -> None:
    """The names of the records between two checkpoints, until they are committed."""
    found = spellings()
    for record in (rows(1, "Pet"), statement(2, "RenameTable", "Pet", to="Owner"), rows(3, "Owner")):
        assert not refused(found, record)
    first, both = found.notes(after=0, through=1), found.notes(after=0, through=2)
    assert [b"'Pet'" in b"".join(each.sql for each in notes) for notes in (first, both)] == [True, False]
    assert b"DELETE FROM `cdc`.`names` WHERE resource='r' AND ((database_name, table_name) IN (('shop', 'pet')))" in [
        each.sql for each in found.notes(after=1, through=2)
    ]
    assert found.notes(after=2, through=3) == []
    found.committed(2)
    assert found.notes(after=0, through=3) == []


_DEEDS = st.lists(
    st.tuples(st.sampled_from(["create", "drop", "rename", "rows"]), st.sampled_from(NAMES), st.sampled_from(NAMES))
)


@given(_DEEDS)
def test_no_two_tables_of_the_leader_become_one(deeds: list[tuple[str, str, str]]) -> None:
    """Accepts exactly the statements of a leader with 0 on tables whose names differ in more than their case."""
    found, tables = spellings(), set[str]()
    for sequence, (deed, name, to) in enumerate(deeds):
        if deed == "rows" and name in tables:
            assert not refused(found, rows(sequence, name))
        elif deed == "create" and name not in tables:
            meets = name.lower() in {each.lower() for each in tables}
            assert refused(found, statement(sequence, "CreateTable", name)) == meets
            tables |= set() if meets else {name}
        elif deed == "drop":
            # A DROP TABLE IF EXISTS is logged for a table that does not exist, too.
            meets = name not in tables and name.lower() in {each.lower() for each in tables}
            assert refused(found, statement(sequence, "DropTable", name)) == meets
            tables -= {name}
        elif deed == "rename" and name in tables and to not in tables:
            meets = to.lower() in {each.lower() for each in tables - {name}}
            assert refused(found, statement(sequence, "RenameTable", name, to=to)) == meets
            tables = tables if meets else tables - {name} | {to}
