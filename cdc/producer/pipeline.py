"""The producer's whole path: a leader's binlog in; records and, in the same Kafka transactions, the position out.

    leader ── BinlogSource ── Decoder ── Router ── KafkaSink ── topics and commit log
              raw events      changes    messages  Kafka transactions

``Stream`` passes each change along this path and decides when to commit. ``Progress`` counts how far the log is read.
After a lost connection everything is built again, from the newest entry of the commit log.
"""

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

from cdc.config.filters import Widened
from cdc.config.profile import Profile
from cdc.errors import Disconnected, Fenced
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer import filter_changes, stages
from cdc.producer.binlog.leader import Leader
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.progress import Progress
from cdc.producer.resume import starting_entry
from cdc.producer.sink.batch_size import BatchSize
from cdc.producer.sink.kafka_sink import KafkaSink, await_successor
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.producer.skips import Skips
from cdc.producer.stream import Stream
from cdc.service.retry import Retry

__all__ = ["StartOptions", "run"]


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The name of this process, ``instance``, and the options of its command line; ``skips``: events not to send."""

    instance: str
    until_current: bool = False
    accept_filters: bool = False
    skips: Skips = field(default_factory=Skips)


def run(
    profile: Profile,
    *,
    options: StartOptions,
    retry: Retry,
    metrics: ProducerMetrics,
    stop: threading.Event,
    log: Callable[..., None],
) -> None:
    """Replicate until ``stop`` is set, or up to the leader's position at the start; reconnect to servers that go away.

    Raises UserError, PromiseError, ServerGone.
    """
    topics = stages.topic_admin(profile)
    batch_size = BatchSize(profile.producer.commit_bytes, profile.producer.message_bytes)
    producer = _Producer(profile, options, topics, batch_size, retry, metrics, stop, log)
    target: Position | None = None
    while not stop.is_set():
        try:
            leader = producer.leader()
            if options.until_current:
                target = target or leader.position
            with closing(producer.open_sink()) as sink:
                producer.replicate(leader, sink, target)
            if target is not None and not stop.is_set():
                options.skips.check_end(target)
            return
        except Disconnected as error:
            if isinstance(error, Fenced):
                await_successor(topics, resource=profile.mysql_resource_name, instance=options.instance, stop=stop)
            retry.wait(error)


@dataclass(frozen=True, slots=True)
class _Producer:
    """What stays the same from one connection to the next."""

    profile: Profile
    options: StartOptions
    topics: TopicAdmin
    batch_size: BatchSize
    retry: Retry
    metrics: ProducerMetrics
    stop: threading.Event
    log: Callable[..., None]

    def leader(self) -> Leader:
        return stages.leader(self.profile)

    def open_sink(self) -> KafkaSink:
        """Connect to Kafka; from then on no other producer of this leader can write."""
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
        self.retry.answered()
        return sink

    def replicate(self, leader: Leader, sink: KafkaSink, target: Position | None) -> None:
        """Replicate what follows the newest entry of the commit log until ``target``, ``stop`` or a lost connection."""
        if sink.entry is not None and sink.entry.instance != self.options.instance:
            # Another producer may have committed until it was fenced just now: the leader's state must be newer.
            leader = self.leader()
        entry, widened = self._entry(leader, sink.entry)
        sink.start(entry)
        self.retry.connected()
        if not entry.prepared:
            self.options.skips.check_passed(entry.position)
        progress = Progress(entry, alive_seconds=self.profile.producer.alive_seconds)
        dumps = stages.dumps(self.profile, leader)
        read_again = lambda xa: dumps.read_again(xa, progress.read_without(xa.gtid), self.stop)  # noqa: E731
        filters = widened.then if widened else self.profile.filters
        decoder = stages.decoder(self.profile, leader, entry, filters, read_again=read_again, log=self.log)
        router = stages.router(self.profile, entry, filters, self.options.skips)
        messages = stages.event_messages(self.profile, sink.shown)
        copier = stages.copier(self.profile, leader, entry, widened, log=self.log)
        stream = Stream(decoder, router, sink, progress, self.metrics, self.profile.producer, messages, copier)
        with closing(copier), dumps.follow(entry) as source:
            self.metrics.connected(source, entry, copying=copier.copying)
            at = {"position": entry.position, "gtids": entry.gtid_set}
            self.log("replicating", leader=leader.name, version=leader.version, **at)
            stream.replicate(source.chunks(self.stop, lambda: copier.wake), target=target, stop=self.stop)

    def _entry(self, leader: Leader, newest: Entry | None) -> tuple[Entry, Widened | None]:
        """The entry to continue after, with this process's name and filters; ``newest`` is that of the commit log.

        With what the filters let in now, if it is to be copied: until then those of ``newest`` hold.
        """
        profile, filters = self.profile, self.profile.filters.listed()
        change = filter_changes.change_of(
            stages.former_filters(newest),
            profile.filters,
            ask=stages.asked(profile, leader),
            accepted=self.options.accept_filters,
            log=self.log,
        )
        if change.widened is not None:
            filters = change.widened.then.listed()
        entry = starting_entry(leader, newest, start=profile.producer.start, filters=filters)
        if change.lets_in and change.widened is None:
            # Of what passes from now on the topic begins here: a copy of the leader must have all before.
            entry = replace(entry, origin=entry.gtid_set or entry.origin)
        return replace(entry, instance=self.options.instance, filters=filters), change.widened
