"""Queries servers, brokers and programs for the page, each in its own thread."""

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Generic, TypeVar

import pymysql
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException
from prometheus_client.parser import text_string_to_metric_families

from cdc.config.profile import Profile, ServerAddress
from cdc.consumer.state.status import Status, read_status
from cdc.errors import CdcError
from cdc.kafka.broker_checks import Brokers
from cdc.kafka.errors import question_error
from cdc.kafka.follower_places import FollowerPlaces
from cdc.kafka.partitions import backwards
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.binlog.leader import connected_cursor, end_of_binlog
from cdc.producer.copy.requests import Request, waiting
from cdc.producer.copy.state import Pending
from cdc.producer.flavor.mariadb_leader import is_mariadb
from cdc.service.logs import event
from cdc.service.process import described
from cdc.spark.report.files import HTML, JSON

__all__ = [
    "FOLLOWER",
    "LEADER",
    "Answer",
    "AuditAnswer",
    "AuditSource",
    "EndpointAnswer",
    "EndpointSource",
    "NoAnswer",
    "Polled",
    "ServerAnswer",
    "ServerSource",
    "StreamAnswer",
    "StreamSource",
    "Watchers",
    "address",
    "figures",
    "parsed_report",
]

_log = partial(event, logging.getLogger("cdc.web"))
_UNWATCHED_SECONDS = 10.0  # the pause while no browser shows the page; the plots are still updated
_SHARE = 10  # the pause is at least this multiple of the time of the query, so that slow sources are not kept busy

T = TypeVar("T")


class NoAnswer(Exception):
    """A source does not answer; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The newest answer of a source: the ``value``, None before the first answer, and its time (``time.time()``).

    ``error`` is the reason why the newest query failed; it is empty if the query succeeded.
    """

    value: T | None = None
    at: float = 0.0
    error: str = ""


class Watchers:
    """Counts the browsers that show the page at the moment."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1

    def pause(self, seconds: float, *, stop: threading.Event) -> None:
        """Waits for ``seconds`` while a browser shows the page, otherwise longer; returns early if ``stop`` is set."""
        begun = time.monotonic()
        with self._changed:
            while not stop.is_set():
                wanted = seconds if self._count else max(seconds, _UNWATCHED_SECONDS)
                left = begun + wanted - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, 1.0))


class Polled(Generic[T]):
    """Calls ``ask`` every ``seconds`` after ``start``. Errors become texts, since the page shows which server does not
    answer.
    """

    def __init__(self, name: str, ask: Callable[[], T], *, seconds: float) -> None:
        self.name = name
        self._ask = ask
        self._seconds = seconds
        self.answer: Answer[T] = Answer()

    def start(self, watchers: Watchers, stop: threading.Event) -> None:
        """Starts the thread."""
        threading.Thread(target=self._run, args=(watchers, stop), name=f"poll {self.name}", daemon=True).start()

    def _run(self, watchers: Watchers, stop: threading.Event) -> None:
        while not stop.is_set():
            took = self.look()
            watchers.pause(max(self._seconds, _SHARE * took), stop=stop)

    def look(self) -> float:
        """Queries the source once; returns how long the query took, in seconds."""
        begun = time.monotonic()
        before = self.answer
        try:
            self.answer = Answer(self._ask(), time.time())
        except (CdcError, NoAnswer) as error:
            self.answer = replace(before, error=str(error))
        except Exception as error:  # noqa: BLE001 - a defect in one part must not end the page
            self.answer = replace(before, error=f"{type(error).__name__}: {error}")
        if self.answer.error and self.answer.error != before.error:
            _log("no answer", source=self.name, reason=self.answer.error)
        return time.monotonic() - begun


# Reads the verdict of the last audit from its report (``cdc-audit --report``).


@dataclass(frozen=True, slots=True)
class AuditAnswer:
    """The main figures of report.json, named as in that file; ``page`` is true if report.html exists. ``not_compared``
    counts the rows that the verdict does not cover. ``under_copy`` counts the tables whose copy was not complete; the
    verdict does not cover these tables either.
    """

    verdict: str
    audited_at: str
    leader: str
    follower: str
    sequence: int | None
    tables: int
    drifted_rows: int
    drifted_by_cause: dict[str, int] = field(default_factory=dict)
    schema_drift: int = 0
    foreign_writes: int = 0
    not_compared: int = 0
    under_copy: int = 0
    reasons: tuple[str, ...] = ()
    page: bool = False


def parsed_report(body: dict[str, Any], *, page: bool) -> AuditAnswer:
    """Extracts the main figures of a report. If the JSON is not a report, raises LookupError, ValueError, TypeError or
    AttributeError.
    """
    return AuditAnswer(
        verdict=str(body["verdict"]),
        audited_at=str(body["audited_at"]),
        leader=str(body["leader"]["resource"]),
        follower=str(body["follower"]["resource"]),
        sequence=None if body["sequence"] is None else int(body["sequence"]),
        tables=len(body["tables"]),
        drifted_rows=int(body["drifted_rows"]),
        drifted_by_cause={str(cause): int(rows) for cause, rows in body["drifted_by_cause"].items()},
        schema_drift=int(body["schema_drift"]),
        foreign_writes=int(body["foreign_writes"]),
        not_compared=sum(int(each.get("not_compared", 0)) for each in body["tables"]),
        under_copy=len(body.get("under_copy", ())),
        reasons=tuple(map(str, body["reasons"])),
        page=page,
    )


class AuditSource:
    """Reads the report in ``folder``; reads it again only if it has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_at: tuple[int, int] | None = None
        self._known: AuditAnswer | None = None

    def __call__(self) -> AuditAnswer:
        """Reads the report. Raises NoAnswer if there is none."""
        path = self._folder / JSON
        try:
            stat = path.stat()
            version = stat.st_mtime_ns, stat.st_size
            if self._known is None or version != self._read_at:
                body = json.loads(path.read_text(encoding="utf-8"))
                self._known = parsed_report(body, page=(self._folder / HTML).is_file())
                self._read_at = version
        except FileNotFoundError:
            raise NoAnswer(f"no audit has written its report yet: there is no {path}") from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise NoAnswer(f"{path} can't be read as an audit's report: {error}") from None
        return self._known


