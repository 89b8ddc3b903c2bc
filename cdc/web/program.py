"""Serves the page until the program is stopped: resolves its settings, listens, and runs the web server."""

import ctypes
import logging
import os
import socket
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pymysql
import uvicorn

from cdc.config.profile import Database, ServerAddress, Web
from cdc.errors import UserError
from cdc.kafka.broker_checks import check_topics
from cdc.service.command_line import CheckList
from cdc.service.mysql_connection import connected
from cdc.web.access import Access, is_local
from cdc.web.app import made_app
from cdc.web.watched import GivenProfile, Watched

__all__ = ["access_of", "cache_folder", "check", "log_server", "serve", "settings_of"]

_LOOK_SECONDS = 0.5
_M_ARENA_MAX, _ARENAS = -8, 1  # malloc.h of glibc
_END_SECONDS = 3  # browsers get this time to read an answer when the program ends


def serve(
    profiles: Sequence[GivenProfile],
    *,
    listen: ServerAddress | None,
    report: Path | None,
    stop: threading.Event,
    log: Callable[..., None],
) -> None:
    """Serves the page of ``profiles`` until ``stop`` is set; ``listen`` and ``report`` override the profiles' settings.

    Raises UserError if the address can't be used, or if clients on other machines could read the page
    without a password.
    """
    _share_memory()
    settings = settings_of(profiles)
    _require_password(settings, profiles)
    access = access_of(settings, listen=listen)
    folder = report or (Path(settings.report) if settings.report else None)
    with _listening(access.listen) as listening:
        watched = Watched(profiles, report=folder)
        watched.start(stop)
        log("listening", url=f"http://{access.listen}/", password="asked for" if access.password else "none")
        log_server(log)
        _run(made_app(watched, access=access, cache=cache_folder(settings), stop=stop), listening, stop)


def check(profiles: Sequence[GivenProfile], *, listen: ServerAddress | None) -> int:
    """Prints what must be changed before the page of ``profiles`` can be served, and which of their servers the page
    could not show; returns the exit status, 0 or 2.
    """
    items = CheckList()
    with items.noting():
        settings = settings_of(profiles)
        _require_password(settings, profiles)
        access = access_of(settings, listen=listen)
        cache_folder(settings)
        _listening(access.listen).close()
        items.fine(f"http://{access.listen}/ is free")
    for _, profile in profiles:
        check_topics(items, profile.kafka, group="cdc-web")
        with items.noting():
            _require_server(profile.database)
            items.fine(f"MySQL at {profile.database} answers")
    return items.end()


def _require_server(database: Database) -> None:
    try:
        connected(**database.settings()).close()
    except (pymysql.MySQLError, OSError) as error:
        raise UserError(
            f"the server does not answer: {error}",
            code="CDC-WEB-SERVER",
            where=str(database),
            hint="the page would show it as away; start it, or correct [database] in its profile",
        ) from None


def _share_memory() -> None:
    """Makes all threads allocate memory from the same arena. By default glibc keeps memory that a thread has freed for
    this thread, so that two dozen threads hold twice as much as they need.
    """
    with suppress(OSError, AttributeError):  # on other C libraries than glibc
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def settings_of(profiles: Sequence[GivenProfile]) -> Web:
    """Returns the first profile's ``[web]`` table with a setting of the page. ``web.metrics`` does not count, since it
    belongs to the profile's own program.
    """
    every = [profile.web for _, profile in profiles]
    return next((each for each in every if replace(each, metrics="") != Web()), Web())


def _has_password(web: Web) -> bool:
    return bool(web.password or web.password_env or web.password_file)


def _require_password(settings: Web, profiles: Sequence[GivenProfile]) -> None:
    """Raises UserError if a profile sets a password, but the ``settings`` that the page uses have none."""
    if _has_password(settings):
        return
    for file, profile in profiles:
        if _has_password(profile.web):
            raise UserError(
                "the password of the page is not in the first profile that has settings of the page",
                code="CDC-WEB-PASSWORD",
                where=f"{file}, profile table web",
                hint="put all settings of the page in one profile, or name this profile first",
            )


def access_of(settings: Web, *, listen: ServerAddress | None) -> Access:
    """Returns the rules of access to the page. Raises UserError if everybody in the network could read the page."""
    place = listen or ServerAddress.parse(settings.listen, key="web.listen")
    password = settings.secret()
    if _has_password(settings) and not password:
        raise UserError(
            "the password of the page is empty",
            code="CDC-WEB-PASSWORD",
            where="profile table web",
            hint="put a password where web.password_env or web.password_file says, or leave the key out",
        )
    if settings.user and not password:
        raise UserError(
            "web.user has no password",
            code="CDC-WEB-PASSWORD",
            where="profile table web",
            hint="set web.password, web.password_env or web.password_file, or leave out web.user",
        )
    if not password and not is_local(place.host):
        raise UserError(
            "everybody who reaches this address could read all rows",
            code="CDC-WEB-OPEN",
            where=str(place),
            hint="set web.password_env (or web.password_file) in the profile, or listen on 127.0.0.1",
        )
    return Access(place, settings.hosts, settings.user, password)


def cache_folder(settings: Web) -> Path:
    """Returns the folder of the indexes. Raises UserError if no folder is set, and the user has no home folder."""
    named = os.environ.get("CDC_CACHE")
    try:
        return Path(settings.cache) if settings.cache else (Path(named or "~/.cache/cdc") / "web").expanduser()
    except RuntimeError:
        raise UserError(
            "there is no folder for the index of records",
            code="CDC-WEB-CACHE",
            where="profile key web.cache",
            hint="set it, or the environment variable CDC_CACHE, to a folder that only this user can read",
        ) from None


def _listening(place: ServerAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=128)
    except OSError as error:
        raise UserError(
            f"cannot listen: {error.strerror or error}",
            code="CDC-WEB-PORT",
            where=str(place),
            hint="name a free port, and an address of this machine (web.listen in the profile, or --listen)",
        ) from None


class _ServerLog(logging.Handler):
    def __init__(self, log: Callable[..., None]) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        fields = {"says": record.getMessage()}
        if record.exc_info:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        self._log("web server", level=record.levelno, **fields)


def log_server(log: Callable[..., None]) -> None:
    """Passes each warning of the web server to ``log``, which writes one line in the format of the program's log."""
    server = logging.getLogger("uvicorn")
    server.handlers[:] = [_ServerLog(log)]
    server.propagate = False


def _run(app: object, listening: socket.socket, stop: threading.Event) -> None:
    """Runs the web server in a thread, so that it does not replace the program's signal handlers."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=_END_SECONDS,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="web server", daemon=True)
    thread.start()
    while not stop.wait(_LOOK_SECONDS) and thread.is_alive():
        pass
    server.should_exit = True
    thread.join(_END_SECONDS + 2.0)
