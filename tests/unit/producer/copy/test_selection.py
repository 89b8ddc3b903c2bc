"""The order in which tables are copied, by the foreign keys between them."""

import random

from cdc.producer.copy.selection import parents_first

A, B, C, D = (("db", name) for name in "abcd")


def test_tables_come_after_those_that_they_refer_to() -> None:
    assert parents_first([A, B, C, D], []) == [A, B, C, D]
    assert parents_first([A, B, C, D], [(A, C), (C, B), (A, A)]) == [B, C, A, D]
    assert parents_first([A, B], [(A, C), (D, A)]) == [A, B]


def test_tables_that_refer_to_one_another_come_once_each() -> None:
    assert sorted(parents_first([A, B, C, D], [(A, B), (B, A), (C, D), (D, C), (A, C)])) == [A, B, C, D]


def test_any_references_without_a_circle() -> None:
    chance = random.Random(1)
    for _ in range(200):
        ranked = [("db", str(number)) for number in range(12)]
        chance.shuffle(ranked)
        references = [sorted(chance.sample(range(12), 2), reverse=True) for _ in range(chance.randrange(30))]
        named = [(ranked[below], ranked[above]) for below, above in references]
        found = parents_first(sorted(ranked), named)
        assert sorted(found) == sorted(ranked)
        assert all(found.index(below) > found.index(above) for below, above in named)
