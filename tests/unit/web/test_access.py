"""Who may read the page, and what protects a browser that shows it."""

import base64
from collections.abc import Iterator

import pytest
from starlette.responses import PlainTextResponse

from cdc.config.profile import ServerAddress
from cdc.web import access
from cdc.web.access import HEADERS, Access, Guard, host_allowed, is_local
from tests.unit.web.clients import Answer, asked

LISTEN = ServerAddress("127.0.0.1", 9000)
OPEN = Access(LISTEN)
LOCKED = Access(LISTEN, password="geheim ü")
NAMED = Access(LISTEN, user="ada", password="geheim ü")


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("cdc.web.access._FAILED_SECONDS", 0.0)
    yield


def answer(rules: Access, path: str = "/", **request: object) -> Answer:
    guard = Guard(PlainTextResponse("rows"), access=rules, login=lambda wrong: f"log in, wrong: {wrong}")
    return asked(guard, path, **request)  # type: ignore[arg-type]


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize("rules", [OPEN, LOCKED])
@pytest.mark.parametrize("path", ["/", "/static/page.css", "/login", "/nothing"])
def test_every_answer_protects_the_browser(rules: Access, path: str) -> None:
    headers = answer(rules, path).headers
    assert {name: headers.get(name.lower()) for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        ("localhost", True), ("LOCALHOST:9000", True), ("127.0.0.1:9000", True), ("10.1.2.3", True),
        ("[::1]:9000", True), ("[::1]", True), ("cdc.example", True), ("CDC.example:9000", True),
        ("", False), ("evil.example", False),
        ("localhost.evil.example", False), ("127.0.0.1.evil.example:9000", False), ("evil.example:localhost", False),
        ("cdc.example.", False), ("127.0.0.1@evil.example", False),
    ],
)  # fmt: skip
def test_the_names_under_which_a_browser_may_ask(header: str, allowed: bool) -> None:
    assert host_allowed(header, names=["cdc.example"]) is allowed
    assert answer(Access(LISTEN, ("cdc.example",)), headers={"host": header}).status == (200 if allowed else 421)


def test_the_name_of_this_machine_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access.socket, "gethostname", lambda: "Box7")
    assert host_allowed("box7:9000", names=()) and not host_allowed("box8:9000", names=())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_an_address_that_only_this_machine_reaches(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "box7"])
def test_an_address_that_others_reach(host: str) -> None:
    assert not is_local(host)


@pytest.mark.parametrize(
    ("rules", "headers", "status"),
    [
        (OPEN, {}, 200),
        (OPEN, basic("any", "thing"), 200),
        (LOCKED, {}, 401),
        (LOCKED, {"authorization": "Bearer geheim ü"}, 200),
        (LOCKED, basic("", "geheim ü"), 200),
        (LOCKED, basic("whoever", "geheim ü"), 200),
        (LOCKED, basic("whoever", "geheim"), 401),
        (LOCKED, basic("geheim ü", ""), 401),
        (LOCKED, {"authorization": "Basic !!!"}, 401),
        (LOCKED, {"authorization": "Digest x"}, 401),
        (NAMED, basic("ada", "geheim ü"), 200),
        (NAMED, basic("bob", "geheim ü"), 401),
        (NAMED, basic("", "geheim ü"), 401),
        (NAMED, {"authorization": "Bearer geheim ü"}, 401),
        (LOCKED, {"cookie": "cdc_web_9000=guess"}, 401),
        (LOCKED, {"cookie": "cdc_web_9000="}, 401),
        (LOCKED, {"cookie": f"a=b; cdc_web_9000={LOCKED.session}"}, 200),
        (LOCKED, {"cookie": f"cdc_web_9000={NAMED.session}"}, 401),
        (LOCKED, {"cookie": f"cdc_web_9001={LOCKED.session}"}, 401),
        # Cookies of other programs on the same host.
        *((LOCKED, {"cookie": f"{other}; cdc_web_9000={LOCKED.session}"}, 200) for other in (
            'x={"a": 1, "b"}', "a[b]=1", "just text", "u=é", 'u="a', "=", "cdc_web_9=x")),
        (LOCKED, {"cookie": 'x={"a": 1}; cdc_web_9000=guess'}, 401),
        # A wrong password is not made good by a cookie.
        (LOCKED, {"cookie": f"cdc_web_9000={LOCKED.session}"} | basic("", "no"), 401),
    ],
)  # fmt: skip
def test_who_may_read(rules: Access, headers: dict[str, str], status: int) -> None:
    assert answer(rules, headers=headers).status == status
    assert ("rows" in answer(rules, headers=headers).body) is (status == 200)


def test_a_health_check_needs_no_password() -> None:
    assert answer(LOCKED, "/healthz").status == 200
    assert answer(LOCKED, "/healthz/").status == 401


def test_a_token_is_a_password_without_a_user() -> None:
    rules = Access(LISTEN, password="abc")
    assert answer(rules, headers={"authorization": "Bearer abc"}).status == 200
    assert answer(rules, headers={"authorization": "bearer abd"}).status == 401


@pytest.mark.parametrize("last", "àÅ…é")  # with bytes that are blanks in Latin-1
def test_a_token_of_any_letters(last: str) -> None:
    rules = Access(LISTEN, password=f"voil{last}")
    assert answer(rules, headers={"authorization": f"Bearer  voil{last} "}).status == 200
    assert answer(rules, headers={"authorization": "Bearer voil"}).status == 401


def test_who_has_logged_in_gets_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    body = b"user=ada&password=geheim+%C3%BC"
    done = answer(NAMED, "/login", method="POST", body=body)
    assert (done.status, done.headers["location"]) == (303, "/")
    cookie = done.headers["set-cookie"]
    assert cookie.startswith(f"cdc_web_9000={NAMED.session};")
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}


@pytest.mark.parametrize(
    "body", [b"", b"password=geheim", b"user=ada", b"user=bob&password=geheim+%C3%BC", b"\xff&&&=", b"a=1&" * 12]
)
def test_a_wrong_form_gets_the_form_again(body: bytes) -> None:
    done = answer(NAMED, "/login", method="POST", body=body)
    assert (done.status, done.body) == (401, "log in, wrong: True")
    assert "set-cookie" not in done.headers


def test_who_goes_away_while_they_send_a_form_is_no_defect() -> None:
    assert answer(NAMED, "/login", method="POST", body=None).status == 401


def test_a_form_that_is_too_large_is_not_read_to_its_end() -> None:
    assert answer(NAMED, "/login", method="POST", body=b"x" * 10_001).status == 413


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_is_written(method: str) -> None:
    assert answer(OPEN, method=method).status == 405
    assert answer(OPEN, "/login", method=method).status == 405  # without a password there is no form


def test_other_sites_may_link_to_the_page_and_not_read_it() -> None:
    other = {"sec-fetch-site": "cross-site"}
    assert answer(OPEN, headers=other | {"sec-fetch-mode": "no-cors"}).status == 403
    assert answer(OPEN, headers=other | {"sec-fetch-mode": "navigate"}).status == 200
    assert answer(OPEN, headers={"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}).status == 200


def test_the_password_is_in_no_text_of_the_rules() -> None:
    assert "geheim" not in repr(NAMED) and NAMED.session not in repr(NAMED)
