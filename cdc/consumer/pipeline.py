"""The way of a record from the topic into the follower."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from functools import cache, partial
from typing import TypeVar

from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.config.topic_names import PER_TABLE
from cdc.consumer import preflight
from cdc.consumer.apply.applier import Applier, Reread
from cdc.consumer.apply.ddl_ledger import Ledger
from cdc.consumer.follower.session import Session, Stopped
from cdc.consumer.metrics import Activity
from cdc.consumer.source.assembler import Batch, assemble, batches
from cdc.consumer.source.intact import Intact
from cdc.consumer.source.merged_topics import MergedSource
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.source.renaming import Renaming
from cdc.consumer.source.single_topic import KafkaSource, Source
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.skips import Skips
from cdc.errors import Disconnected, Unreachable, UserError
from cdc.model.record import Uri
from cdc.service.patience import Patience
from cdc.service.process import event
from cdc.service.retry import Retry

__all__ = ["run"]

Answer = TypeVar("Answer")
_LOG = logging.getLogger("cdc.consumer")
_ASK_SECONDS, _SAY_SECONDS = 0.5, 10.0


def run(
    profile: Profile, *, retry: Retry, activity: Activity, skips: Skips, until_current: bool, stop: threading.Event
) -> None:
    """Apply the leader's records to the follower until ``stop`` is set or, with ``until_current``, the topic's end.

    The follower may do without the records that ``skips`` names. Raises UserError, PromiseError or ServerGone; what was
    applied by then stays applied, whole transactions only.
    """
    resource, follower = profile.mysql_resource_name, str(profile.database)
    names = profile.kafka.topics()
    with ExitStack() as opened, suppress(Stopped):  # a stop while the follower lets us wait is an orderly end
        reader = opened.enter_context(_reader(profile))
        source: Source = MergedSource(reader, names) if names.layout == PER_TABLE else KafkaSource(reader, names.topic)
        session = opened.enter_context(
            Session(profile.database, lock=resource, meanwhile=source.ahead, stop=stop, schema=profile.consumer.schema)
        )
        _awaited(lambda: None, session, follower, retry, stop)
        patience = Patience(retry, session.try_keep, stop)
        if (topic := _topic(source, names.main, wait=not until_current, patience=patience)) is None:
            return
        first = None if names.layout == PER_TABLE else partial(reader.first_sequence, topic.name, names.commits)
        load = partial(_checkpoint, session, source, topic, resource=resource, first=first)
        checkpoint = _awaited(load, session, follower, retry, stop)
        if skips:
            skips.check_start(checkpoint.sequence, following=activity.following())
        event(_LOG, "start", follower=follower, topic=topic.name, sequence=checkpoint.sequence)
        retry.success()
        passes = _replicated(profile)
        renaming = Renaming(Renames(profile.renames, own=profile.consumer.schema), replicated=passes)
        ledger = Ledger(session, resource=resource, passes=passes, renaming=renaming, skips=skips)
        applier = Applier(
            session,
            ledger,
            checkpoint=checkpoint,
            passes=cache(renaming.passes),
            settings=profile.consumer,
            retry=retry,
            stop=stop,
        )
        start = partial(source.start, topic, until_current=until_current)
        offsets = start(checkpoint.offsets, sequence=checkpoint.sequence + 1)
        activity.begins(applier, ledger, offsets=offsets, away=lambda: reader.away)
        _stream(profile, source, patience, start, applier, renaming, activity, skips, stop)


def _awaited(
    question: Callable[[], Answer], session: Session, follower: str, retry: Retry, stop: threading.Event
) -> Answer:
    """What ``question`` gives over a connected ``session``, once the servers are there. Raises Stopped, ServerGone."""
    while not stop.is_set():
        try:
            if not session.connected:
                preflight.connect(session, name=follower)
            answer = question()
        except (Disconnected, Unreachable) as error:
            session.close()
            retry.wait(Disconnected(error.what, where=error.where, hint=error.hint))
        else:
            if retry.trouble:
                retry.success()
            return answer
    raise Stopped("told to stop while the follower was away")


def _stream(
    profile: Profile,
    source: Source,
    patience: Patience,
    start: Callable[..., object],
    applier: Applier,
    renaming: Renaming,
    activity: Activity,
    skips: Skips,
    stop: threading.Event,
) -> None:
    """From the started source into the follower; anew from the checkpoint on where parts of a transaction were lost."""
    while True:
        sequence = applier.checkpoint.sequence + 1
        records = renaming.located(source.records(stop)) if profile.renames else source.records(stop)
        transactions = Intact(assemble(records, resource=profile.mysql_resource_name, next_sequence=sequence))
        if _apply(batches(transactions, rows=profile.consumer.batch_rows), applier, source, activity, skips):
            break
        patience.ask(partial(start, applier.checkpoint.offsets, sequence=applier.checkpoint.sequence + 1))
    transactions.check_end()
    if not stop.is_set():
        skips.check_end(applier.checkpoint.sequence)


def _checkpoint(
    session: Session, source: Source, topic: Topic, *, resource: str, first: preflight.First | None
) -> Checkpoint:
    """Where the follower is, once it is sure that the topics are those that it was fed from."""
    checkpoint = preflight.load_checkpoint(session, resource=resource, topic=topic, first=first)
    others = source.topics({place.topic for place in checkpoint.offsets} - {topic.name})
    preflight.check_topics(checkpoint, topic, others, first=first)
    return checkpoint


def _apply(todo: Iterable[Batch | None], applier: Applier, source: Source, activity: Activity, skips: Skips) -> bool:
    """Whether all was applied; if not, what is after the checkpoint is to be read again."""
    try:
        for applied in applier.applied(todo):
            if applied is None:
                if source.drained():
                    activity.drained()
            else:
                activity.applied(applied)
                source.commit(applied.offsets)
                skips.check_applied(applied.last.sequence)
    except Reread:
        return False
    return True


def _reader(profile: Profile) -> KafkaReader:
    database = profile.database
    return KafkaReader(
        bootstrap_servers=profile.kafka.bootstrap_servers,
        group=f"cdc-consumer:{profile.mysql_resource_name}:{database.ip_or_host}:{database.port}",
        properties=profile.kafka.librdkafka,
        retry_seconds=profile.consumer.retry_seconds,
    )


def _topic(source: Source, name: str, *, wait: bool, patience: Patience) -> Topic | None:
    """The topic; where it is missing, wait for the producer to make it. None where the waiting was stopped."""
    hint = "start cdc-producer, which creates it, or mend kafka.topic in the profile"
    said = -_SAY_SECONDS
    while (topic := patience.ask(source.topic)) is None and not patience.stop.is_set():
        if not wait:
            raise UserError("there is no such topic", where=f"topic {name}", hint=hint)
        if time.monotonic() - said >= _SAY_SECONDS:
            said = time.monotonic()
            event(_LOG, "waiting for the topic", topic=name, hint=hint)
        patience.pause(_ASK_SECONDS)
    return topic


def _replicated(profile: Profile) -> Callable[[Uri], bool]:
    """Whose tables are replicated, by the leader's names: those of the profile's filters.

    Asking for what would be the follower's own bookkeeping there raises UserError.
    """
    filters, own = profile.filters, profile.consumer.schema

    def passes(uri: Uri) -> bool:
        wanted = (
            filters.wants_database(uri.database) if uri.table is None else filters.wants_table(uri.database, uri.table)
        )
        if wanted and uri.database == own:
            raise UserError(
                f"the leader has a database {own}, and on the follower that is the consumer's own",
                where=str(uri),
                hint=f'where the leader is itself a follower, leave it out: filters.exclude_dbs = ["{own}"] in the '
                "consumer's profile; else give the consumer's own another name with consumer.schema, for a follower "
                "from its beginning",
            )
        return wanted

    return passes
