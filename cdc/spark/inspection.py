"""Inspects each stream by itself, before both are compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame

from cdc.model.gtid import StatementSequences
from cdc.spark.ddl.definitions import is_skip
from cdc.spark.ddl.late_capture import LateCapture
from cdc.spark.ddl.lineage import Act
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import in_one_part, run_batched, set_tiny
from cdc.spark.job.session import configure_for, log_stage
from cdc.spark.lag import Commits, commits
from cdc.spark.state.coverage import Held, lines_read
from cdc.spark.streams.consumer_notes import ledger, parked
from cdc.spark.streams.contents import Contents, joined, statements, survey
from cdc.spark.streams.integrity import Earlier, Integrity, integrity, lost_chunks
from cdc.spark.streams.preconditions import Preconditions
from cdc.spark.streams.transactions import IdRange, all_new, id_ranges, transactions
from cdc.spark.streams.watermark import BaseCopy, Watermark, base_copy_of, unlogged_gap, unreached, watermark
from cdc.spark.streams.watermark import joined as joined_watermarks
from cdc.spark.topics import Replication, Topics

__all__ = ["Streams", "inspected", "preconditions"]


@dataclass(frozen=True, slots=True)
class Streams:
    """Both streams: the fields ``new_…`` describe the records that this audit read, the other fields also include the
    records of earlier audits.

    ``records`` are the new records and the earlier records that the state keeps, which are statements and the
    consumer's notes. By side, ``acts`` are the effects of statements, and ``skipped_events`` are the possible effects
    of events that a producer skipped. ``not_run`` contains the leader's records that the follower did not apply: the
    keys are their sequences, the values are their states in the ledger; ``sequences`` finds the leader's statements
    that the follower ran. For the new transactions, ``unreached`` shows where the follower's log lacks transactions
    (``streams.watermark``), ``committed`` describes the leader's commits, and ``ids``, which are read only with a
    state, are the transactions' ids. ``base_copy`` is the dump that the follower began with; None if the follower
    began empty. ``acts``, ``skipped_events`` and ``copy_ends`` contain only effects after the base copy. ``copy_ends``
    are the beginnings and ends of the leader's table copies, and the tables that the follower has parked. ``late``
    describes a capture that began after the consumer and has copied tables of the follower; None for any other.
    """

    new_records: DataFrame
    new_transactions: DataFrame
    new_contents: Mapping[str, Contents]
    records: DataFrame
    transactions: DataFrame
    contents: Mapping[str, Contents]
    watermark: Watermark
    acts: Mapping[str, list[Act]]
    skipped_events: Mapping[str, list[Act]]
    not_run: Mapping[int, str]
    sequences: StatementSequences
    unreached: tuple[int, int] | None
    committed: Commits
    ids: list[IdRange] | None = None
    base_copy: BaseCopy | None = None
    copy_ends: list[Act] = field(default_factory=list)
    late: LateCapture | None = None

    @property
    def new_size(self) -> int:
        """The number of new records."""
        return sum(each.records for each in self.new_contents.values())

    @property
    def new_rows(self) -> int:
        """The number of rows in the new records."""
        return sum(each.rows for each in self.new_contents.values())

    @property
    def last_whole(self) -> int:
        """The sequence of the last record in the follower's last complete transaction."""
        open_from = self.watermark.open_from
        return self.contents[FOLLOWER].end if open_from is None else open_from - 1


def inspected(topics: Topics, replication: Replication, *, for_state: bool = False) -> Streams:
    """Inspects both streams, and configures Spark for the number of new records. ``for_state`` is true if a state will
    be kept."""
    new, held = topics.records, topics.held
    # The records are not put into one part yet, so that two tasks can read and parse the two topics at the same time.
    everything = new.unionByName(held.records) if held else new
    resource = replication.resource
    new_contents, notes, all_acts, waiting = run_batched(
        survey(new), ledger(everything, resource), statements(everything), parked(everything, resource)
    )
    new, size = _configured(new, new_contents, held)
    contents = joined(held.contents, new_contents) if held else new_contents
    ends = {side: each.end for side, each in contents.items()}
    records = in_one_part(new.unionByName(held.records)) if held else new
    sequences = StatementSequences(resource, notes.numbered)
    of_ids = [partial(id_ranges, records=size)] if held or for_state else []
    new_transactions, (found, unreached_starts, committed, *ids) = transactions(
        new, sequences=sequences, ends=ends, queries=(watermark, unreached, commits, *of_ids)
    )
    all_transactions = in_one_part(new_transactions.unionByName(held.transactions)) if held else new_transactions
    mark = joined_watermarks(held.mark, found) if held else found
    late = _late_capture(mark, contents, all_acts.get(FOLLOWER, []))
    # A late capture has copied all rows of a table, whatever the base copy contained.
    base_copy = None if late else _base_copy(records, all_transactions, contents, resource)
    acts = {side: _behind(those, base_copy, side) for side, those in all_acts.items()}
    acts[LEADER] = [*acts.get(LEADER, []), *waiting]
    return Streams(
        new_records=new,
        new_transactions=new_transactions,
        new_contents=new_contents,
        records=records,
        transactions=all_transactions,
        contents=contents,
        watermark=mark,
        unreached=unreached_starts,
        committed=committed,
        ids=ids[0] if ids else None,
        acts={side: [act for act in those if not (is_skip(act) or act.is_of_copy)] for side, those in acts.items()},
        skipped_events={side: [act for act in those if is_skip(act)] for side, those in acts.items()},
        not_run=notes.not_run,
        sequences=sequences,
        base_copy=base_copy,
        copy_ends=[act for act in acts.get(LEADER, []) if act.is_of_copy],
        late=late,
    )


