"""Asks several servers the same question at the same moment."""

import queue
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

__all__ = ["asked_at_once"]

Server = TypeVar("Server", bound=Hashable)
Answer = TypeVar("Answer")

_MORE_SECONDS = 2.0


def asked_at_once(
    servers: Sequence[Server], ask: Callable[[Server], Answer], *, decides: Callable[[Answer], bool]
) -> dict[Server, Answer]:
    """Calls ``ask`` for all ``servers`` at the same moment; returns the answers in the order of ``servers``.

    Once an answer ``decides``, the other servers have two seconds more, and those that have not answered by then are
    missing in the result. So a host without power, which would answer no connection for the whole timeout, delays
    nothing if another server decides. Raises the first exception of ``ask``.
    """
    arrived: queue.SimpleQueue[tuple[Server, Answer | None, Exception | None]] = queue.SimpleQueue()

    def run(server: Server) -> None:
        try:
            arrived.put((server, ask(server), None))
        except Exception as error:  # noqa: BLE001, the caller's thread raises it
            arrived.put((server, None, error))

    for server in servers:
        # A daemon thread, so that the program can end while a server does not answer.
        threading.Thread(target=run, args=(server,), daemon=True).start()
    answers: dict[Server, Answer] = {}
    end: float | None = None
    while len(answers) < len(servers):
        try:
            server, answer, error = arrived.get(timeout=None if end is None else max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        if error is not None:
            raise error
        answers[server] = answer  # type: ignore[assignment]
        if end is None and decides(answers[server]):
            end = time.monotonic() + _MORE_SECONDS
    return {server: answers[server] for server in servers if server in answers}
