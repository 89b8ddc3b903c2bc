"""Asks the running producer, or the next one that starts, to begin or stop copies of tables, and prints the status of
copies.

The status is read from the commit log, whether the producer runs or not.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain

import pymysql
from confluent_kafka import KafkaException

from cdc.config.profile import Profile
from cdc.config.table_globs import selected
from cdc.errors import UserError
from cdc.kafka.errors import open_error
from cdc.kafka.follower_places import places_now
from cdc.kafka.partitions import backwards
from cdc.model.commit_entry import Entry
from cdc.model.values import visible
from cdc.producer import pipeline
from cdc.producer.binlog.leader import translated
from cdc.producer.copy.progress_log import ProgressLog
from cdc.producer.copy.requests import Request, waiting, write_request
from cdc.producer.copy.selection import selected_tables
from cdc.producer.copy.state import Pending
from cdc.producer.copy.status import State, estimates, follower_lines, lines
from cdc.service.mysql_connection import connected

__all__ = ["ask_for_copies", "copy_status", "current_state", "stop_copies"]

_STOP = "--copy-stop"


def ask_for_copies(profile: Profile, globs: Sequence[str], *, log: Callable[..., None]) -> int:
    """Requests a copy of the tables that match ``globs``; returns the exit status. Raises UserError and
    Disconnected."""
    leave_out = partial(ProgressLog(log).left_out, repair=False)
    leader = pipeline.find_leader(profile)
    filters = pipeline.as_on_leader(profile, leader).filters
    tables = selected_tables(profile.database.settings(), leader, globs, filters, leave_out)
    write_request(profile.kafka, profile.mysql_resource_name, tables)
    log("asked for a copy", tables=len(tables))
    return 0


def stop_copies(profile: Profile, globs: Sequence[str], *, log: Callable[..., None]) -> int:
    """Requests the end of the copies of all tables that match ``globs``; returns the exit status.

    Raises UserError if no such table is waiting to be copied, or if followers have no rows of such a table except the
    copied ones. Raises Disconnected.
    """
    pending, requests = current_state(profile)
    asked = {table for request in requests if not request.stop for table in request.tables}
    known = pending or Pending()
    tables = selected(dict.fromkeys((*known.tables, *sorted(asked))), globs, key=_STOP)
    if not tables:
        raise UserError(
            f"no table that is to be copied matches {', '.join(globs)}",
            code="CDC-COPY-NOT-REQUESTED",
            where=_STOP,
            hint="cdc-producer PROFILE --copy-status names those that are",
        )
    if first := [".".join(table) for table in tables if table in known.fresh]:
        raise UserError(
            f"the first copy of the leader has these tables, and a follower nothing else of them: {', '.join(first)}",
            code="CDC-COPY-OF-LEADER",
            where=_STOP,
            hint="let it end; or leave them out with the filters, and start the producer again",
        )
    if known.is_emptied and known.current in tables:
        raise UserError(
            f"followers have removed all rows of {'.'.join(known.current)}, and get those of the leader now",
            code="CDC-COPY-EMPTIED-TABLE",
            where=_STOP,
            hint="let the copy end; or leave the table out with the filters, and start the producer again: followers "
            "then lack rows of it",
        )
    write_request(profile.kafka, profile.mysql_resource_name, tables, stop=True)
    log("asked to stop copies", tables=len(tables))
    return 0


_MOST = 2_000  # the maximum number of entries to read


def copy_status(profile: Profile) -> int:
    """Prints the status of copies; returns the exit status. Raises UserError and Disconnected."""
    states = list(_states(profile))
    if not states:
        print("no commit log yet: the producer has not run, or the ACL READ on its topics is missing")
        return 0
    asked = _waiting(profile, states[0].pending)
    tables = {table for state in states for table in state.pending.tables} | {each for one in asked for each in one[0]}
    try:
        with closing(connected(**profile.database.settings())) as connection, connection.cursor() as cursor:
            sizes = estimates(cursor, sorted(tables))
    except pymysql.MySQLError as error:
        raise translated(error, str(profile.database)) from None
    for line in chain(lines(states, asked, sizes, now=time.time()), _followers(profile, states[0])):
        print(visible(line))
    return 0


def _followers(profile: Profile, newest: State) -> Iterator[str]:
    """Yields a line for each follower that a copy may have to wait for; yields nothing if no table is being copied."""
    if not newest.pending.active:
        return
    kafka = profile.kafka
    try:
        places = places_now(kafka.properties(), resource=profile.mysql_resource_name, topic=kafka.topic)
    except KafkaException as error:
        yield f"how far followers are is not known: {error.args[0].str()}"
        return
    yield from follower_lines(places, newest.next_sequence)


def current_state(profile: Profile) -> tuple[Pending | None, list[Request]]:
    """Reads the pending copies (None before the stream begins), and the requests that no producer has processed yet."""
    newest = next(_states(profile), None)
    pending = newest.pending if newest else None
    return pending, _waiting(profile, pending or Pending())


def _waiting(profile: Profile, pending: Pending) -> list[Request]:
    kafka = profile.kafka
    return waiting(kafka.properties(), kafka.topics().copies, resource=profile.mysql_resource_name, pending=pending)


def _states(profile: Profile) -> Iterator[State]:
    """Yields the states of copies in the commit log, newest first, back to a state in which no table was
    being copied.
    """
    kafka = profile.kafka
    commits = kafka.topics().commits
    try:
        if pipeline.topic_admin(profile).look(profile.mysql_resource_name) is None:
            return
        for number, message in enumerate(backwards(kafka.properties(), (commits, 0))):
            if not message.value():
                continue
            entry = Entry.parse(message.value() or b"", where=f"topic {commits}, offset {message.offset()}")
            yield State(message.timestamp()[1] / 1000, Pending.from_json(entry.copy), entry.next_sequence)
            if number >= _MOST or (number and not Pending.from_json(entry.copy).active):
                return
    except KafkaException as error:
        raise open_error(error, commits, kafka.properties(), answered=False) from None
