"""Streams of one leader share its databases: none is in two, no foreign key goes from one to another."""

import pytest

from cdc.config.filters import Filters
from cdc.producer.streams_beside import in_none, problem

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
