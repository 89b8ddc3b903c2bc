"""Renders the sections of the page that are tables: what was compared, each table, and what else was found.

Renders how long transactions took, stage by stage, as tables and plots.

Renders the verdicts of the audits on one state over time.
"""

from collections.abc import Sequence
from datetime import datetime

from cdc.spark.compare.tally import Table
from cdc.spark.lag.summary import STAGES, WHOLE, Lag, Quantiles
from cdc.spark.page.markup import Content, Figure, Html, element, fragment, table
from cdc.spark.page.plots import QUANTILES, Point, histogram, over_time, points, time_line
from cdc.spark.report.outcome import Audit
from cdc.spark.report.phrases import (
    accepted_drift,
    audit_time,
    backlog,
    binlog_position,
    commit_log_age,
    commit_times,
    counted,
    drifted_first,
    has_drift,
    object_name,
)
from cdc.spark.report.printable import clock, cut, duration, moment, value_text
from cdc.spark.state.history import PastVerdict
from cdc.sql.tokens import excerpt

__all__ = [
    "EXPLAINED",
    "accepted",
    "breaks",
    "compared",
    "copying",
    "discontinued",
    "foreign",
    "lag_section",
    "schema",
    "section",
    "skipped",
    "tables",
    "verdict_history",
    "with_rest_hidden",
]

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


_TABLES_OPEN = 20
_TABLES_SHOWN = 10_000
_WRITES_OPEN = 20
_WHOLE = 2_000
_SHORT = 48  # characters that stay on one line


def section(title: str, *content: Html) -> Html:
    """A section with its heading; nothing if it has no content."""
    return element("section", element("h2", title), *content) if any(content) else Html("")


def collapsible(summary: str, *content: Html) -> Html:
    """Content that is hidden until the reader opens it by its ``summary``."""
    return element("details", element("summary", summary), *content)


def with_rest_hidden(head: Sequence[str], lines: Sequence[Sequence[Content | Figure]], shown: int) -> Html:
    """A table whose lines beyond the first ``shown`` are hidden until the reader opens them."""
    rest = lines[shown:]
    more = collapsible(f"{len(rest):,} more", table(head, rest)) if rest else Html("")
    return fragment(table(head, lines[:shown]), more)


def code(text: str) -> Html:
    """Text from a database or server, isolated from the writing direction of the text around it."""
    return element("bdi", element("code", cut(text), class_="short" if len(text) <= _SHORT else "long"))


def compared(audit: Audit) -> Html:
    """Both topics: their servers, the records read, and the times at which these were committed."""
    head = ("", "server", "topic", "records", "sequences", "committed", "newest commit log entry")
    lines: list[Sequence[Content | Figure]] = []
    for side, topic in (("leader", audit.leader), ("follower", audit.follower)):
        sequences = "none" if topic.first is None else f"{topic.first:,} to {topic.last:,}"
        facts = (topic.records, sequences, commit_times(topic), commit_log_age(audit, side))
        lines.append((side, code(topic.resource), code(topic.topic), *facts))
    offsets = [
        (code(name), first, end - 1)
        for topic in (audit.leader, audit.follower)
        for name, (first, end) in topic.offsets.items()
        if end > first
    ]
    note = f"Read at {audit_time(audit)}, without a query to either server."
    if audit.sequence is not None:
        newest = f"Compared at the leader's sequence {audit.sequence:,}, the newest that the follower had applied."
        note = f"{newest} {backlog(audit)} {note}"
    shown = collapsible(
        f"Offsets of {counted(len(offsets), 'partition')}", table(("partition", "first", "last"), offsets)
    )
    return fragment(element("p", note), table(head, lines), shown if offsets else Html(""))


