"""Connects the producer's stages, which turn a leader's binlog into records, and commit these in Kafka transactions
together with the position after them.

    leader ── BinlogSource ── Decoder ── Interleaver ── Router ── KafkaSink ── topics and commit log
              raw events      changes    and chunks     messages  Kafka transactions

``Stream`` writes each change and decides when to commit. ``Progress`` keeps the position up to which the binlog is
read. After a lost connection everything is built again, from the newest entry of the commit log. Each stage is built
from the keys of the profile that it uses.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from cdc.config.debezium import DEBEZIUM
from cdc.config.filters import FilterChange, Filters
from cdc.config.profile import Profile
from cdc.errors import Disconnected, Fenced, UserError
from cdc.kafka.follower_places import FollowerPlaces
from cdc.model.commit_entry import Entry, PreparedXa
from cdc.model.position import Position
from cdc.model.server_version import TESTED, is_tested, logs_cascades
from cdc.producer import filter_changes, table_checks
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.leader import (
    Leader,
    at_leader,
    count_different,
    objects,
    oldest_table,
    update_triggers,
    while_leading,
)
from cdc.producer.binlog.source import Dumps
from cdc.producer.copy.copier import Copier
from cdc.producer.copy.interleaver import Interleaver
from cdc.producer.copy.reader import Reader
from cdc.producer.copy.requests import Requests
from cdc.producer.copy.row_selection import RowSelection
from cdc.producer.copy.selection import base_tables, definitions, require_copyable
from cdc.producer.copy.state import Pending
from cdc.producer.copy.structure import Structures
from cdc.producer.copy.throttle import Followers, LeaderLoad, Replicas, RowRate, Throttles
from cdc.producer.debezium.envelope import Envelopes
from cdc.producer.debezium.heartbeats import Heartbeats
from cdc.producer.debezium.row_window import RowWindow
from cdc.producer.decode import json_differences
from cdc.producer.decode.changes import Refused
from cdc.producer.decode.decoder import Decoder, XaTransactions
from cdc.producer.decode.query_event import LoggedStatement, with_copies, with_row_filters
from cdc.producer.decode.table_cache import TableCache
from cdc.producer.decode.table_map import CHARACTERS
from cdc.producer.decode.table_map import Table as TableMap
from cdc.producer.filter_changes import Asked
from cdc.producer.filter_checks import (
    former_filters,
    of_leader,
    require_masks,
    require_row_filters,
    warn_of_cascades,
)
from cdc.producer.flavor import mariadb_history, mariadb_leader
from cdc.producer.flavor.mariadb_events import Translator
from cdc.producer.flavor.mariadb_leader import inspect_leader
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.progress import Progress
from cdc.producer.resume import is_complete, require_same_names, starting_entry
from cdc.producer.sink.debezium_sink import DebeziumSink
from cdc.producer.sink.event_messages import EventMessages
from cdc.producer.sink.kafka_sink import KafkaSink, Replaced, await_successor
from cdc.producer.sink.kafka_transactions import BatchSize
from cdc.producer.sink.leader_columns import LeaderColumns
from cdc.producer.sink.router import Router
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.producer.skips import Skips
from cdc.producer.standby import Standby
from cdc.producer.stream import Stream
from cdc.producer.streams_beside import require_shares
from cdc.service.retry import Retry

__all__ = [
    "StartOptions",
    "as_on_leader",
    "asked",
    "find_leader",
    "make_copier",
    "make_debezium",
    "make_decoder",
    "make_dumps",
    "make_event_messages",
    "make_router",
    "run",
    "start_of",
    "topic_admin",
]


def find_leader(profile: Profile, problems: list[UserError] | None = None, *, before: Leader | None = None) -> Leader:
    """Queries the leader's present state; see ``inspect`` for ``problems``, and ``inspect_with`` for ``before``."""
    database = profile.database
    apply = profile.producer.partial_json == "apply"
    return inspect_leader(database.settings(), name=str(database), partial_json=apply, problems=problems, before=before)


def as_on_leader(profile: Profile, leader: Leader) -> Profile:
    """Returns the profile with its names spelled as in the leader's records: in lower case if the leader stores them
    so.
    """
    return profile.folded() if leader.folds_names else profile


