"""Follows the leader's statements and the records that begin and end copies of tables, and lists the tables that were
copied into the stream, or are about to be copied. Pure.

A copy is complete with its last chunk. If a statement interrupts a copy, the copy begins again. Until the copy is
complete, the stream does not contain all of the table's rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc.config.table_globs import copy_command
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import ALTERS, BEGINS_COPY, ENDS_COPY, PARKS, UNPARKS, Act, Name, table_name

__all__ = [
    "ALTERED",
    "NOT_CAPTURED",
    "OLDER",
    "TableCopy",
    "UnderCopy",
    "incomplete_copies",
    "table_copies",
    "under_copy",
]

NOT_CAPTURED, OLDER, ALTERED = "not in the follower's topic", "not in the leader's topic", "altered before the capture"
"""Why a late capture does not make a table comparable: the follower's topic has no complete copy of it, the leader's
topic does not have all of its rows, or it was altered after rows were logged on the leader and before it was copied on
the follower."""

_NAMED = 10  # maximum number of tables that the explanation names
_NONE: Mapping[Name, str] = {}


@dataclass(frozen=True, slots=True)
class TableCopy:
    """The progress of a table's copy.

    ``since`` is the sequence of the record that announces the copy: a statement that creates the table, a statement
    that a follower can't repeat, or else the first chunk. ``began`` is the sequence of the first chunk; None if the
    copy has not begun. ``altered`` is true if an earlier ALTER TABLE, or a change of an index, may have changed rows,
    and the columns of the key, without a record. ``alters`` is the number of such statements after the copy was
    complete, which is also the number of eras that the lineage counts for them. If ``parked`` is true, the follower
    leaves out all changes of the table from ``since`` on, until a copy begins.
    """

    since: int
    began: int | None = None
    complete: bool = False
    altered: bool = False
    alters: int = 0
    parked: bool = False


@dataclass(frozen=True, slots=True)
class UnderCopy:
    """A table that is not compared yet, since its copy is not complete; for ``began`` see TableCopy. ``parked`` is the
    sequence from which on the follower leaves out its changes; None if it is not parked. ``late`` is the reason why the
    table can't be compared in spite of a late capture of the follower (``ddl.late_capture``), else None.
    """

    database: str
    table: str
    began: int | None
    parked: int | None = None
    late: str | None = None


def under_copy(copies: Mapping[Name, TableCopy], late: Mapping[Name, str] = _NONE) -> list[UnderCopy]:
    """Returns the tables among ``copies`` whose copy is not complete, and the tables in ``late``, sorted by name."""
    found = {
        name: UnderCopy(*name, each.began, each.since if each.parked else None)
        for name, each in copies.items()
        if not each.complete
    }
    found |= {name: UnderCopy(*name, None, late=reason) for name, reason in late.items()}
    return [found[name] for name in sorted(found)]


def incomplete_copies(tables: Sequence[UnderCopy], sequence: int | None) -> list[str]:
    """Returns the reasons why an audit at the leader's ``sequence`` reaches no verdict, although it found no drift."""
    parked = [each for each in tables if each.parked is not None]
    late = [each for each in tables if each.late is not None]
    copied = [each for each in tables if each.parked is None and each.late is None]
    reasons = [_incomplete(copied, sequence)] if copied or not tables else []
    reasons += [_parked(parked)] if parked else []
    return [*reasons, *_of_late_capture(late)]


def _of_late_capture(tables: Sequence[UnderCopy]) -> Iterator[str]:
    """Yields a reason for each kind of tables that a late capture of the follower does not make comparable."""
    found = {why: [each for each in tables if each.late == why] for why in (NOT_CAPTURED, OLDER, ALTERED)}
    if of_kind := found[NOT_CAPTURED]:
        yield (
            "the follower's topic began late, and has no complete copy of these tables of the follower "
            f"({len(of_kind)} in all): {_names(of_kind)}; if they are not being copied, create those that the follower "
            "lacks, and have them copied into its topic: cdc-producer FOLLOWER_PROFILE --copy DB.TABLE (if the filters "
            "of cdc-consumer leave them out, name its profile with --consumer)"
        )
    if of_kind := found[OLDER]:
        yield (
            "the follower's topic began late, and the leader's does not have all rows of these tables "
            f"({len(of_kind)} in all): {_names(of_kind)}; have them copied into the leader's: {_copy(of_kind)}"
        )
    if of_kind := found[ALTERED]:
        yield (
            "the follower's topic began late, after these tables were altered, so the leader's topic does not have "
            f"their rows as they are since ({len(of_kind)} in all): {_names(of_kind)}; have them copied into the "
            f"leader's: {_copy(of_kind)}"
        )


def _copy(tables: Sequence[UnderCopy]) -> str:
    return copy_command(*((each.database, each.table) for each in tables[:_NAMED]))


def _names(tables: Sequence[UnderCopy]) -> str:
    return ", ".join(f"{each.database}.{each.table}" for each in tables[:_NAMED]) + ", …" * (len(tables) > _NAMED)


