"""Joins SQL statements into packets that are no larger than the server accepts, and checks the row counts of a packet.

A statement contains the number of rows that it must match. The session counts matched rows (FOUND_ROWS), not changed
rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdc.consumer.errors import Unapplicable
from cdc.consumer.literals.own_variables import STRICT, setting
from cdc.consumer.plan.planner import ALL_LOGGED, NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS, Change
from cdc.errors import PromiseError

__all__ = [
    "FRONT_BYTES",
    "PACKET_BYTES",
    "Mismatch",
    "Statement",
    "check_counts",
    "larger_packet",
    "loads",
    "packets",
    "session_flags",
    "usual_session",
]

# Larger packets are not faster, and need more memory in the consumer and in the server.
PACKET_BYTES = 4_000_000
FRONT_BYTES = 64  # the maximum size in bytes of the statements in front of a packet: a COMMIT, a savepoint, a setting
_LARGEST_PACKET = 1 << 30  # bytes; the maximum of max_allowed_packet
# A packet contains few statements that may scan a table, because the server executes a packet to its end even if this
# program has ended.
_MOST_SCANS = 20


@dataclass(frozen=True, slots=True)
class Statement:
    """An SQL statement, the number of rows that it must match (None means any number), and the changes that it applies.

    ``scans`` is true if the server may have to read the whole table. ``data`` are the rows of a LOAD DATA LOCAL; the
    server requests them while it executes the statement.
    """

    sql: bytes
    rows: int | None = None
    changes: Sequence[Change] = ()
    scans: bool = False
    data: bytes | None = None


def session_flags(flags: int) -> Statement:
    """Returns the statement that sets the session's checks according to the ``flags`` of a rows event.

    Foreign keys are off if the leader logged the changes made by its foreign keys, since the follower must not make
    these changes a second time.
    """
    foreign = 0 if flags & (NO_FOREIGN_KEY_CHECKS | ALL_LOGGED) else 1
    unique = 0 if flags & RELAXED_UNIQUE_CHECKS else 1
    return Statement(f"SET foreign_key_checks={foreign}, unique_checks={unique}".encode())


def usual_session(mode: str, flags: int) -> Iterator[Statement]:
    """Yields the statements that restore the usual sql_mode and checks, after statements that change rows under
    ``mode`` and ``flags``.
    """
    if mode != STRICT:
        yield Statement(setting(STRICT))
    if flags:
        yield session_flags(0)


def packets(source: Iterable[Statement], *, limit: int) -> Iterator[list[Statement]]:
    """Yields groups of statements, each to be sent as one packet; ``limit`` is the server's max_allowed_packet in
    bytes.

    A packet contains few statements that scan a table, to limit the work that the server may still do after this
    program was killed.

    Raises PromiseError if a single statement is larger than ``limit``.
    """
    most = min(limit - 1, PACKET_BYTES)  # minus 1, since the command byte counts, too
    packet: list[Statement] = []
    size = scans = 0
    for statement in source:
        length = len(statement.sql) + len(statement.data or b"") + 1
        if length > limit:
            raise _too_large(statement, limit)
        if packet and (size + length > most or (statement.scans and scans == _MOST_SCANS)):
            yield packet
            packet, size, scans = [], 0, 0
        packet.append(statement)
        size += length
        scans += statement.scans
    if packet:
        yield packet


class Mismatch(Exception):
    """A statement has matched a number of rows that differs from the number of rows that the leader has changed."""


def loads(packet: Sequence[Statement], *, front: int = 0) -> dict[int, bytes]:
    """Returns the data of each LOAD DATA statement, by the statement's index. ``front`` is the number of statements
    that are sent in front of the packet; they count in the index, too.
    """
    return {index: each.data for index, each in enumerate(packet, front) if each.data is not None}


def check_counts(packet: Sequence[Statement], counts: Sequence[int]) -> None:
    """Raises Mismatch if a statement matched more or fewer rows than it must.

    ``counts`` may begin with counts of statements that were sent in front of the packet; these are ignored.
    """
    for statement, count in zip(packet, counts[len(counts) - len(packet) :], strict=True):
        if statement.rows is not None and statement.rows != count:
            table = statement.changes[0].record.uri if statement.changes else "the checkpoint"
            raise Mismatch(f"{count} rows counted in {table} where {statement.rows} were due")


def _too_large(statement: Statement, limit: int) -> PromiseError:
    what = f"needs a statement of {len(statement.sql)} bytes, but the follower accepts {limit}"
    hint = larger_packet(len(statement.sql))
    if not statement.changes:
        return PromiseError(f"the checkpoint's transaction {what}", code="CDC-FOLLOWER-PACKET", hint=hint)
    record = statement.changes[0].record
    return Unapplicable(f"a row of {record.uri} {what}", code="CDC-FOLLOWER-PACKET", record=record, hint=hint)


def larger_packet(size: int) -> str:
    """Returns the hint for a statement of ``size`` bytes, which exceeds the follower's max_allowed_packet."""
    needed = 1 << (size + 1024).bit_length()
    if needed > _LARGEST_PACKET:
        return "MySQL accepts no statement of more than 1 GB: bring the row to the follower by hand"
    return f"on the follower: SET PERSIST max_allowed_packet = {needed}"
