"""What the consumer says about a statement of which only a part passes its filters."""

import json
from dataclasses import replace

import pytest

from cdc.config.filters import Filters
from cdc.consumer.scope import way_across
from cdc.model.position import Position
from cdc.model.record import Record, Uri

PT = (("t", "_t_old"), ("_t_new", "t"))
GH = (("t", "_t_del"), ("_t_gho", "t"))


def renaming(*pairs: tuple[str, str]) -> Record:
    affects = tuple({"action": "RenameTable", "uri": f"flv://r/d/{one}", "to": f"flv://r/d/{to}"} for one, to in pairs)
    return Record(Uri("r", "d"), 7, Position("b.1", 4), "id", 0, True, 0, "Query", "RENAME …", affects=affects)


@pytest.mark.parametrize(
    ("filters", "pairs", "patterns", "by_hand"),
    [
        (Filters(include_tables=("d.t",)), PT, ["_{table}_new", "_{table}_old"], True),
        (Filters(include_tables=("d.t",)), GH, ["_{table}_del", "_{table}_gho"], True),
        (Filters(include_tables=("d.t", "d._t_new")), PT, ["_{table}_new", "_{table}_old"], False),
        (Filters(exclude_tables=("d.t", "d._t_new")), PT, ["_{table}_new", "_{table}_old"], False),
        (Filters(exclude_tables=("d.t",)), GH, ["_{table}_del", "_{table}_gho"], False),
    ],
)
def test_a_swap_of_tables_names_the_setting(
    filters: Filters, pairs: tuple[tuple[str, str], ...], patterns: list[str], by_hand: bool
) -> None:
    hint = way_across(renaming(*pairs), lambda uri: filters.wants(uri.database, uri.table))
    assert f"set filters.shadow_tables = {json.dumps(patterns)} in the consumer's profile" in hint
    assert ("do its ALTER on the follower by hand, continue with --skip 7, and then set" in hint) == by_hand
    assert ("and start again" in hint) != by_hand
    kept = replace(filters, shadow_tables=tuple(patterns))
    assert len({kept.wants_table("d", name) for pair in pairs for name in pair}) == 1


@pytest.mark.parametrize("pairs", [(("t", "_t_old"),), (("t", "a"), ("b", "t"))])
def test_any_other_statement_names_no_setting(pairs: tuple[tuple[str, str], ...]) -> None:
    assert way_across(renaming(*pairs), lambda uri: uri.table == "t") == "let all of its tables in, or none"
    drop = replace(renaming(), affects=({"action": "DropTable", "uri": "flv://r/d/t"},))
    assert way_across(drop, lambda _: True) == "let all of its tables in, or none"
