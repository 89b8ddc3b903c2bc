"""Filters that were changed between two runs: what they let in now, and did not, is in the topic only from now on.

A table that exists on the leader by then has rows, or at least a definition, which no follower would ever get.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial

from cdc.config.filters import Filters
from cdc.errors import UserError
from cdc.producer.binlog.leader import Objects

__all__ = ["require_accepted"]

_SHOWN = 10
_COPY = "copy them to the followers while nothing writes to them (README, Filters), and start with --accept-filters"


def require_accepted(
    before: dict[str, list[str]], now: Filters, *, ask: Callable[[], Objects], accepted: bool, log: Callable[..., None]
) -> None:
    """Log that the filters ``before`` were changed, and what of the leader's objects that lets in, by name.

    ``ask`` is called only where that can be any. Raises UserError where it is, unless the user has ``accepted`` it.
    """
    if before == now.listed():
        return
    change = ", ".join(_changes(before, now.listed()))
    warn = partial(log, "the filters were changed", level=logging.WARNING, change=change)
    then = Filters(**{key: tuple(globs) for key, globs in before.items()})
    if now.narrows(then):
        warn(let_in="nothing")
        return
    objects = ask()
    names = sorted(_let_in(then, now, objects))
    if accepted:
        warn(let_in=_shown(names) or "nothing that can be seen", accepted="their earlier rows are not in the topic")
    elif names:
        raise UserError(
            f"the filters let in what they left out before ({change}), and the leader has {_shown(names)}: what was "
            "written there until now is not in the topic",
            where="profile key filters",
            hint=f"put the filters back; or {_COPY}",
        )
    elif not objects.all_seen:
        raise UserError(
            f"the filters may let in what they left out before ({change}), and our user can't see all tables",
            where="profile key filters",
            hint="GRANT SELECT ON *.* to it; or put the filters back; or, where no such table exists or after a copy "
            "of those, start with --accept-filters",
        )
    else:
        warn(let_in="nothing that exists")


def _changes(before: dict[str, list[str]], now: dict[str, list[str]]) -> Iterator[str]:
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            yield f"{key} was {before.get(key, [])}, is {now.get(key, [])}"


def _let_in(then: Filters, now: Filters, objects: Objects) -> Iterator[str]:
    """The tables that pass now and did not, and such databases where none of their tables is among these."""
    databases = {name for name in objects.databases if now.wants_database(name) and not then.wants_database(name)}
    for database, table in objects.tables:
        if now.wants_table(database, table) and not then.wants_table(database, table):
            databases.discard(database)
            yield f"{database}.{table}"
    yield from databases


def _shown(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more, {len(names)} in all" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
