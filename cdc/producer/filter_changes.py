"""Compares the filters with those of the previous run; refuses to include existing tables whose rows no topic has.

A table that passes the filters only now, and exists on the leader already, has a definition and perhaps rows that no
follower would ever get.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial

from cdc.config.filters import Filters
from cdc.errors import UserError
from cdc.producer.binlog.leader import Objects

__all__ = ["require_accepted"]

_LISTED = 10
_COPY = (
    "copy them to the followers while nothing writes to them (docs/filters-and-renames.md), and start with "
    "--accept-filters"
)


def require_accepted(
    before: dict[str, list[str]], now: Filters, *, ask: Callable[[], Objects], accepted: bool, log: Callable[..., None]
) -> bool:
    """Log that the filters ``before`` were changed, and which of the leader's objects pass them only ``now``.

    Returns whether something may pass them only now. ``ask`` is called only where there can be such objects. Raises
    UserError where there are, unless the user has ``accepted`` that.
    """
    if before == now.listed():
        return False
    change = ", ".join(_changes(before, now.listed()))
    warn = partial(log, "the filters were changed", level=logging.WARNING, change=change)
    then = Filters(**{key: tuple(globs) for key, globs in before.items()})
    if now.narrows(then):
        warn(newly_included="none")
        return False
    objects = ask()
    names = sorted(_newly_included(then, now, objects))
    if accepted:
        warn(newly_included=_listed(names) or "none visible", accepted="their earlier rows are not in the topic")
    elif names:
        raise UserError(
            f"the filters now include what they left out before ({change}), and the leader has {_listed(names)}: its "
            "earlier rows are not in the topic",
            where="profile key filters",
            hint=f"put the filters back; or {_COPY}",
        )
    elif not objects.all_seen:
        raise UserError(
            f"the filters may now include tables that they left out before ({change}), and our user can't see all "
            "tables",
            where="profile key filters",
            hint="GRANT SELECT ON *.* to it; or put the filters back; or start with --accept-filters, where no such "
            "table exists or after copying them",
        )
    else:
        warn(newly_included="none that exists")
    return True


def _changes(before: dict[str, list[str]], now: dict[str, list[str]]) -> Iterator[str]:
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            yield f"{key} was {before.get(key, [])}, is {now.get(key, [])}"


def _newly_included(then: Filters, now: Filters, objects: Objects) -> Iterator[str]:
    """The tables that pass now and did not pass then, and such databases without any of these tables."""
    databases = {name for name in objects.databases if now.wants_database(name) and not then.wants_database(name)}
    for database, table in objects.tables:
        if now.wants_table(database, table) and not then.wants_table(database, table):
            databases.discard(database)
            yield f"{database}.{table}"
    yield from databases


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more, {len(names)} in all" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
