"""Commands over HTTP: only with the token, only those that the program has, and the client says why one is refused."""

from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from cdc.config.profile import Metrics
from cdc.errors import UserError
from cdc.service.commands import Command, Commands, send
from cdc.service.http_endpoint import Endpoint

TOKEN = "a-token-of-a-test"
received: list[int] = []


def _rate(rows: int) -> str:
    received.append(rows)
    return f"at most {rows} rows"


KNOWN = {"pause": Command(lambda number: f"paused {number}"), "rate": Command(_rate, "rows_per_second")}


@pytest.fixture
def port() -> Iterator[int]:
    received.clear()
    commands = Commands(KNOWN, token=TOKEN, log=lambda *_, **__: None)
    endpoint = Endpoint.open("127.0.0.1", 0, metrics=list, checks=list, info={}, commands=commands)
    yield endpoint.port
    endpoint.close()


def test_a_program_takes_the_commands_that_it_has(port: int) -> None:
    here = Metrics(host="0.0.0.0", port=port, token=TOKEN)
    assert send(here, "pause") == "paused 0"
    assert send(here, "rate", rows_per_second=7) == "at most 7 rows"
    with pytest.raises(UserError, match=r"no command 'stop'; its commands are: pause, rate"):
        send(here, "stop")


@pytest.mark.parametrize("number", ["-1", "", "1e3", "1_000", "1000000001", "٣", "9" * 5000])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    received.clear()
    commands = Commands(KNOWN, token=TOKEN, log=lambda *_, **__: None)
    for target in (f"/commands/rate?rows_per_second={number}", "/commands/rate"):
        status, says = commands.answer(target, authorization=f"Bearer {TOKEN}")
        assert (status, says) == (400, "rows_per_second must be an integer from 0 to 1000000000")
    assert received == []


@pytest.mark.parametrize(
    "authorization", ["", TOKEN, "Bearer ", f"Bearer {TOKEN} ", f"bearer {TOKEN}", "Bearer \udcff"]
)
def test_without_the_token_nothing_is_executed(authorization: str) -> None:
    received.clear()
    commands = Commands(KNOWN, token=TOKEN, log=lambda *_, **__: None)
    assert commands.answer("/commands/rate?rows_per_second=1", authorization=authorization)[0] == 401
    # Without a token in the profile, an empty token is not the right one.
    closed = Commands(KNOWN, token="", log=lambda *_, **__: None)
    assert closed.answer("/commands/rate?rows_per_second=1", authorization=authorization)[0] == 403
    assert received == []


def test_what_is_logged_of_a_command() -> None:
    logged: list[tuple[str, dict[str, object]]] = []
    commands = Commands(KNOWN, token=TOKEN, log=lambda what, **fields: logged.append((what, fields)))
    commands.answer("/commands/rate?rows_per_second=5", authorization=f"Bearer {TOKEN}")
    commands.answer("/commands/pause", authorization="Bearer wrong")
    assert logged == [("command", {"name": "rate", "rows_per_second": 5})]


def test_a_program_without_commands_answers_that(port: int) -> None:
    plain = Endpoint.open("127.0.0.1", 0, metrics=list, checks=list, info={})
    try:
        for at, path in ((plain.port, "/commands/pause"), (port, "/metrics")):
            connection = HTTPConnection("127.0.0.1", at, timeout=30)
            connection.request("POST", path, body=b"x" * 100)
            assert connection.getresponse().status == 404
            connection.close()
    finally:
        plain.close()


def test_what_the_client_says_where_no_program_takes_commands(port: int) -> None:
    for here, said in (
        (Metrics(port=0, token=TOKEN), r"the profile has no metrics\.port"),
        (Metrics(port=port), r"the profile has no metrics\.token"),
        (Metrics(port=port, token=TOKEN[::-1]), "refuses the command: the token is missing or is not the one"),
        (Metrics(host="127.0.0.9", port=port, token=TOKEN), "no program takes commands: .*refused"),
    ):
        with pytest.raises(UserError, match=said) as refused:
            send(here, "pause")
        assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("token", ["short", "with a blank in between", "with-ümlauts-in-it", "a-line-break\nin-it-all"])
def test_a_token_that_is_easy_to_guess_or_can_t_be_sent_is_refused(token: str) -> None:
    with pytest.raises(UserError, match="at least 16 characters, all of them ASCII, without blanks"):
        Metrics(token=token)
