"""Partial updates of JSON documents: a document with differences gives the text of the whole document after them."""

import copy
import json
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.producer.binlog import event_types as et
from cdc.producer.decode.json_binary import json_value
from cdc.producer.decode.json_differences import json_after
from cdc.producer.decode.row_codegen import row_decoder
from cdc.producer.decode.table_map import Column, Table

REPLACE, INSERT, REMOVE = 0, 1, 2
LARGE_OBJECT, LARGE_ARRAY, LITERAL, INT64, UINT64, DOUBLE, STRING, OPAQUE = 1, 3, 4, 9, 10, 11, 12, 15
LITERALS = (None, True, False)


class Sql(bytes):
    """A member of an SQL type: the type and its bytes."""


class Unsigned(int):
    """An integer that is stored as unsigned."""


DECIMAL = Sql(b"\xf6\x04\x03\x02\x81\x0a")  # 1.10


def length(size: int) -> bytes:
    """Seven bits per byte, as binary JSON has lengths."""
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])


def binary(value: Any) -> bytes:
    """``value`` as binary JSON; the members of a container are written as large ones, literals apart."""
    if isinstance(value, Sql):
        return bytes([OPAQUE, value[0]]) + length(len(value) - 1) + value[1:]
    if isinstance(value, Unsigned):
        return bytes([UINT64]) + struct.pack("<Q", value)
    if value is None or isinstance(value, bool):
        return bytes([LITERAL, LITERALS.index(value)])
    if isinstance(value, int):
        return bytes([INT64]) + struct.pack("<q", value)
    if isinstance(value, float):
        return bytes([DOUBLE]) + struct.pack("<d", value)
    if isinstance(value, str):
        return bytes([STRING]) + length(len(value.encode())) + value.encode()
    if isinstance(value, list):
        return container([], value, LARGE_ARRAY)
    keys = sorted((key.encode() for key in value), key=lambda key: (len(key), key))
    return container(keys, [value[key.decode()] for key in keys], LARGE_OBJECT)


def container(keys: Sequence[bytes], values: Sequence[Any], kind: int) -> bytes:
    at = 8 + 6 * len(keys) + 5 * len(values)
    entries, data = b"", b""
    for key in keys:
        entries += struct.pack("<IH", at + len(data), len(key))
        data += key
    for value in values:
        written = binary(value)
        if written[0] == LITERAL:
            entries += struct.pack("<BI", LITERAL, written[1])
            continue
        entries += struct.pack("<BI", written[0], at + len(data))
        data += written[1:]
    return bytes([kind]) + struct.pack("<II", len(values), at + len(data)) + entries + data


def text(value: Any) -> str:
    return json_value(binary(value))


def packed(data: bytes) -> bytes:
    return (bytes([len(data)]) if len(data) < 251 else b"\xfc" + struct.pack("<H", len(data))) + data


def difference(operation: int, path: str, value: Any = None) -> bytes:
    return bytes([operation]) + packed(path.encode()) + (b"" if operation == REMOVE else packed(binary(value)))


def path_of(legs: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{leg}]" if isinstance(leg, int) else f".{json.dumps(leg)}" for leg in legs)


def after(before: Any, *differences: bytes) -> str:
    return json_after(text(before), b"".join(differences), "j")


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, (1 << 64) - 1).map(Unsigned),
    st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=9), st.just(DECIMAL),
)  # fmt: skip
keys = st.one_of(st.text(max_size=3), st.sampled_from(["array", "object", "last", "$"]))
documents = st.recursive(
    scalars,
    lambda members: st.lists(members, max_size=4) | st.dictionaries(keys, members, min_size=1, max_size=5),
    max_leaves=12,
)
containers = documents.filter(lambda document: isinstance(document, list | dict))


@given(st.data())
def test_any_differences_give_the_text_of_the_document_after_them(data: st.DataObject) -> None:
    before = data.draw(containers)
    now, logged = copy.deepcopy(before), []
    for _ in range(data.draw(st.integers(1, 4))):
        place, legs = now, []
        while (inner := [leg for leg, member in members(place) if isinstance(member, list | dict)]) and data.draw(
            st.booleans()
        ):
            legs.append(data.draw(st.sampled_from(inner)))
            place = place[legs[-1]]
        logged.append(changed(place, legs, data))
    assert after(before, *logged) == text(now)


