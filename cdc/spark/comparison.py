"""Compares the rows that result from each side's stream, up to the compared sequence.

The leader's history ends at the watermark, the leader's sequence that the follower has reached. The follower's history
ends at its last complete transaction: later transactions than the one that reached the watermark did not come from the
leader, so they are compared, too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import Filters
from cdc.spark.compare.copied_tables import Copied
from cdc.spark.compare.digest_agreement import Agreement, agreement
from cdc.spark.compare.fold import carried, changes, fold, segments, without_cascades
from cdc.spark.compare.row_drift import compare, compared, fold_of, not_equal
from cdc.spark.compare.tally import Tally, tally
from cdc.spark.ddl.late_capture import NOT_LATE, LateCapture, LateTables, late_tables
from cdc.spark.ddl.lineage import Act, Beginning, Name, Segment, beginnings, lineage, named_tables, own_alters
from cdc.spark.ddl.scope import LeftOut, Scope
from cdc.spark.ddl.table_copies import TableCopy, table_copies
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import cached, in_one_part, set_tiny
from cdc.spark.inspection import Streams
from cdc.spark.job.session import configure_for
from cdc.spark.state.coverage import Held, few_touched, newest_rows, rows_of, rows_upto, searched, tables_unchanged
from cdc.spark.streams.consumer_notes import marks
from cdc.spark.streams.integrity import replacements

__all__ = ["Comparison", "Extent", "SideHistory", "Sides", "compared_rows", "extent", "histories"]


@dataclass(frozen=True, slots=True)
class Extent:
    """The part of each side that is compared: records up to ``ends``, rows of ``tables``, and effects of statements
    (``acts``).

    ``copies`` are the leader's tables that were copied into its stream, or are about to be copied; ``copy_ends`` are
    the beginnings and ends of these copies. All tables and statements here pass the consumer's filters. ``left_out``
    are the objects that the leader's producer leaves out. ``late`` is the follower's capture if it began late, and
    ``late_tables`` are the tables that it makes comparable or not.
    """

    ends: Mapping[str, int]
    tables: Mapping[str, frozenset[Name]]
    acts: Mapping[str, list[Act]]
    left_out: LeftOut
    copy_ends: list[Act] = field(default_factory=list)
    copies: Mapping[Name, TableCopy] = field(default_factory=dict)
    late: LateCapture | None = None
    late_tables: LateTables = NOT_LATE

    @property
    def all_copy_ends(self) -> Mapping[str, Sequence[Act]]:
        """The beginnings and ends of the table copies that count, by side."""
        return {LEADER: self.copy_ends, FOLLOWER: self.late.copies if self.late else ()}

    @property
    def all_tables(self) -> frozenset[Name]:
        """The tables that have rows in the leader's topic, the follower's topic, or both."""
        return self.tables[LEADER] | self.tables[FOLLOWER]


@dataclass(frozen=True, slots=True)
class SideHistory:
    """One side's ``records`` up to the last record that is compared, its tables' ``lineage``, and ``marks`` on changes
    that are not ordinary (``streams.consumer_notes``).
    """

    records: DataFrame
    lineage: Sequence[Segment]
    marks: DataFrame | None

    def segments(self, owners: Collection[Name] | None = None) -> DataFrame:
        """Builds the lineage of all tables, or only of the tables in ``owners``, for ``fold.changes`` and
        ``fold.carried``.
        """
        lineage = [each for each in self.lineage if owners is None or each.owner in owners]
        return segments(self.records.sparkSession, lineage)

    def folded(self, held: DataFrame | None = None) -> DataFrame:
        """Folds the changes of all rows; ``held`` is the fold of the earlier records."""
        lineage = self.segments()
        found = changes(self.records, lineage, self.marks)
        if held is not None:
            found = in_one_part(found.unionByName(carried(held, lineage)))
        return fold(found)

    def hashes(self) -> DataFrame:
        """Selects the hashes of the rows that were changed."""
        return changes(self.records, self.segments()).select("hash")

    def folded_where_open(self, agreed: Agreement) -> DataFrame:
        """Folds the rows that the digests in ``agreed`` did not settle; at least one row must be unsettled."""
        parts = []
        if agreed.whole:
            parts.append(changes(self.records, self.segments(agreed.whole), self.marks))
        if agreed.among is not None:
            lineage = self.segments(agreed.among_of)
            parts.append(changes(self.records, lineage, self.marks, among=agreed.among))
        return fold(parts[0] if len(parts) == 1 else in_one_part(parts[0].unionByName(parts[1])))


@dataclass(frozen=True, slots=True)
class Sides:
    """The ``records`` of both sides that are compared, and the history of each side.

    ``copied`` are the tables that were copied into the leader's stream, or are older than the stream; ``copied_before``
    are the tables for which this was already true when the state was saved.
    """

    records: DataFrame
    sides: Mapping[str, SideHistory]
    copied: Copied
    copied_before: Copied

    @property
    def perhaps_older(self) -> frozenset[Name]:
        """The leader's tables that may contain rows older than the leader's stream."""
        known = beginnings(self.sides[LEADER].lineage)
        return frozenset(name for name, beginning in known.items() if beginning is not Beginning.KNOWN)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing rows. ``rows`` are the rows that were compared one by one. ``rows`` is None if digests
    showed that all rows are equal. ``tally`` counts all rows.

    ``listed`` are the rows that the report lists; None if there are none. ``touched`` is true if ``rows`` are only the
    rows that were changed after the state was saved, or that the state lists one by one.
    """

    rows: DataFrame | None
    tally: Tally
    listed: DataFrame | None
    touched: bool


