"""Finds schema drift from events that an operator let a producer skip (``cdc-producer --skip``). Pure.

Neither topic contains the changes of a skipped event, so the rows in both topics are equal while the servers may
differ. So a skipped event counts as drift until statements drop the object that it names, or replace it by a new
object. ``CREATE TABLE … LIKE`` creates a new table with the same definition, so a skipped change of a definition counts
for that table too. ``ALTER TABLE … EXCHANGE PARTITION`` moves rows between two tables without logging them, so a
skipped event on one table counts for both. Once a table was copied into the stream completely, earlier skipped changes
of its rows don't matter.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from cdc.model.names import Uri
from cdc.spark.ddl.definitions import SchemaDrift
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, Act
from cdc.spark.ddl.object_history import like_source
from cdc.sql.tokens import excerpt, tokens

__all__ = ["CAUSE", "is_skip", "skipped_event_drift"]

CAUSE = "skipped event"

_SKIP = "Skip"
_Name = tuple[str, str | None]


def is_skip(act: Act) -> bool:
    """Whether ``act`` is an effect of a skipped event: it names an object that the event may have changed."""
    return act.action.startswith(_SKIP)


def skipped_event_drift(skips: Iterable[Act], acts: Sequence[Act], *, side: str) -> Iterator[SchemaDrift]:
    """Yields the objects that may differ because of the ``skips`` of one side; ``acts`` are that side's statements."""
    ordered = sorted(acts)
    for skip in sorted(skips):
        kind, name = skip.action.removeprefix(_SKIP), _name(skip.uri)
        later = [act for act in ordered if act.sequence > skip.sequence]
        for last_name in sorted(_last_names(kind, name, later, copies=skip.text.startswith("Query ")), key=repr):
            evidence = f"{excerpt(skip.text, length=300)} (sequence {skip.sequence} of the {side})"
            yield SchemaDrift(kind, *last_name, CAUSE, evidence)


def _last_names(kind: str, name: _Name, later: Iterable[Act], *, copies: bool) -> set[_Name]:
    """Returns the names that the object ``name`` has after the statements ``later``; with ``copies``, also the names of
    tables that were created LIKE it."""
    names, begun = {name}, set[_Name]()
    altering: tuple[int, _Name] | None = None  # the sequence and the table of the previous ALTER
    for act in later:
        other = _name(act.uri)
        if act.action == "AlterTable":
            # Only an exchange of partitions alters two tables.
            if altering and altering[0] == act.sequence and not names.isdisjoint((altering[1], other)):
                names |= {altering[1], other}
            altering = act.sequence, other
        if act.action == "DropDatabase":
            names = {each for each in names if each[0] != other[0]}
        elif act.action == f"Create{kind}":
            if other in names and not _may_exist(act.text):
                names.remove(other)  # the server created a new object, so the name was free
            source = like_source(act, {}) if copies else None
            if source and _name(source) in names:
                names.add(other)
        elif act.action == BEGINS_COPY:
            begun.add(other)
        elif act.action == ENDS_COPY and other in begun and not copies:
            names.discard(other)
        elif other in names and act.action == f"Drop{kind}":
            names.remove(other)
        elif other in names and act.action == f"Rename{kind}" and act.to:
            names.remove(other)
            names.add(_name(act.to))
    return names


def _may_exist(statement: str) -> bool:
    """Whether the object may have existed before a CREATE statement, which kept or replaced it."""
    words = [token.word() for token in islice(tokens(statement, ansi_quotes=False), 5)]
    return words[1:2] == ["OR"] or words[2:5] == ["IF", "NOT", "EXISTS"] or words[1:2] != ["TABLE"]


def _name(uri: str) -> _Name:
    parsed = Uri.parse(uri)
    return parsed.database, parsed.table
