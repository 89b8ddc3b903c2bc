"""The errors for events that can't be replicated, and what such an event may have changed."""

import re
from collections.abc import Iterable

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.sql.effects import ANY_DATABASE, Effect
from cdc.sql.redaction import excerpt
from cdc.sql.text import is_lost

__all__ = ["Damaged", "nameless", "not_closed", "passed_over", "refused_statement", "unknown_event", "unreadable"]

_VERB = re.compile("^(Create|Alter|Drop|Rename|Truncate|Maintain)")
_UNKNOWN_STATEMENT = (
    "run it on the follower by hand, then start a new topic there, or report the statement so that it can be added"
)


class Damaged(PromiseError):
    """The events are not in an order that a binlog can have: skipping one would not help."""


def nameless(event: RawEvent) -> Damaged:
    return Damaged(
        "a transaction has no GTID event", where=str(event.position), hint="the leader must be MySQL 8.0 or newer"
    )


def not_closed(event: RawEvent) -> Damaged:
    return Damaged(
        "a transaction begins before the previous one has ended",
        where=str(event.position),
        hint="the leader's binlog is damaged: give the producer a new topic and the follower a fresh copy",
    )


def unreadable(event: RawEvent, error: Exception) -> PromiseError:
    return PromiseError(
        f"event {event.type} ({et.NAMES.get(event.type, 'unknown')}) cannot be read: {error!r}",
        where=str(event.position),
        hint="this leader writes events that this version of cdc does not know",
    )


def unknown_event(event: RawEvent) -> PromiseError:
    name = et.NAMES.get(event.type, "unknown")
    return PromiseError(
        f"event {event.type} ({name}) is not supported, and ignoring it would lose a change",
        where=str(event.position),
        hint=et.FATAL.get(event.type, "this leader writes events that this version of cdc does not know"),
    )


def refused_statement(kind: str, text: str, event: RawEvent) -> PromiseError:
    """The error for a statement of this ``kind``, which can't be replicated."""
    quoted = excerpt(text)
    if kind == "dml":
        return PromiseError(
            f"a change was logged as a statement, not as rows: {quoted}",
            where=str(event.position),
            hint="some session runs with another binlog_format: SET PERSIST binlog_format = ROW on the leader",
        )
    if kind in ("rollback", "rollback to"):
        return PromiseError(
            "a transaction was rolled back in part after rows of non-transactional tables",
            where=str(event.position),
            hint="use InnoDB tables only",
        )
    return PromiseError(
        f"the statement is not known, so what it affects is not known: {quoted}",
        where=str(event.position),
        hint=_UNKNOWN_STATEMENT,
    )


def passed_over(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """``effects`` of a statement that is skipped, as the record of the skip has them: without names with lost bytes."""
    found: dict[Effect, None] = {}
    for effect in effects:
        action = _VERB.sub("Skip", effect.action).replace("Index", "Table")
        for database, name in ((effect.database, effect.name), *([effect.to] if effect.to is not None else [])):
            if is_lost(database):
                return (ANY_DATABASE,)
            known = name is None or not is_lost(name)
            found[Effect(action, database, name) if known else Effect("SkipDatabase", database)] = None
    return tuple(found) or (ANY_DATABASE,)
