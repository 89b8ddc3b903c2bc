"""Names as a server with lower_case_table_names = 1 stores them; tests/integration/producer/test_names.py asks one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.model.names import FOLDED, Uri, folded


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Orders", "orders"), ("t1", "t1"), ("ÄÖÜß", "äöüß"), ("ТАБЛИЦА", "таблица"), ("İ", "i"), ("Ⅷ", "ⅷ"),
        ("ẞ", "ẞ"), ("Ƞ", "Ƞ"), ("Ⴀ", "Ⴀ"), ("ſK", "ſk"),
    ],
)  # fmt: skip
def test_each_character_is_folded_by_itself(name: str, stored: str) -> None:
    assert folded(name) == stored


@given(st.text())
def test_a_folded_name_stays(name: str) -> None:
    assert folded(folded(name)) == folded(name)
    assert len(folded(name)) == len(name)


def test_a_uri_keeps_the_leaders_name() -> None:
    assert Uri("Srv", "Shop", "Ä").folded() == Uri("Srv", "shop", "ä")
    assert Uri("Srv", "Shop").folded() == Uri("Srv", "shop")


def test_what_no_longer_changes_is_in_no_range() -> None:
    assert not set(FOLDED) & set(FOLDED.values())