def _late_capture(mark: Watermark, contents: Mapping[str, Contents], acts: list[Act]) -> LateCapture | None:
    """Returns the capture if it began after the consumer, and has copied tables; ``acts`` are those of the follower."""
    if mark.begins is None or mark.begins < 0 or mark.settled is None or not contents[FOLLOWER].chunks:
        return None
    return LateCapture(mark.begins, mark.settled, [act for act in acts if act.is_of_copy])


def _configured(new: DataFrame, contents: Mapping[str, Contents], held: Held | None) -> tuple[DataFrame, int]:
    """Returns the ``new`` records, in one part if they are few, and their number. Configures Spark for their number,
    and for the part of ``held`` that is read.
    """
    records, rows = sum(each.records for each in contents.values()), sum(each.rows for each in contents.values())
    before = lines_read(held, rows) if held else 0
    configure_for(new.sparkSession, records, rows=rows)
    set_tiny(new.sparkSession, records=records + before, rows=rows + before, read=new)
    log_stage("checking both streams", records=records, rows=rows)
    return in_one_part(new), records


def _base_copy(
    records: DataFrame, transactions: DataFrame, contents: Mapping[str, Contents], resource: str
) -> BaseCopy | None:
    """Returns the dump that the follower began with; None if the follower began empty."""
    has_chunks = LEADER in contents and contents[LEADER].chunks
    copied = FOLLOWER in contents and contents[FOLLOWER].copied
    base_copy = base_copy_of(records, resource) if copied else None
    return base_copy.among(transactions) if base_copy and has_chunks else base_copy


def _behind(acts: list[Act], base_copy: BaseCopy | None, side: str) -> list[Act]:
    """Returns the ``acts`` of one side whose effects the base copy, if any, does not contain already."""
    return [act for act in acts if base_copy is None or not base_copy.holds(act, side)]


def preconditions(streams: Streams, topics: Topics, replication: Replication) -> Preconditions:
    """Collects the facts that are checked before the streams are compared."""
    return Preconditions(
        profiles=replication.profiles,
        sequences=streams.sequences,
        scope=replication.scope,
        renames=replication.renames,
        contents=streams.contents,
        acts=streams.acts,
        limits={side: span.limit for side, span in topics.spans.items()},
        watermark=streams.watermark,
        integrity=_integrity(streams, topics.held, replication),
        gap=_gap(streams, topics.held),
        late=streams.late is not None,
    )


def _integrity(streams: Streams, held: Held | None, replication: Replication) -> Integrity:
    found = _breaks(streams, held, replication)
    if streams.copy_ends:
        acts = [*streams.acts.get(LEADER, []), *streams.copy_ends]
        after = streams.base_copy.upto if streams.base_copy else -1
        found = found.with_more(lost_chunks(streams.records, acts, side=LEADER, after=after))
    if streams.late:
        acts = [*streams.acts.get(FOLLOWER, []), *streams.late.copies]
        found = found.with_more(lost_chunks(streams.records, acts, side=FOLLOWER))
    return found


def _breaks(streams: Streams, held: Held | None, replication: Replication) -> Integrity:
    return integrity(
        streams.new_records,
        streams.new_transactions,
        streams.new_contents,
        {side: profile.mysql_resource_name for side, profile in replication.profiles.items()},
        earlier=Earlier(held.next, None if all_new(held.ids, streams.ids) else held.transactions) if held else None,
        incomplete=bool(streams.watermark.torn),
    )


def _gap(streams: Streams, held: Held | None) -> tuple[int, int] | None:
    begins = streams.watermark.begins
    if begins is None or streams.unreached is None:
        return None
    low, high = streams.unreached
    # Nearly all audits return here. The queries below cost two jobs, or four with a state.
    if high <= begins or (held and low == high == held.mark.sequence):
        return None
    # Earlier transactions have no gap, so only the new transactions are searched, from the position that the earlier
    # transactions reached. If there is a gap, the checkpoint may have been moved back to an earlier position: then all
    # transactions are searched.
    if held and unlogged_gap(streams.new_transactions, begins=begins, reached=held.mark.sequence) is None:
        return None
    return unlogged_gap(streams.transactions, begins=begins)
