"""The page of ``cdc-web`` in a real browser: a stream with hostile names and values, and a broker that goes and comes
back. Nothing is complained about, nothing outside is asked for, and no text of a database becomes markup."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port, is_free
from tests.checks.browser import browser
from tests.checks.browser_session import BrowserSession, browsing
from tests.harness.debian import fetched
from tests.harness.pair import Pair
from tests.harness.programs import own_name, running
from tests.harness.remote_kafka import RemoteKafka
from tests.harness.server_fixtures import KafkaFactory
from tests.harness.wait import until

pytestmark = pytest.mark.integration

PHONE, DESKTOP = 390, 1360
INTERNAL = {"__consumer_offsets", "__transaction_state"}
SCRIPT, IMAGE = "<script>hacked=1</script>", "<img src=x onerror=hacked=1>"
MARKUP = SCRIPT + IMAGE
RIGHT_TO_LEFT, QUOTES = "\u202egnirts\u202c", "'\"`&amp;"
LONG = 1_000_000
NO_WIDER = "document.documentElement.scrollWidth <= innerWidth"
# What has moved since the page was loaded: how far, as browsers measure it, and the nearest part of the page.
MOVED = (
    "new Promise(done => { const moved = []; new PerformanceObserver(list => list.getEntries().forEach(e => moved.push("
    "[e.value, ...e.sources.map(s => (s.node?.parentElement ?? document.body).closest('[id], body').id)])))"
    ".observe({type: 'layout-shift', buffered: true}); setTimeout(() => done(moved), 3500); })"
)


@pytest.fixture(scope="module", autouse=True)
def _browser() -> None:
    fetched(browser)


@contextmanager
def shown(pair: Pair, folder: Path, port: int) -> Iterator[BrowserSession]:
    """The page of the pair's stream, in a browser."""
    arguments = pair.source, pair.target, "--listen", f"127.0.0.1:{port}"
    with running("cdc-web", *arguments), browsing(folder / "browser") as page:
        page.screen(DESKTOP)
        until(lambda: not is_free(port), what="the page is served")
        yield page


def text_of(page: BrowserSession, selector: str) -> str:
    return str(page.value(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))


def write_hostile_rows(pair: Pair, database: str) -> None:
    table = f"`{database}`.`t{SCRIPT}`"
    pair.on_leader(
        f"CREATE DATABASE `{database}`",
        f"CREATE TABLE {table} (id INT PRIMARY KEY, `c{IMAGE}` VARCHAR(200), t LONGTEXT)",
    )
    values = f"{MARKUP}{RIGHT_TO_LEFT}".replace("'", "''"), QUOTES.replace("'", "''")
    pair.on_leader(
        f"INSERT INTO {table} VALUES (1, '{values[0]}', REPEAT('x', {LONG})), (2, '', NULL)",
        f"UPDATE {table} SET `c{IMAGE}` = '{values[1]}' WHERE id = 1",
        f"UPDATE {table} SET id = 3 WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 3",
    )


@pytest.fixture
def broker(kafka_broker: KafkaFactory) -> Iterator[RemoteKafka]:
    """A broker at a distance, at which any topic that a client asks for is created."""
    remote = RemoteKafka(kafka_broker(settings={"auto.create.topics.enable": "true"}))
    yield remote.start()
    remote.kill()


def test_a_stream_in_a_browser(tmp_path: Path, leader: MySql, follower: MySql, broker: RemoteKafka) -> None:
    name, port = own_name(tmp_path), free_port()
    settings = {"producer": {"retry_seconds": 1}, "web": {"cache": str(tmp_path / "cache")}}
    pair = Pair.make(tmp_path, leader, follower, broker, name=name, filters={"include_dbs": [name]}, **settings)
    write_hostile_rows(pair, name)
    pair.replicate()
    base = f"http://127.0.0.1:{port}"
    with shown(pair, tmp_path, port) as page:
        page.go(f"{base}/")
        until(lambda: "No consumer runs" in text_of(page, "#waits-1"), what="live")
        nothing_moves(page, f"{base}/")
        search_a_row(page, base)
        no_page_is_wider_than_a_phone(page, base, name)
        a_keyboard_is_enough(page, base)
        assert page.console == []
        assert [url for url in page.asked if not url.startswith(base)] == []
        assert page.value("typeof hacked") == "undefined"
        # Neither the programs nor the page create a topic by asking for it.
        assert broker.admin().list_topics().topics.keys() - INTERNAL == {name, f"{name}.commits"}
        broker.kill()
        page.go(f"{base}/")
        until(lambda: "Kafka does not answer" in text_of(page, "#waits-1"), what="the broker is seen to be gone")
        assert "127.0.0.1" in text_of(page, "#followers-1")  # what does not need Kafka is there
        page.go(f"{base}/streams/1/records")
        until(lambda: "New records can't be read" in text_of(page, "#results"), what="the index says so, too")
        assert "7 records, 0 to 6" in text_of(page, "#results")
        page.go(f"{base}/topics")
        assert "does not answer" in text_of(page, "main")
        broker.start()
        page.go(f"{base}/")
        until(lambda: "Kafka does not answer" not in text_of(page, "#waits-1"), what="the broker is back")