def tables(found: Sequence[Table]) -> Html:
    """The tables, drifted ones first; beyond a limit they are hidden until the reader opens them."""
    ordered = drifted_first(list(found))[:_TABLES_SHOWN]
    drifted = sum(map(has_drift, ordered))
    lines = [_table(each) for each in ordered]
    head = ("", "table", "rows leader", "rows follower", "missing", "extra", "different", "checksum")
    shown = with_rest_hidden(head, lines, _TABLES_OPEN + min(drifted, _TABLES_OPEN))
    return fragment(shown, _more(len(found), len(lines), "; report.json has all"))


def _more(count: int, shown: int, where: str = "") -> Html:
    """A note that only the first ``shown`` of ``count`` are listed, if so."""
    return element("p", f"The first {shown:,} of {count:,}{where}.") if count > shown else Html("")


def _table(each: Table) -> Sequence[Content | Figure]:
    """A table's line in the table of tables."""
    same = each.leader_checksum == each.follower_checksum
    checksum = each.leader_checksum if same else f"{each.leader_checksum} ≠ {each.follower_checksum}"
    sign = element("span", "✗ drift", class_="bad") if has_drift(each) else element("span", "✓", class_="good")
    drift = [Figure(f"{count:,}", count > 0) for count in (each.missing, each.extra, each.different)]
    name = code(f"{each.database}.{each.table}")
    return (sign, name, each.leader_rows, each.follower_rows, *drift, code(checksum))


def copying(audit: Audit) -> Html:
    """The tables whose copy is not complete."""
    lines = [
        (code(f"{each.database}.{each.table}"), "has to begin" if each.began is None else f"sequence {each.began:,}")
        for each in audit.under_copy[:_TABLES_SHOWN]
    ]
    shown = with_rest_hidden(("table", "copy began"), lines, _TABLES_OPEN) if lines else Html("")
    return fragment(shown, _more(len(audit.under_copy), len(lines), "; report.json has all"))


def schema(audit: Audit) -> Html:
    """Tables, views, routines and databases that are defined differently on the two sides."""
    lines = [(code(object_name(each)), each.cause, element("bdi", cut(each.evidence))) for each in audit.schema]
    return fragment(table(("what", "cause", "evidence"), lines), _more(audit.schema_drift, len(lines)))


def accepted(audit: Audit) -> Html:
    """The entries of ``--accept``, and what each has taken out of the verdict."""
    head = ("accepted", "of", "why", "until", "what differs")
    lines = [
        (", ".join(each.what), code(each.name), cut(each.reason), each.until or "", cut(accepted_drift(each), _WHOLE))
        for each in audit.accepted
    ]
    return with_rest_hidden(head, lines, _TABLES_OPEN) if lines else Html("")


def foreign(audit: Audit) -> Html:
    """Writes that did not come from the leader: a plot over time, and the first ones one by one."""
    if not audit.foreign_writes:
        return Html("")
    said = f"{counted(audit.foreign_writes, 'transaction')} of the follower did not come from the leader"
    head = ("committed (UTC)", "transaction", "binlog position", "rows", "tables", "statement")
    lines = [
        (element("time", clock(each.ts_us)), code(each.transaction), code(f"{each.file}:{each.position}"), each.rows,
         code(", ".join(each.tables)), element("code", cut(each.statement or "")))
        for each in audit.foreign
    ]  # fmt: skip
    more = _more(audit.foreign_writes, len(lines), "; foreign.parquet has all")
    return fragment(
        element("p", f"{said}."), _time_line(audit, said), with_rest_hidden(head, lines, _WRITES_OPEN), more
    )


def _time_line(audit: Audit, label: str) -> Html:
    """The number of foreign writes over the time that the follower's topic covers."""
    first_us, last_us = audit.follower.first_us, audit.follower.last_us
    if first_us is None or last_us is None:
        return Html("")
    plot = time_line(audit.foreign_over_time, label, first_us=first_us, last_us=last_us)
    return element("div", plot, class_="scroll")


def skipped(audit: Audit) -> Html:
    """The leader's records that an operator skipped on the follower."""
    lines = [(each.sequence, code(excerpt(each.statement)), element("bdi", cut(each.note))) for each in audit.skipped]
    return table(("sequence", "what", "why"), lines)


