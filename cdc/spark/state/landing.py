"""Lands the messages of both topics in a folder, and reads them from there, so that an audit from the beginning needs
no topic that goes back so far.

    leader-1/       messages of the leader's topics as Parquet: those that the first audit landed
    follower-1/     the same of the follower's topics
    leader-2/ …     those that the second audit landed
    landing.json    the valid parts with their numbers of rows, the offsets and the topics' ids, and the last record
                    of each partition (``model.read_record``)

A message is landed as it is, with its headers: which messages count, and which fragments make a record, is decided when
they are read, as for messages from Kafka. Invariant: parts are written and flushed completely before ``landing.json``,
replaced by one rename, lists them. So after a kill the next audit lands the same messages again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.config.profile import Kafka, Profile
from cdc.errors import UserError
from cdc.kafka.places import Reader
from cdc.model.commit_entry import Mark
from cdc.model.position import partition_name, partition_of
from cdc.model.read_record import ReadRecord, newest_records
from cdc.spark.folders import ASIDE, Folder, InUseError, Lock, as_pattern
from cdc.spark.hadoop_folder import folder_at
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import COPYING, committed, counting, heads
from cdc.spark.input.small_data import local_frame
from cdc.spark.input.spans import Span, continued, records_at
from cdc.spark.private_names import Py4JError
from cdc.spark.state.parquet_parts import rows_in, write

__all__ = ["Landing"]

_FORMAT = 1
_POINTER, _LOCK = "landing.json", "lock"
_PART = re.compile("(leader|follower)-[1-9][0-9]*")
_SCHEMA = "partition STRING, offset BIGINT, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
_AGAIN = "name another folder, or remove this one to land again what the topics still have"


@dataclass(frozen=True, slots=True)
class Landed:
    """The landed part of one side's topics. ``ranges`` maps each partition to the first offset and to the offset after
    the last one, ``topics`` each topic to its id, ``parts`` each part to its number of rows, and ``read`` each
    partition to the last record and, if a table copy wrote some there, the last one of those. ``marks`` maps epochs to
    the offsets of their marks: the producer drops those that retention has passed.

    ``again`` maps parts to the offsets at which they begin in partitions in which earlier parts have messages from
    there on, too: brokers had lost messages behind the last record, and others came in their place, which count.
    """

    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    read: Mapping[str, Sequence[ReadRecord]] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    again: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def parse(cls, tree: Mapping[str, Any]) -> Self:
        """Parses a side's part of landing.json. Raises KeyError, TypeError or ValueError if it is damaged."""
        return cls(
            {name: (int(begin), int(end)) for name, (begin, end) in tree["ranges"].items()},
            dict(tree["topics"]),
            {name: int(rows) for name, rows in tree["parts"].items()},
            {name: tuple(ReadRecord(*each) for each in records) for name, records in tree["read"].items()},
            {epoch: int(offset) for epoch, offset in tree["marks"].items()},
            {name: dict(begins) for name, begins in tree.get("again", {}).items()},
        )

    def superseded(self, part: str) -> Column:
        """Whether a message of ``part`` has another one in a later part in its place."""
        names = list(self.parts)
        later = [self.again.get(name, {}) for name in names[names.index(part) + 1 :]]
        of_partitions = (
            (F.col("partition") == partition) & (F.col("offset") >= begin)
            for begins in later
            for partition, begin in begins.items()
        )
        return reduce(or_, of_partitions, F.lit(False))

    def within(self, span: Span) -> Span:
        """Returns ``span`` with all landed messages, and with all marks."""
        marks = {int(epoch): offset for epoch, offset in self.marks.items()}
        marks |= {mark.epoch: mark.offset for mark in span.marks if mark.offset >= 0}
        known = tuple(sorted(Mark(epoch, offset) for epoch, offset in marks.items()))
        return replace(
            span,
            partitions={partition_of(name): each for name, each in self.ranges.items()},
            marks=known or span.marks,
            fragmented=span.fragmented or bool(known),
        )

    @property
    def next_part(self) -> int:
        """The number of the next part."""
        return 1 + max((int(name.rpartition("-")[2]) for name in self.parts), default=0)


