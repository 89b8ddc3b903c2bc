"""Maps addresses to the pages of ``cdc-web``, and sends the changed parts of the first page to browsers."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cdc.spark.report.files import HTML, JSON
from cdc.web import controls
from cdc.web.access import Access, Guard
from cdc.web.overview.page import stream_page
from cdc.web.record_pages import FollowedIndex, RecordPages
from cdc.web.rendering import event_text, render
from cdc.web.topic_pages import Cluster, TopicPages
from cdc.web.watched import Watched

__all__ = ["Live", "made_app"]

# The audit's page contains its style sheet, and loads nothing else.
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; sandbox"


def made_app(watched: Watched, *, access: Access, cache: Path, stop: threading.Event) -> Starlette:
    """Builds the app. ``cache`` is the folder of the indexes; ``stop`` ends their threads and the live connections."""
    live = Live(watched, stop)
    show = partial(render, streams=watched.streams, report=watched.report)

    # These two functions are async and need no thread, so they answer even if all threads are busy with pages that wait
    # for an unreachable server.
    async def health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def overview(_: Request) -> Response:
        buttons = [
            controls.controls_of(stream, number=number, has_password=bool(access.password))
            for number, stream in enumerate(watched.streams, 1)
        ]
        return HTMLResponse(show("overview.html", parts=live.parts(), controls=buttons, tab="overview"))

    async def events(_: Request) -> Response:
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(live.events(), media_type="text/event-stream", headers=headers)

    def report(request: Request) -> Response:
        name = request.path_params["name"]
        path = watched.report and watched.report / name
        if name not in (HTML, JSON) or path is None or not path.is_file():
            return PlainTextResponse("There is no report of an audit.\n", 404)
        return FileResponse(path, headers={"Content-Security-Policy": _REPORT_POLICY})

    routes = [
        Route("/", overview),
        Route("/events", events),
        Route("/audit/{name}", report),
        Route("/healthz", health),
        *controls.routes(watched, has_password=bool(access.password)),
        *_record_routes(watched, show=show, cache=cache, stop=stop),
        *TopicPages(list(_clusters(watched).values()), show=show).routes(),
        Mount("/static", StaticFiles(packages=[("cdc.web", "static")])),
    ]

    def login(wrong: bool) -> str:
        return render("login.html", wrong=wrong, user=bool(access.user))

    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, access=access, login=login)],
        exception_handlers={404: partial(_not_found, show=show)},
    )


async def _not_found(_: Request, __: Exception, *, show: Callable[..., str]) -> Response:
    return HTMLResponse(show("problem.html", error="There is no such page.", back="/", tab=""), 404)


def _record_routes(watched: Watched, *, show: Callable[..., str], cache: Path, stop: threading.Event) -> list[Route]:
    routes = []
    places = list(_clusters(watched))
    for number, stream in enumerate(watched.streams, 1):
        kafka = stream.profile.kafka
        index = FollowedIndex(kafka, cache)
        index.start(stop)
        in_cluster = partial(show, cluster=places.index(kafka.bootstrap_servers) + 1)
        routes += RecordPages(number, index, topic=kafka.topic, show=in_cluster).routes()
    return routes


def _clusters(watched: Watched) -> dict[str, Cluster]:
    """Maps the bootstrap servers of each stream to their cluster, with descriptions of the topics in the profiles."""
    found: dict[str, Cluster] = {}
    for stream in watched.streams:
        kafka, resource = stream.profile.kafka, stream.profile.mysql_resource_name
        names = kafka.topics()
        known = {
            names.commits: f"commit log of {resource}",
            names.copies: f"requests for copies of {resource}",
            kafka.topic: f"records of {resource}",
        }
        before = found.get(kafka.bootstrap_servers)
        found[kafka.bootstrap_servers] = Cluster(
            kafka.bootstrap_servers,
            before.properties if before else kafka.properties(group_id="cdc-web"),
            known | dict(before.known if before else {}),
        )
    return found


# Sends the changed parts of the first page to the browsers that show it, as server-sent events.

_SECONDS = 1.0
_ALIVE_SECONDS = 15.0  # the longest silence, since proxies close silent connections
_PARTS = ("path", "waits", "plots", "copies", "followers")


class Live:
    """Renders the first page's parts at most once per second, for all browsers together."""

    def __init__(self, watched: Watched, stop: threading.Event) -> None:
        self._watched = watched
        self._stop = stop
        self._parts: dict[str, str] = {}
        self._rendered_at = float("-inf")

    def parts(self) -> dict[str, str]:
        """Returns the present HTML of each part, by the id of its HTML element."""
        if time.monotonic() - self._rendered_at >= _SECONDS:
            self._parts, self._rendered_at = self._rendered(), time.monotonic()
        return self._parts

    def _rendered(self) -> dict[str, str]:
        now = time.time()
        parts = {}
        for number, stream in enumerate(self._watched.streams, 1):
            page = stream_page(stream.answers(), number=number, now=now)
            for part in _PARTS:
                parts[f"{part}-{number}"] = render(f"{part}.html", page=page)
        if self._watched.audit:
            parts["audit"] = render("audit.html", answer=self._watched.audit.answer)
        return parts

    async def events(self) -> AsyncIterator[str]:
        """Yields the events for one browser until the program ends."""
        sent: dict[str, str] = {}
        sent_at = time.monotonic()
        with self._watched.watchers:
            while not self._stop.is_set():
                parts = self.parts()
                changed = {name: html for name, html in parts.items() if sent.get(name) != html}
                if changed:
                    yield event_text("parts", changed)
                    sent, sent_at = parts, time.monotonic()
                elif time.monotonic() - sent_at > _ALIVE_SECONDS:
                    yield ": alive\n\n"
                    sent_at = time.monotonic()
                await asyncio.sleep(_SECONDS)
