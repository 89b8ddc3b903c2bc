"""Which columns are masked, by the globs of the profile."""

import pytest

from cdc.config.filters import Filters, Mask, Masks
from cdc.errors import UserError

KEY = "a key of sixteen"


def test_the_first_glob_that_matches_counts() -> None:
    masks = Masks.of({"shop.users.email": "hash", "shop.*.e*": "null", "`my.db`.`a``b`.c": "null"}, KEY)
    assert masks.mask("shop", "users", "EMail") == Mask("hash", KEY.encode())
    assert masks.mask("shop", "users", "extra") == Mask("null")
    assert masks.mask("shop", "Users", "email") == Mask("null")
    assert masks.mask("my.db", "a`b", "C") == Mask("null")
    assert masks.mask("shop", "users", "name") is None
    assert masks.of_table("shop", "users") == (("email", "hash"), ("e*", "null"))


def test_globs_that_match_no_column_are_found() -> None:
    masks = Masks.of({"shop.users.email": "null", "shop.users.emial": "null", "s*.o*.e*": "null"}, "")
    assert masks.unused([("shop", "users", "EMail"), ("shop", "orders", "id")]) == ["shop.users.emial", "s*.o*.e*"]
    assert masks.unused([("shop", "users", "email"), ("shop", "users", "emial"), ("shop", "orders", "e")]) == []


def test_shadow_tables_have_the_masks_of_their_table() -> None:
    filters = Filters(mask_columns={"shop.users.email": "null"}, shadow_tables=("_{table}_gho",))
    assert filters.mask("shop", "_users_gho", "email") == Mask("null")
    assert filters.masks_of("shop", "_users_gho") == filters.masks_of("shop", "users") != frozenset()
    assert filters.mask("shop", "_orders_gho", "email") is None


def test_names_in_lower_case() -> None:
    filters = Filters(mask_columns={"Shop.Users.Email": "null"}, mask_key=KEY).folded()
    assert filters.mask("shop", "users", "EMAIL") == Mask("null")
    assert filters.mask_key == KEY


@pytest.mark.parametrize(
    ("columns", "key"),
    [({"shop.users": "null"}, ""), ({"a.b.c.d": "null"}, ""), ({"a.b.c": "none"}, ""), ({"a.b.c": "hash"}, KEY[1:])],
)
def test_what_is_wrong_is_refused_without_the_key(columns: dict[str, str], key: str) -> None:
    with pytest.raises(UserError) as error:
        Filters(mask_columns=columns, mask_key=key)
    assert error.value.code == "CDC-PROFILE-MASK"
    assert not key or key not in str(error.value)


def test_the_key_is_not_shown() -> None:
    filters = Filters(mask_columns={"a.b.c": "hash"}, mask_key=KEY)
    assert KEY not in f"{filters!r} {filters.mask('a', 'b', 'c')!r} {filters.listed()}"


def test_hashes_have_the_form_of_their_column() -> None:
    mask = Mask("hash", KEY.encode())
    text = mask.hashed(b'{"String":"x"}', "varchar", 255)
    assert len(text) == len('{"String":""}') + 64
    assert mask.hashed(b'{"String":"x"}', "char", 5) == text[:16] + '"}'
    assert mask.hashed(b'{"String":"y"}', "varchar", 255) != text
    assert Mask("hash", b"another key").hashed(b'{"String":"x"}', "varchar", 255) != text
    assert mask.hashed(b"x", "binary", 40).endswith('AAAAAAA=="}')
    assert len(mask.hashed(b"x", "blob", None)) == len('{"Blob":""}') + 44
