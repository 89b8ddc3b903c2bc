"""Statements as the follower executes them; the record itself keeps the leader's."""

from typing import Any

import pytest

from cdc.config.renames import Renames
from cdc.consumer.source.follower_statements import FollowerStatements
from cdc.consumer.source.renaming import Renaming
from cdc.model.position import Position
from cdc.model.record import Record, Uri


def executed(text: str, *, renames: dict[str, str] | None = None, **context: Any) -> str:
    """What the follower executes of a statement on the leader's table d.t."""
    record = Record(
        Uri("r", "d"), 7, Position("binlog.000001", 4), "id", 0, True, 0, "Query", text,
        context={"database": "d", **context}, affects=({"action": "CreateTable", "uri": "flv://r/d/t"},),
    )  # fmt: skip
    renaming = Renaming(Renames(renames or {}), replicated=lambda _: True)
    return FollowerStatements(renaming).of(record).query


@pytest.mark.parametrize("space", ["innodb_file_per_table", "`Innodb_System`"])
def test_what_every_server_has_is_kept(space: str) -> None:
    assert executed(f"CREATE TABLE t (i INT) TABLESPACE {space}").endswith(space)


def test_another_tablespace_becomes_a_file_of_the_table() -> None:
    own = "innodb_file_per_table"
    assert executed("ALTER TABLE t TABLESPACE=a, ADD i INT") == f"ALTER TABLE t TABLESPACE={own}, ADD i INT"
    assert (
        executed('CREATE TABLE d.t (i INT) TABLESPACE "a"', sql_mode="ANSI_QUOTES", renames={"d": "e"})
        == f"CREATE TABLE `e`.t (i INT) TABLESPACE {own}"
    )
