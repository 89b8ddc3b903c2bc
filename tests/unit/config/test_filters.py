"""Filters: which tables globs mean, and whether those of one run are narrower than those of another."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.filters import Filters, filtered_name
from cdc.config.topic_names import PER_TABLE, Topics
from cdc.errors import UserError

GLOBS = st.lists(st.sampled_from(["a", "b", "a*", "*"]), max_size=2).map(tuple)
TABLES = st.lists(st.sampled_from(["a.x", "a.*", "*.x", "b.y"]), max_size=2).map(tuple)


def filters(kind: str, lists: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from([f"include_{kind}", f"exclude_{kind}"]).flatmap(lambda key: lists.map(lambda it: {key: it}))


SHADOWS = st.lists(st.sampled_from(["_{table}_gho", "{table}_old"]), max_size=2).map(
    lambda it: {"shadow_tables": tuple(it)}
)
FILTERS = st.tuples(filters("dbs", GLOBS), filters("tables", TABLES), SHADOWS).map(
    lambda parts: Filters(**parts[0] | parts[1] | parts[2])
)
NAMES = [(database, table) for database in ("a", "b", "ab", "c") for table in ("x", "y", "_x_gho", "y_old")]


@given(FILTERS, FILTERS)
def test_nothing_new_passes_what_is_narrower(before: Filters, now: Filters) -> None:
    assert now.narrows(now)
    if now.narrows(before):
        assert not [name for name in NAMES if now.wants_table(*name) and not before.wants_table(*name)]
        assert not [name for name, _ in NAMES if now.wants_database(name) and not before.wants_database(name)]


def test_the_order_of_globs_is_no_change() -> None:
    assert Filters(include_dbs=("b", "a", "b")).listed() == Filters(include_dbs=("a", "b")).listed()
    assert Filters().listed() == {}


@pytest.mark.parametrize(
    ("glob", "meant", "not_meant"),
    [
        ("shop.*", ("shop", "a.b"), ("shop2", "a")),
        ("`my.db`.orders", ("my.db", "orders"), ("my", "db.orders")),
        ("`my.db`.*", ("my.db", "a.b"), ("my", "db.a")),
        ("*.`my.orders`", ("a", "my.orders"), ("a.my", "orders")),
        ("my.`db.orders`", ("my", "db.orders"), ("my.db", "orders")),
        ("`a``b`.`c*`", ("a`b", "cd"), ("ab", "cd")),
    ],
)
def test_a_glob_over_tables(glob: str, meant: tuple[str, str], not_meant: tuple[str, str]) -> None:
    included, excluded = Filters(include_tables=(glob,)), Filters(exclude_tables=(glob,))
    topics = Topics("all", layout=PER_TABLE, tables=(glob,))
    assert included.wants_table(*meant)
    assert included.wants_database(meant[0])
    assert not excluded.wants_table(*meant)
    assert topics.of_table(*meant) != topics.events
    assert not included.wants_table(*not_meant)
    assert excluded.wants_table(*not_meant)
    assert topics.of_table(*not_meant) == topics.events


def test_a_database_with_a_dot() -> None:
    for glob in ("my.db", "`my.db`"):
        assert Filters(include_dbs=(glob,)).wants_table("my.db", "t")
        assert not Filters(exclude_dbs=(glob,)).wants_database("my.db")


@pytest.mark.parametrize(
    ("action", "passes"), [("CreateTable", False), ("DropView", False), ("CreateIndex", False), ("CreateTrigger", True)]
)
def test_objects_that_no_filter_names_pass_with_their_database(action: str, *, passes: bool) -> None:
    filters = Filters(exclude_tables=("d.t",))
    assert filters.wants("d", filtered_name(action, "t")) is passes
    assert filters.wants("d", filtered_name(action, None))


SHADOW = ("_{table}_gho", "_{table}_del", "__{table}_new")


@pytest.mark.parametrize(
    ("table", "of"),
    [
        ("_t_gho", "t"), ("_t_del", "t"), ("__t_new", "t"), ("t", "t"), ("_s_gho", "s"), ("__t_gho_del", "_t_gho"),
        ("_t_new", "_t_new"), ("t_gho", "t_gho"), ("__gho", "__gho"), ("_gho", "_gho"), ("_T_gho", "T"),
    ],
)  # fmt: skip
def test_a_shadow_table_passes_where_its_table_passes(table: str, of: str) -> None:
    included = Filters(include_tables=("d.t",), shadow_tables=SHADOW)
    excluded = Filters(exclude_tables=("d.t",), shadow_tables=SHADOW)
    assert included.wants_table("d", table) is (of == "t")
    assert excluded.wants_table("d", table) is (of != "t")
    assert not included.wants_table("e", table)
    assert Filters(shadow_tables=SHADOW).wants_table("d", table)
    assert Filters(include_tables=("d.t",)).wants_table("d", table) is (table == "t")


@pytest.mark.parametrize(
    "pattern", ["", "{table}", "gho", "_{table}_{table}", "_{table}_*", "d.{table}_old", "_{name}_gho"]
)
def test_a_pattern_of_shadow_tables_has_the_place_of_a_name(pattern: str) -> None:
    with pytest.raises(UserError, match="is no pattern of a shadow table's name"):
        Filters(include_tables=("d.t",), shadow_tables=(pattern,))
