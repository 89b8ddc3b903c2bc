"""Builds the document of an audit from its outcome: each section is built once, for both the page and the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from cdc.spark.compare.row_drift import DriftedRow, evenly
from cdc.spark.compare.tally import Table as CountedTable
from cdc.spark.ddl.definitions import CAUSE, EMPTIED
from cdc.spark.ddl.table_copies import UnderCopy
from cdc.spark.lag import STAGES, WHOLE, Lag, Quantiles
from cdc.spark.report.document import (
    Block,
    Cell,
    Column,
    Command,
    Comparison,
    Difference,
    Document,
    Figure,
    Paragraph,
    Section,
    Table,
)
from cdc.spark.report.files import FOREIGN, HTML, PARQUET
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
    not_compared,
    not_found,
    object_name,
    row_notes,
    verdict_sentence,
)
from cdc.spark.report.plots import QUANTILES, Point, histogram, over_time, points, time_line
from cdc.spark.report.printable import Cut, clock, cut, differing, duration, moment, value_text
from cdc.spark.state.folder import PastVerdict
from cdc.sql.tokens import excerpt

__all__ = ["EXPLAINED", "document"]

_SIGNS = {"no drift": "✓", "drift": "✗", "could not judge": "?"}
_STATUS = ("no drift", "drift", "could not judge")
_DRAWN = 1_000  # number of verdicts that the plot shows
_ON_TERMINAL = 10  # rows of a section that the terminal shows
_TABLES_ON_TERMINAL = 30
_OPENED = 20  # rows that the page shows before the reader opens the rest
_TABLES_SHOWN = 10_000
_ACCEPTED_SHOWN = 2_000  # characters
_VALUE_ON_TERMINAL = 60  # characters
_COLUMNS_SHOWN = 12
_LAG_TABLES_OPENED, _LAG_TABLES_SHOWN = 10, 200
EXPLAINED = {
    "leader to Kafka": "from the leader's commit to its record in Kafka",
    "Kafka to follower": "from the record in Kafka to the follower's commit",
    "follower to Kafka": "from the follower's commit to the follower's own record in Kafka",
    WHOLE: "from the leader's commit to the follower's commit",
}


def document(audit: Audit, verdicts: Sequence[PastVerdict] = ()) -> Document:
    """Builds the whole report. ``verdicts`` are the verdicts of all audits on the same state, including ``audit``,
    oldest first.
    """
    more = " Everything above is also in report.json"
    rows = f"; {PARQUET} has all drifted rows" if audit.drifted_rows else ""
    return Document(
        title=f"{audit.verdict}: {audit.follower.resource} as a copy of {audit.leader.resource}",
        verdict=audit.verdict,
        sign=_SIGNS[audit.verdict],
        sequence=audit.sequence,
        sentence=verdict_sentence(audit),
        reasons=audit.why,
        not_compared=list(not_compared(audit)),
        not_found=not_found(audit),
        sections=[
            _verdicts(verdicts),
            _compared(audit),
            _tables(audit.tables),
            _accepted(audit),
            _under_copy(audit),
            _schema(audit),
            _drifted(audit),
            _foreign(audit),
            _skipped(audit),
            _breaks(audit),
            _discontinued(audit),
            *([_lag(audit.lag)] if audit.lag else []),
        ],
        footer=f"Audited at {audit_time(audit)}. Exit status {audit.exit_status}.{more}{rows}.",
    )


def _number(number: int) -> Cell:
    return Cell(f"{number:,}")


def _more(count: int, shown: int, where: str = "") -> str:
    """Returns a note that only the first ``shown`` of ``count`` items are listed; empty if all items are listed."""
    return f"The first {shown:,} of {count:,}{where}." if count > shown else ""


def _verdicts(verdicts: Sequence[PastVerdict]) -> Section:
    """Builds the section with the number of rows and definitions that differed at each audit; empty for a
    single audit.
    """
    title = "Verdicts so far"
    if len(verdicts) < 2:
        return Section(title)
    drawn = verdicts[-_DRAWN:]
    counts = [sum(each.exit_status == status for each in drawn) for status in range(len(_STATUS))]
    by_status = ", ".join(f"{name} {count:,}" for name, count in zip(_STATUS, counts, strict=True) if count)
    label = f"{counted(len(drawn), 'audit')} on this state: {by_status}"
    return Section(title, [Paragraph(f"{label}."), Figure([points([_point(each) for each in drawn], label)])])


def _point(verdict: PastVerdict) -> Point:
    at_us = int(datetime.fromisoformat(verdict.at).timestamp() * 1e6)
    differ = verdict.drifted_rows + verdict.schema_drift
    sequence = "" if verdict.sequence is None else f" at sequence {verdict.sequence:,}"
    accepted = f", {verdict.accepted:,} accepted" if verdict.accepted else ""
    title = f"{moment(at_us)}: {_STATUS[verdict.exit_status]}{sequence}: {differ:,} drifted{accepted}"
    return at_us, differ, ("good", "bad", "doubt")[verdict.exit_status], title


def _compared(audit: Audit) -> Section:
    """Builds the section on both topics: their servers, the records that were read, and the commit times of these
    records.
    """
    headings = ("", "server", "topic", "records", "sequences", "committed", "newest commit log entry")
    rows, lines = [], []
    for side, topic in (("leader", audit.leader), ("follower", audit.follower)):
        times, age = commit_times(topic), commit_log_age(audit, side)
        sequences = "none" if topic.last is None else f"{topic.first:,} to {topic.last:,}"
        rows.append(
            (Cell(side), Cell(topic.resource, "name"), Cell(topic.topic, "name"), _number(topic.records),
             Cell(sequences), Cell(times), Cell(age))
        )  # fmt: skip
        sequences = "" if topic.last is None else f", sequence {topic.first} to {topic.last}"
        lines.append(f"  {side} {topic.resource}: topic {topic.topic}, {topic.records} records{sequences}, {times}")
        lines.append(f"    newest entry of its commit log: {age}")
    if waiting := backlog(audit):
        lines.append(f"  {waiting}")
    note = f"Read at {audit_time(audit)}, without a query to either server."
    if audit.sequence is not None:
        newest = f"Compared at the leader's sequence {audit.sequence:,}, the newest that the follower had applied."
        note = f"{newest} {waiting} {note}"
    topics = Table([Column(each, number=each == "records") for each in headings], rows)
    title = "What was read" if audit.reasons else "What was compared"
    return Section(title, [Paragraph(note), topics, *_offsets(audit)], lines)


def _offsets(audit: Audit) -> Iterator[Table]:
    """Yields a table with the range of offsets that was read from each partition."""
    rows = [
        (Cell(name, "name"), _number(first), _number(end - 1))
        for topic in (audit.leader, audit.follower)
        for name, (first, end) in topic.offsets.items()
        if end > first
    ]
    if rows:
        columns = Column("partition"), Column("first", number=True), Column("last", number=True)
        yield Table(columns, rows, summary=f"Offsets of {counted(len(rows), 'partition')}")


def _tables(found: Sequence[CountedTable]) -> Section:
    """Builds the section on the compared tables; it lists drifted tables first, up to a limit."""
    if not found:
        return Section("Tables")
    ordered = drifted_first(list(found))
    shown = ordered[:_TABLES_SHOWN]
    opened = _OPENED + min(sum(map(has_drift, shown)), _OPENED)
    counts = ("rows leader", "rows follower", "missing", "extra", "different")
    columns = [
        Column(""),
        Column("table", terminal="  table"),
        *(Column(each, number=True, terminal=each) for each in counts),
        Column("checksum"),
    ]
    note = _more(len(found), len(shown), "; report.json has all")
    table = Table(columns, [_counts(each) for each in shown], opened, note=note)
    lines: list[str | Table] = [Table(columns, table.rows[:_TABLES_ON_TERMINAL])]
    if rest := ordered[_TABLES_ON_TERMINAL:]:
        more = f"{counted(len(rest), 'more table')}, {sum(map(has_drift, rest)):,} of them with drift"
        lines.append(f"  … {more}, see {HTML} in the report")
    return Section("Tables", [table], lines)


def _counts(each: CountedTable) -> Sequence[Cell]:
    """Builds the row for one table in the list of compared tables."""
    same = each.leader_checksum == each.follower_checksum
    checksum = each.leader_checksum if same else f"{each.leader_checksum} ≠ {each.follower_checksum}"
    sign = Cell("✗ drift", "bad") if has_drift(each) else Cell("✓", "good")
    name = f"{each.database}.{each.table}"
    return (
        sign,
        Cell(name, "name", terminal=f"{'✗' if has_drift(each) else ' '} {name}"),
        _number(each.leader_rows),
        _number(each.follower_rows),
        *(Cell(f"{count:,}", "notable" if count else "") for count in (each.missing, each.extra, each.different)),
        Cell(checksum, "name"),
    )


def _accepted(audit: Audit) -> Section:
    """Builds the section on the entries of ``--accept``, and the drift that each entry has removed from the verdict."""
    rows, lines = [], []
    for each in audit.accepted:
        what, drift = ", ".join(each.what), accepted_drift(each)
        rows.append(
            (Cell(what), Cell(each.name, "name"), Cell(cut(each.reason)), Cell(each.until or ""),
             Cell(cut(drift, _ACCEPTED_SHOWN)))
        )  # fmt: skip
        until = f", until {each.until}" if each.until and not each.expired else ""
        lines.append(f"accepted ({each.reason}{until}): {what} of {each.name}: {drift}")
    columns = [Column(each) for each in ("accepted", "of", "why", "until", "what differs")]
    return _listed("Accepted, and no part of the verdict", Table(columns, rows, _OPENED), lines)


def _listed(title: str, table: Table, lines: Sequence[str | Table] = ()) -> Section:
    """Builds a section with one table; a table without rows is left out."""
    return Section(title, [table] if table.rows else [], lines)


def _state(table: UnderCopy) -> str:
    if table.parked is not None:
        return f"parked since sequence {table.parked:,}"
    if table.late is not None:
        return table.late
    return "its copy has to begin" if table.began is None else f"being copied since sequence {table.began:,}"


def _under_copy(audit: Audit) -> Section:
    """Builds the section on tables whose copy is not complete, and on those that a late capture does not make
    comparable. It has no lines for the terminal, where the reasons of the verdict or another sentence name them.
    """
    rows = [
        (Cell(f"{each.database}.{each.table}", "name"),
         Cell(_state(each)))
        for each in audit.under_copy[:_TABLES_SHOWN]
    ]  # fmt: skip
    note = _more(len(audit.under_copy), len(rows), "; report.json has all")
    table = Table([Column("table"), Column("state")], rows, _OPENED, note=note)
    kinds = {
        "being copied": any(each.parked is None and each.late is None for each in audit.under_copy),
        "parked": any(each.parked is not None for each in audit.under_copy),
        "not whole in both topics": any(each.late is not None for each in audit.under_copy),
    }
    title = " or ".join(kind for kind, is_there in kinds.items() if is_there)
    return _listed(f"{title[:1].upper()}{title[1:]}, not compared yet: {len(audit.under_copy):,}", table)


def _schema(audit: Audit) -> Section:
    """Builds the section on tables, views, routines and databases that are defined differently on the two sides."""
    rows, lines = [], []
    for each in audit.schema:
        rows.append((Cell(object_name(each), "name"), Cell(each.cause), Cell(cut(each.evidence), "foreign")))
        how = "may differ from the leader's" if each.cause in (CAUSE, EMPTIED) else "is not defined as on the leader"
        lines.append(f"{object_name(each)} {how}: {each.cause}: {each.evidence}")
    lines = lines[:_ON_TERMINAL]
    if audit.schema_drift > _ON_TERMINAL:
        lines.append(f"… {audit.schema_drift:,} in all are not defined as on the leader")
    table = Table(
        [Column("what"), Column("cause"), Column("evidence")], rows, note=_more(audit.schema_drift, len(rows))
    )
    return _listed(f"Not defined as on the leader: {audit.schema_drift:,}", table, lines)


def _drifted(audit: Audit) -> Section:
    """Builds the section on drifted rows: a table of all causes, and the rows that the report lists, each with its
    cause.
    """
    title = f"Drifted rows: {audit.drifted_rows:,}"
    causes = sorted(audit.drifted_by_cause.items(), key=lambda item: -item[1])
    lines: list[str | Table] = []
    if causes:
        lines.append(f"drifted rows by cause: {', '.join(f'{cause} {count:,}' for cause, count in causes)}")
    shown = [audit.drifted[at] for at in evenly([(row.database, row.table) for row in audit.drifted], _ON_TERMINAL)]
    for row in shown:
        lines += _row_lines(row)
    if audit.drifted_rows > sum(row.rows for row in shown):
        lines.append(f"… {audit.drifted_rows:,} drifted rows in all, see {PARQUET} in the report")
    if not audit.drifted:
        return Section(title, [], lines)
    rows = [(Cell(cause), _number(count)) for cause, count in causes]
    blocks: list[Block] = [Table([Column("cause"), Column("rows", number=True)], rows)] if rows else []
    if audit.repair:
        # The repair command comes before the rows, which may be many.
        how = "through the stream (with --dry-run it only shows what it would do):"
        blocks += [Paragraph(f"To have them copied again from the leader, {how}"), Command(audit.repair)]
    listed = sum(row.rows for row in audit.drifted)
    if listed < audit.drifted_rows:
        some = f"{listed:,} of {audit.drifted_rows:,}, some of each table"
        blocks.append(Paragraph(f"{some}; {PARQUET} has all of them."))
    return Section(title, [*blocks, *map(_difference, audit.drifted)], lines)


def _difference(row: DriftedRow) -> Difference:
    """Builds a drifted row with its columns: first the key's columns and the columns that differ; equal columns beyond
    a limit are only counted.
    """
    names = list(dict.fromkeys([*row.identity, *row.columns, *(row.leader_image or {}), *(row.follower_image or {})]))
    shown = [name for at, name in enumerate(names) if at < _COLUMNS_SHOWN or name in row.columns]
    leader, follower = binlog_position(row.leader_last), binlog_position(row.follower_last)
    return Difference(
        row.kind,
        f"{row.database}.{row.table}",
        row.cause,
        row.evidence,
        list(row_notes(row)),
        [_comparison(row, name) for name in shown],
        len(names) - len(shown),
        f"Last change on the leader: {leader}; on the follower: {follower}.",
    )


def _comparison(row: DriftedRow, name: str) -> Comparison:
    differs = name in row.columns
    sides = _differing(row, name) if differs else (_value(row, "leader", name), _value(row, "follower", name))
    return Comparison(name, *sides, differs=differs, key=row.keyed and name in row.identity)


def _differing(row: DriftedRow, name: str) -> tuple[Cut, Cut]:
    one, other = (value_text((image or {}).get(name)) for image in (row.leader_image, row.follower_image))
    return differing(one, other)


def _value(row: DriftedRow, side: str, name: str) -> Cut | None:
    image = row.leader_image if side == "leader" else row.follower_image
    if image is None and row.kind == ("missing" if side == "leader" else "extra"):
        image = row.identity  # the row is older than the topic, and the topic contains only its key
    return None if image is None else Cut(cut(value_text(image.get(name))), "", "")


def _row_lines(row: DriftedRow) -> Iterator[str]:
    """Yields the lines of a drifted row, with its cause and the values that differ; long values are shortened to the
    part that differs.
    """
    count = f" ({row.rows} times)" if row.rows > 1 else ""
    identity = (f"{name}={cut(value_text(text), _VALUE_ON_TERMINAL)}" for name, text in row.identity.items())
    yield f"{row.kind}{count} in {row.database}.{row.table}: {', '.join(identity)}"
    yield f"  {row.cause}: {row.evidence}"
    yield from (f"  {note}" for note in row_notes(row))
    if row.kind == "different":
        parts = {name: _differing(row, name) for name in row.columns}
        for at, side in enumerate(("leader  ", "follower")):
            values = (f"{name}={both[at].before}{both[at].middle}{both[at].after}" for name, both in parts.items())
            yield f"  {side} {', '.join(values)}"
    yield f"  last change: leader {binlog_position(row.leader_last)}, follower {binlog_position(row.follower_last)}"


def _foreign(audit: Audit) -> Section:
    """Builds the section on foreign writes (errant transactions, not from the leader): a plot over time, and a list of
    the first writes.
    """
    title = f"Foreign writes: {audit.foreign_writes:,}"
    if not audit.foreign_writes:
        return Section(title)
    rows, lines = [], []
    for each in audit.foreign:
        where, tables = f"{each.file}:{each.position}", ", ".join(each.tables)
        rows.append(
            (Cell(clock(each.ts_us), "time"), Cell(each.transaction, "name"), Cell(where, "name"), _number(each.rows),
             Cell(tables, "name"), Cell(each.statement or "", "code"))
        )  # fmt: skip
        what = each.statement or counted(each.rows, "row")
        lines.append(f"foreign write at {where} on the follower: {what} in {tables} ({each.transaction})")
    lines = lines[:_ON_TERMINAL]
    if audit.foreign_writes > _ON_TERMINAL:
        lines.append(f"… {audit.foreign_writes:,} foreign writes in all, see {FOREIGN} in the report")
    label = f"{counted(audit.foreign_writes, 'transaction')} of the follower did not come from the leader"
    headings = ("committed (UTC)", "transaction", "binlog position", "rows", "tables", "statement")
    columns = [Column(each, number=each == "rows") for each in headings]
    table = Table(columns, rows, _OPENED, note=_more(audit.foreign_writes, len(rows), f"; {FOREIGN} has all"))
    return Section(title, [Paragraph(f"{label}."), *_foreign_over_time(audit, label), table], lines)


def _foreign_over_time(audit: Audit, label: str) -> Iterator[Figure]:
    """Yields a plot of the number of foreign writes over the time that the follower's topic covers."""
    first_us, last_us = audit.follower.first_us, audit.follower.last_us
    if first_us is not None and last_us is not None:
        yield Figure([time_line(audit.foreign_over_time, label, first_us=first_us, last_us=last_us)])


