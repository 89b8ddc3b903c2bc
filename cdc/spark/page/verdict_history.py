"""Renders the verdicts of the audits on one state over time."""

from collections.abc import Sequence
from datetime import datetime

from cdc.spark.page.markup import Html, element, fragment
from cdc.spark.page.plots import Point, points
from cdc.spark.report.phrases import counted
from cdc.spark.report.units import moment
from cdc.spark.state.history import PastVerdict

__all__ = ["verdict_history"]

_DRAWN = 1_000
_STATUS = ("no drift", "drift", "could not judge")


def verdict_history(verdicts: Sequence[PastVerdict]) -> Html:
    """How many rows and definitions differed at each audit; nothing for a single one."""
    if len(verdicts) < 2:
        return Html("")
    drawn = verdicts[-_DRAWN:]
    counts = [sum(each.exit_status == status for each in drawn) for status in range(len(_STATUS))]
    told = ", ".join(f"{name} {count:,}" for name, count in zip(_STATUS, counts, strict=True) if count)
    said = f"{counted(len(drawn), 'audit')} on this state: {told}"
    return fragment(
        element("p", f"{said}."), element("div", points([_point(each) for each in drawn], said), class_="scroll")
    )


def _point(verdict: PastVerdict) -> Point:
    at_us = int(datetime.fromisoformat(verdict.at).timestamp() * 1e6)
    differing = verdict.drifted_rows + verdict.schema_drift
    sequence = "" if verdict.sequence is None else f" at sequence {verdict.sequence:,}"
    accepted = f", {verdict.accepted:,} accepted" if verdict.accepted else ""
    title = f"{moment(at_us)}: {_STATUS[verdict.exit_status]}{sequence}: {differing:,} drifted{accepted}"
    return at_us, differing, ("good", "bad", "doubt")[verdict.exit_status], title
