"""The audit's report.html in a real browser: it is shown without an error, asks for nothing, and runs no script."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc.spark.report.outcome import Audit
from cdc.spark.report.renderers import page
from tests.checks.browser import asked_by_a_page, browser, shown
from tests.generators import audits
from tests.harness.debian import fetched

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def _browser() -> None:
    fetched(browser)


@pytest.mark.parametrize("audit", [audits.clean, audits.drifting, audits.unjudged, audits.big])
def test_a_browser_shows_it_without_an_error(audit: Callable[[], Audit], tmp_path: Path) -> None:
    seen = shown(page(audit()), tmp_path)
    assert "</footer>" in seen.dom
    assert (seen.console, seen.asked) == ("", set())


MEASURE = """
<script>
const over = [...document.querySelectorAll('td, th, p, pre, h1')]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth).length;
const letters = [...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height);
document.title = JSON.stringify({over, smallest: Math.min(...letters)});
</script>
"""


def test_a_phone_shows_all_columns_and_letters_that_can_be_read(tmp_path: Path) -> None:
    html = page(audits.drifting()).replace("Content-Security-Policy", "none").replace("</body>", f"{MEASURE}</body>")
    title = re.search("<title>(.*?)</title>", shown(html, tmp_path, width=390).dom)
    assert title is not None
    found = json.loads(title[1])
    assert found["over"] == 0 and found["smallest"] >= 9, found


def test_a_browser_would_notice(tmp_path: Path) -> None:
    bad = (
        "<!doctype html><img src='http://127.0.0.1:9/x.png'><script>undefined.x</script>"
        "<link rel=stylesheet href='http://127.0.0.1:9/x.css'>"
    )
    seen = shown(bad, tmp_path)
    assert "TypeError" in seen.console
    assert seen.asked == {"http://127.0.0.1:9/x.png", "http://127.0.0.1:9/x.css"}


def test_a_browser_runs_no_script_on_the_page_even_if_one_got_in(tmp_path: Path) -> None:
    html = page(audits.clean()).replace(
        "</main>", "<script>document.title = 'run'</script><img src='http://127.0.0.1:9/x'></main>"
    )
    seen = shown(html, tmp_path)
    assert "<title>run" not in seen.dom
    assert "Content Security Policy" in seen.console
    assert seen.asked == set()


def test_what_the_browser_asks_for_on_its_own_account_is_not_the_page_s() -> None:
    requests = [
        {"initiator": "not an origin", "url": "https://update.example/"},
        {"initiator": "null", "url": "http://127.0.0.1:9/x.png"},
        {"initiator": "null", "url": "data:,"},
        {"url": "file:///page.html"},
    ]
    events = [{"type": 7, "params": each} for each in requests]
    other = {"type": 8, "params": {"initiator": "null", "url": "http://127.0.0.1:9/y"}}
    log = {"constants": {"logEventTypes": {"URL_REQUEST_START_JOB": 7}}, "events": [*events, {"type": 7}, other]}
    assert asked_by_a_page(log) == {"http://127.0.0.1:9/x.png"}