def extent(streams: Streams, scope: Scope, filters: Filters) -> Extent:
    """Determines the part of ``streams`` that is compared; ``streams`` must have a watermark. ``filters`` are those of
    the leader's producer."""
    assert streams.watermark.sequence is not None  # without a watermark, ``judge`` has returned already
    ends = {LEADER: streams.watermark.sequence, FOLLOWER: streams.last_whole}
    acts = {side: _acts_upto(streams.acts.get(side, []), end, scope) for side, end in ends.items()}
    copy_ends = _acts_upto(streams.copy_ends, ends[LEADER], scope)
    found = Extent(
        ends=ends,
        tables={side: _tables(streams, side, scope) for side in ends},
        acts=acts,
        left_out=_left_out(streams, filters),
        copy_ends=copy_ends,
        copies=table_copies([*acts[LEADER], *copy_ends]),
        late=streams.late and streams.late.upto(ends[FOLLOWER], wants=scope.wants),
    )
    return replace(found, late_tables=_late_tables(found, streams))


def _left_out(streams: Streams, filters: Filters) -> LeftOut:
    leader = streams.contents.get(LEADER)
    return LeftOut.of(filters, leader.tables if leader else (), [*streams.acts.get(LEADER, []), *streams.copy_ends])


def _late_tables(within: Extent, streams: Streams) -> LateTables:
    """Decides which tables a late capture, if there is one, makes comparable."""
    if within.late is None:
        return NOT_LATE
    return late_tables(
        within.late,
        [*within.acts[LEADER], *within.copy_ends],
        within.acts[FOLLOWER],
        tables=(within.tables[LEADER], within.tables[FOLLOWER]),
        sequences=streams.sequences,
        left_out=within.left_out.has,
    )


def _covered(within: Extent, held: Held | None) -> Extent:
    """Returns the part of ``within`` that the state ``held`` covers; without a state, nothing."""
    acts = {side: [act for act in those if _is_old(act, side, held)] for side, those in within.acts.items()}
    copy_ends = [act for act in within.copy_ends if _is_old(act, LEADER, held)]
    late = within.late and within.late.upto(held.next[FOLLOWER] - 1 if held else -1)
    copies = table_copies([*acts[LEADER], *copy_ends])
    return replace(within, acts=acts, copy_ends=copy_ends, copies=copies, late=late)


def histories(streams: Streams, within: Extent, held: Held | None, *, resource: str) -> Sides:
    """Builds both sides' histories after the state ``held``, with the lineage of all tables that exist or existed."""
    # Most audits find neither the consumer's notes nor errant transactions (foreign writes); then no join is necessary.
    noted = streams.contents[FOLLOWER].conflicts or "skipped" in streams.not_run.values()
    foreign = bool(streams.watermark.foreign)
    of_side = marks(streams.records, streams.new_transactions, resource=resource, noted=noted, foreign=foreign)
    compared = rows_upto(streams.new_records, "sequence", within.ends)
    if streams.contents[FOLLOWER].chunks and not within.late:
        compared = compared.where(f"side = '{LEADER}' OR chunk IS NULL")
    records = without_cascades(
        streams.base_copy.behind(compared) if streams.base_copy else compared,
        streams.new_transactions,
        streams.contents,
        of_side[FOLLOWER],
    )
    acts = {side: [*those, *within.all_copy_ends[side]] for side, those in within.acts.items()}
    leader = streams.new_contents.get(LEADER)
    if within.copies and leader and leader.keyless:
        acts[FOLLOWER] += replacements(streams.new_records, streams.new_transactions)
    names = {side: within.tables[side] | named_tables(those) for side, those in acts.items()}
    old, new = ({side: [act for act in those if _is_old(act, side, held) is is_old]
                 for side, those in acts.items()} for is_old in (True, False))  # fmt: skip
    before = {side: lineage(names[side], those) for side, those in old.items()}
    since = {side: lineage(names[side], those, beginnings(before[side])) for side, those in new.items()}
    began, covered = streams.base_copy is not None, _covered(within, held)
    own = own_alters(names[FOLLOWER], acts[FOLLOWER], lambda act: streams.sequences.of(act.transaction) is None)
    return Sides(
        records,
        {side: SideHistory(records.where(F.col("side") == side), since[side], of_side[side]) for side in acts},
        copied=Copied(within.copies, began, _older(since), within.late_tables, own),
        copied_before=Copied(covered.copies, began, _older(before), _late_tables(covered, streams)),
    )


