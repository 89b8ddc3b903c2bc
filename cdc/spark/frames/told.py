"""What a leader's stream tells beside rows: what statements did, where copies are, and types of columns. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from cdc.errors import UserError
from cdc.model.uri import Uri
from cdc.spark.ddl.lineage import Act, Name, table_name

__all__ = ["Columns", "CopyIncomplete", "History", "NotTold", "Statement", "Told", "existing"]

Columns = tuple[tuple[str, str], ...]
"""Names and types of a table's columns, in order."""


class NotTold(UserError):
    """No record tells a table's columns yet: it has no rows, or the stream is of a version that tells no types."""


class CopyIncomplete(UserError):
    """A table is being copied into the stream, so the stream does not have all of its rows yet."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a statement and the session that it depends on; ``exact``: its bytes are those of the text."""

    text: str
    sql_mode: frozenset[str]
    charset: str
    explicit_timestamps: bool
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Told:
    """What the record ``sequence`` tells of the columns of a table; ``key`` is None in a table without one."""

    name: Name
    sequence: int
    columns: Columns
    key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class History:
    """All ``acts`` in order, the ``statements`` behind them by sequence, what records told of columns, and whether the
    server left out of its log what foreign keys change (``silent_cascades``), as servers before MySQL 9.6 do."""

    acts: tuple[Act, ...]
    statements: Mapping[int, Statement]
    told: tuple[Told, ...]
    silent_cascades: bool

    def upto(self, sequence: int) -> list[Act]:
        """The acts up to and with ``sequence``."""
        return [act for act in self.acts if act.sequence <= sequence]


def existing(history: History, sequence: int) -> dict[Name, int]:
    """The tables that there are after ``sequence``, and the first sequence that tells of each since it is there."""
    found: dict[Name, int] = {}
    views: set[Name] = set()  # which RENAME TABLE renames, too
    events: list[tuple[int, int, Act | Told]] = [(act.sequence, act.place, act) for act in history.upto(sequence)]
    events += [(told.sequence, 0, told) for told in history.told if told.sequence <= sequence]
    for number, _, event in sorted(events, key=lambda each: each[:2]):
        if isinstance(event, Told):
            found.setdefault(event.name, number)
            continue
        name = table_name(event.uri)
        if event.action == "DropDatabase":
            database = Uri.parse(event.uri).database
            found = {each: first for each, first in found.items() if each[0] != database}
            views = {each for each in views if each[0] != database}
        elif event.action in ("DropTable", "DropView") and name:
            found.pop(name, None)
            views.discard(name)
        elif event.action == "CreateView" and name:
            views.add(name)
        elif event.action == "RenameTable" and name and event.to and (new := table_name(event.to)):
            if name in views:
                views = {*views, new} - {name}
            else:
                found[new] = found.pop(name, number)
        elif event.action in ("CreateTable", "AlterTable", "TruncateTable") and name:
            found.setdefault(name, number)
    return found
