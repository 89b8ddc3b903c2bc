"""The records that the operator lets the follower do without (``--skip``), each named by its sequence."""

from collections.abc import Iterable

from cdc.errors import UserError
from cdc.model.record import Record

__all__ = ["Skips"]

_OPTION = "option --skip"


class Skips:
    """Only what the follower refuses is left out: a sequence named by mistake costs no record.

    ``used`` are the sequences that were left out.
    """

    def __init__(self, sequences: Iterable[int] = ()) -> None:
        self._asked = frozenset(sequences)
        self.used: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._asked)

    def allow(self, record: Record) -> bool:
        """Whether the follower may do without the record."""
        return record.sequence in self._asked

    def check_start(self, applied: int, *, following: int | None) -> None:
        """Raises UserError for a sequence up to ``applied``, or that is not out: ``following`` is the next to come."""
        for sequence in sorted(self._asked):
            if sequence <= applied:
                raise UserError(
                    f"record {sequence} has been applied or skipped already: the follower is at sequence {applied}",
                    where=_OPTION,
                    hint="cdc-consumer PROFILE --status shows what was skipped; to go on, start without --skip",
                )
            if following is not None and sequence >= following:
                raise self._missing(sequence, f"the next to come is {following}")

    def check_applied(self, sequence: int) -> None:
        """Raises UserError where the follower, now at ``sequence``, took a record that was to be skipped."""
        taken = [asked for asked in self._asked - self.used if asked <= sequence]
        if taken:
            raise UserError(
                f"the follower has taken record {min(taken)}, so it is not skipped",
                where=_OPTION,
                hint="everything up to there is applied; to go on, start without --skip",
            )

    def check_end(self, sequence: int) -> None:
        """Raises UserError where the topic ended, at ``sequence``, before a record that was to be skipped."""
        for asked in sorted(self._asked):
            if asked > sequence:
                raise self._missing(asked, f"the last is {sequence}")

    def _missing(self, sequence: int, what: str) -> UserError:
        return UserError(
            f"there is no record {sequence} in the topic: {what}",
            where=_OPTION,
            hint="name the sequence that the consumer's error named",
        )
