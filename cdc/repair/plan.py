"""Decides how to request the drifted rows of a table: by a list of their keys, by requesting the whole table, or not at
all.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cdc.producer.copy.definition import TableDefinition
from cdc.producer.copy.keys import Keys, unfit
from cdc.repair.report import DriftedTable, Table

__all__ = ["Plan", "planned", "requests", "statement_of"]

_MOST_KEYS = 100_000
_ALWAYS = 1_000  # this number of keys may be requested even from a table with few rows
_A_REQUEST = 500  # the maximum number of keys in one request
_REQUEST_LENGTH = 200_000  # characters
# Reports of earlier versions name an operator.
_LACKS = re.compile(
    r"(?:only the leader has|left out by the consumer|skipped by an operator): "
    r"(.+) \(sequence \d+ at [^();]+, [^();]+\)"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for ``table``: to request the rows with some ``keys``, to request the ``whole`` table, or to request
    nothing. If no keys are requested, ``why`` is the reason.
    """

    table: DriftedTable
    keys: Keys | None = None
    whole: bool = False
    why: str = ""

    @property
    def summary(self) -> str:
        """Describes the plan in one line, for a terminal."""
        table = self.table
        of = f"{table.missing:,} missing, {table.extra:,} extra, {table.different:,} different"
        if self.keys is not None:
            what = "by their keys"
        elif self.whole:
            what = f"with the whole table, since {self.why}"
            if table.accepted:
                what += f"; {table.accepted:,} accepted rows become the leader's, too"
        else:
            what = f"NOT repaired: {self.why}"
        return f"{'.'.join(table.name)}: {of}; {what}"


def planned(
    table: DriftedTable, definition: TableDefinition, *, differently_defined: set[Table], is_wanted: bool
) -> Plan:
    """Decides how to request the drifted rows of ``table``. ``definition`` is the table's definition on the leader;
    ``is_wanted`` is true if the table passes the filters of the profile.
    """
    if not is_wanted:
        return Plan(table, why="the profile's filters leave the table out")
    if not definition.created:
        return Plan(table, why="the leader does not have the table")
    if table.name in differently_defined:
        return Plan(table, why="it is not defined as on the leader; correct that first, and audit again")
    if definition.refusal is not None:
        return Plan(table, why=f"it can't be copied: {definition.refusal}")
    if table.emptied:
        return Plan(table, whole=True, why="one side emptied it")
    if table.keys is None:
        keyless = any(not row["keyed"] for row in table.shown)
        return Plan(table, whole=True, why="it has no key" if keyless else "the report does not have all keys")
    if len(table.keys) > min(max(_ALWAYS, table.rows // 10), _MOST_KEYS):
        return Plan(table, whole=True, why="so many rows drifted")
    order = [table.columns.index(name) for name in definition.key if name in table.columns]
    columns = tuple(table.columns[at] for at in order)
    if set(columns) != set(table.columns):
        columns, order = table.columns, list(range(len(table.columns)))
    keys = Keys(table.name, columns, tuple(tuple(key[at] for at in order) for key in table.keys))
    if (why := unfit(definition, keys)) is not None:
        return Plan(table, whole=True, why=why)
    return Plan(table, keys)


def requests(keys: Keys) -> Iterator[Keys]:
    """Splits ``keys`` into requests of limited size."""
    part: list[tuple[str, ...]] = []
    length = 0
    for key in keys.values:
        size = sum(map(len, key))
        if part and (len(part) >= _A_REQUEST or length + size > _REQUEST_LENGTH):
            yield keys._replace(values=tuple(part))
            part, length = [], 0
        part.append(key)
        length += size
    if part:
        yield keys._replace(values=tuple(part))


def statement_of(drift: dict[str, Any]) -> str | None:
    """Returns the statement that the follower lacks, taken from the evidence of ``drift``. Returns None if the follower
    lacks more than one statement, or if the report does not contain the statement's whole text.
    """
    found = _LACKS.fullmatch(drift["evidence"])
    return found[1] if found and not found[1].endswith("…") and " (sequence " not in found[1] else None
