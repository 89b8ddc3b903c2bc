"""Joins SQL statements into packets that are no larger than the server accepts, and checks the row counts of a packet.

Each statement has the number of rows it must match; the session counts matched rows (FOUND_ROWS), not changed ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdc.consumer.errors import Unapplicable
from cdc.consumer.literals.row_sql_mode import STRICT, setting
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

# Larger packets are no faster, and use more memory in the consumer and in the server.
PACKET_BYTES = 4_000_000
FRONT_BYTES = 64  # the most bytes that are sent in front of a packet: a COMMIT, a savepoint, a setting
_LARGEST_PACKET = 1 << 30  # bytes: the maximum of max_allowed_packet
# The server executes a packet to its end even if this program has ended meanwhile, so only few of its statements may
# scan a table.
_MOST_SCANS = 20


@dataclass(frozen=True, slots=True)
class Statement:
    """An SQL statement, the number of rows that it must match (None: any) and the changes that it applies.

    ``scans`` is true if the server may have to read the whole table. ``data`` are the rows that the server requests
    while it executes a LOAD DATA LOCAL.
    """

    sql: bytes
    rows: int | None = None
    changes: Sequence[Change] = ()
    scans: bool = False
    data: bytes | None = None


def session_flags(flags: int) -> Statement:
    """The statement that sets the checks according to a rows event's ``flags``. Foreign keys are off if the leader
    logged their changes: the follower must not repeat these changes.
    """
    foreign = 0 if flags & (NO_FOREIGN_KEY_CHECKS | ALL_LOGGED) else 1
    unique = 0 if flags & RELAXED_UNIQUE_CHECKS else 1
    return Statement(f"SET foreign_key_checks={foreign}, unique_checks={unique}".encode())


def usual_session(mode: str, flags: int) -> Iterator[Statement]:
    """The statements that set a session back to the usual sql_mode and checks, after the statements that
    change rows.
    """
    if mode != STRICT:
        yield Statement(setting(STRICT))
    if flags:
        yield session_flags(0)


def packets(source: Iterable[Statement], *, limit: int) -> Iterator[list[Statement]]:
    """Groups of statements to send as one packet each; ``limit`` is the server's max_allowed_packet in bytes.

    A packet contains few statements that scan a table: that bounds the work of the server after this program was
    killed.

    Raises PromiseError if a single statement is larger than ``limit``.
    """
    most = min(limit - 1, PACKET_BYTES)  # the command byte counts too
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
    """A statement matched another number of rows than the leader changed."""


def loads(packet: Sequence[Statement], *, front: int = 0) -> dict[int, bytes]:
    """Maps the index of each statement that loads rows to its data; ``front`` other statements come
    before the packet.
    """
    return {index: each.data for index, each in enumerate(packet, front) if each.data is not None}


def check_counts(packet: Sequence[Statement], counts: Sequence[int]) -> None:
    """Raises Mismatch if a statement matched another number of rows than it must.

    ``counts`` begins with the counts of the statements that were sent in front of the packet, which are ignored.
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
    """The hint for a statement of ``size`` bytes that is too large for the follower."""
    needed = 1 << (size + 1024).bit_length()
    if needed > _LARGEST_PACKET:
        return "MySQL accepts no statement of more than 1 GB: bring the row to the follower by hand"
    return f"on the follower: SET PERSIST max_allowed_packet = {needed}"
