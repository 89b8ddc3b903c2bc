"""Leaves out what touches a parked table (``source.parked_tables``), and keeps the set of parked tables on the
follower, in one transaction with the checkpoint.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from cdc.config.renames import Renames
from cdc.config.table_globs import copy_command, named
from cdc.consumer.apply.committed import moved
from cdc.consumer.apply.planned_batch import ending
from cdc.consumer.errors import Unapplicable
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.assembler import Batch
from cdc.consumer.source.parked_tables import GONE, LeftOutLate, ParkedTables, is_gone, may_park
from cdc.consumer.state import parked
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.parked import COPIED, Name, ParkedTable
from cdc.model.record import Record
from cdc.service.logs import event

__all__ = ["Parking", "changing_keys", "unpark"]

_LOG = logging.getLogger("cdc.consumer")
_WAYS = "{}; or, once the follower takes what was left out: cdc-consumer PROFILE --retry-parked"
_GIVEN_UP, _APPLIED = "given up: what was left out of it is missing", "what was left out is applied"
_CHANGING = "NOT (DELETE_RULE IN ('NO ACTION', 'RESTRICT') AND UPDATE_RULE IN ('NO ACTION', 'RESTRICT'))"


class Parking:
    """The parked tables of the leader ``resource``. ``parks`` is true if a refusal parks more tables; if it is false,
    those that are parked already wait nevertheless.

    ``session`` must have no answer outstanding when one of the methods that ask it is called: ``load``, ``pass_on``,
    ``against`` and ``settle``.
    """

    def __init__(self, session: Session, resource: str, *, renames: Renames, parks: bool) -> None:
        self._session = session
        self._resource = resource
        self._renames = renames
        self._parks = parks
        self._refused: dict[str, str] = {}  # transactions, kept until the program ends: see ParkedTables
        self._tables: ParkedTables | None = None  # None until they are read from the follower
        self._noted: Mapping[Name, ParkedTable] = {}  # the rows in the follower's table, as of the last prepared batch
        self._dependants: dict[Name, list[Name]] = {}

    @property
    def count(self) -> int:
        """The number of parked tables, as of the last prepared batch."""
        return len(self._noted)

    def restart(self) -> None:
        """Forgets what no commit on the follower has; the next batch begins with the follower's own rows."""
        self._tables = None
        self._dependants.clear()

    def load(self) -> ParkedTables:
        """Returns the tables; reads them from the follower if necessary. Raises Interrupted and Refused."""
        if self._tables is None:
            rows = self._session.rows(parked.select(self._session.schema, self._resource))
            self._noted = parked.parsed(rows)
            self._tables = ParkedTables(
                self._noted, refused=self._refused, former=self._renames.former, dependants=self._changed_with
            )
        return self._tables

    def asks(self, batch: Batch) -> bool:
        """Whether the follower may be asked about this batch, so that all batches before must be committed."""
        tables = self._tables
        return tables is None or any(map(tables.concerns, batch.records))

    def pass_on(self, batch: Batch, records: list[Record]) -> list[Record]:
        """Returns those of the batch's row records that are to be applied. Raises LeftOutLate, Interrupted and Refused.

        ``settle`` must be called for the statements that are executed or left out.
        """
        tables = self.load()
        if batch.statement is not None and records and tables.against(batch.statement) is not None:
            tables.settle(batch.statement)
        # Each part of a large transaction is seen, so that a later part which touches a parked table finds out that
        # parts before it are executed.
        is_part = not (batch.begins and batch.ends) and tables.holds
        if not (is_part or any(map(tables.concerns, records))):
            return records
        taken: list[Record] = []
        for transaction, group in groupby(records, key=lambda record: record.transaction):
            try:
                taken += tables.take(list(group))
            except LeftOutLate:
                self._refused[transaction] = ""
                raise
        return taken

    def against(self, record: Record) -> str | None:
        """Returns the reason why a statement is left out; None if it is not. Raises Unapplicable, Interrupted and
        Refused.
        """
        return self.load().against(record)

    def settle(self, statements: Iterable[Record]) -> None:
        """Notes that the statements are executed, or left out."""
        tables = self.load()
        for statement in statements:
            if not tables.settle(statement):
                self._dependants.clear()

    def notes(self) -> list[Statement]:
        """Returns the statements that bring the follower's table up to date, and logs what has changed."""
        tables = self.load().tables
        if tables == self._noted:
            return []
        made = parked.changes(self._session.schema, self._resource, self._noted, tables)
        for name, table in tables.items():
            if table.waits and not (name in self._noted and self._noted[name].waits):
                event(
                    _LOG, "table parked: its changes are left out from here on", level=logging.WARNING,
                    table=named(*name), sequence=table.sequence, reason=table.reason,
                    hint=_WAYS.format(copy_command(name)), parked=len(tables),
                )  # fmt: skip
            elif table.waits and table.changed != self._noted[name].changed:
                event(
                    _LOG, "a copy of a parked table is left out: the table stays parked", level=logging.WARNING,
                    table=named(*name), sequence=table.changed, reason=table.reason,
                )  # fmt: skip
        for name in self._noted.keys() - tables.keys():
            event(_LOG, "table no longer parked", table=named(*name), parked=len(tables))
        self._noted = dict(tables)
        return [Statement(text.encode()) for text in made]

    def ending(
        self, batch: Batch, before: Checkpoint, notes: Sequence[Statement]
    ) -> tuple[Sequence[Statement], Checkpoint]:
        """Returns the statements that end a batch's transaction, and the checkpoint that they set: see
        ``planned_batch.ending``."""
        return ending(batch, before, notes)

    def refuse(self, error: Unapplicable) -> bool:
        """Notes that the follower refuses a transaction, so that it is left out when it is prepared again. Returns
        False if it can't be left out.
        """
        transaction = error.record.transaction
        if not self._parks or transaction in self._refused or not may_park(error):
            return False
        self._refused[transaction] = GONE if is_gone(error) else f"{error.what} ({error.code})"
        return True

    def _changed_with(self, name: Name) -> list[Name]:
        """Returns the tables whose rows foreign keys change or delete together with rows of the table ``name``."""
        known = self._dependants.get(name)
        if known is None:
            database, table = self._renames.new(name[0]), name[1]
            rows = self._session.rows(
                "SELECT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE "
                f"UNIQUE_CONSTRAINT_SCHEMA={quoted(database)} AND REFERENCED_TABLE_NAME={quoted(table)} AND {_CHANGING}"
            )
            known = [(self._renames.former(str(schema)), str(child)) for schema, child in rows]
            self._dependants[name] = known
        return known


