"""A packet of statements that was sent: answers the server's requests for data, and receives the counts.

A server can answer any statement by asking for any file of the client's. This program never opens one: the data of a
LOAD DATA LOCAL come from memory, the name in the request is not looked at, and where no data were sent along with the
statement pymysql refuses the request.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pymysql

from cdc.consumer.errors import Interrupted, Refused
from cdc.consumer.follower.answers import translated

__all__ = ["NOT_TAKEN", "SWITCH_ON", "SentPacket", "stored_rows"]

NOT_TAKEN = "the follower does not take LOAD DATA LOCAL: adding many rows costs it twice as much CPU"
SWITCH_ON = "on the follower: SET PERSIST local_infile = ON, then start the consumer again"
_CHUNK = 1 << 16


class SentPacket:
    """``statements`` were sent over the pymysql ``connection``; ``loads`` are the data for some of them, by index.

    ``wait``, a parameter of the methods, is called before each reply is read.
    """

    def __init__(self, connection: Any, statements: int, loads: Mapping[int, bytes], *, max_packet: int) -> None:
        self._connection = connection
        self._statements = statements
        self._loads = loads
        self._chunk = min(_CHUNK, max_packet - 1)
        self._counts: list[int] = []
        self._failure: Interrupted | Refused | None = None

    def feed(self, wait: Callable[[], None]) -> None:
        """Give the server all data that it asks for, once all before is executed. ``receive`` raises what fails here:
        a COMMIT before the data may have failed, and who receives knows what that means.
        """
        try:
            for index in range(max(self._loads, default=-1) + 1):
                if index in self._loads:
                    self._count(index - 1, wait)
                    wait()
                    self._send(self._loads[index])
        except (Interrupted, Refused) as error:
            self._failure = error
        except (pymysql.MySQLError, OSError) as error:
            self._failure = translated(error)

    def receive(self, wait: Callable[[], None]) -> list[int]:
        """The number of rows that each statement has matched, or has loaded as they were sent.

        Raises Interrupted or Refused.
        """
        if self._failure is not None:
            raise self._failure
        try:
            self._count(self._statements - 1, wait)
        except (pymysql.MySQLError, OSError) as error:
            raise translated(error) from None
        return self._counts

    def _count(self, last: int, wait: Callable[[], None]) -> None:
        """Receive the counts of the statements up to ``last`` that are outstanding."""
        for index in range(len(self._counts), last + 1):
            wait()
            count = self._connection.next_result()
            self._counts.append(stored_rows(self._connection._result) if index in self._loads else count)

    def _send(self, data: bytes) -> None:
        # As pymysql does before it reads a reply: after an error there are no more results of this packet.
        self._connection._result = None
        if not self._connection._read_packet().is_load_local_packet():
            raise OSError("the server does not ask for the rows of a LOAD DATA LOCAL")
        for begin in range(0, len(data), self._chunk):
            self._connection.write_packet(data[begin : begin + self._chunk])
        self._connection.write_packet(b"")  # the end


def stored_rows(result: Any) -> int:
    """How many rows a LOAD DATA LOCAL has stored as they were sent, judging by the ``result`` that pymysql has read.

    LOCAL makes warnings of errors: one for a value that was changed, one for a row that was left out because its key
    was there. Which row a warning is about is not told, so each counts for one.
    """
    # Four numbers, in this order in all languages: records, deleted, skipped, warnings. A length comes before the text.
    counts = list(map(int, re.findall(rb"[0-9]+", bytes(result.message or b""))[-4:]))
    if len(counts) < 4:
        return 0
    records, *others = counts
    rows = min(records, int(result.affected_rows))
    return max(rows - max(int(result.warning_count), *others), 0)
