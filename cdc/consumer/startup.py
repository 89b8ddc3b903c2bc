"""Starts a consumer: waits for both servers, checks them, and returns the topic and the checkpoint from which to
continue.

The module also connects the stages that apply batches to a follower, for any source of records; both ``cdc-consumer``
and ``cdc-seed`` use it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Self, TypeVar

from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.config.topic_names import PER_TABLE
from cdc.consumer import preflight
from cdc.consumer.apply.applier import Applier
from cdc.consumer.apply.chunks import Chunks
from cdc.consumer.apply.committed import Committed
from cdc.consumer.apply.ddl_ledger import DdlLedger
from cdc.consumer.apply.execution import Execution
from cdc.consumer.apply.leader_types import LeaderTypes
from cdc.consumer.apply.parallel import ParallelExecutor
from cdc.consumer.apply.parking import Parking
from cdc.consumer.apply.placed_statements import PlacedStatements
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.apply.preparation import Preparation
from cdc.consumer.apply.replay import Replay
from cdc.consumer.apply.row_by_row import RowByRow, RowDifferences
from cdc.consumer.apply.serial import SerialExecutor
from cdc.consumer.chunk_check import require_same_chunks
from cdc.consumer.errors import Stopped, Unapplicable
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import NOT_TAKEN, SWITCH_ON, Session
from cdc.consumer.follower.table_definitions import define
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.moved_offsets import continued_in_many
from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.range.base_copy import Beginning
from cdc.consumer.scope import replicated, require_no_masks, require_no_row_filters
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.follower_statements import FollowerStatements
from cdc.consumer.source.reader import KafkaReader, Topic, note_of
from cdc.consumer.source.record_source import MergedSource, RecordSource, SingleTopic
from cdc.consumer.source.renaming import Renaming, Spellings
from cdc.consumer.state import ledger_table
from cdc.consumer.state.base_copy import BaseCopy
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.other_streams import warn_of_other_streams
from cdc.consumer.state.skips import Skips
from cdc.errors import Disconnected, Unreachable, UserError
from cdc.kafka.broker_checks import Brokers
from cdc.kafka.follower_places import group_of
from cdc.model.names import Uri
from cdc.service.logs import event
from cdc.service.retry import RetriedCalls, Retry

__all__ = ["Stages", "Startup"]

Answer = TypeVar("Answer")
_LOG = logging.getLogger("cdc.consumer")
_ASK_SECONDS, _LOG_SECONDS = 0.5, 10.0


@dataclass(frozen=True, slots=True)
class Startup:
    """Starts a consumer.

    ``session`` is connected to the follower. ``reader`` receives the records, ``parser`` parses them, and ``source``
    yields them. ``calls`` repeats a call until the server answers.
    """

    profile: Profile
    reader: KafkaReader
    session: Session
    parser: RecordParser
    source: RecordSource
    calls: RetriedCalls

    @classmethod
    def open(cls, profile: Profile, opened: ExitStack, *, retry: Retry, stop: threading.Event) -> Self:
        """Connects to the follower once it answers, and checks it. ``opened`` closes the connections when the program
        ends.

        Raises Stopped, ServerGone, and UserError if the follower does not meet the requirements.
        """
        resource, schema = profile.mysql_resource_name, profile.consumer.schema
        session = Session(preflight.follower_address(profile), lock=resource, stop=stop, schema=schema)
        startup = cls.unconnected(profile, session, opened, retry=retry, stop=stop)
        startup._connect()
        return startup

    @classmethod
    def unconnected(
        cls, profile: Profile, session: Session, opened: ExitStack, *, retry: Retry, stop: threading.Event
    ) -> Self:
        """Connects only to the brokers. The caller must connect ``session`` to the follower. ``opened`` closes both
        connections when the program ends.

        Raises UserError for settings that the consumer or librdkafka refuses.
        """
        require_no_masks(profile)
        require_no_row_filters(profile)
        database, kafka, settings, names = profile.database, profile.kafka, profile.consumer, profile.kafka.topics()
        reader = opened.enter_context(
            KafkaReader(
                bootstrap_servers=kafka.bootstrap_servers,
                group=group_of(profile.mysql_resource_name, f"{database.ip_or_host}:{database.port}"),
                properties=kafka.properties(),
                retry_seconds=settings.retry_seconds,
                commits=names.commits,
                note=note_of(kafka.topic, delayed=bool(settings.delay_seconds)),
            )
        )
        session.assigns_gtids = settings.privileges == "server"
        opened.enter_context(session)
        parser = RecordParser(lambda: session.changes_doubles)
        source: RecordSource
        if names.layout == PER_TABLE:
            source = MergedSource(reader, names, parser)
        else:
            source = SingleTopic(reader, names.topic, parser)
        return cls(profile, reader, session, parser, source, RetriedCalls(retry, session.try_keep, stop))

    @property
    def scope(self) -> Profile:
        """The profile whose filters and renames are applied. All names in it are in lower case if the follower has
        lower_case_table_names = 1. The session must be connected.
        """
        return self.profile.folded() if self.session.folds_names else self.profile

    @property
    def renames(self) -> Renames:
        """The renames of databases in the profile."""
        scope = self.scope
        return Renames(scope.renames, own=scope.consumer.schema, folds=self.session.folds_names)

    def require_same_names(self, *, leader_folds: bool) -> None:
        """Raises UserError if the leader has lower_case_table_names = 1, but the follower does not."""
        if leader_folds and not self.session.folds_names:
            raise UserError(
                "the leader has lower_case_table_names = 1 and the follower 0: its statements write names in any case, "
                "and to this server they would be other tables than those of its rows",
                code="CDC-FOLLOWER-NAMES",
                where=str(self.profile.database),
                hint="initialise a follower with lower_case_table_names = 1 (only a new server takes that setting)",
            )

    def known_names(self, records: Iterable[Located | None]) -> Iterator[Located | None]:
        """Yields the records. When the first record arrives, compares the leader's lower_case_table_names with the
        follower's.

        Raises UserError if the leader's names would mean other tables on the follower (``require_same_names``).
        """
        commits = self.profile.kafka.topics().commits
        # A follower that folds its names also folds the leader's names, so nothing needs to be compared.
        known = self.session.folds_names
        for item in records:
            if item is not None and not known:
                # The commit log now has an entry, even if it was empty when the consumer started, because the producer
                # writes an entry before its first record.
                newest = self.calls.call(lambda: self.reader.commits(commits) if self.reader.topic(commits) else None)
                self.require_same_names(leader_folds=newest is not None and newest.folds_names)
                known = True
            yield item

    def reconnect(self) -> None:
        """Connects to the follower once it answers, and checks it, if there is no connection.

        Raises Stopped, ServerGone, and UserError if the follower does not meet the requirements.
        """
        self._once_connected(lambda: None)

    def _connect(self) -> None:
        self.reconnect()
        if not self.session.local_infile:
            event(_LOG, NOT_TAKEN, hint=SWITCH_ON)

    def topic(self, *, wait: bool) -> Topic | None:
        """Returns the topic whose id the checkpoint contains. It is the only topic or, in the layout ``per_table``, the
        topic of the commit log.

        Waits until the producer creates a missing topic; returns None if the program is stopped while it waits. Raises
        ServerGone, and UserError for a missing topic if ``wait`` is false.
        """
        name = self.profile.kafka.topics().main
        hint = "start cdc-producer, which creates it, or fix kafka.topic in the profile"
        logged_at = -_LOG_SECONDS
        while (topic := self.calls.call(self.source.topic)) is None and not self.calls.stop.is_set():
            if not wait:
                raise UserError(
                    "there is no such topic", code="CDC-CONSUMER-NO-TOPIC", where=f"topic {name}", hint=hint
                )
            if time.monotonic() - logged_at >= _LOG_SECONDS:
                logged_at = time.monotonic()
                event(_LOG, "waiting for the topic", topic=name, hint=hint)
            self.calls.pause(_ASK_SECONDS)
        return topic

    def checkpoint(self, topic: Topic, *, attachment: Beginning, continues: bool = True) -> tuple[Checkpoint, BaseCopy]:
        """Loads the follower's checkpoint, and the base copy with which the follower began. Checks that the topics
        continue the checkpoint.

        ``continues`` is true if the offsets in the checkpoint follow the record of the checkpoint. It is false while
        cdc-seed loads the follower.

        Raises UserError, PromiseError, Stopped, ServerGone.
        """

        def load() -> tuple[Checkpoint, BaseCopy]:
            resource = self.profile.mysql_resource_name
            checkpoint, copied = preflight.load_checkpoint(
                self.session, resource=resource, topic=topic, first=self._first(topic), attachment=attachment
            )
            warn_of_other_streams(self.session, resource, self.profile.filters)
            return self.continued(checkpoint, topic, continues=continues), copied

        return self._once_connected(load)

    def continued(self, checkpoint: Checkpoint, topic: Topic, *, continues: bool = True) -> Checkpoint:
        """Checks that the topics continue the checkpoint, and returns it with the offsets from which they must be read.

        ``continues`` is false while cdc-seed loads the follower: the checkpoint's offsets then do not follow its
        record. Raises UserError, PromiseError, and Unreachable if the brokers can't be reached.
        """
        first = self._first(topic)
        if continues and first is not None:
            checkpoint = preflight.continued(checkpoint, topic, self.reader.places)
        others = self.source.topics({partition.topic for partition in checkpoint.offsets} - {topic.name})
        if continues and first is None and checkpoint.sequence >= 0:
            newest = self.reader.commits(topic.name)
            named = {name for name, _ in newest.partitions} - others.keys() if newest else set()
            others = {**others, **self.source.topics(named)}
            checkpoint = continued_in_many(checkpoint, others, self.reader)
        if continues:
            require_same_chunks(checkpoint, {topic.name: topic, **others}, self.reader)
        preflight.check_topics(checkpoint, topic, others, first=first)
        if continues:
            self.source.seen.begin(applied=checkpoint)
        return checkpoint

    def _first(self, topic: Topic) -> preflight.First | None:
        names = self.profile.kafka.topics()
        return None if names.layout == PER_TABLE else partial(self.reader.first_sequence, topic.name, names.commits)

    def last_executed(self, checkpoint: Checkpoint) -> int:
        """Returns the sequence of the last statement after the checkpoint that the follower has executed; returns the
        checkpoint's sequence if there is no such statement.

        A consumer that was killed may have executed such statements. Raises Stopped, ServerGone.
        """
        question = ledger_table.last_executed(self.session.schema, checkpoint.resource, after=checkpoint.sequence)

        def ask() -> int:
            ((last,),) = self.session.rows(question)
            placed = PlacedStatements(self.session).last_executed(checkpoint.resource, after=checkpoint.sequence)
            self.session.commit()
            return max(placed, checkpoint.sequence if last is None else int(last))

        return self._once_connected(ask)

    def define(self, error: Unapplicable) -> None:
        """Adds the definitions of a refused column on both servers to ``error``."""
        table = error.record.uri._replace(database=self.renames.former(error.record.uri.database))
        define(error, self.session, self.parser.types.get(table, {}))

    def load_names(self, renaming: Renaming) -> None:
        """Loads the spellings of names at the follower's checkpoint into ``renaming``. Raises Stopped, ServerGone."""
        spellings = renaming.spellings
        if spellings is None:
            return

        def load() -> None:
            spellings.begin(self.session.rows(spellings.question))
            self.session.commit()

        self._once_connected(load)

    def _once_connected(self, question: Callable[[], Answer]) -> Answer:
        """Calls ``question`` with a connected session until both servers answer, and returns its result. Raises
        Stopped, ServerGone, UserError if the follower refuses, and the errors of ``question``.
        """
        retry, name = self.calls.retry, str(self.profile.database)
        while not self.calls.stop.is_set():
            try:
                if not self.session.connected:
                    preflight.connect(self.session, name=name)
                with preflight.answering(name):
                    answer = question()
            except (Disconnected, Unreachable) as error:
                self.session.close()
                retry.wait(Disconnected(error.what, code=error.code, where=error.where, hint=error.hint))
            else:
                if retry.trouble:
                    retry.success()
                return answer
        raise Stopped("stopped while the follower was away")


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages between the leader's transactions and the commits on the follower. ``renaming`` changes names in
    records to the follower's names, ``ledger`` executes statements, ``applier`` applies batches with the stages
    ``preparation`` and ``execution``, and ``parking`` knows the parked tables.
    """

    renaming: Renaming
    ledger: DdlLedger
    preparation: Preparation
    execution: Execution
    applier: Applier
    parking: Parking

    @classmethod
    def of(
        cls,
        startup: Startup,
        checkpoint: Checkpoint,
        *,
        copied: BaseCopy,
        skips: Skips,
        others: Callable[[Uri], bool] = lambda uri: True,
        replay: Replay | None = None,
    ) -> Self:
        """Creates the stages that continue from ``checkpoint``, or apply only what was left out (``replay``).

        The rows of a table are applied only if the table passes the filters and ``others(uri)`` is true; ``uri`` is the
        name of the table on the follower.
        """
        settings, session = startup.profile.consumer, startup.session
        passes, spellings = replicated(startup.scope), None
        if session.folds_names:
            spellings = Spellings(session.schema, startup.profile.mysql_resource_name, passes=passes)
        renaming = Renaming(startup.renames, replicated=passes, spellings=spellings)
        resource, parks = startup.profile.mysql_resource_name, settings.on_refused == "park"
        parking = Parking(session, resource, renames=startup.renames, parks=parks)
        ledger = DdlLedger(
            session,
            copied=copied,
            passes=passes,
            statements=FollowerStatements(renaming, engine=settings.engine, definers=session.assigns_gtids),
            skips=skips,
            lock_seconds=settings.retry_seconds,
            leader_version=_leader_version(startup.profile),
            parked=parking.against,
        )
        known = lru_cache(maxsize=10_000)(lambda uri: others(uri) and renaming.passes(uri))
        types = LeaderTypes(session, on_follower=renaming.on_follower, passes=known)
        tables, differences = _tables(startup, passes=known)
        preparation = Preparation(
            session, ledger, tables, types=types, differences=differences, copied=copied, parking=replay or parking
        )
        execution = _execution(startup, ledger, tables, types=types, differences=differences)
        committed, calls = Committed(session, checkpoint), startup.calls
        applier = Applier(session, preparation, execution, committed=committed, retry=calls.retry, stop=calls.stop)
        return cls(renaming, ledger, preparation, execution, applier, parking)


def _leader_version(profile: Profile) -> Callable[[], str]:
    """Returns a function that returns the leader's version from the newest entry of the commit log, or "" if there is
    no entry."""
    brokers, commits = Brokers(profile.kafka.properties()), profile.kafka.topics().commits

    def leader_version() -> str:
        newest = brokers.commits(commits)
        return newest.server_version if newest else ""

    return leader_version


def _tables(startup: Startup, *, passes: Callable[[Uri], bool]) -> tuple[SchemaCache, RowDifferences | None]:
    """Returns the cache of table definitions, and, with ``consumer.before_images = "compare"``, what compares rows.

    ``passes(uri)`` decides whether a table is replicated; ``uri`` is its name on the follower.
    """
    session, settings = startup.session, startup.profile.consumer
    triggers = Triggers(session, drop=settings.triggers == "drop", passes=passes)
    tables = SchemaCache(session, triggers, passes=passes)
    return tables, RowDifferences(session, tables) if settings.before_images == "compare" else None


def _execution(
    startup: Startup,
    ledger: DdlLedger,
    tables: SchemaCache,
    *,
    types: LeaderTypes,
    differences: RowDifferences | None,
) -> Execution:
    """Connects the executors of batches: a batch is executed serially or in parallel; if that fails, it is executed
    again row by row.
    """
    session, settings, prefetch = startup.session, startup.profile.consumer, Prefetch(startup.source.read_ahead)
    row_by_row = RowByRow(
        session,
        tables,
        types=types,
        on_conflict=settings.on_conflict,
        differences=differences,
        skips=ledger.skips,
        note=ledger.skip,
    )
    chunks = Chunks(session, tables, row_by_row, skips=ledger.skips, note=ledger.skip)
    return Execution(
        SerialExecutor(session, row_by_row, chunks, prefetch=prefetch),
        ParallelExecutor(session, connections=settings.connections, prefetch=prefetch),
    )
