"""Decides which tables are loaded, and finds the parts of the stream that contain the rows of these tables. Pure.

Each row is loaded at the sequence of its last change, into the table with its definition at that sequence. Later
statements change the row as they did on the leader. So at each sequence the follower contains only rows that the leader
also contained, and no unique key can refuse a row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc.config.table_globs import copy_command
from cdc.consumer.source.statement_check import numbering
from cdc.errors import UserError
from cdc.model.names import Uri
from cdc.model.record import Record
from cdc.spark.ddl.lineage import Name, Segment, lineage
from cdc.spark.frames.schema_history import Histories, History, existing, untold
from cdc.spark.frames.versions import Plan, Stretch, plan, require_no_exchange
from cdc.sql.column_types import read_type

__all__ = ["Part", "parts_of"]

_OR_APPLY = "or leave the table out (consumer [filters]); or let cdc-consumer apply the whole topic"
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double"})


@dataclass(frozen=True, slots=True)
class Part:
    """The records of table ``name`` with sequences from ``first`` up to but not including ``end``. The table is now
    called ``owner``.

    The rows have these ``columns``. ``known`` are the indexes of the columns that identify a row. It is None if the
    table has no key; a row is then identified only by all its values together. ``numbers`` are the indexes of the
    columns that may be AUTO_INCREMENT, in the same order in all parts of a table, with -1 for a column that does not
    exist in this part. ``refused`` is the reason why the rows of these records can't be read; it is empty if they can
    be read.
    """

    name: Name
    owner: Name
    first: int
    end: int
    columns: tuple[str, ...] = ()
    known: tuple[int, ...] | None = None
    numbers: tuple[int, ...] = ()
    refused: str = ""


def parts_of(
    history: History, statements: Mapping[int, Record], upto: int, *, newest: Mapping[Name, int],
    passes: Callable[[Uri], bool], resource: str,
) -> tuple[list[Part], list[UserError]]:  # fmt: skip
    """Returns the parts of all tables that exist after sequence ``upto`` and pass the filters, and an error for each
    table that can't be loaded.

    ``newest`` maps the names of tables to the sequence of the newest rows that were logged under the name.
    """
    found: list[Part] = []
    refused: list[UserError] = []
    names = [name for name in existing(history, upto) if passes(Uri(resource, *name))]
    for name in untold(history, upto, newest):
        if passes(Uri(resource, *name)):
            refused.append(
                UserError(
                    "the stream has rows of the table, but nothing that describes its columns",
                    code="CDC-SEED-NO-COLUMNS",
                    where=f"table {'.'.join(name)}",
                    hint=f"copy the table again: {copy_command(name)}; {_OR_APPLY}",
                )
            )
    segments, histories = _segments(history, names, upto), Histories(history)
    for name in names:
        try:
            found += _of_table(histories.of(name), statements, name, segments.get(name, []), upto)
        except UserError as error:
            hint = f"{error.hint}; {_OR_APPLY}" if error.hint else _OR_APPLY
            refused.append(UserError(error.what, code=error.code, where=error.where, hint=hint))
    return found, refused


def _segments(history: History, names: Sequence[Name], upto: int) -> dict[Name, list[Segment]]:
    found: dict[Name, list[Segment]] = {}
    for each in lineage({*names, *(told.name for told in history.told)}, history.upto(upto)):
        if each.owner is not None:
            found.setdefault(each.owner, []).append(each)
    return found


def _of_table(
    history: History, statements: Mapping[int, Record], name: Name, segments: Sequence[Segment], upto: int
) -> Iterator[Part]:
    """Yields the parts of one table. Raises UserError if the table can't be loaded."""
    if not any(_tells(told.name, told.sequence, segments) for told in history.told if told.sequence <= upto):
        require_no_exchange(segments, history.upto(upto), name, f"table {'.'.join(name)}")
        # No record contains the table's columns. Either the table has no rows, or an earlier version of cdc wrote the
        # stream.
        for each in segments:
            yield Part((each.database, each.table), name, each.first, each.end, refused="its columns are in no record")
        return
    planned = plan(history, name, upto, cut=False)
    _require_same_rows(planned, statements)
    numbered = any(_may_number(statements.get(act.sequence)) for act in history.upto(upto) if _is_on(act.uri, segments))
    for stretch in planned.stretches:
        yield _part(planned, stretch, numbered=numbered)


def _tells(name: Name, sequence: int, segments: Sequence[Segment]) -> bool:
    return any((each.database, each.table) == name and each.first <= sequence < each.end for each in segments)


def _is_on(uri: str, segments: Sequence[Segment]) -> bool:
    parsed = Uri.parse(uri)
    return any((each.database, each.table) == (parsed.database, parsed.table) for each in segments)


def _may_number(record: Record | None) -> bool:
    """Whether a statement may add the attribute AUTO_INCREMENT to a column; LIKE copies the attribute from another
    table."""
    words = record.query.upper() if record is not None else ""
    return "AUTO_INCREMENT" in words or "SERIAL" in words or "LIKE" in words


def _part(planned: Plan, stretch: Stretch, *, numbered: bool) -> Part:
    if stretch.columns is None:
        return Part(stretch.name, planned.name, stretch.first, stretch.end, refused="its columns are in no record")
    columns, known = stretch.columns, None
    if planned.keyed:
        known = tuple(columns.index(each) for each in stretch.key)
    elif [each.name for each in stretch.origins] != list(columns) or any(o.null_doubt for o in stretch.origins):
        raise UserError(
            "the table has no key, and an ALTER changed its columns after rows were written",
            code="CDC-SEED-NO-KEY",
            where=f"table {'.'.join(planned.name)}, sequence {stretch.end}",
            hint=f"copy the table again: {copy_command(planned.name)}",
        )
    numbers: tuple[int, ...] = ()
    if numbered:
        origins = zip(planned.columns, stretch.origins, strict=True)
        whole = [each.name for (_, kind), each in origins if read_type(kind).name in _INTEGERS]
        numbers = tuple(-1 if name is None else columns.index(name) for name in whole)
    return Part(stretch.name, planned.name, stretch.first, stretch.end, columns, known, numbers)


def _require_same_rows(planned: Plan, statements: Mapping[int, Record]) -> None:
    """Raises UserError if a statement gave existing rows of the table AUTO_INCREMENT numbers. On the follower the
    statement would number other rows, because some rows are loaded only later, and deleted rows are never loaded.
    """
    for before, stretch in zip(planned.stretches, planned.stretches[1:], strict=False):
        record = statements.get(stretch.first)
        if record is None:
            continue
        if before.columns is None:
            continue
        try:
            numbers = numbering(record) is not None
        except ValueError:
            numbers = False  # the consumer will refuse this statement
        if numbers:
            raise UserError(
                f"the statement at sequence {record.sequence} numbered rows of that moment, and a seed has other rows",
                code="CDC-SEED-NUMBERED-ROWS",
                where=f"table {'.'.join(planned.name)}",
                hint=f"copy the table again: {copy_command(planned.name)}",
            )
