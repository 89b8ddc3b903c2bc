"""The endpoint answers HEAD as GET, without a body."""

from http.client import HTTPConnection

import pytest

from cdc.service.http_endpoint import Endpoint


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
