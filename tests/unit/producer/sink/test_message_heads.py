"""The sequence of a record is read of its beginning, if the record is large."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.errors import PromiseError, UserError
from cdc.model.record import Uri
from cdc.producer.sink.message_heads import sequence_of
from cdc.producer.sink.record_parts import HEAD_BYTES, RECORD


def message(value: bytes) -> Any:
    place = {"topic": "t", "partition": 0, "offset": 7}
    read: dict[str, object] = {"value": value, "key": b"", "headers": []} | place
    return SimpleNamespace(**{name: lambda found=found: found for name, found in read.items()})


def record(rows: int, *, resource: str = "r", table: str = "t", rest: str = "") -> bytes:
    uri = json.dumps(str(Uri(resource, "d", table)))[1:-1]
    head = RECORD % (uri, 4711, "binlog.000001", 4, "u:1", 0, "true", 5)
    cols = ",".join(['{"cols":[{"SignedInteger":1}]}'] * rows)
    return f'{head}"columns":["i"],"key":["i"],"operation":{{"Add":{{"rows":[{cols}]}}}}{rest}}}'.encode()


@pytest.mark.parametrize("table", ["t", 'with "quotes" and \\', "ä/?#"])
@pytest.mark.parametrize("rows", [1, HEAD_BYTES // 10])
def test_the_sequence_of_a_record(rows: int, table: str) -> None:
    assert sequence_of(message(record(rows, table=table)), "r") == 4711


def test_the_rows_of_a_large_record_are_not_parsed() -> None:
    cut = record(HEAD_BYTES // 10)[:-1]
    assert sequence_of(message(cut), "r") == 4711
    with pytest.raises(PromiseError, match="not a record"):
        sequence_of(message(record(1)[:-1]), "r")


_LIES = '"\\ud800"', '"\x01"', '"flv:/r"', '"flv://r/d/t","sequence":9' + "9" * 30


@pytest.mark.parametrize(
    "value",
    [
        *(b"x" * 2 * HEAD_BYTES, b'{"uri":"flv://r/d/t","bn_file":' + b"1" * HEAD_BYTES),
        b'{"uri":"\xff","sequence":1,"rows":["' + b"1" * HEAD_BYTES,
        *(f'{{"uri":{uri},"sequence":1,"rows":["{"1" * HEAD_BYTES}"]}}'.encode() for uri in _LIES),
    ],
)
def test_a_large_message_that_is_no_record(value: bytes) -> None:
    with pytest.raises(PromiseError, match="not a record"):
        sequence_of(message(value), "r")


def test_a_large_record_of_another_leader() -> None:
    with pytest.raises(UserError, match="another leader"):
        sequence_of(message(record(HEAD_BYTES // 10, resource="other")), "r")
