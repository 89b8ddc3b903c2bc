"""A row's text is the literals of its values, whatever the other rows have in the same column."""

import base64
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.consumer.literals.row_text import row_texts
from cdc.consumer.literals.values import literal

NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("'\\\"`;\n\0"))
MICROS = st.sampled_from([0, 1, 1000, 789_000, 999_999])
CLOCK = {"hour": st.integers(0, 23), "minute": st.integers(0, 59), "second": st.integers(0, 59), "subsecond": MICROS}
DAY = {"year": st.integers(0, 9999), "month": st.integers(0, 12), "day": st.integers(0, 31)}
BASE64 = st.binary().map(lambda data: base64.b64encode(data).decode())
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
# Contents of each tag, as the leader can have them.
CONTENTS: dict[str, st.SearchStrategy[Any]] = {
    "SignedInteger": NUMBERS,
    "UnsignedInteger": NUMBERS,
    "Bit": NUMBERS,
    "Year": st.integers(0, 2155),
    "Float": DOUBLES,
    "Double": DOUBLES,
    "Decimal": st.from_regex(r"\A-?[0-9]{1,65}(\.[0-9]{1,30})?\Z"),
    "String": TEXTS,
    "Text": st.fixed_dictionaries({"charset": st.sampled_from(["sjis", "gb18030"]), "base64": BASE64}),
    "Enum": TEXTS | st.integers(0, 65_535),
    "Set": st.lists(TEXTS) | st.integers(0, (1 << 64) - 1),
    "Blob": BASE64,
    "Date": st.fixed_dictionaries(DAY),
    "Time": st.fixed_dictionaries(CLOCK | {"negative": st.booleans(), "hour": st.integers(0, 838)}),
    "DateTime": st.fixed_dictionaries(DAY | CLOCK),
    "Timestamp": st.fixed_dictionaries({"unix_time": st.integers(0, (1 << 31) - 1), "subsecond": MICROS}),
    "Geometry": BASE64,
    "Vector": BASE64,
    "Json": st.lists(TEXTS | NUMBERS | st.none()),
}
# What is not as a record has it, or is so only for another tag.
ODD = st.one_of(
    *CONTENTS.values(), st.none(), st.booleans(), DOUBLES,
    st.sampled_from(["1; DROP", "1\n2", "", "-", "1.", "٣", "\n"]),
    st.fixed_dictionaries(DAY | CLOCK | {"month": st.sampled_from([13, -1, 1.5, "1", True, None, 10**9])}),
    st.fixed_dictionaries(DAY | CLOCK | {"subsecond": st.sampled_from([-1, 10**6, 0.5, "1", None])}),
    st.fixed_dictionaries({"unix_time": st.sampled_from([-1, 1.5, 10**30, 10**17, "1", None]), "subsecond": MICROS}),
)  # fmt: skip


TAGS = st.sampled_from([*CONTENTS, "Hologram"])
VALUES = TAGS.flatmap(lambda tag: (CONTENTS.get(tag, NUMBERS) | ODD).map(lambda content: {tag: content}))
# Values of one tag, among them NULLs, one of another tag and what is no value at all.
COLUMNS = TAGS.flatmap(
    lambda tag: st.tuples(
        st.lists((CONTENTS.get(tag, NUMBERS) | ODD).map(lambda content: {tag: content}), min_size=1, max_size=6),
        st.lists(VALUES | st.sampled_from(["Null", "Null", "null", 5, [1], {}]), max_size=1),
    )
).flatmap(lambda drawn: st.permutations(drawn[0] + drawn[1]))


def literals_of(image: list[Any]) -> str:
    return ",".join([literal(value) for value in image])


@given(st.sampled_from(list(CONTENTS)).flatmap(lambda tag: st.lists(st.none() | CONTENTS[tag].map(lambda c: {tag: c}))))
def test_a_columns_texts_are_its_literals(column: list[Any]) -> None:
    images = [["Null" if value is None else value] for value in column]
    assert row_texts(images, [0]) == [literals_of(image) for image in images]


@settings(max_examples=500)
@given(COLUMNS)
def test_a_columns_texts_are_its_literals_or_refused_as_they_are(column: list[Any]) -> None:
    try:
        expected = [literal(value) for value in column]
    except ValueError as refused:
        with pytest.raises(ValueError, match=re.escape(str(refused))):
            row_texts([[value] for value in column], [0])
    else:
        assert row_texts([[value] for value in column], [0]) == expected


@given(
    st.lists(
        st.tuples(*[st.just("Null") | content.map(lambda c, tag=tag: {tag: c}) for tag, content in CONTENTS.items()]),
        max_size=3,
    ),
    st.permutations(range(len(CONTENTS))),
    st.integers(0, len(CONTENTS)),
)
def test_rows_of_all_types_have_the_columns_that_are_written(rows: list[Any], order: list[int], count: int) -> None:
    places = order[:count]
    assert row_texts(rows, places) == [literals_of([row[place] for place in places]) for row in rows]


def test_many_rows_keep_their_order() -> None:
    images = [
        [{"SignedInteger": number}, "Null" if number % 7 else {"Enum": number % 5 or "a"}] for number in range(2000)
    ]
    assert row_texts(images, [1, 0]) == [literals_of([b, a]) for a, b in images]


@pytest.mark.parametrize(
    "value",
    [
        {"SignedInteger": "1; DROP"},
        {"Decimal": "x"},
        {"Decimal": "1\n2"},
        {"Decimal": ""},
        {"Decimal": "1),(2"},
        {"Decimal": "٣"},
        {"String": 1},
        {"Timestamp": {"unix_time": 10**30, "subsecond": 0}},
        {"Timestamp": {"unix_time": 10**17, "subsecond": 0}},
        {"Hologram": 1},
        "null",
        {},
        5,
    ],
)
def test_what_is_no_value_is_refused_in_a_row_too(value: Any) -> None:
    for other in (value, "Null", {"SignedInteger": 1}, {"Decimal": "1"}, {"String": "a"}):
        for images in ([[value], [other]], [[other], [value]]):
            with pytest.raises(ValueError, match=r"."):
                row_texts(images, [0])


def test_the_server_decodes_large_blobs_and_only_base64() -> None:
    large = base64.b64encode(b"ab" * 500_000).decode()
    assert literal({"Blob": large}) == f"FROM_BASE64('{large}')"
    assert row_texts([[{"Blob": large}]], [0]) == [f"FROM_BASE64('{large}')"]
    for wrong in (large[1:], large[:-4] + "=A==", large[:-4] + "'--'", large[:-4] + "AA\nA"):
        with pytest.raises(ValueError, match="base64"):
            literal({"Blob": wrong})
