"""Finds the position at which to start or continue, from the commit log and the profile, and checks it against the
leader."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from cdc.config.profile import AUTO, BEGINNING, COPY, NOW, OLDEST, parsed_start
from cdc.errors import Disconnected, UserError
from cdc.model.commit_entry import Entry, Partial
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog.compressed import payload
from cdc.producer.binlog.event_types import FORMAT_DESCRIPTION, HEARTBEATS, TABLE_MAP, TRANSACTION_PAYLOAD
from cdc.producer.binlog.events import RawEvent, heartbeat
from cdc.producer.binlog.leader import Leader
from cdc.producer.binlog.packets import SimpleTransaction, flat
from cdc.producer.binlog.source import Dumps
from cdc.producer.copy.state import Pending
from cdc.producer.decode.table_map import has_names

__all__ = ["is_complete", "require_same_names", "starting_entry", "why_copied"]

_KEY = "profile key producer.start"
_FIRST_OFFSET = 4
_FRESH_COPY = "give the producer a new topic and the follower a fresh copy of this leader"


def starting_entry(
    leader: Leader,
    entry: Entry | None,
    *,
    start: str,
    filters: dict[str, list[str]],
    complete: Callable[[Position], bool] = lambda _: True,
) -> Entry:
    """Returns the entry to continue after: the commit log's ``entry``, or a first entry for ``start`` if there is no
    entry yet.

    ``filters`` are the profile's filters, in the form of ``Filters.listed``; ``complete(position)`` is called to find
    out whether a stream can begin at a position (see ``is_complete``). Raises UserError if the leader cannot continue
    there without losing or repeating changes. If ``start`` is "auto", a topic without records begins with a copy
    instead.
    """
    if entry is None or Pending.from_json(entry.copy).structure:
        return _first_entry(leader, start=start, complete=complete)
    if start == AUTO and _may_begin_again(leader, entry, filters) and not _goes_on(leader, entry, complete):
        return _first_entry(leader, start=COPY, complete=complete)
    is_mariadb, is_same = leader.session is not None, entry.server_uuid == leader.server_uuid
    if not is_mariadb or (is_same and entry.position.offset):
        _require_same_history(leader, entry)
    if entry.partial:
        _require_countable(entry.partial, entry.filters, filters)
    # A MariaDB leader's history is compared where its binlog is queried (``flavor.mariadb_history``).
    if is_mariadb or (is_same and _has(leader, entry.position)):
        return entry
    # The leader was replaced by a server with the same history, or its files were renumbered: only the GTIDs show where
    # to continue.
    return replace(entry, server_uuid=leader.server_uuid, position=Position(leader.logs[0][0], 4))


def _may_begin_again(leader: Leader, entry: Entry, filters: dict[str, list[str]]) -> bool:
    """Whether the stream can begin again with a copy, because no record contains anything that was read so far."""
    is_empty = not (entry.next_sequence or entry.partial or entry.prepared)
    return is_empty and entry.filters == filters and leader.shows_visible


def _goes_on(leader: Leader, entry: Entry, complete: Callable[[Position], bool]) -> bool:
    """Whether the leader's binlog contains the changes after ``entry``, and the next rows in it were logged with the
    names of their columns.
    """
    if entry.server_uuid != leader.server_uuid or entry.position.offset < _FIRST_OFFSET:
        return True  # a later check refuses a server with another history
    if entry.position.file not in dict(leader.logs):
        return False
    return not _has(leader, entry.position) or complete(entry.position)


def require_same_names(leader: Leader, entry: Entry | None) -> None:
    """Raises UserError if the leader's next records will contain the names of tables in another form than the records
    up to ``entry``. One form is lower case; the other form has the letters with which the tables were created.
    """
    if entry is not None and entry.next_sequence and entry.folds_names != leader.folds_names:
        before, now = int(entry.folds_names), int(leader.folds_names)
        raise UserError(
            f"this leader has lower_case_table_names = {now}, and the one before had {before}: its tables would "
            "continue under other names",
            code="CDC-LEADER-OTHER-NAMES",
            where=leader.name,
            hint=f"point the profile at a server with {before}, or {_FRESH_COPY}",
        )


def _require_countable(partial: Partial, before: dict[str, list[str]] | None, filters: dict[str, list[str]]) -> None:
    """Raises UserError unless the committed rows of ``partial`` can be counted again, with the same filters."""
    if partial.rows is None:
        raise UserError(
            f"transaction {partial.transaction} is partially committed, and an older cdc has counted its records",
            code="CDC-VERSION-INSIDE-TRANSACTION",
            hint="run that version with its settings until that transaction is complete, then this one",
        )
    if before != filters:
        raise UserError(
            f"transaction {partial.transaction} is partially committed, with other filters: {before}",
            code="CDC-FILTERS-INSIDE-TRANSACTION",
            where="profile key filters",
            hint="put the filters back until that transaction is complete",
        )


def is_complete(
    leader: Leader, dumps: Dumps, stop: threading.Event, oldest: Callable[[], int | None], position: Position
) -> bool:
    """Whether a stream can begin at ``position`` in the leader's binlogs. The first rows after it must have been logged
    with the names of their columns; and if ``position`` is the beginning of the first binlog, no table may be older
    than this binlog.

    ``oldest()`` returns the time at which the oldest table was created, in seconds since 1970; None if there is no
    table. Reads the binlogs up to the first rows. Raises the errors of ``BinlogSource`` and of ``oldest``.
    """
    if position.place >= leader.position.place:
        return True
    is_first = position == Position(leader.logs[0][0], _FIRST_OFFSET)
    with dumps.beside(position) as source:
        for chunk in source.chunks(stop):
            for event in _with_unpacked(chunk):
                if is_first and event.type == FORMAT_DESCRIPTION:
                    # After RESET BINARY LOGS, or in a copy of the data directory without binlogs, no binlog contains
                    # the creation of the existing tables.
                    created, is_first = oldest(), False
                    if created is not None and created < int.from_bytes(event.data[:4], "little"):
                        return False
                if event.type == TABLE_MAP:
                    return has_names(event, leader.collations)
                # The last events may be some that are left out: MariaDB's first binlog ends so until the first write.
                if event.type in HEARTBEATS and heartbeat(event).place >= leader.position.place:
                    return True
                if event.file == leader.position.file and event.end >= leader.position.offset:
                    return True
    return True


def _with_unpacked(chunk: Iterable[RawEvent | SimpleTransaction]) -> Iterator[RawEvent]:
    for event in flat(chunk):
        if event.type == TRANSACTION_PAYLOAD:
            yield from payload(event)
        yield event


def _first_entry(leader: Leader, *, start: str, complete: Callable[[Position], bool]) -> Entry:
    """Returns the first entry of a producer without a commit log, for the profile's ``start``.

    Raises UserError if the leader has purged transactions after the start, or has not executed the transactions before
    it.
    """
    position, executed = Position(leader.logs[0][0], 4), leader.purged
    copies = start == COPY
    if start == AUTO and leader.shows_visible:
        copies = not (_has_beginning(leader) and complete(position))
    if start == NOW or copies:
        position, executed = leader.position, leader.executed
        if leader.gtid_on and not executed:
            # The position may be after commits in flight. A dump after GTIDs would contain them, but with no GTID
            # executed the dump begins at a position: so it begins at the start of the file, before them.
            position = Position(position.file, _FIRST_OFFSET)
    elif start in (AUTO, BEGINNING):
        _require_beginning(leader)
    elif start == OLDEST:
        _require_gtids_from_the_beginning(leader)
    else:
        given = parsed_start(start)
        if isinstance(given, GtidSet):
            if leader.session is None:
                _require_copy(leader, given)
            # From a MariaDB leader, the producer requests the events after the GTIDs: see ``flavor.mariadb_history``.
            executed, position = given, position if leader.session is None else Position(position.file, 0)
        else:
            _require_position(leader, given)
            position = given
    return Entry(
        next_sequence=0,
        position=position,
        gtid_set=str(executed) if leader.gtid_on or not position.offset else "",
        server_uuid=leader.server_uuid,
        gtids_complete=leader.gtid_on,
        origin=str(executed) if leader.gtid_on else None,
        copy=Pending(structure=copies).to_json(),
    )


def why_copied(leader: Leader) -> str:
    """Explains why the stream of a leader begins with a copy of its tables although the profile does not require a
    copy.
    """
    if _has_beginning(leader):
        return "has tables that are older than its binlogs, or logged its first rows without the names of their columns"
    return "had no GTIDs at first" if leader.before_gtids else "has purged its first binlogs"


def _has_beginning(leader: Leader) -> bool:
    """Whether nothing of the leader's binlog is purged, and all of it can be read."""
    complete = not leader.purged and re.search(r"\.0*1$", leader.logs[0][0]) is not None
    return complete and not leader.before_gtids


