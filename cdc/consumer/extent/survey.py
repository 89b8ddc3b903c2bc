"""Looks at the records that ``--rewind`` would apply again, and finds what cannot be applied again faithfully. Pure.

What can be: rows with a key in tables as they were, since the last image of each row is in a record, and statements
that make objects which then stay. What a statement does to the rows of a table before it would be undone by the rows,
and rows without a key would be there twice.
"""

from collections.abc import Callable, Collection, Iterable

from cdc.config.filters import filtered_name
from cdc.model.record import COPY, SKIPPED, Record, Uri
from cdc.sql.tokens import excerpt

__all__ = ["Survey"]

_NO_ROWS = ("View", "Procedure", "Function", "Trigger", "Event")
_HARMLESS = ("CreateDatabase", "AlterDatabase")
_SHOWN = 5
_WAS_SKIPPED = "a record that was skipped (cdc-consumer --skip)"

Table = tuple[Uri, tuple[str, ...], tuple[str, ...] | None, int]  # with columns, key and flags of its records


class Survey:
    """``passes(uri)`` says what is replicated, by the leader's names, ``copied(record)`` whether the follower began
    with it. ``why_not(record)`` says why rows of this table can't be applied again, empty where they can. ``skipped``
    are the sequences of records that were skipped.

    ``first`` and ``last`` are the first and the last record that were seen. ``behind`` is the end of the last
    transaction that is in the way, -1 where none is. ``created`` are the tables that statements made.
    """

    def __init__(
        self,
        *,
        passes: Callable[[Uri], bool],
        copied: Callable[[Record], bool],
        why_not: Callable[[Record], str],
        skipped: Collection[int] = (),
    ) -> None:
        self._passes = passes
        self._copied = copied
        self._why_not = why_not
        self._skipped = skipped
        self._known: dict[Table, str] = {}
        self._blocked = False  # the transaction that is read
        self._touched: set[Uri] = set()  # tables with rows
        self._obstacles: dict[str, int] = {}  # and the sequence of the first record of each
        self.created: dict[Uri, Record] = {}
        self.behind = -1

    @property
    def obstacles(self) -> str:
        """What is in the way, for people; empty where nothing is."""
        told = [f"{what} (sequence {sequence})" for what, sequence in self._obstacles.items()]
        more = [f"and {len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
        return "; ".join(told[:_SHOWN] + more)

    def see(self, records: Iterable[Record]) -> None:
        """Look at the records, which follow one another."""
        for record in records:
            if reason := self._reason(record):
                self._obstacles.setdefault(reason, record.sequence)
                self._blocked = True
            if record.last and self._blocked:
                self._blocked, self.behind = False, record.sequence

    def lacks(self, table: Uri) -> None:
        """The follower has no such table, though a statement among the records made it."""
        record = self.created[table]
        self._obstacles[f"the follower lacks table {_name(table)}, which a statement made: {_text(record)}"] = (
            record.sequence
        )
        self.behind = max(self.behind, record.sequence)

    def _reason(self, record: Record) -> str:
        if record.operation in ("Query", SKIPPED):
            return self._of_statement(record)
        if not self._passes(record.uri):
            return ""
        if record.operation == COPY or record.copying:
            return f"table {_name(record.uri)} was copied into the stream, and what came before its copy is not there"
        if self._copied(record):
            return "what the copy had from which the follower began"
        if record.sequence in self._skipped:
            return _WAS_SKIPPED
        self._touched.add(record.uri)
        table = record.uri, record.columns, record.key, record.flags
        if table not in self._known:
            self._known[table] = self._why_not(record)
        return self._known[table]

    def _of_statement(self, record: Record) -> str:
        named = [affect | {"uri": affect[end]} for affect in record.affects for end in ("uri", "to") if end in affect]
        ours = [affect for affect in named if self._passes(_filtered(affect))]
        if record.operation == SKIPPED:
            return f"an event that the producer left out: {_text(record)}" if ours or not named else ""
        if ours and self._copied(record):
            return "what the copy had from which the follower began"
        if ours and record.sequence in self._skipped:
            return _WAS_SKIPPED
        for affect in ours:
            action, uri = affect["action"], Uri.parse(affect["uri"])
            if action == "CreateTable" and uri not in self._touched:
                self.created[uri] = record
            elif not action.endswith(_NO_ROWS) and action not in _HARMLESS:
                return f"a statement, which stays done, changes {_name(uri)}: {_text(record)}"
        return ""


def _filtered(affect: dict[str, str]) -> Uri:
    uri = Uri.parse(affect["uri"])
    return Uri(uri.resource, uri.database, filtered_name(affect["action"], uri.table))


def _text(record: Record) -> str:
    return excerpt(record.query)


def _name(uri: Uri) -> str:
    return f"{uri.database}.{uri.table}" if uri.table else uri.database
