"""Renders the outcome of an audit as lines for a terminal: in the order of the page, shorter, and no wider."""

from collections.abc import Iterator, Sequence
from unicodedata import combining, east_asian_width

from cdc.spark.compare.row_drift import DriftedRow, evenly
from cdc.spark.compare.tally import Table
from cdc.spark.lag.summary import Lag
from cdc.spark.report.files import FOREIGN, HTML, PARQUET
from cdc.spark.report.outcome import Audit
from cdc.spark.report.phrases import (
    accepted_drift,
    backlog,
    binlog_position,
    commit_log_age,
    commit_times,
    counted,
    drifted_first,
    has_drift,
    not_compared,
    not_found,
    object_name,
    row_notes,
    verdict_sentence,
)
from cdc.spark.report.printable import cut, differing, duration, value_text, visible
from cdc.spark.streams.skipped_events import CAUSE
from cdc.sql.tokens import excerpt

__all__ = ["terminal"]

_SHOWN = 10
_TABLES_SHOWN = 30
_NARROWEST = 40  # columns
_VALUE_SHOWN = 60
_QUANTILES = ("p50", "p95", "p99", "max")


def terminal(audit: Audit, *, width: int = 0) -> Iterator[str]:
    """The report's lines, the verdict first, of at most ``width`` columns (at least 40); 0 for no limit."""
    width = max(width, _NARROWEST) if width else 0
    for line in _lines(audit, width):
        yield from _wrapped(visible(line), width)


def _lines(audit: Audit, width: int) -> Iterator[str]:
    """The lines before they are wrapped; only tables need the ``width``."""
    yield audit.verdict + (f" at sequence {audit.sequence}" if audit.sequence is not None else "")
    yield verdict_sentence(audit)
    yield from (f"  because {reason}" for reason in audit.why)
    yield from not_compared(audit)
    if none := not_found(audit):
        yield none
    for name, side in (("leader", audit.leader), ("follower", audit.follower)):
        sequences = "" if side.last is None else f", sequence {side.first} to {side.last}"
        yield f"  {name} {side.resource}: topic {side.topic}, {side.records} records{sequences}, {commit_times(side)}"
        yield f"    newest entry of its commit log: {commit_log_age(audit, name)}"
    if waiting := backlog(audit):
        yield f"  {waiting}"
    for entry in audit.accepted:
        until = f", until {entry.until}" if entry.until and not entry.expired else ""
        yield f"accepted ({entry.reason}{until}): {', '.join(entry.what)} of {entry.name}: {accepted_drift(entry)}"
    yield from _tables(audit.tables, width)
    yield from _schema(audit)
    yield from _drifted(audit)
    yield from _foreign(audit)
    for each in audit.skipped[:_SHOWN]:
        what = f"{excerpt(each.statement)} ({each.note})"
        yield f"skipped on the follower by an operator: sequence {each.sequence}: {what}"
    for broken in audit.breaks[:_SHOWN]:
        where = f"{broken.partition}, offset {broken.offset}"
        yield f"{broken.kind} in the stream of the {broken.side}: {broken.detail} ({where})"
    if any(audit.discontinuities.values()):
        counts = ", ".join(f"{count} on the {side}" for side, count in audit.discontinuities.items() if count)
        yield f"before images that do not match the row's previous image: {counts}"
    if audit.lag:
        yield from _lag(audit.lag, width)


def _tables(tables: Sequence[Table], width: int) -> Iterator[str]:
    """The table of tables, drifted ones first, up to a limit."""
    head = ("  table", "rows leader", "rows follower", "missing", "extra", "different")
    ordered = drifted_first(list(tables))
    shown = ordered[:_TABLES_SHOWN]
    rows = [
        (f"{'✗' if has_drift(t) else ' '} {t.database}.{t.table}",
         *(f"{count:,}" for count in (t.leader_rows, t.follower_rows, t.missing, t.extra, t.different)))
        for t in shown
    ]  # fmt: skip
    yield from _aligned(head, rows, width)
    if len(ordered) > len(shown):
        rest = ordered[len(shown) :]
        drifted = sum(map(has_drift, rest))
        more = f"{counted(len(rest), 'more table')}, {drifted:,} of them with drift"
        yield f"  … {more}, see {HTML} in the report"


def _schema(audit: Audit) -> Iterator[str]:
    """The tables and other objects that are defined differently."""
    for each in audit.schema[:_SHOWN]:
        what = "may differ from the leader's" if each.cause == CAUSE else "is not defined as on the leader"
        yield f"{object_name(each)} {what}: {each.cause}: {each.evidence}"
    if audit.schema_drift > _SHOWN:
        yield f"… {audit.schema_drift:,} in all are not defined as on the leader"