def changed(place: Any, legs: list[str | int], data: st.DataObject) -> bytes:
    """Change the container ``place``, which has the path ``legs``; the difference that a server logs of it."""
    known = [leg for leg, _ in members(place)]
    operation = data.draw(st.sampled_from([REPLACE, INSERT, REMOVE] if known else [INSERT]))
    value = copy.deepcopy(data.draw(documents))
    if operation == INSERT:
        own = st.integers(0, len(place)) if isinstance(place, list) else keys.filter(lambda key: key not in known)
        leg = data.draw(own)
        written = difference(operation, path_of([*legs, leg]), value)
        place.insert(leg, value) if isinstance(place, list) else place.update({leg: value})
        return written
    leg = data.draw(st.sampled_from(known))
    written = difference(operation, path_of([*legs, leg]), value)
    if operation == REPLACE:
        place[leg] = value
    else:
        del place[leg]
    return written


def members(place: Any) -> list[tuple[Any, Any]]:
    return list(place.items()) if isinstance(place, dict) else list(enumerate(place))


@pytest.mark.parametrize(
    ("before", "differences", "now"),
    [
        ({"a": [1, 2, 3]}, [difference(INSERT, "$.a[last-5]", 0)], {"a": [0, 1, 2, 3]}),
        ({"a": [1, 2, 3]}, [difference(INSERT, "$.a[9]", 4)], {"a": [1, 2, 3, 4]}),
        ([], [difference(INSERT, "$[last]", 4)], [4]),
        ([1, 2, 3], [difference(REPLACE, "$[last]", 9)], [1, 2, 9]),
        ([1, 2, 3], [difference(REMOVE, "$[last-2]"), difference(REMOVE, "$[0]")], [3]),
        ({"$x_9": 1, "é": 2}, [difference(REMOVE, "$.$x_9"), difference(REPLACE, "$.é", 3)], {"é": 3}),
        # What the server takes for letters of a key and leaves bare.
        ({"\xa0\x85Ł": {"\u2141": 1}}, [difference(REMOVE, "$.\xa0\x85Ł.\u2141")], {"\xa0\x85Ł": {}}),
        ({'a"\\\n\x01.[*': 1}, [difference(REPLACE, '$."a\\"\\\\\\n\\u0001.[*"', 2)], {'a"\\\n\x01.[*': 2}),
        ({"": {"": 1}}, [difference(REPLACE, '$."".""', 2)], {"": {"": 2}}),
        ({"b": 1}, [difference(INSERT, "$.aa", 2), difference(INSERT, "$.é", 3)], {"b": 1, "aa": 2, "é": 3}),
        ({"a": 1}, [difference(REPLACE, "$.a", DECIMAL)], {"a": DECIMAL}),
        ({"a": DECIMAL, "b": [1]}, [difference(REPLACE, "$.a", Unsigned(1))], {"a": Unsigned(1), "b": [1]}),
        ({"a": DECIMAL, "b": [1]}, [difference(REMOVE, "$.a")], {"b": [1]}),
        ({"object": {"array": DECIMAL}}, [difference(REPLACE, "$.object.array", [1])], {"object": {"array": [1]}}),
        ({"a": -0.0, "b": 1e300}, [difference(INSERT, "$.c", 5e-324)], {"a": -0.0, "b": 1e300, "c": 5e-324}),
        ({"a": "x"}, [difference(REPLACE, "$.a", "é" * 200)], {"a": "é" * 200}),
    ],
)
def test_as_the_server_does(before: Any, differences: list[bytes], now: Any) -> None:
    assert after(before, *differences) == text(now)


def test_without_differences_the_document_is_as_before() -> None:
    before = text({"a": [1, DECIMAL]})
    assert json_after(before, b"", "j") == before


@pytest.mark.parametrize(
    ("before", "differences", "said"),
    [
        ({"a": 1}, difference(REPLACE, "$.b", 1), r"difference 1 \(replace\) cannot be applied"),
        ({"a": 1}, difference(REMOVE, "$.a") * 2, r"difference 2 \(remove\) cannot be applied"),
        ({"a": 1}, difference(INSERT, "$.a", 1), r"difference 1 \(insert\) cannot be applied"),
        ({"a": 1}, difference(INSERT, "$[0]", 1), r"\(insert\) cannot be applied"),
        ([1], difference(INSERT, "$.a", 1), r"\(insert\) cannot be applied"),
        ([1], difference(REPLACE, "$[1]", 1), r"\(replace\) cannot be applied"),
        ([1], difference(REMOVE, "$[last-1]"), r"\(remove\) cannot be applied"),
        # The server takes the scalar at $.a for an array of it, but logs the path without it.
        ({"a": 1}, difference(REPLACE, "$.a[0]", 1), r"\(replace\) cannot be applied"),
        ({"a": {"b": 1}}, difference(REMOVE, "$.c.b"), r"\(remove\) cannot be applied"),
        ({"a": 1}, difference(REPLACE, "$", 1), "no path that can be read"),
        ({"a": 1}, difference(REPLACE, "$.*", 1), "no path that can be read"),
        ({"a": 1}, difference(REPLACE, "$**.a", 1), "no path that can be read"),
        ({"a": 1}, difference(REPLACE, ".a", 1), "no path that can be read"),
        ({"a": 1}, difference(REPLACE, "$.a ", 1), "no path that can be read"),
        ({"a": 1}, difference(3, "$.a", 1), "unknown operation 3"),
        ({"a": 1}, difference(REPLACE, "$.a", "text")[:-1], "end within one of them"),
        ({"a": 1}, difference(REPLACE, "$.a", 1)[:1], "index out of range"),
        ({"a": 1}, bytes([REMOVE]) + packed(b"$.\xff"), "can't decode byte"),
    ],
)
def test_what_cannot_be_applied_is_told_with_the_column(before: Any, differences: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=f"^column j: .*{said}"):
        json_after(text(before), differences, "j")


