"""The producer's path: leader binlog → decoder → router → Kafka, and again from the commit log after a lost server."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

from cdc.config.profile import Profile
from cdc.errors import Disconnected, Fenced
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer import filter_changes
from cdc.producer.binlog.dump import Dumps
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction, flat
from cdc.producer.binlog.leader import Leader, inspect, objects
from cdc.producer.decode.decoder import Decoder
from cdc.producer.decode.xa import XaTransactions
from cdc.producer.metrics import Activity
from cdc.producer.progress import Progress
from cdc.producer.resume import starting_entry
from cdc.producer.sink.batch_size import Batch
from cdc.producer.sink.event_messages import BinlogEvents
from cdc.producer.sink.kafka_sink import KafkaSink, await_successor
from cdc.producer.sink.router import Router
from cdc.producer.sink.skips import Skips
from cdc.producer.sink.topic_admin import KafkaTopics
from cdc.producer.stream import Stream
from cdc.service.retry import Retry

__all__ = ["Started", "run"]

Log = Callable[..., None]
Chunk = list[RawEvent | SimpleTransaction]


@dataclass(frozen=True, slots=True)
class Started:
    """How this process was started: ``instance`` is its name, the others are what the command line asked for, such as
    which refused events the stream may do without."""

    instance: str
    until_current: bool = False
    accept_filters: bool = False
    skips: Skips = field(default_factory=Skips)


def run(
    profile: Profile,
    *,
    started: Started,
    retry: Retry,
    activity: Activity,
    stop: threading.Event,
    log: Log,
) -> None:
    """Replicate until ``stop`` is set, or up to the leader's position at the start; reconnect where servers go away.

    Raises UserError, PromiseError, ServerGone.
    """
    target: Position | None = None
    topics, batch = _topics(profile), Batch(profile.producer.commit_bytes)
    while not stop.is_set():
        try:
            leader = inspect(profile.database.settings(), name=str(profile.database))
            if started.until_current:
                target = target or leader.position
            _session(
                profile, leader, topics, activity, batch=batch,
                started=started, retry=retry, target=target, stop=stop, log=log,
            )  # fmt: skip
            if target is not None and not stop.is_set():
                started.skips.check_end(target)
            return
        except Disconnected as error:
            if isinstance(error, Fenced):
                await_successor(topics, resource=profile.mysql_resource_name, instance=started.instance, stop=stop)
            retry.wait(error)


def _session(
    profile: Profile,
    leader: Leader,
    topics: KafkaTopics,
    activity: Activity,
    *,
    batch: Batch,
    started: Started,
    retry: Retry,
    target: Position | None,
    stop: threading.Event,
    log: Log,
) -> None:
    """One connection to each server, from the commit log's last entry on."""
    sink = KafkaSink.open(
        profile.kafka.properties(),
        topics,
        resource=profile.mysql_resource_name,
        instance=started.instance,
        reopening=retry.succeeded,
        batch=batch,
        stop=stop,
    )
    with closing(sink):
        if sink.rolled_back:
            log("rolled back a transaction that Kafka left without its end", topics=",".join(sink.rolled_back))
        retry.answered()
        if sink.entry is not None and sink.entry.instance != started.instance:
            # Another producer may have gone on until it was fenced just now: the leader must be asked after that.
            leader = inspect(profile.database.settings(), name=str(profile.database))
        entry = _start(profile, leader, topics, sink, started=started, log=log)
        retry.connected()
        if not entry.prepared:
            started.skips.check_passed(entry.position)
        progress = Progress(entry, alive_seconds=profile.producer.alive_seconds)
        router, dumps = _router(profile, entry), _dumps(profile, leader)
        router.skips = started.skips
        xa = XaTransactions(
            entry.prepared, read_again=lambda p: dumps.read_again(p, progress.read_without(p.gtid), stop)
        )
        decoder = Decoder(wants_table=profile.filters.wants_table, collations=leader.collations, xa=xa, log=log)
        stream = Stream(decoder, router, sink, progress, activity, profile.producer)
        with dumps.follow(entry) as source:
            activity.connected(source, entry)
            log(
                "replicating", leader=leader.name, version=leader.version, position=entry.position, gtids=entry.gtid_set
            )
            chunks: Iterable[Chunk] = source.chunks(stop)
            if profile.kafka.events:
                chunks = _shown(chunks, sink, profile)
            stream.replicate(chunks, target=target, stop=stop)


def _start(
    profile: Profile, leader: Leader, topics: KafkaTopics, sink: KafkaSink, *, started: Started, log: Log
) -> Entry:
    """The entry to go on from, committed anew under this process's name and with its filters."""
    entry = starting_entry(leader, sink.entry, start=profile.producer.start, filters=profile.filters.listed())
    if sink.entry is None or sink.entry.server_uuid != entry.server_uuid:
        sink.shown = None  # another server has positions of its own
    if entry.filters is not None:
        database = profile.database
        filter_changes.require_accepted(
            entry.filters, profile.filters, accepted=started.accept_filters, log=log,
            ask=lambda: objects(database.settings(), name=str(database)),
        )  # fmt: skip
    entry = replace(entry, instance=started.instance, filters=profile.filters.listed())
    adopted = sink.entry is None
    sink.commit(entry)
    if adopted:
        topics.require_alone(profile.mysql_resource_name)
    return entry


def _shown(chunks: Iterable[Chunk], sink: KafkaSink, profile: Profile) -> Iterator[Chunk]:
    """Passes the events on; those of no record are shown first, in the Kafka transactions of the records."""
    messages = BinlogEvents(resource=profile.mysql_resource_name, topic=profile.kafka.topics().events, shown=sink.shown)
    for events in chunks:
        for event in flat(events):
            message = messages.message(event)
            if message is not None:
                sink.show(message, event.position)
        yield events


def _topics(profile: Profile) -> KafkaTopics:
    kafka = profile.kafka
    return KafkaTopics(
        kafka.properties(),
        kafka.topics(),
        partitions=kafka.partitions,
        replicas=kafka.replicas,
        retention_hours=kafka.retention_hours,
        min_insync_replicas=kafka.min_insync_replicas,
    )


def _router(profile: Profile, entry: Entry) -> Router:
    return Router(
        resource=profile.mysql_resource_name,
        topics=profile.kafka.topics(),
        filters=profile.filters,
        record_bytes=profile.producer.record_bytes,
        next_sequence=entry.next_sequence,
        half_out=entry.partial,
    )


def _dumps(profile: Profile, leader: Leader) -> Dumps:
    return Dumps(
        profile.database.settings(),
        leader,
        topic=profile.kafka.topic,
        resource=profile.mysql_resource_name,
        server_id=profile.producer.server_id,
        # A quiet leader's heartbeat is also what wakes us for a sign of life.
        heartbeat_seconds=min(profile.producer.heartbeat_seconds, profile.producer.alive_seconds),
    )
