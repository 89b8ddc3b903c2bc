"""The events that an operator had a producer leave out (``cdc-producer --skip``): what they changed may differ. Pure.

The follower got nothing of them, and both topics agree on that; so they are drift for as long as what they name lives.
"""

from collections.abc import Iterable, Iterator, Sequence

from cdc.model.uri import Uri
from cdc.spark.schema.definitions import SchemaDrift
from cdc.spark.schema.lineage import Act
from cdc.sql.redaction import excerpt

__all__ = ["CAUSE", "is_skip", "left_out"]

CAUSE = "skipped event"

_SKIP = "Skip"


def is_skip(act: Act) -> bool:
    """Whether this says what an event that was left out may have changed."""
    return act.action.startswith(_SKIP)


def left_out(skips: Iterable[Act], acts: Sequence[Act], *, side: str) -> Iterator[SchemaDrift]:
    """What may differ by the ``skips`` of one side, of which ``acts`` are the statements."""
    ordered = sorted(acts)
    for skip in sorted(skips):
        kind, name = skip.action.removeprefix(_SKIP), _name(skip.uri)
        later = [act for act in ordered if act.sequence > skip.sequence]
        lives = _lives(kind, name, later)
        if lives is not None:
            evidence = f"{excerpt(skip.text, length=300)} (sequence {skip.sequence} of the {side})"
            yield SchemaDrift(kind, *lives, CAUSE, evidence)


def _lives(kind: str, name: tuple[str, str | None], later: Iterable[Act]) -> tuple[str, str | None] | None:
    """What is called so in the end; None where it was dropped."""
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
