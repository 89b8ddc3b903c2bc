"""What the producer says about a statement of which only a part passes the filters."""

import json
from dataclasses import replace

import pytest

from cdc.config.filters import Filters
from cdc.errors import PromiseError
from cdc.producer.sink.filter_boundary import passing
from cdc.sql.statement import classify
from tests.unit.producer.sink.test_router import statement

FILTERS = {
    "included": Filters(include_tables=("d.t",)),
    "excluded": Filters(exclude_tables=("d.t",)),
}
# With the setting that lets the next one through; None where no tool swaps a table.
CROSSING = [
    ("RENAME TABLE d.t TO d._t_old, d._t_new TO d.t", '["_{table}_new", "_{table}_old"]'),
    ("rename /* gh-ost */ table d.t to d._t_del, d._t_gho to d.t", '["_{table}_del", "_{table}_gho"]'),
    ("RENAME TABLE d.t TO d.a, d.b TO d.t", None),
    ("RENAME TABLE d.t TO e.t_old, e.t_new TO d.t", None),
    ("RENAME TABLE d.t TO d._t_old", None),
    ("RENAME TABLE d.t TO d.t1, d.a TO d.t2", None),
    ("DROP TABLE d.t, d._t_old", None),
    ("ALTER TABLE d.t RENAME TO d._t_old", None),
]


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize(("text", "setting"), CROSSING)
def test_a_swap_of_tables_names_the_setting(text: str, setting: str | None, filters: str) -> None:
    _, effects = classify(text, database="d", ansi_quotes=False)
    with pytest.raises(PromiseError, match="only a part of a statement") as stop:
        passing(statement(*effects), FILTERS[filters])
    hint = str(stop.value.hint)
    if setting is None:
        assert "let all of these tables pass the filters, or none" in hint
    else:
        assert f"set filters.shadow_tables = {setting}" in hint
        kept = replace(FILTERS[filters], shadow_tables=tuple(json.loads(setting)))
        assert (passing(statement(*effects), kept) is not None) == (filters == "included")
        assert ("by hand, skip this statement" in hint) == (filters == "included")


def test_a_swap_whose_new_version_is_in_the_topic_needs_the_setting_alone() -> None:
    _, effects = classify(CROSSING[0][0], database="d", ansi_quotes=False)
    with pytest.raises(PromiseError, match="only a part of a statement") as stop:
        passing(statement(*effects), Filters(include_tables=("d.t", "d._t_new")))
    assert str(stop.value.hint).endswith(
        'set filters.shadow_tables = ["_{table}_new", "_{table}_old"], and start again'
    )


CONDITIONS = Filters(rows={"d.t": "a = 1", "d.same": "a = 1", "d.u": "a = 2"}, shadow_tables=("_{table}_gho",))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("RENAME TABLE d.t TO d.u", False),
        ("RENAME TABLE d.other TO d.t", False),
        ("ALTER TABLE d.t RENAME TO d.other", False),
        ("CREATE TABLE d.other LIKE d.t", False),
        ("CREATE TABLE d.u LIKE d.other", False),
        ("ALTER TABLE d.t EXCHANGE PARTITION p WITH TABLE d.other", False),
        ("ALTER TABLE d.other EXCHANGE PARTITION p WITH TABLE d.t", False),
        ("RENAME TABLE d.t TO d.same", True),
        ("CREATE TABLE d._t_gho LIKE d.t", True),
        ("RENAME TABLE d.t TO d._u_del, d._t_gho TO d.t", False),
        ("ALTER TABLE d.t EXCHANGE PARTITION p WITH TABLE d.same", True),
        ("CREATE TABLE d.u (a INT)", True),
        ("DROP TABLE d.t, d.u", True),
    ],
)
def test_rows_of_one_table_do_not_become_those_of_another_condition(text: str, *, passes: bool) -> None:
    _, effects = classify(text, database="d", ansi_quotes=False)
    if passes:
        assert passing(statement(*effects), CONDITIONS)
        return
    with pytest.raises(PromiseError, match="left out by different conditions") as stop:
        passing(statement(*effects), CONDITIONS)
    assert stop.value.code == "CDC-ROWS-RENAMED"


MASKS = Filters(mask_columns={"d.t.c": "null", "d.same.c": "null", "d.u.c": "gone"})


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("ALTER TABLE d.t EXCHANGE PARTITION p WITH TABLE d.other", False),
        ("ALTER TABLE d.other EXCHANGE PARTITION p WITH TABLE d.u", False),
        ("ALTER TABLE d.t EXCHANGE PARTITION p WITH TABLE d.same", True),
        ("RENAME TABLE d.u TO d.other", False),
        ("CREATE TABLE d.u LIKE d.t", False),
        ("RENAME TABLE d.t TO d.same", True),
    ],
)
def test_rows_of_one_table_do_not_become_those_of_another_mask(text: str, *, passes: bool) -> None:
    _, effects = classify(text, database="d", ansi_quotes=False)
    change = replace(statement(*effects), text=text)
    if passes:
        assert passing(change, MASKS)
        return
    with pytest.raises(PromiseError, match="masked in different ways") as stop:
        passing(change, MASKS)
    assert stop.value.code == "CDC-MASK-RENAMED"