def _parked(tables: Sequence[UnderCopy]) -> str:
    names = _names(tables)
    first = min(each.parked for each in tables if each.parked is not None)
    return (
        f"the follower has parked tables since sequence {first}, so they are not compared until they are copied again, "
        f"or their changes are applied (cdc-consumer PROFILE --retry-parked; {len(tables)} in all): {names}"
    )


def _incomplete(tables: Sequence[UnderCopy], sequence: int | None) -> str:
    names, count = _names(tables), len(tables)
    return (
        f"the copy into the leader's topic is not complete at sequence {sequence}, so these tables are not compared "
        f"yet ({count} in all): {names}"
    )


def table_copies(acts: Iterable[Act]) -> dict[Name, TableCopy]:
    """Finds the tables that were copied and still exist. ``acts`` are the leader's statements, and the beginnings and
    ends of copies."""
    copies = _Copies()
    for act in sorted(acts):
        copies.apply(act)
    return copies.found


class _Copies:
    """Collects the tables that were copied so far, and the tables that were altered since they were created or
    truncated.
    """

    def __init__(self) -> None:
        self.found: dict[Name, TableCopy] = {}
        self._altered: set[Name] = set()
        # of each table that is parked, or was and has been copied since, the copy to which it returns with UNPARKS
        self._unparked: dict[Name, TableCopy | None] = {}
        self._ended: dict[Name, int] = {}  # the sequence of the last record of each table's newest copy

    def apply(self, act: Act) -> None:
        """Applies one statement, or the beginning or end of a copy."""
        name = table_name(act.uri)
        if act.action == "DropDatabase":
            database = Uri.parse(act.uri).database
            for each in [each for each in {*self.found, *self._altered} if each[0] == database]:
                self._forget(each)
        elif name is None:
            return
        elif act.action == "RenameTable" and act.to and (new := table_name(act.to)) not in (None, name):
            assert new is not None
            self._rename(name, new)
        elif act.action == "DropTable":
            self._forget(name)
        elif act.action in ALTERS:
            self._alter(name, act)
        elif act.action == PARKS:
            self._park(name, act.sequence)
        elif act.action == UNPARKS:
            self._unpark(name)
        elif act.action == BEGINS_COPY:
            self.found[name] = TableCopy(act.sequence, act.sequence, altered=name in self._altered)
        else:
            self._know(name, act)

    def _park(self, name: Name, sequence: int) -> None:
        copy = self.found.get(name)
        if name not in self._unparked:
            # The follower may leave out chunks of a copy that is under way, so its end proves nothing.
            self._unparked[name] = copy if copy is None or copy.complete else replace(copy, began=None)
        elif copy is None or not copy.parked:
            # The follower has left out a copy that came while the table was parked, or a part of it: it notes so at the
            # copy's end, too. A note after the end of a copy parks a table that was right again.
            right = copy is not None and copy.complete and self._ended.get(name) != sequence
            self._unparked[name] = copy if right else TableCopy(sequence, altered=name in self._altered)
        self.found[name] = TableCopy(sequence, altered=name in self._altered, parked=True)

    def _unpark(self, name: Name) -> None:
        before, copy = self._unparked.pop(name, None), self.found.get(name)
        if copy is None or not copy.parked:
            return  # a copy of the table came before
        del self.found[name]
        if before is not None:
            self.found[name] = before

    def _know(self, name: Name, act: Act) -> None:
        """Applies a statement that creates or truncates the table, or the end of its copy."""
        copy = self.found.get(name)
        if act.action in ("CreateTable", "TruncateTable") and act.copying:
            self._altered.discard(name)
            self.found[name] = TableCopy(act.sequence)
        elif act.action == "TruncateTable":
            self._altered.discard(name)
            if copy and not copy.parked:
                self.found[name] = TableCopy(act.sequence, act.sequence, complete=True)
        elif act.action == ENDS_COPY and copy and copy.began is not None:
            self.found[name] = replace(copy, complete=True)
            self._ended[name] = act.sequence

    def _forget(self, name: Name) -> None:
        self.found.pop(name, None)
        self._unparked.pop(name, None)
        self._altered.discard(name)

    def _rename(self, old: Name, new: Name) -> None:
        copy, altered = self.found.get(old), old in self._altered
        parked = {new: self._unparked[old]} if old in self._unparked else {}
        self._forget(old)
        self._forget(new)
        if copy:
            self.found[new] = copy if copy.complete else replace(copy, began=None)
        self._unparked |= parked
        if altered:
            self._altered.add(new)

    def _alter(self, name: Name, act: Act) -> None:
        self._altered.add(name)
        if (before := self._unparked.get(name)) is not None:
            self._unparked[name] = replace(before, alters=before.alters + before.complete)
        if act.copying:
            self.found[name] = TableCopy(act.sequence)  # the follower's rows differ until the table is copied again
        elif copy := self.found.get(name):
            self.found[name] = replace(copy, alters=copy.alters + 1) if copy.complete else replace(copy, began=None)
