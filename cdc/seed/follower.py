"""Marks a follower while cdc-seed loads it. Before the mark is set, the follower is empty. After the mark is removed,
it is an ordinary follower.
"""

from collections.abc import Sequence

from cdc.consumer.errors import Interrupted, Refused, Stopped
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import quoted
from cdc.consumer.state.base_copy import SEEDS, BaseCopy, Seed, seed_of
from cdc.consumer.state.checkpoint import CHECKPOINT, Checkpoint, LastChunk
from cdc.errors import Disconnected, UserError

__all__ = ["SeedBeginning", "finish", "seed_in"]

_OF_SERVER = ("information_schema", "mysql", "performance_schema", "sys", "ndbinfo")
_EMPTY = (
    "cdc-seed loads an empty follower: drop its databases, consumer.schema too, and run RESET BINARY LOGS AND GTIDS "
    "(before MySQL 8.4: RESET MASTER), or take a new server"
)


class SeedBeginning:
    """Begins or continues to load a follower, according to ``seed``. Takes the place of ``range.base_copy.Attachment``
    in the consumer; its methods are described there.
    """

    def __init__(self, resource: str, seed: Seed, chunks: Sequence[LastChunk]) -> None:
        """``chunks`` are the last chunks of table copies in the stream to load, one for each partition."""
        self._resource = resource
        self._seed = seed
        self._chunks = chunks

    def begin(self, session: Session) -> list[bytes]:
        """Creates the table of marks, and returns the statements that write the mark and the last chunks. They commit
        together with the first checkpoint, so that the follower never has only one of them.
        """
        session.run([SEEDS.create(session.schema).encode()])
        seed = self._seed
        mark = SEEDS.insert(session.schema, self._resource, upto=seed.upto, scope=seed.scope, now="at")
        notes = [chunk.note(self._resource, schema=session.schema) for chunk in self._chunks]
        return [each.encode() for each in (mark, *notes)]

    def copied(self, session: Session, *, now: bool) -> BaseCopy:
        """Returns no base copy, since a follower that cdc-seed loads is empty at first."""
        return BaseCopy()


def seed_in(session: Session, resource: str, *, name: str) -> Seed | None:
    """Reads from the follower which seed is loading it; returns None if the follower is empty.

    Raises Disconnected, and UserError if the follower is not empty and no seed is loading it. ``name`` is the
    follower's name in errors.
    """
    try:
        seed = seed_of(session, resource)
        there = [] if seed else _databases(session)
        is_known = not seed and _has_checkpoint(session, resource)
        session.commit()
    except Stopped:
        raise
    except (Interrupted, Refused) as error:
        raise Disconnected(f"the follower cannot be used: {error}", code="CDC-SEED-FOLLOWER-GONE", where=name) from None
    if is_known:
        raise UserError(
            f"the follower has applied records of {resource!r} before",
            code="CDC-SEED-FOLLOWER-NOT-EMPTY",
            where=name,
            hint=_EMPTY,
        )
    if there:
        names = ", ".join(there[:5]) + ", …" * (len(there) > 5)
        raise UserError(
            f"the follower is not empty: it has the databases {names}",
            code="CDC-SEED-FOLLOWER-NOT-EMPTY",
            where=name,
            hint=_EMPTY,
        )
    return seed


def finish(session: Session, resource: str) -> None:
    """Removes the mark, since the follower now equals the leader at the checkpoint. Raises Disconnected."""
    try:
        session.run([SEEDS.delete(session.schema, resource).encode(), b"COMMIT"])
    except (Interrupted, Refused) as error:
        raise Disconnected(
            f"the follower cannot be used: {error}",
            code="CDC-SEED-FOLLOWER-GONE",
            hint="run cdc-seed again, which continues",
        ) from None


def _databases(session: Session) -> list[str]:
    own = ", ".join(map(quoted, (*_OF_SERVER, session.schema)))
    question = f"SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ({own}) ORDER BY 1"
    return [str(name) for (name,) in session.rows(question)]


def _has_checkpoint(session: Session, resource: str) -> bool:
    if not session.rows(CHECKPOINT.exists(session.schema)):
        return False
    return bool(session.rows(Checkpoint.select(resource, schema=session.schema)))
