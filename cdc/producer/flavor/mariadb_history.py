"""Finds the place in a MariaDB leader's binlog at which the stream continues, and refuses a leader with another
history.

``BINLOG_GTID_POS`` returns the GTIDs before a position, and NULL if no event begins there or the position has more than
32 bits. If the leader is still the same server, it has the GTIDs of the commit log at the position of the commit log.
From another server, such as a promoted replica, the producer requests the events after the GTIDs of the commit log; a
position with the offset 0 stands for this request (``binlog.source``).

Two servers may have logged transactions of several domains in different orders. So after a failover the leader may have
GTIDs of some domains only after the position. In this case, too, the producer requests the events after the GTIDs of
the commit log, and the leader sends only events that were not replicated.
"""

from dataclasses import replace
from typing import Any

from cdc.errors import UserError
from cdc.model.commit_entry import Entry
from cdc.model.gtid import GtidSet, executed_before, mariadb_position, newest_of_each_domain
from cdc.model.position import Position
from cdc.producer.binlog.leader import Leader, connected_cursor
from cdc.producer.binlog.source import LARGEST_OFFSET
from cdc.producer.flavor.mariadb_leader import gtids_at

__all__ = ["with_history"]

_FRESH_COPY = "give the producer a new topic and the follower a fresh copy of this leader"


def with_history(settings: dict[str, Any], leader: Leader, entry: Entry, *, begins: bool) -> Entry:
    """Returns ``entry`` with the position from which the leader must be read. If the stream ``begins`` there, the
    result contains the leader's GTIDs before the position.

    Raises Disconnected, and UserError if the leader has another history than the entry, or if no event begins at the
    position.
    """
    if not begins and entry.server_uuid != leader.server_uuid:
        return _on_another_server(leader, entry)
    if not entry.position.offset or (not begins and entry.position.offset > LARGEST_OFFSET):
        _require_history(leader, entry)
        return replace(entry, origin=entry.gtid_set) if begins else entry
    if entry.position.offset > LARGEST_OFFSET:
        raise UserError(
            "MariaDB names no GTIDs at a position beyond 4 GB in a binlog",
            code="CDC-LEADER-NO-POSITION",
            where=f"{leader.name}, position {entry.position}",
            hint="on the leader: FLUSH BINARY LOGS, which begins another one, then start again, or take a newer copy",
        )
    with connected_cursor(settings, leader.name) as cursor:
        gtids = gtids_at(cursor, entry.position)
    if gtids is None and begins:
        raise UserError(
            "no event of the leader's binlog begins at this position",
            code="CDC-LEADER-NO-POSITION",
            where=f"{leader.name}, position {entry.position}",
            hint="write the file and position that the copy names, or take a newer copy",
        )
    if gtids is None:
        raise _replaced(leader, entry, "no event of its binlog begins where we have read up to")
    if begins:
        before = str(executed_before(gtids))
        return replace(entry, gtid_set=before, origin=before)
    return _at_position(leader, entry, gtids)


def _at_position(leader: Leader, entry: Entry, gtids: str) -> Entry:
    """Returns the entry after which the stream continues on the same server as before. ``gtids`` are the GTIDs that the
    leader has at the position of ``entry``.
    """
    ours, there = (newest_of_each_domain(each) for each in (GtidSet.parse(entry.gtid_set), executed_before(gtids)))
    if ours == there:
        return entry
    # The newest GTID of each of our domains, with its server, must be the same on the leader, and the leader must have
    # no domain that we lack.
    if not ours.items() & there.items() or not there.keys() <= ours.keys():
        raise _replaced(leader, entry, f"it has {gtids or 'no GTID'} here, we have replicated {entry.gtid_set}")
    known = newest_of_each_domain(leader.executed)
    entry = _without_domains(entry, {domain for domain in ours if domain not in known})
    if newest_of_each_domain(GtidSet.parse(entry.gtid_set)) == there:
        return entry
    _require_history(leader, entry)
    return replace(entry, position=Position(leader.logs[0][0], 0))


def _without_domains(entry: Entry, domains: set[str]) -> Entry:
    """Removes from the entry's GTID set the ``domains`` that FLUSH BINARY LOGS DELETE_DOMAIN_ID has removed from the
    leader's binlog.
    """
    kept = [
        f"{source}:{low}-{high}"
        for source, intervals in GtidSet.parse(entry.gtid_set).intervals()
        for low, high in intervals
        if source.partition("-")[0] not in domains
    ]
    return replace(entry, gtid_set=str(GtidSet.parse(",".join(kept))))


def _on_another_server(leader: Leader, entry: Entry) -> Entry:
    """Returns ``entry`` with positions on another server, which has replicated the transactions of the former server.
    All of them are in its oldest binlog file; the offset 0 of the entry stands for a request by GTIDs
    (``binlog.source``).
    """
    _require_history(leader, entry)
    first = leader.logs[0][0]
    prepared = {xid: xa._replace(file=first, offset=4) for xid, xa in entry.prepared.items()}
    return replace(entry, server_uuid=leader.server_uuid, position=Position(first, 0), prepared=prepared)


def _require_history(leader: Leader, entry: Entry) -> None:
    """Raises UserError unless the leader has executed all transactions of ``entry``, and its binlog contains all later
    transactions."""
    ours = GtidSet.parse(entry.gtid_set)
    newest = newest_of_each_domain(ours)
    needed = [f"{domain}-{server}-{number}" for domain, (number, server) in newest.items()]
    if entry.partial:
        needed.append(entry.partial.transaction)
    missing = [gtid for gtid in needed if gtid not in leader.executed]
    if missing or not needed:
        has = mariadb_position(leader.executed) or "no GTID"
        raise _replaced(leader, entry, f"it has {has}, we have replicated {mariadb_position(ours) or 'none'}")
    for domain, (number, _) in newest_of_each_domain(leader.purged).items():
        if domain not in newest or newest[domain][0] < number:
            raise UserError(
                f"the leader has purged binlogs that we still need: purged {leader.purged}, replicated {ours}",
                code="CDC-LEADER-PURGED",
                where=leader.name,
                hint=_FRESH_COPY,
            )


def _replaced(leader: Leader, entry: Entry, why: str) -> UserError:
    return UserError(
        f"the leader lost binlogs or was replaced: {why}",
        code="CDC-LEADER-REPLACED",
        where=f"{leader.name}, position {entry.position}",
        hint="point the profile at the old leader or at a replica that has executed all replicated transactions, or "
        f"{_FRESH_COPY}",
    )
