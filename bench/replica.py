"""Runs MySQL's own replica for comparison: receiving and applying in turn, so that each can be timed alone."""

from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.sandbox.server.process import wait_until

__all__ = ["NativeReplica"]

_WORKERS, _SECONDS = 4, 600


class NativeReplica:
    """``server`` as a replica of ``leader`` with 4 workers, which commit in the leader's order, as is the default."""

    def __init__(self, leader: MySql, server: MySql) -> None:
        self._leader, self._server = leader, server
        self._run(
            f"SET GLOBAL replica_parallel_workers = {_WORKERS}",
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={leader.port}, SOURCE_USER='{USER}', "
            f"SOURCE_PASSWORD='{PASSWORD}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
        )

    def receive(self) -> None:
        """Receives everything that the leader has into the relay log."""
        self._run("START REPLICA IO_THREAD")
        wanted = _executed(self._leader)
        assert wait_until(lambda: self._has(wanted), seconds=_SECONDS), "the relay log stays behind"
        self._run("STOP REPLICA IO_THREAD")

    def apply(self) -> None:
        """Applies everything that the leader has."""
        self._run("START REPLICA SQL_THREAD")
        ((late,),) = self._run(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{_executed(self._leader)}', {_SECONDS})")
        assert late == 0, "the replica did not get there"
        self._run("STOP REPLICA SQL_THREAD")

    def follow(self) -> None:
        """Receives and applies from now on."""
        self._run("START REPLICA")

    def _has(self, wanted: str) -> bool:
        with self._server.root() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW REPLICA STATUS")
            row = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
            there = ",".join(filter(None, (row["Retrieved_Gtid_Set"], row["Executed_Gtid_Set"])))
            cursor.execute("SELECT GTID_SUBSET(%s, %s)", (wanted, there))
            return cursor.fetchone() == (1,)

    def _run(self, *statements: str) -> list[tuple[object, ...]]:
        with self._server.root() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


def _executed(server: MySql) -> str:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.gtid_executed")
        ((executed,),) = cursor.fetchall()
    return str(executed).replace("\n", "")
