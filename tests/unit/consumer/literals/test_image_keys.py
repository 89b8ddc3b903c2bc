"""What finds rows without a key: hashes that differ where images do, and conditions on some of the columns."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.literals.before_images import INCOMPARABLE
from cdc.consumer.literals.image_keys import document_literals, float_text, image_keys, narrowing


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_text_is_that_of_one_number(number: float) -> None:
    text = float_text(number)
    assert float(text) == number
    assert math.copysign(1, float(text)) == math.copysign(1, number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-12.5, "-12.5"), (0.00001, "0.00001"),
        (1e-15, "0.000000000000001"), (1626983080611305.8, "1626983080611305.8"), (1e-16, "1e-16"),
        (1e14, "100000000000000.0"), (1e15, "1e15"), (123456789012345.6, "123456789012345.6"),
        (1234567890123456.0, "1.234567890123456e15"), (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e308"),
    ],
)  # fmt: skip
def test_a_number_is_shown_as_the_server_shows_it(number: float, text: str) -> None:
    assert float_text(number) == text


DOCUMENT = {"Json": {"a": 1}}
DIFFERENT: list[list[Any]] = [
    ["Null", {"String": "Null"}, {"String": "NULL"}, {"String": ""}, {"String": "a"}, {"String": "A"}],
    ["Null", {"SignedInteger": 0}, {"SignedInteger": -1}],
    ["Null", {"Double": 0.0}, {"Double": -0.0}, {"Double": 1.0}],
    ["Null", {"Enum": ""}, {"Enum": 0}, {"Enum": "a"}],
    ["Null", {"Enum": 0}, {"Enum": 1}],
    ["Null", {"Decimal": "0.0"}, {"Decimal": "1.0"}],
    ["Null", DOCUMENT, {"JsonTyped": {"Decimal": "5"}}],
]


@pytest.mark.parametrize("values", DIFFERENT)
def test_different_images_have_different_keys(values: list[Any]) -> None:
    documents = {text: str(n) for n, text in enumerate(document_literals([values]))}
    for place in (0, 1):
        images = [[value, {"SignedInteger": 7}][:: 1 - 2 * place] for value in values]
        keys = image_keys("ab", images, documents)
        assert len({keys.value(image) for image in images}) == len(values)


@pytest.mark.parametrize(
    "images",
    [
        [[{"String": "a"}], [{"Text": {"charset": "sjis", "base64": "YQ=="}}]],
        [[{"Enum": "a"}], [{"Enum": 5}]],
        [["Null"], [{"SignedInteger": "x"}]],
        [[DOCUMENT]],
        [["Null", "Null"]],
        [[{}]],
    ],
)
def test_an_image_has_a_key_where_the_server_could_have_found_it(images: list[Any]) -> None:
    with pytest.raises(INCOMPARABLE):
        keys = image_keys("a", images, {})
        [keys.value(image) for image in images]


def images(*columns: list[Any]) -> list[Any]:
    return [list(image) for image in zip(*columns, strict=True)]


def number(*values: int) -> list[Any]:
    return [{"SignedInteger": value} for value in values]


TEXTS = [{"String": text} for text in ("x", "y", "z", "Null")]


@pytest.mark.parametrize(
    ("columns", "indexed", "found"),
    [
        ([number(1, 2, 3, 3), TEXTS], "", {"a": "`a` IN (1,2,3)"}),
        ([number(3, 3, 3, 3), TEXTS], "", {"b": "`b` IN ('x','y','z','Null')"}),
        ([number(3, 3, 3, 3), TEXTS], "a", {"a": "`a` IN (3)", "b": "`b` IN ('x','y','z','Null')"}),
        ([["Null", *TEXTS]], "", {"a": "(`a` IN ('x','y','z','Null') OR `a` IS NULL)"}),
        ([["Null"] * 2, [{"Double": 1.5}] * 2, [{"Enum": 0}] * 2], "abc", {}),
        ([[{"String": "x" * 62}]], "", {"a": f"`a` IN ('{'x' * 62}')"}),
        ([[{"String": "x" * 63}]], "", {}),
        ([[{"String": "é" * 32}]], "", {}),
        ([[{"String": "x"}, {"Text": {"charset": "sjis", "base64": "YQ=="}}]], "", {}),
    ],
)
def test_rows_are_narrowed_by_indexed_columns_and_by_the_one_that_tells_most(
    columns: list[list[Any]], indexed: str, found: dict[str, str]
) -> None:
    assert narrowing("abc"[: len(columns)], images(*columns), indexed=frozenset(indexed)) == found


def test_each_document_is_asked_for_once() -> None:
    found = document_literals(
        [[DOCUMENT, "Null"], [{"String": "x"}, DOCUMENT], [{"JsonTyped": {"array": [1]}}, "Null"]]
    )
    assert found == ["CAST('{\"a\": 1}' AS JSON)", "CAST(JSON_ARRAY(CAST('1' AS JSON)) AS JSON)"]
