"""Finds the leader among the servers that may be the leader (profile key database.hosts): the one that takes writes."""

from dataclasses import replace

from cdc.config.profile import Profile
from cdc.errors import Disconnected, UserError
from cdc.producer.binlog.leader import connected_cursor

__all__ = ["at_leader"]


def at_leader(profile: Profile) -> Profile:
    """Returns the profile with the address of the leader: of the servers in database.hosts, the only one without
    read_only. A profile without the key is returned as it is.

    Raises Disconnected if no server takes writes, or several do.
    """
    if not profile.database.hosts:
        return profile
    answers = {database: _no_leader(database.settings(), str(database)) for database in profile.database.addresses()}
    leaders = [database for database, reason in answers.items() if not reason]
    if len(leaders) == 1:
        return replace(profile, database=leaders[0])
    if leaders:
        raise Disconnected(
            f"several servers take writes: {', '.join(map(str, leaders))}",
            code="CDC-LEADER-SEVERAL",
            where="profile key database.hosts",
            hint="on each one that is not the leader: SET PERSIST super_read_only = ON; the producer then goes on",
        )
    reasons = "; ".join(f"{database}: {reason}" for database, reason in answers.items())
    raise Disconnected(
        f"no server takes writes: {reasons}",
        code="CDC-LEADER-NONE",
        where="profile key database.hosts",
        hint="start the leader, or promote a replica: SET PERSIST super_read_only = OFF, SET PERSIST read_only = OFF",
    )


def _no_leader(settings: dict[str, object], name: str) -> str:
    """Returns why the server is not the leader, "" if it takes writes. Replicas of the leader have read_only."""
    try:
        with connected_cursor(settings, name) as cursor:
            cursor.execute("SELECT @@GLOBAL.read_only")
            ((read_only,),) = cursor.fetchall()
    except (Disconnected, UserError) as error:
        return error.what
    return "it has read_only" if read_only else ""
