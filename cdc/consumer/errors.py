"""A record that the follower can't take: the error of which ``--skip`` is one way out."""

from cdc.errors import PromiseError
from cdc.model.record import Record

__all__ = ["Unapplicable", "place", "unreadable"]


class Unapplicable(PromiseError):
    """The stream stops at ``record``. ``hint`` says what to mend; that the record may be left out is said after it."""

    def __init__(self, what: str, *, record: Record, hint: str) -> None:
        super().__init__(
            what,
            where=place(record),
            hint=f"{hint}; to do without this record for good: cdc-consumer PROFILE --skip {record.sequence}",
        )


def place(record: Record) -> str:
    """Where a record is, for errors."""
    return f"sequence {record.sequence}, leader position {record.position}"


def unreadable(record: Record, error: ValueError) -> Unapplicable:
    """The error for a value that has no literal."""
    return Unapplicable(
        f"a value of {record.uri} cannot be applied: {error}",
        record=record,
        hint="this producer writes values that this consumer does not know: use the same version of both",
    )
