"""Writes and reads the requests for table copies, which have their own topic, and shows the status of copies.

``cdc-producer --copy``, ``--copy-stop`` and ``cdc-repair`` write requests; the running producer reads them.

The commit log's entries contain the offset after the newest processed request, so each request is processed once. They
also contain the topic's id, which shows whether the topic was deleted and created again since then.

A request for keys counts as processed once all of its rows are in the stream. Requests for tables do not wait for a
request for keys: if a table is renamed, its name changes in the list of tables that are to be copied, but not in a
waiting request. After a crash all requests after the offset are processed again. That does no harm: the rows of a
chunk are always the leader's rows at the chunk's point of the stream.
"""

import json
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from cdc.config.profile import Kafka
from cdc.errors import Disconnected, UserError
from cdc.kafka.errors import NOT_AUTHORIZED, SETTING_REFUSED, write_error
from cdc.kafka.partitions import begin_offsets, between, connected, end_offsets
from cdc.kafka.topics import ANY_TIME, admin_client, any_time_hint, known_topics, topics_shown
from cdc.producer.copy.keys import Keys
from cdc.producer.copy.progress_log import ProgressLog
from cdc.producer.copy.state import Pending, Table
from cdc.producer.flavor.mariadb_leader import copy_settings
from cdc.service.logs import LIBRDKAFKA

__all__ = [
    "Estimate",
    "Request",
    "RequestQueue",
    "Requests",
    "State",
    "estimates",
    "follower_lines",
    "lines",
    "waiting",
    "write_repairs",
    "write_request",
]

_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 2.0
_END_SECONDS = 1.0
_LOOK_FOR_TOPIC_SECONDS = 10.0
# A request to stop copies has a key of its own: a producer of an earlier version of cdc, which can't stop copies, then
# finds no tables in the request.
_COPY, _STOP = "tables", "stop"


class Request(NamedTuple):
    """A request to copy tables, to ``stop`` their copies, or to send the rows of ``keys`` again.

    ``offset`` is the offset after the request in the topic, ``topic_id`` is the topic's id.
    """

    tables: list[Table]
    offset: int
    topic_id: str = ""
    stop: bool = False
    keys: Keys | None = None


def write_request(kafka: Kafka, resource: str, tables: Sequence[Table], *, stop: bool = False) -> None:
    """Asks the producer of the leader ``resource`` to copy ``tables``, or to ``stop`` their copies; creates the topic
    if it is missing.

    Raises UserError or Disconnected if Kafka does not accept the request.
    """
    _write(kafka, resource, [json.dumps({_STOP if stop else _COPY: tables})])


def write_repairs(kafka: Kafka, resource: str, keys: Iterable[Keys]) -> None:
    """Asks the producer to send the rows of ``keys`` again, with one request for each of the ``keys``.

    Creates the topic if it is missing. Raises UserError or Disconnected.
    """
    texts = [
        json.dumps({
            "repair": {"table": each.table, "columns": each.columns},
            "keys": [[json.loads(value) for value in key] for key in each.values],
        })
        for each in keys
    ]  # fmt: skip
    _write(kafka, resource, texts)


def _write(kafka: Kafka, resource: str, texts: Sequence[str]) -> None:
    properties, topic = kafka.properties(), kafka.topics().copies
    try:
        with admin_client(properties) as admin:
            _create(admin, topic, kafka.replicas)
        producer = Producer({**properties, "enable.idempotence": True}, logger=LIBRDKAFKA)
        try:
            _send(producer, topic, resource, texts)
        except SystemError as error:
            # A fatal error of the client is raised inside a delivery report, where Python reports it as a SystemError.
            raise error.__cause__ or error from None
    except KafkaException as error:
        if error.args[0].code() == KafkaError.INVALID_TIMESTAMP:
            hint = any_time_hint(kafka.bootstrap_servers, topic)
            raise UserError(
                "Kafka refuses the time of the request", code="CDC-KAFKA-CLOCK", where=f"topic {topic}", hint=hint
            ) from None
        raise write_error(error, topic) from None


