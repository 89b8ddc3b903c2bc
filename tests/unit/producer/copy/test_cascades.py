"""The tables whose changes may change another table without being logged."""

from cdc.producer.copy.definition import above

A, B, C, D = (("db", name) for name in "abcd")


def test_foreign_keys_of_foreign_keys_count() -> None:
    follows = {A: {B}, B: {C, A}, D: {D}}
    assert above(A, follows) == {A, B, C}
    assert above(C, follows) == frozenset()
    assert above(D, follows) == {D}
