"""The cases of the judge, tests/verdicts: each says what two servers logged, and what an audit of that must say."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from cdc.config.filters import Filters
from cdc.spark.job.options import Terms
from cdc.spark.report.outcome import Audit
from cdc.spark.report.renderers import page, terminal
from tests.checks.verdicts import Case, Histories, cases, summary
from tests.harness.long_runs import LONG
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

_WAYS = {
    "by digests, and by folding all rows": [False, True],
    "by digests, and in long runs by folding all rows": [False, True] if LONG else [False],
    "by folding all rows": [True],
}


@pytest.mark.parametrize("case", [*cases()], ids=lambda case: f"{case.where}: {case.name}")
def test_a_case(judged: Judge, case: Case) -> None:
    histories, ways, options, left_out = Histories(), [False], dict[str, Any](), False
    for expects, lines in groupby(case.lines, key=lambda line: line[1][:2] in ("= ", "~ ")):
        block = list(lines)
        if expects:
            for folded in [] if left_out else ways:
                audit = judged(histories.leader, histories.follower, folded=folded, **options)
                _require(audit, [line for _, line in block], f"{case.where}:{block[0][0]}, rows folded: {folded}")
            left_out = False
            continue
        for _, line in block:
            word, _, rest = line.partition(": ")
            if line.startswith("by "):
                ways = _WAYS[line]
            elif line == "in long runs":
                left_out = not LONG
            elif line == "as usual":
                options.clear()
            elif line == "exact":
                options["terms"] = Terms(exact=True)
            elif word in ("filters of the leader", "filters of the follower"):
                options["leader_filters" if "leader" in word else "filters"] = _filters(rest)
            else:
                histories.read(line)


def _filters(text: str) -> Filters:
    """``include_dbs a b, exclude_tables a.t``."""
    keys = (words.split() for words in text.split(", "))
    return Filters(**{key: tuple(values) for key, *values in keys})  # type: ignore[arg-type]


def _require(audit: Audit, expected: list[str], where: str) -> None:
    assert summary(audit) == [line[2:] for line in expected if line.startswith("= ")], where
    told = "\n".join(terminal(audit))
    for line in expected:
        assert line.startswith("= ") or line[2:] in told, f"{where}: {told}"
    assert list(_faults(audit)) == [], where


def _faults(audit: Audit) -> Iterator[str]:
    """What holds for each audit: its numbers are all of one opinion."""
    if audit.exit_status != ["no drift", "drift", "could not judge"].index(audit.verdict):
        yield "exit status"
    rows = sum(row.rows for row in audit.drifted)
    of_tables, of_causes = sum(table.drifted for table in audit.tables), sum(audit.drifted_by_cause.values())
    if not audit.reasons and not audit.drifted_rows == rows == of_causes == of_tables:
        yield "drifted rows"
    if (audit.schema_drift, audit.foreign_writes) != (len(audit.schema), len(audit.foreign)):
        yield "lists"
    writes = {write.transaction: write.ts_us for write in audit.foreign}
    if any(row.foreign and row.foreign["ts_us"] != writes.get(row.foreign["transaction"]) for row in audit.drifted):
        yield "foreign writes of rows"
    if any(skip.note not in page(audit) for skip in audit.skipped):
        yield "skips on the page"