def _send(producer: Producer, topic: str, resource: str, texts: Sequence[str]) -> None:
    refused: list[KafkaError] = []
    for text in texts:
        producer.produce(
            topic,
            text.encode(),
            resource.encode(),
            partition=0,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    unsent = producer.flush(_ANSWER_SECONDS)
    if refused:
        raise KafkaException(refused[0])
    if unsent:
        raise Disconnected(
            "the brokers do not accept the request", code="CDC-COPY-REQUEST-REFUSED", where=f"topic {topic}"
        )


def _create(admin: Any, topic: str, replicas: int) -> None:
    """Creates the topic if it is missing. Raises KafkaException, and UserError for a missing ACL."""
    # A user without the right to create topics may use a topic that others created.
    if topics_shown(admin, [topic]):
        return
    # Brokers before Kafka 3.6 do not know the settings ANY_TIME, and other brokers may forbid them.
    for config in ({"retention.ms": "-1"} | ANY_TIME, {"retention.ms": "-1"}):
        new = NewTopic(topic, num_partitions=1, replication_factor=replicas, config=config)
        try:
            admin.create_topics([new], request_timeout=_ANSWER_SECONDS)[topic].result()
        except KafkaException as error:
            code = error.args[0].code()
            if code in SETTING_REFUSED and config.keys() >= ANY_TIME.keys():
                continue
            if code in NOT_AUTHORIZED:
                # The brokers hide an existing topic from a user that may not write to it, so the error names WRITE,
                # too.
                raise write_error(error, topic, operation="CREATE (WRITE, where it is there)") from None
            if code != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        return


def waiting(properties: Mapping[str, Any], topic: str, *, resource: str, pending: Pending) -> list[Request]:
    """Reads the requests that a producer in the state ``pending`` has not processed."""
    requests = Requests(properties, topic, resource=resource, taken=pending)
    requests.look()
    return list(requests.new())


class Requests:
    """Polls the topic of requests in a thread, for requests that the state ``taken`` does not include. If Kafka does
    not answer, the next poll tries again."""

    def __init__(self, properties: Mapping[str, Any], topic: str, *, resource: str, taken: Pending) -> None:
        self._properties = properties
        self._topic = topic
        self._resource = resource
        self._offset, self._topic_id = taken.requests, taken.requests_topic
        self._found: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="copy requests", daemon=True)

    def start(self) -> None:
        """Starts the thread. The topic is read once before this returns, so that all earlier requests are found."""
        self.look()
        self._thread.start()

    @property
    def found(self) -> bool:
        """Whether requests were found after the last call of ``new``."""
        return not self._found.empty()

    def new(self) -> Iterator[Request]:
        """Yields the requests that were found after the last call of this method."""
        while not self._found.empty():
            yield self._found.get()

    def close(self) -> None:
        """Ends the thread."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_END_SECONDS)  # the thread may wait for the brokers, and then ends by itself

    def _run(self) -> None:
        seconds = _LOOK_SECONDS
        while not self._stopped.wait(seconds):
            seconds = _LOOK_SECONDS if self.look() else _LOOK_FOR_TOPIC_SECONDS

    def look(self) -> bool:
        """Reads new requests. Returns False if the topic does not exist or Kafka does not answer."""
        try:
            topic = known_topics(self._properties, [self._topic]).get(self._topic)
            if topic is None:
                return False
            if self._topic_id not in ("", topic.topic_id):
                self._offset = 0  # the topic was created again
            self._topic_id = topic.topic_id
            end = end_offsets(self._properties, [(self._topic, 0)])[self._topic, 0]
            if end < self._offset:
                # The topic was created again. The id does not show this if an earlier version of cdc, which stored no
                # id, has written the state.
                self._offset = 0
            if end > self._offset:
                self._read(end)
        except (KafkaException, Disconnected, UserError):
            return False
        return True

    def _read(self, end: int) -> None:
        place = (self._topic, 0)
        # Retention may have deleted requests that were never read; the later ones are read nevertheless.
        begin = max(self._offset, begin_offsets(self._properties, [place])[place])
        consumer = connected({**self._properties, "group.id": "cdc-producer"}, committed=True)
        try:
            for message in between(consumer, {place: begin}, {place: end}):
                if self._stopped.is_set():
                    return
                self._offset = (message.offset() or 0) + 1
                if message.key() == self._resource.encode():
                    self._found.put(_request(message.value() or b"", self._offset, self._topic_id))
            self._offset = max(self._offset, end)
        finally:
            consumer.close()


def _request(text: bytes, offset: int, topic_id: str) -> Request:
    """Parses a request; a request of an unknown form becomes an empty request."""
    try:
        body = json.loads(text)
        if "repair" in body:
            return Request([], offset, topic_id, keys=_keys(body))
        stop = _COPY not in body
        tables = [(str(database), str(name)) for database, name in body[_STOP if stop else _COPY]]
    except (ValueError, KeyError, TypeError):
        return Request([], offset, topic_id)
    return Request(tables, offset, topic_id, stop)


def _keys(body: dict[str, Any]) -> Keys:
    database, name = map(str, body["repair"]["table"])
    columns = tuple(map(str, body["repair"]["columns"]))
    values = tuple(
        tuple(json.dumps(value, ensure_ascii=False, separators=(",", ":")) for value in key) for key in body["keys"]
    )
    if not columns or not values or any(len(key) != len(columns) for key in values):
        raise ValueError("no keys, or of other columns")
    return Keys((database, name), columns, values)


class RequestQueue:
    """A queue of the requests that are not processed yet. Requests for tables do not wait for earlier requests for
    keys.
    """

    def __init__(self) -> None:
        self._waiting: deque[Request] = deque()
        self._early: set[tuple[str, int]] = set()  # requests that were processed before an earlier request for keys
        self._sent = 0  # how many of the first request's keys already have their rows in the stream
        self._before = Pending()  # the state that an earlier run has left in the stream

    @property
    def keys(self) -> Keys | None:
        """The next keys whose rows are to be sent, None if there are none."""
        keys = self._waiting[0].keys if self._waiting else None
        return keys and keys._replace(values=keys.values[self._sent :])

    def add(self, requests: Iterable[Request]) -> None:
        """Adds new requests, except requests that an earlier run has processed."""
        self._waiting += [request for request in requests if not _is_taken(request, self._before)]
        # Only the requests that are read first after a start can have been processed by an earlier run. Later requests
        # are not compared with ``_before``: if the topic was created again, they have low offsets, and would seem to be
        # processed if an earlier version of cdc has stored no topic id.
        self._before = Pending()

    def next_state(self, pending: Pending, wants_table: Callable[[str, str], bool], log: ProgressLog) -> Pending | None:
        """Processes the next request, and returns the state of the copies with it. Returns None if no request waits, or
        if rows of keys must be sent first.

        Drops a request for keys of a table that the filters (``wants_table``) leave out.
        """
        if not self._waiting:
            return None
        request = self._waiting[0]
        if request.keys is not None:
            if not wants_table(*request.keys.table):
                log.filtered(request.keys.table)
                return self.leave_out(pending)
            early = next((each for each in self._waiting if each.keys is None and not self._is_early(each)), None)
            if early is None:
                return None
            self._early.add((early.topic_id, early.offset))
            state = _done(early, pending, wants_table, log)
            return state.taken_up(pending.requests, pending.requests_topic)
        self._waiting.popleft()
        if self._is_early(request):
            self._early.remove((request.topic_id, request.offset))
            return pending.taken_up(request.offset, request.topic_id)
        return _done(request, pending, wants_table, log)

    def after(self, pending: Pending, count: int) -> Pending:
        """Returns the state of the copies once the rows of the next ``count`` keys are in the stream."""
        request = self._waiting[0]
        assert request.keys is not None
        is_last = self._sent + count >= len(request.keys.values)
        repaired = pending.repaired()
        return repaired.taken_up(request.offset, request.topic_id) if is_last else repaired

    def sent(self, count: int) -> None:
        """Notes that the rows of the next ``count`` keys are in the stream."""
        self._sent += count
        keys = self._waiting[0].keys
        if keys is None or self._sent >= len(keys.values):
            self._end_first()

    def leave_out(self, pending: Pending) -> Pending:
        """Drops the rest of the first request, and returns the state after the request."""
        request = self._end_first()
        return pending.taken_up(request.offset, request.topic_id)

    def adopt(self, pending: Pending) -> None:
        """Begins again with the requests that an earlier run, which left the state ``pending``, has not processed."""
        self._before, self._sent = pending, 0
        self._early.clear()
        self._waiting = deque(request for request in self._waiting if not _is_taken(request, pending))

    def _is_early(self, request: Request) -> bool:
        return (request.topic_id, request.offset) in self._early

    def _end_first(self) -> Request:
        self._sent = 0
        return self._waiting.popleft()


def _done(request: Request, pending: Pending, wants_table: Callable[[str, str], bool], log: ProgressLog) -> Pending:
    """Returns the state after a request for tables is processed."""
    if request.stop:
        state = pending.stopped(request.tables, requests=request.offset, topic=request.topic_id)
        log.stopped(request.tables, pending, state)
        return state
    asked = pending.asked(request.tables, requests=request.offset, topic=request.topic_id)
    state = asked.wanted(wants_table)
    log.asked(len(request.tables), state)
    return state


def _is_taken(request: Request, pending: Pending) -> bool:
    return request.topic_id == pending.requests_topic and request.offset <= pending.requests


# Formats the status of copies for ``--copy-status``, and reads the leader's estimates of table sizes.

_RATE_SECONDS = 60.0  # seconds over which the speed is measured

_AT_ONCE = 500  # number of tables in one query


class Estimate(NamedTuple):
    """InnoDB's estimates from a sample of a table's pages: its number of ``rows``, and its ``size`` in bytes."""

    rows: int
    size: int


def estimates(cursor: Any, tables: Iterable[Table]) -> dict[Table, Estimate]:
    """Returns the estimates for the ``tables`` that exist. Raises pymysql's errors."""
    # Makes MySQL compute the estimates now: by default it stores estimates in its dictionary, and returns the stored
    # estimates for a day.
    if setting := copy_settings(cursor.connection).fresh_estimates:
        cursor.execute(f"SET SESSION {setting}")
    wanted, found = list(tables), {}
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        pairs = ", ".join(["(%s, %s)"] * len(some))
        cursor.execute(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES "
            f"WHERE (TABLE_SCHEMA, TABLE_NAME) IN ({pairs})",
            [name for table in some for name in table],
        )
        for database, table, rows, size in cursor.fetchall():
            found[database, table] = Estimate(rows or 0, size or 0)
    return found


