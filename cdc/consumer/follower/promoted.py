"""Creates the leader's triggers and events on a follower that is promoted, and queries how far two servers have got."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pymysql

from cdc.config.profile import Database
from cdc.consumer.follower.session import translated
from cdc.errors import CdcError, UserError
from cdc.model.gtid import GtidSet
from cdc.service.mysql_connection import connected

__all__ = ["ServerState", "create", "server_state"]

_ANSWER_SECONDS = 10
_THERE = frozenset({1359, 1537})  # the trigger or the event exists


class ServerState(NamedTuple):
    """Whether a server refuses the writes of clients, whether its event scheduler runs, and what it has executed."""

    read_only: bool
    runs_events: bool
    executed: GtidSet


def server_state(database: Database) -> ServerState | None:
    """Queries a server's state; None if it does not answer."""
    try:
        with _cursor(database) as cursor:
            cursor.execute("SELECT @@GLOBAL.read_only, @@GLOBAL.event_scheduler = 'ON', @@GLOBAL.gtid_executed")
            read_only, runs_events, executed = cursor.fetchone()
            return ServerState(bool(read_only), bool(runs_events), GtidSet.parse(executed))
    except CdcError:
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


@contextmanager
def _cursor(database: Database) -> Iterator[Any]:
    limits = {"read_timeout": _ANSWER_SECONDS, "write_timeout": _ANSWER_SECONDS, "autocommit": True}
    try:
        with connected(**database.settings() | limits) as connection, connection.cursor() as cursor:
            yield cursor
    except (pymysql.MySQLError, OSError) as error:
        raise UserError(
            f"a trigger or an event can't be created: {translated(error)}",
            code="CDC-PROMOTION-REFUSED",
            where=str(database),
            hint="create it by hand from the output of --status, or correct what the server names; then run --promote "
            "again: what exists already is left as it is",
        ) from None
