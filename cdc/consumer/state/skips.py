"""Decides which refused records are left out according to the option ``--skip``, by sequence or by table. Checks that
each named record was left out.
"""

from collections.abc import Callable, Iterable
from typing import Self

from cdc.config.table_globs import named, table_named
from cdc.errors import UserError
from cdc.model.names import folded
from cdc.model.record import Record, Uri

__all__ = ["Skips"]

_OPTION = "option --skip"


class Skips:
    """Decides which records may be left out. A record is left out only if the follower refuses it. So no record is lost
    if the option contains a wrong sequence.

    All refused records of ``tables`` (the leader's names) may be left out up to the first chunk of a copy of the table;
    ``new`` returns the follower's name of a database. ``used`` are the sequences of the records that were left out.
    """

    def __init__(
        self,
        sequences: Iterable[int] = (),
        tables: Iterable[tuple[str, str]] = (),
        *,
        new: Callable[[str], str] = str,
    ) -> None:
        self._wanted = frozenset(sequences)
        self._here = {(new(database), table): (database, table) for database, table in tables}
        # The sequence of the first chunk of each table, by the follower's name. A chunk is seen when it is planned, and
        # records before it may be executed after that.
        self._first_chunks: dict[tuple[str, str], int] = {}
        self.used: set[int] = set()

    @classmethod
    def parse(cls, options: Iterable[str], *, new: Callable[[str], str]) -> Self:
        """Parses the options of the command line, each ``SEQUENCE`` or ``DATABASE.TABLE`` (names with a dot in
        backquotes). Raises UserError.
        """
        numbers, tables = list[int](), list[tuple[str, str]]()
        for option in options:
            if option.isdecimal():
                numbers.append(int(option))
            elif table := table_named(option):
                tables.append(table)
            else:
                raise UserError(
                    f"{option!r} is neither a record's sequence nor a table",
                    code="CDC-SKIP-ARGUMENT",
                    where=_OPTION,
                    hint="give what the consumer's error says, such as 4711, shop.orders or '`my.db`.orders'",
                )
        return cls(numbers, tables, new=new)

    def fold(self, *, new: Callable[[str], str]) -> None:
        """Converts the names of the tables to lower case, for records whose names are in lower case. ``new`` returns
        the follower's name of a database; it is called with names in lower case.
        """
        lower = [(folded(database), folded(table)) for database, table in self._here.values()]
        self._here = {(new(database), table): (database, table) for database, table in lower}

    def again(self, after: int) -> tuple[list[int], list[str]]:
        """Returns the options to repeat if the run has committed nothing after sequence ``after``: the sequences of the
        later records that were left out, and the tables whose first chunk was not applied.
        """
        numbers = [number for number in self.used & self._wanted if number > after]
        return numbers, [named(*table) for table in self._before_copy(after).values()]

    def __bool__(self) -> bool:
        return bool(self._wanted or self._here)

    def allow(self, record: Record) -> bool:
        """Whether the record may be left out."""
        if record.sequence in self._wanted:
            return True
        # Records of a table copy are never left out, because they repair the table.
        tables = self._before_copy(record.sequence)
        if not tables or record.range is not None or record.copying:
            return False
        if record.operation != "Query":
            return (record.uri.database, record.uri.table) in tables
        # In a statement, names are still the leader's names.
        uris = [Uri.parse(affect[end]) for affect in record.affects for end in ("uri", "to") if end in affect]
        return bool(uris) and all((uri.database, uri.table) in tables.values() for uri in uris)

    def see(self, chunk: Record) -> None:
        """Notes that a chunk arrives. After the first chunk of a table in this run, no more records of that table are
        left out.
        """
        is_copied = chunk.range is not None and chunk.range.keys is None
        if is_copied and chunk.uri.table is not None:
            self._first_chunks.setdefault((chunk.uri.database, chunk.uri.table), chunk.sequence)

    def _before_copy(self, sequence: int) -> dict[tuple[str, str], tuple[str, str]]:
        """Returns the tables, as the follower names them and as the leader does, of which no chunk comes up to
        ``sequence``."""
        first = self._first_chunks
        return {here: there for here, there in self._here.items() if here not in first or sequence < first[here]}

    def pass_over(self, sequence: int) -> None:
        """Notes that a record is left out because it touches a parked table, so that ``--skip`` does not miss it."""
        if sequence in self._wanted:
            self.used.add(sequence)

    def check_start(self, applied: int, *, following: int | None) -> None:
        """Raises UserError for a sequence up to ``applied``, and for a sequence from ``following`` on. ``following`` is
        the next sequence that the producer will write.
        """
        for sequence in sorted(self._wanted):
            if sequence <= applied:
                raise UserError(
                    f"record {sequence} has been applied or skipped already: the follower is at sequence {applied}",
                    code="CDC-SKIP-NO-RECORD",
                    where=_OPTION,
                    hint="cdc-consumer PROFILE --status shows what was skipped; to continue, start without --skip",
                )
            if following is not None and sequence >= following:
                raise self._missing(sequence, f"the next one will be {following}")

    def check_applied(self, sequence: int) -> None:
        """Raises UserError if the follower has applied a record that should have been skipped; ``sequence`` is the last
        applied sequence.
        """
        applied = [wanted for wanted in self._wanted - self.used if wanted <= sequence]
        if applied:
            raise UserError(
                f"the follower has applied record {min(applied)}, so it is not skipped",
                code="CDC-SKIP-NO-RECORD",
                where=_OPTION,
                hint="everything up to there is applied; to continue, start without --skip",
            )

    def check_end(self, sequence: int) -> None:
        """Raises UserError if the topic has ended before a record that should be skipped; ``sequence`` is the last
        sequence in the topic.
        """
        for wanted in sorted(self._wanted):
            if wanted > sequence:
                raise self._missing(wanted, f"the last is {sequence}")

    def _missing(self, sequence: int, what: str) -> UserError:
        return UserError(
            f"there is no record {sequence} in the topic: {what}",
            code="CDC-SKIP-NO-RECORD",
            where=_OPTION,
            hint="use the sequence in the consumer's error message",
        )
