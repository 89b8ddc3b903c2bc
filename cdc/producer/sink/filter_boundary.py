"""Whether what a statement changes passes the filters, and why it stops the stream where a part of it does not."""

from collections.abc import Iterable, Iterator

from cdc.config.filters import Filters, filtered_name
from cdc.errors import PromiseError
from cdc.producer.decode.changes import Statement
from cdc.sql.effects import ANY_DATABASE, Effect, way_out
from cdc.sql.redaction import excerpt
from cdc.sql.text import is_lost

__all__ = ["may_fire", "may_pass", "passes", "tables"]


def passes(change: Statement, filters: Filters) -> bool:
    """Whether any object that a statement affects passes the filters.

    Raises PromiseError where some pass and some do not, since half a statement can't be replicated, and for a statement
    that a follower can't be given, or can't repeat faithfully.
    """
    named = [place for effect in change.effects for place in _places(effect)]
    wanted = [filters.wants(*place) for place in named]
    if change.unreadable and may_pass(change.effects, filters):
        raise _unreadable(change)
    if not any(wanted):
        return False
    if not all(wanted):
        names = ", ".join(".".join(part for part in place if part) for place in named)
        raise PromiseError(
            f"a statement crosses the border of the filters ({names}): {excerpt(change.text)}",
            where=str(change.event.position),
            hint="let all of these tables in, or none; a table that was let in later needs a fresh copy",
        )
    doubt = next((effect.unfaithful for effect in change.effects if effect.unfaithful), None)
    if doubt:
        raise PromiseError(
            f"a follower can't do what this statement did: {doubt}: {excerpt(change.text)}",
            where=str(change.event.position),
            hint=way_out(doubt),
        )
    return True


def may_pass(effects: Iterable[Effect], filters: Filters) -> bool:
    """Whether anything that these effects name, or may mean, passes the filters."""
    return any(
        effect == ANY_DATABASE or any(filters.wants(*place) or _may_want(filters, *place) for place in _places(effect))
        for effect in effects
    )


def may_fire(effects: Iterable[Effect], filters: Filters) -> bool:
    """Whether a trigger of a table that a statement wrote, of which the log says nothing, may have written what passes.

    The leader names the databases that took part, so one that is in the table's own is in no log.
    """
    return any(effect.action == "SkipTable" and filters.wants_database(effect.database) for effect in effects)


def tables(effect: Effect) -> Iterator[tuple[str, str]]:
    """The tables of an effect, whose topic it goes to."""
    if effect.action.endswith(("Table", "Index")) and effect.name is not None:
        yield effect.database, effect.name
    if effect.action.endswith("Table") and effect.to is not None:
        yield effect.to


def _places(effect: Effect) -> list[tuple[str, str | None]]:
    """What the filters go by: the objects of an effect, or their databases (None for the name)."""
    places = [(effect.database, effect.name), *([effect.to] if effect.to else [])]
    return [(database, filtered_name(effect.action, name)) for database, name in places]


def _may_want(filters: Filters, database: str, name: str | None) -> bool:
    """Whether a name of which bytes are lost may be one that passes."""
    return is_lost(database) or (is_lost(name or "") and filters.wants_database(database))


def _unreadable(change: Statement) -> PromiseError:
    return PromiseError(
        f"{change.unreadable}: {excerpt(change.text)}",
        where=str(change.event.position),
        hint="leave what it names out with the filters (of a routine, trigger or event its database); "
        "a table can be made anew by another name, from a session in utf8mb4",
    )
