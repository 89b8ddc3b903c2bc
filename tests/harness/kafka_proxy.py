"""A proxy between Kafka's clients and its brokers that reads the kinds of requests, and has troubles for chosen ones.

A network can do the same to a request: TCP loses a connection with everything on its way, in one direction or both,
with a notice or without, and a server may read what came over it long after the client has given it up. Only ``repeat``
is more than that. In answers it changes the brokers' addresses alone, so that clients come back to it.
"""

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Collection, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

__all__ = ["API", "KINDS", "KafkaProxy", "Trouble"]

# https://kafka.apache.org/protocol#protocol_api_keys
API = {
    "Produce": 0, "Fetch": 1, "ListOffsets": 2, "OffsetCommit": 8, "InitProducerId": 22, "AddPartitionsToTxn": 24,
    "EndTxn": 26,
}  # fmt: skip
_WITH_ADDRESSES = frozenset({0, 1, 3, 10, 60})  # Produce, Fetch, Metadata, FindCoordinator, DescribeCluster
_KIND = struct.Struct(">h")  # of a request, behind its length; answers come in the order of the requests
_LENGTH = struct.Struct(">i")
_HOST = b"127.0.0.1"
_ANSWER_SECONDS = 0.2
_THROTTLED_BYTES, _THROTTLED_SECONDS = 2048, 0.02

