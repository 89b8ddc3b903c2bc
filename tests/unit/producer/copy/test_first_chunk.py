"""What only the first chunk of a copy says: types, and whether foreign keys change rows without a record."""

import json

import pytest

from cdc.model.position import Position
from cdc.producer.copy.chunk_reader import ReadChunk
from cdc.producer.copy.chunk_request import ChunkRequest, chunk_of
from cdc.producer.copy.definition import CopiedColumn, TableDefinition
from cdc.producer.copy.reader import Answer, Wanted
from cdc.producer.sink.record_parts import chunk_body
from tests.harness.copying import NOTHING

KEY = ('{"SignedInteger":1}',)
ROWS = ReadChunk(['{"cols":[{"SignedInteger":2}]}'], None, 30)
TABLE = TableDefinition(
    "d", "t", (CopiedColumn("id", "int", False),), ("id",), "PRIMARY", '"columns":["id"],"key":["id"]', "",
    types_json=',"types":["int"]',
)  # fmt: skip


@pytest.mark.parametrize("follows", [frozenset[tuple[str, str]](), frozenset({("d", "parent")})])
@pytest.mark.parametrize(("after", "piece"), [(None, None), (KEY, None), (None, 0), (None, 1)])
def test_the_first_chunk(follows: frozenset[tuple[str, str]], after: tuple[str, ...] | None, piece: int | None) -> None:
    asked = ChunkRequest(Wanted(("d", "t"), after, NOTHING))
    answer = Answer(Position("b.1", 4), 0, follows=follows, definition=TABLE, chunk=ROWS)
    record = json.loads("{" + "".join(chunk_body(chunk_of(asked, answer, piece=piece))) + "}")
    is_first = after is None and piece != 1
    assert ("types" in record) == is_first
    assert record.get("cascades", False) == (is_first and bool(follows))