def _drifted(audit: Audit) -> Iterator[str]:
    """The first drifted rows, each with its cause and the values that differ."""
    if causes := sorted(audit.drifted_by_cause.items(), key=lambda item: -item[1]):
        yield f"drifted rows by cause: {', '.join(f'{cause} {count:,}' for cause, count in causes)}"
    shown = [audit.drifted[at] for at in evenly([(row.database, row.table) for row in audit.drifted], _SHOWN)]
    for row in shown:
        count = f" ({row.rows} times)" if row.rows > 1 else ""
        yield f"{row.kind}{count} in {row.database}.{row.table}: {_image(row.identity)}"
        yield f"  {row.cause}: {row.evidence}"
        yield from (f"  {note}" for note in row_notes(row))
        if row.kind == "different":
            yield from _both(row)
        yield f"  last change: leader {binlog_position(row.leader_last)}, follower {binlog_position(row.follower_last)}"
    if audit.drifted_rows > sum(row.rows for row in shown):
        yield f"… {audit.drifted_rows:,} drifted rows in all, see {PARQUET} in the report"


def _both(row: DriftedRow) -> Iterator[str]:
    """The columns of a row that differ, of long values the part that differs, on a line for each side."""
    sides: tuple[list[str], list[str]] = ([], [])
    for name in row.columns:
        texts = (value_text((image or {}).get(name)) for image in (row.leader_image, row.follower_image))
        for side, part in zip(sides, differing(*texts), strict=True):
            side.append(f"{name}={part.before}{part.middle}{part.after}")
    yield f"  leader   {', '.join(sides[0])}"
    yield f"  follower {', '.join(sides[1])}"


def _image(values: dict[str, str]) -> str:
    """The columns and values of a row, or of its key."""
    return ", ".join(f"{name}={cut(value_text(text), _VALUE_SHOWN)}" for name, text in values.items())


def _foreign(audit: Audit) -> Iterator[str]:
    """The first transactions of the follower that did not come from the leader."""
    for each in audit.foreign[:_SHOWN]:
        what = each.statement or counted(each.rows, "row")
        where = f"{each.file}:{each.position}"
        yield f"foreign write at {where} on the follower: {what} in {', '.join(each.tables)} ({each.transaction})"
    if audit.foreign_writes > _SHOWN:
        yield f"… {audit.foreign_writes:,} foreign writes in all, see {FOREIGN} in the report"


def _lag(lag: Lag, width: int) -> Iterator[str]:
    """The table of how long transactions took, by stage."""
    head = (f"lag of {counted(lag.transactions, 'transaction')}", "known of", *_QUANTILES)
    rows = [
        (f"  {name}", f"{stage.total.transactions:,}",
         *(duration(getattr(stage.total, f"{quantile}_us")) for quantile in _QUANTILES))
        for name, stage in lag.stages.items()
    ]  # fmt: skip
    yield from _aligned(head, rows, width)


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """A table with names aligned left and figures right; names are shortened to ``width``. Nothing without rows."""
    if not rows:
        return
    lines = [[visible(cell) for cell in line] for line in (head, *rows)]
    widths = [max(_columns(line[at]) for line in lines) for at in range(len(head))]
    if width:
        widths[0] = max(_NARROWEST // 2, min(widths[0], width - sum(widths[1:]) - 2 * len(widths[1:])))
    for name, *cells in lines:
        name = _shortened(name, widths[0])
        padded = [" " * (room - _columns(cell)) + cell for cell, room in zip(cells, widths[1:], strict=True)]
        yield "  ".join([name + " " * (widths[0] - _columns(name)), *padded])


def _columns(text: str) -> int:
    """The number of a terminal's columns that ``text`` occupies."""
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _shortened(text: str, room: int) -> str:
    """``text`` without its middle if it is wider than ``room``: names often differ at one of their ends."""
    if _columns(text) <= room:
        return text
    head, tail = text, ""
    while _columns(head) > room // 2:
        head = head[:-1]
    for each in reversed(text):
        if _columns(head + tail + each) >= room:
            break
        tail = each + tail
    return f"{head}…{tail}"


def _wrapped(line: str, width: int) -> Iterator[str]:
    """``line`` in parts of at most ``width`` columns, broken at spaces if possible, those after the first indented."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    while width and _columns(line) > width:
        fits = next(end for end in range(len(line), 0, -1) if _columns(line[:end]) <= width)
        space = line.rfind(" ", len(indent) + 1, fits + 1)
        end = space if space > 0 else fits
        yield line[:end]
        line = indent + line[end:].lstrip()
    yield line
