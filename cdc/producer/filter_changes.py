"""Compares the filters with the filters of the previous run: existing objects that pass only the new filters must be
copied.

A table that exists on the leader already has a definition and perhaps rows. Later changes in the binlog would never
bring these to a follower.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from cdc.config.filters import FilterChange, Filters
from cdc.errors import PromiseError, UserError
from cdc.producer.binlog.leader import Objects

__all__ = ["Asked", "FilterEffect", "change_of", "former_filters_named", "newly_included"]

_LISTED = 10
_BY_HAND = (
    "copy them to the followers while nothing writes to them (docs/filters-and-renames.md), and start with "
    "--accept-filters"
)

_FORMER_FILTERS = (
    "the former filters still hold here, since the profile's filters include tables that are not copied yet: if this "
    "is about these tables, start once with --accept-filters, then run cdc-producer PROFILE --copy DB.TABLE; or put "
    "the filters back meanwhile"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The queries that the producer sends to the leader if the filters were changed. ``objects`` returns the leader's
    objects; ``require_copyable`` raises UserError if the objects that only the new filters include can't be copied.
    """

    objects: Callable[[], Objects]
    require_copyable: Callable[[FilterChange], None]


@dataclass(frozen=True, slots=True)
class FilterEffect:
    """The effect of changed filters. ``widened`` selects the objects that are copied before the new filters hold. If
    ``widened`` is None, no object is copied and the new filters hold at once. ``lets_in`` is true if there may be an
    object that passes the new filters and did not pass the old filters.
    """

    lets_in: bool = False
    widened: FilterChange | None = None


def change_of(
    before: dict[str, list[str]] | None, now: Filters, *, ask: Asked, accepted: bool, log: Callable[..., None]
) -> FilterEffect:
    """Logs that the filters ``before`` (None if they are not known) were changed, and which objects pass only ``now``.

    The leader is queried only if an object may pass only the new filters. Raises UserError if there is, or may be, such
    an object that can't be copied, unless the user has ``accepted`` that these objects are not copied.
    """
    if before is None or before == now.listed():
        return FilterEffect()
    change = "; ".join(_changes(before, now.listed()))
    warn = partial(log, "the filters were changed", level=logging.WARNING, change=change)
    # The commit log does not contain masks: the profile's present masks hold from the program's start on.
    then = now.as_listed(before)
    if now.narrows(then):
        warn(newly_included="none")
        return FilterEffect()
    widened, objects = FilterChange(then, now), ask.objects()
    names = sorted(newly_included(widened, objects))
    if accepted:
        warn(newly_included=_listed(names) or "none visible", accepted="their earlier rows are not in the topic")
    elif not objects.all_seen:
        raise UserError(
            f"the filters may now include tables that they left out before ({change}), and our user can't see all "
            "tables",
            code="CDC-FILTERS-TABLES-HIDDEN",
            where="profile key filters",
            hint=f"GRANT SELECT ON *.* to it, to have them copied; or put the filters back; or {_BY_HAND}",
        )
    elif names:
        _require_copyable(ask, widened, change, names)
        warn(newly_included=_listed(names), they="are copied, and until then the former filters hold")
        return FilterEffect(lets_in=True, widened=widened)
    else:
        warn(newly_included="none that exists")
    return FilterEffect(lets_in=True)


def _require_copyable(ask: Asked, widened: FilterChange, change: str, names: list[str]) -> None:
    try:
        ask.require_copyable(widened)
    except UserError as error:
        raise UserError(
            f"the filters now include what they left out before ({change}), and the leader has {_listed(names)}, whose "
            f"earlier rows are not in the topic, and can't be copied: {error.what}",
            code="CDC-FILTERS-INCLUDE-MORE",
            where="profile key filters",
            hint=f"{error.hint}; or put the filters back; or {_BY_HAND}",
        ) from None


def _changes(before: dict[str, list[str]], now: dict[str, list[str]]) -> Iterator[str]:
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            yield f"{key} was {_globs(before.get(key, []))}, is {_globs(now.get(key, []))}"


def _globs(listed: list[str]) -> str:
    return ", ".join(listed) or "empty"


def newly_included(widened: FilterChange, objects: Objects) -> Iterator[str]:
    """Yields the tables that pass the new filters and did not pass the old filters, or of which other rows pass. Also
    yields the databases that pass only the new filters and contain no such table.
    """
    databases = {name for name in objects.databases if widened.wants_database(name)}
    for database, table in objects.tables:
        if widened.wants_table(database, table):
            databases.discard(database)
            yield f"{database}.{table}"
    yield from databases


@contextmanager
def former_filters_named(they_hold: Callable[[], bool]) -> Iterator[None]:
    """Adds the hint that the former filters still hold to each PromiseError that the block raises, if ``they_hold``
    returns true.
    """
    try:
        yield
    except PromiseError as reason:
        if they_hold():
            reason.hint = f"{reason.hint} ({_FORMER_FILTERS})"
        raise


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more, {len(names)} in all" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
