"""Answers questions about records from an index, and reads the records themselves from Kafka."""

from dataclasses import dataclass

from cdc.browse.entries import Entry
from cdc.browse.filters import Filter
from cdc.browse.index import Index
from cdc.browse.records import Decoded

__all__ = ["Page", "Queries"]


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries in the requested order. ``next`` is the cursor of the following page, None if there is no other
    entry yet.
    """

    entries: tuple[Entry, ...]
    next: int | None


class Queries:
    """Questions to ``index``. All methods may be called by any thread. They raise no error about the index's file: a
    damaged one is empty until the next ``Index.refresh``.
    """

    def __init__(self, index: Index) -> None:
        raise NotImplementedError

    def page(self, filter_: Filter, *, cursor: int | None = None, newest_first: bool = True, limit: int = 50) -> Page:
        """At most ``limit`` entries that pass ``filter_``, from ``cursor`` on (the ``next`` of the page before)."""
        raise NotImplementedError

    def entry(self, sequence: int) -> Entry | None:
        """The entry of this record; None if the index does not have it."""
        raise NotImplementedError

    def keys(self, sequence: int, *, after: int = -1, limit: int = 100) -> list[tuple[int, str]]:
        """The keys of a record, with their numbers, from behind the number ``after``."""
        raise NotImplementedError

    def transaction(self, sequence: int, *, cursor: int | None = None, limit: int = 1000) -> Page:
        """The entries of the leader transaction to which the record belongs, oldest first."""
        raise NotImplementedError

    def row_before(self, sequence: int, key: str) -> Entry | None:
        """The newest change, before this record, of the row with this ``key`` in the record's table.

        An update that changes a row's key is a change of both keys: to follow the row back over it, go on with the key
        that the row had before (``RowChange.key_before``). None if there is no such change from ``State.oldest`` on.
        """
        raise NotImplementedError

    def row_after(self, sequence: int, key: str) -> Entry | None:
        """The oldest change, after this record, of the row with this ``key`` in the record's table; see
        ``row_before``. To follow the row over a changed key, go on with ``RowChange.key_after``.
        """
        raise NotImplementedError

    def record(self, sequence: int, *, most_bytes: int = 20_000_000) -> Decoded:
        """The whole record, read from Kafka at its offset.

        Raises UserError if the index does not have it, if it is larger than ``most_bytes``, if retention has deleted it
        (code CDC-BROWSE-RECORD-GONE), or if Kafka does not answer.
        """
        raise NotImplementedError
