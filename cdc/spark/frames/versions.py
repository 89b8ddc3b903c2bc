"""Finds the versions of a table, from one ALTER to the next, and how to convert the rows of each version to the last
version. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from cdc.config.table_globs import copy_command
from cdc.errors import UserError
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import (
    BEGINS_COPY,
    CASCADES,
    END,
    Act,
    Beginning,
    Name,
    Segment,
    exchanged,
    lineage,
    table_name,
)
from cdc.spark.ddl.table_copies import table_copies
from cdc.spark.frames.alteration import Alteration, Origin, altered
from cdc.spark.frames.schema_history import (
    Columns,
    CopyIncomplete,
    History,
    NotTold,
    Told,
    existing,
    generated_columns,
    words_of,
)

__all__ = ["Plan", "Stretch", "Version", "plan", "plan_of_changes", "plan_of_feed", "require_no_exchange"]

_CASCADES = ("CASCADE", "SET NULL", "SET DEFAULT")
_COPY_AGAIN = "copy the table again: {}"


@dataclass(frozen=True, slots=True)
class Version:
    """A table between two ALTERs, with its ``columns`` (None if unknown) and its ``key``. ``told`` is true if records
    contain the columns, not only statements. ``alteration`` is the ALTER that began this version, None for the first
    version. ``rekeyed`` is the sequence from which rows have another key because of a CREATE INDEX or DROP INDEX, else
    None; ``newest_key`` is the last key in this version."""

    columns: Columns | None
    key: tuple[str, ...] | None = None
    told: bool = False
    alteration: Alteration | None = None
    rekeyed: int | None = None
    newest_key: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """The records of table ``name`` with sequences from ``first`` up to but not including ``end``.

    ``columns`` are the columns in these records, ``key`` are the columns that identify rows, by their names in these
    records, and ``origins`` are the origins of the table's columns at the requested moment, in order. If ``columns`` is
    None, the rows of these records can't be read.
    """

    name: Name
    first: int
    end: int
    columns: tuple[str, ...] | None
    key: tuple[str, ...]
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The table ``name`` at a moment: its ``columns``, its ``key`` (None if it has no key), and the stretches that
    contain its rows. ``keyed`` is true if a key identifies the rows of the stretches."""

    name: Name
    columns: Columns
    key: tuple[str, ...] | None
    keyed: bool
    stretches: tuple[Stretch, ...] = field(default=())


def plan(history: History, name: Name, sequence: int, *, cut: bool) -> Plan:
    """Plans how to read the table ``name`` as of ``sequence``. ``cut`` is true if the stream lacks its oldest records.

    Raises UserError if the table does not exist at ``sequence``, or its rows or columns are not certain.
    """
    where = f"table {'.'.join(name)}, sequence {sequence}"
    acts = history.upto(sequence)
    segments = _segments(history, acts, name, sequence, where)
    _require_all_rows(history, segments, acts, name, where, cut=cut)
    versions, of_segment = _versions(history, segments, sequence)
    columns = _columns(versions, where, name)
    _require_same_rows(versions, where, name)
    keys = _keys(versions, where, name)
    stretches = [
        _stretch(segment, versions, number, keys[number]) for segment, number in zip(segments, of_segment, strict=True)
    ]
    return Plan(name, columns, versions[-1].newest_key, any(keys), tuple(stretches))


def plan_of_changes(history: History, name: Name, sequence: int) -> Plan:
    """Plans how to read all changes of the table ``name`` from its creation through ``sequence``, including the changes
    before a TRUNCATE or a new copy, with the columns that it has at ``sequence``. Raises UserError if the table does
    not exist at ``sequence``, or its columns are not known."""
    where = f"table {'.'.join(name)}, sequence {sequence}"
    acts = [act for act in history.upto(sequence) if act.action not in ("TruncateTable", BEGINS_COPY)]
    segments = _segments(history, acts, name, sequence, where)
    versions, of_segment = _versions(history, segments, sequence)
    columns = _columns(versions, where, name)
    stretches = [_stretch(segment, versions, number, ()) for segment, number in zip(segments, of_segment, strict=True)]
    return Plan(name, columns, versions[-1].newest_key, False, tuple(stretches))


