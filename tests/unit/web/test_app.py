"""The addresses of the page, with no server and no broker that answers."""

import asyncio
import json
import threading
from pathlib import Path

import pytest
from anyio import to_thread
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from cdc.config.profile import Profile, ServerAddress
from cdc.errors import UserError
from cdc.spark.report.files import HTML, JSON
from cdc.web import __main__ as program
from cdc.web.access import Access
from cdc.web.app import Live, made_app
from cdc.web.watched import Watched
from tests.harness.wait import LIMIT_SECONDS
from tests.unit.web.clients import asked

AWAY = '[kafka]\nbootstrap_servers = "127.0.0.1:9"\ntopic = "a-topic"\n[kafka.librdkafka]\n"socket.timeout.ms" = 10'


@pytest.fixture
def app(tmp_path: Path) -> Starlette:
    """The page of one stream whose servers were never asked, with an audit's report."""
    report = tmp_path / "report"
    report.mkdir()
    (report / HTML).write_text("<h1>verdict</h1>")
    (report / JSON).write_text("{}")
    (report / "secret").write_text("secret")
    stop = threading.Event()
    stop.set()
    watched = Watched([("p.toml", Profile.parse(AWAY, name="p"))], report=report)
    access = Access(ServerAddress("127.0.0.1", 9000))
    return made_app(watched, access=access, cache=tmp_path / "cache", stop=stop)


def test_the_first_page_is_there_before_any_answer(app: Starlette) -> None:
    answer = asked(app)
    assert answer.status == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "a-topic" in answer.body and "Kafka has not answered yet." in answer.body
    assert " style=" not in answer.body and "<style" not in answer.body  # which the policy would forbid


def test_the_index_is_looked_at_without_kafka(app: Starlette) -> None:
    answer = asked(app, "/streams/1/records?table=a.b&kind=Add")
    assert answer.status == 200 and "The records are being read for the first time" in answer.body
    assert 'value="a.b"' in answer.body and "data-refresh" in answer.body


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/streams/1/records/5", 404, "the index has no record 5"),
        ("/streams/1/records/5/raw", 404, "the index has no record 5"),
        ("/streams/1/transactions/5", 404, "the index has no record 5"),
        ("/streams/1/records?sequence=x", 200, "is no sequence"),
        ("/streams/2/records", 404, ""),
        ("/topics", 503, "does not answer"),
        ("/clusters/1/topics/a", 503, "does not answer"),
        ("/clusters/2/topics/a", 404, "There is no such cluster."),
        pytest.param("/clusters/" + "9" * 5_000 + "/topics/a", 404, "", id="no cluster"),
        pytest.param("/streams/1/records/" + "9" * 5_000, 404, "", id="no record"),
        ("/streams/1/records/" + "9" * 18, 404, "has no record"),
        ("/streams/1/transactions/-1", 404, ""),
        # TRUNCATE names no key: the history of a row leads to the table's statements.
        ("/streams/1/records?table=a.b&key=3&cursor=5", 200, 'href="?table=a.b&amp;kind=Query"'),
        ("/healthz", 200, "ok"),
        ("/static/page.css", 200, "--ink"),
        ("/static/../app.py", 404, ""),
        ("/static/%2e%2e/app.py", 404, ""),
        ("/audit/report.html", 200, "verdict"),
        ("/audit/report.json", 200, "{}"),
        ("/audit/secret", 404, "There is no report"),
        ("/audit/..%2fsecret", 404, ""),
        ("/nothing", 404, "There is no such page."),
        ("/clusters/1/topics/a?offset=1x", 503, "does not answer"),
    ],
)  # fmt: skip
def test_an_address(app: Starlette, path: str, status: int, part: str) -> None:
    answer = asked(app, path)
    assert answer.status == status and part in answer.body and "secret" not in answer.body
    if not path.startswith("/audit/report."):
        assert "'unsafe" not in answer.headers["content-security-policy"]


def test_a_report_runs_no_script(app: Starlette) -> None:
    policy = asked(app, "/audit/report.html").headers["content-security-policy"]
    assert "default-src 'none'" in policy and policy.endswith("sandbox")


def test_tables_are_suggested_from_the_index(app: Starlette) -> None:
    assert json.loads(asked(app, "/streams/1/tables?text=a").body) == []


def test_a_part_is_rendered_once_a_second_for_all_browsers() -> None:
    watched = Watched([("p.toml", Profile.parse(AWAY, name="p"))], report=None)
    live = Live(watched, threading.Event())
    assert live.parts() is live.parts()
    assert set(live.parts()) == {"path-1", "waits-1", "plots-1", "copies-1", "followers-1"}


def test_a_missing_package_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "find_spec", lambda name: None if name == "uvicorn" else object())
    with pytest.raises(UserError) as error:
        program._require_extra()
    assert str(error.value) == "the page needs uvicorn; hint: in the folder of the checkout: pip install '.[web]'"


@pytest.mark.parametrize("path", ["/", "/healthz"])
def test_pages_that_wait_for_servers_hold_up_neither_the_first_page_nor_the_health_check(
    app: Starlette, path: str
) -> None:
    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        threads = to_thread.current_default_thread_limiter()
        for _ in range(int(threads.total_tokens)):
            threads.acquire_on_behalf_of_nowait(object())
        await asyncio.wait_for(app(scope, receive, send), LIMIT_SECONDS)

    assert asked(busy, path).status == 200