def nothing_moves(page: BrowserSession, url: str) -> None:
    """Once the servers have answered for the first time, however late, each load of the page stays as it is."""
    moved: list[list[object]] = []

    def stays() -> bool:
        page.go(url)
        until(lambda: text_of(page, "#live") == "live", what="events")
        moved[:] = page.value(MOVED)
        return sum(float(str(each[0])) for each in moved) < 0.01

    until(stays, what=lambda: f"a page that stays as it is; moved by: {moved}")


def search_a_row(page: BrowserSession, base: str) -> None:
    """From a key to the history of its row takes three clicks at most, and from there to each change one."""
    page.click("nav a[href='/streams/1/records']")
    page.loaded(f"{base}/streams/1/records")
    until(lambda: "0 to 6" in text_of(page, "#results .status"), what="all records")
    assert page.value("document.querySelectorAll('#results tbody tr').length") == 7  # the large row has its own record
    page.value("document.querySelector('input[name=key]').value = '3'")
    page.click(".search button")  # the first click
    page.loaded(f"{base}/streams/1/records?table=&key=3")
    kinds = "[...document.querySelectorAll('#results .kind')].map(e => e.textContent).join()"
    assert page.value(kinds) == "Delete,Update"
    page.click("#results tbody tr:last-child a.row")  # the second
    page.loaded(f"{base}/streams/1/records/")
    until(lambda: "Key 1 → 3" in text_of(page, ".change h3"), what="the update of the key")
    page.click(".change .steps a:nth-child(2)")  # the third
    page.loaded(f"{base}/streams/1/records?table=")
    assert page.value(kinds) == "Delete,Update"
    page.value("history.back()")
    until(lambda: text_of(page, ".change h3"), what="back")
    page.click(".change .steps a:first-child")
    until(lambda: "Key 1" in text_of(page, ".change h3") and "→" not in text_of(page, ".change h3"), what="previous")
    page.loaded(f"{base}/streams/1/records/")
    column = "[...document.querySelectorAll('.changed')].map(e => e.innerText).join()"
    change = str(page.value(column))
    assert f"c{IMAGE}" in change and MARKUP in change and "\\u202e" in change and QUOTES in change
    assert "1,000,002 characters" in text_of(page, ".sides")
    assert page.value("document.body.innerHTML.length") < 20_000  # the value is not in the page as a whole


def no_page_is_wider_than_a_phone(page: BrowserSession, base: str, topic: str) -> None:
    page.screen(PHONE)
    addresses = ["/", "/streams/1/records", "/streams/1/records/2", "/streams/1/records/3", "/streams/1/transactions/3",
                 "/topics", f"/clusters/1/topics/{topic}", f"/clusters/1/topics/{topic}?form=hex",
                 f"/clusters/1/topics/{topic}?text=hacked", "/clusters/1/topics/__consumer_offsets",
                 f"/clusters/1/topics/{topic}/partitions", "/clusters/1/groups",
                 "/clusters/1/group?name=absent"]  # fmt: skip
    for address in addresses:
        page.go(base + address)
        assert text_of(page, "h1"), address
        assert page.value(NO_WIDER), address
    page.screen(DESKTOP)


def a_keyboard_is_enough(page: BrowserSession, base: str) -> None:
    page.go(f"{base}/")
    seen = []
    for _ in range(4):
        page.press("Tab")
        seen.append(page.value("document.activeElement.textContent.trim()"))
    assert seen == ["Skip to the content", "cdc", "Overview", "Records"]
    page.press("Enter")
    page.loaded(f"{base}/streams/1/records")


@pytest.mark.long
def test_buttons_pause_the_producer(tmp_path: Path, leader: MySql, follower: MySql, broker: RemoteKafka) -> None:
    """`make test` has test_a_stream_in_a_browser, and unit tests for the commands and for who may send them."""
    name, port, token = own_name(tmp_path), free_port(), "a-token-of-this-test"
    only = {"filters": {"include_dbs": [name]}, "web": {"password": "the-page's-password", "cache": str(tmp_path)}}
    ours, theirs = ({"metrics": {"port": free_port(), "token": token}} for _ in range(2))
    pair = Pair.make(tmp_path, leader, follower, broker, name=name, source=ours, target=theirs, **only)
    base = f"http://127.0.0.1:{port}"
    with (
        running("cdc-producer", pair.source),
        running("cdc-consumer", pair.target),
        shown(pair, tmp_path, port) as page,
    ):
        page.go(f"{base}/")
        page.value("document.querySelector('input[name=password]').value = \"the-page's-password\"")
        page.click("button")
        page.loaded(f"{base}/")
        until(lambda: "Nothing waits" in text_of(page, "#waits-1"), what="both programs")
        page.click("#controls-1 summary")
        page.click("#controls-1 form:first-child button:first-child")
        until(lambda: "The producer pauses" in text_of(page, "#controls-1 output"), what="the program's answer")
        until(lambda: "The producer is paused" in text_of(page, "#waits-1"), what="the pause")
        page.screen(PHONE)
        assert page.value(NO_WIDER)
        page.value("document.querySelector('#controls-1 input').value = '7'")
        page.click("#controls-1 form:first-child fieldset + fieldset button")
        until(lambda: "at 7 rows a second" in text_of(page, "#controls-1 output"), what="another rate")
        page.click("#controls-1 form:first-child button:nth-child(2)")
        until(lambda: "reads again" in text_of(page, "#controls-1 output"), what="the end of the pause")
        assert token not in page.value("document.documentElement.outerHTML")
        assert [line for line in page.console if "401" not in line] == []  # the form to log in has this status