def plan_of_feed(history: History, name: Name, sequence: int, *, since: int | None, cut: bool) -> Plan:
    """Plans how to read the changes that turn the rows of the table ``name`` as of ``since`` into those as of
    ``sequence``. If ``since`` is None they turn an empty table into it: they begin with its last copy or TRUNCATE.

    Raises UserError if changes of rows can't make the same table: an event after ``since`` changed rows without
    records. Raises UserError as ``plan`` does if ``since`` is None.
    """
    if since is None:
        return replace(plan(history, name, sequence, cut=cut), keyed=False)
    where = f"table {'.'.join(name)}, sequence {sequence}"
    acts = history.upto(sequence)
    segments = _segments(history, acts, name, sequence, where)
    versions, of_segment = _versions(history, segments, sequence)
    found = _without_records(history, segments, versions, name, since)
    found += [act.sequence for act in acts if act.action.startswith("Skip") and _may_be(act, segments)]
    if after := [each for each in found if each > since]:
        raise UserError(
            f"at sequence {min(after)} rows of the table changed without a record of each",
            code="CDC-TABLE-FEED",
            where=where,
            hint=f"read it up to {min(after) - 1}, make that change in the copy, and go on since {min(after)}; "
            "or leave out since, and replace the copy",
        )
    _require_no_cascades(history, segments, acts, name, where)
    columns = _columns(versions, where, name)
    stretches = [_stretch(segment, versions, number, ()) for segment, number in zip(segments, of_segment, strict=True)]
    return Plan(name, columns, versions[-1].newest_key, False, tuple(stretches))


def _without_records(
    history: History, segments: Sequence[Segment], versions: Sequence[Version], name: Name, since: int
) -> list[int]:
    """Returns the sequences at which the table lost rows of before (a copy, a TRUNCATE, another table of the name), of
    ALTERs that may have changed rows or columns, and of renames: another table may have had the name before.
    """
    first = min((each.first for each in segments), default=0)
    # A table that was created after ``since`` has all its rows in records, unless a table of its name was there.
    lost = [] if first <= since else [first] if name in existing(history, since) or _was_older(history, first) else []
    changing = [
        version.alteration.sequence
        for before, version in pairwise(versions)
        if version.alteration is not None and not _keeps_rows(version.alteration, before)
    ]
    renamed = [
        segment.first
        for before, segment in pairwise(segments)
        if (before.database, before.table) != (segment.database, segment.table)
    ]
    return lost + changing + renamed


def _was_older(history: History, first: int) -> bool:
    """Whether the table's rows begin at sequence ``first`` with something else than its creation."""
    return not any(act.sequence == first and act.action == "CreateTable" for act in history.acts)


def _keeps_rows(step: Alteration, before: Version) -> bool:
    """Whether an ALTER certainly changed neither columns nor values."""
    same = all(origin == Origin(name) for name, origin in step.origins.items())
    return not step.doubt and same and step.columns is not None and step.columns == before.columns


def _segments(history: History, acts: Sequence[Act], name: Name, sequence: int, where: str) -> list[Segment]:
    """Returns the segments in which rows of the table were logged, in order. Raises UserError if the table does not
    exist at ``sequence``.
    """
    if name not in existing(history, sequence):
        raise UserError(
            "the stream has no such table at this moment",
            code="CDC-TABLE-MISSING",
            where=where,
            hint="see tables(spark, profile, at=…)",
        )
    names = {name, *(told.name for told in history.told)}
    # Statements on indexes are left out: no column depends on an index, and ``_rekeyed`` finds changes of the key.
    changing = [act for act in acts if not act.action.endswith("Index")]
    return sorted((each for each in lineage(names, changing) if each.owner == name), key=lambda each: each.first)


