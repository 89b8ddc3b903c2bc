"""report.html: one file that needs nothing else, in the reader's light or dark, the verdict first."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from cdc.excerpt import excerpt
from cdc.spark.lag import Lag
from cdc.spark.report import Audit, row_text

__all__ = ["page"]

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--dim:#666d76;--line:#d9dde3;--good:#1a7f37;--bad:#c0272d;
--doubt:#9a6700;--bar:#3b6fd4}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa3ad;--line:#3a4048;--good:#4ac26b;--bad:#ff7b72;
--doubt:#e3b341;--bar:#7aa2f7}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:2rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .5rem}
.no-drift{color:var(--good)}.drift{color:var(--bad)}.could-not-judge{color:var(--doubt)}
.dim{color:var(--dim)}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{color:var(--dim);font-weight:500}.n{text-align:right}code{font:.88em ui-monospace,monospace;overflow-wrap:anywhere}
rect{fill:var(--bar)}text{fill:var(--dim);font-size:11px}
"""


def page(audit: Audit) -> str:
    """The whole report as HTML."""
    at = f" at sequence {audit.sequence}" if audit.sequence is not None else ""
    parts = [
        f'<h1 class="{audit.verdict.replace(" ", "-")}">{audit.verdict}{at}</h1>',
        f'<p class="dim">{escape(audit.audited_at)}, exit status {audit.exit_status}</p>',
        *(f"<p>{escape(reason)}</p>" for reason in audit.reasons),
        _section("Topics", _topics(audit)),
        _section("Tables", _tables(audit)),
        _section(f"Drifted rows: {audit.drifted_rows}", _drifted(audit)),
        _section(f"Foreign writes: {audit.foreign_writes}", _foreign(audit)),
        _section("Skipped on the follower by an operator", _skipped(audit)),
        _section("Stream breaks", _breaks(audit)),
        _section("Before images that do not continue their row", _discontinued(audit)),
        _section("Apply lag", _lag(audit.lag) if audit.lag else ""),
    ]
    title = f"<title>Audit: {audit.verdict}</title>"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{title}<style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>{content}" if content else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Numbers stand right; everything else is text, as code where it is an image or a position."""
    lines = ["".join(_cell(cell) for cell in row) for row in rows]
    if not lines:
        return ""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="scroll"><table><tr>{top}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def _cell(cell: object) -> str:
    if isinstance(cell, int):
        return f'<td class="n">{cell}</td>'
    return f"<td><code>{escape(str(cell))}</code></td>"


def _topics(audit: Audit) -> str:
    head = ("side", "resource", "topic", "records", "sequences")
    sides = (("leader", audit.leader), ("follower", audit.follower))
    return _table(head, [(side, t.resource, t.topic, t.records, f"{t.first} to {t.last}") for side, t in sides])


def _tables(audit: Audit) -> str:
    head = ("table", "rows leader", "rows follower", "missing", "extra", "different", "checksums")
    rows = [
        (
            f"{t.database}.{t.table}",
            *(t.leader_rows, t.follower_rows, t.missing, t.extra, t.different),
            t.leader_checksum
            if t.leader_checksum == t.follower_checksum
            else f"{t.leader_checksum} {t.follower_checksum}",
        )
        for t in audit.tables
    ]
    return _table(head, rows)


def _drifted(audit: Audit) -> str:
    head = ("table", "kind", "rows", "row", "leader", "follower", "last on leader", "last on follower", "foreign write")
    rows = []
    for row in audit.drifted:
        only = row.columns if row.kind == "different" else None
        images = ["" if image is None else row_text(image, only) for image in (row.leader_image, row.follower_image)]
        places = [_place(row.leader_last), _place(row.follower_last), _place(row.foreign)]
        rows.append((f"{row.database}.{row.table}", row.kind, row.rows, row_text(row.identity), *images, *places))
    return _table(head, rows)


def _place(place: dict[str, Any] | None) -> str:
    return f"{place['file']}:{place['position']}" if place else ""


def _foreign(audit: Audit) -> str:
    head = ("position on the follower", "transaction", "tables", "rows", "statement")
    rows = [
        (f"{w.file}:{w.position}", w.transaction, ", ".join(w.tables), w.rows, w.statement or "") for w in audit.foreign
    ]
    return _table(head, rows)


def _skipped(audit: Audit) -> str:
    return _table(("sequence", "what", "why"), [(s.sequence, excerpt(s.statement), s.note) for s in audit.skipped])


def _breaks(audit: Audit) -> str:
    head = ("side", "kind", "partition", "offset", "what")
    return _table(head, [(b.side, b.kind, b.partition, b.offset, b.detail) for b in audit.breaks])


def _discontinued(audit: Audit) -> str:
    head = ("side", "table", "row", "times", "last at")
    return _table(
        head,
        [
            (d.side, f"{d.database}.{d.table}", row_text(d.identity), d.times, _place(d.last))
            for d in audit.discontinued
        ],
    )


def _lag(lag: Lag) -> str:
    names = ("p50", "p95", "p99", "max")
    line = ", ".join(f"{name} {_time(getattr(lag, f'{name}_us'))}" for name in names)
    return f"<p>{lag.transactions} transactions: {line}</p>{_histogram(lag.histogram)}"


def _histogram(bars: list[tuple[int, int]]) -> str:
    top = max(count for _, count in bars)
    drawn = []
    for at, (bound, count) in enumerate(bars):
        x, height = 8 + at * 56, max(2, round(140 * count / top))
        drawn.append(f'<rect x="{x}" y="{160 - height}" width="48" height="{height}" rx="2"/>')
        drawn.append(f'<text x="{x + 24}" y="{154 - height}" text-anchor="middle">{count}</text>')
        drawn.append(f'<text x="{x + 24}" y="176" text-anchor="middle">≤ {_time(bound)}</text>')
    width = 16 + len(bars) * 56
    label = "Transactions by apply lag"
    box = f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} 184" width="{width}" height="184">'
    return f'<div class="scroll">{box}{"".join(drawn)}</svg></div>'


def _time(us: int) -> str:
    if abs(us) < 1_000:
        return f"{us} µs"
    return f"{us / 1_000:.3g} ms" if abs(us) < 1_000_000 else f"{us / 1_000_000:.3g} s"
