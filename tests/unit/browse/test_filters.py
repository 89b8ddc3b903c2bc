"""What filters take for a time, a kind, a table and a key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.browse.entries import Filter, key_candidates, key_of, parsed_kinds, parsed_time
from cdc.errors import UserError

DAY = 1_764_201_600  # 2025-11-27
TIMES = {
    "2025-11-27": (DAY, 86_400),
    "2025-11-27T10:15": (DAY + 36_900, 60),
    "2025-11-27 10:15:30": (DAY + 36_930, 1),
    "2025-11-27T10:15:30Z": (DAY + 36_930, 1),
    "2025-11-27T10:15:30+01:00": (DAY + 33_330, 1),
    "2025-11-27T10:15 -0230": (DAY + 45_900, 60),
    f"{DAY}": (DAY, 1),
}


@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_the_begin_or_the_end_of_what_it_names(text: str) -> None:
    begin, width = TIMES[text]
    assert parsed_time(text) == begin * 1_000_000
    assert parsed_time(text, end=True) == (begin + width) * 1_000_000 - 1


def test_a_fraction_is_as_exact_as_its_digits() -> None:
    assert (parsed_time("1764201600.25"), parsed_time("2025-11-27T00:00:00.25", end=True)) == (
        DAY * 1_000_000 + 250_000,
        DAY * 1_000_000 + 259_999,
    )


@pytest.mark.parametrize("text", ["", "yesterday", "2025-13-01", "2025-11-27T25:00", "27.11.2025", "٢٠٢٥-11-27", "7"])
def test_another_text_is_no_time(text: str) -> None:
    with pytest.raises(UserError, match="is no time"):
        parsed_time(text)


def test_kinds_have_the_names_of_the_record_format_in_any_case() -> None:
    assert parsed_kinds(["add", "QUERY"]) == {"Add", "Query"}
    with pytest.raises(UserError, match="'insert' is no kind of record"):
        parsed_kinds(["insert"])


def test_a_glob_that_does_not_show_its_names_is_refused() -> None:
    with pytest.raises(UserError, match="does not name a database and a table"):
        Filter(tables=("`a.b",))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.one_of(
    st.integers().map(lambda number: {"SignedInteger": number}),
    texts.map(lambda text: {"String": text}),
    st.binary(max_size=4).map(lambda data: {"Blob": __import__("base64").b64encode(data).decode()}),
)


@given(st.lists(values, min_size=1, max_size=3))
def test_a_key_is_found_by_its_own_text(key: list[dict[str, object]]) -> None:
    text = key_of(key)
    assert text.strip() in key_candidates(text)


@given(texts)
def test_a_text_is_found_without_its_quotes(text: str) -> None:
    assert key_of([{"String": text.strip()}]) in key_candidates(text)


@given(st.lists(values, min_size=1, max_size=3), st.lists(st.sampled_from(["id", "a_b"]), min_size=3, max_size=3))
def test_a_key_is_found_as_other_programs_print_it(key: list[dict[str, object]], names: list[str]) -> None:
    printed = " ".join(f"{name}={key_of([value])}" for name, value in zip(names, key, strict=False))
    assert key_of(key) in key_candidates(printed)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("7,north", "7, 'north'"),
        ("7, 'north'", "7, 'north'"),
        ("region=north id=7", "'north', 7"),
        ("new york", "'new york'"),
        ("2025-11-27 10:00:00", "2025-11-27 10:00:00"),
        ("id=x'00ff'", "x'00ff'"),
    ],
)
def test_what_users_write_for_a_key(text: str, key: str) -> None:
    assert key in key_candidates(text)


@given(st.lists(values, min_size=1, max_size=3), st.lists(values, min_size=1, max_size=3))
def test_different_keys_have_different_texts(one: list[dict[str, object]], other: list[dict[str, object]]) -> None:
    assert (key_of(one) == key_of(other)) == (one == other)
