"""What the follower would do to replicated rows by itself: its triggers, and the events that its scheduler runs.

What the leader's have done is among its rows, so the follower's would do it once more. A copy by mysqldump has them.
"""

import logging
from collections.abc import Callable

from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted, table_name
from cdc.errors import PromiseError
from cdc.model.record import Uri
from cdc.service.process import event

__all__ = ["Triggers"]

_LOG = logging.getLogger("cdc.consumer")


class Triggers:
    """Looked for before a table's first rows, and again after ``forget``: a statement may have made some.

    ``drop``: triggers are dropped instead of refused. ``passes(uri)`` says whose tables are replicated.
    """

    def __init__(self, session: Session, *, drop: bool, passes: Callable[[Uri], bool]) -> None:
        self._session = session
        self._drop = drop
        self._passes = passes
        self._checked: set[str] = set()  # databases whose events are known to be harmless
        self._warned: set[str] = set()

    def forget(self) -> None:
        """Ask for events again next time; triggers are asked for with each table."""
        self._checked.clear()

    def check(self, table: Uri) -> None:
        """Raises PromiseError where the table has a trigger or its database an event that runs; Interrupted, Refused.

        Not for the session of the rows to drop a trigger: its transaction, which may be open, would commit.
        """
        if table.database not in self._checked:
            self._check_events(table)
            self._checked.add(table.database)
        names = [name for name, of in self._triggers(table) if of == table.table]
        if names and not self._drop:
            raise self._refused(table)
        if names:
            with self._session.another() as beside:
                beside.connect()
                for name in names:
                    beside.run([_dropped(table, name).encode()])
                    event(_LOG, "trigger dropped", level=logging.WARNING, trigger=name, table=table_name(table))

    def _triggers(self, table: Uri) -> list[tuple[str, str]]:
        """The triggers of the table's database, which is their own, and their tables."""
        return [
            (str(name), str(of))
            for name, of in self._session.rows(
                "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS "
                f"WHERE EVENT_OBJECT_SCHEMA = {quoted(table.database)}"
            )
        ]

    def _refused(self, table: Uri) -> PromiseError:
        """Names those of all replicated tables of the database, so that they can be dropped in one go."""
        replicated = [name for name, of in self._triggers(table) if self._passes(table._replace(table=of))]
        return PromiseError(
            "the follower's table has triggers, which would do once more what the leader's have done",
            where=str(table),
            hint=f"on the follower: {'; '.join(_dropped(table, name) for name in replicated)}; "
            'or set consumer.triggers = "drop"',
        )

    def _check_events(self, table: Uri) -> None:
        names = self._session.rows(
            "SELECT EVENT_NAME FROM information_schema.EVENTS "
            f"WHERE EVENT_SCHEMA = {quoted(table.database)} AND STATUS = 'ENABLED'"
        )
        if not names:
            return
        disable = "; ".join(f"ALTER EVENT {identifier(table.database)}.{identifier(name)} DISABLE" for (name,) in names)
        ((scheduler,),) = self._session.rows("SELECT @@GLOBAL.event_scheduler")
        if scheduler == "ON":
            raise PromiseError(
                "the follower runs events of a replicated database, which would do once more what the leader's do",
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
    # To the audit, dropping what no log has made is a drift, but not IF EXISTS.
    return f"DROP TRIGGER IF EXISTS {identifier(table.database)}.{identifier(name)}"
