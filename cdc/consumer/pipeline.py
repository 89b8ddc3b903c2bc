"""Connects the consumer's stages, from the leader's records in Kafka to commits on the follower."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from cdc.config.profile import Profile
from cdc.consumer.apply.applier import Applied, Reread
from cdc.consumer.errors import Interrupted, Refused, Stopped, Unapplicable
from cdc.consumer.follower.locks import tell_pause
from cdc.consumer.follower.session import Session
from cdc.consumer.left_out import LeftOut
from cdc.consumer.metrics import Counters
from cdc.consumer.preflight import InUse
from cdc.consumer.range.base_copy import Attachment, with_gtids
from cdc.consumer.range.delay import Delay
from cdc.consumer.range.until import Until
from cdc.consumer.source.assembler import DeferErrors, Transaction, assemble, batches
from cdc.consumer.source.reader import KafkaReader
from cdc.consumer.startup import Stages, Startup
from cdc.consumer.state.base_copy import BaseCopy
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.skips import Skips
from cdc.kafka.broker_checks import Brokers
from cdc.kafka.commit_log import oldest_commits
from cdc.model.gtid import GtidSet
from cdc.service.logs import event
from cdc.service.retry import Retry

__all__ = ["Options", "attachment", "run"]

Held = Callable[[Iterable[Transaction | None]], Iterator[Transaction | None]]
_LOG = logging.getLogger("cdc.consumer")
_STANDBY_SECONDS = 0.2  # the pause between two attempts to get the follower's lock; each attempt itself waits 5 s


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line. ``skips`` are the records that may be skipped. ``until_current`` and ``until``
    determine where the program ends. With ``retry_parked`` the program first applies what was left out of parked
    tables, with ``drop_parked`` it first gives that up.
    """

    skips: Skips
    until_current: bool = False
    until: Until | None = None
    retry_parked: bool = False
    drop_parked: bool = False


def run(profile: Profile, *, retry: Retry, counters: Counters, options: Options, stop: threading.Event) -> None:
    """Applies the leader's records to the follower until ``stop`` is set, or until the end that ``options`` define.

    Raises UserError, PromiseError or ServerGone; transactions that were completely applied before the error stay
    applied.
    """
    # it is not an error if the program is stopped while it waits for the follower
    with ExitStack() as opened, suppress(Stopped):
        startup = _opened(profile, opened, retry=retry, counters=counters, stop=stop)
        reader, source = startup.reader, startup.source
        if startup.session.folds_names:
            options.skips.fold(new=startup.renames.new)
        topic = startup.topic(wait=not options.until_current)
        if topic is None:
            return
        checkpoint, copied = startup.checkpoint(topic, attachment=attachment(profile, reader))
        _check_options(options, checkpoint, startup)
        event(_LOG, "start", follower=str(startup.session.database), topic=topic.name, sequence=checkpoint.sequence)
        retry.success()
        counters.follower = startup.session.address
        left_out = LeftOut(startup, topic, checkpoint, copied)
        if options.drop_parked:
            left_out.drop()
        elif options.retry_parked:
            left_out.apply()
        start = partial(source.start, topic, until_current=options.until_current)
        offsets = start(checkpoint.offsets, sequence=checkpoint.sequence + 1)
        counters.start(checkpoint.sequence, offsets=offsets, kafka_away=lambda: reader.away)
        try:
            _replicate(startup, checkpoint, start, copied=copied, counters=counters, options=options)
        except Unapplicable as error:
            startup.define(error)
            raise
        if not stop.is_set():
            reader.offsets.flush()


def _opened(profile: Profile, opened: ExitStack, *, retry: Retry, counters: Counters, stop: threading.Event) -> Startup:
    """Connects to the follower; with ``consumer.standby`` waits until no other consumer holds its lock.

    Raises the errors of ``Startup.open``, InUse only without ``consumer.standby``.
    """
    while True:
        with ExitStack() as attempt:
            try:
                startup = Startup.open(profile, attempt, retry=retry, stop=stop)
            except InUse as error:
                if not profile.consumer.standby:
                    raise
                if not counters.standby:
                    event(_LOG, "standby: waits until the other consumer ends", reason=error.what)
                counters.standby = True
                retry.success()  # the follower has answered: later failures begin a new count, even after weeks
            else:
                opened.enter_context(attempt.pop_all())
                if counters.standby:
                    event(_LOG, "this consumer works now")
                counters.standby = False
                return startup
        if stop.wait(_STANDBY_SECONDS):
            raise Stopped("stopped while another consumer applied to the follower")


def _check_options(options: Options, checkpoint: Checkpoint, startup: Startup) -> None:
    """Raises UserError if the follower is already past the place of ``--until`` or a record of ``--skip``, or if that
    place or record can never come.
    """
    if options.skips:
        kafka = startup.profile.kafka
        following = Brokers(kafka.properties()).next_sequence(kafka.topics().commits)
        options.skips.check_start(checkpoint.sequence, following=following)
    if options.until is not None:
        options.until.check_start(checkpoint, executed=startup.last_executed(checkpoint))
        _search(options.until, checkpoint, startup)


def _search(until: Until, checkpoint: Checkpoint, startup: Startup) -> None:
    """Searches the topics for the transaction with the GTID of ``--until``, before anything is applied.

    Notes in ``until`` if the transaction is found. Does not search if the producer has not read the GTID yet. The
    source must be started again afterwards. Raises UserError if the producer has read the GTID, but no record after the
    checkpoint has it; raises the errors of the source.
    """
    gtid, source, calls = until.place.gtid, startup.source, startup.calls
    if not gtid or calls.call(lambda: _comes_later(gtid, startup)):
        return

    def start() -> None:
        # The end of the topic is requested after the newest entry of the commit log was read. So all records that this
        # entry covers are before the end.
        topic = source.topic()
        if topic is not None:
            source.start(topic, checkpoint.offsets, sequence=checkpoint.sequence + 1, until_current=True)

    event(_LOG, "searching the topic for the transaction", gtid=gtid)
    calls.call(start)
    for located in source.records(calls.stop):
        calls.keep_alive()
        if located is not None and located.record.transaction == gtid and located.record.sequence > checkpoint.sequence:
            until.found()
            return
    if not calls.stop.is_set():
        raise until.not_ahead(checkpoint.sequence)


