"""MySQL's binary JSON: any bytes give a document or a clear error, in time that grows with them and no faster."""

import json
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.producer.decode.json_binary import json_value

INT16, DOUBLE, STRING, OPAQUE, SMALL_ARRAY, LARGE_ARRAY = 5, 11, 12, 15, 2, 3


def array(*members: bytes) -> bytes:
    """A large array of whole values, each with its type in front."""
    head = 8 + 5 * len(members)
    entries, values = b"", b""
    for member in members:
        entries += struct.pack("<BI", member[0], head + len(values))
        values += member[1:]
    return bytes([LARGE_ARRAY]) + struct.pack("<II", len(members), head + len(values)) + entries + values


def string(text: bytes) -> bytes:
    return bytes([STRING, len(text)]) + text


def objects(count: int) -> bytes:
    """An array of small objects ``{"key": "some text", "n": 7}``."""
    entries = struct.pack("<HHHHBHBH", 18, 3, 21, 1, STRING, 22, INT16, 7)
    one = b"\0" + struct.pack("<HH", 2, 32) + entries + b"keyn" + string(b"some text")[1:]
    return array(*[one] * count)


def nested(depth: int) -> bytes:
    value = b""
    for level in range(depth):
        inner = struct.pack("<BH", SMALL_ARRAY, 7) if level else struct.pack("<BH", INT16, 1)
        value = struct.pack("<HH", 1, 7 + len(value)) + inner + value
    return bytes([SMALL_ARRAY]) + value


def test_a_document_of_objects() -> None:
    assert json.loads(json_value(objects(2))) == {"Json": [{"key": "some text", "n": 7}] * 2}


def seconds(document: bytes) -> float:
    best = 1e9
    for _ in range(5):
        start = time.process_time()
        json_value(document)
        best = min(best, time.process_time() - start)
    return best


def test_four_times_the_document_takes_about_four_times_the_time() -> None:
    # A quadratic decoder would take sixteen times as long.
    assert seconds(objects(8_000)) < 9 * seconds(objects(2_000))


def test_documents_as_deep_as_the_server_allows() -> None:
    text = json_value(nested(100))
    assert text == '{"Json":' + "[" * 100 + "1" + "]" * 100 + "}"
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        json_value(nested(101))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (bytes([DOUBLE]) + struct.pack("<d", float("nan")), "the number nan"),
        (array(string(b"abc"))[:-1], "end"),
        (bytes([OPAQUE, 16]) + b"\xff" * 9, "more than five bytes"),
        (bytes([OPAQUE, 77, 1, 0]), "unknown SQL type 77"),
        (bytes([OPAQUE, 10, 3, 1, 2, 3]), "a temporal value of 3 bytes"),
        (bytes([OPAQUE, 246, 3, 2, 9, 0]), "a DECIMAL of 2 digits, 9 after the point"),
        (bytes([OPAQUE, 246, 3, 9, 2, 0]), "a DECIMAL(9,2) of 1 bytes".replace("(", r"\(").replace(")", r"\)")),
        (bytes([4, 7]), "unknown type 4 with value 7"),
        (bytes([99, 7]), "unknown type 99"),
    ],
)
def test_broken_documents_are_told_as_such(document: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        json_value(document)


def test_members_that_share_their_bytes_end_soon() -> None:
    """Each level has a thousand members, all of them the next level: as text it would fill any memory."""
    level = b"\x05\x00"
    for _ in range(5):
        head = 4 + 3 * 1000
        level = struct.pack("<HH", 1000, head) + struct.pack("<BH", SMALL_ARRAY, head) * 1000 + level
    with pytest.raises(ValueError, match="overlaps"):
        json_value(bytes([SMALL_ARRAY]) + level)


@settings(max_examples=500)
@given(st.binary(max_size=60), st.integers(0, 15), st.data())
def test_any_bytes_give_a_document_or_an_error(tail: bytes, kind: int, data: st.DataObject) -> None:
    broken = bytearray(data.draw(st.sampled_from([bytes([kind]) + tail, objects(2), nested(5)])))
    for place in data.draw(st.lists(st.integers(0, len(broken) - 1), max_size=3)):
        broken[place] = data.draw(st.integers(0, 255))
    try:
        text = json_value(bytes(broken))
    except (ValueError, IndexError, struct.error):
        return
    json.loads(text)
