"""Connects the stages of cdc-seed: folds the leader's topics, and loads the remaining rows into a follower."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import takewhile

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.config.profile import Profile
from cdc.consumer.apply.applier import Reread
from cdc.consumer.errors import Stopped
from cdc.consumer.scope import listed, replicated
from cdc.consumer.source.assembler import Batch, Transaction, batches
from cdc.consumer.source.reader import Topic
from cdc.consumer.source.renaming import Renaming
from cdc.consumer.startup import Stages, Startup
from cdc.consumer.state.base_copy import BaseCopy, Seed
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.skips import Skips
from cdc.errors import UserError
from cdc.model.names import Uri
from cdc.seed.fold import Line, lines
from cdc.seed.follower import SeedBeginning, finish, seed_in
from cdc.seed.stream import NO_DATABASE, Stream, places, read_statements, require_one_stream, require_whole
from cdc.seed.tables import parts_of
from cdc.service.logs import event
from cdc.service.retry import Retry
from cdc.spark.frames.history import Moment, read_history, sequence_at
from cdc.spark.frames.messages import Source
from cdc.spark.input.small_data import set_tiny
from cdc.spark.job.output import raised_message
from cdc.spark.job.session import configure_for

__all__ = ["Loaded", "run"]

_LOG = logging.getLogger("cdc.seed")
_LOG_SECONDS = 5.0
_ROWS_OF_A_RECORD = 20


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a run. The follower equals the leader after ``sequence``; the run loaded ``rows`` rows and executed
    ``statements`` statements.
    """

    sequence: int
    rows: int
    statements: int


def run(
    spark: Callable[[], SparkSession],
    leader: Profile,
    follower: Profile,
    *,
    at: Moment,
    retry: Retry,
    stop: threading.Event,
) -> Loaded | None:
    """Makes an empty follower equal to the leader at the moment ``at``, or continues a load that was stopped. Returns
    None if ``stop`` is set before the load is complete.

    ``leader`` is the profile of cdc-producer, ``follower`` is the profile of cdc-consumer. ``spark`` starts Spark.
    Raises UserError, PromiseError or ServerGone; the next start continues where this run stopped.
    """
    require_one_stream(leader, follower)
    # No other client has written to the follower. So rows need not be compared, and there are no conflicts to resolve.
    settings = replace(follower.consumer, on_conflict="stop", on_refused="stop", before_images="ignore")
    follower = replace(follower, consumer=settings)
    try:
        with ExitStack() as opened:
            return _load(Startup.open(follower, opened, retry=retry, stop=stop), spark, leader, at)
    except Stopped:
        return None


def _load(startup: Startup, spark: Callable[[], SparkSession], leader: Profile, at: Moment) -> Loaded | None:
    follower, session = startup.profile, startup.session
    resource = follower.mysql_resource_name
    begun = seed_in(session, resource, name=str(follower.database))
    topic = startup.topic(wait=False)
    if topic is None:
        return None  # the program was stopped while the brokers did not answer
    source = Source.of(spark(), leader)
    require_whole(source)
    configure_for(source.spark, source.span.size)
    # The rows have not been counted yet, so their number is estimated from the number of records, each of which may
    # contain hundreds of rows.
    set_tiny(source.spark, records=source.span.size * _ROWS_OF_A_RECORD)
    startup.require_same_names(leader_folds=source.folds_names)
    seed = _seed(begun, source, at, listed(follower))
    stream = _stream(startup, source, topic, seed.upto)
    checkpoint, copied = startup.checkpoint(
        topic, attachment=SeedBeginning(resource, seed, stream.chunks), continues=False
    )
    event(_LOG, "seed", follower=str(follower.database), upto=seed.upto, after=checkpoint.sequence)
    loaded = _applied(startup, source, stream, checkpoint, copied)
    if loaded is not None:
        finish(session, resource)
    return loaded


def _applied(
    startup: Startup, source: Source, stream: Stream, checkpoint: Checkpoint, copied: BaseCopy
) -> Loaded | None:
    """Loads the records after the checkpoint. Returns None if the load is stopped before its end."""
    stages = Stages.of(
        startup, checkpoint, copied=copied, skips=Skips(), others=lambda uri: uri.database != NO_DATABASE
    )
    ledger, applier = stages.ledger, stages.applier
    loading = _Loading(source, stream, stages.renaming, startup)
    rows, logged_at = 0, time.monotonic()
    while applier.checkpoint.sequence < stream.upto and not startup.calls.stop.is_set():
        try:
            for applied in applier.applied(loading.batches(after=applier.checkpoint.sequence)):
                if applied is None:
                    continue
                rows += applied.rows
                stages.renaming.committed(applied.last.sequence)
                if time.monotonic() - logged_at >= _LOG_SECONDS:
                    logged_at = time.monotonic()
                    event(_LOG, "loading", sequence=applied.last.sequence, rows=rows, statements=ledger.applied)
        except Reread:
            pass  # another server took the follower's place, and lacks the newest of the loaded rows
    return Loaded(stream.upto, rows, ledger.applied) if applier.checkpoint.sequence == stream.upto else None


