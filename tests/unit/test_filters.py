"""Filters of two runs: whether those of now are narrower can be told by their lists, or must be asked of the leader."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cdc.filters import Filters

GLOBS = st.lists(st.sampled_from(["a", "b", "a*", "*"]), max_size=2).map(tuple)
TABLES = st.lists(st.sampled_from(["a.x", "a.*", "*.x", "b.y"]), max_size=2).map(tuple)


def filters(kind: str, lists: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from([f"include_{kind}", f"exclude_{kind}"]).flatmap(lambda key: lists.map(lambda it: {key: it}))


FILTERS = st.tuples(filters("dbs", GLOBS), filters("tables", TABLES)).map(lambda pair: Filters(**pair[0] | pair[1]))
NAMES = [(database, table) for database in ("a", "b", "ab", "c") for table in ("x", "y")]


@given(FILTERS, FILTERS)
def test_nothing_new_passes_what_is_narrower(before: Filters, now: Filters) -> None:
    assert now.narrows(now)
    if now.narrows(before):
        assert not [name for name in NAMES if now.wants_table(*name) and not before.wants_table(*name)]
        assert not [name for name, _ in NAMES if now.wants_database(name) and not before.wants_database(name)]


def test_the_order_of_globs_is_no_change() -> None:
    assert Filters(include_dbs=("b", "a", "b")).listed() == Filters(include_dbs=("a", "b")).listed()
    assert Filters().listed() == {}
