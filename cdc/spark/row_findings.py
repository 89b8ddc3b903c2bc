"""Row findings: from compared rows, the section of the audit's outcome on those that differ, and which are accepted."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdc.service.private_files import write_lines
from cdc.spark.compare.accepted_rows import with_entries
from cdc.spark.compare.row_drift import (
    Discontinuity,
    DriftedRow,
    discontinuities,
    drifted_rows,
    key_lines,
    with_last_changes,
    with_offsets,
)
from cdc.spark.compare.samples import sampled
from cdc.spark.compare.tally import Table
from cdc.spark.comparison import Comparison, Extent
from cdc.spark.ddl.accepted_drift import Entry
from cdc.spark.ddl.definitions import SchemaDrift, Unmatched
from cdc.spark.ddl.lineage import Name
from cdc.spark.ddl.not_replicated import NOT_REPLICATED
from cdc.spark.folders.local import LocalFolder
from cdc.spark.input.questions import Question, answers
from cdc.spark.inspection import Streams
from cdc.spark.report.files import KEYS, PARQUET
from cdc.spark.report.outcome import AcceptedDrift, NotReplicated
from cdc.spark.report.phrases import object_name
from cdc.spark.state.parquet_check import write

__all__ = ["AcceptedFindings", "AcceptedRows", "RowFindings", "row_findings"]

_LISTED = 100  # of each list in the report
_MOST_KEYS = 100_000  # that are listed for cdc-repair: of a table with more it asks for all rows

AcceptedRows = Mapping[int, Mapping[Name, Mapping[str, int]]]
"""How many rows of each kind are accepted, by the number of the entry and the table; or not replicated."""


@dataclass(frozen=True, slots=True)
class RowFindings:
    """The section on rows that differ."""

    tables: list[Table]
    drifted_rows: int = 0
    drifted_by_cause: dict[str, int] = field(default_factory=dict)
    drifted: list[DriftedRow] = field(default_factory=list)
    discontinuities: dict[str, int] = field(default_factory=dict)
    discontinued: list[Discontinuity] = field(default_factory=list)

    def with_older(self, tables: Collection[Name]) -> Self:
        """The section; ``tables`` are those that may have rows from before the topics."""
        return replace(self, tables=[replace(each, older=each.name in tables) for each in self.tables])


@dataclass(frozen=True, slots=True)
class AcceptedFindings:
    """The section on drift that is accepted."""

    accepted: list[AcceptedDrift]
    not_replicated: list[NotReplicated]

    @classmethod
    def of(
        cls,
        entries: Sequence[Entry],
        in_force: Sequence[Entry],
        objects: Sequence[tuple[int, SchemaDrift]],
        rows: AcceptedRows,
    ) -> Self:
        """What each of the ``entries`` accepts; those that are not ``in_force`` are told as expired."""
        names = {(each.database, each.name): 0 for number, each in objects
                 if number == NOT_REPLICATED and each.kind == "Table" and each.name is not None}  # fmt: skip
        names |= {name: sum(kinds.values()) for name, kinds in rows.get(NOT_REPLICATED, {}).items()}
        left_out = [NotReplicated(*name, count) for name, count in sorted(names.items())]
        return cls(_accepted(entries, in_force, objects, rows), left_out)


def _accepted(
    entries: Sequence[Entry], in_force: Sequence[Entry], objects: Sequence[tuple[int, SchemaDrift]], rows: AcceptedRows
) -> list[AcceptedDrift]:
    return [
        AcceptedDrift(
            number=each.number,
            what=list(each.what),
            name=each.name,
            reason=each.reason,
            until=each.until.isoformat() if each.until else None,
            expired=each not in in_force,
            rows={".".join(name): sum(kinds.values()) for name, kinds in rows.get(each.number, {}).items()},
            objects=[object_name(drift) for number, drift in objects if number == each.number],
        )
        for each in entries
    ]


def row_findings(
    comparison: Comparison,
    streams: Streams,
    within: Extent,
    unmatched: Sequence[Unmatched],
    folder: Path,
    entries: Sequence[Entry],
) -> tuple[RowFindings, AcceptedRows]:
    """The section on the rows of ``comparison``, and which rows are accepted.

    All that differ are written to ``folder``. ``unmatched`` are the statements that one side lacks, which explain some
    of them. Rows that one of the ``entries`` accepts are not counted as drifted.
    """
    counted, listed = comparison.tally, comparison.listed
    found = RowFindings(list(counted.lines), counted.drifted, discontinuities=dict(counted.breaks))
    if listed is None:
        return found, {}
    sides = [side for side, count in counted.breaks.items() if count]
    broken = with_offsets(streams.records, discontinuities(listed, sides, limit=_LISTED))
    found = replace(found, discontinued=broken)
    if not counted.drifted:
        return found, {}
    drifted = drifted_rows(listed, unmatched, within.all_tables, streams.transactions)
    drifted = with_entries(drifted, counted.lines, entries)
    write(drifted, LocalFolder(folder), PARQUET, option="option --report")
    causes, samples, accepted = answers(*_questions(drifted, sum(line.drifted > 0 for line in counted.lines)))
    left_out = accepted.get(NOT_REPLICATED, {})
    tables = [_without(line, accepted) for line in counted.lines if line.name not in left_out]
    found = replace(
        found,
        tables=tables,
        drifted_rows=sum(line.drifted for line in tables),
        drifted_by_cause=causes,
        drifted=with_last_changes(streams.records, streams.transactions, samples),
    )
    if found.drifted_rows:
        write_lines(folder / KEYS, _keys(found, drifted, folder))
    return found, accepted


def _questions(drifted: DataFrame, tables: int) -> list[Question[Any]]:
    """The drifted rows that are not accepted, by cause; samples of them; and the others by entry, table and kind."""
    others = drifted.where("accepted IS NULL").drop("accepted")
    by_entry = drifted.where("accepted IS NOT NULL").groupBy("accepted", "database", "table", "kind")
    return [
        Question(
            others.groupBy("cause").agg(F.sum("rows").alias("rows")),
            lambda counts: {row["cause"]: row["rows"] for row in counts},
        ),
        Question(sampled(others, tables, most=_LISTED), lambda rows: sorted(_drifted(rows), key=_place)),
        Question(by_entry.agg(F.sum("rows").alias("rows")), _by_entry),
    ]


def _by_entry(counts: Iterable[Row]) -> AcceptedRows:
    found: dict[int, dict[Name, dict[str, int]]] = {}
    for row in sorted(counts, key=lambda row: (row["accepted"], row["database"], row["table"], row["kind"])):
        of_entry = found.setdefault(row["accepted"], {})
        of_entry.setdefault((row["database"], row["table"]), {})[row["kind"]] = row["rows"]
    return found


def _without(line: Table, accepted: AcceptedRows) -> Table:
    """A table's line, in which accepted rows do not count as drifted."""
    for number, by_table in accepted.items():
        kinds = by_table.get(line.name, {})
        more = 0 if number == NOT_REPLICATED else sum(kinds.values())
        line = replace(line, **{kind: getattr(line, kind) - rows for kind, rows in kinds.items()},
                       accepted=line.accepted + more)  # fmt: skip
    return line


def _keys(found: RowFindings, drifted: DataFrame, folder: Path) -> Iterator[str]:
    """The keys of the drifted rows that are not accepted, as JSON, one a line."""
    if found.drifted_rows <= _LISTED:
        for row in found.drifted:
            known = {"database": row.database, "table": row.table, "keyed": row.keyed, "identity": row.identity}
            yield json.dumps(known, ensure_ascii=False)
    else:
        written = drifted.sparkSession.read.parquet(LocalFolder(folder).uri(PARQUET))
        yield from key_lines(written.where("accepted IS NULL"), found.tables, most=_MOST_KEYS)


def _drifted(rows: Iterable[Row]) -> list[DriftedRow]:
    return [DriftedRow(**row.asDict(recursive=True)) for row in rows]


def _place(row: DriftedRow) -> tuple[Any, ...]:
    """Sorts as ``samples.ORDER`` does, NULLs first."""
    lasts = (each["sequence"] if each else -1 for each in (row.leader_last, row.follower_last))
    return row.database, row.table, row.kind, *lasts, row.rows