def _skipped(audit: Audit) -> Section:
    """Builds the section on the leader's records that an operator skipped on the follower."""
    rows, lines = [], []
    for each in audit.skipped:
        what = excerpt(each.statement)
        rows.append((_number(each.sequence), Cell(what, "name"), Cell(cut(each.note), "foreign")))
        lines.append(f"skipped on the follower by an operator: sequence {each.sequence}: {what} ({each.note})")
    columns = Column("sequence", number=True), Column("what"), Column("why")
    return _listed("Skipped on the follower by an operator", Table(columns, rows), lines[:_ON_TERMINAL])


def _breaks(audit: Audit) -> Section:
    """Builds the section on the places at which a topic is not the complete, ordered stream that a producer writes."""
    rows, lines = [], []
    for each in audit.breaks:
        rows.append(
            (Cell(each.side), Cell(each.kind), Cell(each.partition, "name"), _number(each.offset),
             Cell(cut(each.detail)))
        )  # fmt: skip
        where = f"{each.partition}, offset {each.offset}"
        lines.append(f"{each.kind} in the stream of the {each.side}: {each.detail} ({where})")
    headings = ("side", "kind", "partition", "offset", "what")
    columns = [Column(each, number=each == "offset") for each in headings]
    return _listed("Breaks in the streams", Table(columns, rows), lines[:_ON_TERMINAL])