@dataclass(frozen=True, slots=True)
class _Loading:
    """Makes the batches that load the follower from ``stream``. The batches may begin after any checkpoint."""

    source: Source
    stream: Stream
    renaming: Renaming
    startup: Startup

    def batches(self, *, after: int) -> Iterator[Batch | None]:
        """Yields the batches after sequence ``after``. Raises UserError for errors that Spark finds in the stream."""
        self.startup.load_names(self.renaming)
        found = _told(lines(self.source, self.stream.parts, after=after, upto=self.stream.upto))
        transactions = map(self._renamed, self.stream.transactions(found, after=after))
        stop = self.startup.calls.stop
        wanted = takewhile(lambda _: not stop.is_set(), transactions)
        return batches(
            wanted, rows=self.startup.profile.consumer.batch_rows, room=lambda: self.startup.session.binlog_room
        )

    def _renamed(self, transaction: Transaction) -> Transaction:
        """Renames the tables in the transaction's rows to their names on the follower. The tables in statements are
        renamed when the statements are executed.
        """
        return transaction._replace(records=[self.renaming.of_stream(record) for record in transaction.records])


def _seed(begun: Seed | None, source: Source, at: Moment, scope: str) -> Seed:
    """Returns the seed ``begun`` if there is one, so that it is continued; otherwise returns a new seed. Raises
    UserError if the follower is being loaded with another seed.
    """
    if begun is None:
        seed = Seed(sequence_at(source, at), scope)
        if seed.upto < 0:
            raise UserError(
                "the leader's stream is empty then",
                code="CDC-SEED-STREAM-EMPTY",
                where=f"topic {source.kafka.topic}",
                hint="start cdc-consumer, which needs no seed",
            )
        return seed
    if at is not None and sequence_at(source, at) != begun.upto:
        raise UserError(
            f"the follower is being loaded as of sequence {begun.upto}",
            code="CDC-SEED-OTHER-PLACE",
            where="option --at",
            hint="leave it out to continue; for another moment start over with an empty follower",
        )
    if begun.scope != scope:
        raise UserError(
            f"the seed began with the filters and renames {begun.scope}",
            code="CDC-SEED-OTHER-FILTERS",
            where="profile keys filters and renames",
            hint="put them back until cdc-seed has ended; for others start over with an empty follower",
        )
    if begun.upto > source.newest:
        raise UserError(
            f"the topic ends at sequence {source.newest}, and the follower is being loaded as of {begun.upto}",
            code="CDC-SEED-TOPIC-SHORTER",
            where=f"topic {source.kafka.topic}",
            hint="the topic lost records: start over with an empty follower",
        )
    return begun


def _stream(startup: Startup, source: Source, topic: Topic, upto: int) -> Stream:
    """Reads the stream to load, up to sequence ``upto``. Raises UserError if a table can't be loaded. If several tables
    can't be loaded, logs an error for each of them.
    """
    follower = startup.profile
    outline = source.outline().persist()
    messages = outline.where("told").select("partition", "offset", "value")
    statements = read_statements(messages, upto)
    history = read_history(source, messages=messages)
    found = places(startup.source, source, outline, topic, upto, statements)
    outline.unpersist()
    resource = follower.mysql_resource_name
    parts, refused = parts_of(
        history, statements, upto, newest=found.newest, passes=_passes(startup), resource=resource
    )
    if len(refused) > 1:
        for error in refused:
            event(_LOG, "problem", level=logging.ERROR, what=error)
        raise UserError(
            f"{len(refused)} tables can't be loaded from the topic, each named above",
            code="CDC-SEED-TABLES",
            where=f"topic {follower.kafka.topic}",
            hint="copy them again (cdc-producer PROFILE --copy), or leave them out with the consumer's [filters]",
        )
    for error in refused:
        raise error
    most = follower.consumer.batch_rows
    return Stream(resource, parts, statements, found.heads, found.offsets, upto, most, startup.parser, found.chunks)


def _passes(startup: Startup) -> Callable[[Uri], bool]:
    """Returns the function that decides whether a table, given as the leader's URI, is loaded."""
    wanted = replicated(startup.scope)
    return (lambda uri: wanted(uri.folded())) if startup.session.folds_names else wanted


def _told(found: Iterator[Line]) -> Iterator[Line]:
    """Yields the lines in ``found``. Raises UserError for an error that Spark finds in the stream."""
    try:
        yield from found
    except PySparkException as error:
        message = raised_message(error)
        if message is None:
            raise
        raise UserError(message, where="the topics, read with Spark") from None
