"""The size of persisted data, as a server of Spark Connect explains it."""

import pytest

from cdc.spark.private_names import explained_bytes

PLAN = """== Optimized Logical Plan ==
InMemoryRelation [side#1, value#2], StorageLevel(disk, memory, deserialized, 1 replicas), {}
   +- LocalTableScan [side#1, value#2]

== Physical Plan ==
InMemoryTableScan [side#1, value#2]
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [("64.0 B", 64), ("1416.0 B", 1416), ("13.2 KiB", 13516), ("64.0 MiB", 64 << 20), ("2.5 GiB", 5 << 29)],
)
def test_a_size(text: str, size: int) -> None:
    assert explained_bytes(PLAN.format(f"Statistics(sizeInBytes={text}, rowCount=3)")) == size


@pytest.mark.parametrize("text", ["Statistics(sizeInBytes=8.0 EiB)", "Statistics(sizeInBytes=1.0E+38 YiB)", ""])
def test_data_of_unknown_size_are_not_little(text: str) -> None:
    assert explained_bytes(PLAN.format(text)) > 1 << 60
