"""Decides who may read the page: checks the Host header and the password, and sets the headers that protect a browser.

A browser logs in with a form, and gets a cookie that is valid until the program ends. Other clients send the password
with each request, by HTTP Basic or as a bearer token.
"""

import asyncio
import base64
import binascii
import ipaddress
import secrets
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cdc.config.profile import ServerAddress

__all__ = ["COMMANDS", "HEADERS", "Access", "Guard", "host_allowed", "is_local"]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_LOGIN = "/login"
COMMANDS = "/commands/"
_LARGEST_FORM = 10_000
_FAILED_SECONDS = 0.5  # the delay of the answer to a wrong password; several such answers are sent one after the other
_STATIC, _HEALTH = "/static/", "/healthz"  # these addresses need no password, since their content contains no rows


def is_local(host: str) -> bool:
    """Whether only programs on this machine can connect to the address ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_allowed(header: str, *, names: Collection[str]) -> bool:
    """Whether a browser may request the page under the name or address in the Host ``header``.

    If all names were allowed, another site could let its own name resolve to this machine, and so read the page (DNS
    rebinding). This attack needs a name, so all IP addresses are allowed.
    """
    name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() and not header.endswith("]") else header
    name = name.removeprefix("[").removesuffix("]").lower()
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in {"localhost", socket.gethostname().lower(), *(each.lower() for each in names)}
    return True


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of access. If ``password`` is set, a client must send the password, and also the ``user`` if a user is
    set.

    ``hosts`` are the names under which the page may be requested (``host_allowed``); ``listen`` is its address.
    """

    listen: ServerAddress
    hosts: tuple[str, ...] = ()
    user: str = ""
    password: str = field(default="", repr=False)
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """The name of the cookie. It contains the port, since browsers send a cookie to all ports of a host."""
        return f"cdc_web_{self.listen.port}"

    def knows(self, user: str, password: str) -> bool:
        """Whether the user and password are right. The check takes the same time for right and wrong values."""
        right_user = secrets.compare_digest(user.encode(), self.user.encode()) or not self.user
        right_password = secrets.compare_digest(password.encode(), self.password.encode())
        return bool(self.password) and right_user and right_password

    def admits(self, headers: Headers) -> bool:
        """Whether a request with these headers may read the page. This is so if no password is set, or if the headers
        contain the password or a valid cookie. A wrong password is refused even with a valid cookie.
        """
        if not self.password:
            return True
        kind, _, content = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            # Starlette decodes headers as Latin-1, and clients send UTF-8, whose bytes may be blanks in Latin-1. So
            # only spaces are removed.
            return not self.user and self.knows("", content.strip(" ").encode("latin-1").decode("utf-8", "replace"))
        if kind.lower() == "basic":
            return self.knows(*_basic(content))
        # The header also contains the cookies of other programs on this host. If one of those is malformed,
        # http.cookies would read no cookie at all.
        given = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        return secrets.compare_digest(given.encode(), self.session.encode())


def _basic(content: str) -> tuple[str, str]:
    try:
        user, _, password = base64.b64decode(content.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password


class Guard:
    """Passes a request on to ``app`` if ``access`` admits it. ``login(wrong)`` renders the form; ``wrong`` is true
    after a wrong password.
    """

    def __init__(self, app: ASGIApp, *, access: Access, login: Callable[[bool], str]) -> None:
        self._app = app
        self._access = access
        self._login = login
        self._one_after_the_other = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or passes it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = await self._answer(request)
        await (answer or self._app)(scope, receive, _with_headers(send))

    async def _answer(self, request: Request) -> Response | None:
        """Returns the answer to a request that must not reach the app; None for a request that may."""
        access = self._access
        if not host_allowed(request.headers.get("host", ""), names=access.hosts):
            text = "This page is not served under this name: add it to web.hosts in the profile.\n"
            return PlainTextResponse(text, 421)
        by_another_site = request.headers.get("sec-fetch-site") == "cross-site"
        if by_another_site and request.headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Other sites may not read this page.\n", 403)
        if request.scope["path"] == _LOGIN and access.password:
            return await self._log_in(request)
        path = request.scope["path"]  # the routes see this path; the one in ``request.url`` depends on the Host header
        if request.method == "POST" and path.startswith(COMMANDS):
            if not self._is_from_this_page(request.headers):
                return PlainTextResponse("Commands are taken from this page only.\n", 403)
        elif request.method not in ("GET", "HEAD"):
            return PlainTextResponse("This page is read only.\n", 405, {"Allow": "GET, HEAD"})
        if path.startswith(_STATIC) or path == _HEALTH or access.admits(request.headers):
            return None
        if "authorization" in request.headers:
            await self._slow_down()
        return self._form(wrong=False)

    def _is_from_this_page(self, headers: Headers) -> bool:
        """Whether no other site can have made a browser send a command. Browsers send the origin with each command;
        a client that is no browser sends the password itself.
        """
        # Browsers send this header to addresses with TLS, and to this machine.
        if site := headers.get("sec-fetch-site"):
            return site == "same-origin"
        origin = headers.get("origin")
        if origin is None:
            return "authorization" in headers
        parts = urlsplit(origin)
        # A proxy may send an address as Host, but knows the page under a name of the profile.
        return bool(parts.netloc) and (parts.netloc == headers.get("host") or parts.hostname in self._access.hosts)

    async def _log_in(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(wrong=False)
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > _LARGEST_FORM:
                    return PlainTextResponse("This form is too large.\n", 413)
        except ClientDisconnect:
            return self._form(wrong=True)  # the client has disconnected, so nobody receives this answer
        fields = parse_qs(body.decode("utf-8", "replace"))
        user, password = (fields.get(name, [""])[0] for name in ("user", "password"))
        if not self._access.knows(user, password):
            await self._slow_down()
            return self._form(wrong=True)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self._access.cookie, self._access.session, httponly=True, samesite="strict")
        return answer

    def _form(self, *, wrong: bool) -> Response:
        return HTMLResponse(self._login(wrong), 401, {"WWW-Authenticate": "Bearer"})

    async def _slow_down(self) -> None:
        async with self._one_after_the_other:
            await asyncio.sleep(_FAILED_SECONDS)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers
