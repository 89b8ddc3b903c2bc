"""The producer's path: leader binlog → decoder → router → Kafka, and again from the commit log after a lost server."""

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

from cdc import __version__
from cdc.errors import Disconnected, PromiseError
from cdc.position import Position
from cdc.producer import pace, preflight
from cdc.producer.activity import Activity
from cdc.producer.binlog_events import BinlogEvents
from cdc.producer.changes import Begin, Change, Commit, Idle, Rows, Statement, Whole
from cdc.producer.commit_log import Entry
from cdc.producer.decoder import Decoder
from cdc.producer.dumps import Dumps
from cdc.producer.events import RawEvent
from cdc.producer.kafka_sink import KafkaSink
from cdc.producer.kafka_topics import KafkaTopics
from cdc.producer.preflight import Leader
from cdc.producer.progress import Progress
from cdc.producer.router import Router
from cdc.producer.xa import Xa
from cdc.profile import Producer as Limits
from cdc.profile import Profile
from cdc.retry import Retry

__all__ = ["run"]

Log = Callable[..., None]


def run(
    profile: Profile,
    *,
    instance: str,
    retry: Retry,
    activity: Activity,
    stop: threading.Event,
    until_current: bool,
    log: Log,
) -> None:
    """Replicate until ``stop`` is set, or up to the leader's position at the start; reconnect where servers go away.

    Raises UserError, PromiseError, ServerGone.
    """
    target: Position | None = None
    topics = _topics(profile)
    while not stop.is_set():
        try:
            leader = preflight.inspect(profile.database.settings(), name=str(profile.database))
            if until_current:
                target = target or leader.position
            _session(
                profile,
                leader,
                topics,
                instance=instance,
                retry=retry,
                activity=activity,
                target=target,
                stop=stop,
                log=log,
            )
            return
        except Disconnected as error:
            retry.wait(error)


def _session(
    profile: Profile,
    leader: Leader,
    topics: KafkaTopics,
    *,
    instance: str,
    retry: Retry,
    activity: Activity,
    target: Position | None,
    stop: threading.Event,
    log: Log,
) -> None:
    """One connection to each server, from the commit log's last entry on."""
    sink = KafkaSink.open(
        profile.kafka.properties(),
        topics,
        resource=profile.mysql_resource_name,
        instance=instance,
        reopening=retry.succeeded,
        stop=stop,
    )
    with closing(sink):
        if sink.rolled_back:
            log("rolled back a transaction that Kafka left without its end", topics=",".join(sink.rolled_back))
        cut = _cut(profile)
        entry = preflight.starting_entry(leader, sink.entry, start=profile.producer.start, cut=cut)
        entry = replace(entry, instance=instance)
        if sink.entry is None or sink.entry.server_uuid != entry.server_uuid:
            sink.shown = None  # another server has positions of its own
        sink.commit(entry)
        retry.connected()
        router, progress = _router(profile, entry), Progress(entry, cut=cut)
        dumps = _dumps(profile, leader)
        xa = Xa(
            entry.prepared, read_again=lambda place: dumps.read_again(place, progress.read_without(place.gtid), stop)
        )
        decoder = Decoder(wants_table=profile.filters.wants_table, collations=leader.collations, xa=xa, log=log)
        commit = partial(_commit, sink, decoder, router, progress, activity)
        with dumps.follow(entry) as source, _whole_transactions_out(router, progress, commit):
            activity.connected(source, entry)
            log(
                "replicating", leader=leader.name, version=leader.version, position=entry.position, gtids=entry.gtid_set
            )
            chunks: Iterable[list[RawEvent]] = source.chunks(stop)
            if profile.kafka.events:
                chunks = _shown(chunks, sink, profile)
            limits = profile.producer
            _replicate(
                decoder.decode(chunks),
                router,
                sink,
                progress,
                activity,
                commit=commit,
                limits=limits,
                target=target,
                stop=stop,
            )


