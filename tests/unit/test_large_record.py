"""A record on disk is the one in memory: whatever its text is, and wherever it is cut."""

import json
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc import large_rows
from cdc.consumer.literals.values import literal
from cdc.errors import PromiseError, UserError
from cdc.large_rows import LargeRecord, LargeRecordWriter, StoredBlob
from cdc.model.record import Record

PIECES = st.sampled_from(
    [
        b'{"Blob":"',
        b'{"Blob":',
        b'"',
        b'"}',
        b"AAAA",
        b"QUJD",
        b"QQ==",
        b"QR==",
        b"QUI=",
        b"=",
        b"#0",
        b"\\",
        b"x",
        b"\xff",
    ]
)


@pytest.fixture(autouse=True, scope="module")
def few_characters_are_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_rows, "_LARGE", 8)
        patch.setattr(large_rows, "_BLOCK", 12)
        patch.setattr(large_rows, "_BLOCK", 12)
        yield


def on_disk(text: bytes, size: int) -> LargeRecord:
    writer = LargeRecordWriter()
    for at in range(0, len(text), size):
        writer.add(text[at : at + size])
    return writer.record()


@given(st.lists(PIECES, max_size=40).map(b"".join), st.integers(1, 30))
@example(b'{"Blob":"QUJDQUJDQQ==QUJDQUJDQUJDQUJD"}', 5)
def test_no_byte_of_any_text_is_lost(text: bytes, size: int) -> None:
    record = on_disk(text, size)
    assert record.whole() == text
    assert len(record) == len(text)


BLOBS = st.binary(max_size=40).map(lambda data: {"Blob": b64encode(data).decode()})
VALUES = st.one_of(
    BLOBS,
    st.just("Null"),
    st.integers(0, 9).map(lambda number: {"SignedInteger": number}),
    st.sampled_from([{"Blob": "#0"}, {"Blob": "not base64 at all"}, {"String": '{"Blob":"QUJDQUJDQUJD"}'}]),
    BLOBS.map(lambda document: {"Json": document}),
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A record of some rows; the key, if there is one, may be a BLOB."""
    width = draw(st.integers(1, 3))
    images = st.lists(VALUES, min_size=width, max_size=width)
    operation = draw(st.sampled_from(["Add", "Delete", "Update"]))
    row = images.map(lambda image: {"cols": image})
    if operation == "Update":
        row = st.tuples(images, images).map(lambda both: {"before_cols": both[0], "after_cols": both[1]})
    columns = [f"c{index}" for index in range(width)]
    body: dict[str, Any] = {
        "uri": "flv://r/d/t", "sequence": 1, "bn_file": {"fileName": "f", "offset": 4},
        "transaction": {"id": "x:1", "index": 0, "last": True, "ts_us": 1}, "columns": columns,
        **draw(st.sampled_from([{}, {"key": ["c0"]}, {"key": ["c0"], "copying": True}])),
        "operation": {operation: {"rows": draw(st.lists(row, min_size=1, max_size=3))}},
    }  # fmt: skip
    return json.dumps(body, separators=(",", ":")).encode()


def whole(value: Any) -> Any:
    """The value with base64 in place of what is on disk."""
    if not isinstance(value, dict) or not isinstance(value.get("Blob"), StoredBlob):
        return value
    blob = value["Blob"]
    assert literal(value) == literal({"Blob": blob.whole()})
    return {"Blob": blob.whole()}


@given(texts(), st.integers(1, 60))
def test_a_record_on_disk_has_the_same_rows(text: bytes, size: int) -> None:
    expected, found = Record.parse(text, where=""), Record.parse(on_disk(text, size), where="")
    for (before, after), (other_before, other_after) in zip(expected.rows, found.rows, strict=True):
        assert [whole(value) for value in other_before or []] == (before or [])
        assert [whole(value) for value in other_after or []] == (after or [])
    assert (found.operation, found.key, found.columns, found.copying) == (
        expected.operation, expected.key, expected.columns, expected.copying,
    )  # fmt: skip
    if found.key is None or found.copying:
        assert not found.has_stored


@pytest.mark.parametrize(
    "operation",
    [
        {
            "Query": "CREATE TABLE t (c INT COMMENT '…')",
            "Bytes": b64encode(b"CREATE TABLE t (c INT COMMENT '\xc5')").decode(),
        },
        {"Query": 'CREATE TABLE t (c INT COMMENT \'{"Blob":"QUJDQUJDQUJD"}\')'},
        {"Skipped": {"event": 2, "place": "f:4", "reason": "asked for"}},
    ],
)
def test_a_record_without_rows_on_disk_is_the_same(operation: dict[str, Any]) -> None:
    head = KEYED[: KEYED.index(b',"columns"')] + b',"operation":%b}'
    text = head % json.dumps(operation, separators=(",", ":")).encode()
    found = Record.parse(on_disk(text, 9), where="")
    assert found == Record.parse(text, where="")
    assert not found.has_stored


KEYED = b'{"uri":"flv://r/d/t","sequence":1,"bn_file":{"fileName":"f","offset":4},"transaction":{"id":"x:1",\
"index":0,"last":true,"ts_us":1},"columns":["a","b"],"key":["a"],"operation":{"Add":{"rows":[{"cols":[%b,%b]}]}}}'


def test_only_blobs_that_cannot_be_mistaken_and_are_in_no_key_stay_on_disk() -> None:
    one, large, mark = b'{"SignedInteger":1}', b'{"Blob":"QUJDQUJDQUJD"}', b'{"Blob":"#0"}'
    # A mark that came in a record would get the bytes of the BLOB that it is the number of.
    for values, is_stored in (((one, large), True), ((large, one), False), ((mark, large), False)):
        text = KEYED % values
        expected, found = Record.parse(text, where=""), Record.parse(on_disk(text, 9), where="")
        assert found.has_stored == is_stored
        assert [whole(value) for value in found.rows[0].after or []] == expected.rows[0].after
        blobs = [value["Blob"] for value in found.rows[0].after or [] if isinstance(value, dict) and "Blob" in value]
        assert any(isinstance(blob, StoredBlob) for blob in blobs) == is_stored


def test_blobs_are_equal_where_their_bytes_are() -> None:
    texts = [b'{"Blob":"%b"}' % b64encode(data) for data in (b"a" * 30, b"b" * 30, b"a" * 30, b"a" * 33)]
    first, other, same, longer = (on_disk(text, 7)._blobs[0][1] for text in texts)
    assert first == same
    assert len({first, other, same, longer}) == 3
    assert {"Blob": b64encode(b"a" * 30).decode()} == {"Blob": first} != {"Blob": b64encode(b"b" * 30).decode()}
    assert first != b64encode(b"a" * 33).decode()
    assert first.digest == sha256(b"a" * 30).hexdigest()


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(PromiseError, match="not a record"):
        Record.parse(on_disk(b'{"Blob":"QUJDQUJDQUJD', 9), where="")


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/nowhere")
    with pytest.raises(UserError, match=r"a large record can't be written to disk.*/dev/null/nowhere.*TMPDIR"):
        on_disk(b'{"Blob":"QUJDQUJDQUJD"}', 9)