TABLE = Table(
    "db", "t", (Column("j", 245, 4), Column("n", 3, 0), *(Column(f"k{number}", 245, 4) for number in range(8))), None
)


def sized(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def image(j: bytes | None, n: int, k: Sequence[bytes]) -> bytes:
    return bytes([j is None, 0]) + (j or b"") + struct.pack("<i", n) + b"".join(k)


def test_rows_with_documents_and_differences_side_by_side() -> None:
    decode = row_decoder(TABLE, et.PARTIAL_UPDATE_ROWS, allow_differences=lambda: None)
    old = [{"a": number} for number in range(9)]
    whole = [sized(binary(each)) for each in old]
    first = sized(difference(REPLACE, "$.a", 50))
    last = sized(difference(INSERT, "$.b", 60) + difference(REMOVE, "$.a"))
    rows = [
        image(whole[0], 1, whole[1:]) + b"\1\x01\x01" + image(first, 2, [*whole[1:8], last]),
        # The value options are 0 where a row has no differences; a column may be NULL before and after.
        image(None, 3, whole[1:]) + b"\0" + image(None, 4, whole[1:]),
        image(None, 5, whole[1:]) + b"\1\x00\x01" + image(whole[0], 6, [*whole[1:8], sized(b"")]),
        image(whole[0], 7, whole[1:]) + b"\1\x00\x01" + image(None, 8, [*whole[1:8], last]),
    ]
    found = [json.loads(row) for row in decode(b"head" + b"".join(rows), 4)]
    documents = [{"Json": each} for each in old]
    null = "Null"
    images = [
        ([documents[0], *documents[1:]], 1, [{"Json": {"a": 50}}, *documents[1:8], {"Json": {"b": 60}}], 2),
        ([null, *documents[1:]], 3, [null, *documents[1:]], 4),
        ([null, *documents[1:]], 5, documents, 6),
        (documents, 7, [null, *documents[1:8], {"Json": {"b": 60}}], 8),
    ]
    for row, (before, n, now, m) in zip(found, images, strict=True):
        assert row == {
            "before_cols": [before[0], {"SignedInteger": n}, *before[1:]],
            "after_cols": [now[0], {"SignedInteger": m}, *now[1:]],
        }


def test_a_row_whose_document_was_null_before_can_have_no_differences() -> None:
    decode = row_decoder(TABLE, et.PARTIAL_UPDATE_ROWS, allow_differences=lambda: None)
    whole = [sized(binary([number])) for number in range(9)]
    changed = sized(difference(REPLACE, "$[0]", 1))
    # The row before it has a document: it is not taken for this one's.
    rows = image(whole[0], 1, whole[1:]) + b"\0" + image(whole[0], 1, whole[1:])
    rows += image(None, 1, whole[1:]) + b"\1\x01\x00" + image(changed, 1, whole[1:])
    with pytest.raises(ValueError, match=r"^column j: differences to a document that is NULL"):
        decode(rows, 0)


def test_value_options_that_are_not_known_are_refused() -> None:
    decode = row_decoder(TABLE, et.PARTIAL_UPDATE_ROWS, allow_differences=lambda: None)
    whole = [sized(binary([number])) for number in range(9)]
    with pytest.raises(ValueError, match="unknown value options 2"):
        decode(image(whole[0], 1, whole[1:]) + b"\2\0\0" + image(whole[0], 1, whole[1:]), 0)


def test_a_table_without_documents() -> None:
    table = Table("db", "t", (Column("n", 3, 0),), None)
    decode = row_decoder(table, et.PARTIAL_UPDATE_ROWS, allow_differences=pytest.fail)
    one, two = (b"\0" + struct.pack("<i", number) for number in (1, 2))
    row = b'{"before_cols":[{"SignedInteger":1}],"after_cols":[{"SignedInteger":2}]}'
    assert decode(one + b"\0" + two + one + b"\1" + two, 0) == [row, row]
