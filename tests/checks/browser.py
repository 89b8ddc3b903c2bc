"""A browser that the tests bring: Debian's headless Chromium, unpacked like the servers, and what a page did in it."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cdc.errors import UserError
from cdc.sandbox.fetch.mysql_programs import NoDebian, Packages, unpacked
from tests.harness.wait import LIMIT_SECONDS

__all__ = ["OPTIONS", "Shown", "asked_by_a_page", "browser", "environment", "shown"]

_HINT = "install chromium, so that it is on PATH"
_ON_PATH = ("chromium", "chromium-headless-shell", "google-chrome")
# Quiet as it can be: what it asks for on its own account is not counted, but need not leave this machine either.
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--enable-logging=stderr",
)  # fmt: skip
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class Browser:
    """``program``, and the folder of Debian's packages in which it is; None for one that the machine has."""

    program: str
    root: Path | None = None


@dataclass(frozen=True)
class Shown:
    """A page as the browser made it (``dom``), the lines of its console, and the URLs that the page asked for."""

    dom: str
    console: str
    asked: set[str]


@cache
def browser() -> Browser:
    """Debian's, fetched first where needed, of the machine's own release: it needs no other C library.

    Where packages of Debian's can't be had at all, the machine's own. Raises NoDebian where it has none, and UserError
    where the fetch fails.
    """
    try:
        # Its processes start one another, so no loader can be put before them: the C library is the machine's.
        packages = Packages("headless Chromium", _suite(), ("chromium-headless-shell",), _HINT, without=("libc6",))
        root = unpacked("chromium", packages)
    except NoDebian:
        found = next(filter(None, map(shutil.which, _ON_PATH)), None)
        if found is None:
            raise
        return Browser(found)
    program = root / "usr/lib/chromium/chromium-headless-shell"
    if not program.exists():
        raise UserError("the unpacked Chromium is not whole", where=str(root), hint="remove that folder")
    return Browser(str(program), root)


def _suite() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    if release.get("ID") != "debian" or "VERSION_CODENAME" not in release:
        raise NoDebian("there is no browser, and no release of Debian to fetch one from", hint=_HINT)
    return release["VERSION_CODENAME"]


def shown(html: str, folder: Path, *, width: int = 800) -> Shown:
    """What the browser makes of a page, so many pixels wide. ``folder`` is empty, and gets all that it writes."""
    of = browser()
    file, log = folder / "page.html", folder / "net.json"
    file.write_text(html, encoding="utf-8")
    command = [
        of.program,
        *OPTIONS,
        f"--window-size={width},600",
        f"--user-data-dir={folder / 'home'}",
        f"--log-net-log={log}",
        "--dump-dom",
    ]
    done = subprocess.run(
        [*command, file.as_uri()],
        capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True, env=environment(of, folder),
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Shown(done.stdout, "\n".join(said), asked_by_a_page(json.loads(log.read_text())))


def asked_by_a_page(log: Mapping[str, Any]) -> set[str]:
    """The URLs in the browser's log of its network that a page asked for, not the browser on its own account.

    Each request has the origin that it came from; a page's is never missing, and the browser itself has none.
    """
    started = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    requests = [event.get("params", {}) for event in log["events"] if event["type"] == started]
    of_pages = [each for each in requests if each.get("initiator", "not an origin") != "not an origin"]
    return {each["url"] for each in of_pages if not each["url"].startswith(("file:", "data:"))}


def environment(of: Browser, folder: Path) -> dict[str, str]:
    environment = {**os.environ, "HOME": str(folder)}
    if of.root is None:
        return environment
    fonts = folder / "fonts.conf"
    fonts.write_text(_FONTS.format(fonts=of.root / "usr/share/fonts", cache=folder / "fonts"))
    places = [place for below in ("usr/lib", "lib") for place in sorted(of.root.glob(f"{below}/*-linux-gnu"))]
    places += sorted(of.root.glob("usr/lib/*-linux-gnu/pulseaudio"))
    return environment | {"LD_LIBRARY_PATH": ":".join(map(str, places)), "FONTCONFIG_FILE": str(fonts)}
