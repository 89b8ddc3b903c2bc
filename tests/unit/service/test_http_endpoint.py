"""The endpoint answers HEAD as GET, without a body, and checks the servers once for all who wait for that."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from types import SimpleNamespace

import pytest

from cdc.service import http_endpoint
from cdc.service.http_endpoint import Check, Endpoint
from tests.harness.wait import LIMIT_SECONDS, until


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz", "/healthz", "/other"])
def test_head_is_get_without_the_body(path: str) -> None:
    endpoint = Endpoint.open("127.0.0.1", 0, metrics=list, checks=list, info={})
    try:
        answers = []
        for method in ("GET", "HEAD"):
            connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=30)
            connection.request(method, path)
            answer = connection.getresponse()
            answers.append((answer.status, answer.getheader("Content-Type"), answer.read() == b""))
            connection.close()
    finally:
        endpoint.close()
    assert answers[0][:2] == answers[1][:2]
    assert (answers[0][2], answers[1][2]) == (False, True)


def test_requests_do_not_pile_up_while_a_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, answers, begun = threading.Event(), threading.Event(), 0
    # The endpoint looks at the clock as each request comes, and as each check begins.
    looks: list[float] = []

    def monotonic() -> float:
        looks.append(time.monotonic())
        return looks[-1]

    def checks() -> Iterator[Check]:
        nonlocal begun
        begun += 1
        waits.set()
        answers.wait(LIMIT_SECONDS)
        yield Check("server", ok=False, says=f"away at check {begun}")

    endpoint = Endpoint.open("127.0.0.1", 0, metrics=list, checks=checks, info={})

    def asked() -> str:
        connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=LIMIT_SECONDS)
        connection.request("GET", "/healthz")
        said = connection.getresponse().read().decode()
        connection.close()
        return said

    monkeypatch.setattr(http_endpoint, "time", SimpleNamespace(monotonic=monotonic))
    with ThreadPoolExecutor(21) as clients:
        first = clients.submit(asked)
        assert waits.wait(LIMIT_SECONDS)
        others = [clients.submit(asked) for _ in range(20)]
        until(lambda: len(looks) == 22, what="all requests")
        answers.set()
        # Those who asked during the first check get the results of one that begins later.
        assert "check 1" in first.result(LIMIT_SECONDS)
        assert all("check 2" in each.result(LIMIT_SECONDS) for each in others)
    endpoint.close()
    assert begun == 2
