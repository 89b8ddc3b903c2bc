"""The records that the operator leaves out (``--skip``), by sequence, and the checks that each was really left out."""

from collections.abc import Iterable

from cdc.errors import UserError
from cdc.model.record import Record

__all__ = ["Skips"]

_OPTION = "option --skip"


class Skips:
    """Only records that the follower refuses are left out, so a sequence named by mistake loses no record.

    ``used`` are the sequences that were left out.
    """

    def __init__(self, sequences: Iterable[int] = ()) -> None:
        self._wanted = frozenset(sequences)
        self.used: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def allow(self, record: Record) -> bool:
        """Whether the record may be left out."""
        return record.sequence in self._wanted

    def check_start(self, applied: int, *, following: int | None) -> None:
        """Raises UserError for a sequence up to ``applied``, or from ``following`` on, the next one to be written."""
        for sequence in sorted(self._wanted):
            if sequence <= applied:
                raise UserError(
                    f"record {sequence} has been applied or skipped already: the follower is at sequence {applied}",
                    where=_OPTION,
                    hint="cdc-consumer PROFILE --status shows what was skipped; to go on, start without --skip",
                )
            if following is not None and sequence >= following:
                raise self._missing(sequence, f"the next one will be {following}")

    def check_applied(self, sequence: int) -> None:
        """Raises UserError if the follower, now at ``sequence``, applied a record that should have been skipped."""
        applied = [wanted for wanted in self._wanted - self.used if wanted <= sequence]
        if applied:
            raise UserError(
                f"the follower has applied record {min(applied)}, so it is not skipped",
                where=_OPTION,
                hint="everything up to there is applied; to go on, start without --skip",
            )

    def check_end(self, sequence: int) -> None:
        """Raises UserError if the topic ended, at ``sequence``, before a record that should have been skipped."""
        for wanted in sorted(self._wanted):
            if wanted > sequence:
                raise self._missing(wanted, f"the last is {sequence}")

    def _missing(self, sequence: int, what: str) -> UserError:
        return UserError(
            f"there is no record {sequence} in the topic: {what}",
            where=_OPTION,
            hint="use the sequence in the consumer's error message",
        )
