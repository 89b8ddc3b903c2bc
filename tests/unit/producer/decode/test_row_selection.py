"""Rows that are left out: what is left of a history makes exactly the rows for which the condition is true."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.filters import Mask
from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.decode.changes import Commit, Rows, TableShape
from cdc.producer.decode.row_selection import selected_rows
from cdc.producer.large_rows import LargeText
from cdc.sql.row_condition import RowCondition
from tests.generators.binlog_events import Log, event
from tests.harness.decoding import Leader, added, plain, refusal

TYPES = [("id", "int"), ("region", "varchar(9) character set utf8mb4"), ("doc", "json")]
TABLE = TableShape("db", "t", "", {}, 3)
CONDITIONS = ["region = 'EU'", "id < 3", "region <> 'EU' AND id >= 1", "region IS NULL", "id IN (0, 2)"]
KINDS = {"Add": et.WRITE_ROWS, "Update": et.UPDATE_ROWS, "Delete": et.DELETE_ROWS}

# Documents with the very bytes by which the parts of a row could be told.
documents = st.sampled_from(
    [[], {"x": [1], "after_cols": [2]}, {"before_cols": [], "after_cols": []}, '],"after_cols":[']
)
images = st.tuples(st.integers(0, 4), st.one_of(st.none(), st.sampled_from(["EU", "eu", "US", '"],é'])), documents)
Image = tuple[int, str | None, Any]


def image_json(image: Image) -> str:
    number, region, document = image
    text = "Null" if region is None else {"String": region}
    return json.dumps([{"SignedInteger": number}, text, {"Json": document}], ensure_ascii=False, separators=(",", ":"))


def row(images: tuple[Image | None, Image | None], *, large: bool) -> tuple[str, bytes | LargeText]:
    before, after = images
    kind = "Add" if before is None else "Delete" if after is None else "Update"
    if kind != "Update":
        parts = [b'{"cols":[', image_json(before or after or pytest.fail()).encode()[1:-1], b"]}"]
    else:
        assert before and after
        parts = [b'{"before_cols":[', image_json(before)[1:-1].encode(), b'],"after_cols":[',
                 image_json(after)[1:-1].encode(), b"]}"]  # fmt: skip
    return kind, LargeText(parts) if large else b"".join(parts)


def applied(rows: Counter[str], changes: Iterable[Rows]) -> None:
    """Applies changes as a follower does, which refuses to remove a row that it lacks."""
    for change in changes:
        for text in change.rows:
            body = json.loads(bytes(text))
            gone = body.get("before_cols") or (body["cols"] if change.operation == "Delete" else None)
            new = body.get("after_cols") or (body["cols"] if change.operation == "Add" else None)
            assert sorted(body) == (["after_cols", "before_cols"] if change.operation == "Update" else ["cols"])
            if gone is not None:
                assert rows[json.dumps(gone)] > 0
                rows[json.dumps(gone)] -= 1
            rows.update([json.dumps(new)] if new is not None else [])


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[Image | None, Image | None]]]:
    """The images before and after of each row that events change, in a table that may have equal rows."""
    rows: list[Image] = []
    events = []
    for kind in draw(st.lists(st.sampled_from(["Add", "Update", "Delete"]), max_size=8)):
        changed: list[tuple[Image | None, Image | None]] = []
        for _ in range(draw(st.integers(1, 4))):
            old = draw(st.sampled_from(rows)) if rows and kind != "Add" else None
            new = draw(images) if kind != "Delete" else None
            if kind != "Add" and old is None:
                continue
            rows.remove(old) if old is not None else None
            rows += [new] if new is not None else []
            changed.append((old, new))
        events += [changed] if changed else []
    return events


@given(histories(), st.sampled_from(CONDITIONS), st.booleans())
def test_what_is_left_makes_the_rows_for_which_the_condition_is_true(
    events: list[list[tuple[Image | None, Image | None]]], condition: str, large: bool
) -> None:
    matches = RowCondition.parse(condition).compiled(TYPES)
    leader, follower = Counter[str](), Counter[str]()
    for changed in events:
        texts = [row(each, large=large) for each in changed]
        change = Rows(event(KINDS[texts[0][0]]), TABLE, texts[0][0], [text for _, text in texts], 2)  # type: ignore[arg-type]
        parts = selected_rows(change, matches)
        assert all(part.rows and part.flags == 2 and part.event is change.event for part in parts)
        applied(leader, [change])
        applied(follower, parts)
        assert +follower == +Counter({each: n for each, n in leader.items() if matches(json.loads(each))})


def condition_of(text: str) -> dict[str, Any]:
    return {"condition": lambda _, table: RowCondition.parse(text) if table == "t" else None}


def of_all_kinds() -> Log:
    """Transactions of tables with and without a condition, in each form in which they come."""
    log, inner = Log(), Log()
    log.transaction(1, 5)
    log.transaction(1, 2).simple()
    log.transaction(6).simple()
    log.transaction(7, table="u").simple()
    log.gtid()
    log.begin()
    log.table_map()
    log.rows(1, 9, 9, 8, 8, 1, 2, 3, kind=et.UPDATE_ROWS)
    log.xid()
    inner.transaction(4, 7)
    log.gtid()
    log.compressed(inner)
    return log


def test_rows_are_left_out_in_each_form_in_which_they_come() -> None:
    log = of_all_kinds()
    update = "t", "Update", ('{"before_cols":[{"SignedInteger":9}],"after_cols":[{"SignedInteger":8}]}',), 0
    deleted = "t", "Delete", ('{"cols":[{"SignedInteger":8}]}',), 0
    expected = [added(5), added(6), added(7, table="u"), added(9), update, deleted, added(7)]
    for chunks in ([log.events], [[each] for each in log.events]):
        found = plain(Leader(**condition_of("id >= 5")).decode(*chunks))
        assert [each for each in found if isinstance(each, tuple) and each[0] in ("t", "u")] == expected
        assert sum(isinstance(each, Commit) for each in found) == 6


@pytest.mark.parametrize(
    ("condition", "why"),
    [("b = 1", "there is no column b"), ("id = 'x'", "write it without quotes")],
)
def test_a_table_that_does_not_fit_stops_before_its_rows(condition: str, why: str) -> None:
    error = refusal(Leader(**condition_of(condition)).decode(Log().transaction(1).events)).error
    assert error.code == "CDC-ROWS-TABLE-UNFIT"
    assert why in error.what


def test_a_masked_column_leaves_no_rows_out() -> None:
    masked = {"mask": lambda *_: Mask("null")} | condition_of("id = 1")
    error = refusal(Leader(**masked).decode(Log().transaction(1).events)).error
    assert isinstance(error, PromiseError)
    assert "column id is masked" in error.what
