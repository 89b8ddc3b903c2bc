"""An HTTP proxy in front of a REST catalog which passes a commit on and loses the answer, as a failing gateway does."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["LossyCatalog", "lossy_catalog"]


class LossyCatalog(ThreadingHTTPServer):
    """``losing`` is the status with which commits are answered although the server has taken them; none if 0. ``lost``
    counts them.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.server, self.losing, self.lost = server, 0, 0

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


_OWN = ("host", "connection", "accept-encoding")


class _Handler(BaseHTTPRequestHandler):
    server: LossyCatalog

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
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
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_HEAD = do_DELETE = _pass_on

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