def topic_admin(profile: Profile) -> TopicAdmin:
    kafka = profile.kafka
    topics = TopicAdmin(
        kafka.properties(),
        kafka.topics(),
        partitions=kafka.partitions,
        replicas=kafka.replicas,
        retention_hours=kafka.retention_hours,
        min_insync_replicas=kafka.min_insync_replicas,
    )
    topics.transactional = kafka.transactions
    topics.debezium_prefix = profile.debezium_prefix if DEBEZIUM in kafka.format else ""
    return topics


def make_dumps(profile: Profile, leader: Leader) -> Dumps:
    return Dumps(
        profile.database.settings(),
        leader,
        topic=profile.kafka.topic,
        resource=profile.mysql_resource_name,
        server_id=profile.producer.server_id,
        # While the leader writes nothing, only its heartbeats wake the producer to commit a sign of life.
        heartbeat_seconds=min(profile.producer.heartbeat_seconds, profile.producer.alive_seconds),
        translator=(lambda: Translator(leader.session).translate) if leader.session is not None else None,
    )


def start_of(
    profile: Profile, leader: Leader, newest: Entry | None, filters: dict[str, list[str]], *, stop: threading.Event
) -> Entry:
    """Returns the entry after which the producer continues, or the first entry of a new stream, after checking that it
    matches the leader.

    ``filters`` are in the form of ``Filters.listed``.
    """
    oldest = partial(oldest_table, profile.database.settings(), profile.filters, name=leader.name)
    complete = partial(is_complete, leader, make_dumps(profile, leader), stop, oldest)
    entry = starting_entry(leader, newest, start=profile.producer.start, filters=filters, complete=complete)
    if leader.session is None:
        return entry
    begins = newest is None or Pending.from_json(newest.copy).structure or Pending.from_json(entry.copy).structure
    return mariadb_history.with_history(of_leader(profile, leader), leader, entry, begins=begins)


def make_decoder(
    profile: Profile,
    leader: Leader,
    entry: Entry,
    filters: Filters,
    *,
    read_again: Callable[[PreparedXa], Iterable[RawEvent]],
    log: Callable[..., None],
) -> Decoder:
    """Builds the decoder for the events after ``entry`` that pass ``filters``. ``read_again`` returns the events of a
    prepared XA transaction.
    """
    # The rows in this leader's binlog might not fit the tables of another server, so no other server is queried about
    # tables.
    settings = of_leader(profile, leader)
    ask = partial(update_triggers, settings, name=leader.name)
    count = partial(count_different, settings, name=leader.name)
    applies, is_mariadb = profile.producer.partial_json == "apply", leader.session is not None
    own = mariadb_leader.OwnTypes(partial(mariadb_leader.present_types, settings, name=leader.name))
    return Decoder(
        TableCache(
            wants_table=filters.wants_table,
            collations=leader.collations,
            allow_differences=json_differences.unless_triggers(ask) if applies else json_differences.refuse,
            equal_members=table_checks.member_check(count),
            require_columns=_require_columns(profile, leader, filters),
            own_types=own.found if is_mariadb else lambda _: None,
            characters=mariadb_leader.MARIADB_CHARACTERS if is_mariadb else CHARACTERS,
            mask=profile.filters.mask if profile.filters.masks else None,
            condition=filters.condition,
        ),
        xa=XaTransactions(entry.prepared, read_again=read_again),
        log=log,
        other_events=profile.kafka.events,
        folds_names=leader.folds_names,
        rewrite=own.rewritten if is_mariadb else _rewrite(profile, leader, filters),
        replace_refused=_replace_refused(profile, leader),
    )


def _copies_unrepeatable(profile: Profile, leader: Leader) -> bool:
    return profile.producer.on_unrepeatable == "copy" and leader.shows_visible


def _condition_columns(profile: Profile, filters: Filters) -> Callable[[str, str], frozenset[str]]:
    """Returns a function that returns the columns by which rows of a table are left out now, by ``filters``, or from
    the change of the filters on.
    """

    def columns(database: str, table: str) -> frozenset[str]:
        both = filters.condition(database, table), profile.filters.condition(database, table)
        return frozenset[str]().union(*(condition.columns for condition in both if condition is not None))

    return columns


def _require_columns(profile: Profile, leader: Leader, filters: Filters) -> Callable[[TableMap], None]:
    """Returns a function that raises PromiseError for a table in the binlog whose columns can't be masked, or whose
    rows can't be left out, as in the profile.
    """
    settings, checks = of_leader(profile, leader), []
    if profile.filters.masks:
        checks.append(table_checks.mask_check(settings, profile.filters, name=leader.name))
    if profile.filters.rows or filters.rows:
        columns, logs = _condition_columns(profile, filters), logs_cascades(leader.version)
        checks.append(table_checks.condition_check(settings, columns, name=leader.name, logs_cascades=logs))

    def require(table: TableMap) -> None:
        for check in checks:
            check(table)

    return require


