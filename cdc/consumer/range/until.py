"""Ends the stream of transactions at the place of ``--until``: a sequence, a GTID or a time. The stream always ends
between two transactions of the leader. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from cdc.consumer.source.assembler import Transaction
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.errors import UserError
from cdc.model.gtid import given_gtid, gtid_parts, is_gtid
from cdc.model.record import Record

__all__ = ["OPTION", "Place", "Reached", "Until"]

OPTION = "option --until"
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the leader's stream. It is after record ``sequence``, before the transaction ``gtid``, or before the
    first transaction that the leader committed at ``time_us`` (µs since 1970) or later; only one of the three is set.
    ``text`` is the value of the option.
    """

    text: str
    sequence: int | None = None
    gtid: str = ""
    time_us: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses the value of the option. Raises UserError."""
        if re.fullmatch(r"\d{1,18}", text, re.ASCII):
            return cls(text, sequence=int(text))
        if gtid := given_gtid(text):
            return cls(text, gtid=gtid)
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise UserError(
                f"{text!r} names no place in the stream",
                code="CDC-UNTIL-ARGUMENT",
                where=OPTION,
                hint="write a record's sequence (4711), a transaction's GTID (uuid:1234, of MariaDB 0-1-1234), or a "
                "time with its zone (2026-03-01T12:30:00+01:00)",
            ) from None
        if time.utcoffset() is None:
            raise UserError(
                f"{text!r} has no time zone",
                code="CDC-UNTIL-ARGUMENT",
                where=OPTION,
                hint=f"write {text}Z for UTC, or {text}+02:00 for a zone two hours ahead of UTC",
            )
        return cls(text, time_us=(time - _BEGINNING) // timedelta(microseconds=1))


_BACK = "to go back, restore a copy of the leader from before, with its checkpoint"


@dataclass(frozen=True, slots=True)
class Reached:
    """The place that was reached. ``sequence`` is the sequence of the last record to apply. ``following`` is the first
    record of the next transaction; None if the topic does not contain it yet. ``inside`` is true if the place is inside
    of the next transaction.
    """

    sequence: int
    following: Record | None
    inside: bool = False

    def told(self) -> dict[str, Any]:
        """Returns the place as fields of a log message."""
        if self.following is None:
            return {"sequence": self.sequence, "next": "not in the topic yet"}
        return {
            "sequence": self.sequence,
            "next_sequence": self.following.sequence,
            "next_transaction": self.following.transaction,
            "next_committed": datetime.fromtimestamp(self.following.ts_us / 1e6, UTC).isoformat(),
        } | ({"stopped": "before the transaction, since the place is inside of it"} if self.inside else {})


class Until:
    """Ends the stream at ``place``. ``reached`` describes the end of the last stream that ``up_to`` yielded; None if
    that stream did not reach the place.

    ``repeating`` is true if the stream ended early, so that all records must be read again from the checkpoint on.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.reached: Reached | None = None
        self.repeating = False
        self._found = False  # true if the transaction with the GTID of the place is known to be in the topic
        self._begun: Record | None = None  # the first record of the transaction that is being read
        self._executed = -1  # the sequence of the last statement that the follower has executed
        self._whole = -1  # the sequence of the first record of a transaction that is known to end before the place

    def check_start(self, checkpoint: Checkpoint, *, executed: int) -> None:
        """Raises UserError if the follower is already past the place.

        ``executed`` is the sequence of the last statement that the follower has executed; it may be after the
        checkpoint.
        """
        self._executed = executed
        wanted = self.place
        passed = wanted.sequence is not None and checkpoint.sequence > wanted.sequence
        if wanted.time_us is not None and checkpoint.ts_us is not None:
            passed = checkpoint.ts_us >= wanted.time_us
        if passed:
            raise UserError(
                f"the follower has passed {wanted.text}: it is at sequence {checkpoint.sequence}",
                code="CDC-UNTIL-PASSED",
                where=OPTION,
                hint=f"nothing was applied; {_BACK}",
            )
        if wanted.sequence is not None:
            self._check_executed(wanted.sequence, hint=f"nothing was applied; {_BACK}")

    def check_reached(self) -> None:
        """Raises UserError if the place is reached, but the follower has already executed a statement that comes after
        the place.
        """
        if self.reached is not None:
            self._check_executed(self.reached.sequence, hint=f"everything before is applied; {_BACK}")

    def _check_executed(self, sequence: int, *, hint: str) -> None:
        if self._executed > sequence:
            raise UserError(
                f"the follower has passed {self.place.text}: a consumer that was killed has executed statement "
                f"{self._executed} there",
                code="CDC-UNTIL-EXECUTED",
                where=OPTION,
                hint=hint,
            )

    def found(self) -> None:
        """Notes that the transaction with the GTID of the place is in the topic and not applied yet."""
        self._found = True

    def not_ahead(self, sequence: int) -> UserError:
        """Returns the error for a GTID that the producer has read, but that occurs in no record after ``sequence``."""
        return UserError(
            f"{self.place.gtid} is in no record after sequence {sequence}, though the producer has passed it: it is "
            "applied already, or the producer's filters left out all of it",
            code="CDC-UNTIL-NO-RECORD",
            where=OPTION,
            hint="nothing was applied; name a sequence or a time with --until",
        )

    def up_to(self, transactions: Iterable[Transaction | None], *, applied: int) -> Iterator[Transaction | None]:
        """Yields ``transactions`` up to the place, including each None among them. ``applied`` is the sequence of the
        record before the first transaction.

        Raises UserError if the place can't be reached any more.
        """
        self.reached, self.repeating = None, False
        items = iter(transactions)
        if applied == self.place.sequence:
            self._reach(items, after=applied)
            return
        for item in items:
            if item is None:
                yield None
                continue
            if item.begins:
                self._begun = item.records[0]
            if self._ends_before(item):
                return
            if self._must_look_ahead(item):
                yield from self._look_ahead(items)
                return
            yield item
            if item.records[-1].sequence == self.place.sequence:
                self._reach(items, after=item.records[-1].sequence)
                return

    def _ends_before(self, item: Transaction) -> bool:
        """Whether the place is before the transaction or inside of it. ``item`` may be only a part of the
        transaction."""
        begun, place = self._begun, self.place
        assert begun is not None
        if place.sequence is not None:
            last = item.records[-1]
            if last.sequence > place.sequence or (last.sequence == place.sequence and not item.ends):
                self.reached = Reached(begun.sequence - 1, begun, inside=begun.sequence <= place.sequence)
        elif place.time_us is not None:
            if begun.ts_us >= place.time_us:
                self.reached = Reached(begun.sequence - 1, begun)
        elif begun.transaction == place.gtid:
            self.reached = Reached(begun.sequence - 1, begun)
        elif not self._found and not begun.of_copy:
            self._check_comes(begun)
        return self.reached is not None

    def _check_comes(self, begun: Record) -> None:
        """Raises UserError if the transaction of the place can't follow the record ``begun``. The GTIDs of each source
        appear in ascending order.
        """
        source, number = gtid_parts(self.place.gtid)
        hint = "everything before is applied; start again, or name a sequence or a time with --until"
        where = f"{OPTION}, before sequence {begun.sequence}"
        if not is_gtid(begun.transaction):
            raise UserError(
                f"the leader has no GTIDs, so {self.place.gtid} never comes",
                code="CDC-UNTIL-NO-GTID",
                where=where,
                hint=hint,
            )
        theirs, other = gtid_parts(begun.transaction)
        if theirs == source and int(other) > int(number):
            raise UserError(
                f"{self.place.gtid} did not come before {begun.transaction} of the same source: it has no records in "
                "the topic, or comes out of order",
                code="CDC-UNTIL-NO-GTID",
                where=where,
                hint=hint,
            )

    def _must_look_ahead(self, item: Transaction) -> bool:
        """Whether the rest of the transaction must be read before ``item`` is applied, to know whether the transaction
        ends before the place.

        That is so only for a statement, which commits by itself; all other parts of a transaction can be rolled back.
        """
        partial = item.begins and item.statement and not item.ends
        return partial and self.place.sequence is not None and item.records[0].sequence != self._whole

    def _look_ahead(self, items: Iterator[Transaction | None]) -> Iterator[None]:
        """Reads the rest of the transaction without applying it, to find out whether it ends before the place."""
        for item in items:
            if item is None:
                yield None
                continue
            if self._ends_before(item):
                return
            if item.ends:
                assert self._begun is not None
                self._whole, self.repeating = self._begun.sequence, True
                return

    def _reach(self, items: Iterator[Transaction | None], *, after: int) -> None:
        """Ends the stream after the transaction whose last record has the sequence ``after``. An error in later records
        is ignored.
        """
        self.reached = Reached(after, None)
        following = next(items, None)
        if following is not None:
            self.reached = Reached(after, following.records[0])
