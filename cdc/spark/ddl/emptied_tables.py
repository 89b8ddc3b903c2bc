"""Finds tables that only one side has emptied (TRUNCATE, DISCARD TABLESPACE), and that may have had rows from before
the logs. Pure.

Rows that are in the logs show by themselves that one side emptied their table. Rows from before the logs do not, since
neither fold has them. So the statement itself counts as drift until all rows of the table are in both logs: until
statements that both sides ran drop or empty the table, or the table is copied into the stream.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from cdc.config.table_globs import copy_command
from cdc.spark.ddl.definitions import SchemaDrift, Unmatched
from cdc.spark.ddl.lineage import Act, Beginning, Name, Segment, beginnings, lineage, table_name

__all__ = ["EMPTIED", "emptied_drift"]

EMPTIED = "emptied on one side"
"""The cause of this drift."""

_EMPTIES = "TruncateTable"


def emptied_drift(unmatched: Iterable[Unmatched], acts: Mapping[str, Sequence[Act]]) -> Iterator[SchemaDrift]:
    """Yields the tables that one of the ``unmatched`` statements emptied.

    ``acts`` maps each side to the effects of its statements, of the leader also the beginnings and ends of copies.
    """
    emptied = [
        (each, name)
        for each in unmatched
        for act in each.acts
        if act.action == _EMPTIES and (name := table_name(act.uri))
    ]
    if not emptied:
        return
    names = {name for _, name in emptied}
    lineages = {side: lineage(names, those) for side, those in acts.items()}
    alone = {side: {each.sequence for each, _ in emptied if each.side == side} for side in acts}
    otherwise = {side: _beginnings_without(alone[side], names, those) for side, those in acts.items()}
    for statement, name in emptied:
        owner = _owner_since(statement.sequence, name, lineages[statement.side])
        if owner is None:
            continue
        [other] = acts.keys() - {statement.side}
        known = (otherwise[statement.side], beginnings(lineages[other]))
        if all(each.get(owner, Beginning.OLDER) is not Beginning.KNOWN for each in known):
            evidence = f"{statement.evidence}; copy the table again: {copy_command(owner)}"
            yield SchemaDrift("Table", *owner, EMPTIED, evidence, (statement.acts[0].text,))


def _beginnings_without(alone: Collection[int], names: Iterable[Name], acts: Iterable[Act]) -> dict[Name, Beginning]:
    """Returns the beginnings that the tables would have if the statements ``alone`` had emptied none."""
    return beginnings(lineage(names, (act for act in acts if act.action != _EMPTIES or act.sequence not in alone)))


def _owner_since(sequence: int, name: Name, segments: Iterable[Segment]) -> Name | None:
    """Returns the present name of the table that was emptied at ``sequence``; None if it was dropped, emptied again or
    copied since.
    """
    since = (each for each in segments if (each.database, each.table) == name and each.first == sequence)
    return next((each.owner for each in since), None)
