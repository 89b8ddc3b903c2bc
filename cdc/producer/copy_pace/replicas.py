"""Holds a copy back while one of the leader's own replicas is behind: reading the leader may be what slows it down."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pymysql

from cdc.config.server_address import ServerAddress
from cdc.producer.binlog.leader import first_known
from cdc.service.mysql_connection import connected

__all__ = ["Replicas"]

_LOOK_SECONDS = 1.0
# A look must not hold up the program's end for long.
_TIMEOUTS = {"connect_timeout": 2, "read_timeout": 3, "write_timeout": 3}
# The column of the first is Seconds_Behind_Source, of the second, which MySQL before 8.0.22 has, Seconds_Behind_Master.
_STATUS = ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")


class Replicas:
    """A chunk is read when each replica at ``addresses`` is at most ``seconds`` behind, by its Seconds_Behind_Source.

    One that is away, or does not replicate, may be behind by any time: it is waited for as well. ``settings`` are the
    leader's, and log in to the replicas too. ``log(event, **fields)`` is called when a wait begins, has another reason,
    and ends.
    """

    def __init__(
        self, addresses: Sequence[ServerAddress], settings: dict[str, Any], *, seconds: int, log: Callable[..., None]
    ) -> None:
        self._addresses = addresses
        self._settings = settings | _TIMEOUTS | {"cursorclass": pymysql.cursors.DictCursor, "autocommit": True}
        self._seconds = seconds
        self._log = log
        self._connections: dict[ServerAddress, Any] = {}
        self._looked_at = float("-inf")

    def wait(self, end: threading.Event) -> None:
        """Wait until no replica is behind, or for ``end``; each is asked once a second at most."""
        if not self._addresses or time.monotonic() < self._looked_at + _LOOK_SECONDS:
            return
        told = None
        while not end.is_set() and (found := self._behind()):
            address, why, known = found
            if told != (address, known or why):
                self._tell(address, why, known=known)
                told = address, known or why
            end.wait(_LOOK_SECONDS)
        if told and not end.is_set():
            self._log("the copy goes on")
        self._looked_at = time.monotonic()

    def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _tell(self, address: ServerAddress, why: str, *, known: bool) -> None:
        if known:
            self._log("the copy waits for a replica", replica=str(address), why=why)
            return
        hint = "the copy goes on once it can be asked and replicates; else take it out of producer.copy_replicas"
        self._log("the copy waits for a replica", level=logging.WARNING, replica=str(address), why=why, hint=hint)

    def _behind(self) -> tuple[ServerAddress, str, bool] | None:
        """The first replica that is behind, why, and whether it is known how far; None where there is none."""
        for address in self._addresses:
            try:
                seconds = self._lag(address)
            except (pymysql.MySQLError, OSError) as error:
                self._connections.pop(address, None)
                return address, f"it can't be asked: {error.args[-1] if error.args else error}", False
            if seconds is None:
                return address, "it does not replicate", False
            if seconds > self._seconds:
                return address, f"it is {seconds} s behind", True
        return None

    def _lag(self, address: ServerAddress) -> int | None:
        """Seconds behind, the most of all its channels; None where one of them is stopped, or there is none."""
        if address not in self._connections:
            self._connections[address] = connected(**self._settings | {"host": address.host, "port": address.port})
        with self._connections[address].cursor() as cursor:
            channels = first_known(cursor, *_STATUS)
        lags = [row.get("Seconds_Behind_Source", row.get("Seconds_Behind_Master")) for row in channels]
        return max(lags) if lags and None not in lags else None