KINDS = (
    "delay the request",  # by ``seconds``, with all behind it on its connection
    "delay the answer",
    "lose the request",  # and cut the connection
    "lose the answer",  # cut the connection once the broker has answered
    "deliver late",  # cut the client off; the broker gets the request ``seconds`` later, or after ``until``
    "half-open",  # the broker gets the request, then nothing passes for ``seconds``, without a notice
    "throttle",  # the connection passes 100 kB a second for ``seconds``
    "repeat",  # the broker gets the request twice, the client one answer
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What happens to the next request of kind ``api``, a key of API, after ``passes`` others of that kind.

    With ``until`` a late request is delivered right before the request of that kind that clients send next but
    ``times`` - 1, at the latest after ``seconds``.
    """

    kind: str
    api: str
    seconds: float = 0.5
    passes: int = 0
    until: str = ""
    times: int = 1


@dataclass(slots=True, eq=False)
class _Late:
    """A request that waits for ``times`` requests of the kind ``api``, of which the last one waits for it."""

    api: int
    times: int
    due: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True, eq=False)
class _Connection:
    """One client's connection and ours to its broker. ``waiting`` has, for each request without an answer yet, which
    kind it is, what is to happen to the answer, and for how many seconds. While it is ``silent`` nothing passes.
    """

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    waiting: deque[tuple[int, str, float]] = field(default_factory=deque)
    slow_until: float = 0.0
    silent: bool = False

    def cut(self) -> None:
        self.client.transport.abort()
        self.server.transport.abort()


class KafkaProxy:
    """``with KafkaProxy([port]) as proxy``: clients of ``proxy.bootstrap_servers`` talk to the local brokers at these
    ports.

    ``plan`` gives a request its trouble; ``met`` lists the troubles that have happened, in order. ``at`` is the proxy's
    own port if there is one broker; 0 means any free ones.
    """

    def __init__(self, brokers: Collection[int], *, at: int = 0) -> None:
        self._listeners = {broker: socket.create_server(("127.0.0.1", at)) for broker in brokers}
        ours = {broker: int(listener.getsockname()[1]) for broker, listener in self._listeners.items()}
        self._addresses = {_HOST + _LENGTH.pack(broker): _HOST + _LENGTH.pack(port) for broker, port in ours.items()}
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port}" for port in ours.values())
        self.met: list[Trouble] = []
        self._planned: list[Trouble] = []
        self._passed: dict[Trouble, int] = {}
        self._late: list[_Late] = []
        self._open: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def plan(self, *troubles: Trouble) -> None:
        """Has these troubles for the requests to come, each for one."""
        self._loop.call_soon_threadsafe(self._planned.extend, troubles)

    def forget(self) -> None:
        """Drops the troubles that have not happened."""
        self._loop.call_soon_threadsafe(self._planned.clear)

    def cut(self) -> None:
        """Cuts all connections."""
        self._loop.call_soon_threadsafe(lambda: [each.cut() for each in self._open])

    @property
    def is_waiting(self) -> bool:
        """Whether a trouble was planned that has not happened."""
        return bool(self._planned)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        for broker, listener in self._listeners.items():
            accept = lambda reader, writer, broker=broker: self._accepted(broker, reader, writer)  # noqa: E731
            self._loop.run_until_complete(asyncio.start_server(accept, sock=listener, limit=1 << 22))
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        for each in list(self._open):
            each.cut()
        for listener in self._listeners.values():
            listener.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accepted(self, broker: int, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            answers, server = await asyncio.open_connection("127.0.0.1", broker, limit=1 << 22)
        except OSError:
            client.transport.abort()  # a broker that is away would do so
            return
        connection = _Connection(client, server)
        self._open.add(connection)
        self._start(self._answers(connection, answers))
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self._request(connection, await _frame(reader)):
                    pass
        finally:
            self._open.discard(connection)
            client.transport.abort()
            if not connection.silent:
                server.transport.abort()

    async def _request(self, connection: _Connection, frame: bytes) -> bool:
        """Passes a request on as its trouble is; false where its connection has ended for the client."""
        if connection.silent:
            return True
        (api,) = _KIND.unpack_from(frame, _LENGTH.size)
        trouble = self._trouble(api)
        await self._deliver_before(api)
        kind, seconds = (trouble.kind, trouble.seconds) if trouble else ("", 0.0)
        match kind:
            case "lose the request":
                connection.cut()
                return False
            case "deliver late" if trouble:
                connection.silent = True
                self._start(self._deliver_late(connection, frame, trouble))
                return False
            case "delay the request":
                await asyncio.sleep(seconds)
            case "throttle":
                connection.slow_until = self._loop.time() + seconds
            case "half-open":
                connection.silent = True
                self._start(self._end_silence(connection, seconds))
        connection.waiting.append((api, kind, seconds))
        await _pass(connection, connection.server, frame, self._loop.time())
        if kind == "repeat":
            connection.waiting.append((api, "drop", 0.0))
            connection.server.write(frame)
        return True

    def _trouble(self, api: int) -> Trouble | None:
        """The trouble of a request of this kind; it is noted as met."""
        for trouble in self._planned:
            if API[trouble.api] == api:
                passed = self._passed.get(trouble, 0)
                self._passed[trouble] = passed + 1
                if passed < trouble.passes:
                    return None
                self._planned.remove(trouble)
                del self._passed[trouble]
                self.met.append(trouble)
                return trouble
        return None

    async def _deliver_late(self, connection: _Connection, frame: bytes, trouble: Trouble) -> None:
        late = _Late(API.get(trouble.until, -1), trouble.times)
        self._late.append(late)
        with suppress(TimeoutError):
            await asyncio.wait_for(late.due.wait(), trouble.seconds)
        self._late.remove(late)
        with suppress(OSError):
            connection.server.write(frame)
            await connection.server.drain()
        await asyncio.sleep(_ANSWER_SECONDS)  # the answers go nowhere
        late.answered.set()
        connection.server.transport.abort()

    async def _deliver_before(self, api: int) -> None:
        for late in [each for each in self._late if each.api == api]:
            late.times -= 1
            if not late.times:
                late.due.set()
                await late.answered.wait()

    async def _end_silence(self, connection: _Connection, seconds: float) -> None:
        await asyncio.sleep(seconds)
        connection.cut()

    async def _answers(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                frame = await _frame(reader)
                if connection.silent:
                    continue
                api, kind, seconds = connection.waiting.popleft()
                if kind == "drop":
                    continue
                if kind == "lose the answer":
                    break
                if kind == "delay the answer":
                    await asyncio.sleep(seconds)
                frame = self._with_addresses(frame) if api in _WITH_ADDRESSES else frame
                await _pass(connection, connection.client, frame, self._loop.time())
        if not connection.silent:
            connection.cut()

    def _with_addresses(self, frame: bytes) -> bytes:
        """The answer with our addresses in place of the brokers', which are as long."""
        for theirs, ours in self._addresses.items():
            frame = frame.replace(theirs, ours)
        return frame


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """The next request or answer, with its length."""
    length = await reader.readexactly(_LENGTH.size)
    return length + await reader.readexactly(_LENGTH.unpack(length)[0])


async def _pass(connection: _Connection, writer: asyncio.StreamWriter, frame: bytes, now: float) -> None:
    if now >= connection.slow_until:
        writer.write(frame)
        await writer.drain()
        return
    for at in range(0, len(frame), _THROTTLED_BYTES):
        writer.write(frame[at : at + _THROTTLED_BYTES])
        await asyncio.sleep(_THROTTLED_SECONDS)
