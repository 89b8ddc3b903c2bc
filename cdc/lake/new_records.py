"""Reads the records that were added to the topics after the state of the lake was saved; reads them once for all
tables.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdc.config.table_globs import copy_command
from cdc.config.topic_names import PER_TABLE
from cdc.errors import PromiseError, UserError
from cdc.kafka.places import Reader
from cdc.lake.folder import State
from cdc.model.position import partition_name, partition_of
from cdc.model.read_record import ReadRecord, newest_records
from cdc.spark.ddl.lineage import Name, table_name
from cdc.spark.frames.messages import Source, is_told
from cdc.spark.frames.schema_history import History, untold
from cdc.spark.input.records import heads, with_sequences
from cdc.spark.input.spans import continued, records_at, topic_ids

__all__ = ["Arrived", "refused_tables", "same_topics"]

_LAKE = Reader("the lake", "name another folder with --to, or remove this one to have the lake made again")
_MESSAGE = ("side", "partition", "offset", "value")


@dataclass(frozen=True, slots=True)
class Arrived:
    """The new messages up to sequence ``upto``. ``new`` is the part of ``source`` that no earlier run has read.

    ``messages`` are the messages in ``new``; None if the topic of each table is read separately. ``records`` is the
    number of new records up to ``upto``. ``last``, ``offsets``, ``read``, ``transaction`` and ``gap`` are the values
    for the next State. ``ts_us`` is the time at which the leader committed the transaction that ends with ``upto``;
    None if there are no new records.
    """

    source: Source
    new: Source
    upto: int
    messages: DataFrame | None
    records: int
    last: Mapping[str, int]
    offsets: Mapping[str, int]
    transaction: str
    ts_us: int | None
    read: Mapping[str, Sequence[ReadRecord]]
    gap: int = -1

    @classmethod
    def since(cls, state: State, source: Source, upto: int) -> Self:
        """Reads the records that follow ``state``. Raises UserError if the topics lack records that the lake needs, and
        PromiseError if they contain too many records, or others in place of those that the lake has."""
        new = replace(source, span=replace(source.span, partitions=_rest(source, state)))
        messages = with_sequences(new.everything()).withColumn("has_history", is_told())
        # If each table has its own topic, the first run reads each topic separately. All other runs read all new
        # messages once and persist them, because in a shared topic, each table would read the messages of all tables.
        shared = state.offsets or source.kafka.layout != PER_TABLE
        kept = messages.persist() if shared else None
        whole = messages if kept is None else kept
        rows = _ends(whole, since=state.sequence, upto=upto)
        ends = {partition_name(each): end for each, (_, end) in new.span.partitions.items()}
        for row in rows:
            if row["next"] is not None:
                ends[row["partition"]] = min(ends[row["partition"]], int(row["next"]))
        last = {row["key"]: int(row["last"]) for row in rows if row["last"] is not None}
        records = sum(int(row["count"]) for row in rows)
        gap = _newest_gap(whole, rows, source, upto) if state.sequence < 0 else state.gap
        if state.sequence >= 0 and records != upto - state.sequence:
            _raise_missing(records, state.sequence, upto)
        newest = _newest(new, kept, rows)
        transaction, ts_us = (newest["transaction"], int(newest["ts_us"])) if newest else (state.transaction, None)
        merged, read = {**state.last, **last}, _last_read(_records_read(source, rows), state)
        return cls(source, new, upto, kept, records, merged, ends, transaction, ts_us, read, gap)

    def rows_of(self, names: Collection[Name]) -> DataFrame:
        """Returns all messages with rows of the tables ``names``, from the beginning of the topics."""
        if self.messages is None or self.new.span.partitions != self.source.span.partitions:
            return self.source.of_tables(names)
        return self.new_rows_of(names)

    def new_rows_of(self, names: Collection[Name]) -> DataFrame:
        """Returns the messages with rows of the tables ``names`` that no earlier run has read."""
        if self.messages is None:
            return self.new.of_tables(names)
        wanted = [self.source.uri(name) for name in sorted(names)]
        return self.messages.where(F.col("key").isin(wanted)).select(*_MESSAGE)

    def history_messages(self) -> DataFrame | None:
        """Returns the new messages that contain schema history; None if the topic of each table is read separately."""
        return None if self.messages is None else self.messages.where("has_history").select(*_MESSAGE)

    def close(self) -> None:
        """Unpersists the messages."""
        if self.messages is not None:
            self.messages.unpersist()


def same_topics(source: Source, state: State, *, lake: str) -> Mapping[str, str]:
    """Returns the ids of the topics in Kafka. Raises UserError if a topic was deleted and created again since the lake
    first read it."""
    ids = topic_ids(source.kafka, source.span)
    for name, known in state.topics.items():
        if ids.get(name, known) != known:
            raise UserError(
                f"the topic {name} was deleted and created again since the lake was made",
                code="CDC-LAKE-OTHER-SETTINGS",
                where=f"option --to {lake}",
                hint="name another folder, or remove this one to have the lake made again",
            )
    return {**state.topics, **ids}


def refused_tables(
    history: History, upto: int, last: Mapping[str, int], selects: Callable[[Name], bool]
) -> Iterator[tuple[Name, UserError]]:
    """Yields the tables that have rows up to ``upto``, according to the URIs in ``last``, although no record contains
    their columns or their CREATE TABLE.
    """
    of_names = {name: sequence for uri, sequence in last.items() if (name := table_name(uri))}
    for name in filter(selects, untold(history, upto, of_names)):
        yield (
            name,
            UserError(
                "the stream has rows of the table, but nothing that describes its columns: retention has deleted that",
                code="CDC-LAKE-NO-COLUMNS",
                where=f"table {'.'.join(name)}, sequence {upto}",
                hint=f"copy the table again: {copy_command(name)}",
            ),
        )


def _rest(source: Source, state: State) -> dict[tuple[str, int], tuple[int, int]]:
    offsets = {partition_of(name): offset for name, offset in state.offsets.items()}
    offsets = continued(source.kafka, source.span, offsets, state.read, reader=_LAKE)
    rest = {}
    for partition, (begin, end) in source.span.partitions.items():
        first = offsets.get(partition, begin)
        if first > end:
            raise UserError(
                f"the topic ends at offset {end}, the lake was made up to offset {first}",
                code="CDC-LAKE-TOPIC-SHORTER",
                where=f"partition {partition_name(partition)}",
                hint="brokers lost records: name another folder with --to",
            )
        rest[partition] = (max(begin, first), end)
    return rest


def _records_read(source: Source, rows: Sequence[Row]) -> Sequence[dict[str, ReadRecord]]:
    """Asks the topics for the last record of each partition, and for the last one that a copy wrote there; ``rows``
    (``_ends``) have their offsets.
    """
    found = []
    for name in ("read_at", "copied_at"):
        offsets = dict[str, int]()
        for row in rows:
            if row[name] is not None:
                offsets[row["partition"]] = max(offsets.get(row["partition"], 0), int(row[name]))
        found.append(records_at(source.kafka, offsets))
    return found


def _last_read(new: Sequence[Mapping[str, ReadRecord]], state: State) -> dict[str, tuple[ReadRecord, ...]]:
    """Maps each partition to the last record that the lake has of it, and the last one that a copy wrote there; ``new``
    are those of the new messages.
    """
    last, copied = new
    found = {name: tuple(records) for name, records in state.read.items()}
    for name, record in last.items():
        found[name] = newest_records(found.get(name, ()), record, copied.get(name))
    return found


def _ends(messages: DataFrame, *, since: int, upto: int) -> list[Row]:
    """Computes for each partition and message key: ``next``, the first offset after sequence ``upto``; ``first`` and
    ``last``, the first and last sequence up to ``upto``; ``end``, the offset of the record ``upto`` if it is there;
    ``read_at``, the offset of the last record up to ``upto``, and ``copied_at``, of the last one that a copy wrote; and
    ``count``, the number of records after sequence ``since`` up to ``upto``.
    """
    # All aggregates are of numbers: for others, such as the largest struct, Spark would sort all records.
    within = f"sequence <= {upto}"
    found = (
        messages.where("sequence IS NOT NULL")
        .groupBy("partition", "key")
        .agg(
            F.min(F.expr(f"IF({within}, NULL, offset)")).alias("next"),
            F.min(F.expr(f"IF({within}, sequence, NULL)")).alias("first"),
            F.max(F.expr(f"IF({within}, sequence, NULL)")).alias("last"),
            F.max(F.expr(f"IF(sequence = {upto}, offset, NULL)")).alias("end"),
            F.max(F.expr(f"IF({within}, offset, NULL)")).alias("read_at"),
            F.max(F.expr(f"IF({within} AND copied, offset, NULL)")).alias("copied_at"),
            F.count_if(F.expr(f"sequence > {since} AND {within}")).alias("count"),
        )
    )
    return found.collect()


def _newest(new: Source, kept: DataFrame | None, rows: Sequence[Row]) -> Row | None:
    """Returns the transaction and ts_us of the run's last record; None if it is not among the new messages. ``rows``
    are the ``_ends`` of these messages, and ``kept`` are the messages themselves if they are persisted.
    """
    places = sorted((row["partition"], int(row["end"])) for row in rows if row["end"] is not None)
    if not places:
        return None
    partition, offset = places[0]
    messages = kept
    if messages is None:
        (whole,) = (each for each in new.span.partitions if partition_name(each) == partition)
        part = {whole: (offset, new.span.partitions[whole][1])}
        messages = replace(new, span=replace(new.span, partitions=part)).everything()
    found = messages.where((F.col("partition") == partition) & (F.col("offset") == offset)).select(*_MESSAGE)
    return heads(found, "transaction", "ts_us").select("transaction", "ts_us").collect()[0]


def _newest_gap(messages: DataFrame, rows: Sequence[Row], source: Source, upto: int) -> int:
    """Returns the newest sequence up to ``upto`` that is missing in the topics; -1 if none is missing. ``rows`` are the
    ``_ends`` of ``messages``, which are all messages of the topics.

    Records that retention has deleted are no gap. Retention cuts each topic separately: if it has cut one of several
    topics, gaps can't be found.
    """
    if source.cut and source.kafka.layout == PER_TABLE:
        return -1
    firsts = [int(row["first"]) for row in rows if row["first"] is not None]
    first = min(firsts, default=upto + 1) if source.cut else 0
    records = sum(int(row["count"]) for row in rows)
    if records == upto + 1 - first:
        return -1
    if records > upto + 1 - first:
        _raise_missing(records, first - 1, upto)
    return _gap_before(messages, upto)


def _gap_before(records: DataFrame, upto: int) -> int:
    """Returns the newest sequence up to ``upto`` that is not in ``records``; at least one sequence must be missing."""
    numbers = records.where(f"sequence BETWEEN 0 AND {upto}").select("sequence")
    following = numbers.select((F.col("sequence") + 1).alias("sequence"))
    begins = numbers.join(following, "sequence", "left_anti").agg(F.max("sequence").alias("begin"))
    begin, last = begins.collect()[0]["begin"], numbers.agg(F.max("sequence").alias("last")).collect()[0]["last"]
    return int(begin) - 1 if last == upto else upto


def _raise_missing(records: int, since: int, upto: int) -> None:
    if records > upto - since:
        raise PromiseError(
            f"the topics have {records} records after sequence {since} up to {upto}; there should be {upto - since}",
            code="CDC-LAKE-RECORDS-MISSING",
            hint="something else writes to these topics: end it, and audit with cdc-audit",
        )
    raise UserError(
        f"the topics have only {records} of the {upto - since} records after sequence {since} up to {upto}",
        code="CDC-LAKE-TOPIC-SHORTER",
        hint="retention deleted the others: copy the tables again, and name another folder with --to",
    )
