"""Where the producer goes on, or begins: what the commit log and the profile say, matched with what the leader has."""

import re
from dataclasses import replace

from cdc.config.start_position import BEGINNING, NOW, OLDEST, parsed_start
from cdc.errors import Disconnected, UserError
from cdc.model.commit_entry import Entry, Partial
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog.leader import Leader

__all__ = ["starting_entry"]

_KEY = "profile key producer.start"
_FRESH_COPY = "give the producer a new topic and the follower a fresh copy of this leader"


def starting_entry(leader: Leader, entry: Entry | None, *, start: str, filters: dict[str, list[str]]) -> Entry:
    """Where to go on: after the commit log's ``entry``, or where there is none yet at ``start``.

    ``filters`` are the profile's, listed. Raises UserError where the leader cannot go on from there without a loss or a
    repeat.
    """
    if entry is None:
        return _first_entry(leader, start=start)
    _require_same_history(leader, entry)
    if entry.partial:
        _require_countable(entry.partial, entry.filters, filters)
    if entry.server_uuid == leader.server_uuid and _has(leader, entry.position):
        return entry
    # Another server with our history, or files that are numbered anew: the GTIDs lead.
    return replace(entry, server_uuid=leader.server_uuid, position=Position(leader.logs[0][0], 4))


def _require_countable(partial: Partial, before: dict[str, list[str]] | None, filters: dict[str, list[str]]) -> None:
    """Raise UserError unless what was counted of ``partial`` can be counted again: its rows that pass the filters."""
    if partial.rows is None:
        raise UserError(
            f"transaction {partial.transaction} is half out, and a version of before has counted what is",
            hint="run that version with its settings until that transaction is through, then this one",
        )
    if before != filters:
        raise UserError(
            f"transaction {partial.transaction} is half out, with other filters: {before}",
            where="profile key filters",
            hint="put the filters back until that transaction is through",
        )


def _first_entry(leader: Leader, *, start: str) -> Entry:
    """Where a producer without a commit log begins, as the profile's ``start`` says.

    Raises UserError where the leader no longer has what follows, or never had what comes before.
    """
    position, executed = Position(leader.logs[0][0], 4), leader.purged
    if start == NOW:
        position, executed = leader.position, leader.executed
    elif start == BEGINNING:
        _require_beginning(leader)
    elif start != OLDEST:
        place = parsed_start(start)
        if isinstance(place, GtidSet):
            _require_copy(leader, place)
            executed = place
        else:
            _require_place(leader, place)
            position = place
    return Entry(
        next_sequence=0,
        position=position,
        gtid_set=str(executed) if leader.gtid_on else "",
        server_uuid=leader.server_uuid,
        gtids_complete=leader.gtid_on,
    )


def _require_beginning(leader: Leader) -> None:
    oldest = leader.logs[0][0]
    if leader.purged or not re.search(r"\.0*1$", oldest):
        raise UserError(
            f"the leader has purged its first binlogs, {oldest} is the oldest",
            where=leader.name,
            hint="copy the leader to the follower and set producer.start to what the copy holds (its GTID set, or file "
            'and offset), or to "oldest" to go without a copy',
        )


def _require_copy(leader: Leader, held: GtidSet) -> None:
    """Raise UserError unless the leader has what follows the copy that holds these GTIDs."""
    if not leader.gtid_on:
        raise UserError("the leader has no GTIDs (gtid_mode)", where=_KEY, hint='write the copy\'s "file:position"')
    if not held.issubset(leader.executed):
        raise UserError(
            f"the leader has not executed all of {held}, but {leader.executed or 'nothing'}",
            where=_KEY,
            hint="is this a copy of that leader? With other GTIDs of its own, name those that came from the leader",
        )
    if not leader.purged.issubset(held):
        raise UserError(
            f"the leader has purged binlogs that the copy lacks: purged {leader.purged}, the copy has {held}",
            where=_KEY,
            hint="take a newer copy",
        )


def _require_place(leader: Leader, position: Position) -> None:
    """Raise UserError unless the leader's binlog can be read from there on."""
    if leader.gtid_on:
        raise UserError(
            "the leader has GTIDs, which lead from one server to the next; a position does not",
            where=_KEY,
            hint="write the GTID set that the copy holds (gtid_executed, or what the dump sets gtid_purged to)",
        )
    if not _has(leader, position) or position.offset < 4:
        raise UserError(
            f"the leader has no {position}; its binlogs are {leader.logs[0][0]} to {leader.position}",
            where=_KEY,
            hint="write the file and position that the copy names, or take a newer copy",
        )


def _require_same_history(leader: Leader, entry: Entry) -> None:
    """Raise UserError unless the server still has everything that follows ``entry``, and all that came before it."""
    ours = GtidSet.parse(entry.gtid_set)
    if leader.gtid_on and entry.gtids_complete and (ours or entry.partial):
        _require_gtids(leader, entry, ours)
        # Files go with the transactions in them, or by RESET BINARY LOGS with gtid_purged set anew. A file that is gone
        # or shorter while the server has transactions of it belongs to a server that was put back to an older state.
        if leader.server_uuid == entry.server_uuid and not ours.issubset(leader.purged):
            _require_file(leader, entry.position)
    elif leader.server_uuid != entry.server_uuid:
        raise UserError(
            f"this is another server than before (its UUID is {leader.server_uuid}, ours {entry.server_uuid}), and "
            "without GTIDs its binlog cannot be matched with ours",
            where=leader.name,
            hint=f"point the profile at the old leader, or {_FRESH_COPY}",
        )
    else:
        _require_file(leader, entry.position)


def _require_gtids(leader: Leader, entry: Entry, ours: GtidSet) -> None:
    held = GtidSet.parse(entry.gtid_set)
    if entry.partial:
        held.add(entry.partial.transaction)  # a server without it will never send the rest
    if not held.issubset(leader.executed):
        if leader.server_uuid == entry.server_uuid and _has(leader, entry.position):
            # With rpl_semi_sync_source_wait_point = AFTER_SYNC a transaction is sent before it is executed.
            raise Disconnected(
                "the leader has not executed all that it has sent: it has executed "
                f"{leader.executed or 'nothing'}, we have replicated {held}",
                where=leader.name,
                hint=f"does it wait for a semi-synchronous replica? If it was put back to an older state {_FRESH_COPY}",
            )
        raise UserError(
            f"the leader lost binlogs or was replaced: it has executed {leader.executed or 'nothing'}, "
            f"we have already replicated {held}",
            where=leader.name,
            hint=f"point the profile at a server with that history, or {_FRESH_COPY}",
        )
    if not leader.purged.issubset(ours):
        raise UserError(
            f"the leader has purged binlogs that we still need: purged {leader.purged}, replicated {ours}",
            where=leader.name,
            hint=_FRESH_COPY,
        )


def _has(leader: Leader, position: Position) -> bool:
    return dict(leader.logs).get(position.file, 0) >= position.offset


def _require_file(leader: Leader, position: Position) -> None:
    sizes = dict(leader.logs)
    if position.file not in sizes:
        raise UserError(
            f"the leader has purged {position.file}, which we still need",
            where=f"{leader.name}, position {position}",
            hint=_FRESH_COPY,
        )
    if sizes[position.file] < position.offset:
        raise UserError(
            f"the leader lost binlogs: {position.file} ends at {sizes[position.file]}",
            where=f"{leader.name}, position {position}",
            hint=_FRESH_COPY,
        )
