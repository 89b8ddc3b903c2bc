"""The watermark of any transactions, and of those of two audits, is what a loop in Python makes of them."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.spark.streams.watermark import Watermark, joined, unlogged_gap, unreached, watermark
from tests.generators.frames import frame_of
from tests.harness.seed import SEED

pytestmark = pytest.mark.spark

_FRAME = (
    "side STRING, kind STRING, state STRING, since BIGINT, upto BIGINT, final BIGINT, start STRUCT<sequence:BIGINT>"
)
_COLUMNS = [field.split()[0] for field in _FRAME.split(", ")]
Transactions = list[dict[str, Any]]


def log(pick: random.Random, transactions: int) -> Transactions:
    """Transactions of both sides; the follower's checkpoint goes on, now and then over a gap or to a former place."""
    made: Transactions = []
    place = pick.randint(-1, 5)
    for number in range(transactions):
        side = pick.choice(["leader", "follower", "follower"])
        kind = None if side == "leader" else pick.choice(["applied", "applied", "moved", "foreign", "bookkeeping"])
        since = upto = None
        if kind in ("applied", "moved"):
            since = pick.choice([place, place, place, place + 2, place - 3])
            upto = place = since + pick.randint(0, 3)
        elif kind == "foreign":
            since = upto = place
        elif kind == "bookkeeping":
            upto = pick.choice([None, place])
        state = pick.choice(["complete"] * 5 + ["open", "torn"])
        made.append({
            "side": side, "kind": kind, "state": state, "since": since, "upto": upto, "final": 2 * number + 1,
            "start": {"sequence": 2 * number},
        })  # fmt: skip
    pick.shuffle(made)
    return made


def by_a_loop(transactions: Transactions) -> Watermark:
    moves = sorted(_moves(transactions), key=lambda each: each["final"])
    open_ones = [
        each["start"]["sequence"] for each in transactions if (each["state"], each["side"]) == ("open", "follower")
    ]
    copies = [
        each
        for each in transactions
        if each["kind"] == "bookkeeping" and each["upto"] is not None and each["upto"] >= 0
    ]
    shown = sorted([*moves, *copies], key=lambda each: each["final"])
    highest = max((each["upto"] for each in shown), default=None)
    return Watermark(
        sequence=moves[-1]["upto"] if moves else highest,
        highest=highest,
        begins=shown[0]["upto" if shown[0] in copies else "since"] if shown else None,
        open_from=min(open_ones, default=None),
        foreign=sum(each["kind"] in ("foreign", "moved") for each in transactions),
        torn=sum(each["state"] == "torn" for each in transactions),
        settled=shown[0]["upto"] if shown else None,
    )


def gap_by_a_loop(transactions: Transactions, *, begins: int, reached: int | None) -> tuple[int, int] | None:
    moves = _moves(transactions)
    ends = {each["upto"] for each in moves} | {reached}
    lost = min((each["since"] for each in moves if each["since"] not in ends and each["since"] > begins), default=None)
    if lost is None:
        return None
    return max((each["upto"] for each in moves if each["upto"] < lost), default=begins), lost


def _moves(transactions: Transactions) -> Transactions:
    return [each for each in transactions if each["kind"] in ("applied", "moved")]


def _rows(transactions: Transactions) -> list[Sequence[object]]:
    return [[each[name] for name in _COLUMNS] for each in transactions]


@pytest.mark.parametrize("size", [0, 1, 3, 12, 40])
def test_any_transactions(spark: SparkSession, size: int) -> None:
    which = f"CDC_SEED={SEED}"
    made = log(random.Random(f"{SEED} {size}"), size)
    frame = frame_of(spark, _rows(made), _FRAME).persist()
    expected = by_a_loop(made)
    assert watermark(frame).result() == expected, which
    moves = _moves(made)
    ends = {each["upto"] for each in moves}
    lost = [each["since"] for each in moves if each["since"] not in ends]
    assert unreached(frame).result() == ((min(lost), max(lost)) if lost else None), which
    for begins in {-5, *(each["since"] for each in moves[:2])}:
        for reached in (None, *sorted(set(lost))[:1]):
            assert unlogged_gap(frame, begins=begins, reached=reached) == gap_by_a_loop(
                made, begins=begins, reached=reached
            ), f"{which}: {begins}, {reached}"
    frame.unpersist()


def test_of_two_audits() -> None:
    pick = random.Random(SEED)
    for _ in range(200):
        made = sorted(log(pick, pick.randint(0, 8)), key=lambda each: each["final"])
        cut = pick.randint(0, len(made))
        found = joined(by_a_loop(made[:cut]), by_a_loop(made[cut:]))
        whole = by_a_loop(made)
        # What the topic's end cut is read again by the later audit; an earlier one's open transaction is not.
        assert found.open_from == by_a_loop(made[cut:]).open_from
        assert (found.sequence, found.highest, found.begins, found.foreign, found.torn) == (
            whole.sequence, whole.highest, whole.begins, whole.foreign, whole.torn
        ), f"CDC_SEED={SEED}"  # fmt: skip
