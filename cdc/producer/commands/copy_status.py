"""How far the copies of tables are, from the commit log, whether the producer runs or not: states in, lines out."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, pairwise
from typing import NamedTuple

import pymysql
from confluent_kafka import KafkaException

from cdc.config.profile import Profile
from cdc.kafka.errors import open_error
from cdc.kafka.follower_places import places_now
from cdc.kafka.partitions import backwards
from cdc.model.commit_entry import Entry
from cdc.model.values import visible
from cdc.producer import pipeline
from cdc.producer.binlog.leader import translated
from cdc.producer.copy.pending import Pending, Table
from cdc.producer.copy.requests import Request, waiting
from cdc.producer.table_rows.estimates import Estimate, estimates
from cdc.service.mysql_connection import connected

__all__ = ["State", "copy_status", "current_state", "follower_lines", "lines"]

_MOST = 2_000  # entries that are looked at
_RATE_SECONDS = 60.0  # of which the speed is that


class State(NamedTuple):
    """What was pending ``at`` a time, in seconds since 1970, and the sequence of the record after that."""

    at: float
    pending: Pending
    next_sequence: int = 0


def copy_status(profile: Profile) -> int:
    """Print the status; the exit status. Raises UserError, Disconnected."""
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
    """How far those are that the copy may wait for, while there is one."""
    if not newest.pending.active:
        return
    kafka = profile.kafka
    try:
        places = places_now(kafka.properties(), resource=profile.mysql_resource_name, topic=kafka.topic)
    except KafkaException as error:
        yield f"how far followers are is not known: {error.args[0].str()}"
        return
    yield from follower_lines(places, newest.next_sequence)


def follower_lines(places: Mapping[str, int], next_sequence: int) -> Iterator[str]:
    """``places`` are the sequences up to which followers have applied all."""
    for name, sequence in sorted(places.items()):
        behind = max(next_sequence - 1 - sequence, 0)
        yield f"follower {name}: " + (f"{behind:,} records to apply" if behind else "has applied all")


def current_state(profile: Profile) -> tuple[Pending | None, list[Request]]:
    """What is pending, None before the stream begins, and the requests that no producer has taken up yet."""
    newest = next(_states(profile), None)
    pending = newest.pending if newest else None
    return pending, _waiting(profile, pending or Pending())


def _waiting(profile: Profile, pending: Pending) -> list[Request]:
    kafka = profile.kafka
    return waiting(kafka.properties(), kafka.topics().copies, resource=profile.mysql_resource_name, pending=pending)


def _states(profile: Profile) -> Iterator[State]:
    """The states of the commit log, newest first, back to one in which nothing was copied."""
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


def lines(
    states: Sequence[State], asked: Sequence[Request], sizes: Mapping[Table, Estimate], *, now: float
) -> Iterator[str]:
    """The status as text; ``states`` are newest first, ``sizes`` are the leader's estimates."""
    newest, pending = states[0], states[0].pending
    yield f"as of {now - newest.at:,.0f} s ago; how many rows tables have is the leader's estimate"
    if pending.structure:
        yield "the copy of the leader has not begun: its tables are not known yet"
    for table in _done(states):
        yield f"{_name(table)}: done" if table in sizes else f"{_name(table)}: gone, or renamed"
    rate = _rate(states)
    for number, table in enumerate(pending.tables):
        size = sizes.get(table)
        asked_for = f"asked, about {size.rows:,} rows" if size else "asked"
        yield f"{_name(table)}: {asked_for if number else _progress(pending, size, rate)}"
    for request in asked:
        what = "to be stopped" if request.stop else "asked"
        yield from (f"{_name(table)}: {what}, no producer has taken it up yet" for table in request.tables)
        if (keys := request.keys) is not None:
            yield f"{_name(keys.table)}: {len(keys.values)} rows to be repaired, not done yet"
    if pending.active and rate and all(table in sizes for table in pending.tables):
        left = sum(sizes[table].rows for table in pending.tables) - pending.rows
        yield f"{len(pending.tables)} tables left, about {max(left, 0) / rate:,.0f} s at this speed"
    elif not pending.active and not asked:
        yield "nothing is to be copied"


def _progress(pending: Pending, size: Estimate | None, rate: float) -> str:
    if not size:
        return f"under way, {pending.rows:,} rows done"
    speed = ""
    if rate:
        megabytes = rate * size.size / max(size.rows, 1) / 1_000_000
        left = max(size.rows - pending.rows, 0) / rate
        speed = f", {rate:,.0f} rows/s, about {megabytes:,.1f} MB/s and {left:,.0f} s left"
    return f"under way, {pending.rows:,} of about {size.rows:,} rows{speed}"


def _rate(states: Sequence[State]) -> float:
    """Rows of the current table per second, 0 where that is not known."""
    newest, oldest = states[0], states[0]
    for state in states:
        same = state.pending.current == newest.pending.current and state.pending.rows <= oldest.pending.rows
        if not same or state.at < newest.at - _RATE_SECONDS:
            break
        oldest = state
    seconds = newest.at - oldest.at
    return (newest.pending.rows - oldest.pending.rows) / seconds if seconds > 0 else 0.0


def _done(states: Sequence[State]) -> list[Table]:
    """The tables that are pending no more, except for those that a request has taken back, oldest first."""
    found: dict[Table, None] = {}
    for newer, older in reversed(list(pairwise(states))):
        taken = newer.pending.requests, newer.pending.requests_topic
        if taken != (older.pending.requests, older.pending.requests_topic):
            continue
        found |= dict.fromkeys(table for table in older.pending.tables if table not in newer.pending.tables)
    return [table for table in found if table not in states[0].pending.tables]


def _name(table: Table) -> str:
    return ".".join(table)
