"""Measures the load on two MySQL servers that are compared."""

from measure import server_cpu_seconds

from cdc.sandbox.server.mysql import MySql

__all__ = ["Pair"]


class Pair:
    """A leader and its follower, with a connection to each that reads its statement counters."""

    def __init__(self, *servers: MySql) -> None:
        self._servers = servers
        self._connections = [server.root() for server in servers]
        self._asked = 0

    def cpu_seconds(self) -> float:
        """CPU seconds of both servers since their start."""
        return sum(map(server_cpu_seconds, self._servers))

    def questions(self) -> int:
        """Statements that other clients sent to both servers since their start; compare with a later count."""
        counts = []
        for connection in self._connections:
            with connection.cursor() as cursor:
                cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
                counts += [int(count) for _, count in cursor.fetchall()]
        self._asked += len(counts)
        return sum(counts) - self._asked
