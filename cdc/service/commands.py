"""Executes commands that a running program receives over HTTP, and sends them to it.

A command is ``POST /commands/NAME`` to the address of the program's metrics, with the token of the profile key
``metrics.token``. The command holds until the program ends.
"""

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import parse_qs, urlencode, urlsplit

from cdc.config.profile import Metrics
from cdc.errors import UserError

__all__ = ["PATH", "Command", "Commands", "send"]

PATH = "/commands/"
_BEARER = "Bearer "
_LARGEST = 1_000_000_000  # of a number; the profile allows so many rows per second, too
_SECONDS = 30  # a program that is busy answers within this time
_ANY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a program. ``run`` executes it and returns a sentence about its effect; it is called from a thread
    of the HTTP server.

    ``number`` is the name of the integer that the command needs, such as ``rows_per_second``, and that ``run``
    receives; without a name, ``run`` receives 0.
    """

    run: Callable[[int], str]
    number: str = ""


class Commands:
    """The commands of a program by their names; without a ``token`` each of them is refused."""

    def __init__(self, known: Mapping[str, Command], *, token: str, log: Callable[..., None]) -> None:
        self._known = known
        self._token = token.encode()
        self._log = log

    def answer(self, target: str, *, authorization: str) -> tuple[HTTPStatus, str]:
        """Executes the command that ``target``, the path and query of a request, names. Returns the status and a
        sentence for the client.

        ``authorization`` is the request's header of this name, which must be ``Bearer TOKEN``.
        """
        parts = urlsplit(target)
        name = parts.path.removeprefix(PATH)
        if not self._token:
            return HTTPStatus.FORBIDDEN, "this program takes no commands, because its profile has no metrics.token"
        # The comparison takes the same time for each wrong token, so nobody can guess it piece by piece.
        given = authorization.removeprefix(_BEARER).encode("utf-8", "surrogateescape")
        if not authorization.startswith(_BEARER) or not hmac.compare_digest(given, self._token):
            return HTTPStatus.UNAUTHORIZED, "the token is missing or is not the one in the profile key metrics.token"
        command = self._known.get(name)
        if command is None:
            there = ", ".join(sorted(self._known)) or "none"
            return HTTPStatus.NOT_FOUND, f"this program has no command {name!r}; its commands are: {there}"
        number = 0
        if command.number:
            text = parse_qs(parts.query).get(command.number, [""])[-1]
            if not text.isascii() or not text.isdecimal() or len(text) > len(str(_LARGEST)) or int(text) > _LARGEST:
                return HTTPStatus.BAD_REQUEST, f"{command.number} must be an integer from 0 to {_LARGEST}"
            number = int(text)
        says = command.run(number)
        self._log("command", name=name, **({command.number: number} if command.number else {}))
        return HTTPStatus.OK, says


def send(metrics: Metrics, name: str, **number: int) -> str:
    """Sends the command ``name`` to the program at the address of ``metrics``, and returns the program's sentence about
    its effect.

    Raises UserError if the profile has no address or token, if no program answers, or if it refuses the command.
    """
    if not metrics.port or not metrics.token:
        missing = "metrics.token" if metrics.port else "metrics.port"
        raise UserError(
            f"a running program can't be reached, because the profile has no {missing}",
            code="CDC-COMMAND-NO-ADDRESS",
            where=f"profile key {missing}",
            hint="set metrics.port and metrics.token, and start the program again with this profile; SIGTERM ends it "
            "safely",
        )
    host = _ANY_ADDRESS.get(metrics.host, metrics.host)
    where = f"{host}:{metrics.port} (profile table metrics)"
    try:
        status, says = _posted(host, metrics, f"{PATH}{name}?{urlencode(number)}")
    except (OSError, HTTPException) as error:
        raise UserError(
            f"no program takes commands: {error or type(error).__name__}",
            code="CDC-COMMAND-NO-PROGRAM",
            where=where,
            hint="send it from where the program runs, with the profile that it was started with; a program that does "
            "not run needs no command: change the profile instead",
        ) from None
    if status != HTTPStatus.OK:
        raise UserError(
            f"the program refuses the command: {says}",
            code="CDC-COMMAND-REFUSED",
            where=where,
            hint="metrics.port and metrics.token must be those with which the program was started",
        )
    return says


def _posted(host: str, metrics: Metrics, target: str) -> tuple[int, str]:
    """Sends the request, and returns the status and sentence of the answer. Raises OSError and HTTPException."""
    connection = HTTPConnection(host, metrics.port, timeout=_SECONDS)
    try:
        connection.request("POST", target, headers={"Authorization": f"{_BEARER}{metrics.token}"})
        answer = connection.getresponse()
        return answer.status, _sentence(answer.read())
    finally:
        connection.close()


def _sentence(body: bytes) -> str:
    """Returns the sentence in a program's answer, or the answer itself if another program has answered."""
    try:
        return str(json.loads(body)["says"])
    except (ValueError, TypeError, KeyError):
        return body[:200].decode("utf-8", "replace").strip() or "an answer without text"