def _rewrite(profile: Profile, leader: Leader, filters: Filters) -> Callable[[LoggedStatement], LoggedStatement]:
    copies = with_copies if _copies_unrepeatable(profile, leader) else lambda statement: statement
    if not (profile.filters.rows or filters.rows):
        return copies
    columns = _condition_columns(profile, filters)
    return lambda statement: copies(with_row_filters(statement, columns))


def _replace_refused(profile: Profile, leader: Leader) -> Callable[[Refused], Refused]:
    if not _copies_unrepeatable(profile, leader):
        return lambda refused: refused
    return table_checks.UnreadableRows(
        of_leader(profile, leader), profile.filters, name=leader.name, logs_cascades=logs_cascades(leader.version),
        images=leader.session is None,
    ).with_copies  # fmt: skip


def make_router(profile: Profile, entry: Entry, filters: Filters, skips: Skips) -> Router:
    """Builds the router for the changes after ``entry`` that pass ``filters``."""
    made = Router(
        resource=profile.mysql_resource_name,
        topics=profile.kafka.topics(),
        filters=filters,
        record_bytes=profile.producer.record_bytes,
        next_sequence=entry.next_sequence,
        partial=entry.partial,
    )
    made.skips = skips
    made.incomplete = Pending.from_json(entry.copy).incomplete
    return made


def asked(profile: Profile, leader: Leader) -> Asked:
    """Builds the queries that are sent to ``leader`` if the filters were changed."""
    settings = of_leader(profile, leader)

    def require(widened: FilterChange) -> None:
        require_copyable(leader, definitions(settings, leader.name, base_tables(settings, leader.name, widened)))

    return Asked(partial(objects, settings, name=leader.name), require)


def make_copier(
    profile: Profile,
    leader: Leader,
    entry: Entry,
    widened: FilterChange | None,
    *,
    rate: RowRate,
    log: Callable[..., None],
) -> Copier:
    """Builds the copier for the tables that ``entry`` lists. ``widened`` is a change of the filters that includes more
    objects: the copier first has these objects created, and then copies their tables, too. ``rate`` limits how fast
    rows are read.
    """
    settings = profile.database.settings()
    # Rows that a SELECT on another server returns can't be compared with this leader's binlog.
    leader_settings = of_leader(profile, leader)
    limits = profile.producer
    followers = _followers(profile, log)

    def open_reader() -> Reader:
        structures = Structures(leader_settings, leader, widened or profile.filters)
        throttles = Throttles(
            rate=rate,
            followers=followers,
            replicas=Replicas(limits.replica_addresses(), settings, seconds=limits.copy_pause_replica_seconds, log=log),
            load=LeaderLoad(limits.copy_pause_threads_running, log=log),
        )
        filters = profile.filters
        return Reader(
            leader_settings, name=leader.name, throttles=throttles, read_structure=structures.read,
            mask=filters.mask if filters.masks else None,
            selection=RowSelection(filters.condition, logs_cascades=logs_cascades(leader.version)),
        )  # fmt: skip

    pending, kafka = Pending.from_json(entry.copy), profile.kafka
    requests = Requests(kafka.properties(), kafka.topics().copies, resource=profile.mysql_resource_name, taken=pending)
    requests.start()
    wants_table = (widened.before if widened else profile.filters).wants_table
    return Copier(
        pending, requests=requests, open_reader=open_reader, wants_table=wants_table, log=log, widened=widened
    )


def _followers(profile: Profile, log: Callable[..., None]) -> Followers:
    kafka = profile.kafka
    places = FollowerPlaces(kafka.properties(), resource=profile.mysql_resource_name, topic=kafka.topic)
    return Followers(places, limit=profile.producer.copy_ahead_bytes, log=log)


