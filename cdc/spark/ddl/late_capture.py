"""Decides which tables can be compared if the capture of the follower began late, after the follower had applied a part
of the leader's stream. Pure.

The follower's topic then lacks what the follower had applied by that time. If the capture has copied a table
(``cdc-producer --copy``, ``producer.start = "copy"``), the topic contains all of its rows again, in the copy's chunks
and in later changes. So the table can be compared if the leader's topic contains all of the leader's rows, too, in the
columns that the follower had when its table was copied:

- The leader's stream contains the table from its beginning, or a complete copy of it.
- The follower's log contains each ALTER TABLE that the leader's rows have come through. An ALTER that the follower ran
  before its copy began changed the leader's rows without a record, and the chunks contain the rows as they were after
  it. Even equal images prove nothing then: a column that ALTER added with a DEFAULT is in no image of the leader.

All other tables are **unjudged**. A copy of the table by the leader's producer meets both conditions.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from cdc.model.gtid import StatementSequences
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import Act, Beginning, Name, Segment, beginnings, lineage, table_name
from cdc.spark.ddl.table_copies import ALTERED, NOT_CAPTURED, OLDER, TableCopy, table_copies

__all__ = ["NOT_LATE", "Captured", "LateCapture", "LateTables", "existing", "late_tables"]


@dataclass(frozen=True, slots=True)
class LateCapture:
    """A capture that began when the follower had applied the leader's stream up to the sequence ``begins``.

    ``settled`` is the sequence that the follower had reached after the first transaction in its log. Statements up to
    there are not compared: the follower may have run one just before the capture began, and noted it just after.
    ``copies`` are the beginnings and ends of the copies of the follower's tables.
    """

    begins: int
    settled: int
    copies: Sequence[Act] = ()

    def upto(self, end: int, wants: Callable[[Act], bool] = lambda _: True) -> Self:
        """Returns the capture with its copies up to the follower's sequence ``end``, of tables that pass ``wants``."""
        return replace(self, copies=[act for act in self.copies if act.sequence <= end and wants(act)])

    def compared(
        self, leader: Iterable[Act], follower: Iterable[Act], sequences: StatementSequences
    ) -> tuple[list[Act], list[Act]]:
        """Selects the statements of both sides that are compared: those that came after the capture began."""
        ran = ((act, sequences.of(act.transaction)) for act in follower)
        return (
            [act for act in leader if act.sequence > self.settled],
            [act for act, sequence in ran if sequence is None or sequence > self.settled],
        )


@dataclass(frozen=True, slots=True)
class Captured:
    """A compared table whose rows in the follower's topic begin with a copy; the follower had applied the leader's
    stream up to the sequence ``at`` when the capture began.

    ``altered`` is true if the follower altered the table after that copy, and before it applied a copy from the leader:
    the consumer did not write rows that equalled the leader's copy, so the log may have them in other columns.
    """

    at: int
    altered: bool = False


@dataclass(frozen=True, slots=True)
class LateTables:
    """The tables of a late capture: why those in ``unjudged`` can't be compared, and which others are ``captured``."""

    unjudged: Mapping[Name, str] = field(default_factory=dict)
    captured: Mapping[Name, Captured] = field(default_factory=dict)


NOT_LATE = LateTables()


def late_tables(
    late: LateCapture,
    leader: Sequence[Act],
    follower: Sequence[Act],
    *,
    tables: tuple[Collection[Name], Collection[Name]],
    sequences: StatementSequences,
    left_out: Callable[[str, str], bool],
) -> LateTables:
    """Decides which tables that exist on either side can be compared.

    ``leader`` and ``follower`` are the effects of both sides' statements, the leader's with the beginnings and ends of
    its copies. ``tables`` are the tables with rows in the leader's and in the follower's topic. ``left_out`` is
    true for a table that the leader's producer leaves out: it is the follower's own.
    """
    follower = [*follower, *late.copies]
    names = {name for name in existing(tables[0], leader) | existing(tables[1], follower) if not left_out(*name)}
    ours, theirs = (_Lives(names, acts) for acts in (leader, follower))
    transactions = {act.sequence: act.transaction for act in follower}
    unjudged, captured = dict[Name, str](), dict[Name, Captured]()
    for name in sorted(names):
        copy = ours.copies.get(name)
        if copy is not None and not copy.complete:
            continue  # the table is under copy, or parked, which is a reason of its own
        ran = {sequences.of(transactions[sequence]) for sequence in theirs.alters(name)}
        if not theirs.has_all(name):
            unjudged[name] = NOT_CAPTURED
        elif not ours.has_all(name):
            unjudged[name] = OLDER
        elif not ours.alters(name) <= ran:
            unjudged[name] = ALTERED
        elif name in theirs.copies:
            began = copy.began if copy else None
            altered = began is not None and any(each is not None and each < began for each in ran)
            captured[name] = Captured(late.begins, altered)
    return LateTables(unjudged, captured)


class _Lives:
    """What one server's statements ``acts``, with the beginnings and ends of copies, show about its tables."""

    def __init__(self, names: Collection[Name], acts: Sequence[Act]) -> None:
        self.copies: Mapping[Name, TableCopy] = table_copies(acts)
        found = lineage(names, acts)
        self._beginnings = beginnings(found)
        self._segments: dict[Name, list[Segment]] = {}
        for each in found:
            if each.owner:
                self._segments.setdefault(each.owner, []).append(each)

    def has_all(self, name: Name) -> bool:
        """Whether the stream contains all rows of the table: from its beginning, or by a complete copy."""
        copy = self.copies.get(name)
        return self._beginnings.get(name) is Beginning.KNOWN if copy is None else copy.complete

    def alters(self, name: Name) -> set[int]:
        """Returns the sequences of the ALTERs of the table after its beginning or its copy."""
        first: dict[int, int] = {}
        for each in self._segments.get(name, ()):
            first[each.era] = min(first.get(each.era, each.first), each.first)
        return {sequence for era, sequence in first.items() if era}


def existing(tables: Iterable[Name], acts: Iterable[Act]) -> set[Name]:
    """Returns the tables that exist after the statements ``acts``; ``tables`` are those with rows in the topic."""
    found = set(tables)
    for act in sorted(acts):
        name = table_name(act.uri)
        if act.action == "DropDatabase":
            found -= {each for each in found if each[0] == Uri.parse(act.uri).database}
        elif name is None:
            continue
        elif act.action == "CreateTable":
            found.add(name)
        elif act.action == "DropTable":
            found.discard(name)
        elif act.action == "RenameTable" and name in found:
            found.remove(name)
            found |= {new for new in (table_name(act.to or ""),) if new}
    return found