class State(NamedTuple):
    """The state of the copies (``pending``) at the time ``at``, in seconds since 1970, and the sequence of the next
    record.
    """

    at: float
    pending: Pending
    next_sequence: int = 0


def follower_lines(places: Mapping[str, int], next_sequence: int) -> Iterator[str]:
    """Yields a line for each follower; ``places`` maps each follower to the sequence up to which it has applied
    everything.
    """
    for name, sequence in sorted(places.items()):
        behind = max(next_sequence - 1 - sequence, 0)
        yield f"follower {name}: " + (f"{behind:,} records to apply" if behind else "has applied all")


def lines(
    states: Sequence[State], asked: Sequence[Request], sizes: Mapping[Table, Estimate], *, now: float
) -> Iterator[str]:
    """Yields the lines of the status; ``states`` are newest first, ``sizes`` are the leader's estimates."""
    newest, pending = states[0], states[0].pending
    yield f"as of {now - newest.at:,.0f} s ago; how many rows tables have is the leader's estimate"
    if pending.structure:
        yield "the copy of the leader has not begun: its tables are not known yet"
    for table in _copied(states):
        yield f"{_name(table)}: done" if table in sizes else f"{_name(table)}: gone, or renamed"
    rate = _rate(states)
    for number, table in enumerate(pending.tables):
        size = sizes.get(table)
        asked_for = f"asked, about {size.rows:,} rows" if size else "asked"
        yield f"{_name(table)}: {asked_for if number else _progress(pending, size, rate)}"
    for request in asked:
        what = "to be stopped" if request.stop else "asked"
        yield from (f"{_name(table)}: {what}, no producer has taken it up yet" for table in request.tables)
        if (keys := request.keys) is not None:
            yield f"{_name(keys.table)}: {len(keys.values)} rows to be repaired, not done yet"
    if pending.active and rate and all(table in sizes for table in pending.tables):
        left = sum(sizes[table].rows for table in pending.tables) - pending.rows
        yield f"{len(pending.tables)} tables left, about {max(left, 0) / rate:,.0f} s at this speed"
    elif not pending.active and not asked:
        yield "nothing is to be copied"