def _columns(versions: Sequence[Version], where: str, name: Name) -> Columns:
    """Returns the last version's columns. Raises UserError if they are unknown."""
    columns = versions[-1].columns if versions else None
    if columns is None:
        raise NotTold(
            "no record contains the columns that the table has at this moment",
            code="CDC-TABLE-NO-COLUMNS",
            where=where,
            hint="the records of the next rows that are written to it contain them, or "
            + _COPY_AGAIN.format(copy_command(name)),
        )
    return columns


def _require_all_rows(
    history: History, segments: Sequence[Segment], acts: Sequence[Act], name: Name, where: str, *, cut: bool
) -> None:
    """Raises UserError if the stream does not contain all rows of the table."""
    again = _COPY_AGAIN.format(copy_command(name))
    copies = table_copies(acts)
    if name in copies and not copies[name].complete:
        raise CopyIncomplete(
            "the copy of the table is not complete at this moment",
            code="CDC-TABLE-COPY-INCOMPLETE",
            where=where,
            hint="wait until the copy is complete",
        )
    if name not in copies and (cut or any(each.beginning is not Beginning.KNOWN for each in segments)):
        why = "retention has cut the stream" if cut else "the table may be older than the stream"
        raise UserError(
            f"the stream may lack rows of the table: {why}", code="CDC-TABLE-INCOMPLETE", where=where, hint=again
        )
    require_no_exchange(segments, acts, name, where)
    first = min(each.first for each in segments)
    for act in acts:
        if act.action.startswith("Skip") and act.sequence >= first and _may_be(act, segments):
            raise UserError(
                f"at sequence {act.sequence} an event was skipped, which may have changed the table",
                code="CDC-TABLE-SKIPPED-EVENT",
                where=where,
                hint=again,
            )
    _require_no_cascades(history, segments, acts, name, where)


def _require_no_cascades(
    history: History, segments: Sequence[Segment], acts: Sequence[Act], name: Name, where: str
) -> None:
    """Raises UserError if foreign keys change rows of the table without records."""
    if _copied_with_cascades(segments, acts) or (history.silent_cascades and _has_cascades(history, acts, name)):
        raise UserError(
            "the leader does not log the changes that foreign keys make, and foreign keys change rows of the table",
            code="CDC-TABLE-CASCADES",
            where=where,
            hint="servers from MySQL 9.6 on log these changes",
        )


def require_no_exchange(segments: Sequence[Segment], acts: Iterable[Act], name: Name, where: str) -> None:
    """Raises UserError if EXCHANGE PARTITION moved, or may have moved, rows into the table that were logged for another
    table."""
    if (sequence := exchanged(acts, segments)) is not None:
        raise UserError(
            f"the statement at sequence {sequence} exchanged rows of two tables", code="CDC-STATE-EXCHANGED-ROWS",
            where=where, hint=_COPY_AGAIN.format(copy_command(name)),
        )  # fmt: skip


def _may_be(act: Act, segments: Iterable[Segment]) -> bool:
    """Whether an act concerns the table under one of the names that it had, its database, or all databases."""
    uri = Uri.parse(act.uri)
    return uri.database == "*" or any(
        uri.database == each.database and uri.table in (None, each.table) for each in segments
    )


def _copied_with_cascades(segments: Sequence[Segment], acts: Iterable[Act]) -> bool:
    """Whether the rows come from a copy whose first record states that foreign keys change rows of the table without a
    record. The stream need not contain the statements that added these foreign keys."""
    begun = {(each.first, (each.database, each.table)) for each in segments}
    return any(act.text == CASCADES and (act.sequence, table_name(act.uri)) in begun for act in acts)


