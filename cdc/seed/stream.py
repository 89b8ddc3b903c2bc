"""Makes the stream that loads a follower: transactions with the remaining rows and the statements, ordered by sequence.

Each transaction ends at a record of the leader's stream; the checkpoint moves to that record. From a statement in the
follower's binlog the audit concludes that all records before the statement were applied. So before a statement is
executed, the checkpoint moves to the record before it.
"""

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.profile import Profile
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS
from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.source.assembler import MOST_BYTES, Transaction
from cdc.consumer.source.reader import Topic
from cdc.consumer.source.record_source import RecordSource
from cdc.consumer.state.checkpoint import LastChunk, TopicIdPartition
from cdc.errors import UserError
from cdc.model.position import Position, partition_name
from cdc.model.record import SKIPPED, Record, Uri, is_event
from cdc.seed.fold import Line
from cdc.seed.tables import Part
from cdc.spark.ddl.lineage import Name, table_name
from cdc.spark.frames.messages import Source
from cdc.spark.input.records import COPYING
from cdc.spark.input.small_data import local_frame

__all__ = [
    "NO_DATABASE",
    "Head",
    "Places",
    "Stream",
    "on_part_of_rows",
    "places",
    "read_statements",
    "require_one_stream",
    "require_whole",
    "without_repeated",
]

NO_DATABASE = ""
"""The database of records that only move the checkpoint; no filter lets this database pass."""

_PLACE = "the topics, folded"


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a record that a checkpoint needs, without its rows."""

    sequence: int
    file: str
    position: int
    transaction: str
    ts_us: int


@dataclass(slots=True)
class _Unit:
    """The content of one transaction. ``rows`` is the number of rows in its ``lines``, and ``size`` is the size of
    these rows in characters.
    """

    lines: list[Line] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.rows += len(line.rows)
        self.size += sum(map(len, line.texts))


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream up to sequence ``upto``. ``statements`` maps sequences to statements, ``parts`` are the parts with
    rows, and ``heads`` are the records to which the checkpoint moves, without their rows.

    ``offsets`` are the offsets from which a consumer continues after ``upto``; each checkpoint of the load contains
    them. One transaction loads about ``most_rows`` rows. ``chunks`` are
    the newest records of table copies up to ``upto``, by partition.
    """

    resource: str
    parts: Sequence[Part]
    statements: Mapping[int, Record]
    heads: Mapping[int, Head]
    offsets: Mapping[TopicIdPartition, int]
    upto: int
    most_rows: int
    parser: RecordParser = field(default_factory=RecordParser)
    chunks: Sequence[LastChunk] = ()

    def transactions(self, lines: Iterable[Line], *, after: int) -> Iterator[Transaction]:
        """Yields the transactions after sequence ``after``; ``lines`` contain the rows, in the order of their
        sequences."""
        statements = deque(sequence for sequence in self.statements if sequence > after)
        unit, last = _Unit(), after
        for sequence, found in groupby(lines, key=attrgetter("sequence")):
            is_next = bool(statements) and statements[0] < sequence
            if unit.lines and (is_next or unit.rows >= self.most_rows or unit.size >= MOST_BYTES):
                yield self._rows(unit)
                unit, last = _Unit(), unit.lines[-1].sequence
            while statements and statements[0] < sequence:
                yield from self._statement(statements[0], after=last)
                last = statements.popleft()
            for line in without_repeated(list(found)):
                unit.add(line)
        if unit.lines:
            yield self._rows(unit)
            last = unit.lines[-1].sequence
        for sequence in statements:
            yield from self._statement(sequence, after=last)
            last = sequence
        if last < self.upto:
            yield self._empty(self.upto)

    def _statement(self, sequence: int, *, after: int) -> Iterator[Transaction]:
        if after < sequence - 1:
            yield self._empty(sequence - 1)
        yield Transaction([on_part_of_rows(self.statements[sequence])], dict(self.offsets), 0, statement=True)

    def _empty(self, sequence: int) -> Transaction:
        """Builds a transaction without rows, which only moves the checkpoint to ``sequence``."""
        head = self.heads[sequence]
        position = Position(head.file, head.position)
        uri = Uri(self.resource, NO_DATABASE)
        record = Record(uri, sequence, position, head.transaction, 0, True, head.ts_us, "Add")
        return Transaction([record], dict(self.offsets), 0, statement=False)

    def _rows(self, unit: "_Unit") -> Transaction:
        """Builds the transaction that loads the rows of ``unit``.

        Rows that are needed only for their AUTO_INCREMENT numbers come first. Each of them is inserted and immediately
        deleted, since later rows may have the same unique key. All records have the sequence and the binlog
        position of the unit's last line; the checkpoint moves to that position.
        """
        tables: dict[tuple[int, str | None], list[Line]] = {}
        for line in unit.lines:
            tables.setdefault((line.part, line.mode), []).append(line)
        newest = unit.lines[-1]
        records: list[Record] = []
        for lines in tables.values():
            for text in dict.fromkeys(text for line in lines if not line.is_left for text in line.texts):
                for operation in ("Add", "Delete"):
                    records.append(Record.parse(self._json(lines[-1], newest, operation, [text]), where=_PLACE))
        for lines in tables.values():
            if left := [text for line in lines if line.is_left for text in line.texts]:
                records.append(self.parser.parse(self._json(lines[-1], newest, "Add", left), where=_PLACE))
        rows = sum(len(record.rows) for record in records)
        return Transaction(records, dict(self.offsets), rows, statement=False, size=unit.size)

    def _json(self, line: Line, head: Line, operation: str, texts: Sequence[str]) -> bytes:
        part = self.parts[line.part]
        body = {
            "uri": str(Uri(self.resource, *part.name)), "sequence": head.sequence,
            "bn_file": {"fileName": head.file, "offset": head.position},
            "transaction": {"id": head.transaction, "index": 0, "last": True, "ts_us": head.ts_us},
            "columns": part.columns, **({"key": line.key} if line.key else {}),
            **({"sql_mode": line.mode} if line.mode is not None else {}),
            # If a parent row was changed after a child row, the child row is loaded first. So foreign keys must not be
            # checked.
            "flags": NO_FOREIGN_KEY_CHECKS,
        }  # fmt: skip
        begin = json.dumps(body, ensure_ascii=False)[:-1]
        return f'{begin}, "operation": {{"{operation}": {{"rows": [{",".join(texts)}]}}}}}}'.encode()


