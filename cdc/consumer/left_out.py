"""Ends the parking of tables before a consumer reads on from its checkpoint: applies what was left out of them, or
gives it up (``--retry-parked`` and ``--drop-parked``).

Each attempt begins with the rows that the follower has in ``parked``; see ``apply.replay``.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from cdc.config.table_globs import copy_command, named
from cdc.config.topic_names import PER_TABLE
from cdc.consumer.apply.committed import lost, moved, refuses, sequence_in
from cdc.consumer.apply.parking import changing_keys, unpark
from cdc.consumer.apply.replay import Replay
from cdc.consumer.errors import Interrupted, Refused, Unapplicable, WaitedOut, tables_of
from cdc.consumer.source.assembler import Transaction, assemble, batches
from cdc.consumer.source.parked_replay import ParkedReplay, from_within
from cdc.consumer.source.reader import Topic
from cdc.consumer.startup import Stages, Startup
from cdc.consumer.state import parked
from cdc.consumer.state.base_copy import BaseCopy
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.consumer.state.parked import Name, ParkedTable
from cdc.consumer.state.skips import Skips
from cdc.errors import PromiseError, UserError
from cdc.kafka.partitions import FIRST
from cdc.service.logs import event

__all__ = ["LeftOut"]

_LOG = logging.getLogger("cdc.consumer")
_LOG_SECONDS = 10.0


@dataclass(slots=True)
class LeftOut:
    """Ends the parking of the tables of a follower at ``checkpoint``. The source of ``startup`` must not be
    started yet. ``copied`` is the base copy with which the follower began.

    The methods return early if the program is stopped. They raise UserError or PromiseError if the tables stay parked,
    and ServerGone.
    """

    startup: Startup
    topic: Topic
    checkpoint: Checkpoint
    copied: BaseCopy
    _offsets: Mapping[TopicIdPartition, int] | None = field(default=None, init=False)

    def apply(self) -> None:
        """Applies the records that were left out, in the leader's order. Then only tables that are being copied stay
        parked.
        """
        if self.startup.session.folds_names:
            raise UserError(
                "--retry-parked is not possible on a follower that stores names in lower case",
                code="CDC-PARKED-FOLDED-NAMES",
                where=str(self.startup.session.database),
                hint="have the parked tables copied again: cdc-producer PROFILE --copy DATABASE.TABLE",
            )
        try:
            self._repeat(self._try_apply)
        except Unapplicable as error:
            self.startup.define(error)
            raise _refused_again(error, former=self.startup.renames.former) from None

    def drop(self) -> None:
        """Gives up what was left out: the next changes of the tables are applied. Only tables that are being copied
        stay parked.
        """
        self._repeat(self._try_drop)

    def _repeat(self, attempt: Callable[[Mapping[Name, ParkedTable]], None]) -> None:
        """Calls ``attempt`` with the parked tables of the follower, again after each lost connection."""
        session, calls, after = self.startup.session, self.startup.calls, self.checkpoint.sequence
        while not calls.stop.is_set():
            self.startup.reconnect()
            try:
                tables = parked.parsed(session.rows(parked.select(session.schema, self.checkpoint.resource)))
                if sequence_in(session, self.checkpoint.resource) != after:
                    raise moved(self.checkpoint)
                attempt(tables)
            except Interrupted as error:
                session.close()
                if not calls.stop.is_set():
                    calls.retry.wait(lost(error, after=after), last=isinstance(error, WaitedOut))
            except Refused as error:
                raise refuses(error, after=after) from None
            else:
                return

    def _try_drop(self, tables: Mapping[Name, ParkedTable]) -> None:
        if not unpark(self.startup.session, self.checkpoint, tables, given_up=True):
            event(_LOG, "no table is parked, or all are being copied")

    def _try_apply(self, tables: Mapping[Name, ParkedTable]) -> None:
        session, former = self.startup.session, self.startup.renames.former
        keys = changing_keys(session, self.startup.renames)
        session.commit()
        replay = ParkedReplay(tables, through=self.checkpoint.sequence, former=former, keys=keys)
        if replay.begin <= replay.through:
            self._replay(replay)
            if self.startup.calls.stop.is_set():
                return
        if not unpark(session, self.checkpoint, replay.tables, given_up=False):
            event(_LOG, "no table is parked, or all are being copied")

    def _replay(self, wanted: ParkedReplay) -> None:
        startup, settings, session = self.startup, self.startup.profile.consumer, self.startup.session
        replay = Replay(session, self.checkpoint.resource, wanted)
        stages = Stages.of(startup, self.checkpoint, copied=self.copied, skips=Skips(), replay=replay)
        begin, logged_at = wanted.begin, time.monotonic()
        event(_LOG, "applies what was left out of the parked tables", sequence=begin, through=wanted.through)
        transactions = wanted.wanted(self._read(begin, stages))
        joined = batches(transactions, rows=settings.batch_rows, room=lambda: session.binlog_room)
        for batch in replay.applied(joined, stages.preparation, stages.execution):
            startup.calls.retry.success()
            if time.monotonic() - logged_at > _LOG_SECONDS:
                logged_at = time.monotonic()
                event(_LOG, "applying what was left out", sequence=batch.last.sequence, through=wanted.through)
        if not wanted.complete and not startup.calls.stop.is_set():
            raise _gone("it ends too early", begin)
        conflicts = stages.execution.conflicts
        event(_LOG, "applied what was left out", through=wanted.through, conflicts=conflicts)

    def _read(self, begin: int, stages: Stages) -> Iterator[Transaction | None]:
        """Reads the leader's transactions from the record ``begin`` on. Raises UserError if they can't be read."""
        startup, calls = self.startup, self.startup.calls
        if self._offsets is None:
            self._offsets = calls.call(partial(self._offsets_before, begin))
        start = partial(startup.source.start, self.topic, self._offsets or {}, sequence=begin, until_current=True)
        if calls.call(start) is None:
            return  # stopped
        records = startup.source.records(calls.stop)
        located = stages.renaming.located(records) if stages.renaming else records
        try:
            resource = startup.profile.mysql_resource_name
            for transaction in assemble(from_within(located, begin), resource=resource, next_sequence=begin):
                calls.keep_alive()
                yield transaction
        except PromiseError as error:
            raise _gone(error.what, begin) from None

    def _offsets_before(self, sequence: int) -> dict[TopicIdPartition, int]:
        """Returns offsets from which the record ``sequence`` can be read; empty in the layout ``per_table``, where all
        topics are read from their beginnings. Raises UserError if the topic no longer has the record.
        """
        if self.startup.profile.kafka.topics().layout == PER_TABLE:
            return {}
        partition = TopicIdPartition(self.topic.name, FIRST, self.topic.id)
        low, high = self.topic.ranges[FIRST][0], self.checkpoint.offsets.get(partition, 0)
        found: int | None = None
        while low < high:
            middle = (low + high + 1) // 2
            place = next(self.startup.reader.places(self.topic, before=middle), None)
            if place is not None and place.sequence > sequence:
                high = place.offset
                continue
            low, found = middle, place.offset if place is not None else found
        if found is None:
            raise _gone("it begins with a later record", sequence)
        return {partition: found}


def _gone(why: str, sequence: int) -> UserError:
    return UserError(
        f"what was left out of the parked tables can't be read from the topic: {why}",
        code="CDC-PARKED-NOT-IN-TOPIC",
        where=f"sequence {sequence}",
        hint="nothing is lost, the tables stay parked (cdc-consumer PROFILE --status lists them): have each copied "
        "again, cdc-producer PROFILE --copy DATABASE.TABLE",
    )


def _refused_again(error: Unapplicable, *, former: Callable[[str], str]) -> PromiseError:
    """Returns the error for a record that the follower refuses again. ``--skip`` is no way out for it, since it is
    behind the checkpoint."""
    plain, tables = error.without_skip(), tables_of(error.record, former=former)
    copied = f" or have the table copied again: {copy_command(*tables)}" if tables else ""
    shown = ", ".join(named(*table) for table in tables)
    plain.hint = (
        f"{plain.hint}; the parked tables stay as before this record: then start again with --retry-parked,{copied}"
        f"; cdc-consumer PROFILE --drop-parked gives up what was left out of {shown} and all others"
    )
    return plain
