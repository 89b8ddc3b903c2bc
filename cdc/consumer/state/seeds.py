"""Marks a follower that cdc-seed is loading: the table ``seeds`` has a row for it from the first checkpoint until all
rows are loaded.

While that row exists, the checkpoint contains the progress of the load, and the follower equals no state of the leader.
"""

from dataclasses import dataclass

from cdc.consumer.follower.session import Session
from cdc.consumer.state.own_table import OwnTable

__all__ = ["SEEDS", "Seed", "seed_of"]

SEEDS = OwnTable(
    "seeds",
    """
  upto BIGINT NOT NULL COMMENT 'sequence of which the follower becomes equal to the leader',
  scope LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON: filters and renames',
  at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
)


@dataclass(frozen=True, slots=True)
class Seed:
    """A load by cdc-seed. After the load, the follower equals the leader at sequence ``upto``, within the filters and
    renames in ``scope``. Rows that these filters leave out can't be loaded later.
    """

    upto: int
    scope: str


def seed_of(session: Session, resource: str) -> Seed | None:
    """Returns the seed that is loading the follower; None if the follower is not being loaded. Raises Interrupted,
    Refused.
    """
    found = SEEDS.select(session.schema, resource, "upto, scope")
    rows = session.rows(found) if session.rows(SEEDS.exists(session.schema)) else []
    return Seed(int(rows[0][0]), str(rows[0][1])) if rows else None
