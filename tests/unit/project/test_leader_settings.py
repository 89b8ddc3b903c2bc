"""The matrix of leader settings that tests run over has every two values of different settings together."""

from dataclasses import astuple, fields
from itertools import combinations

from tests.harness.leader_settings import MATRIX, LeaderSettings


def test_every_two_values_meet() -> None:
    for first, second in combinations(range(len(fields(LeaderSettings))), 2):
        met = {(astuple(each)[first], astuple(each)[second]) for each in MATRIX}
        assert len(met) == 4, (first, second)
