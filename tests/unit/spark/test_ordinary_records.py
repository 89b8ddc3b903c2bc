"""Which records are known to have nothing but rows by their beginning alone."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cdc.spark.frames.messages import ORDINARY

# Names that look like what comes after them in a record.
_PIECES = ["]", "[", '"', "\\", ",", "{", "}", ":", "a", "operation", "Add", "rows", "key", "flags", "types", "é"]
_NAMES = st.lists(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=8).map("".join), min_size=1, max_size=3)
_ROWS = {"Add": {"rows": [{"cols": ["Null"]}]}}


def text(columns: list[str], operation: dict[str, Any], key: list[str] | None = None, **more: Any) -> str:
    """A record as cdc-producer writes it: ``more`` are the fields between the columns and the operation."""
    record = {
        "uri": "flv://srv1/shop/orders",
        "sequence": 7,
        "bn_file": {"fileName": "binlog.000001", "offset": 4},
        "transaction": {"id": "926d0f2e:4", "index": 0, "last": True, "ts_us": 1795714028746831},
        "columns": columns,
        **({} if key is None else {"key": key}),
        **more,
        "operation": operation,
    }
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def test_rows_alone_are_ordinary() -> None:
    for operation in ({"Add": {"rows": []}}, {"Update": {"rows": []}}, {"Delete": {"rows": []}}):
        assert re.search(ORDINARY, text(["id", "a b"], operation, ["id"], flags=16))
        assert re.search(ORDINARY, text(["id"], operation))


@given(_NAMES, _NAMES)
def test_whatever_describes_a_table_is_not(columns: list[str], others: list[str]) -> None:
    copies = (
        {"Copy": {"after": None, "upto": None, "rows": []}},
        {"Query": "ALTER TABLE t"},
        {"Skipped": {"event": "x"}},
    )
    for operation in copies:
        assert not re.search(ORDINARY, text(columns, operation, others, flags=16))
    assert not re.search(ORDINARY, text(columns, _ROWS, others, types=["int"] * len(columns), flags=16))
    assert not re.search(ORDINARY, text(columns, _ROWS, others, flags=16, types=["int"] * len(columns)))
