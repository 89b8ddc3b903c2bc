"""An HTTP proxy in front of a REST catalog which passes a commit on and loses the answer, as a failing gateway does, or
refuses requests, as a catalog does in which a user has few rights.
"""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["LossyCatalog", "lossy_catalog"]


class LossyCatalog(ThreadingHTTPServer):
    """``losing`` is the status with which commits are answered although the server has taken them; none if 0. ``lost``
    counts them. ``refused`` maps parts of paths to the status and the error with which requests are answered that are
    not passed on.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.server, self.losing, self.lost = server, 0, 0
        self.refused: dict[str, tuple[int, str]] = {}

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


_OWN = ("host", "connection", "accept-encoding")


class _Handler(BaseHTTPRequestHandler):
    server: LossyCatalog

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        refusal = next((each for part, each in self.server.refused.items() if part in self.path), None)
        if refusal is None:
            self._write(*self._passed_on(body))
        else:
            code, name = refusal
            text = json.dumps({"error": {"message": "refused by the test", "type": name, "code": code}})
            self._write(code, text.encode(), "application/json")

    def _passed_on(self, body: bytes | None) -> tuple[int, bytes, str | None]:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        asked = urllib.request.Request(f"{self.server.server}{self.path}", body, headers, method=self.command)
        try:
            with urllib.request.urlopen(asked) as answer:
                status, text, kind = answer.status, answer.read(), answer.headers.get("Content-Type")
        except urllib.error.HTTPError as error:
            status, text, kind = error.code, error.read(), error.headers.get("Content-Type")
        is_commit = self.command == "POST" and "/tables/" in self.path and not self.path.endswith("/metrics")
        if is_commit and self.server.losing:
            self.server.lost += 1
            status, text, kind = self.server.losing, b"lost", "text/plain"
        return status, text, kind

    def _write(self, status: int, text: bytes, kind: str | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_HEAD = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextmanager
def lossy_catalog(server: str) -> Iterator[LossyCatalog]:
    """A proxy in front of the catalog at the address ``server``."""
    with LossyCatalog(server) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