def _progress(pending: Pending, size: Estimate | None, rate: float) -> str:
    if not size:
        return f"under way, {pending.rows:,} rows done"
    speed = ""
    if rate:
        megabytes = rate * size.size / max(size.rows, 1) / 1_000_000
        left = max(size.rows - pending.rows, 0) / rate
        speed = f", {rate:,.0f} rows/s, about {megabytes:,.1f} MB/s and {left:,.0f} s left"
    return f"under way, {pending.rows:,} of about {size.rows:,} rows{speed}"


def _rate(states: Sequence[State]) -> float:
    """Returns the number of rows of the current table that are copied per second; 0 if unknown."""
    newest, oldest = states[0], states[0]
    for state in states:
        same = state.pending.current == newest.pending.current and state.pending.rows <= oldest.pending.rows
        if not same or state.at < newest.at - _RATE_SECONDS:
            break
        oldest = state
    seconds = newest.at - oldest.at
    return (newest.pending.rows - oldest.pending.rows) / seconds if seconds > 0 else 0.0


def _copied(states: Sequence[State]) -> list[Table]:
    """Returns the tables that are no longer pending, oldest first, except tables whose copy was stopped by a
    request.
    """
    found: dict[Table, None] = {}
    for newer, older in reversed(list(pairwise(states))):
        taken = newer.pending.requests, newer.pending.requests_topic
        if taken != (older.pending.requests, older.pending.requests_topic):
            continue
        found |= dict.fromkeys(table for table in older.pending.tables if table not in newer.pending.tables)
    return [table for table in found if table not in states[0].pending.tables]


def _name(table: Table) -> str:
    return ".".join(table)
