"""Which tables are read again after statements."""

from dataclasses import replace

import pytest

from cdc.consumer.follower.schema_cache import changed_tables
from tests.unit.consumer.source.test_batches import CREATE


@pytest.mark.parametrize(
    ("query", "affects", "changed"),
    [
        ("ALTER TABLE t ADD i INT", [("d/t", None)], {"t"}),
        ("ALTER TABLE T RENAME u", [("d/T", "e/u")], {"t", "u"}),
        ("CREATE TABLE t (i INT, FOREIGN KEY (i) references u (i))", [("d/t", None)], None),
        ("ALTER TABLE é ADD i INT", [("d/%C3%A9", None)], None),
        ("ALTER DATABASE d CHARACTER SET latin1", [("d", None)], None),
        ("DROP TABLE a, b", [("d/a", None), ("d/b", None)], {"a", "b"}),
    ],
)
def test_what_a_statement_may_change(
    query: str, affects: list[tuple[str, str | None]], changed: set[str] | None
) -> None:
    ends = [{"uri": f"flv://r/{uri}"} | ({"to": f"flv://r/{to}"} if to else {}) for uri, to in affects]
    record = replace(CREATE, query=query, affects=[{"action": "AlterTable", **end} for end in ends])
    assert changed_tables([record]) == changed
    other = replace(CREATE, query="DROP TABLE z", affects=[{"action": "DropTable", "uri": "flv://r/d/z"}])
    assert changed_tables([record, other]) == (None if changed is None else changed | {"z"})
