"""Schema drift by events that an operator let a producer skip (``cdc-producer --skip``), from the statements. Pure.

Neither topic has these changes, so the rows in both are equal while the servers may differ: a skipped event counts as
drift until the object that it names is dropped.
"""

from collections.abc import Iterable, Iterator, Sequence

from cdc.model.uri import Uri
from cdc.spark.schema.definitions import SchemaDrift
from cdc.spark.schema.lineage import Act
from cdc.sql.redaction import excerpt

__all__ = ["CAUSE", "is_skip", "skipped_event_drift"]

CAUSE = "skipped event"

_SKIP = "Skip"


def is_skip(act: Act) -> bool:
    """Whether ``act`` names what a skipped event may have changed."""
    return act.action.startswith(_SKIP)


def skipped_event_drift(skips: Iterable[Act], acts: Sequence[Act], *, side: str) -> Iterator[SchemaDrift]:
    """The objects that may differ because of the ``skips`` of one side; ``acts`` are that side's statements."""
    ordered = sorted(acts)
    for skip in sorted(skips):
        kind, name = skip.action.removeprefix(_SKIP), _name(skip.uri)
        later = [act for act in ordered if act.sequence > skip.sequence]
        last_name = _last_name(kind, name, later)
        if last_name is not None:
            evidence = f"{excerpt(skip.text, length=300)} (sequence {skip.sequence} of the {side})"
            yield SchemaDrift(kind, *last_name, CAUSE, evidence)


def _last_name(kind: str, name: tuple[str, str | None], later: Iterable[Act]) -> tuple[str, str | None] | None:
    """The name of the object ``name`` after the statements ``later``; None if it was dropped."""
    for act in later:
        other = _name(act.uri)
        if act.action == "DropDatabase" and other[0] == name[0]:
            return None
        if other == name and act.action == f"Drop{kind}":
            return None
        if other == name and act.action == f"Rename{kind}" and act.to:
            name = _name(act.to)
    return name


def _name(uri: str) -> tuple[str, str | None]:
    parsed = Uri.parse(uri)
    return parsed.database, parsed.table
