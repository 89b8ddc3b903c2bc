"""Serves the pages of a cluster: its brokers and topics, the messages of a topic as text, hex or JSON with keys and
headers, and the consumer groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from cdc.browse.cluster import Groups, cluster_summary, group, groups, topic_readers, topic_settings, topic_summary
from cdc.browse.messages import NOTHING, Shown, as_hex, as_json, as_text, newest, window
from cdc.errors import CdcError, UserError
from cdc.web.search import MessageSearch, number

__all__ = ["FORMS", "Cluster", "Pages", "ShownMessage", "TopicPages", "shown_message"]

FORMS = ("auto", "text", "hex", "json")
_ON_A_PAGE, _TOPICS, _GROUPS, _PARTITIONS, _READERS = 25, 100, 50, 100, 200
_STATUSES = {
    "CDC-TOPIC-MISSING": 404, "CDC-BROWSE-NO-PARTITION": 404, "CDC-BROWSE-NO-OFFSET": 400, "CDC-BROWSE-TIME": 400,
}  # fmt: skip
_FEW_BYTES, _ALL_BYTES = 4_000, 1_000_000
_TEXT_CONTROLS = frozenset(range(0x20)) - frozenset(b"\t\n\r")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster: its ``servers``, librdkafka's properties, and descriptions of ``known`` topics, by name."""

    servers: str
    properties: Mapping[str, Any]
    known: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pages:
    """The part of a list that a page shows: ``size`` entries from number ``begin`` on."""

    begin: int
    size: int

    @property
    def end(self) -> int:
        """The number of the first entry of the next page."""
        return self.begin + self.size

    @property
    def before(self) -> int:
        """The number of the first entry of the page before this one."""
        return max(0, self.begin - self.size)


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message with its key, headers and value as texts. ``form`` is the form in which the value is shown, one of
    FORMS except "auto"; ``cut`` is the number of bytes that are not shown.
    """

    message: Shown
    key: str
    value: str
    form: str
    headers: tuple[tuple[str, str], ...]
    cut: int


def shown_message(message: Shown, *, form: str, in_list: bool = False) -> ShownMessage:
    """Shows a message in one of FORMS. "auto" shows JSON as JSON, other text as text, and other bytes as hex.

    A value that is shortened or is not JSON is never shown as JSON. In a list, the form "auto" does not indent JSON,
    since indented JSON needs many lines.
    """
    value = message.value
    cut = message.size - len(value or b"")
    document = as_json(value) if form in ("auto", "json") and not cut else None
    if document is not None:
        shown, form = as_text(value) if in_list and form == "auto" else document, "json"
    elif form == "hex" or (form == "auto" and not _is_text(value, is_cut=bool(cut))):
        shown, form = as_hex(value), "hex"
    else:
        shown, form = as_text(value), "text"
    headers = tuple((name, _short(content)) for name, content in message.headers)
    return ShownMessage(message, _short(message.key), shown, form, headers, cut)


def _is_text(value: bytes | None, *, is_cut: bool) -> bool:
    if value is None:
        return True
    try:
        # The last character of a shortened value may be incomplete.
        value.decode("utf-8", "strict") if not is_cut else value[:-4].decode("utf-8", "strict")
    except UnicodeDecodeError:
        return False
    return not _TEXT_CONTROLS.intersection(value)


def _short(content: bytes | None) -> str:
    if content is None:
        return NOTHING
    return as_text(content) if _is_text(content, is_cut=False) else content.hex(" ")


class TopicPages:
    """Serves the topic pages of all ``clusters``. ``show`` renders a template."""

    def __init__(self, clusters: list[Cluster], *, show: Callable[..., str]) -> None:
        self._clusters = clusters
        self._show = partial(show, tab="topics")

    def routes(self) -> list[Route]:
        """Returns the routes of the pages."""
        begin = "/clusters/{cluster:number}"
        return [
            Route("/topics", self._topics),
            Route(f"{begin}/topics/{{topic}}", self._in_cluster(self._messages)),
            Route(f"{begin}/topics/{{topic}}/partitions", self._in_cluster(self._partitions)),
            Route(f"{begin}/groups", self._in_cluster(self._groups)),
            Route(f"{begin}/group", self._in_cluster(self._group)),
        ]

    def _in_cluster(self, answer: Callable[[Request, int, Cluster], str]) -> Callable[[Request], Response]:
        """Serves the page that ``answer`` renders for the cluster in the address."""

        def answered(request: Request) -> Response:
            which = request.path_params["cluster"]
            if not 0 < which <= len(self._clusters):
                return HTMLResponse(self._show("problem.html", error="There is no such cluster.", back="/topics"), 404)
            try:
                return HTMLResponse(answer(request, which, self._clusters[which - 1]))
            except CdcError as error:
                text = self._show("problem.html", error=error, back="/topics")
                return HTMLResponse(text, _STATUSES.get(error.code, 503))

        return answered

    def _topics(self, request: Request) -> Response:
        wanted, begin = request.query_params.get("name", "").strip(), number(request.query_params.get("begin")) or 0
        every, problems = [], []
        for place, cluster in enumerate(self._clusters, 1):
            try:
                found = cluster_summary(cluster.properties, text=wanted, begin=begin, limit=_TOPICS)
                every.append((place, cluster, found))
            except CdcError as error:
                problems.append(error)
        text = self._show("topics.html", clusters=every, problems=problems, wanted=wanted, pages=Pages(begin, _TOPICS))
        return HTMLResponse(text, 503 if problems and not every else 200)

    def _messages(self, request: Request, which: int, cluster: Cluster) -> str:
        topic, query = request.path_params["topic"], request.query_params
        summary = topic_summary(cluster.properties, topic)
        search = MessageSearch.parse(query, summary.partitions)
        form = query.get("form", "auto") if query.get("form") in FORMS else "auto"
        shared: dict[str, Any] = {
            "number": which, "topic": topic, "known": cluster.known.get(topic, ""), "summary": summary,
            "forms": FORMS, "form": form, "search": search,
        }  # fmt: skip
        committed = not search.uncommitted
        if search.partition is None or search.text:
            partitions = summary.partitions if search.partition is None else (search.partition,)
            found = newest(
                cluster.properties, topic, partitions, text=search.text, since_ms=search.since_ms, ends=search.ends,
                count=_ON_A_PAGE, committed=committed, value_bytes=_FEW_BYTES,
            )  # fmt: skip
            messages = [shown_message(each, form=form, in_list=True) for each in found.messages]
            return self._show("messages.html", messages=messages, found=found, window=None, **shared)
        one = search.single is not None
        part = window(
            cluster.properties, topic, search.partition, offset=search.single if one else search.offset,
            until=None if one else search.until, since_ms=None if one else search.since_ms,
            count=1 if one else _ON_A_PAGE, committed=committed, value_bytes=_ALL_BYTES if one else _FEW_BYTES,
        )  # fmt: skip
        messages = [shown_message(each, form=form, in_list=not one) for each in part.messages]
        messages.reverse()
        return self._show("messages.html", messages=messages, found=None, window=part, **shared)

    def _partitions(self, request: Request, which: int, cluster: Cluster) -> str:
        topic, begin = request.path_params["topic"], number(request.query_params.get("begin")) or 0
        settings, readers, problems = dict[str, str](), Groups((), 0), []
        summary = topic_summary(cluster.properties, topic)
        try:
            settings = topic_settings(cluster.properties, topic)
        except UserError as error:  # a user may be allowed to read a topic, and not its settings
            problems.append(error)
        try:
            readers = topic_readers(cluster.properties, topic, limit=_READERS)
        except UserError as error:
            problems.append(error)
        return self._show(
            "partitions.html", number=which, topic=topic, known=cluster.known.get(topic, ""), settings=settings,
            readers=readers, asked_groups=_READERS, problems=problems, summary=summary,
            pages=Pages(begin, _PARTITIONS),
        )  # fmt: skip

    def _groups(self, request: Request, which: int, cluster: Cluster) -> str:
        wanted, begin = request.query_params.get("name", "").strip(), number(request.query_params.get("begin")) or 0
        found = groups(cluster.properties, text=wanted, begin=begin, limit=_GROUPS)
        return self._show(
            "groups.html", number=which, servers=cluster.servers, found=found, wanted=wanted,
            pages=Pages(begin, _GROUPS),
        )  # fmt: skip

    def _group(self, request: Request, which: int, cluster: Cluster) -> str:
        name, begin = request.query_params.get("name", ""), number(request.query_params.get("begin")) or 0
        found = group(cluster.properties, name)
        return self._show("group.html", number=which, name=name, group=found, pages=Pages(begin, _PARTITIONS))
