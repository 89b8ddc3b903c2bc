"""Requests that the running producer, or the next one, copy tables, or stop copying them."""

from collections.abc import Callable, Sequence
from functools import partial

from cdc.config.profile import Profile
from cdc.config.table_globs import TableGlobs
from cdc.errors import UserError
from cdc.producer import pipeline
from cdc.producer.commands.copy_status import current_state
from cdc.producer.copy.progress_log import ProgressLog
from cdc.producer.copy.requests import write_request
from cdc.producer.copy.selection import selected_tables
from cdc.producer.copy.state import Pending

__all__ = ["ask_for_copies", "stop_copies"]

_STOP = "--copy-stop"


def ask_for_copies(profile: Profile, globs: Sequence[str], *, log: Callable[..., None]) -> int:
    """Requests a copy of the tables that match ``globs``; returns the exit status. Raises UserError, Disconnected."""
    leave_out = partial(ProgressLog(log).left_out, repair=False)
    tables = selected_tables(
        profile.database.settings(), pipeline.find_leader(profile), globs, profile.filters, leave_out
    )
    write_request(profile.kafka, profile.mysql_resource_name, tables)
    log("asked for a copy", tables=len(tables))
    return 0


def stop_copies(profile: Profile, globs: Sequence[str], *, log: Callable[..., None]) -> int:
    """Requests that the tables that match ``globs`` are no longer copied; returns the exit status.

    Raises UserError if none is to be copied, or if followers have one only through its copy; Disconnected.
    """
    pending, requests = current_state(profile)
    wanted = TableGlobs.of(globs, key=_STOP, names_database=True)
    asked = {table for request in requests if not request.stop for table in request.tables}
    known = pending or Pending()
    tables = [table for table in dict.fromkeys((*known.tables, *sorted(asked))) if wanted.match(*table)]
    if not tables:
        raise UserError(
            f"no table that is to be copied matches {', '.join(globs)}",
            code="CDC-COPY-NOT-REQUESTED",
            where=_STOP,
            hint="cdc-producer PROFILE --copy-status names those that are",
        )
    if first := [".".join(table) for table in tables if table in known.fresh]:
        raise UserError(
            f"the first copy of the leader has these tables, and a follower nothing else of them: {', '.join(first)}",
            code="CDC-COPY-OF-LEADER",
            where=_STOP,
            hint="let it end; or leave them out with the filters, and start the producer again",
        )
    if known.is_emptied and known.current in tables:
        raise UserError(
            f"followers have removed all rows of {'.'.join(known.current)}, and get those of the leader now",
            code="CDC-COPY-EMPTIED-TABLE",
            where=_STOP,
            hint="let the copy end; or leave the table out with the filters, and start the producer again: followers "
            "then lack rows of it",
        )
    write_request(profile.kafka, profile.mysql_resource_name, tables, stop=True)
    log("asked to stop copies", tables=len(tables))
    return 0
