"""The tables whose changes may change another table without being logged."""

from cdc.producer.copy.definition import above

A, B, C, D, E = (("db", name) for name in "abcde")


def test_foreign_keys_of_foreign_keys_count() -> None:
    follows = {A: {B}, B: {C, A}, D: {D}}
    assert above(A, follows) == {A, B, C}
    assert above(C, follows) == frozenset()
    assert above(D, follows) == {D}


def test_each_branch_is_followed() -> None:
    assert above(A, {A: {B, C}, B: {D}, C: {E}}) == {B, C, D, E}