def _shown(chunks: Iterable[list[RawEvent]], sink: KafkaSink, profile: Profile) -> Iterator[list[RawEvent]]:
    """Passes the events on; those of no record are shown first, in the Kafka transactions of the records."""
    messages = BinlogEvents(resource=profile.mysql_resource_name, topic=profile.kafka.topics().events, shown=sink.shown)
    for events in chunks:
        for event in events:
            message = messages.message(event)
            if message is not None:
                sink.show(message, event.position)
        yield events


def _replicate(
    changes: Iterable[Change],
    router: Router,
    sink: KafkaSink,
    progress: Progress,
    activity: Activity,
    *,
    commit: Callable[[int], None],
    limits: Limits,
    target: Position | None,
    stop: threading.Event,
) -> None:
    for change in changes:
        _route(change, router, sink)
        progress.note(change)
        if pace.due(change, sink, progress, limits):
            records = sink.records
            commit(router.sent)
            if isinstance(change, Idle):
                stop.wait(pace.rest(records))
        if isinstance(change, Idle):
            sink.check()
            if progress.between_transactions:
                activity.drained()
        if target is not None and progress.has_reached(target):
            return


def _route(change: Change, router: Router, sink: KafkaSink) -> None:
    match change:
        case Whole():
            sink.write(router.whole(change))
        case Begin():
            router.begin(change)
        case Rows():
            sink.write(router.rows(change))
        case Statement():
            sink.write(router.statement(change))
        case Commit():
            sink.write(router.commit())


def _commit(
    sink: KafkaSink, decoder: Decoder, router: Router, progress: Progress, activity: Activity, sent: int
) -> None:
    """Commit what is written, with the place after it; ``sent`` records are of a transaction that is still open."""
    size, begun = sink.bytes, time.monotonic()
    entry = progress.entry(next_sequence=router.next_sequence, sent=sent)
    sink.commit(entry)
    activity.committed(
        entry,
        size=size,
        seconds=time.monotonic() - begun,
        through_us=progress.through_us,
        transactions=progress.transactions,
        filtered=decoder.filtered + router.filtered,
    )


@contextmanager
def _whole_transactions_out(router: Router, progress: Progress, commit: Callable[[int], None]) -> Iterator[None]:
    """At the end, in order or at what cannot be replicated, commit the transactions that are through."""
    try:
        yield
    except PromiseError as reason:
        try:
            _commit_whole(router, progress, commit)
        except Disconnected:
            # What stops the stream is told; what could not be committed is read again the next time.
            raise reason from None
        raise
    _commit_whole(router, progress, commit)


def _commit_whole(router: Router, progress: Progress, commit: Callable[[int], None]) -> None:
    # Records of an open transaction that already left cannot be told apart: then all is read again the next time.
    if not router.sent:
        commit(0)


def _cut(profile: Profile) -> str:
    """Names what decides how a transaction is cut into records."""
    text = f"{__version__} {profile.producer.record_bytes} {profile.filters!r}"
    return f"{zlib.crc32(text.encode()):08x}"


def _topics(profile: Profile) -> KafkaTopics:
    kafka = profile.kafka
    return KafkaTopics(
        kafka.properties(),
        kafka.topics(),
        partitions=kafka.partitions,
        replicas=kafka.replicas,
        retention_hours=kafka.retention_hours,
    )


def _router(profile: Profile, entry: Entry) -> Router:
    return Router(
        resource=profile.mysql_resource_name,
        topics=profile.kafka.topics(),
        filters=profile.filters,
        record_bytes=profile.producer.record_bytes,
        next_sequence=entry.next_sequence,
        half_out=(entry.partial.transaction, entry.partial.records) if entry.partial else None,
    )


def _dumps(profile: Profile, leader: Leader) -> Dumps:
    return Dumps(
        profile.database.settings(),
        leader,
        topic=profile.kafka.topic,
        resource=profile.mysql_resource_name,
        server_id=profile.producer.server_id,
        heartbeat_seconds=profile.producer.heartbeat_seconds,
    )
