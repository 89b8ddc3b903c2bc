"""Finds the follower among the servers in ``database.hosts``: the one that accepts writes and has our checkpoint."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pymysql

from cdc.config.profile import Database
from cdc.consumer.errors import Interrupted
from cdc.errors import CdcError
from cdc.model.gtid import GtidSet
from cdc.service.asked_at_once import asked_at_once
from cdc.service.mysql_connection import connected

__all__ = ["Candidate", "FollowerAddress", "chosen"]

_VARIABLES = "SHOW GLOBAL VARIABLES WHERE variable_name IN ('read_only', 'server_uuid', 'group_replication_group_name')"
_NO_SUCH_TABLE = frozenset({1049, 1146})
_SECONDS, _LOOK_SECONDS = 10, 5.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """The answer of a server. ``trouble`` is the reason why its state is unknown; empty if the server has answered.

    ``sequence`` is the sequence of its checkpoint of our stream, None if it has no checkpoint. ``writes_as`` are the
    UUIDs under which it logs what clients write; ``executed`` are the UUIDs of all servers whose transactions it has.
    """

    trouble: str = ""
    server: str = ""
    read_only: bool = False
    sequence: int | None = None
    writes_as: frozenset[str] = frozenset()
    executed: frozenset[str] = frozenset()


def chosen(answers: dict[Database, Candidate], *, asked: int, former: Candidate | None) -> Database:
    """Returns the server of the ``answers`` that is the follower. ``asked`` is the number of servers that were
    asked, ``former`` the server on which the consumer has committed last, None if it has not committed yet.

    Raises Interrupted, with the names of the servers, if there is no such server or if there may be another one.
    """
    writable = {each.server: database for database, each in reversed(answers.items()) if _writes(each)}
    if len(writable) > 1:
        raise Interrupted(
            f"several servers take writes: {', '.join(map(str, reversed(writable.values())))}; on each one that is not "
            "the follower: SET PERSIST super_read_only = ON"
        )
    if not writable:
        reasons = (f"{database}: {each.trouble or 'it has read_only'}" for database, each in answers.items())
        raise Interrupted(
            f"no server takes writes: {'; '.join(reasons)}; start the follower, or promote a replica of it: "
            "SET PERSIST super_read_only = OFF, SET PERSIST read_only = OFF"
        )
    (database,) = writable.values()
    found = answers[database]
    if found.sequence is None:
        # The checkpoint may be on a server that does not answer now. A new follower is begun only if there is none.
        others = [str(each) for each, answer in answers.items() if answer.sequence is not None]
        if others or former is not None or any(each.trouble for each in answers.values()) or len(answers) < asked:
            there = f"; {', '.join(others)} has one" if others else ""
            raise Interrupted(
                f"{database} takes writes, and has no checkpoint of this stream{there}; promote a replica of the "
                "follower instead; a new follower is begun when all servers in database.hosts answer"
            )
    elif former is not None and found.server != former.server and not former.writes_as & found.executed:
        raise Interrupted(
            f"{database} takes writes, and lacks all transactions of the server {former.server}, on which the "
            "consumer has committed last; promote a replica of that one instead"
        )
    return database


def _writes(candidate: Candidate) -> bool:
    return not candidate.trouble and not candidate.read_only


class FollowerAddress:
    """The address of the follower. ``database`` is the server that was found last, without ``hosts``.

    ``question`` is the query for the sequence in the checkpoint of our stream. All connections of one consumer share
    this object, so that they lead to one server.
    """

    def __init__(self, database: Database, *, question: str = "") -> None:
        self.database = replace(database, hosts=())
        self._candidates = database.addresses()
        self._question = question
        self._found: Candidate | None = None
        self._former: Candidate | None = None
        self._looked_at = 0.0

    def find(self) -> None:
        """Asks all servers which of them is the follower now; has no effect without ``database.hosts``. Raises
        Interrupted if none is, or if several may be.
        """
        if len(self._candidates) == 1 or not self._question:
            return
        answers = asked_at_once(self._candidates, self._asked, decides=_writes)
        self.database = chosen(answers, asked=len(self._candidates), former=self._former)
        self._found, self._looked_at = answers[self.database], time.monotonic()

    def require_writable(self) -> None:
        """Raises Interrupted if the server that was found last has read_only now. It is asked every few seconds, and
        only with ``database.hosts``.

        A server that is demoted keeps its connections, and a user with CONNECTION_ADMIN may write under read_only: the
        consumer would go on there, while the clients read another server.
        """
        if self._found is None or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        if self._asked(self.database).read_only:
            raise Interrupted(f"{self.database} has read_only now")

    def committed(self) -> None:
        """Notes that the consumer's checkpoint is on the server that was found last."""
        self._former = self._found

    def _asked(self, database: Database) -> Candidate:
        limits = {"connect_timeout": _SECONDS, "read_timeout": _SECONDS, "write_timeout": _SECONDS}
        try:
            with connected(**database.settings() | limits) as connection, connection.cursor() as cursor:
                cursor.execute(_VARIABLES)
                variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
                cursor.execute("SELECT @@GLOBAL.gtid_executed")
                executed = GtidSet.parse(cursor.fetchone()[0])
                return Candidate(
                    server=variables["server_uuid"],
                    read_only=variables["read_only"] != "OFF",
                    sequence=self._sequence(cursor),
                    writes_as=_uuids((variables["server_uuid"], variables.get("group_replication_group_name", ""))),
                    executed=_uuids(source.partition(":")[0] for source, _ in executed.intervals()),
                )
        except (pymysql.MySQLError, OSError, CdcError) as error:
            return Candidate(str(error.args[-1]) if error.args else repr(error))

    def _sequence(self, cursor: Any) -> int | None:
        try:
            cursor.execute(self._question)
        except pymysql.MySQLError as error:
            if error.args[0] in _NO_SUCH_TABLE:
                return None
            raise
        rows = cursor.fetchall()
        return int(rows[0][0]) if rows else None


def _uuids(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names if name)
