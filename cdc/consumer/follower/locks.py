"""Takes the named locks of a follower's consumer (MySQL manual, "Locking Functions"); each of its connections holds one
lock.

The lock of the first connection keeps a second consumer out. Each additional connection holds a lock of its own: once
another connection can take that lock, the server has ended the additional connection and rolled back its open
transaction.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cdc.consumer.errors import NO_SUCH_THREAD, Locked, Refused

__all__ = ["MOST_ADDITIONAL", "SILENT_SECONDS", "is_paused", "lock_name", "outlast", "take", "tell_pause"]

MOST_ADDITIONAL = 7
_PAUSED = -1  # the number of a lock that the first connection holds too while the consumer is paused
# A connection that was cut without notice keeps its locks until the server has received nothing from it for this time.
SILENT_SECONDS = 60
_LOCK_SECONDS = 5  # the server may take a moment to notice the end of a killed consumer


class _Session(Protocol):
    def run(self, packet: Sequence[bytes]) -> list[int]: ...
    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...


def lock_name(resource: str, number: int = 0) -> str:
    """The server's name for the lock of a leader's consumer; ``number`` is 0 for its first connection, or the number of
    an additional connection.
    """
    # Lock names have 64 characters at most and ignore case, so that only a digest of the leader's name is safe.
    name = f"{resource}\0{number}" if number else resource
    return "cdc-consumer:" + hashlib.sha256(name.encode()).hexdigest()[:48]


def take(session: _Session, name: str, *, former: int) -> None:
    """Takes the lock ``name``. If ``former``, the id of a lost connection of ours, still holds the lock, kills that
    connection first.

    Raises Locked if another session holds the lock.
    """
    if _holder(session, name) == former:
        # The server has not noticed yet that the connection is lost. It is killed only if it holds the lock: after a
        # restart of the server the same id may belong to another client.
        try:
            session.run([f"KILL {former}".encode()])
        except Refused as error:
            if error.code != NO_SUCH_THREAD:
                raise
    if session.rows(f"SELECT GET_LOCK('{name}', {_LOCK_SECONDS})") != [(1,)]:
        holder = _holder(session, name)
        raise Locked(
            f"another consumer is running on this follower: connection {holder} holds the lock (if it is of one "
            f"that is gone, the server ends it {SILENT_SECONDS} s after its last statement, or now: KILL {holder})"
        )


def outlast(session: _Session, resource: str, *, formers: Mapping[int, int]) -> None:
    """Waits until all additional connections have released their locks; ``formers`` maps their numbers to the ids of
    lost connections.

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
    """The connection that holds the lock."""
    ((holder,),) = session.rows(f"SELECT IS_USED_LOCK('{name}')")
    return None if holder is None else int(holder)


def tell_pause(session: _Session, resource: str, paused: bool) -> None:
    """Shows other sessions, through a lock, whether the consumer is ``paused`` (``is_paused``), for as long as this
    connection lasts. Raises Interrupted or Refused.
    """
    name = lock_name(resource, _PAUSED)
    # A lock that is taken twice must be released twice.
    taken = f"SELECT IF(IS_USED_LOCK('{name}') <=> CONNECTION_ID(), 1, GET_LOCK('{name}', 0))"
    session.rows(taken if paused else f"SELECT RELEASE_LOCK('{name}')")


def is_paused(session: _Session, resource: str) -> bool:
    """Whether the leader's consumer is paused."""
    return session.rows(f"SELECT IS_USED_LOCK('{lock_name(resource, _PAUSED)}')") != [(None,)]
