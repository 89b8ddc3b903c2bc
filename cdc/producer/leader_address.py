"""Finds the leader among the servers that may be the leader (profile key database.hosts): the one that takes writes."""

import time
from collections.abc import Hashable, Iterator, Sized
from dataclasses import replace
from typing import NamedTuple, TypeVar

from cdc.config.profile import Database, Profile, ServerAddress
from cdc.errors import Disconnected, UserError
from cdc.producer.binlog.leader import connected_cursor

__all__ = ["at_leader", "while_leading"]

_LOOK_SECONDS = 5.0
# Besides read_only, what identifies a server that has two addresses. MariaDB has no server_uuid.
_VARIABLES = (
    "SHOW GLOBAL VARIABLES WHERE variable_name IN ('read_only', 'server_uuid', 'server_uid', 'hostname', 'port')"
)

Events = TypeVar("Events", bound=Sized)


class _Answer(NamedTuple):
    """The answer of a server: ``reason`` is why it is not the leader, empty if it takes writes. ``server`` is equal for
    all addresses of one server.
    """

    reason: str
    server: Hashable = None
    read_only: bool = False


def at_leader(profile: Profile) -> Profile:
    """Returns the profile with the address of the leader: of the servers in database.hosts, the only one without
    read_only. The other addresses are its ``hosts``. A profile without the key is returned as it is.

    Raises Disconnected if no server takes writes, or several do.
    """
    if not profile.database.hosts:
        return profile
    answers = {database: _answer(database) for database in profile.database.addresses()}
    leaders = {answer.server: database for database, answer in reversed(answers.items()) if not answer.reason}
    if len(leaders) == 1:
        (leader,) = leaders.values()
        others = tuple(str(ServerAddress(each.ip_or_host, each.port)) for each in answers if each != leader)
        return replace(profile, database=replace(leader, hosts=others))
    if leaders:
        raise Disconnected(
            f"several servers take writes: {', '.join(map(str, reversed(leaders.values())))}",
            code="CDC-LEADER-SEVERAL",
            where="profile key database.hosts",
            hint="on each one that is not the leader: SET PERSIST super_read_only = ON; the producer then goes on",
        )
    reasons = "; ".join(f"{database}: {answer.reason}" for database, answer in answers.items())
    raise Disconnected(
        f"no server takes writes: {reasons}",
        code="CDC-LEADER-NONE",
        where="profile key database.hosts",
        hint="start the leader, or promote a replica: SET PERSIST super_read_only = OFF, SET PERSIST read_only = OFF",
    )


def while_leading(chunks: Iterator[Events], profile: Profile) -> Iterator[Events]:
    """Yields the chunks of the binlog that is read from the server in ``profile`` (``at_leader``).

    A leader that is demoted keeps its connections, and without this its silent binlog would be read for ever. Raises
    Disconnected if the server takes no writes any more, and another one in database.hosts does.
    """
    looked_at = time.monotonic()
    for events in chunks:
        yield events
        # As long as it sends changes, there is something to read here, and nothing delays it.
        if not events and profile.database.hosts and time.monotonic() - looked_at > _LOOK_SECONDS:
            _require_leading(profile)
            looked_at = time.monotonic()


def _require_leading(profile: Profile) -> None:
    database = profile.database
    if not _answer(database).read_only:
        return
    try:
        leader = at_leader(profile).database
    except Disconnected:
        return  # it may soon take writes again
    if str(leader) != str(database):
        raise Disconnected(
            f"the leader has read_only now, and {leader} takes writes", code="CDC-LEADER-MOVED", where=str(database)
        )


def _answer(database: Database) -> _Answer:
    """Asks a server whether it takes writes. Replicas of the leader have read_only."""
    try:
        with connected_cursor(database.settings(), str(database)) as cursor:
            cursor.execute(_VARIABLES)
            variables = {name.lower(): value for name, value in cursor.fetchall()}
    except (Disconnected, UserError) as error:
        return _Answer(error.what)
    read_only = variables.pop("read_only") != "OFF"
    return _Answer("it has read_only" if read_only else "", tuple(sorted(variables.items())), read_only)