class Landing:
    """The landed messages in one folder, which is locked for this process until ``close``."""

    def __init__(self, spark: SparkSession, folder: Folder, lock: Lock, text: str | None, where: str) -> None:
        """``text`` is that of landing.json. Raises UserError if it is damaged."""
        self._spark, self._folder, self._lock, self._text, self._where = spark, folder, lock, text, where
        self._landed = _parsed(text, where)

    @classmethod
    def open(cls, spark: SparkSession, folder: Path | str) -> Self:
        """Opens the landed messages in ``folder``, a path or a URI; creates the folder if it does not exist. Raises
        UserError if it contains other files, is damaged or is in use.
        """
        where = f"option --from-lake {folder}"
        try:
            found = folder_at(spark, folder)
            found.make("", private=True)
            ours = {_LOCK, _POINTER, _POINTER + ASIDE}
            others = [name for name in found.names("") if name not in ours and not _PART.fullmatch(name)]
            if others and not found.exists(_POINTER):
                raise UserError(
                    f"the folder holds other files and no landed messages: {others[0]!r}",
                    code="CDC-LANDING-FOLDER", where=where, hint="name an empty folder, or one that does not exist yet",
                )  # fmt: skip
            lock = found.lock(_LOCK)
        except InUseError as told:
            hint = f"wait until it has ended; {told}".rstrip("; ")
            raise UserError(
                "another audit uses the folder", code="CDC-LANDING-IN-USE", where=where, hint=hint
            ) from None
        except OSError as error:
            raise UserError(f"cannot use the folder: {error}", code="CDC-LANDING-FOLDER", where=where) from None
        try:
            return cls(spark, found, lock, found.read(_POINTER), where)
        except BaseException:
            lock.close()
            raise

    def close(self) -> None:
        """Releases the lock, so that another process can use the folder."""
        self._lock.close()

    def extended(
        self, spans: Mapping[str, Span], profiles: Mapping[str, Profile], ids: Mapping[str, Mapping[str, str]]
    ) -> dict[str, Span]:
        """Lands the messages in ``spans`` that are not landed yet. Returns the spans of all landed messages, by side.

        ``ids`` are the topics' ids in Kafka. Raises UserError or PromiseError if the topics lack messages behind the
        landed ones, or are others than those that were landed, and OSError.
        """
        landed = dict(self._landed)
        for side, span in spans.items():
            before = landed.get(side, Landed())
            self._require_same(side, before, ids[side])
            landed[side] = self._extended(side, before, span, profiles[side].kafka, ids[side])
        if landed != self._landed:
            self._save(landed)
        return {side: landed[side].within(span) for side, span in spans.items()}

    def _save(self, landed: dict[str, Landed]) -> None:
        if self._folder.read(_POINTER) != self._text:  # an object store has no locks
            raise UserError(
                "another audit has landed messages meanwhile", code="CDC-LANDING-IN-USE", where=self._where,
                hint="let only one audit at a time use the folder, then start this audit again",
            )  # fmt: skip
        tree = {"format": _FORMAT, **{side: asdict(each) for side, each in landed.items()}}
        text = json.dumps(tree, indent=1) + "\n"
        self._folder.replace(_POINTER, text, private=True)
        self._landed, self._text = landed, text

    def messages(self, side: str, span: Span) -> DataFrame:
        """Reads the landed messages of ``side`` in ``span`` that count, as ``input.records.messages`` does; the
        partition has its name. Raises UserError if files are missing.
        """
        names = list(self._landed[side].parts)
        for name in names:
            try:
                is_whole = rows_in(self._spark, self._folder, name) == self._landed[side].parts[name]
            except Py4JError:
                is_whole = False
            if not is_whole:
                raise self._damaged(f"files of {name} are missing or changed")
        if not names:
            return local_frame(self._spark, [], _SCHEMA)
        strict = self._spark.read.schema(_SCHEMA).options(ignoreMissingFiles=False, ignoreCorruptFiles=False)
        paths = {name: as_pattern(self._folder.uri(name)) for name in names}
        if self._landed[side].again:
            parts = [strict.parquet(paths[name]).where(~self._landed[side].superseded(name)) for name in names]
            rows = reduce(DataFrame.unionByName, parts)
        else:
            rows = strict.parquet(*paths.values())
        ranges = [{"partition": partition_name(each), "begin": ends[0]} for each, ends in span.partitions.items()]
        begins = F.broadcast(local_frame(self._spark, ranges, "partition STRING, begin BIGINT"))
        wanted = rows.join(begins, "partition").where("offset >= begin").drop("begin")
        return counting(wanted, span)

    def _extended(self, side: str, before: Landed, span: Span, kafka: Kafka, topics: Mapping[str, str]) -> Landed:
        new, begins = self._behind(side, before, span, kafka)
        ranges = {partition_name(each): ends for each, ends in span.partitions.items()}
        ranges |= {name: (begin, ranges[name][1]) for name, (begin, _) in before.ranges.items()}
        marks = {**before.marks, **{str(mark.epoch): mark.offset for mark in span.marks if mark.offset >= 0}}
        if not new.size:
            return replace(before, ranges=ranges, topics=dict(topics), marks=marks)
        name = f"{side}-{before.next_part}"
        if self._folder.exists(name):  # a killed audit has left it
            self._folder.remove(name)
        found = committed(self._spark, new, options=kafka_options(kafka) | {"includeHeaders": "true"})
        columns = F.concat_ws("/", "topic", "partition").alias("partition"), "offset", "value", "headers"
        rows = write(found.select(*columns), self._folder, name, option="--from-lake")
        self._folder.flush(name)
        again = {**before.again, **({name: begins} if begins else {})}
        parts = {**before.parts, name: rows}
        return Landed(ranges, dict(topics), parts, self._last(name, before, span), marks, again)

    def _behind(self, side: str, before: Landed, span: Span, kafka: Kafka) -> tuple[Span, dict[str, int]]:
        """Returns the part of ``span`` behind the landed messages, and where it begins in partitions in which it begins
        before their end.
        """
        if not before.ranges:
            return span, {}
        self._require_there(side, before, span, kafka)
        ends = {partition_of(name): end for name, (_, end) in before.ranges.items()}
        reader = Reader(f"the landed messages, which go up to the last one of the {side}'s topic then,", _AGAIN)
        begins = continued(kafka, span, ends, before.read, reader=reader)
        again = {partition_name(each): begin for each, begin in begins.items() if begin < ends[each]}
        return span.after(begins), again

    def _require_there(self, side: str, before: Landed, span: Span, kafka: Kafka) -> None:
        """Raises UserError if landed records that retention has not deleted have others in their place."""
        begins = {partition_name(each): ends for each, ends in span.partitions.items()}
        for number in (0, 1):
            last = {name: records[number] for name, records in before.read.items() if len(records) > number}
            there = {name: each for name, each in last.items() if begins[name][0] <= each.offset < begins[name][1]}
            if records_at(kafka, {name: each.offset for name, each in there.items()}) != there:
                raise UserError(
                    f"brokers have lost messages of the {side} that are landed, and others are in their place",
                    code="CDC-LANDING-MOVED", where=self._where, hint=_AGAIN,
                )  # fmt: skip

    def _last(self, name: str, before: Landed, span: Span) -> dict[str, tuple[ReadRecord, ...]]:
        """Finds the last record of each partition, and the last one that a table copy wrote there."""
        landed = self._spark.read.schema(_SCHEMA).parquet(as_pattern(self._folder.uri(name)))
        rows = counting(landed, span)
        records = heads(rows, "sequence", "file", "position", "transaction", "ts_us").where("sequence IS NOT NULL")
        if span.limit is not None:
            records = records.where(F.col("sequence") < span.limit)
        record = F.struct("sequence", "offset", "file", "position", "ts_us")
        copied = F.when(F.col("transaction").startswith(COPYING), record)
        found = {each: tuple(records) for each, records in before.read.items()}
        last = records.groupBy("partition").agg(F.max(record).alias("read"), F.max(copied).alias("copied"))
        for row in last.collect():
            found[row["partition"]] = newest_records(found.get(row["partition"], ()), row["read"], row["copied"])
        return found

    def _require_same(self, side: str, before: Landed, now: Mapping[str, str]) -> None:
        for topic, number in before.topics.items():
            if now.get(topic) != number:
                raise UserError(
                    f"topic {topic} of the {side} was deleted, and perhaps created again, since it was landed",
                    code="CDC-LANDING-OTHER-TOPIC", where=self._where, hint=_AGAIN,
                )  # fmt: skip

    def _damaged(self, what: str) -> UserError:
        return UserError(what, code="CDC-LANDING-DAMAGED", where=self._where, hint=_AGAIN)


def _parsed(text: str | None, where: str) -> dict[str, Landed]:
    if text is None:
        return {}
    try:
        tree = json.loads(text)
        if tree.pop("format") != _FORMAT:
            raise ValueError("of another version")
        return {side: Landed.parse(each) for side, each in tree.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"cannot read {_POINTER}: {error!r}", code="CDC-LANDING-DAMAGED", where=where, hint=_AGAIN
        ) from None
