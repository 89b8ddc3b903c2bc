"""The audit's outcome: on the terminal, as report.json, as report.html and as Parquet.

report.json holds the fields of ``Audit``, those of the dataclasses in them, and ``exit_status``:

    verdict          "no drift", "drift" or "could not judge"
    exit_status      0, 1 or 2 in the same order. Foreign writes without drift leave it 0.
    reasons          why it could not be judged, else empty
    sequence         the leader sequence at which both sides were compared, null when not judged
    audited_at       when, ISO 8601 in UTC
    leader, follower {resource, topic, records, first, last, offsets: {topic/partition: [first, end]}}
    tables           [{database, table, leader_rows, follower_rows, missing, extra, different, leader_checksum,
                     follower_checksum}]
    drifted_rows     how many rows drifted; drifted holds the first 100, drift.parquet all of them
    drifted          [{database, table, kind, rows, keyed, identity, columns, leader_image, follower_image, leader_last,
                     follower_last, foreign, cause, evidence}]; images map columns to values as JSON text, NULLs left
                     out; cause is one of those in cdc/spark/causes.py, evidence a line that shows it
    schema_drift     how many tables, views, routines and databases are not defined by the same statements; schema holds
                     the first 100
    schema           [{kind, database, name, cause, evidence}]; kind is Table, View, Database, …
    foreign_writes   how many follower transactions did not come through the consumer; foreign holds the first 100
    foreign          [{transaction, file, position, ts_us, tables, rows, statement}]
    skipped          [{sequence, statement, note}]: the first 100 records that an operator let the follower do without
    breaks           [{side, kind, partition, offset, detail}], the first 20 of each kind and side; topic/partition
    discontinuities  {leader, follower}: before images that do not continue their row; discontinued holds some of them
    discontinued     [{side, database, table, identity, times, last, partition, offset}]
    lag              null, or {transactions, p50_us, p95_us, p99_us, max_us, histogram: [[upper bound in µs, count]]}

Each audit removes what an earlier one left in the folder; drift.parquet is there only when there is drift, in a folder
that Spark's executors must share with the driver when they run elsewhere.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cdc.excerpt import excerpt
from cdc.spark.definitions import SchemaDrift
from cdc.spark.drift import Discontinuity, DriftedRow, Table
from cdc.spark.folder import HTML, JSON, PARQUET
from cdc.spark.integrity import Break
from cdc.spark.lag import Lag
from cdc.spark.skipped import Skip
from cdc.spark.watermark import ForeignWrite
from cdc.values import display

__all__ = ["Audit", "Topic", "row_text", "terminal", "write"]

_STATUS = {"no drift": 0, "drift": 1, "could not judge": 2}
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Topic:
    """One server's records as they were read. ``topic`` is the profile's; ``offsets`` are per topic/partition."""

    resource: str
    topic: str
    records: int
    first: int | None
    last: int | None
    offsets: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything the reports tell; the fields are explained in this module's docstring."""

    audited_at: str
    leader: Topic
    follower: Topic
    reasons: list[str] = field(default_factory=list)
    sequence: int | None = None
    tables: list[Table] = field(default_factory=list)
    drifted_rows: int = 0
    drifted: list[DriftedRow] = field(default_factory=list)
    schema_drift: int = 0
    schema: list[SchemaDrift] = field(default_factory=list)
    foreign_writes: int = 0
    foreign: list[ForeignWrite] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    discontinuities: dict[str, int] = field(default_factory=dict)
    discontinued: list[Discontinuity] = field(default_factory=list)
    lag: Lag | None = None

    @property
    def verdict(self) -> str:
        """``no drift``, ``drift`` or ``could not judge``."""
        if self.reasons:
            return "could not judge"
        return "drift" if self.drifted_rows or self.schema_drift else "no drift"

    @property
    def exit_status(self) -> int:
        """0, 1 or 2, by the verdict."""
        return _STATUS[self.verdict]


def write(audit: Audit, page: str, folder: Path) -> None:
    """Write report.json and report.html."""
    body = {"verdict": audit.verdict, "exit_status": audit.exit_status} | asdict(audit)
    text = json.dumps(body, ensure_ascii=False, indent=1)
    (folder / JSON).write_text(text + "\n", encoding="utf-8")
    (folder / HTML).write_text(page, encoding="utf-8")