def _require_beginning(leader: Leader) -> None:
    oldest = leader.logs[0][0]
    _require_gtids_from_the_beginning(leader)
    if not _has_beginning(leader):
        raise UserError(
            f"the leader has purged its first binlogs, {oldest} is the oldest",
            code="CDC-LEADER-PURGED-FIRST",
            where=leader.name,
            hint='if it has GTIDs, set producer.start to "copy"; else copy the leader to the follower and set it to '
            'what that copy holds (file and offset), or to "oldest" to start without a copy',
        )


def _require_gtids_from_the_beginning(leader: Leader) -> None:
    if leader.before_gtids:
        raise UserError(
            f"the server's first binlogs, from {leader.logs[0][0]} on, have transactions without GTIDs, which it sends "
            "no more since gtid_mode is ON",
            code="CDC-LEADER-ANONYMOUS-GTIDS",
            where=leader.name,
            hint='set producer.start to "copy", to begin with a copy of its tables, or to "now", as for the capture of '
            "a follower that was made of a copy",
        )


def _require_copy(leader: Leader, held: GtidSet) -> None:
    """Raises UserError unless the leader has executed the GTIDs ``held`` of a copy, and has all later transactions in
    its binlogs."""
    if not leader.gtid_on:
        raise UserError(
            "the leader has no GTIDs (gtid_mode)",
            code="CDC-LEADER-NO-GTIDS",
            where=_KEY,
            hint='write the copy\'s "file:position"',
        )
    if not held.issubset(leader.executed):
        raise UserError(
            f"the leader has not executed all of {held}, but {leader.executed or 'nothing'}",
            code="CDC-LEADER-LACKS-COPY",
            where=_KEY,
            hint="is this a copy of that leader? With other GTIDs of its own, name those that came from the leader",
        )
    if not leader.purged.issubset(held):
        raise UserError(
            f"the leader has purged binlogs that the copy lacks: purged {leader.purged}, the copy has {held}",
            code="CDC-LEADER-PURGED-SINCE-COPY",
            where=_KEY,
            hint="take a newer copy",
        )


