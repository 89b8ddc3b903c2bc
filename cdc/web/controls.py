"""Sends commands to running programs for the buttons of the first page.

A button works only if the program's profile has a token for commands (``metrics.token``) and the page has a password:
without a password everybody on this machine could press it. The token stays in this program: browsers send none.
"""

import logging
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from cdc.config.profile import Metrics
from cdc.errors import UserError
from cdc.service.commands import send
from cdc.service.logs import event
from cdc.web.access import COMMANDS
from cdc.web.overview.answers import ProfileAnswers, server_name
from cdc.web.sources import FOLLOWER, address
from cdc.web.watched import Watched, WatchedStream

__all__ = ["Control", "controls_of", "routes"]

_LOG = logging.getLogger("cdc.web")
_PLAIN = ("pause", "resume")
_RATE, _ROWS = "copy-rate", "rows_per_second"
_LARGEST_FORM = 1_000


@dataclass(frozen=True, slots=True)
class Control:
    """The buttons of a program: the address to which they send, and why they are disabled (``refusal``), empty if they
    are not. ``copies`` is true for a producer, which copies tables.
    """

    title: str
    name: str
    path: str
    copies: bool
    refusal: str


def controls_of(stream: WatchedStream, *, number: int, has_password: bool) -> list[Control]:
    """Lists the programs of the stream ``number``, in the order of their profiles."""
    return [
        _control(each, path=f"{COMMANDS}{number}/{place}/", has_password=has_password)
        for place, each in enumerate(stream.answers().profiles, 1)
    ]


def _control(profile: ProfileAnswers, *, path: str, has_password: bool) -> Control:
    is_consumer = profile.role == FOLLOWER
    refusal = ""
    if not has_password:
        refusal = "the page has no password (web.password_file), so everybody on this machine could press them"
    elif address(profile.profile) is None:
        refusal = f"{profile.file} has no metrics.port"
    elif not profile.profile.metrics.token:
        refusal = f"{profile.file} has no metrics.token"
    title = "cdc-consumer" if is_consumer else "cdc-producer"
    return Control(title, server_name(profile.profile), path, not is_consumer, refusal)


def routes(watched: Watched, *, has_password: bool) -> list[Route]:
    """Returns the routes to which the buttons send."""

    async def command(request: Request) -> Response:
        stream, place, name = (request.path_params[each] for each in ("stream", "place", "name"))
        if not 0 < stream <= len(watched.streams) or not 0 < place <= len(watched.streams[stream - 1].profiles):
            return PlainTextResponse("There is no such program on the page.\n", HTTPStatus.NOT_FOUND)
        found = watched.streams[stream - 1].answers().profiles[place - 1]
        control = _control(found, path="", has_password=has_password)
        if control.refusal:
            return PlainTextResponse(f"The buttons are disabled: {control.refusal}.\n", HTTPStatus.FORBIDDEN)
        number = await _number(request) if name == _RATE else {}
        if name not in (*_PLAIN, _RATE) or number is None:
            return PlainTextResponse("Give a number of rows a second; 0 is no limit.\n", HTTPStatus.BAD_REQUEST)
        try:
            says = await run_in_threadpool(send, _metrics(found), name, **number)
        except UserError as error:
            return PlainTextResponse(f"{error.what}.\n", HTTPStatus.BAD_GATEWAY)
        event(_LOG, "command sent", program=control.title, server=control.name, name=name, **number)
        return PlainTextResponse(f"{says[:1].upper()}{says[1:]}.\n")

    return [Route(COMMANDS + "{stream:int}/{place:int}/{name}", command, methods=["POST"])]


async def _number(request: Request) -> dict[str, int] | None:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            return None
    text = parse_qs(body.decode("utf-8", "replace")).get(_ROWS, [""])[0].strip()
    return {_ROWS: int(text)} if text.isascii() and text.isdecimal() else None


def _metrics(profile: ProfileAnswers) -> Metrics:
    place = address(profile.profile)
    assert place is not None  # else the buttons are disabled
    return Metrics(place.host, place.port, profile.profile.metrics.token)