def without_repeated(lines: Sequence[Line]) -> list[Line]:
    """Removes repeated rows from the lines of one record. If a row is needed for its AUTO_INCREMENT number and also
    remains, only the lines of remaining rows contain it.
    """
    left = {(line.part, row) for line in lines if line.is_left for row in line.rows}
    found = [line if line.is_left else _without(left, line) for line in lines]
    return [line for line in found if line.rows]


def _without(left: Collection[tuple[int, int]], line: Line) -> Line:
    kept = [at for at, row in enumerate(line.rows) if (line.part, row) not in left]
    return line._replace(rows=[line.rows[at] for at in kept], texts=[line.texts[at] for at in kept])


# Reads the records without rows from a leader's stream. They are statements, and notes about events that the producer
# left out.

_MARKS = (b'"Query":', f'"{SKIPPED}":'.encode())


def read_statements(messages: DataFrame, upto: int) -> dict[int, Record]:
    """Reads the records without rows in ``messages`` (partition, offset, value) through sequence ``upto``; returns them
    by their sequences.

    Raises PromiseError for a message that is not a record.
    """
    marked = F.lit(False)
    for text in _MARKS:
        marked |= F.contains(F.col("value"), F.lit(text))
    statements: dict[int, Record] = {}
    for row in messages.where(marked).select("partition", "offset", "value").collect():
        value = bytes(row["value"])
        if is_event(value):
            continue
        record = Record.parse(value, where=f"{row['partition']}/{row['offset']}")
        if record.operation in ("Query", SKIPPED) and record.sequence <= upto:
            statements[record.sequence] = record
    return dict(sorted(statements.items()))


def on_part_of_rows(record: Record) -> Record:
    """Adapts a statement to a follower that contains only some of the rows. ALTER TABLE must not check foreign keys
    there, because parent rows may be loaded later than their children.
    """
    if not any(affect["action"] == "AlterTable" for affect in record.affects):
        return record
    return replace(record, context={**(record.context or {}), "foreign_key_checks": False})


def require_one_stream(leader: Profile, follower: Profile) -> None:
    """Raises UserError if the profiles name different streams, or contain a setting that a seed does not support."""
    for key, ours, theirs in (
        ("mysql_resource_name", leader.mysql_resource_name, follower.mysql_resource_name),
        ("kafka.topic", leader.kafka.topic, follower.kafka.topic),
        ("kafka.layout", leader.kafka.layout, follower.kafka.layout),
        ("kafka.prefix", leader.kafka.prefix, follower.kafka.prefix),
    ):
        if ours != theirs:
            raise UserError(
                f"the follower's {key} is {theirs!r}, the leader's {ours!r}",
                code="CDC-SEED-PROFILES-DIFFER",
                where="options --leader and --follower",
                hint="name the profiles of the cdc-producer and of the cdc-consumer of one stream",
            )
    if follower.consumer.start:
        raise UserError(
            "a follower that is seeded begins from no copy of the leader",
            code="CDC-SEED-AND-COPY",
            where="profile key consumer.start",
            hint="remove the key from the profile, for cdc-consumer too",
        )


