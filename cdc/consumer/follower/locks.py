"""Acquires the named locks of a follower's consumer (MySQL manual, "Locking Functions"). Each connection of the
consumer holds one lock.

The lock of the first connection keeps a second consumer out. Each additional connection holds its own lock. Once
another connection can acquire that lock, the server has ended the additional connection and rolled back its open
transaction.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cdc.consumer.errors import NO_SUCH_THREAD, Locked, Refused

__all__ = ["MOST_ADDITIONAL", "SILENT_SECONDS", "STATEMENT", "is_paused", "lock_name", "outlast", "take", "tell_pause"]

MOST_ADDITIONAL = 7
_PAUSED = -1  # the number of an extra lock that the first connection holds while the consumer is paused
STATEMENT = -2  # the number of the lock that the connection for statements holds if the user may not assign GTIDs
# If a connection is cut silently, the server releases its locks once it has received nothing for this time.
SILENT_SECONDS = 60
_LOCK_SECONDS = 5  # the server may need a moment to notice that a consumer was killed


class _Session(Protocol):
    def run(self, packet: Sequence[bytes]) -> list[int]: ...
    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...


def lock_name(resource: str, number: int = 0) -> str:
    """Returns the name of a lock that the consumer of the leader ``resource`` holds. ``number`` is 0 for the lock of
    the consumer's first connection, otherwise the number of an additional connection.
    """
    # A lock's name has at most 64 characters and ignores case, so it contains a digest in place of the leader's name.
    name = f"{resource}\0{number}" if number else resource
    return "cdc-consumer:" + hashlib.sha256(name.encode()).hexdigest()[:48]


def take(session: _Session, name: str, *, former: int) -> None:
    """Acquires the lock ``name``. ``former`` is the id of a lost connection of this program; if it still holds the
    lock, it is killed first.

    Raises Locked if another session holds the lock.
    """
    if _holder(session, name) == former:
        # The server has not yet noticed that the connection is lost. The connection is killed only if it holds the
        # lock, because after a restart of the server another client may have the same id.
        try:
            session.run([f"KILL {former}".encode()])
        except Refused as error:
            if error.code != NO_SUCH_THREAD:
                raise
    if session.rows(f"SELECT GET_LOCK('{name}', {_LOCK_SECONDS})") != [(1,)]:
        holder = _holder(session, name)
        raise Locked(
            f"another consumer is running on this follower: connection {holder} holds the lock (if that consumer is "
            f"gone, the server ends it {SILENT_SECONDS} s after its last statement, or now: KILL {holder})"
        )


def outlast(session: _Session, resource: str, *, formers: Mapping[int, int]) -> None:
    """Waits until no additional connection holds its lock any more. ``formers`` maps the numbers of additional
    connections to the ids of their lost connections.

    Raises Locked if a connection keeps its lock.
    """
    names = {number: lock_name(resource, number) for number in range(1, MOST_ADDITIONAL + 1)}
    asked = ",".join(f"IS_USED_LOCK('{name}')" for name in names.values())
    (holders,) = session.rows(f"SELECT {asked}")
    for (number, name), holder in zip(names.items(), holders, strict=True):
        if holder is not None:
            take(session, name, former=formers.get(number, 0))
            session.rows(f"SELECT RELEASE_LOCK('{name}')")


def _holder(session: _Session, name: str) -> int | None:
    """Returns the id of the connection that holds the lock; None if no connection holds it."""
    ((holder,),) = session.rows(f"SELECT IS_USED_LOCK('{name}')")
    return None if holder is None else int(holder)


def tell_pause(session: _Session, resource: str, paused: bool) -> None:
    """Shows other sessions whether the consumer is ``paused``: a paused consumer holds a lock (``is_paused``). The lock
    exists only as long as this connection. Raises Interrupted or Refused.
    """
    name = lock_name(resource, _PAUSED)
    # The lock is acquired only once, because a lock that is acquired twice must be released twice.
    taken = f"SELECT IF(IS_USED_LOCK('{name}') <=> CONNECTION_ID(), 1, GET_LOCK('{name}', 0))"
    session.rows(taken if paused else f"SELECT RELEASE_LOCK('{name}')")


def is_paused(session: _Session, resource: str) -> bool:
    """Whether the leader's consumer is paused."""
    return session.rows(f"SELECT IS_USED_LOCK('{lock_name(resource, _PAUSED)}')") != [(None,)]
