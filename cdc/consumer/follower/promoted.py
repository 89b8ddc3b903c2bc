"""Creates the leader's triggers and events on a follower that is promoted, and queries how far two servers have got."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pymysql

from cdc.config.profile import Database
from cdc.consumer.errors import Interrupted
from cdc.consumer.follower.session import translated
from cdc.errors import Disconnected, UserError
from cdc.model.gtid import GtidSet
from cdc.service.mysql_connection import connected

__all__ = ["ServerState", "answer", "create", "server_state"]

_ANSWER_SECONDS = 10
_THERE = frozenset({1359, 1537})  # the trigger or the event exists


class ServerState(NamedTuple):
    """Whether a server refuses the writes of clients, whether its event scheduler runs, and what it has executed.

    ``admins_write`` is true if it takes those of users with CONNECTION_ADMIN or SUPER nevertheless.
    """

    read_only: bool
    runs_events: bool
    executed: GtidSet
    admins_write: bool = False


def server_state(database: Database) -> ServerState | None:
    """Queries a server's state; None if it can't be reached. Raises UserError if it refuses: it may take writes."""
    try:
        with _cursor(database) as cursor:
            cursor.execute(
                "SELECT @@GLOBAL.read_only, @@GLOBAL.event_scheduler = 'ON', @@GLOBAL.gtid_executed, "
                "@@GLOBAL.super_read_only = 0"
            )
            read_only, runs_events, executed, admins_write = cursor.fetchone()
            return ServerState(bool(read_only), bool(runs_events), GtidSet.parse(executed), bool(admins_write))
    except Disconnected:
        return None


def create(database: Database, statements: Iterable[str]) -> int:
    """Executes the statements that create triggers and events, in order; returns the number of those that exist
    already, from an earlier attempt.

    Raises UserError if the server does not answer, or refuses a statement.
    """
    there = 0
    with _cursor(database) as cursor:
        for statement in statements:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                if error.args[0] not in _THERE:
                    raise
                there += 1
    return there


def answer(database: Database, *statements: str) -> tuple[tuple[Any, ...], ...]:
    """Executes statements; returns the rows of the last one. Raises UserError if the server does not answer, or refuses
    a statement.
    """
    with _cursor(database) as cursor:
        for statement in statements:
            cursor.execute(statement)
        return tuple(cursor.fetchall())


@contextmanager
def _cursor(database: Database) -> Iterator[Any]:
    limits = {"read_timeout": _ANSWER_SECONDS, "write_timeout": _ANSWER_SECONDS, "autocommit": True}
    try:
        with connected(**database.settings() | limits) as connection, connection.cursor() as cursor:
            yield cursor
    except (pymysql.MySQLError, OSError) as error:
        found = translated(error)
        if isinstance(found, Interrupted):
            raise Disconnected(
                f"a server can't be asked: {found}",
                code="CDC-PROMOTION-NO-ANSWER",
                where=str(database),
                hint="run --promote again: what exists already is left as it is",
            ) from None
        raise UserError(
            f"a server refuses: {found}",
            code="CDC-PROMOTION-REFUSED",
            where=str(database),
            hint="correct what it names, or create a trigger or event by hand from the output of --status; then run "
            "--promote again, for a leader that is MariaDB without --leader: what exists already is left as it is",
        ) from None
