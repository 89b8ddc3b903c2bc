"""Marks a follower that cdc-seed is loading, by a row that exists from its first checkpoint until its last row is
loaded.

While it exists the checkpoint gives the progress of the load, and the follower is equal to no state of the leader.
"""

from dataclasses import dataclass

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted

__all__ = ["Seed", "create", "delete", "insert", "seed_of"]

_SEEDS = """
  resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'mysql_resource_name of the leader',
  upto BIGINT NOT NULL COMMENT 'sequence of which the follower becomes equal to the leader',
  scope LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON: filters and renames',
  at DATETIME(6) NOT NULL COMMENT 'UTC',
  PRIMARY KEY (resource)
) ENGINE=InnoDB"""


@dataclass(frozen=True, slots=True)
class Seed:
    """A load after which the follower equals the leader at sequence ``upto``, within the filters and renames of
    ``scope``. Rows that they left out are not loaded later.
    """

    upto: int
    scope: str


def _table(schema: str) -> str:
    return f"`{schema}`.`seeds`"


def create(schema: str) -> str:
    """The statement that creates the table in the consumer's own database."""
    return f"CREATE TABLE IF NOT EXISTS {_table(schema)} ({_SEEDS}"


def insert(schema: str, resource: str, seed: Seed) -> str:
    """The statement that records that the follower is being loaded."""
    values = f"{quoted(resource)}, {seed.upto}, {quoted(seed.scope)}, NOW(6)"
    return f"INSERT INTO {_table(schema)} (resource, upto, scope, at) VALUES ({values})"


def delete(schema: str, resource: str) -> str:
    """The statement that removes the mark, after which the follower is complete."""
    return f"DELETE FROM {_table(schema)} WHERE resource={quoted(resource)}"


def seed_of(session: Session, resource: str) -> Seed | None:
    """The seed that has begun and not ended; None for any other follower. Raises Interrupted, Refused."""
    schema = session.schema
    there = f"SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA={quoted(schema)} AND TABLE_NAME='seeds'"
    found = f"SELECT upto, scope FROM {_table(schema)} WHERE resource={quoted(resource)}"
    rows = session.rows(found) if session.rows(there) else []
    return Seed(int(rows[0][0]), str(rows[0][1])) if rows else None
