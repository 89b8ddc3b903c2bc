"""A native MySQL replica beside the programs, for comparison with the follower."""

from dataclasses import dataclass
from typing import Any, Self

from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from tests.harness.wait import until

__all__ = ["Replica"]


@dataclass(frozen=True)
class Replica:
    """A replica: ``server`` follows ``leader``, from its next transaction on."""

    leader: MySql
    server: MySql

    @classmethod
    def make(cls, leader: MySql, server: MySql) -> Self:
        """Makes a replica of ``server``, which has fresh data."""
        replica = cls(leader, server)
        _run(
            server,
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={leader.port}, SOURCE_USER='{USER}', "
            f"SOURCE_PASSWORD='{PASSWORD}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1",
        )
        replica.restart()
        return replica

    def restart(self) -> None:
        """Skips everything that the leader has executed so far."""
        executed = _executed(self.leader)
        ((version,),) = _run(self.server, "SELECT VERSION()")
        reset = "RESET MASTER" if version.startswith("8.0.") else "RESET BINARY LOGS AND GTIDS"
        _run(
            self.server,
            "STOP REPLICA", "RESET REPLICA", reset, f"SET GLOBAL gtid_purged = '{executed}'",
            "START REPLICA",
        )  # fmt: skip

    def catch_up(self) -> str:
        """Waits until the replica has everything from the leader. Returns the error at which it stopped, if it did."""
        wanted = _executed(self.leader)
        error = ""

        def done() -> bool:
            nonlocal error
            ((late,),) = _run(self.server, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', 0.2)")
            error = self._error()
            return late == 0 or bool(error)

        until(done, what="the replica has all of the leader")
        return error

    def _error(self) -> str:
        ((*values,),), names = _asked(self.server, "SHOW REPLICA STATUS")
        status = dict(zip(names, values, strict=True))
        if status["Replica_SQL_Running"] == "Yes":
            return ""
        workers = _asked(
            self.server, "SELECT last_error_message FROM performance_schema.replication_applier_status_by_worker"
        )
        return " ".join([status["Last_SQL_Error"], *(text for (text,) in workers[0])]) or "stopped"


def _executed(server: MySql) -> str:
    ((executed,),) = _run(server, "SELECT @@GLOBAL.gtid_executed")
    return str(executed).replace("\n", "")


def _run(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def _asked(server: MySql, statement: str) -> tuple[list[tuple[Any, ...]], list[str]]:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()), [column[0] for column in cursor.description]
