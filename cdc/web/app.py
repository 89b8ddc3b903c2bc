"""Connects the pages of ``cdc-web`` with their addresses."""

import threading

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cdc.spark.report.files import HTML, JSON
from cdc.web.access import Access, Guard
from cdc.web.live import Live
from cdc.web.rendering import render
from cdc.web.watched import Watched

__all__ = ["made_app"]

# The audit's page has its style in it, and needs nothing else.
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; sandbox"


def made_app(watched: Watched, *, access: Access, stop: threading.Event) -> Starlette:
    """The app; ``stop`` ends the live connections of browsers."""
    live = Live(watched, stop)
    frame = {"streams": watched.streams, "report": watched.report}

    def overview(_: Request) -> Response:
        return HTMLResponse(render("overview.html", parts=live.parts(), tab="overview", **frame))

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
        Route("/healthz", lambda _: PlainTextResponse("ok\n")),
        Mount("/static", StaticFiles(packages=[("cdc.web", "static")])),
    ]

    def login(wrong: bool) -> str:
        return render("login.html", wrong=wrong, user=bool(access.user))

    return Starlette(routes=routes, middleware=[Middleware(Guard, access=access, login=login)])