def make_debezium(profile: Profile, topics: TopicAdmin, entry: Entry | None) -> DebeziumSink:
    """Builds the writer of Debezium's messages of the records after ``entry``."""
    partial = entry.partial if entry else None
    committed = (partial.transaction, entry.debezium_partial) if entry and partial else ("", {})
    prefix, modes, merges = profile.debezium_prefix, profile.debezium, profile.producer.dedupe_ms > 0
    return DebeziumSink(
        topics,
        Envelopes(prefix=prefix, modes=modes, committed=committed, merges=merges),
        resource=profile.mysql_resource_name,
        next_sequence=entry.next_sequence if entry else 0,
        newest=entry.debezium if entry else {},
        heartbeats=Heartbeats(prefix, interval_ms=modes.heartbeat_interval_ms, schemas=modes.schemas_enable),
        window=RowWindow(changed_only=modes.changed_columns_only) if merges else None,
    )


def _leader_columns(profile: Profile, leader: Leader) -> LeaderColumns:
    """Returns the queries for what Debezium's messages contain of a table and no binlog does."""
    mask = profile.filters.mask
    return LeaderColumns(
        of_leader(profile, leader),
        leader.name,
        is_mariadb=leader.session is not None,
        is_masked=lambda table, column: mask(*table, column) is not None,
        is_gone=lambda table, column: profile.filters.removes(*table, column),
    )


