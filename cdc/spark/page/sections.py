"""The parts of the page that are tables of facts: what was compared, table by table, and what else was found."""

from collections.abc import Sequence

from cdc.spark.compare.tally import Table
from cdc.spark.page.markup import Content, Figure, Html, element, fragment, table
from cdc.spark.page.plots import time_line
from cdc.spark.report.outcome import Audit
from cdc.spark.report.phrases import (
    age,
    audited,
    behind,
    committed,
    counted,
    drifted_first,
    drifted_in,
    object_name,
    place,
)
from cdc.spark.report.printable import cut, value_text
from cdc.spark.report.units import clock
from cdc.sql.redaction import excerpt

__all__ = ["breaks", "compared", "discontinued", "foreign", "partly", "schema", "section", "skipped", "tables"]

_TABLES_OPEN = 20
_TABLES_SHOWN = 10_000
_WRITES_OPEN = 20
_SHORT = 48  # characters that stay on one line


def section(title: str, *content: Html) -> Html:
    """A section with its heading; nothing where it has no content."""
    return element("section", element("h2", title), *content) if any(content) else Html("")


def folded(summary: str, *content: Html) -> Html:
    """Content that is shown when it is asked for."""
    return element("details", element("summary", summary), *content)


def partly(head: Sequence[str], lines: Sequence[Sequence[Content | Figure]], shown: int) -> Html:
    """A table of which only so many lines are shown at once."""
    rest = lines[shown:]
    more = folded(f"{len(rest):,} more", table(head, rest)) if rest else Html("")
    return fragment(table(head, lines[:shown]), more)


def code(text: str) -> Html:
    """Text of a database or server, apart from the text around it in whatever direction it runs."""
    return element("bdi", element("code", cut(text), class_="short" if len(text) <= _SHORT else "long"))


def compared(audit: Audit) -> Html:
    """Both topics: what was read of them, and which times that covers."""
    head = ("", "server", "topic", "records", "sequences", "committed", "its producer's last sign of life")
    lines: list[Sequence[Content | Figure]] = []
    for side, topic in (("leader", audit.leader), ("follower", audit.follower)):
        sequences = "none" if topic.first is None else f"{topic.first:,} to {topic.last:,}"
        told = (topic.records, sequences, committed(topic), age(audit, side))
        lines.append((side, code(topic.resource), code(topic.topic), *told))
    offsets = [
        (code(name), first, end - 1)
        for topic in (audit.leader, audit.follower)
        for name, (first, end) in topic.offsets.items()
        if end > first
    ]
    note = f"Read at {audited(audit)}, without a query to either server."
    if audit.sequence is not None:
        newest = f"Compared at the leader's sequence {audit.sequence:,}, the newest that the follower had applied."
        note = f"{newest} {behind(audit)} {note}"
    shown = folded(f"Offsets of {counted(len(offsets), 'partition')}", table(("partition", "first", "last"), offsets))
    return fragment(element("p", note), table(head, lines), shown if offsets else Html(""))


def tables(found: Sequence[Table]) -> Html:
    """Drifted tables first; of the others a few, and the rest folded away."""
    ordered = drifted_first(list(found))[:_TABLES_SHOWN]
    drifted = sum(map(drifted_in, ordered))
    lines = [_table(each) for each in ordered]
    head = ("", "table", "rows leader", "rows follower", "missing", "extra", "different", "checksum")
    shown = partly(head, lines, _TABLES_OPEN + min(drifted, _TABLES_OPEN))
    return fragment(shown, _more(len(found), len(lines), "; report.json has all"))


def _more(count: int, shown: int, where: str = "") -> Html:
    return element("p", f"The first {shown:,} of {count:,}{where}.") if count > shown else Html("")


def _table(each: Table) -> Sequence[Content | Figure]:
    same = each.leader_checksum == each.follower_checksum
    checksum = each.leader_checksum if same else f"{each.leader_checksum} ≠ {each.follower_checksum}"
    sign = element("span", "✗ drift", class_="bad") if drifted_in(each) else element("span", "✓", class_="good")
    drift = [Figure(f"{count:,}", count > 0) for count in (each.missing, each.extra, each.different)]
    name = code(f"{each.database}.{each.table}")
    return (sign, name, each.leader_rows, each.follower_rows, *drift, code(checksum))


def schema(audit: Audit) -> Html:
    """Tables, views, routines and databases that other statements made than on the leader."""
    lines = [(code(object_name(each)), each.cause, element("bdi", cut(each.evidence))) for each in audit.schema]
    return fragment(table(("what", "cause", "evidence"), lines), _more(audit.schema_drift, len(lines)))


def foreign(audit: Audit) -> Html:
    """Writes that did not come from the leader: when, and the first of them one by one."""
    if not audit.foreign_writes:
        return Html("")
    told = f"{counted(audit.foreign_writes, 'transaction')} of the follower did not come from the leader"
    head = ("committed (UTC)", "transaction", "binlog position", "rows", "tables", "statement")
    lines = [
        (element("time", clock(each.ts_us)), code(each.transaction), code(f"{each.file}:{each.position}"), each.rows,
         code(", ".join(each.tables)), element("code", cut(each.statement or "")))
        for each in audit.foreign
    ]  # fmt: skip
    more = _more(audit.foreign_writes, len(lines))
    return fragment(element("p", f"{told}."), _time_line(audit, told), partly(head, lines, _WRITES_OPEN), more)


def _time_line(audit: Audit, told: str) -> Html:
    first_us, last_us = audit.follower.first_us, audit.follower.last_us
    if first_us is None or last_us is None:
        return Html("")
    plot = time_line(audit.foreign_over_time, told, first_us=first_us, last_us=last_us)
    return element("div", plot, class_="scroll")


def skipped(audit: Audit) -> Html:
    """What an operator let the follower do without."""
    lines = [(each.sequence, code(excerpt(each.statement)), element("bdi", cut(each.note))) for each in audit.skipped]
    return table(("sequence", "what", "why"), lines)


def breaks(audit: Audit) -> Html:
    """Where a topic is not the stream that its producer promises."""
    lines = [(each.side, each.kind, code(each.partition), each.offset, cut(each.detail)) for each in audit.breaks]
    return table(("side", "kind", "partition", "offset", "what"), lines)


def discontinued(audit: Audit) -> Html:
    """Rows that were changed while a binlog was off, or before the topic began."""
    lines = [
        (each.side, code(f"{each.database}.{each.table}"), code(_identity(each.identity)), each.times,
         code(place(each.last)), "" if each.partition is None else code(f"{each.partition}, offset {each.offset}"))
        for each in audit.discontinued
    ]  # fmt: skip
    return table(("side", "table", "row", "times", "last at", "in Kafka"), lines)


def _identity(values: dict[str, str]) -> str:
    return ", ".join(f"{name}={value_text(value)}" for name, value in sorted(values.items()))
