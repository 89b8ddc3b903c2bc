"""Checks at each start that the streams of one leader share its databases.

Each stream has a profile with filters of its own (``producer.beside`` names the others). A database in two streams is
refused, since two consumers would write it, and so is a foreign key from one stream to another, which could lose rows
(consumer.state.other_streams). Databases in no stream may be left out on purpose, so they are logged as a warning.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from cdc.config.filters import SYSTEM_DATABASES, Filters
from cdc.config.profile import Profile, load
from cdc.errors import UserError
from cdc.producer.binlog.leader import Leader, connected_cursor

__all__ = ["in_none", "problem", "require_shares"]

_LATER = "a_database_that_comes_later"  # stands for databases that are created while the producers run
_KEY = "profile keys producer.beside and filters"
_WHOLE = "include_dbs in the profiles of all streams but one, and in that one exclude_dbs with all of these"
_KEYS = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME, CONSTRAINT_NAME "
    "FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA <> UNIQUE_CONSTRAINT_SCHEMA"
)
Key = tuple[str, str, str, str, str]
"""A foreign key between two databases: database and table of the child, those of the parent, and its name."""


def require_shares(profile: Profile, leader: Leader, *, log: Callable[..., None]) -> None:
    """Raises UserError if the streams in ``producer.beside`` and this one do not share the leader's databases."""
    if not profile.producer.beside:
        return
    streams = {profile.mysql_resource_name: profile.filters}
    topics = {profile.kafka.topic}
    for path in profile.producer.beside:
        other = load(Path(path), key="producer.beside")
        if other.mysql_resource_name in streams or other.kafka.topic in topics:
            raise UserError(
                "two streams of one leader have the same mysql_resource_name or kafka.topic",
                code="CDC-STREAMS-SAME-NAME",
                where=f"profile {path} (profile key producer.beside)",
                hint="give each stream its own; producer.beside names the profiles of the other streams alone",
            )
        streams[other.mysql_resource_name] = other.filters.folded() if leader.folds_names else other.filters
        topics.add(other.kafka.topic)
    with connected_cursor(profile.database.settings(), leader.name) as cursor:
        cursor.execute("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1")
        databases = [str(name) for (name,) in cursor.fetchall() if name not in SYSTEM_DATABASES]
        cursor.execute(_KEYS)
        found = problem(databases, list(cursor.fetchall()), streams)
    if found is not None:
        raise found
    if missing := in_none(databases, streams):
        log("databases are in no stream", level=logging.WARNING, databases=", ".join(missing), hint=_WHOLE)
    log("no database is in two streams", streams=", ".join(streams), databases=len(databases))


def problem(databases: Iterable[str], keys: Iterable[Key], streams: Mapping[str, Filters]) -> UserError | None:
    """Returns the first reason why the ``streams`` (the filters of each by its name) do not share the ``databases``;
    None if they do. ``keys`` are the foreign keys between databases.
    """
    return next(_problems(databases, keys, streams), None)


def _problems(databases: Iterable[str], keys: Iterable[Key], streams: Mapping[str, Filters]) -> Iterator[UserError]:
    for database in (*databases, _LATER):
        wanted = _of(database, streams)
        if len(wanted) > 1:
            what = f"{_named(database)} is in the streams {' and '.join(wanted)}"
            yield UserError(what, code="CDC-STREAMS-OVERLAP", where=_KEY, hint=_WHOLE)
    for child_database, child, parent_database, parent, name in keys:
        of_child, of_parent = _of(child_database, streams), _of(parent_database, streams)
        if of_child and of_parent and of_child != of_parent:
            what = (
                f"foreign key {name} of {child_database}.{child} refers to another stream: {parent_database}.{parent}"
            )
            yield UserError(
                what,
                code="CDC-STREAMS-FOREIGN-KEY",
                where=_KEY,
                hint="replicate both databases in one stream: rows of the two come at different times",
            )


def in_none(databases: Iterable[str], streams: Mapping[str, Filters]) -> list[str]:
    """Returns the databases, also those that come later, that are in no stream."""
    return [_named(database) for database in (*databases, _LATER) if not _of(database, streams)]


def _named(database: str) -> str:
    return "a database that is created later" if database == _LATER else f"database {database}"


def _of(database: str, streams: Mapping[str, Filters]) -> list[str]:
    return [name for name, filters in streams.items() if filters.wants_database(database)]
