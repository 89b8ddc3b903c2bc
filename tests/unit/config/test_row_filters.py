"""Which rows pass, by the globs and conditions of the profile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.filters import FilterChange, Filters
from cdc.errors import UserError
from cdc.sql.row_condition import RowCondition

EU = RowCondition.parse("region = 'EU'")
LARGE = RowCondition.parse("amount >= 10")


def test_all_globs_that_match_count() -> None:
    filters = Filters(rows={"shop.orders": "region = 'EU'", "shop.*": "amount >= 10", "`my.db`.`a``b`": "region='EU'"})
    assert filters.condition("shop", "orders") == RowCondition.joined([EU, LARGE])
    assert filters.condition("shop", "carts") == LARGE
    assert filters.condition("my.db", "a`b") == EU
    assert filters.condition("crm", "orders") is None
    assert filters.row_filters.unused([("shop", "carts")]) == ["shop.orders", "`my.db`.`a``b`"]


def test_shadow_tables_and_names_in_lower_case() -> None:
    filters = Filters(rows={"Shop.Orders": "Region = 'EU'"}, shadow_tables=("_{table}_gho",)).folded()
    assert filters.condition("shop", "_orders_gho") == filters.condition("shop", "orders") == EU
    assert filters.condition("shop", "_carts_gho") is None
    both = Filters(rows={"Shop.t": "region = 'EU'", "shop.T": "amount >= 10"}).folded()
    assert both.condition("shop", "t") == RowCondition.joined([EU, LARGE])


@pytest.mark.parametrize("rows", [{"shop.orders": "region"}, {"shop: x.orders": "a = 1"}, {"shop.orders": 1}])
def test_what_is_no_condition_is_refused(rows: dict[str, str]) -> None:
    with pytest.raises(UserError) as error:
        Filters(rows=rows)
    assert error.value.code == "CDC-PROFILE-ROWS"
    assert next(iter(rows)) in error.value.where


def test_a_glob_names_a_database() -> None:
    with pytest.raises(UserError, match="names no table"):
        Filters(rows={"orders": "a = 1"})


globs = st.sampled_from(["a.t", "a.*", "`a: b`.t", "*.u"])
conditions = st.sampled_from(["x = 1", "x IN ('a: b', 'c')", "x <> '\n'", "y < 3 AND x IS NULL"])


@given(st.dictionaries(globs, conditions), st.lists(globs))
def test_what_is_listed_are_the_same_filters(rows: dict[str, str], tables: list[str]) -> None:
    """The commit log has the lists of the filters that held."""
    filters = Filters(rows=rows, exclude_tables=tuple(tables))
    again = Filters(mask_columns={"a.b.c": "null"}).as_listed(filters.listed())
    assert again.listed() == filters.listed()
    assert again.mask_columns == {"a.b.c": "null"}
    assert all(again.condition("a", name) == filters.condition("a", name) for name in "tu")
    assert ("rows" in filters.listed()) == bool(rows)


def test_a_table_of_which_other_rows_pass_is_let_in_again() -> None:
    before = Filters(rows={"a.t": "x = 1", "a.u": "x = 1"}, exclude_tables=("a.w",))
    after = Filters(rows={"a.t": "x = 2", "a.u": "x = 1 AND x=1", "a.w": "x = 1"}, exclude_tables=("a.w",))
    change = FilterChange(before, after)
    assert [name for name in "tuvw" if change.wants_table("a", name)] == ["t"]
    assert not after.narrows(before)
    assert Filters(rows={"a.t": "x=1"}).narrows(Filters(rows={"a.t": "`x` = 1.0"}))
    assert FilterChange(before, Filters(exclude_tables=("a.w",))).wants_table("a", "u")