# Queries a program of cdc for its metrics and health, over HTTP (``[metrics]`` in its profile).

_ANSWER_SECONDS = 10.0  # the program's health checks may wait for servers that do not answer
_MOST_BYTES = 4_000_000
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class EndpointAnswer:
    """A program's ``figures`` by the names of its Prometheus metrics, and the name and text of each ``failing`` health
    check.

    ``table`` is the table that is being copied; it is empty if there is none.
    """

    figures: dict[str, float]
    failing: dict[str, str]
    table: str = ""


def address(profile: Profile) -> ServerAddress | None:
    """Returns the address of the profile's program; None if the program serves no metrics."""
    if profile.web.metrics:
        return ServerAddress.parse(profile.web.metrics, key="web.metrics")
    metrics = profile.metrics
    return ServerAddress(_EVERYWHERE.get(metrics.host, metrics.host), metrics.port) if metrics.port else None


def figures(text: str) -> tuple[dict[str, float], str]:
    """Parses ``/metrics``: returns the values by name, and the table in the labels of the metrics of a copy."""
    found: dict[str, float] = {}
    table = ""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.labels or set(sample.labels) == {"table"}:
                found[sample.name] = sample.value
                table = sample.labels.get("table", table)
    return found, table


class EndpointSource:
    """Queries the program that listens at the address ``place``."""

    def __init__(self, place: ServerAddress) -> None:
        self._place = place

    def __call__(self) -> EndpointAnswer:
        """Queries the program. Raises NoAnswer."""
        try:
            values, table = figures(self._get("/metrics").decode("utf-8", "replace"))
            body = json.loads(self._get("/healthz"))
            failing = {str(name): str(each["says"]) for name, each in body["checks"].items() if not each["ok"]}
        except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise NoAnswer(f"no program answers at http://{self._place}/metrics: {reason}") from None
        return EndpointAnswer(values, failing, table)

    def _get(self, path: str) -> bytes:
        connection = HTTPConnection(self._place.host, self._place.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", path)
            return connection.getresponse().read(_MOST_BYTES)
        finally:
            connection.close()


# Queries the server of a profile: a leader for the end of its binlog, a follower for its progress.

LEADER, FOLLOWER = "leader", "follower"


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer of a server. ``end`` is the end of its binlog, ``logs`` are the names and sizes of the binlog's files;
    ``end`` is None and ``logs`` is empty if the server has no binlog, or if the user may not query it. ``status`` is
    the status of a follower, None for a leader.

    ``role`` is LEADER or FOLLOWER; it is empty as long as it is unknown.
    """

    version: str
    uuid: str
    end: Position | None
    logs: tuple[tuple[str, int], ...]
    role: str
    status: Status | None = None


class ServerSource:
    """Queries the server in ``[database]`` of ``profile``. ``leader_uuid()`` returns the leader's id according to the
    commit log; it is empty if unknown.
    """

    def __init__(self, profile: Profile, *, leader_uuid: Callable[[], str]) -> None:
        self._profile = profile
        self._leader_uuid = leader_uuid

    def __call__(self) -> ServerAnswer:
        """Queries the server. Raises UserError or Disconnected if it does not answer."""
        database = self._profile.database
        with connected_cursor(database.settings(), str(database)) as cursor:
            version, uuid = _identity(cursor)
            end, logs = _binlog(cursor)
        if uuid and uuid == self._leader_uuid():
            return ServerAnswer(version, uuid, end, logs, LEADER)
        if is_mariadb(version):
            return ServerAnswer(version, uuid, end, logs, LEADER)  # followers are always MySQL
        status = self._status()
        known = status is not None and (status.applied is not None or status.consumer is not None)
        return ServerAnswer(version, uuid, end, logs, FOLLOWER if known else "", status)

    def _status(self) -> Status | None:
        """Queries the follower's status; None if the server may be the leader and the query fails."""
        profile = self._profile
        try:
            return read_status(profile.database, resource=profile.mysql_resource_name, schema=profile.consumer.schema)
        except CdcError:
            if self._leader_uuid():  # another server is the leader, so this one should be a follower
                raise
            return None


def _identity(cursor: Any) -> tuple[str, str]:
    cursor.execute("SHOW GLOBAL VARIABLES WHERE variable_name IN ('version', 'server_uuid', 'server_id')")
    found = dict(cursor.fetchall())
    # MariaDB has no UUID, so the producer uses its server_id.
    return str(found["version"]), str(found.get("server_uuid") or f"MariaDB server_id {found['server_id']}")


def _binlog(cursor: Any) -> tuple[Position | None, tuple[tuple[str, int], ...]]:
    try:
        end = end_of_binlog(cursor)
        cursor.execute("SHOW BINARY LOGS")
        return end, tuple((str(row[0]), int(row[1])) for row in cursor.fetchall())
    except (pymysql.ProgrammingError, pymysql.OperationalError, IndexError):
        return None, ()  # there is no binlog, or the user may not query it


# Reads the progress of a stream from Kafka: the newest entry of the commit log, requested copies, and followers.

_PLACES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """The progress of a stream according to Kafka. ``entry`` is the newest entry of the commit log, None before the
    first entry. ``written_at`` is the time at which the producer wrote it; ``producer`` is the process and host that
    wrote it.

    ``places`` maps the address of each known follower to the last sequence that it has applied.
    """

    entry: Entry | None = None
    written_at: float | None = None
    pending: Pending = field(default_factory=Pending)
    requests: tuple[Request, ...] = ()
    places: dict[str, int] = field(default_factory=dict)
    producer: str = ""


class StreamSource:
    """Queries the stream in the topics of the profile's ``[kafka]``. Only one thread may use this object."""

    def __init__(self, profile: Profile) -> None:
        self._kafka = profile.kafka
        self._resource = profile.mysql_resource_name
        self._properties: dict[str, Any] = profile.kafka.properties(group_id="cdc-web")
        self._brokers = Brokers(self._properties)
        self._places = FollowerPlaces(self._properties, resource=self._resource, topic=self._kafka.topic)
        self._known: dict[str, int] = {}

    def __call__(self) -> StreamAnswer:
        """Queries the brokers. Raises NoAnswer, UserError or Disconnected if they do not answer."""
        commits = self._kafka.topics().commits
        if not (check := self._brokers.check([])).ok:
            raise NoAnswer(f"Kafka at {self._kafka.bootstrap_servers}: {check.says}")
        if not self._brokers.check([commits]).ok:
            return StreamAnswer()  # the producer has not run yet
        try:
            entry, written_at = self._newest(commits)
            pending = Pending.from_json(entry.copy if entry else None)
            requests = waiting(self._properties, self._kafka.topics().copies, resource=self._resource, pending=pending)
            places = self._followers()
        except KafkaException as error:
            where = f"topic {commits} at {self._kafka.bootstrap_servers}"
            raise question_error(error.args[0], self._properties, where=where) from None
        by = described(entry.instance) if entry and entry.instance else ""
        return StreamAnswer(entry, written_at, pending, tuple(requests), places, by)

    def _newest(self, commits: str) -> tuple[Entry | None, float | None]:
        for message in backwards(self._properties, (commits, 0)):
            if not message.value():
                continue  # a message without content was only written to end a hanging transaction
            kind, written_ms = message.timestamp()
            where = f"topic {commits}, offset {message.offset()}"
            entry = Entry.parse(message.value() or b"", where=where)
            return entry, None if kind == TIMESTAMP_NOT_AVAILABLE else written_ms / 1000
        return None, None

    def _followers(self) -> dict[str, int]:
        give_up = time.monotonic() + _PLACES_SECONDS
        while (found := self._places.look()) is None:
            if time.monotonic() > give_up:
                return self._known
            time.sleep(0.02)
        self._known = found
        return found