def _is_old(act: Act, side: str, held: Held | None) -> bool:
    """Whether the state ``held`` knows the effect. The consumer may end the parking of a table long after the record to
    which its note belongs."""
    return held is not None and act.sequence < held.next[side] and act.noted < held.next[FOLLOWER]


def _older(lineages: Mapping[str, Sequence[Segment]]) -> frozenset[Name]:
    """Returns the tables whose beginning is in neither side's stream."""
    of_sides = [beginnings(each) for each in lineages.values()]
    names = frozenset[Name]().union(*of_sides)
    return frozenset(
        name for name in names if all(known.get(name, Beginning.OLDER) is Beginning.OLDER for known in of_sides)
    )


def compared_rows(
    both: Sides, streams: Streams, held: Held | None, *, for_state: bool, exact: bool = False
) -> Comparison:
    """Compares the rows of both histories, and of the state ``held``. ``for_state`` is true if a state needs all rows.

    If ``exact`` is true, all rows, including the rows of ``held``, are compared one by one, without digests.
    """
    touched = False
    if for_state or held or exact:
        touched = held is not None and _few_touched(both, streams, held, exact=exact)
        rows, others = _touched_rows(both, streams, held) if held and touched else _all_rows(both, held)
        rows = cached(rows)
    else:
        lineage = {side: each.lineage for side, each in both.sides.items()}
        agreed = agreement(both.records, lineage, streams.contents, both.copied)
        if agreed.complete:
            return Comparison(None, agreed.tally.plus(Tally()), None, touched)
        folds = {side: each.folded_where_open(agreed) for side, each in both.sides.items()}
        rows, others = compare(folds[LEADER], folds[FOLLOWER], both.copied), agreed.tally
    counted = others.plus(tally(rows))
    if not counted.drifted and not any(counted.breaks.values()):
        return Comparison(rows, counted, None, touched)
    # Without a state, ``rows`` are not cached, so they are computed a second time here. Few audits find rows to list,
    # and caching would make every audit slower.
    return Comparison(rows, counted, cached(not_equal(rows)), touched)


def _few_touched(both: Sides, streams: Streams, held: Held, *, exact: bool) -> bool:
    """Whether it is enough to compare the few rows that were changed after the state ``held``, since no statement and
    no copy concerns other rows. Configures Spark for the number of rows to compare.

    Never true if ``exact`` is true.
    """
    lineage = [each for history in both.sides.values() for each in history.lineage]
    names = {line.name for line in held.tally.lines} | both.copied.tables.keys()
    few = not exact and few_touched(held, streams.new_rows) and tables_unchanged(names, lineage)
    # When a copy begins, all rows of its table become uncertain; when it completes, all rows are known. So all rows are
    # compared in both cases.
    before, now = both.copied_before, both.copied
    few = few and (before.tables, before.late) == (now.tables, now.late)
    # The same holds if a CREATE shows that the stream contains the table from its beginning: then the table has no rows
    # from before the stream.
    few = few and not any((both.copied_before.older ^ both.copied.older) & names)
    # Each row that is looked up is folded on both sides. If all rows are compared, each row of the state is folded,
    # too.
    looked_up = 2 * (held.opened + streams.new_rows if few else held.rows + held.above)
    new_records = sum(each.records for each in streams.new_contents.values())
    spark = streams.new_records.sparkSession
    configure_for(spark, new_records, rows=streams.new_rows + looked_up)
    if not few:
        set_tiny(spark, records=new_records + held.covered, rows=streams.new_rows + looked_up)
    return few


def _all_rows(both: Sides, held: Held | None) -> tuple[DataFrame, Tally]:
    """Compares all rows, including the rows of ``held``; so the tally of other rows is empty."""
    return _joined(both, newest_rows(held.layers) if held else None), Tally()


def _touched_rows(both: Sides, streams: Streams, held: Held) -> tuple[DataFrame, Tally]:
    """Compares only the rows that were changed after the state ``held`` was saved, and the rows that reports list one
    by one (``Held.open``). Returns these rows and the tally of all other rows.
    """
    hashes = reduce(DataFrame.union, [each.hashes() for each in both.sides.values()], held.open)
    hashes = in_one_part(hashes).distinct()
    before = cached(rows_of(held.layers, hashes, few=searched(held, streams.new_rows)))
    return _joined(both, before), held.tally.less(tally(compared(before, both.copied)))


def _joined(both: Sides, held: DataFrame | None) -> DataFrame:
    folds = {side: each.folded(None if held is None else fold_of(held, side)) for side, each in both.sides.items()}
    return compare(folds[LEADER], folds[FOLLOWER], both.copied)


def _tables(streams: Streams, side: str, scope: Scope) -> frozenset[Name]:
    contents = streams.contents.get(side)
    return frozenset(name for name in contents.tables if scope.wants_table(*name)) if contents else frozenset()


def _acts_upto(acts: Iterable[Act], end: int, scope: Scope) -> list[Act]:
    return [act for act in acts if act.sequence <= end and scope.wants(act)]
