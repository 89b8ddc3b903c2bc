"""The locks of a follower's consumer (MySQL manual, "Locking Functions"): they live and die with their connections.

The first one lets no second consumer in. Each connection beside the first has one of its own, by which is known that it
has ended, at the server too, and with it what was under way there.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from cdc.consumer.server_errors import NO_SUCH_THREAD, Locked, Refused

__all__ = ["MOST_BESIDE", "SILENT_SECONDS", "lock_name", "outlast", "take"]

MOST_BESIDE = 7
# A connection that died without a word to the server keeps its locks until the server has heard nothing for so long.
SILENT_SECONDS = 60
_LOCK_SECONDS = 5  # the server may take a moment to see that a killed consumer is gone


class _Session(Protocol):
    def run(self, packet: Sequence[bytes]) -> list[int]: ...
    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...


def lock_name(resource: str, number: int = 0) -> str:
    """What the server calls the lock of a leader's consumer, of its first connection or of one beside it."""
    # Lock names have 64 characters at most and ignore case: a digest has neither trouble.
    name = f"{resource}\0{number}" if number else resource
    return "cdc-consumer:" + hashlib.sha256(name.encode()).hexdigest()[:48]


def take(session: _Session, name: str, *, former: int) -> None:
    """Raises Locked where another session holds the lock, which must not be ``former``, a lost one of ours."""
    if _holder(session, name) == former:
        # The server does not know yet that we have lost it. Only where that one has the lock: after a restart of
        # the server the number may be anybody's.
        try:
            session.run([f"KILL {former}".encode()])
        except Refused as error:
            if error.code != NO_SUCH_THREAD:
                raise
    if session.rows(f"SELECT GET_LOCK('{name}', {_LOCK_SECONDS})") != [(1,)]:
        holder = _holder(session, name)
        raise Locked(
            f"another consumer is at work on this follower: connection {holder} holds the lock (if it is of one "
            f"that is gone, the server ends it {SILENT_SECONDS} s after its last word, or now: KILL {holder})"
        )


def outlast(session: _Session, resource: str, *, formers: Mapping[int, int]) -> None:
    """Wait until no connection beside a first one is at work; ``formers`` are lost ones of ours, by their numbers.

    Raises Locked where one stays.
    """
    names = {number: lock_name(resource, number) for number in range(1, MOST_BESIDE + 1)}
    asked = ",".join(f"IS_USED_LOCK('{name}')" for name in names.values())
    (holders,) = session.rows(f"SELECT {asked}")
    for (number, name), holder in zip(names.items(), holders, strict=True):
        if holder is not None:
            take(session, name, former=formers.get(number, 0))
            session.rows(f"SELECT RELEASE_LOCK('{name}')")


def _holder(session: _Session, name: str) -> int | None:
    """The connection that has the lock."""
    ((holder,),) = session.rows(f"SELECT IS_USED_LOCK('{name}')")
    return None if holder is None else int(holder)