def breaks(audit: Audit) -> Html:
    """Where a topic is not the complete, ordered stream that a producer writes."""
    lines = [(each.side, each.kind, code(each.partition), each.offset, cut(each.detail)) for each in audit.breaks]
    return table(("side", "kind", "partition", "offset", "what"), lines)


def discontinued(audit: Audit) -> Html:
    """Rows with a before image that does not match their previous image: something changed them with the binlog off."""
    lines = [
        (each.side, code(f"{each.database}.{each.table}"), code(_identity(each.identity)), each.times,
         code(binlog_position(each.last)),
         "" if each.partition is None else code(f"{each.partition}, offset {each.offset}"))
        for each in audit.discontinued
    ]  # fmt: skip
    return table(("side", "table", "row", "times", "last at", "in Kafka"), lines)


def _identity(values: dict[str, str]) -> str:
    """The columns that identify a row, with their values."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in values.items())


EXPLAINED = {
    "leader to Kafka": "from the leader's commit to its record in Kafka",
    "Kafka to follower": "from the record in Kafka to the follower's commit",
    "follower to Kafka": "from the follower's commit to the follower's own record in Kafka",
    WHOLE: "from the leader's commit to the follower's commit",
}
_LAG_TABLES_OPEN, _LAG_TABLES_SHOWN = 10, 200


def lag_section(lag: Lag) -> Html:
    """The quantiles of each stage, its plots, and the slowest tables."""
    head = ("stage", "", "transactions", *QUANTILES)
    lines = [(name, EXPLAINED[name], *_figures(stage.total)) for name, stage in lag.stages.items()]
    period = (
        f"{counted(lag.transactions, 'leader transaction')}, committed {moment(lag.first_us)} to {moment(lag.last_us)}."
    )
    return fragment(
        element("p", period),
        table(head, lines),
        element("p", _caveats(lag), class_="dim"),
        *(_plots(lag, name) for name in lag.stages),
        _tables(lag),
    )


def _figures(quantiles: Quantiles) -> tuple[int | Figure, ...]:
    times = (duration(getattr(quantiles, f"{name}_us")) for name in QUANTILES)
    return quantiles.transactions, *map(Figure, times)


def _caveats(lag: Lag) -> str:
    """What a reader must know about the figures: clocks that differ, and times that are unknown."""
    clocks = (
        "Each stage is measured with the clocks of two machines: if they differ, it is longer or shorter by the "
        "difference, and may be negative."
    )
    counts = [lag.stages[name].total.transactions if name in lag.stages else 0 for name in STAGES]
    if min(counts) == lag.transactions:
        return clocks
    return (
        f"{clocks} When a record was committed in Kafka is known only while the compacted commit log keeps the entry "
        "that was committed with it: a stage counts the transactions of which both times are known."
    )


def _plots(lag: Lag, name: str) -> Html:
    """The histogram of a stage, and its quantiles over time."""
    stage = lag.stages[name]
    drawn = (
        histogram(stage, name),
        over_time(stage, name, first_us=lag.first_us, last_us=lag.last_us, stretch_us=lag.stretch_us),
    )
    return element(
        "figure", element("figcaption", f"{name}, {EXPLAINED[name]}"), element("div", *drawn, class_="plots")
    )


def _tables(lag: Lag) -> Html:
    """The quantiles by table, the slowest first."""
    others = [name for name in STAGES if name != WHOLE]
    head = ("table", "transactions", *QUANTILES, *(f"p95 {name}" for name in others))
    lines = []
    for each in lag.tables[:_LAG_TABLES_SHOWN]:
        known = (each.stages.get(name) for name in others)
        p95 = (Figure(duration(stage.p95_us) if stage else "") for stage in known)
        lines.append((code(each.table), *_figures(each.stages[WHOLE]), *p95))
    title = element("h3", f"By table, {WHOLE}: the slowest of {lag.tables_seen:,} first")
    return fragment(title, with_rest_hidden(head, lines, _LAG_TABLES_OPEN))