def require_whole(source: Source) -> None:
    """Raises UserError if retention has deleted the first records of the stream."""
    if source.cut:
        raise UserError(
            "retention has deleted the oldest records, among them statements that made the leader's tables",
            code="CDC-SEED-TOPIC-CUT",
            where=f"topic {source.kafka.topic}",
            hint="begin the follower from a copy of the leader (consumer.start), or start over with a new topic that "
            "is kept for ever",
        )


class Places(NamedTuple):
    """The places of records. ``heads`` are the records to which the checkpoint moves, without their rows. ``offsets``
    are the offsets from which a consumer continues after the seed. ``newest`` maps the name of each table to the
    sequence of its newest rows. ``chunks`` are the newest records of table copies in each partition.
    """

    heads: dict[int, Head]
    offsets: dict[TopicIdPartition, int]
    newest: dict[Name, int]
    chunks: list[LastChunk]


def places(
    topics_of: RecordSource, source: Source, outline: DataFrame, topic: Topic, upto: int,
    statements: Mapping[int, Record],
) -> Places:  # fmt: skip
    """Finds the places in the ``outline`` of ``source``. Raises UserError if the topics lack records."""
    wanted = {upto, *(sequence - 1 for sequence in statements if sequence > 0)}
    found = _of_partitions(outline, upto, wanted).where("count > 0").collect()
    heads = {int(each["sequence"]): Head(*each) for row in found for each in row["heads"] if each is not None}
    count = sum(row["count"] for row in found)
    if count != upto + 1 or heads.keys() != wanted:
        raise UserError(
            f"the topics have {count} records up to sequence {upto}; there should be {upto + 1}",
            code="CDC-SEED-RECORDS-MISSING",
            where=f"topic {source.kafka.topic}",
            hint="something has deleted or added records; see cdc-audit",
        )
    places: dict[tuple[str, int], int] = {}
    for row in found:
        name, _, number = row["partition"].rpartition("/")
        following = row["next"]
        places[name, int(number)] = source.span.partitions[name, int(number)][1] if following is None else following
    topics = {topic.name: topic, **topics_of.topics({name for name, _ in places} - {topic.name})}
    offsets = {TopicIdPartition(name, number, topics[name].id): offset for (name, number), offset in places.items()}
    newest = {
        name: each.newest for row in found for each in row["newest"] if (name := table_name(each.uri)) is not None
    }
    ids = {partition_name((each.topic, each.number)): each for each in offsets}
    chunks = [
        LastChunk(at["sequence"], at["ts_us"], ids[row["partition"]], at["offset"] + 1)
        for row in found
        if (at := row["copied"]) is not None
    ]
    return Places(heads, offsets, newest, chunks)


def _of_partitions(outline: DataFrame, upto: int, wanted: Collection[int]) -> DataFrame:
    """Aggregates the records of each partition.

    The columns are ``count``, ``next``, ``heads``, ``newest`` and ``copied``. ``count`` is the number of records
    through ``upto``, and ``next`` is the first offset after these records, or NULL. ``heads`` contains the sequence,
    file, position, transaction and ts_us of the records with the ``wanted`` sequences. ``newest`` contains the URI and
    the newest sequence of each table with rows through ``upto``. ``copied`` is the newest record of a table copy: its
    sequence, ts_us and offset.
    """
    numbers = [{"sequence": each} for each in sorted(wanted)]
    marked = local_frame(outline.sparkSession, numbers, "sequence BIGINT").withColumn("marked", F.lit(True))
    is_copied = f"sequence <= {upto} AND startswith(transaction, '{COPYING}')"
    one = F.expr("IF(marked, struct(sequence, file, position, transaction, ts_us), NULL)")
    heads = outline.where("sequence IS NOT NULL").join(F.broadcast(marked), "sequence", "left")
    of_uris = heads.groupBy("partition", "uri").agg(
        F.expr(f"count_if(sequence <= {upto})").alias("count"),
        F.min(F.expr(f"IF(sequence > {upto}, offset, NULL)")).alias("next"),
        F.collect_list(one).alias("heads"),
        F.max(F.expr(f"IF(sequence <= {upto}, sequence, NULL)")).alias("newest"),
        F.max(F.expr(f"IF({is_copied}, struct(sequence, ts_us, offset), NULL)")).alias("copied"),
    )
    newest = F.expr("IF(uri IS NOT NULL AND newest IS NOT NULL, struct(uri, newest), NULL)")
    return of_uris.groupBy("partition").agg(
        F.sum("count").alias("count"), F.min("next").alias("next"),
        F.flatten(F.collect_list("heads")).alias("heads"), F.collect_list(newest).alias("newest"),
        F.max("copied").alias("copied"),
    )  # fmt: skip