def changing_keys(session: Session, renames: Renames) -> list[tuple[Name, Name]]:
    """Returns the leader's names of the tables (child, parent) of each foreign key of the follower that changes or
    deletes rows of the child. Raises Interrupted and Refused.
    """
    rows = session.rows(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME FROM "
        f"information_schema.REFERENTIAL_CONSTRAINTS WHERE {_CHANGING}"
    )
    return [
        ((renames.former(str(schema)), str(child)), (renames.former(str(parents)), str(parent)))
        for schema, child, parents, parent in rows
    ]


def unpark(session: Session, checkpoint: Checkpoint, tables: Mapping[Name, ParkedTable], *, given_up: bool) -> int:
    """Commits that all those of the follower's parked ``tables`` that wait are parked no longer. Returns the number of
    tables that are not. ``given_up`` is true if what was left out of them is not applied; it is logged.

    Tables whose copy is complete are parked no longer either if no other table is left. Raises Interrupted and Refused,
    and PromiseError if the follower has other parked tables or another checkpoint.
    """
    left = {name: table for name, table in tables.items() if not table.waits}
    if all(table.state == COPIED for table in left.values()):
        left = {}
    made = parked.changes(session.schema, checkpoint.resource, tables, left)
    if not made:
        return 0
    made = [*made, checkpoint.stay()]
    if session.run([text.encode() for text in made]) != [1] * len(made):
        raise moved(checkpoint)
    session.commit()
    for name in sorted(tables.keys() - left.keys()):
        level, reason = (logging.WARNING, _GIVEN_UP) if given_up else (logging.INFO, _APPLIED)
        event(_LOG, "table no longer parked", level=level, table=named(*name), parked=len(left), reason=reason)
    return len(tables) - len(left)
