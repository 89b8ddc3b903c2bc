"""Filters that were changed: what passes only now is copied, or refused by name, and is never a silent gap."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.filters import FilterChange, Filters
from cdc.errors import UserError
from cdc.producer.binlog.leader import Objects
from cdc.producer.filter_changes import Asked, FilterEffect, change_of, newly_included

DATABASES, TABLES = ("a", "ab", "mysql"), ("t", "u", "_t_new")
OBJECTS = Objects([*DATABASES], [*product(DATABASES, TABLES)], all_seen=True)
ALL_BUT_T = {"exclude_tables": ["a.t"]}


@st.composite
def filters(draw: st.DrawFn) -> Filters:
    databases = draw(st.lists(st.sampled_from(["a", "ab", "a*", "b"]), max_size=2))
    tables = draw(st.lists(st.sampled_from(["a.t", "a.*", "ab.u", "*.u", "*._t_new"]), max_size=2))
    shadows = draw(st.lists(st.just("_{table}_new"), max_size=1))
    kinds = [draw(st.sampled_from(["include", "exclude"])) for _ in range(2)]
    return Filters(
        **{f"{kinds[0]}_dbs": tuple(databases), f"{kinds[1]}_tables": tuple(tables)}, shadow_tables=(*shadows,)
    )


@given(filters(), filters())
def test_what_passes_only_now_is_named_and_nothing_else(then: Filters, now: Filters) -> None:
    named = set(newly_included(FilterChange(then, now), OBJECTS))
    after = {f"{database}.{table}" for database, table in OBJECTS.tables if now.wants_table(database, table)}
    before = {f"{database}.{table}" for database, table in OBJECTS.tables if then.wants_table(database, table)}
    assert {name for name in named if "." in name} == after - before
    databases = {name for name in named if "." not in name}
    # One that is let in is named by its tables, or else itself.
    let_in = {name for name in DATABASES if now.wants_database(name) and not then.wants_database(name)}
    assert databases | {name.split(".")[0] for name in named} >= let_in >= databases
    assert not named or not now.narrows(then)
    assert not any(name.startswith("mysql") for name in named)


def changed(now: Filters, *, before: Any = ALL_BUT_T, objects: Objects = OBJECTS, **more: Any) -> FilterEffect:
    """What is said to a change; nothing can be asked that ``more`` does not have."""
    copyable = more.pop("copyable", lambda _: None)
    ask = Asked(lambda: objects, copyable)
    return change_of(before, now, ask=ask, accepted=more.pop("accepted", False), log=lambda *_, **__: None)


def test_what_is_let_in_is_copied_unless_the_user_has_done_so() -> None:
    assert changed(Filters()).widened == FilterChange(Filters(exclude_tables=("a.t",)), Filters())
    assert changed(Filters(), accepted=True) == FilterEffect(lets_in=True)
    assert changed(Filters(), objects=Objects([], [("a", "u")], all_seen=True)) == FilterEffect(lets_in=True)


@pytest.mark.parametrize("now", [Filters(exclude_tables=("a.t",)), Filters(exclude_tables=("a.*", "a.t"))])
def test_the_leader_is_not_asked_where_nothing_can_be_let_in(now: Filters) -> None:
    def said(*_: str, **__: object) -> None:
        return

    assert change_of(ALL_BUT_T, now, ask=Asked(pytest.fail, pytest.fail), accepted=False, log=said) == FilterEffect()
    assert change_of(None, now, ask=Asked(pytest.fail, pytest.fail), accepted=False, log=said) == FilterEffect()


def test_what_cannot_be_copied_or_seen_is_refused() -> None:
    def refuse(widened: FilterChange) -> None:
        assert widened.wants_table("a", "t")
        raise UserError("no GTIDs", hint="switch them on")

    with pytest.raises(
        UserError, match=r"the leader has a\.t, .* can't be copied: no GTIDs; .* switch them on; or put "
    ):
        changed(Filters(), copyable=refuse)
    with pytest.raises(UserError, match=r"can't see all tables.*--accept-filters"):
        changed(Filters(), objects=Objects([], [("a", "t")], all_seen=False))
