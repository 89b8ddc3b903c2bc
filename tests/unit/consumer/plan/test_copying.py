"""Records of a table that is being copied leave each row as the leader's, whatever the follower has of these rows."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.plan.chunk_plan import plan_overwriting
from cdc.consumer.plan.planner import Step
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.model.record import Record, Row
from tests.unit.consumer.plan.test_net_effects import image
from tests.unit.consumer.plan.test_planner import record

Rows = dict[int, int]
SCHEMA = TableSchema(frozenset("ab"), unique_keys={"PRIMARY": (KeyPart("a"),)})
KEYS = st.integers(0, 4)
TABLES = st.dictionaries(KEYS, st.integers(0, 9))


def history(rows: Rows, wishes: list[tuple[int, int, int]]) -> list[Record]:
    """A record for each of these changes that ``rows`` allow, in which they are made."""
    records: list[Record] = []
    for key, to, value in wishes:
        before = image(key, rows.pop(key)) if key in rows else None
        after = image(to, value) if to not in rows else None
        if after is not None:
            rows[to] = value
        if before or after:
            made = replace(record(len(records), "Update", width=2), rows=(Row(before, after),))
            records.append(made)
    return records


def executed(steps: list[Step], rows: Rows) -> None:
    for step in steps:
        for _, (before, after) in step.changes:
            if step.operation == "Clear":
                assert before is not None
                rows.pop(before[0]["SignedInteger"], None)
            else:
                assert after is not None
                key = after[0]["SignedInteger"]
                assert key not in rows, "a duplicate key"
                rows[key] = after[1]["SignedInteger"]


@given(TABLES, st.lists(st.tuples(KEYS, KEYS, st.integers(0, 9)), max_size=9), TABLES, st.integers(1, 9))
def test_any_rows_that_are_named_become_the_leaders(
    before: Rows, wishes: list[tuple[int, int, int]], damaged: Rows, size: int
) -> None:
    leader = dict(before)
    records = history(leader, wishes)
    named = {each[0]["SignedInteger"] for made in records for row in made.rows for each in row if each is not None}
    # Rows that no record names are as they were; the others are anything.
    follower = {key: value for key, value in before.items() if key not in named}
    follower |= {key: value for key, value in damaged.items() if key in named}
    for start in range(0, len(records), size):
        executed(plan_overwriting(records[start : start + size], schema=lambda _: SCHEMA), follower)
    assert follower == leader


def test_rows_with_computed_columns_are_written_under_the_leaders_modes() -> None:
    computing = replace(SCHEMA, functional=True)
    records = [
        replace(record(n, "Add", width=2), rows=(Row(None, image(n, n)),), sql_mode=mode)
        for n, mode in enumerate((None, "ANSI_QUOTES", None))
    ]
    steps = plan_overwriting(records, schema=lambda _: computing)
    assert [(step.operation, len(step.changes)) for step in steps] == [("Clear", 3), ("Add", 2), ("Add", 1)]
