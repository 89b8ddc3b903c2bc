"""Formats the status of copies for ``--copy-status``, and reads the leader's estimates of table sizes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from cdc.producer.copy.requests import Request
from cdc.producer.copy.state import Pending, Table
from cdc.producer.flavor.copy_settings import copy_settings

__all__ = ["Estimate", "State", "estimates", "follower_lines", "lines"]

_RATE_SECONDS = 60.0  # seconds over which the speed is measured

_AT_ONCE = 500  # number of tables in one query


class Estimate(NamedTuple):
    """InnoDB's estimates from a sample of a table's pages: its number of ``rows``, and its ``size`` in bytes."""

    rows: int
    size: int


def estimates(cursor: Any, tables: Iterable[Table]) -> dict[Table, Estimate]:
    """Returns the estimates for the ``tables`` that exist. Raises pymysql's errors."""
    # Makes MySQL compute the estimates now: by default it stores estimates in its dictionary, and returns the stored
    # estimates for a day.
    if setting := copy_settings(cursor.connection).fresh_estimates:
        cursor.execute(f"SET SESSION {setting}")
    wanted, found = list(tables), {}
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        pairs = ", ".join(["(%s, %s)"] * len(some))
        cursor.execute(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES "
            f"WHERE (TABLE_SCHEMA, TABLE_NAME) IN ({pairs})",
            [name for table in some for name in table],
        )
        for database, table, rows, size in cursor.fetchall():
            found[database, table] = Estimate(rows or 0, size or 0)
    return found


class State(NamedTuple):
    """The state of the copies (``pending``) at the time ``at``, in seconds since 1970, and the sequence of the next
    record.
    """

    at: float
    pending: Pending
    next_sequence: int = 0


def follower_lines(places: Mapping[str, int], next_sequence: int) -> Iterator[str]:
    """Yields a line for each follower; ``places`` maps each follower to the sequence up to which it has applied
    everything.
    """
    for name, sequence in sorted(places.items()):
        behind = max(next_sequence - 1 - sequence, 0)
        yield f"follower {name}: " + (f"{behind:,} records to apply" if behind else "has applied all")


def lines(
    states: Sequence[State], asked: Sequence[Request], sizes: Mapping[Table, Estimate], *, now: float
) -> Iterator[str]:
    """Yields the lines of the status; ``states`` are newest first, ``sizes`` are the leader's estimates."""
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
    """Returns the number of rows of the current table that are copied per second; 0 if unknown."""
    newest, oldest = states[0], states[0]
    for state in states:
        same = state.pending.current == newest.pending.current and state.pending.rows <= oldest.pending.rows
        if not same or state.at < newest.at - _RATE_SECONDS:
            break
        oldest = state
    seconds = newest.at - oldest.at
    return (newest.pending.rows - oldest.pending.rows) / seconds if seconds > 0 else 0.0


def _done(states: Sequence[State]) -> list[Table]:
    """Returns the tables that are no longer pending, oldest first, except tables whose copy was stopped by a
    request.
    """
    found: dict[Table, None] = {}
    for newer, older in reversed(list(pairwise(states))):
        taken = newer.pending.requests, newer.pending.requests_topic
        if taken != (older.pending.requests, older.pending.requests_topic):
            continue
        found |= dict.fromkeys(table for table in older.pending.tables if table not in newer.pending.tables)
    return [table for table in found if table not in states[0].pending.tables]


def _name(table: Table) -> str:
    return ".".join(table)
