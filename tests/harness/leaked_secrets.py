"""Fails each test in which a password of a profile came into what a program put out: its output, logs and reports.

``write_profile`` notes the secrets of the profiles that a test writes. They are looked for in the output of each
program that ``tests.harness.programs`` runs, in what pytest captured, and in the files of logs and reports in the
test's folder.
"""

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.mysql import PASSWORD

__all__ = ["judged", "note_secrets", "require_no_secret", "require_none_below"]

_KEYS = ("password", "token", "sasl.password", "ssl.key.password", "sasl.oauthbearer.client.secret", "ssl.key.pem")
_SHORTEST = 8  # a shorter secret may be a word of a message
_FILES = frozenset({".log", ".txt", ".json", ".jsonl", ".html", ".md", ".prom", ".out", ".err", ""})
_LARGEST = 4_000_000  # bytes
# What has secrets on purpose: a server's own files, the client of a sandbox, and what a test gives as a secret.
_OWN = ("data", "mysqld", "server.properties", "client.cnf", "secret", "words", "password")
_noted = {PASSWORD}


def note_secrets(content: Mapping[str, Any]) -> None:
    """Notes the secrets in a profile's tables."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            note_secrets(value)
        elif key in _KEYS and isinstance(value, str) and len(value) >= _SHORTEST and "${" not in value:
            _noted.add(value)


def require_no_secret(text: str, *, where: object) -> None:
    """Raises AssertionError if ``text`` contains a secret of a profile."""
    # With a backslash before quotes, a secret may be in JSON.
    found = [secret for secret in _noted if secret in text or secret.replace('"', '\\"') in text]
    assert not found, f"a secret is in {where}: …{text[max(0, text.find(found[0]) - 200) :][:300]}…"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Fails a test that passed, if what was captured has a secret."""
    return judged((yield))


def judged(report: Any) -> Any:
    """Returns the report of a phase of a test, which has failed if what was captured has a secret."""
    try:
        for name, text in report.sections if report.passed else []:
            require_no_secret(text, where=name)
    except AssertionError as error:
        report.outcome, report.longrepr = "failed", str(error)
    return report


@pytest.fixture(autouse=True)
def no_secret_in_files(request: pytest.FixtureRequest) -> Iterator[None]:
    """Looks through the files of logs and reports in a test's folder."""
    yield
    folder = request.node.funcargs.get("tmp_path")
    if folder is not None:
        require_none_below(folder)


def require_none_below(folder: Path) -> None:
    """Raises AssertionError if a file of a log or report below ``folder`` has a secret."""
    for path in _files(folder):
        require_no_secret(path.read_text(encoding="utf-8", errors="replace"), where=path)


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(_OWN) or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.suffix in _FILES and path.is_file() and path.stat().st_size <= _LARGEST:
            yield path
