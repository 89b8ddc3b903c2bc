"""What both topics hold, and what is to be said of each by itself, before they are compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.model.partition import partition_name
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.spans import Span
from cdc.spark.job.session import set_for
from cdc.spark.report.outcome import Audit, Topic
from cdc.spark.schema.lineage import Act
from cdc.spark.schema.scope import Scope
from cdc.spark.state.coverage import Held
from cdc.spark.streams.consumer_notes import statements_settled
from cdc.spark.streams.contents import Contents, joined, statements, survey
from cdc.spark.streams.foreign_writes import foreign_times
from cdc.spark.streams.integrity import integrity
from cdc.spark.streams.left_out import is_skip
from cdc.spark.streams.preconditions import doubts
from cdc.spark.streams.skipped import skipped
from cdc.spark.streams.watermark import Watermark, foreign_writes, hole, transactions, watermark
from cdc.spark.streams.watermark import joined as joined_marks

__all__ = ["LISTED", "Seen", "of_streams", "seen_in"]

LISTED = 100  # of whatever the report lists


@dataclass(frozen=True, slots=True)
class Seen:
    """Both topics: what this audit read (``records``, ``new`` transactions), and that together with what was held.

    ``read`` are the contents of the former, ``contents`` of the latter. ``mark`` is how far the follower is, ``acts``
    what statements did, ``left_out`` what events did that a producer skipped, and ``settled`` says which of the
    leader's sequences the follower did without, and how its ledger calls that.
    """

    records: DataFrame
    new: DataFrame
    told: DataFrame
    transactions: DataFrame
    read: Mapping[str, Contents]
    contents: Mapping[str, Contents]
    mark: Watermark
    acts: Mapping[str, list[Act]]
    left_out: Mapping[str, list[Act]]
    settled: Mapping[int, str]

    @property
    def rows(self) -> int:
        """How many rows the records that were read have."""
        return sum(each.rows for each in self.read.values())

    @property
    def last_whole(self) -> int:
        """The follower's sequence with which its last whole transaction ends."""
        return self.contents[FOLLOWER].end if self.mark.open_from is None else self.mark.open_from - 1


def seen_in(records: DataFrame, profiles: Mapping[str, Profile], before: Held | None) -> Seen:
    """What there is in ``records``, and in those that ``before`` covers; Spark is set for the size of the former."""
    read = survey(records)
    sizes = [(each.records, each.rows) for each in read.values()]
    set_for(records.sparkSession, sum(size for size, _ in sizes), rows=sum(rows for _, rows in sizes))
    contents = joined(before.contents, read) if before else read
    ends, resource = {side: held.end for side, held in contents.items()}, profiles[LEADER].mysql_resource_name
    new = transactions(records, resource=resource, ends=ends)
    told = records.unionByName(before.records) if before else records
    noted, done = FOLLOWER in contents and contents[FOLLOWER].noted, statements(told)
    return Seen(
        records=records,
        new=new,
        told=told,
        transactions=new.unionByName(before.transactions) if before else new,
        read=read,
        contents=contents,
        mark=joined_marks(before.mark, watermark(new)) if before else watermark(new),
        acts={side: [act for act in acts if not is_skip(act)] for side, acts in done.items()},
        left_out={side: [act for act in acts if is_skip(act)] for side, acts in done.items()},
        settled=statements_settled(told, resource) if noted else {},
    )


def of_streams(
    seen: Seen,
    profiles: Mapping[str, Profile],
    spans: Mapping[str, Span],
    scope: Scope,
    renames: Renames,
    before: Held | None,
) -> Audit:
    """What is to be said of the topics by themselves, and why they can't be compared if they can't."""
    mark, acts = seen.mark, seen.acts
    resources = {side: profile.mysql_resource_name for side, profile in profiles.items()}
    sound = integrity(
        seen.records,
        seen.new,
        seen.read,
        resources,
        next_ones=before.next if before else None,
        earlier=before.transactions if before else None,
        torn=bool(mark.torn),
    )
    lost = _hole(seen, before)
    limits = {side: span.limit for side, span in spans.items()}
    reasons = doubts(
        profiles, seen.contents, mark, sound, scope=scope, renames=renames, acts=acts, lost=lost, limits=limits
    )
    return Audit(
        audited_at=datetime.now(UTC).isoformat(timespec="seconds"),
        leader=_topic(profiles[LEADER], spans[LEADER], seen.contents.get(LEADER)),
        follower=_topic(profiles[FOLLOWER], spans[FOLLOWER], seen.contents.get(FOLLOWER)),
        reasons=reasons,
        foreign_writes=mark.foreign,
        foreign=foreign_writes(seen.transactions, limit=LISTED) if mark.foreign else [],
        foreign_over_time=_foreign_times(seen.transactions, seen.contents) if mark.foreign else [],
        skipped=skipped(seen.told, resource=resources[LEADER], limit=LISTED)
        if "skipped" in seen.settled.values()
        else [],
        breaks=sound.examples,
    )


def _hole(seen: Seen, before: Held | None) -> tuple[int, int] | None:
    begins = seen.mark.begins
    if begins is None:
        return None
    # What was held has none. Of a checkpoint that somebody moved back all transactions are asked where it was before.
    if before and hole(seen.new, begins=begins, reached=before.mark.sequence) is None:
        return None
    return hole(seen.transactions, begins=begins)


def _topic(profile: Profile, span: Span, contents: Contents | None) -> Topic:
    return Topic(
        resource=profile.mysql_resource_name,
        topic=profile.kafka.topic,
        records=contents.records if contents else 0,
        first=contents.first if contents else None,
        last=contents.last if contents else None,
        first_us=contents.first_us if contents else None,
        last_us=contents.last_us if contents else None,
        offsets={partition_name(place): ends for place, ends in span.partitions.items()},
    )


def _foreign_times(transactions: DataFrame, contents: Mapping[str, Contents]) -> list[tuple[int, int, int]]:
    first_us, last_us = contents[FOLLOWER].first_us, contents[FOLLOWER].last_us
    assert first_us is not None and last_us is not None  # there are foreign writes
    return foreign_times(transactions, first_us=first_us, last_us=last_us)
