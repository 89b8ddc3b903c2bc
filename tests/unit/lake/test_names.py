"""Names of folders: no two tables have the same, and readers of Parquet leave none out."""

from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.folder import encoded, folder

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64)


@given(names, names)
def test_names_stay_apart(one: str, other: str) -> None:
    assert (encoded(one) == encoded(other)) == (one == other)


@given(names)
def test_every_system_takes_them(name: str) -> None:
    made = encoded(name)
    assert made.isascii() and not set(made) & set("./\\=%: ")
    assert not made.startswith("_") and len(made) <= 150


def test_plain_names_stay() -> None:
    assert folder("shop", "order_items-2") == "shop/order_items-2"
    assert folder("_shop", "a.b") == "~5f~shop/a~2e~b"
