"""Takes the follower's checkpoint back (``--rewind``), where all records up to it can be applied again faithfully.

Everything is read and checked first; then the checkpoint and a row that says how far to apply again commit together.
Until the checkpoint is there, each row that a batch names becomes the leader's, whether the follower has it, another
one or none (``plan.rewound``), and statements stay done.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from cdc.config.profile import Profile
from cdc.config.topic_names import PER_TABLE
from cdc.consumer.errors import Interrupted, Refused, Stopped
from cdc.consumer.extent.survey import Survey
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.planner import ALL_LOGGED, NO_FOREIGN_KEY_CHECKS
from cdc.consumer.scope import listed
from cdc.consumer.source.assembler import Located, Transaction
from cdc.consumer.source.record_source import RecordSource
from cdc.consumer.source.renaming import Renaming
from cdc.consumer.state import ledger_table, rewinds
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.consumer.state.copied import Copied
from cdc.errors import Disconnected, PromiseError, UserError
from cdc.model.record import Record, Uri
from cdc.service.logs import event
from cdc.service.retry import RetriedCalls

__all__ = ["Rewind", "check_filters", "parted"]

_LOG = logging.getLogger("cdc.consumer")
_OPTION = "option --rewind"
_NEAR = 1000  # offsets of a single topic before the place where the record should be
_FRESH = "or begin again from a fresh copy of the leader (consumer.start)"


class Target(NamedTuple):
    """The checkpoint to begin with, and the record that it is after."""

    checkpoint: Checkpoint
    last: Record


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind of ``checkpoint`` to the record ``sequence``, the last one of a transaction.

    ``tables`` are the follower's; ``passes(uri)`` says which tables are replicated, by the leader's names.
    """

    sequence: int
    checkpoint: Checkpoint
    profile: Profile
    session: Session
    source: RecordSource
    calls: RetriedCalls
    tables: SchemaCache
    renaming: Renaming
    passes: Callable[[Uri], bool]
    copied: Copied

    @property
    def upto(self) -> int:
        """Up to which record everything is applied again."""
        return self.checkpoint.sequence if self.checkpoint.rewound is None else self.checkpoint.rewound

    def checked(self) -> Target:
        """Where to begin; nothing is changed. Reads all records up to the former one.

        Raises UserError for what can't be applied again, PromiseError for a table that the consumer can't write to,
        Disconnected where the follower can't be asked.
        """
        if not 0 <= self.sequence < self.checkpoint.sequence:
            raise UserError(
                f"the follower is at sequence {self.checkpoint.sequence}, which is not after {self.sequence}",
                code="CDC-REWIND-PLACE",
                where=_OPTION,
                hint="name the last record that is not to be applied again",
            )
        try:
            self._check_statements()
            survey = Survey(
                passes=self.passes, copied=self.copied.has, why_not=self._why_not, skipped=frozenset(self._skipped())
            )
            target = self._survey(survey)
            for table in survey.created:
                if not self.tables.shape(self.renaming.on_follower(table)).columns:
                    survey.lacks(table)
            self._check(survey)
        except Stopped:
            raise
        except (Interrupted, Refused) as error:
            raise Disconnected(
                f"the follower cannot be used: {error}", code="CDC-FOLLOWER-GONE", where=_OPTION
            ) from None
        return target

    def begin(self, where: Target) -> None:
        """Commit the checkpoint that ``checked`` has returned. Raises Disconnected or PromiseError."""
        target = where.checkpoint
        move = self.checkpoint.advance(target, last=where.last)
        note = rewinds.insert(target, filters=listed(self.profile))
        try:
            self.session.run([b"COMMIT", rewinds.create(self.session.schema).encode()])
            if forget := self.checkpoint.forget(target):
                self.session.run([forget.encode()])
            if self.session.run([move.encode(), note.encode()])[0] != 1:
                raise PromiseError(
                    "the checkpoint in the follower has been moved by something else",
                    code="CDC-CHECKPOINT-MOVED",
                    where=_OPTION,
                    hint="nothing was changed; run one consumer only",
                )
            self.session.run([b"COMMIT"])
        except (Interrupted, Refused) as error:
            raise Disconnected(
                f"the follower does not take the rewind: {error}",
                code="CDC-FOLLOWER-GONE",
                where=_OPTION,
                hint="cdc-consumer PROFILE --status shows whether it has begun",
            ) from None
        event(_LOG, "the checkpoint went back", sequence=target.sequence, again_upto=target.rewound)

    def _check_statements(self) -> None:
        """Raises UserError where a statement behind the checkpoint was executed."""
        schema, resource = self.session.schema, self.checkpoint.resource
        ((executed,),) = self.session.rows(ledger_table.last_executed(schema, resource, after=self.upto))
        if executed is not None:
            raise UserError(
                f"a consumer that was killed has executed statement {executed}, which is after the checkpoint",
                code="CDC-REWIND-EXECUTED",
                where=_OPTION,
                hint="nothing was changed; start once without --rewind, so that the checkpoint gets there",
            )

    def _skipped(self) -> Iterator[int]:
        """The records that were skipped."""
        schema, resource = self.session.schema, self.checkpoint.resource
        found = self.session.rows(ledger_table.skipped(schema, resource, after=self.sequence, upto=self.upto))
        return (int(sequence) for (sequence,) in found)

    def _survey(self, survey: Survey) -> Target:
        """Show ``survey`` the records that are applied again; where to begin with them.

        Raises UserError where the topic lacks one, Stopped.
        """
        event(_LOG, "looking at what is to be applied again", after=self.sequence, upto=self.upto)
        located = self._located()
        first = next(located, None)
        if first is None or first.record.sequence != self.sequence:
            raise self._missing(self.sequence)
        if not first.record.last:
            raise UserError(
                f"record {self.sequence} is not the last one of its transaction",
                code="CDC-REWIND-PLACE",
                where=_OPTION,
                hint="nothing was changed; cdc-tail shows where transactions end",
            )
        offsets = dict(self.checkpoint.offsets)
        if first.partition in offsets and first.partition.topic == self.checkpoint.topic:
            offsets[first.partition] = first.offset + 1
        for expected in range(self.sequence + 1, self.upto + 1):
            item = next(located, None)
            if item is None or item.record.sequence != expected:
                raise self._missing(expected)
            if item.partition.topic != self.checkpoint.topic:
                # Read from its beginning: what comes before the next record is ignored.
                offsets.pop(item.partition, None)
            survey.see([item.record])
        return Target(self.checkpoint.back(first.record, offsets), first.record)

    def _missing(self, sequence: int) -> Exception:
        if self.calls.stop.is_set():
            return Stopped("stopped while the topic was read")
        return UserError(
            f"record {sequence} is not in the topic any more",
            code="CDC-REWIND-PLACE",
            where=_OPTION,
            hint=f"nothing was changed; name a later sequence, {_FRESH}",
        )

    def _located(self) -> Iterator[Located]:
        """The records from ``sequence`` on, as far as they are in the topic."""
        begin: dict[TopicIdPartition, int] = {}
        distance = 2 * (self.upto - self.sequence) + _NEAR
        while True:
            if self.profile.kafka.topics().layout != PER_TABLE:
                # Each record has at least one offset, so the topic need not be read from its beginning.
                begin = {each: max(0, at - distance) for each, at in self.checkpoint.offsets.items()}
            found = self._from(begin)
            first = next(found, None)
            if first is None:
                return
            if first.record.sequence <= self.sequence or not any(begin.values()):
                break
            distance *= 8
        yield from (each for each in chain([first], found) if each.record.sequence >= self.sequence)

    def _from(self, offsets: dict[TopicIdPartition, int]) -> Iterator[Located]:
        def start() -> None:
            topic = self.source.topic()
            if topic is not None:
                self.source.start(topic, offsets, sequence=self.sequence, until_current=True)

        self.calls.call(start)
        for located in self.source.records(self.calls.stop):
            self.calls.keep_alive()
            if located is not None:
                yield located

    def _why_not(self, record: Record) -> str:
        table = self.tables.shape(self.renaming.on_follower(record.uri))
        name = f"{record.uri.database}.{record.uri.table}"
        if record.key is None:
            return f"rows of table {name}, which has no key: they would be there twice"
        if not table.matches(record.columns, record.key):
            return f"rows of table {name}, which has other columns or another key on the follower, or is not there"
        if table.unique_expression:
            return f"rows of table {name}, which has a unique key with an expression: what is in its way is not found"
        if table.related and not record.flags & (NO_FOREIGN_KEY_CHECKS | ALL_LOGGED):
            return f"rows of table {name}, whose foreign keys may have changed rows without a record"
        return ""

    def _check(self, survey: Survey) -> None:
        """Raises UserError where something is in the way."""
        if survey.obstacles:
            raise self._refused(survey.obstacles, survey.behind)
        event(_LOG, "everything can be applied again", records=self.upto - self.sequence)

    def _refused(self, what: str, behind: int) -> UserError:
        later = f"--rewind {behind} or later is possible; " if behind < self.checkpoint.sequence else ""
        return UserError(
            f"the follower cannot go back to {self.sequence}, since this cannot be applied again: {what}",
            code="CDC-REWIND-IMPOSSIBLE",
            where=_OPTION,
            hint=f"nothing was changed; {later}leave those tables as they are, by a profile whose filters exclude "
            f"them, with --until {self.upto}; {_FRESH}",
        )


def check_filters(session: Session, checkpoint: Checkpoint, profile: Profile) -> None:
    """Raises UserError where the follower is in a rewind that began with other filters or renames.

    Other tables were not checked: foreign rows in them would be overwritten without a report.
    """
    if checkpoint.rewound is None:
        return
    try:
        began = rewinds.filters(session, checkpoint)
        session.commit()
    except (Interrupted, Refused) as error:
        raise Disconnected(f"the follower cannot be used: {error}", code="CDC-FOLLOWER-GONE") from None
    if began != listed(profile):
        raise UserError(
            f"the follower is in a rewind up to sequence {checkpoint.rewound}, which began with the filters and "
            f"renames {began}",
            code="CDC-REWIND-OTHER-FILTERS",
            where="profile keys filters and renames",
            hint=f"put them back until the rewind is over: --until {checkpoint.rewound}",
        )


def parted(transactions: Iterable[Transaction | None], *, upto: int) -> Iterator[Transaction | None]:
    """``transactions`` with a None after record ``upto``, so that no batch has records on both sides of it."""
    for item in transactions:
        yield item
        if item is not None and item.records[-1].sequence == upto:
            yield None
