"""Streams of one leader share its databases: none is in two, no foreign key goes from one to another."""

from pathlib import Path

import pytest

from cdc.config.filters import Filters
from cdc.config.profile import load
from cdc.errors import UserError
from cdc.producer.binlog.leader import Leader
from cdc.producer.streams_beside import in_none, problem, require_shares

SHOP, STOCK = Filters(include_dbs=("shop", "shop_*")), Filters(include_dbs=("stock",))
REST = Filters(exclude_dbs=("shop", "shop_*", "stock"))
ALL = {"a": SHOP, "b": STOCK, "c": REST}
DATABASES = ["shop", "shop_eu", "stock", "users"]


def key(child: str, parent: str) -> tuple[str, str, str, str, str]:
    return child, "orders", parent, "items", "k"


def test_each_database_is_in_one() -> None:
    assert problem(DATABASES, [], ALL) is None
    assert in_none(DATABASES, ALL) == []


@pytest.mark.parametrize(("streams", "told"), [
    ({"a": SHOP, "b": Filters(include_dbs=("*eu", "stock"))}, "database shop_eu is in the streams a and b"),
    ({**ALL, "c": Filters(exclude_dbs=("shop", "stock"))}, "database shop_eu is in the streams a and c"),
    ({"a": SHOP, "b": Filters()}, "database shop is in the streams a and b"),
    ({"a": Filters(exclude_dbs=(*DATABASES[:2], "users")), "b": Filters(exclude_dbs=("stock",))},
     "a database that is created later is in the streams a and b"),
])  # fmt: skip
def test_a_database_in_two_is_refused(streams: dict[str, Filters], told: str) -> None:
    found = problem([each for each in DATABASES if each != "users" or "later" not in told], [], streams)
    assert found is not None
    assert (found.code, told in str(found)) == ("CDC-STREAMS-OVERLAP", True)


def test_databases_in_none_are_named() -> None:
    assert in_none(DATABASES, {"a": SHOP, "b": STOCK}) == ["database users", "a database that is created later"]
    assert in_none(DATABASES, {"b": STOCK, "c": REST}) == ["database shop", "database shop_eu"]


def test_a_foreign_key_across_is_refused() -> None:
    assert problem(DATABASES, [key("shop", "shop_eu")], ALL) is None
    assert problem(DATABASES, [key("shop", "users")], {"a": SHOP, "b": STOCK}) is None
    found = problem(DATABASES, [key("shop", "users")], ALL)
    assert found is not None
    assert "foreign key k of shop.orders refers to another stream: users.items" in str(found)


def test_a_profile_that_is_not_there_is_told_with_the_key_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f'mysql_resource_name = "a"\nproducer.beside = ["{tmp_path / "b.toml"}"]')
    with pytest.raises(UserError, match=r"no such file: .*b\.toml; at profile key producer\.beside"):
        require_shares(load(tmp_path / "a.toml"), Leader.__new__(Leader), log=print)
