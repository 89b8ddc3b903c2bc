"""Offsets are asked for in one module, which takes a negative one for a lost connection (librdkafka gives no error)."""

import re
from pathlib import Path

import cdc

_ASKS = re.compile(
    r"\.(list_offsets|get_watermark_offsets|offsets_for_times|listOffsets|endOffsets|beginningOffsets|offsetsForTimes)\("
    r"|[cC]onsumer\.(committed|position)\("
)


def test_who_asks_for_offsets() -> None:
    root = Path(cdc.__file__).parent
    files = {str(file.relative_to(root)): file.read_text() for file in root.rglob("*.py")}
    found = {(name, asked[0]) for name, text in files.items() for asked in _ASKS.finditer(text)}
    assert found == {("kafka/partitions.py", ".list_offsets(")}


def test_each_consumer_reports_an_offset_that_is_gone() -> None:
    """By default librdkafka goes on at the end of the partition then."""
    root = Path(cdc.__file__).parent
    files = {str(file.relative_to(root)): file.read_text() for file in root.rglob("*.py")}
    made = {name for name, text in files.items() if re.search(r"(?<!\w)Consumer\(", text)}
    assert made == {name for name, text in files.items() if '"auto.offset.reset": "e' in text}
    assert not [name for name, text in files.items() if '"auto.offset.reset": "latest"' in text]
