"""Decides whether a statement's changes pass the filters; refuses a statement if only some of these changes pass."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cdc.config.filters import Filters, filtered_name, swap
from cdc.errors import PromiseError
from cdc.producer.decode.changes import Statement
from cdc.producer.left_out_columns import without_removed
from cdc.sql.effects import ANY_DATABASE, MAINTAIN, Effect, of_these_tables, renamed_columns, way_out
from cdc.sql.text import is_lost
from cdc.sql.tokens import excerpt

__all__ = ["may_fire", "may_pass", "passing", "tables"]

_Name = tuple[str, str]


def passing(change: Statement, filters: Filters) -> Statement | None:
    """Returns the statement, or None if no object that it affects passes the filters, or if it changes only columns
    that are left out.

    A statement that maintains several tables is reduced to the tables that pass, one that defines a table to the
    columns that are not left out.

    Raises PromiseError if some objects pass and others do not, since half a statement can't be replicated. Also raises
    PromiseError for a statement whose text can't be sent, or after which a follower would differ from the leader.
    """
    named = [each for effect in change.effects for each in _filtered_names(effect)]
    wanted = [filters.wants(*each) for each in named]
    if change.unreadable and may_pass(change.effects, filters):
        raise _unreadable(change)
    if not any(wanted):
        return None
    if not all(wanted) and all(effect.action == MAINTAIN for effect in change.effects):
        return _without_removed(_narrowed(change, wanted), filters)
    if not all(wanted):
        names = ", ".join(".".join(part for part in each if part) for each in named)
        raise PromiseError(
            f"only a part of a statement passes the filters ({names}): {excerpt(change.text)}",
            code="CDC-STATEMENT-CROSSES-FILTERS",
            where=str(change.event.position),
            hint=_way_across(change, filters),
        )
    _require_same_masks(change, filters)
    _require_same_conditions(change, filters)
    shown = _without_removed(change, filters)
    if shown is None:
        return None
    change = shown
    reason = next((effect.unfaithful for effect in change.effects if effect.unfaithful), None)
    if reason:
        raise PromiseError(
            f"a follower can't repeat this statement: {reason}: {excerpt(change.text)}",
            code="CDC-STATEMENT-NOT-REPEATABLE",
            where=str(change.event.position),
            hint=way_out(reason),
        )
    return change


def _pairs(change: Statement) -> list[tuple[_Name, _Name]]:
    """Returns the pairs of tables of which one gets the name, the definition or rows of the other."""
    altered = [(effect.database, effect.name or "") for effect in change.effects if effect.action == "AlterTable"]
    pairs = [(altered[0], other) for other in altered[1:]]
    for effect in change.effects:
        other = effect.to if effect.action == "RenameTable" else effect.like
        pairs += [((effect.database, effect.name or ""), other)] if other else []
    return pairs


def _require_same_masks(change: Statement, filters: Filters) -> None:
    """Raises PromiseError if the statement renames a table or column, creates a table LIKE another or exchanges a
    partition with another table, and the profile masks the columns of both names in different ways.
    """
    if not filters.masks:
        return
    for one, other in _pairs(change):
        if filters.masks_of(*one) != filters.masks_of(*other):
            raise _unmasked(change, f"table {'.'.join(one)}", f"table {'.'.join(other)}")
    for effect in change.effects:
        names = effect.database, effect.name or ""
        if effect.action == "AlterTable":
            for old, new in renamed_columns(change.text, sql_mode=change.context.get("sql_mode", "")):
                if filters.mask(*names, old) != filters.mask(*names, new):
                    raise _unmasked(change, f"column {'.'.join((*names, old))}", f"column {new}")


def _unmasked(change: Statement, one: str, other: str) -> PromiseError:
    return PromiseError(
        f"{one} and {other} are masked in different ways: {excerpt(change.text)}",
        code="CDC-MASK-RENAMED",
        where=str(change.event.position),
        hint="name both alike in filters.mask_columns, and start again",
    )


def _without_removed(change: Statement, filters: Filters) -> Statement | None:
    """Returns the statement without the columns that are left out; None if it then changes nothing. Raises PromiseError
    if it names such a column in a place from which it can't be cut out.
    """
    if not filters.masks:
        return change
    try:
        text = without_removed(change.text, change.effects, change.context, filters)
        if text is not None and text != change.text and change.exact is not None:
            raise ValueError("it has bytes that can't be decoded")
    except ValueError as error:
        raise PromiseError(
            f"a column that is left out can't be left out of this statement: {error}: {excerpt(change.text)}",
            code="CDC-MASK-STATEMENT",
            where=str(change.event.position),
            hint="skip it, and do on the followers by hand what it does to other columns; a view can be left out with "
            "filters.exclude_tables",
        ) from None
    return None if text is None else change if text == change.text else replace(change, text=text)


def _require_same_conditions(change: Statement, filters: Filters) -> None:
    """Raises PromiseError if the statement renames a table, creates a table LIKE another or exchanges a partition with
    another table, and the profile leaves rows of the two tables out by different conditions.
    """
    if not filters.rows:
        return
    for one, other in _pairs(change):
        if filters.condition(*one) != filters.condition(*other):
            raise PromiseError(
                f"rows of table {'.'.join(one)} and table {'.'.join(other)} are left out by different conditions: "
                f"{excerpt(change.text)}",
                code="CDC-ROWS-RENAMED",
                where=str(change.event.position),
                hint="name both alike in filters.rows, or set filters.shadow_tables; start once with --accept-filters, "
                "and have both copied: cdc-producer PROFILE --copy DB.TABLE",
            )


def _narrowed(change: Statement, wanted: list[bool]) -> Statement:
    effects = tuple(effect for effect, passes in zip(change.effects, wanted, strict=True) if passes)
    names = [(effect.database, effect.name or "") for effect in effects]
    text = of_these_tables(change.text, names, sql_mode=change.context.get("sql_mode", ""))
    # The names are written as the server stores them, with letters that the session's character set may lack.
    context = change.context | {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}
    return replace(change, text=text, effects=effects, context=context, exact=None)


def may_pass(effects: Iterable[Effect], filters: Filters) -> bool:
    """Whether an object that these effects name passes the filters, or may pass them because its name is not fully
    known.
    """
    return any(
        effect == ANY_DATABASE
        or any(filters.wants(*each) or _may_want(filters, *each) for each in _filtered_names(effect))
        for effect in effects
    )


def may_fire(effects: Iterable[Effect], filters: Filters) -> bool:
    """Whether a trigger may have written rows that pass the filters. ``effects`` are the effects of the statement that
    fired the trigger.

    The leader logs which databases the statement used, but not which tables: a trigger may have written to any table of
    these databases.
    """
    return any(effect.action == "SkipTable" and filters.wants_database(effect.database) for effect in effects)


def tables(effect: Effect) -> Iterator[tuple[str, str]]:
    """Yields the tables that an effect names; they determine the topic of the statement's record."""
    if effect.action.endswith(("Table", "Index")) and effect.name is not None:
        yield effect.database, effect.name
    if effect.action.endswith("Table") and effect.to is not None:
        yield effect.to


