"""The buttons of the first page: who may press them, and which command a program gets."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette

from cdc.config.profile import Profile, ServerAddress
from cdc.service.commands import Command, Commands
from cdc.service.http_endpoint import Endpoint
from cdc.web.access import Access
from cdc.web.app import made_app
from cdc.web.watched import Watched
from tests.unit.web.clients import Answer, asked

KAFKA = '[kafka]\nbootstrap_servers = "127.0.0.1:9"\ntopic = "a-topic"\n[kafka.librdkafka]\n"socket.timeout.ms" = 10\n'
TOKEN = "a-token-of-this-test"
LOCKED = Access(ServerAddress("127.0.0.1", 9000), ("cdc.example",), password="secret")
BEARER = {"authorization": "Bearer secret"}
COOKIE = {"cookie": f"{LOCKED.cookie}={LOCKED.session}"}


@pytest.fixture
def received() -> list[tuple[str, int]]:
    """The commands that the program has executed."""
    return []


@pytest.fixture
def endpoint(received: list[tuple[str, int]]) -> Iterator[Endpoint]:
    """A program that takes commands."""

    def command(name: str, number: str = "") -> Command:
        return Command(lambda value: f"{received.append((name, value)) or 'done'}: <b>{name}</b>", number)

    known = {name: command(name) for name in ("pause", "resume")}
    known["copy-rate"] = command("copy-rate", "rows_per_second")
    commands = Commands(known, token=TOKEN, log=lambda *_, **__: None)
    opened = Endpoint.open("127.0.0.1", 0, metrics=list, checks=list, info={}, commands=commands)
    yield opened
    opened.close()


def app(tmp_path: Path, metrics: str, access: Access = LOCKED) -> Starlette:
    """The page of a producer whose profile has this table ``metrics``."""
    stop = threading.Event()
    stop.set()
    watched = Watched([("p.toml", Profile.parse(f"{KAFKA}[metrics]\n{metrics}", name="p"))], report=None)
    return made_app(watched, access=access, cache=tmp_path, stop=stop)


def press(page: Starlette, command: str, headers: dict[str, str], body: str = "", place: str = "1/1") -> Answer:
    return asked(page, f"/commands/{place}/{command}", method="POST", headers=headers, body=body.encode())


def test_a_program_gets_the_commands(tmp_path: Path, endpoint: Endpoint, received: list[tuple[str, int]]) -> None:
    page = app(tmp_path, f'port = {endpoint.port}\ntoken = "{TOKEN}"')
    first = asked(page, headers=COOKIE)
    assert (first.status, 'formaction="/commands/1/1/pause"' in first.body) == (200, True)
    assert "disabled" not in first.body and TOKEN not in first.body
    answer = press(page, "pause", COOKIE | {"sec-fetch-site": "same-origin"})
    assert (answer.status, answer.body) == (200, "Done: <b>pause</b>.\n")
    # The sentence of a program is no markup.
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert press(page, "resume", COOKIE | {"origin": "http://localhost:9000"}).status == 200
    assert press(page, "copy-rate", COOKIE | {"origin": "https://cdc.example"}, "rows_per_second=50").status == 200
    assert press(page, "pause", BEARER).status == 200
    assert received == [("pause", 0), ("resume", 0), ("copy-rate", 50), ("pause", 0)]
    assert press(page, "copy-rate", BEARER, "rows_per_second=-1").status == 400
    assert press(page, "copy-rate", BEARER, "rows_per_second=" + "9" * 2000).status == 400
    assert press(page, "skip", BEARER).status == 400
    assert [press(page, "pause", BEARER, place=place).status for place in ("0/1", "1/2", "2/1", "x/1")] == [404] * 4
    assert len(received) == 4


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        (COOKIE, 403),
        (COOKIE | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        (COOKIE | {"sec-fetch-site": "same-site"}, 403),
        (COOKIE | {"sec-fetch-site": "none"}, 403),
        (COOKIE | {"origin": "http://evil.example"}, 403),
        (COOKIE | {"origin": "http://localhost:9001"}, 403),
        (COOKIE | {"origin": "null"}, 403),
        (BEARER | {"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "same-origin"}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"cookie": f"{LOCKED.cookie}=wrong", "sec-fetch-site": "same-origin"}, 401),
        (COOKIE | {"sec-fetch-site": "same-origin", "host": "evil.example"}, 421),
    ],
)
def test_no_other_site_and_nobody_without_the_password_can(
    headers: dict[str, str], status: int, tmp_path: Path, endpoint: Endpoint, received: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("cdc.web.access._FAILED_SECONDS", 0.0)
    page = app(tmp_path, f'port = {endpoint.port}\ntoken = "{TOKEN}"')
    assert press(page, "pause", headers).status == status
    assert asked(page, "/commands/1/1/pause", headers=COOKIE).status in (404, 405)
    assert received == []


@pytest.mark.parametrize(
    ("metrics", "access", "why"),
    [
        ("port = 9", LOCKED, "p.toml has no metrics.token"),
        (f'token = "{TOKEN}"', LOCKED, "p.toml has no metrics.port"),
        (f'port = 9\ntoken = "{TOKEN}"', Access(LOCKED.listen), "the page has no password"),
    ],
)
def test_buttons_that_are_disabled_say_why(metrics: str, access: Access, why: str, tmp_path: Path) -> None:
    page = app(tmp_path, metrics, access)
    assert f"Disabled: {why}" in asked(page, headers=COOKIE).body
    answer = press(page, "pause", BEARER)
    assert answer.status == 403 and why in answer.body


def test_a_program_that_does_not_answer_or_refuses(tmp_path: Path, endpoint: Endpoint) -> None:
    for metrics, why in (
        (f'port = 9\ntoken = "{TOKEN}"', "no program takes commands"),
        (f'port = {endpoint.port}\ntoken = "another-token-of-a-profile"', "refuses the command"),
    ):
        answer = press(app(tmp_path, metrics), "pause", BEARER)
        assert (answer.status, why in answer.body) == (502, True)
        assert TOKEN not in answer.body