def row_text(image: dict[str, str], only: list[str] | None = None) -> str:
    """An image as people read it: ``name='Jack', sex='m'``; ``only`` these columns, NULL where the image lacks one."""
    names = sorted(image) if only is None else only
    return ", ".join(f"{name}={_value(image[name]) if name in image else 'NULL'}" for name in names)


def _value(text: str) -> str:
    return display(json.loads(text))


def terminal(audit: Audit) -> Iterator[str]:
    """The lines for the terminal, the verdict first."""
    yield audit.verdict + (f" at sequence {audit.sequence}" if audit.sequence is not None else "")
    yield from (f"  because {reason}" for reason in audit.reasons)
    for side in (audit.leader, audit.follower):
        last = "empty" if side.last is None else f"sequence {side.first} to {side.last}"
        yield f"  {side.resource}: topic {side.topic}, {side.records} records, {last}"
    yield from _tables(audit.tables)
    yield from _schema(audit.schema)
    yield from _drifted(audit)
    yield from _foreign(audit)
    for each in audit.skipped[:_SHOWN]:
        what = f"{excerpt(each.statement)} ({each.note})"
        yield f"skipped on the follower by an operator: sequence {each.sequence}: {what}"
    if audit.discontinuities and any(audit.discontinuities.values()):
        counts = ", ".join(f"{count} on the {side}" for side, count in audit.discontinuities.items() if count)
        yield f"before images that do not continue their row: {counts}"
    if audit.lag:
        lag = {name: f"{getattr(audit.lag, name + '_us') / 1000:.1f} ms" for name in ("p50", "p95", "p99", "max")}
        times = ", ".join(f"{name} {text}" for name, text in lag.items())
        yield f"apply lag of {audit.lag.transactions} transactions: {times}"


def _tables(tables: list[Table]) -> Iterator[str]:
    if not tables:
        return
    head = ("table", "rows leader", "rows follower", "missing", "extra", "different")
    lines = [
        (f"{t.database}.{t.table}", *map(str, (t.leader_rows, t.follower_rows, t.missing, t.extra, t.different)))
        for t in tables
    ]
    widths = [max(len(line[at]) for line in [head, *lines]) for at in range(len(head))]
    for line in [head, *lines]:
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        yield "  ".join([line[0].ljust(widths[0]), *cells])


def _schema(drift: list[SchemaDrift]) -> Iterator[str]:
    for each in drift[:_SHOWN]:
        name = each.database if each.name is None else f"{each.database}.{each.name}"
        yield f"{each.kind.lower()} {name} is not defined as on the leader: {each.cause}: {each.evidence}"


def _drifted(audit: Audit) -> Iterator[str]:
    for row in audit.drifted[:_SHOWN]:
        count = f" ({row.rows} times)" if row.rows > 1 else ""
        yield f"{row.kind}{count} in {row.database}.{row.table}: {row_text(row.identity)}"
        if row.kind == "different":
            yield f"  leader   {row_text(row.leader_image or {}, row.columns)}"
            yield f"  follower {row_text(row.follower_image or {}, row.columns)}"
        yield f"  last change: leader {_place(row.leader_last)}, follower {_place(row.follower_last)}"
        yield f"  {row.cause}: {row.evidence}"
    if audit.drifted_rows > min(len(audit.drifted), _SHOWN):
        yield f"… {audit.drifted_rows} drifted rows in all, see {PARQUET} in the report"


def _place(place: dict[str, Any] | None) -> str:
    return f"{place['file']}:{place['position']} (sequence {place['sequence']})" if place else "none"


def _foreign(audit: Audit) -> Iterator[str]:
    for each in audit.foreign[:_SHOWN]:
        what = each.statement or f"{each.rows} {'row' if each.rows == 1 else 'rows'}"
        place = f"{each.file}:{each.position}"
        yield f"foreign write at {place} on the follower: {what} in {', '.join(each.tables)} ({each.transaction})"
    if audit.foreign_writes > _SHOWN:
        yield f"… {audit.foreign_writes} foreign writes in all"