def _filtered_names(effect: Effect) -> list[tuple[str, str | None]]:
    """Returns the objects of an effect as the filters name them: (database, name), or (database, None) if only the
    database counts."""
    objects = [(effect.database, effect.name), *([effect.to] if effect.to else [])]
    return [(database, filtered_name(effect.action, name)) for database, name in objects]


def _way_across(change: Statement, filters: Filters) -> str:
    """Returns the hint for a statement that affects objects that pass the filters, and objects that do not."""
    swapped = swap(((each.database, each.name), each.to) for each in change.effects if each.name and each.to)
    if swapped is None:
        return (
            "let all of these tables pass the filters, or none; if one gets a name that passes, leave out its new name "
            "too (filters.exclude_tables), start, and then let it in: it is created on followers and copied"
        )
    if not filters.wants_table(*swapped.table) or filters.wants_table(*swapped.new):
        return f"if a tool put another version of the table in its place, set {swapped.setting}, and start again"
    return (
        f"if a tool put another version of the table in its place, do its ALTER on the followers by hand, skip this "
        f"statement, and then set {swapped.setting}: docs/filters-and-renames.md (Online schema changes)"
    )


def _may_want(filters: Filters, database: str, name: str | None) -> bool:
    """Whether a name with bytes that could not be decoded may be the name of an object that passes the filters."""
    return is_lost(database) or (is_lost(name or "") and filters.wants_database(database))


def _unreadable(change: Statement) -> PromiseError:
    return PromiseError(
        f"{change.unreadable}: {excerpt(change.text)}",
        code="CDC-STATEMENT-UNREADABLE",
        where=str(change.event.position),
        hint="leave the objects that it names out with the filters (or their database, if a name is not "
        "known, and for routines, triggers and events), or skip it and do on the follower by hand what it did",
    )
