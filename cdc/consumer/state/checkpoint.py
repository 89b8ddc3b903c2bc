"""Defines the checkpoint and the SQL that writes it. The checkpoint is a row on the follower with the sequence of the
last applied record.

In the layout ``per_table``, the offsets in the topics of the tables are in the rows of another table, so that a batch
writes only the offsets that it changes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable
from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.model.record import COPY, Record

__all__ = [
    "CHECKPOINT",
    "CHUNKS",
    "FRESH",
    "OFFSETS",
    "WORKER",
    "Checkpoint",
    "LastChunk",
    "TopicIdPartition",
    "others",
    "select_leader",
]

WORKER = 0
# The follower must be fresh. A follower that has executed GTIDs of the old topic would skip statements of the new
# topic, because they would seem to be executed already.
FRESH = (
    "start with a new topic and a fresh follower: drop its schema cdc (consumer.schema) and the replicated "
    "databases, and run RESET BINARY LOGS AND GTIDS (before MySQL 8.4: RESET MASTER), or use another "
    "mysql_resource_name in all profiles"
)


CHECKPOINT = OwnTable(
    "checkpoint",
    """
  worker INT NOT NULL,
  sequence BIGINT NOT NULL COMMENT 'last record applied, -1 before the first',
  topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  topic_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'tells a topic from its successor',
  offsets TEXT CHARACTER SET ascii NOT NULL COMMENT 'JSON: partition to next offset',
  leader_file VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  leader_offset BIGINT UNSIGNED NULL COMMENT 'where the last record''s event starts',
  leader_gtid VARCHAR(512) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'transaction of the last record',
  leader_ts_us BIGINT NULL COMMENT 'its commit on the leader, in microseconds since 1970',
  applied_at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
    key=("worker",),
)

OFFSETS = OwnTable(
    "offsets",
    """
  topic VARCHAR(249) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  number INT NOT NULL COMMENT 'of the partition',
  topic_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'tells a topic from its successor',
  next_offset BIGINT NOT NULL
    """,
    key=("topic", "number"),
)
"""The table with the offsets in topics other than the checkpoint's own topic."""

CHUNKS = OwnTable(
    "chunks",
    """
  sequence BIGINT NOT NULL COMMENT 'of the last chunk of a table copy that was applied',
  ts_us BIGINT NOT NULL COMMENT 'when it was read on the leader, in microseconds since 1970',
  topic VARCHAR(249) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  number INT NOT NULL COMMENT 'of the partition',
  topic_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'tells a topic from its successor',
  next_offset BIGINT NOT NULL
    """,
    key=("topic", "number"),
)
"""The table with the last chunk of each partition that the follower has applied. A leader has no row before the first
chunk; in a table that an earlier version of cdc has made it has one for all partitions."""


class TopicIdPartition(NamedTuple):
    """A partition of a topic, with the topic's id in Kafka. A topic that is created later with the same name has
    another id.
    """

    topic: str
    number: int
    topic_id: str = ""


