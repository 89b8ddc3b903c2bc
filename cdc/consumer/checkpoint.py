"""The checkpoint: the row in the follower that says what has been applied. SQL text only."""

import json
from dataclasses import dataclass
from typing import Any, Self

from cdc.consumer.literals import quoted
from cdc.filters import CHECKPOINT_DATABASE
from cdc.record import Record

__all__ = ["CREATE", "WORKER", "Checkpoint"]

WORKER = 0
_TABLE = f"`{CHECKPOINT_DATABASE}`.`checkpoint`"

CREATE = (
    f"CREATE DATABASE IF NOT EXISTS `{CHECKPOINT_DATABASE}`",
    f"""CREATE TABLE IF NOT EXISTS {_TABLE} (
  resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'mysql_resource_name of the leader',
  worker INT NOT NULL,
  sequence BIGINT NOT NULL COMMENT 'last record applied, -1 before the first',
  topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  topic_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'tells a topic from its successor',
  offsets TEXT CHARACTER SET ascii NOT NULL COMMENT 'JSON: partition to next offset',
  leader_file VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  leader_offset BIGINT UNSIGNED NULL COMMENT 'where the last record''s event starts',
  leader_gtid VARCHAR(512) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'transaction of the last record',
  leader_ts_us BIGINT NULL COMMENT 'its commit on the leader, in microseconds since 1970',
  applied_at DATETIME(6) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (resource, worker)
) ENGINE=InnoDB""",
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What has been applied of one leader's topic: ``sequence`` is the last record, ``offsets`` where to read on."""

    resource: str
    topic: str
    topic_id: str
    sequence: int = -1
    offsets: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def select(resource: str) -> str:
        """Reads the row that ``from_row`` takes."""
        return (
            f"SELECT resource, topic, topic_id, sequence, offsets FROM {_TABLE} "
            f"WHERE resource={quoted(resource)} AND worker={WORKER}"
        )

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Self:
        """The checkpoint in a selected row."""
        resource, topic, topic_id, sequence, offsets = row
        pairs = sorted((int(partition), int(offset)) for partition, offset in json.loads(offsets).items())
        return cls(resource, topic, topic_id, int(sequence), tuple(pairs))

    def insert(self) -> str:
        """Writes the first row of a leader, before anything is applied."""
        return (
            f"INSERT INTO {_TABLE} (resource, worker, sequence, topic, topic_id, offsets, applied_at) VALUES "
            f"({quoted(self.resource)}, {WORKER}, {self.sequence}, {quoted(self.topic)}, {quoted(self.topic_id)}, "
            f"{quoted(self._offsets())}, NOW(6))"
        )

    def advanced(self, *, last: Record, offsets: dict[int, int]) -> "Checkpoint":
        """The checkpoint once everything up to ``last`` is applied."""
        merged = tuple(sorted((dict(self.offsets) | offsets).items()))
        return Checkpoint(self.resource, self.topic, self.topic_id, last.sequence, merged)

    def advance(self, target: "Checkpoint", *, last: Record) -> str:
        """Moves the row from this checkpoint to ``target``; matches no row where it has been moved by another."""
        return (
            f"UPDATE {_TABLE} SET sequence={target.sequence}, offsets={quoted(target._offsets())}, "
            f"leader_file={quoted(last.position.file)}, leader_offset={last.position.offset}, "
            f"leader_gtid={quoted(last.transaction)}, leader_ts_us={last.ts_us}, applied_at=NOW(6) "
            f"WHERE resource={quoted(self.resource)} AND worker={WORKER} AND sequence={self.sequence}"
        )

    def _offsets(self) -> str:
        return json.dumps({str(partition): offset for partition, offset in self.offsets})
