"""Columns that look like BINARY pass only if they are BINARY now, as when their rows were logged."""

import pytest

from cdc.errors import PromiseError
from cdc.producer.decode.table_map import STRING, Column, Table
from cdc.producer.flavor.mariadb_leader import column_check


def table(*columns: Column) -> Table:
    return Table("d", "t", columns, None)


def binary(size: int) -> Column:
    return Column("a", STRING, size, False, "binary", None, "")


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize(
    ("present", "reason"),
    [
        (("uuid", None), "UUID of MariaDB"),
        (("inet6", None), "INET6 of MariaDB"),
        (("varbinary", 39), "BINARY, or UUID or INET of MariaDB before an ALTER"),
        (("binary", 5), "BINARY, or UUID or INET of MariaDB before an ALTER"),
        (None, "BINARY, or UUID or INET of MariaDB before an ALTER"),
    ],
)
def test_a_column_that_is_or_may_have_been_of_mariadbs_own_type(
    size: int, present: tuple[str, int | None] | None, reason: str
) -> None:
    require = column_check(lambda database, name: {} if present is None else {"a": present})
    with pytest.raises(PromiseError, match=f"column a has a type that is not replicated yet: {reason}; at table d.t"):
        require(table(binary(size)))


def test_binary_columns_pass() -> None:
    column_check(lambda database, name: {"a": ("binary", 16)})(table(binary(16)))

    def present(database: str, name: str) -> dict[str, tuple[str, int | None]]:
        pytest.fail("the leader was asked")

    column_check(present)(table(binary(5), Column("c", STRING, 16, False, "latin1", None, "")))
