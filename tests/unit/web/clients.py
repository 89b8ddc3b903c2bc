"""Requests to an ASGI app without a network: the app is called as a web server calls it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

__all__ = ["Answer", "asked"]


@dataclass(frozen=True)
class Answer:
    """A status, the headers with their names in lower case, and the body."""

    status: int
    headers: dict[str, str]
    body: str


def asked(
    app: ASGIApp,
    path: str = "/",
    *,
    method: str = "GET",
    body: bytes | None = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """The app's answer to one request, which comes from this machine unless the ``headers`` say otherwise. Without a
    ``body`` the client goes away before it has sent one.
    """
    name, _, query = path.partition("?")
    given = {"host": "localhost:9000"} | dict(headers or {})
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": name, "raw_path": name.encode(), "query_string": query.encode(), "root_path": "",
        "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 9000),
        "headers": [(key.lower().encode(), value.encode()) for key, value in given.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    gone = {"type": "http.disconnect"}
    waiting = [gone if body is None else {"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()  # the client waits for the answer, and does not go away
        return waiting.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    start = sent[0]
    text = b"".join(each.get("body", b"") for each in sent[1:])
    return Answer(start["status"], {key.decode(): value.decode() for key, value in start["headers"]}, text.decode())