def _has_cascades(history: History, acts: Iterable[Act], name: Name) -> bool:
    """Whether a statement on the table, under any of its names, added a foreign key that changes rows (CASCADE, SET
    NULL or SET DEFAULT).

    Statements on a dropped table of the same name do not count. A foreign key stays when its table is emptied or
    copied.
    """
    lasting = [act for act in acts if act.action not in ("TruncateTable", BEGINS_COPY)]
    adding = [act for act in lasting if _cascades(history, act)]
    if not adding:
        return False
    # A statement may alter and rename a table at once. It names the table by its old name, under which the table's
    # records end at this statement. So the end of a segment is included here.
    of_table = [(each, (each.database, each.table)) for each in lineage([name], lasting) if each.owner == name]
    return any(
        each.first <= act.sequence <= each.end
        for act in adding
        for each, called in of_table
        if table_name(act.uri) == called
    )


def _cascades(history: History, act: Act) -> bool:
    statement = history.statements.get(act.sequence)
    if statement is None or "REFERENCES" not in statement.text.upper():
        return False
    text = " ".join(each.word() for each in words_of(statement))
    return any(f"{on} {what}" in text for on in ("DELETE", "UPDATE") for what in _CASCADES)


def _versions(history: History, segments: Sequence[Segment], sequence: int) -> tuple[list[Version], list[int]]:
    """Finds all versions of the table in its ``segments``, in order, and the index of each segment's version."""
    versions: list[Version] = []
    of_segment: list[int] = []
    for at, segment in enumerate(segments):
        if at and segments[at - 1].era == segment.era:
            of_segment.append(len(versions) - 1)
            continue
        told = [each for part in segments[at:] if part.era == segment.era for each in _told(history, part, sequence)]
        names = {each.table for each in segments[: at + 1]}
        version = _version(history, versions[-1] if versions else None, told[0] if told else None, segment.first, names)
        newest = told[-1].key if told else version.key
        versions.append(replace(version, rekeyed=_rekeyed(told, sequence), newest_key=newest))
        of_segment.append(len(versions) - 1)
    return versions, of_segment


def _told(history: History, segment: Segment, sequence: int) -> list[Told]:
    """Returns the columns that the records of a segment contain. If the segment has no end, records after ``sequence``
    count, too, up to the next statement on the table."""
    end = segment.end
    if end == END:
        later = (act.sequence for act in history.acts if act.sequence > sequence and _may_be(act, [segment]))
        end = min(later, default=END)
    name = (segment.database, segment.table)
    return [each for each in history.told if each.name == name and segment.first <= each.sequence < end]


def _version(history: History, before: Version | None, told: Told | None, first: int, names: set[str]) -> Version:
    columns = told.columns if told else None
    if before is None:
        return Version(columns, told.key if told else None, told is not None)
    statement = history.statements.get(first)
    if before.columns is None or statement is None:
        step = Alteration(first, columns, doubt="the columns before it are not known")
    else:
        generated = partial(generated_columns, history, names)
        step = altered(before.columns, statement, sequence=first, after=columns, generated=generated)
    key = told.key if told else _renamed(before.newest_key, step)
    return Version(step.columns, key, told is not None, step)


def _rekeyed(told: Sequence[Told], sequence: int) -> int | None:
    """Returns the sequence at which the key first has other columns than the first key, so that other columns identify
    rows; None if there is no such sequence."""
    if not told or told[0].key is None:
        return None  # rows of a table without a key are identified by all of their values, also if the table gets a key
    others = (each.sequence for each in told if sorted(each.key or ()) != sorted(told[0].key))
    return next((each for each in others if each <= sequence), None)


def _renamed(key: tuple[str, ...] | None, step: Alteration) -> tuple[str, ...] | None:
    """Returns the names that the columns of ``key`` have after an ALTER; None if the table has no key after the ALTER,
    or if its key is unknown.
    """
    new = {origin.name: name for name, origin in step.origins.items() if origin.name}
    if key is None or step.keys_changed or not all(name in new for name in key):
        return None
    return tuple(new[name] for name in key)