def make_event_messages(profile: Profile, shown: Position | None) -> EventMessages:
    """Returns the writer of messages about binlog events after ``shown``; the writer is used only if the decoder yields
    such events.
    """
    return EventMessages(resource=profile.mysql_resource_name, topic=profile.kafka.topics().events, shown=shown)


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The options of a start: ``instance``, the name of this process, and the options of its command line. ``skips``
    decides which refused events are skipped, ``copy_rate`` how fast tables are copied.
    """

    instance: str
    until_current: bool = False
    accept_filters: bool = False
    skips: Skips = field(default_factory=Skips)
    copy_rate: RowRate = field(default_factory=RowRate)


def run(
    profile: Profile,
    *,
    options: StartOptions,
    retry: Retry,
    metrics: ProducerMetrics,
    stop: threading.Event,
    log: Callable[..., None],
) -> None:
    """Replicates until ``stop`` is set, or up to the leader's position at the start; reconnects to servers that go
    away.

    Raises UserError, PromiseError and ServerGone.
    """
    topics = topic_admin(profile)
    batch_size = BatchSize(profile.producer.commit_bytes, profile.producer.message_bytes)
    producer = _Producer(profile, options, topics, batch_size, retry, metrics, stop, log)
    target: Position | None = None
    with closing(Standby(profile, topics, metrics, retry, log)) as standby:
        while not stop.is_set():
            try:
                if standby.waited(stop):
                    continue
                producer = replace(producer, profile=at_leader(profile))
                leader = producer.leader()
                if options.until_current:
                    target = target or leader.position
                with closing(producer.open_sink()) as sink:
                    producer.named_as(leader).replicate(leader, sink, target)
                if target is not None and not stop.is_set():
                    options.skips.check_end(target)
                return
            except Disconnected as error:
                if isinstance(error, Fenced):
                    await_successor(topics, resource=profile.mysql_resource_name, instance=options.instance, stop=stop)
                retry.wait(error)
            except Replaced:
                if not standby.has_lost(stop):
                    raise


@dataclass(frozen=True, slots=True)
class _Producer:
    """The parts of a producer that outlive a connection."""

    profile: Profile
    options: StartOptions
    topics: TopicAdmin
    batch_size: BatchSize
    retry: Retry
    metrics: ProducerMetrics
    stop: threading.Event
    log: Callable[..., None]

    def leader(self, before: Leader | None = None) -> Leader:
        return find_leader(self.profile, before=before)

    def named_as(self, leader: Leader) -> "_Producer":
        """Returns a producer with the same settings, but with the names in its profile spelled as in the leader's
        records.
        """
        return replace(self, profile=as_on_leader(self.profile, leader))

    def open_sink(self) -> KafkaSink:
        """Connects to Kafka; from then on no other producer of this leader can write."""
        sink = KafkaSink.open(
            self.topics,
            self.batch_size,
            resource=self.profile.mysql_resource_name,
            instance=self.options.instance,
            reopening=self.retry.succeeded,
            stop=self.stop,
        )
        if sink.rolled_back:
            self.log("rolled back a Kafka transaction that had no end", topics=",".join(sink.rolled_back))
        if sink.rewritten:
            self.log(
                "writing records again that the brokers have lost or rolled back", records=sink.rewritten,
                after=sink.entry.next_sequence - 1 if sink.entry else -1,
            )  # fmt: skip
        if DEBEZIUM in self.profile.kafka.format:
            sink.debezium = make_debezium(self.profile, self.topics, sink.entry)
        self.retry.answered()
        return sink

    def replicate(self, leader: Leader, sink: KafkaSink, target: Position | None) -> None:
        """Replicates the changes after the newest entry of the commit log until ``target``, ``stop`` or a lost
        connection.
        """
        if sink.entry is not None and sink.entry.instance != self.options.instance:
            # Another producer may have committed entries until it was fenced just now: the leader's state must be newer
            # than these entries, so it is queried again.
            leader = self.leader(leader)
        require_masks(self.profile, leader, log=self.log)
        require_row_filters(self.profile, leader, newest=sink.entry, log=self.log)
        warn_of_cascades(self.profile, leader, log=self.log)
        require_shares(self.profile, leader, log=self.log)
        if sink.debezium is not None:
            sink.debezium.leader = _leader_columns(self.profile, leader)
        entry, widened = self._entry(leader, sink.entry)
        sink.start(entry)
        self.retry.connected()
        if not entry.prepared:
            self.options.skips.check_passed(entry.position)
        progress = Progress(entry, alive_seconds=self.profile.producer.alive_seconds)
        binlog = make_dumps(self.profile, leader)
        read_again = lambda xa: binlog.read_again(xa, progress.read_without(xa.gtid), self.stop)  # noqa: E731
        filters = widened.before if widened else self.profile.filters
        decoder = make_decoder(self.profile, leader, entry, filters, read_again=read_again, log=self.log)
        router = make_router(self.profile, entry, filters, self.options.skips)
        messages = make_event_messages(self.profile, sink.shown)
        copier = make_copier(self.profile, leader, entry, widened, rate=self.options.copy_rate, log=self.log)
        copies = Interleaver(
            copier, decoder=decoder, progress=progress, router=router, sink=sink, count=self.metrics.copied
        )
        limits, pause = self.profile.producer, self.metrics.pause
        stream = Stream(decoder, router, sink, progress, self.metrics, limits, messages, pause)
        until = lambda: target is not None and progress.has_reached(target) and not copier.active  # noqa: E731
        noted = filter_changes.former_filters_named(lambda: copier.widened is not None)
        with closing(copier), binlog.follow(entry) as source, noted:
            self.metrics.connected(source, entry, copying=copier.copying)
            self._log_begin(leader, entry)
            received = while_leading(source.chunks(self.stop, lambda: copier.wake, stream.window_end), self.profile)
            with self._counting_commits(sink, entry):
                stream.replicate(copies.changes(received), until=until, stop=self.stop)

    def _log_begin(self, leader: Leader, entry: Entry) -> None:
        at = {"position": entry.position, "gtids": entry.gtid_set}
        self.log("replicating", leader=leader.name, version=leader.version, **at)
        if not is_tested(leader.version):
            self.log("the leader's version is none of those tested", version=leader.version, tested=", ".join(TESTED))

    @contextmanager
    def _counting_commits(self, sink: KafkaSink, since: Entry) -> Iterator[None]:
        """Lets a failure in the block count as the first one if records after ``since`` were committed before it."""
        try:
            yield
        finally:
            if sink.entry is not None and sink.entry.next_sequence > since.next_sequence:
                self.retry.success()

    def _entry(self, leader: Leader, newest: Entry | None) -> tuple[Entry, FilterChange | None]:
        """Returns the entry to continue after, with this process's name and filters; ``newest`` is the commit log's
        newest entry.

        Also returns the change of the filters if objects that the filters newly include must be copied, else None.
        Until the copier has these objects created, the filters of ``newest`` stay in force.
        """
        profile, filters = self.profile, self.profile.filters.listed()
        change = filter_changes.change_of(
            former_filters(newest),
            profile.filters,
            ask=asked(profile, leader),
            accepted=self.options.accept_filters,
            log=self.log,
        )
        if change.widened is not None:
            filters = change.widened.before.listed()
        entry = start_of(profile, leader, newest, filters, stop=self.stop)
        if change.lets_in and change.widened is None:
            # The topic lacks the earlier changes of objects that pass the filters only from now on. So a base copy with
            # which a new follower begins must contain all transactions up to here (``origin``).
            entry = replace(entry, origin=entry.gtid_set or entry.origin)
        require_same_names(leader, newest)
        entry = replace(entry, server_version=leader.version, folds_names=leader.folds_names)
        return replace(entry, instance=self.options.instance, filters=filters), change.widened
