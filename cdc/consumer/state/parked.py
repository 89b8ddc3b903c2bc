"""Defines the table of parked tables: those whose changes are left out since the follower has refused one of them
(``consumer.on_refused = "park"``). Its rows commit together with the checkpoint, so a crash leaves both or neither.
Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable

__all__ = [
    "COPIED",
    "COPYING",
    "PARKED",
    "PARTIAL",
    "TABLE",
    "Name",
    "ParkedTable",
    "advance",
    "changes",
    "parsed",
    "select",
]

Name = tuple[str, str]
"""The leader's names of database and table."""

# The states of a parked table. PARKED: it is as before the record ``sequence``, but for writes of other clients.
# PARTIAL: besides, a copy of it has begun and was not completed. COPYING: its copy is under way, its changes are
# applied. COPIED: it is as on the leader, but another parked table is not yet.
PARKED, PARTIAL, COPYING, COPIED = "parked", "partial", "copying", "copied"

TABLE = OwnTable(
    "parked",
    """
  database_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'on the leader',
  table_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'on the leader',
  state ENUM('parked', 'partial', 'copying', 'copied') NOT NULL,
  sequence BIGINT NOT NULL COMMENT 'of the first record that is left out',
  changed BIGINT NOT NULL COMMENT 'of the record with which the state was reached',
  reason VARCHAR(2000) CHARACTER SET utf8mb4 NOT NULL,
  at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
    key=("database_name", "table_name"),
)
_COLUMNS = "database_name, table_name, state, sequence, changed, reason"
_LONGEST = 2000  # characters of a reason


@dataclass(frozen=True, slots=True)
class ParkedTable:
    """A parked table. All its changes from the record ``sequence`` on are left out, for ``reason``. The record
    ``changed`` is the one with which the table reached its ``state``.
    """

    sequence: int
    changed: int
    state: str
    reason: str

    @property
    def waits(self) -> bool:
        """Whether changes of the table are left out; false from the beginning of its copy on."""
        return self.state in (PARKED, PARTIAL)


def select(schema: str, resource: str) -> str:
    """Returns the query for the parked tables of a leader; ``parsed`` reads its result."""
    return TABLE.select(schema, resource, _COLUMNS)


def parsed(rows: Iterable[tuple[Any, ...]]) -> dict[Name, ParkedTable]:
    """Returns the parked tables by the leader's names."""
    return {
        (str(database), str(table)): ParkedTable(int(sequence), int(changed), str(state), str(reason))
        for database, table, state, sequence, changed, reason in rows
    }


def changes(
    schema: str, resource: str, before: Mapping[Name, ParkedTable], after: Mapping[Name, ParkedTable]
) -> list[str]:
    """Returns the statements that change the rows of a leader from ``before`` to ``after``."""
    made = []
    for (database, table), parked in after.items():
        if before.get((database, table)) == parked:
            continue
        insert = TABLE.insert(
            schema,
            resource,
            database_name=database,
            table_name=table,
            state=parked.state,
            sequence=parked.sequence,
            changed=parked.changed,
            reason=parked.reason[:_LONGEST],
            now="at",
        )
        made.append(f"REPLACE{insert.removeprefix('INSERT')}")
    for database, table in before.keys() - after.keys():
        where = f"database_name={quoted(database)} AND table_name={quoted(table)}"
        made.append(TABLE.delete(schema, resource, where=where))
    return made


def advance(schema: str, resource: str, *, last: int) -> str:
    """Returns the statement that notes that the records up to ``last`` were applied to the tables that wait. It matches
    the tables of which the first record that is left out is not after ``last``.
    """
    return (
        f"UPDATE {TABLE.within(schema)} SET sequence={last + 1} "
        f"WHERE resource={quoted(resource)} AND state={quoted(PARKED)} AND sequence <= {last}"
    )