def _comes_later(gtid: str, startup: Startup) -> bool:
    reader, commits = startup.reader, startup.profile.kafka.topics().commits
    newest = reader.commits(commits) if reader.topic(commits) else None
    return newest is not None and gtid not in GtidSet.parse(newest.gtid_set)


def _replicate(
    startup: Startup,
    checkpoint: Checkpoint,
    start: Callable[..., object],
    *,
    copied: BaseCopy,
    counters: Counters,
    options: Options,
) -> None:
    """Applies all records of the source, which must be started already. ``start`` starts the source again if records
    must be read again.
    """
    source, calls, skips = startup.source, startup.calls, options.skips
    stages = Stages.of(startup, checkpoint, copied=copied, skips=skips)
    ledger, applier, held = stages.ledger, stages.applier, _held(startup, counters)
    while True:
        try:
            for applied in _applied(startup, stages, copied=copied, until=options.until, held=held):
                if applied is not None:
                    totals = {"statements": ledger.applied, "left_out": ledger.left_out, "parked": stages.parking.count}
                    counters.applied(applied, conflicts=applier.conflicts, **totals)
                    is_chunk = applied.chunk is not None
                    source.commit(applied.offsets, sequence=applied.last.sequence, chunk=is_chunk)
                    stages.renaming.committed(applied.last.sequence)
                    skips.check_applied(applied.last.sequence)
                    continue
                source.commit({})  # commits the offsets to Kafka now, without the usual wait
                if source.drained() and not counters.holding():
                    counters.drained()
        except Unapplicable as error:
            numbers, tables = skips.again(applier.checkpoint.sequence)
            error.beside(numbers, left=tables, former=startup.renames.former)
            raise
        except Reread:
            begin = applier.checkpoint
            calls.call(partial(start, begin.offsets, sequence=begin.sequence + 1))
        else:
            break
    if not calls.stop.is_set():
        _check_end(options, applier.checkpoint.sequence)


def _held(startup: Startup, counters: Counters) -> Held:
    """Chains the rules that hold transactions back: the delay, the pause and the rate limit. ``counters`` shows their
    state.
    """
    settings, stop = startup.profile.consumer, startup.calls.stop
    counters.delay = delay = Delay(settings.delay_seconds, stop=stop)
    pause, limit, tell = (
        counters.pause,
        counters.limit,
        partial(_tell_pause, startup.session, startup.profile.mysql_resource_name),
    )
    return lambda transactions: limit.paced(pause.between(delay.due(transactions), stop=stop, tell=tell), stop=stop)


def _tell_pause(session: Session, resource: str, paused: bool) -> None:
    with suppress(Interrupted, Refused):  # if the connection is lost, the next batch will report that
        tell_pause(session, resource, paused)


def _applied(
    startup: Startup, stages: Stages, *, copied: BaseCopy, until: Until | None, held: Held
) -> Iterator[Applied | None]:
    """Renames the tables in the records, assembles the records into transactions and the transactions into batches, and
    commits each batch on the follower.

    Yields None when all records in the topic that are due are applied.
    """
    profile, applier, renaming = startup.profile, stages.applier, stages.renaming
    startup.load_names(renaming)
    records = startup.source.records(startup.calls.stop)
    # The lower_case_table_names of both servers are compared only for a new follower. Later the producer itself refuses
    # a leader with another value.
    if applier.checkpoint.sequence < 0:
        records = startup.known_names(records)
    if renaming:
        records = renaming.located(records)
    sequence = applier.checkpoint.sequence
    assembled = assemble(records, resource=profile.mysql_resource_name, next_sequence=sequence + 1)
    if copied.held:
        assembled = with_gtids(assembled, copied)
    wanted = assembled if until is None else until.up_to(assembled, applied=sequence)
    transactions = DeferErrors(held(wanted))
    joined = batches(transactions, rows=profile.consumer.batch_rows, room=lambda: startup.session.binlog_room)
    yield from applier.applied(joined)
    if until is not None and until.repeating:
        raise Reread
    if until is None or until.reached is None:
        # The reader raised this error at a gap or at a damaged record. It is raised again only after the earlier
        # records were applied.
        transactions.reraise()


def _check_end(options: Options, sequence: int) -> None:
    """Logs at the end of the stream whether the place of ``--until`` was reached. ``sequence`` is the sequence of the
    last applied record.

    Raises UserError if a record of ``--skip`` was not skipped, or if the follower is past the place.
    """
    until = options.until
    if until is not None and until.reached is not None:
        until.check_reached()
        event(_LOG, "the place is reached", until=until.place.text, **until.reached.told())
        return
    if until is not None:
        event(_LOG, "the place is not reached", level=logging.WARNING, until=until.place.text, sequence=sequence)
    options.skips.check_end(sequence)


def attachment(profile: Profile, reader: KafkaReader) -> Attachment:
    """Returns the rules for the base copy in the profile (consumer.start)."""
    commits = profile.kafka.topics().commits
    return Attachment(
        profile.consumer.start,
        resource=profile.mysql_resource_name,
        newest=lambda: reader.commits(commits) if reader.topic(commits) else None,
        oldest=lambda: reader.commits(commits, which=oldest_commits),
    )