class LastChunk(NamedTuple):
    """The last chunk of a table copy in a partition that the follower has applied: its sequence, the time at which its
    rows were read, its partition, and the offset after it.
    """

    sequence: int
    ts_us: int
    partition: TopicIdPartition
    next_offset: int

    @staticmethod
    def select(resource: str, *, schema: str) -> str:
        """Returns the query for the last chunks of a leader. ``from_rows`` parses its result."""
        return CHUNKS.select(schema, resource, "sequence, ts_us, topic, number, topic_id, next_offset")

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[Any, ...]]) -> dict[TopicIdPartition, Self]:
        """Parses the result of the query, by partition; empty if no chunk was applied."""
        found = {}
        for sequence, ts_us, topic, number, topic_id, offset in rows:
            partition = TopicIdPartition(topic, int(number), topic_id)
            found[partition] = cls(int(sequence), int(ts_us), partition, int(offset))
        return found

    def note(self, resource: str, *, schema: str) -> str:
        """Returns the statement that stores this as the partition's last chunk of a leader."""
        topic, number, topic_id = self.partition
        values = (
            f"{quoted(resource)}, {self.sequence}, {self.ts_us}, {quoted(topic)}, {number}, {quoted(topic_id)}, "
            f"{self.next_offset}"
        )
        columns = "resource, sequence, ts_us, topic, number, topic_id, next_offset"
        return f"REPLACE INTO {CHUNKS.within(schema)} ({columns}) VALUES ({values})"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The progress of a follower with the records of one leader. All records up to ``sequence`` are applied, and
    ``offsets`` are the offsets of the next records to read.

    ``topic`` is the topic of all records or, in the layout ``per_table``, the commit log. ``schema`` is the consumer's
    own database, which contains the checkpoint. ``ts_us`` is the time at which the leader committed the last applied
    record, and ``position`` is the position of the record's event in the leader's binlog; both are None before the
    first record. ``chunks`` are the last chunks that the follower has applied, by partition.
    """

    resource: str
    topic: str
    topic_id: str
    sequence: int = -1
    offsets: Mapping[TopicIdPartition, int] = field(default_factory=dict)
    schema: str = CHECKPOINT_DATABASE
    ts_us: int | None = None
    position: Position | None = None
    chunks: Mapping[TopicIdPartition, LastChunk] = field(default_factory=dict)

    @staticmethod
    def select(resource: str, *, schema: str) -> str:
        """Returns the query for the checkpoint's row. ``from_rows`` parses this row."""
        columns = "resource, topic, topic_id, sequence, offsets, leader_ts_us, leader_file, leader_offset"
        return CHECKPOINT.select(schema, resource, columns, where=f"worker={WORKER}")

    @staticmethod
    def select_sequence(resource: str, *, schema: str) -> str:
        """Returns the query for the sequence of the last applied record."""
        return CHECKPOINT.select(schema, resource, "sequence", where=f"worker={WORKER}")

    @staticmethod
    def select_offsets(resource: str, *, schema: str) -> str:
        """Returns the query for the offsets in all topics except the checkpoint's own topic. ``from_rows`` parses the
        rows of the result."""
        return OFFSETS.select(schema, resource, "topic, number, topic_id, next_offset")

    @classmethod
    def from_rows(cls, row: tuple[Any, ...], others: Iterable[tuple[Any, ...]] = (), *, schema: str) -> Self:
        """Parses the checkpoint from its row, and from the rows ``others`` with the offsets in other topics than the
        checkpoint's own topic."""
        resource, topic, topic_id, sequence, text, ts_us, file, offset = row
        offsets = {TopicIdPartition(topic, int(number), topic_id): int(at) for number, at in json.loads(text).items()}
        offsets |= {TopicIdPartition(name, int(number), id_): int(at) for name, number, id_, at in others}
        position = None if file is None or offset is None else Position(file, int(offset))
        return cls(resource, topic, topic_id, int(sequence), offsets, schema, ts_us, position)

    def insert(self) -> str:
        """Returns the statement that inserts the row of a leader, before its first record is applied."""
        return CHECKPOINT.insert(
            self.schema,
            self.resource,
            worker=WORKER,
            sequence=self.sequence,
            topic=self.topic,
            topic_id=self.topic_id,
            offsets=self._own(),
            now="applied_at",
        )

    def advanced(self, *, last: Record, offsets: Mapping[TopicIdPartition, int]) -> "Checkpoint":
        """Returns the checkpoint as it is after all records up to ``last`` were applied."""
        chunks = self.chunks
        if last.operation == COPY:  # a chunk is a batch of its own, so the offset is the one after it
            ((partition, offset),) = offsets.items()
            chunks = {**chunks, partition: LastChunk(last.sequence, last.ts_us, partition, offset)}
        return replace(
            self,
            sequence=last.sequence,
            offsets={**self.offsets, **offsets},
            ts_us=last.ts_us,
            position=last.position,
            chunks=chunks,
        )

    def advance(self, target: "Checkpoint", *, last: Record) -> str:
        """Returns the statement that updates the row from this checkpoint to ``target``.

        It matches no row if another consumer has updated the row.
        """
        # A record that the producer created itself belongs to no transaction of the leader. So the GTID of the last
        # applied transaction is kept.
        gtid = "" if last.of_copy else f"leader_gtid={quoted(last.transaction)}, "
        return (
            f"UPDATE {CHECKPOINT.within(self.schema)} SET sequence={target.sequence}, offsets={quoted(target._own())}, "
            f"leader_file={quoted(last.position.file)}, leader_offset={last.position.offset}, "
            f"{gtid}leader_ts_us={last.ts_us}, applied_at=NOW(6) "
            f"WHERE resource={quoted(self.resource)} AND worker={WORKER} AND sequence={self.sequence}"
        )

    def stay(self) -> str:
        """Returns the statement that leaves the row at this checkpoint, and notes the time. It matches no row if
        another consumer has updated the row.

        A transaction with it and changes of ``parked`` is the consumer's own, which the audit relies on.
        """
        return (
            f"UPDATE {CHECKPOINT.within(self.schema)} SET applied_at=NOW(6) "
            f"WHERE resource={quoted(self.resource)} AND worker={WORKER} AND sequence={self.sequence}"
        )

    def move(self, offsets: Mapping[TopicIdPartition, int]) -> str | None:
        """Returns the statement that stores the offsets in topics other than the checkpoint's own topic; None if there
        are no such offsets.
        """
        rows = ", ".join(
            f"({quoted(self.resource)}, {quoted(topic)}, {number}, {quoted(topic_id)}, {offset})"
            for (topic, number, topic_id), offset in offsets.items()
            if topic != self.topic
        )
        if not rows:
            return None
        return (
            f"INSERT INTO {OFFSETS.within(self.schema)} (resource, topic, number, topic_id, next_offset) VALUES {rows} "
            "ON DUPLICATE KEY UPDATE topic_id=VALUES(topic_id), next_offset=VALUES(next_offset)"
        )

    def note_chunk(self, *, last: Record) -> str | None:
        """Returns the statement that stores the chunk ``last``, if that is the last applied record and a chunk; None
        otherwise.
        """
        if last.operation != COPY:
            return None
        chunk = next(each for each in self.chunks.values() if each.sequence == last.sequence)
        return chunk.note(self.resource, schema=self.schema)

    def require_same(self, position: Position, ts_us: int | None, where: str) -> None:
        """Raises PromiseError if a record with the sequence of the last applied one is another record. ``position`` and
        ``ts_us`` are the record's; its time is None if it is unknown. Any record will do for a checkpoint without a
        position, as one that was moved by hand.
        """
        # A chunk that was read again at the same position may cover other rows; the time at which it was read differs.
        is_from_another_time = None not in (ts_us, self.ts_us) and ts_us != self.ts_us
        if self.position is not None and (self.position != position or is_from_another_time):
            raise PromiseError(
                f"record {self.sequence} is not the record that the follower has applied: it is from leader position "
                f"{position}, the applied record was from {self.position}, or from another time",
                code="CDC-TOPIC-OTHER-RECORDS",
                where=where,
                hint=f"the brokers lost records, and others were written in their place: {FRESH}",
            )

    @property
    def others(self) -> bool:
        """Whether the checkpoint has offsets in topics other than its own topic."""
        return any(partition.topic != self.topic for partition in self.offsets)

    def _own(self) -> str:
        """Returns the offsets in the checkpoint's own topic, as JSON."""
        own = {partition.number: offset for partition, offset in self.offsets.items() if partition.topic == self.topic}
        return json.dumps({str(number): offset for number, offset in sorted(own.items())})


def others(schema: str) -> str:
    """Returns the query for the databases other than ``schema`` that contain a checkpoint table."""
    return (
        "SELECT TABLE_SCHEMA FROM information_schema.COLUMNS WHERE TABLE_NAME='checkpoint' "
        f"AND COLUMN_NAME='leader_gtid' AND TABLE_SCHEMA<>{quoted(schema)} AND TABLE_SCHEMA RLIKE '^[0-9A-Za-z_$-]+$'"
    )


def select_leader(resource: str, *, schema: str) -> str:
    """Returns the query for five columns: the binlog file, offset, GTID and commit time of the last applied record, and
    the time at which it was applied.
    """
    columns = "leader_file, leader_offset, leader_gtid, leader_ts_us, applied_at"
    return CHECKPOINT.select(schema, resource, columns, where=f"worker={WORKER}")
