"""Decides what a run of cdc-lake does with each table: keep it, merge changes into it, write it as a whole, empty it,
or wait for its columns. Pure.

A run merges only if all records since the table's version are rows with the same columns and key. After any other
change of the table, the run writes the table as a whole, from all records of the stream.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from cdc.lake.commits import Written, definition
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import Act, Name, lineage, table_name
from cdc.spark.frames.schema_history import Histories, NotTold
from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import Plan, plan
from cdc.sql.column_types import read_type

__all__ = ["Known", "Step", "What", "decided", "touches"]

# For these types, values that differ in records differ in Spark, too. Other types have exceptions: -0 equals 0, an
# ENUM's member and its number become the same text, and two dates that do not exist in the calendar may both be NULL.
_EXACT = frozenset({
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "bit", "year", "char", "varchar", "tinytext",
    "text", "mediumtext", "longtext", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "time",
})  # fmt: skip
_DATES = frozenset({"date", "datetime", "timestamp"})
_NO_ROWS = ("CreateDatabase", "AlterDatabase")  # statements of these kinds change no rows, columns or key of any table


class What(Enum):
    """The decisions that a run may take about a table."""

    KEEP = "kept"
    MERGE = "merged"
    REPLACE = "written"
    EMPTY = "emptied"
    WAIT = "without columns yet"


@dataclass(frozen=True, slots=True)
class Step:
    """The decision about the table ``name``: the run does ``what``, according to the table's ``plan``.

    The table's version in the lake contains all changes up to sequence ``base``; ``base`` is None if the run can't
    continue from a version in the lake.
    """

    name: Name
    what: What
    base: int | None
    definition: str = ""
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The facts on which the decisions for all tables of a run depend.

    ``histories`` are the stream's schema histories. ``recent`` are the statements up to the run's sequence ``upto``
    that no earlier run has read. ``last`` maps the URI of each table to the sequence of its newest rows. ``cut`` is
    true if retention has deleted the beginning of the stream, or if records of it are missing. ``same_options`` is true
    if the tables in the lake were written with these ``options``. ``merges`` returns whether the format can merge rows
    into a table with the given columns.
    """

    histories: Histories
    recent: Sequence[Act]
    upto: int
    last: Mapping[str, int]
    resource: str
    cut: bool
    options: Options
    same_options: bool
    merges: Callable[[Sequence[str]], bool] = lambda columns: True

    def last_of(self, name: Name) -> int:
        """Returns the sequence of the newest rows that were logged under the name ``name``; -1 if there are no rows."""
        return self.last.get(str(Uri(self.resource, *name)), -1)


def decided(known: Known, name: Name, written: Written | None, base: int | None) -> Step:
    """Decides what to do with a table that exists after ``known.upto``.

    ``written`` is the table's newest version in the lake, and ``base`` is the sequence of that version. ``base`` is
    None if the run can't continue from this version, for instance because another writer changed it. Raises UserError
    if the table's rows can't be determined from the stream, and CopyIncomplete if the stream does not contain a
    complete copy of the table yet.
    """
    acts = [] if base is None else [act for act in known.recent if act.sequence > base and touches(act, name)]
    changed = base is None or known.last_of(name) > base
    # An unchanged table is kept without a plan, unless the leader does not log the changes that its foreign keys make
    # (silent_cascades): then ``plan`` first decides whether the table must be refused.
    if base is not None and known.same_options and not acts and not changed and not known.histories.silent_cascades:
        return Step(name, What.KEEP, base)
    try:
        wanted = plan(known.histories.of(name), name, known.upto, cut=False)
    except NotTold:
        return _without_columns(known, name, written, base, acts)
    made = definition(wanted, known.options)
    if base is not None and written and written.note and written.note.definition == made and not acts:
        if not changed:
            return Step(name, What.KEEP, base, made, wanted)
        if _can_merge(wanted, known.options) and known.merges([name for name, _ in wanted.columns]):
            return Step(name, What.MERGE, base, made, wanted)
    if known.cut:
        wanted = plan(known.histories.of(name), name, known.upto, cut=True)
    return Step(name, What.REPLACE, base, made, wanted)


def _without_columns(known: Known, name: Name, written: Written | None, base: int | None, acts: list[Act]) -> Step:
    """Decides what to do with a table whose columns are in no record, which is possible only for a table without rows.
    Raises NotTold if the table has rows.
    """
    found = [each for each in lineage([name], known.histories.of(name).upto(known.upto)) if each.owner == name]
    if any(known.last_of((each.database, each.table)) >= each.first for each in found):
        plan(known.histories.of(name), name, known.upto, cut=False)
    only_emptied = base is not None and {act.action for act in acts} == {"TruncateTable"}
    if only_emptied and known.same_options and written and written.note:
        return Step(name, What.EMPTY, base, written.note.definition)
    return Step(name, What.WAIT, base)


def touches(act: Act, name: Name) -> bool:
    """Whether ``act`` may change the rows, the columns or the key of the table ``name``."""
    uri = Uri.parse(act.uri)
    if uri.database == "*":
        return True
    if uri.table is None:
        return uri.database == name[0] and act.action not in _NO_ROWS
    return name in (table_name(act.uri), act.to and table_name(act.to))


def _can_merge(plan: Plan, options: Options) -> bool:
    """Whether keys that differ in records also differ in the lake, so that a key identifies one row there. If so,
    changes can be merged by key; otherwise the table is written as a whole.
    """
    key = plan.stretches[-1].key if plan.stretches else ()
    kinds = [read_type(kind).name for name, kind in plan.columns if name in key]
    exact = _EXACT if options.zero_dates == "null" else _EXACT | _DATES
    return bool(kinds) and len(kinds) == len(key) and exact.issuperset(kinds)
