"""Maps addresses to the pages of ``cdc-web``."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cdc.spark.report.files import HTML, JSON
from cdc.web.access import Access, Guard
from cdc.web.browser.indexes import FollowedIndex
from cdc.web.browser.record_pages import RecordPages
from cdc.web.browser.topic_pages import Cluster, TopicPages
from cdc.web.live import Live
from cdc.web.rendering import render
from cdc.web.watched import Watched

__all__ = ["made_app"]

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
        return HTMLResponse(show("overview.html", parts=live.parts(), tab="overview"))

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
        *_record_routes(watched, show=show, cache=cache, stop=stop),
        *TopicPages(list(_clusters(watched).values()), show=show).routes(),
        Mount("/static", StaticFiles(packages=[("cdc.web", "static")])),
    ]

    def login(wrong: bool) -> str:
        return render("login.html", wrong=wrong, user=bool(access.user))

    return Starlette(routes=routes, middleware=[Middleware(Guard, access=access, login=login)])


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
