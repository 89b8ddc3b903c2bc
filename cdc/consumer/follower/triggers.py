"""Refuses or drops triggers, and refuses scheduled events, because with them the follower would change replicated rows
itself.

The stream already contains the changes that the leader's triggers and events have made, so the follower's triggers and
events would make the same changes a second time. A dump by mysqldump contains triggers and events.
"""

import logging
from collections.abc import Callable

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted, table_name
from cdc.errors import PromiseError
from cdc.model.record import Uri
from cdc.service.logs import event

__all__ = ["Triggers"]

_LOG = logging.getLogger("cdc.consumer")


class Triggers:
    """Checks that a table has no triggers and its database no active events, before rows are applied to the table.

    If ``drop`` is true, triggers are dropped instead of refused. ``passes(uri)`` decides which tables are replicated.
    Queries are sent over ``session``.
    """

    def __init__(self, session: Session, *, drop: bool, passes: Callable[[Uri], bool]) -> None:
        self.session = session
        self._drop = drop
        self._passes = passes
        self._checked: set[str] = set()  # databases whose events were checked and do not run
        self._warned: set[str] = set()

    def forget(self) -> None:
        """Forgets which events were checked, so that they are read again; triggers are read again with each table
        anyway."""
        self._checked.clear()

    def check(self, table: Uri) -> None:
        """Checks a table before rows are applied to it. Raises Interrupted and Refused, and PromiseError for a trigger
        that must not be dropped, and for an event that runs in the table's database.

        Triggers are dropped on a new connection, because a DROP on the session that applies rows would commit its
        transaction.
        """
        if table.database not in self._checked:
            self.check_events(table)
            self._checked.add(table.database)
        self.check_triggers(table)

    def check_triggers(self, table: Uri) -> None:
        """Checks the table's triggers in the same way as ``check``: drops the triggers, or raises PromiseError."""
        names = [name for name, of in self._triggers(table) if of == table.table]
        if names and not self._drop:
            raise self._refused(table)
        if names:
            with self.session.another() as other:
                other.connect()
                for name in names:
                    other.run([_dropped(table, name).encode()])
                    event(_LOG, "trigger dropped", level=logging.WARNING, trigger=name, table=table_name(table))

    def _triggers(self, table: Uri) -> list[tuple[str, str]]:
        """Returns the triggers in the table's database, each with its name and its table."""
        return [
            (str(name), str(of))
            for name, of in self.session.rows(
                "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS "
                f"WHERE EVENT_OBJECT_SCHEMA = {quoted(table.database)}"
            )
        ]

    def _refused(self, table: Uri) -> PromiseError:
        """Returns the error, with the statements that drop the triggers of all replicated tables in the database."""
        replicated = [name for name, of in self._triggers(table) if self._passes(table._replace(table=of))]
        return PromiseError(
            "the follower's table has triggers, which would repeat the changes of the leader's triggers",
            code="CDC-FOLLOWER-TRIGGERS",
            where=str(table),
            hint=f"on the follower: {'; '.join(_dropped(table, name) for name in replicated)}; "
            'or set consumer.triggers = "drop"',
        )

    def check_events(self, table: Uri) -> None:
        """Checks the events in the table's database in the same way as ``check``; ``table`` may also be a database.
        Warns about events that would run if the event scheduler were switched on.
        """
        names = self.session.rows(
            "SELECT EVENT_NAME FROM information_schema.EVENTS "
            f"WHERE EVENT_SCHEMA = {quoted(table.database)} AND STATUS = 'ENABLED'"
        )
        if not names:
            return
        disable = "; ".join(f"ALTER EVENT {identifier(table.database)}.{identifier(name)} DISABLE" for (name,) in names)
        ((scheduler,),) = self.session.rows("SELECT @@GLOBAL.event_scheduler")
        if scheduler == "ON":
            raise PromiseError(
                "the follower runs events of a replicated database, which would repeat changes of the leader's events",
                code="CDC-FOLLOWER-TRIGGERS",
                where=str(table._replace(table=None)),
                hint=f"on the follower: SET sql_log_bin = 0, since the audit takes an ALTER for drift; {disable}",
            )
        if table.database not in self._warned:
            self._warned.add(table.database)
            event(
                _LOG, "events would run once event_scheduler is ON", level=logging.WARNING, database=table.database,
                hint=disable,
            )  # fmt: skip


def _dropped(table: Uri, name: str) -> str:
    # IF EXISTS is necessary: if no logged statement created the trigger, the audit would report a plain DROP as drift.
    return f"DROP TRIGGER IF EXISTS {identifier(table.database)}.{identifier(name)}"