def _require_position(leader: Leader, position: Position) -> None:
    """Raises UserError unless the leader's binlog can be read from ``position`` on."""
    if leader.gtid_on:
        raise UserError(
            "the leader has GTIDs; a position would not be valid on another server, a GTID set is",
            code="CDC-LEADER-HAS-GTIDS",
            where=_KEY,
            hint="write the GTID set that the copy holds (gtid_executed, or what the dump sets gtid_purged to)",
        )
    if not _has(leader, position) or position.offset < 4:
        raise UserError(
            f"the leader has no {position}; its binlogs are {leader.logs[0][0]} to {leader.position}",
            code="CDC-LEADER-NO-POSITION",
            where=_KEY,
            hint="write the file and position that the copy names, or take a newer copy",
        )


def _require_same_history(leader: Leader, entry: Entry) -> None:
    """Raises UserError unless the server still has all transactions after ``entry``, and has executed all transactions
    before it.
    """
    ours = GtidSet.parse(entry.gtid_set)
    if leader.gtid_on and entry.gtids_complete and (ours or entry.partial):
        _require_gtids(leader, entry, ours)
        # Files are removed by purging the transactions in them, or by RESET BINARY LOGS with gtid_purged set again. If
        # a file is missing or shorter and its transactions are not purged, the server was put back to an older state.
        if leader.server_uuid == entry.server_uuid and not ours.issubset(leader.purged):
            _require_file(leader, entry.position)
    elif leader.server_uuid != entry.server_uuid:
        raise UserError(
            f"this is another server than before ({leader.server_uuid}, not {entry.server_uuid}), and its binlog can't "
            "be matched with ours by GTIDs",
            code="CDC-LEADER-REPLACED",
            where=leader.name,
            hint=f"point the profile at the old leader, or {_FRESH_COPY}",
        )
    else:
        _require_file(leader, entry.position)


def _require_gtids(leader: Leader, entry: Entry, ours: GtidSet) -> None:
    held = GtidSet.parse(entry.gtid_set)
    if entry.partial:
        held.add(entry.partial.transaction)  # a server without this transaction can't send its rest
    if not held.issubset(leader.executed):
        if leader.server_uuid == entry.server_uuid and _has(leader, entry.position):
            # With rpl_semi_sync_source_wait_point = AFTER_SYNC a leader sends a transaction before it has executed it.
            raise Disconnected(
                "the leader has not executed all that it has sent: it has executed "
                f"{leader.executed or 'nothing'}, we have replicated {held}",
                code="CDC-LEADER-BEHIND",
                where=leader.name,
                hint=f"does it wait for a semi-synchronous replica? If it was put back to an older state {_FRESH_COPY}",
            )
        raise UserError(
            f"the leader lost binlogs or was replaced: it has executed {leader.executed or 'nothing'}, "
            f"we have already replicated {held}",
            code="CDC-LEADER-REPLACED",
            where=leader.name,
            hint=f"point the profile at a server with that history, or {_FRESH_COPY}",
        )
    if not leader.purged.issubset(ours):
        raise UserError(
            f"the leader has purged binlogs that we still need: purged {leader.purged}, replicated {ours}",
            code="CDC-LEADER-PURGED",
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
            code="CDC-LEADER-PURGED",
            where=f"{leader.name}, position {position}",
            hint=_FRESH_COPY,
        )
    if sizes[position.file] < position.offset:
        raise UserError(
            f"the leader lost binlogs: {position.file} ends at {sizes[position.file]}",
            code="CDC-LEADER-REPLACED",
            where=f"{leader.name}, position {position}",
            hint=_FRESH_COPY,
        )