def _keys(versions: Sequence[Version], where: str, name: Name) -> list[tuple[str, ...]]:
    """Returns, for each version, the names of the columns that identify rows. The names may differ between versions;
    the columns are the same.

    Raises UserError if the identifying columns differ between two successive versions that may both have rows.
    """
    keys: list[tuple[str, ...]] = []
    known: tuple[str, ...] | None = None  # the key of the newest version with rows, by the present names of its columns
    seen = False
    for version in versions:
        if version.rekeyed is not None:
            raise UserError(
                f"from sequence {version.rekeyed} on the table has another key: earlier rows can't be identified",
                code="CDC-TABLE-ALTERED",
                where=where,
                hint=_COPY_AGAIN.format(copy_command(name)),
            )
        step = version.alteration
        carried = known
        if seen and known and step:
            new = {origin.name: each for each, origin in step.origins.items() if origin.name and not origin.doubt}
            carried = tuple(new[each] for each in known) if all(each in new for each in known) else None
        if version.told:
            key = version.key or ()
            if seen and (carried is None or sorted(carried) != sorted(key)):
                sequence = step.sequence if step else 0
                raise UserError(
                    f"the ALTER at sequence {sequence} changed the key, so that earlier rows can't be identified",
                    code="CDC-TABLE-ALTERED",
                    where=where,
                    hint=_COPY_AGAIN.format(copy_command(name)),
                )
            carried, seen = carried if seen and carried else key, True
        known = carried
        keys.append(known or ())
    return keys


def _require_same_rows(versions: Sequence[Version], where: str, name: Name) -> None:
    """Raises UserError if it is not known which rows remain after an ALTER."""
    may_have_rows = False
    keyless = not any(version.key for version in versions if version.told)
    for version in versions:
        step = version.alteration
        if step and may_have_rows and (doubt := _doubt(step, keyless=keyless)):
            raise UserError(
                f"it is not certain how the ALTER at sequence {step.sequence} changed rows ({doubt})",
                code="CDC-TABLE-ALTERED",
                where=where,
                hint=_COPY_AGAIN.format(copy_command(name)),
            )
        may_have_rows = may_have_rows or version.told


def _doubt(step: Alteration, *, keyless: bool) -> str:
    """Returns the reason why it is not certain which rows remain after an ALTER; empty if it is certain.

    A row of a table without a key is identified by all of its values. So if a value of such a table is not certain, it
    is not certain, either, which row a later record changes.
    """
    of_columns = (each.doubt or each.null_doubt for each in step.origins.values())
    return step.doubt or (next(filter(None, of_columns), "") if keyless else "")


def _stretch(segment: Segment, versions: Sequence[Version], number: int, key: tuple[str, ...]) -> Stretch:
    version = versions[number]
    columns = tuple(each for each, _ in version.columns) if version.columns is not None and version.told else None
    last = versions[-1].columns or ()
    origins = tuple(_origin(name, versions, number) for name, _ in last)
    return Stretch((segment.database, segment.table), segment.first, segment.end, columns, key, origins)


def _origin(name: str, versions: Sequence[Version], number: int) -> Origin:
    """Returns the origin of the last version's column ``name`` in the rows of version ``number``."""
    null_doubt = ""
    for version in reversed(versions[number + 1 :]):
        step = version.alteration
        if step is None or step.doubt:
            return Origin(doubt=f"the ALTER at sequence {step.sequence if step else 0}: {step.doubt if step else ''}")
        found = step.origins[name]
        if found.name is None:
            doubt = found.doubt and f"the ALTER at sequence {step.sequence}: {found.doubt}"
            return Origin(value=found.value, doubt=doubt)
        if found.null_doubt:
            null_doubt = f"the ALTER at sequence {step.sequence}: {found.null_doubt}"
        name = found.name
    return Origin(name, null_doubt=null_doubt)
