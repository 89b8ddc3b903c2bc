"""The sections of an audit's outcome: together they have fields of the outcome, each once."""

from collections import Counter
from dataclasses import fields
from typing import Any

from cdc.spark.findings import AcceptedFindings, Progress, RowFindings, SchemaFindings, StreamFindings
from cdc.spark.report.outcome import Audit

SECTIONS: tuple[Any, ...] = (StreamFindings, Progress, SchemaFindings, RowFindings, AcceptedFindings)


def test_sections_have_each_field_of_the_outcome_but_the_reasons_once() -> None:
    found = Counter(each.name for section in SECTIONS for each in fields(section))
    assert found == Counter(each.name for each in fields(Audit) if each.name not in ("reasons", "repair"))


def test_an_outcome_is_put_together_from_sections() -> None:
    rows, schema = RowFindings([], drifted_rows=2), SchemaFindings(0, [])
    streams: Any = StreamFindings("2026-11-21T17:31:54+00:00", *[None] * 2, 3, [], [], [], [], None)  # type: ignore[arg-type]
    audit = Audit.of(streams, schema, rows, reasons=["no checkpoint"])
    assert (audit.drifted_rows, audit.foreign_writes, audit.reasons) == (2, 3, ["no checkpoint"])
    assert (audit.sequence, audit.verdict) == (None, "could not judge")