def _discontinued(audit: Audit) -> Section:
    """Builds the section on rows with a before image that does not match their previous image: a client changed these
    rows with the binlog off.
    """
    rows = [
        (Cell(each.side), Cell(f"{each.database}.{each.table}", "name"), Cell(_identity(each.identity), "name"),
         _number(each.times), Cell(binlog_position(each.last), "name"),
         Cell("") if each.partition is None else Cell(f"{each.partition}, offset {each.offset}", "name"))
        for each in audit.discontinued
    ]  # fmt: skip
    headings = ("side", "table", "row", "times", "last at", "in Kafka")
    table = Table([Column(each, number=each == "times") for each in headings], rows)
    counts = ", ".join(f"{count} on the {side}" for side, count in audit.discontinuities.items() if count)
    lines = [f"before images that do not match the row's previous image: {counts}"] if counts else []
    return _listed("Before images that do not match the row's previous image", table, lines)


def _identity(values: dict[str, str]) -> str:
    """Lists the columns that identify a row, with their values."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in values.items())


def _lag(lag: Lag) -> Section:
    """Builds the section on the lag: the quantiles of each stage, its plots, and the slowest tables."""
    transactions = counted(lag.transactions, "transaction")
    columns = [
        Column("stage", terminal=f"lag of {transactions}"),
        Column(""),
        Column("transactions", number=True, terminal="known of"),
        *_quantile_columns(),
    ]
    rows = [
        (Cell(name, terminal=f"  {name}"), Cell(EXPLAINED[name]), *_figures(stage.total))
        for name, stage in lag.stages.items()
    ]
    stages = Table(columns, rows)
    period = (
        f"{counted(lag.transactions, 'leader transaction')}, committed {moment(lag.first_us)} to {moment(lag.last_us)}."
    )
    figures = (_stage_figure(lag, name) for name in lag.stages)
    caveats = Paragraph(_caveats(lag), dim=True)
    blocks: list[Block] = [Paragraph(period), stages, caveats, *figures, _slowest_tables(lag)]
    return Section("How long transactions took", blocks, [stages])


def _quantile_columns() -> Iterable[Column]:
    return (Column(name, number=True, terminal=name) for name in QUANTILES)


def _figures(quantiles: Quantiles) -> Sequence[Cell]:
    times = (Cell(duration(getattr(quantiles, f"{name}_us"))) for name in QUANTILES)
    return _number(quantiles.transactions), *times


def _caveats(lag: Lag) -> str:
    """Writes a note about the limits of the figures: clocks may differ, and some times may be unknown."""
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


def _stage_figure(lag: Lag, name: str) -> Figure:
    """Draws the histogram of a stage, and its quantiles over time."""
    stage = lag.stages[name]
    drawings = (
        histogram(stage, name),
        over_time(stage, name, first_us=lag.first_us, last_us=lag.last_us, stretch_us=lag.stretch_us),
    )
    return Figure(drawings, f"{name}, {EXPLAINED[name]}")


def _slowest_tables(lag: Lag) -> Table:
    """Builds the table of the quantiles of each table; the slowest tables are first."""
    others = [name for name in STAGES if name != WHOLE]
    columns = [
        Column("table"),
        Column("transactions", number=True),
        *_quantile_columns(),
        *(Column(f"p95 {name}", number=True) for name in others),
    ]
    rows = []
    for each in lag.tables[:_LAG_TABLES_SHOWN]:
        known = (each.stages.get(name) for name in others)
        p95 = (Cell(duration(stage.p95_us) if stage else "") for stage in known)
        rows.append((Cell(each.table, "name"), *_figures(each.stages[WHOLE]), *p95))
    return Table(
        columns, rows, _LAG_TABLES_OPENED, heading=f"By table, {WHOLE}: the slowest of {lag.tables_seen:,} first"
    )
