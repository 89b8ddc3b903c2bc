"""Performs a run of cdc-lake. The run brings all tables of the lake to their state on the leader after one
transaction.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from cdc.config.profile import Profile
from cdc.errors import CdcError, PromiseError, UserError
from cdc.lake.change_tables import ChangeTables
from cdc.lake.commits import Note, Written
from cdc.lake.decisions import Known, Step, What, decided, touches
from cdc.lake.folder import Held, LakeFolder, State, folder
from cdc.lake.formats.iceberg_catalog import NotOurs, SharedCatalog
from cdc.lake.new_records import Arrived, refused_tables, same_topics
from cdc.lake.rows import NoValue, all_rows, has_doubts, net_rows, of_error, uncertain_value
from cdc.service.logs import event
from cdc.spark.ddl.lineage import Act, Name
from cdc.spark.frames.history import Moment, read_history, sequence_at
from cdc.spark.frames.messages import Source
from cdc.spark.frames.schema_history import CopyIncomplete, Histories, existing, with_more, without_copies
from cdc.spark.frames.schema_history import upto as history_upto
from cdc.spark.frames.typed import Options
from cdc.spark.input.small_data import ANY_PARTITIONS, ONE_SESSION, set_tiny

__all__ = ["Copying", "Lake", "Refused", "Run", "Tables", "named", "refused_run"]

# Describes the result of a run of cdc-lake, and defines the error for the tables that a run refused.

_NAMED = 5  # the number of tables that a message names


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run. The lake equals the leader's tables after ``sequence``. ``counts`` maps "merged", "written"
    and so on to the number of tables.

    ``waiting`` are the tables that have had no rows since their creation; their columns are not known yet. ``refused``
    maps tables to the reason why the lake can't contain their state after ``sequence``. ``ts_us`` is the time at which
    the leader committed the transaction that ends with ``sequence``; None if the run found no new records.
    """

    sequence: int
    transaction: str
    ts_us: int | None
    records: int
    counts: Mapping[str, int]
    waiting: tuple[Name, ...]
    refused: Mapping[Name, CdcError] = field(default_factory=dict)

    def line(self, seconds: float) -> str:
        """Describes the result of the run in one line, with the tables that the lake does not contain yet."""
        done = ", ".join(f"{count} {what}" for what, count in self.counts.items() if count) or "no tables"
        text = f"sequence {self.sequence} ({self.transaction or 'no transaction'}): {done}"
        text += f"; {self.records} records in {seconds:.1f} s"
        text += f"; without columns yet: {named(self.waiting)}" if self.waiting else ""
        return text + (f"; refused: {named(sorted(self.refused))}" if self.refused else "")


class Refused(UserError):
    """The lake can't contain some of the tables as they are after the run's sequence; it contains all other tables.
    ``run`` is the result of the run.
    """

    code = "CDC-LAKE-TABLES-REFUSED"

    def __init__(self, what: str, *, run: Run, hint: str) -> None:
        super().__init__(what, hint=hint)
        self.run, self.names = run, sorted(run.refused)


def refused_run(run: Run) -> Refused:
    """Creates the error for the tables that a run refused."""
    names = sorted(run.refused)
    return Refused(
        f"the lake can't contain {len(names)} of the tables at sequence {run.sequence}: {named(names)}",
        run=run,
        hint="the other tables are written; the log gives the reasons; or leave these tables out with --without",
    )


class Copying(UserError):
    """Tables are being copied into the stream; the lake waits until the stream contains all rows of these tables."""


def named(names: Sequence[Name]) -> str:
    """Lists the first few ``names`` as text."""
    text = ", ".join(".".join(name) for name in names[:_NAMED])
    return text + ", …" * (len(names) > _NAMED)


_LOG = logging.getLogger("cdc.lake")
_PARTS, _A_TASK = 2, 50_000  # the minimum number of tasks, and the number of records for one task


class Tables(Protocol):
    """Writes and reads the tables of one format below the lake's folder. Each writing method makes exactly one commit,
    and stores its argument ``note`` in the metadata of the commit.
    """

    def written(self, folder: str, since: int | None) -> Written | None: ...

    def unfit(self, columns: Sequence[str]) -> str: ...

    def merges(self, columns: Sequence[str]) -> bool: ...

    def replace(self, rows: DataFrame, folder: str, note: Note) -> None: ...

    def merge(
        self, net: DataFrame, folder: str, columns: tuple[str, ...], key: tuple[str, ...], note: Note
    ) -> None: ...

    def empty(self, folder: str, note: Note) -> None: ...

    def clean(self, folder: str, versions: Collection[int]) -> None: ...

    def maintain(self, folder: str, note: Note, version: int) -> None: ...


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The reason why the lake can't contain a table's state after ``sequence``. The reason stays valid until the topics
    contain newer records of the table.
    """

    why: CdcError
    sequence: int


@dataclass(slots=True)
class Lake:
    """A lake in ``folder``, with its ``state`` and with the tables for which ``selects`` returns true.

    ``passed(point, table)`` is called when a run reaches a point; for example, the point "before" is before a table is
    written. If ``changes`` is set, each table also has a table of changes. ``prepare(folder, note)`` is called once for
    each table that an earlier run wrote, before anything else is written to it; it may commit ``note`` without changes
    of rows. ``catalog`` is the catalog of the tables, if they are not below ``folder``.
    """

    folder: LakeFolder
    tables: Tables
    profile: Profile
    options: Options
    selects: Callable[[Name], bool]
    state: State
    passed: Callable[[str, str], None] = lambda point, table: None
    changes: ChangeTables | None = None
    prepare: Callable[[str, Note], None] | None = None
    catalog: SharedCatalog | None = None
    _prepared: set[Name] = field(default_factory=set)
    _refused: dict[Name, _Refusal] = field(default_factory=dict)

    def advance(self, source: Source, at: Moment = None) -> Run:
        """Brings the lake to the state after the newest transaction in ``source``, or to the moment ``at``.

        Raises Refused if the rows of some tables can't be determined from the stream, or if the lake can't represent
        some of their values; all other tables are written before this error is raised. Raises UserError if ``at`` is
        before the lake's sequence, Copying if the stream does not contain a complete copy of a table yet, and
        PromiseError if the topics are damaged. Tables that were written before such an error are kept, and the next run
        continues from them.
        """
        upto = sequence_at(source, at)
        if upto < self.state.sequence:
            raise UserError(
                f"the lake is already at sequence {self.state.sequence}, which is after {upto}",
                code="CDC-LAKE-AHEAD",
                where="option --at" if at is not None else f"topic {source.kafka.topic}",
                hint="a lake only goes forward: name another folder with --to",
            )
        topics = same_topics(source, self.state, lake=self.folder.folder.address)
        if topics != self.state.topics:
            # The ids of the topics are saved before any table is written. So after a kill the next run can continue
            # with the tables that were written.
            self.state = replace(self.state, topics=topics)
            self.folder.save(self.state)
        source.spark.conf.set("spark.sql.shuffle.partitions", str(max(_PARTS, source.span.size // _A_TASK)))
        # Messages are read from the cache two or three times; to compress them costs more than that.
        source.spark.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")
        source.spark.conf.set(*ONE_SESSION)
        source.spark.conf.set(*ANY_PARTITIONS)
        set_tiny(source.spark, records=source.span.size)
        self._prepare()
        arrived = Arrived.since(self.state, source, upto)
        try:
            return self._advance(arrived)
        finally:
            arrived.close()

    def maintain(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Merges small files of all tables, and removes old versions of them, until ``stopped`` returns true. A table
        keeps its rows, so a version that this makes equals the leader's table at the lake's sequence, which its note
        contains: after a kill the next run goes on from it.
        """
        for each in self.state.tables:
            if stopped():
                return
            self._recommit(each, partial(self._maintain, each))
        if self.changes is not None and not stopped():
            self.changes.maintain()

    def _maintain(self, held: Held, note: Note) -> None:
        self.tables.maintain(held.folder, note, held.version)
        self.passed("maintained", ".".join(held.name))

    def _recommit(self, held: Held, work: Callable[[Note], None]) -> bool:
        """Calls ``work`` with the note of a table's rows at the lake's sequence, for a commit that leaves the rows as
        they are; lists the version that it makes. Returns false if the table is not in the version that the lake lists,
        so that nothing was done.
        """
        try:
            written = self.tables.written(held.folder, held.version)
        except NotOurs:
            return False
        # Any other version is of somebody else, or of a run that was killed: the next run decides about it.
        if written is None or written.note is None or written.version != held.version:
            return False
        note = replace(written.note, sequence=self.state.sequence, transaction=self.state.transaction)
        try:
            work(note)
        except (PySparkException, Py4JError) as error:
            raise of_error(error, held.name) from error
        self._list(held, self.tables.written(held.folder, held.version))
        return True

    def _prepare(self) -> None:
        """Calls ``prepare`` for the tables for which this process has not called it yet."""
        if self.prepare is None:
            return
        for each in self.state.tables:
            if each.name not in self._prepared and self._recommit(each, partial(self.prepare, each.folder)):
                self._prepared.add(each.name)

    def _list(self, held: Held, written: Written | None) -> None:
        """Saves the version of a table that a commit without changes of rows has made."""
        if written is None or written.note is None or written.note.sequence != self.state.sequence:
            return
        if written.version != held.version:
            tables = (replace(held, version=written.version) if each == held else each for each in self.state.tables)
            self.state = replace(self.state, tables=tuple(tables))
            self.folder.save(self.state)

    def _advance(self, arrived: Arrived) -> Run:
        upto, state = arrived.upto, self.state
        history = with_more(state.history, read_history(arrived.new, messages=arrived.history_messages()))
        names = sorted(name for name in existing(history, upto) if self.selects(name))
        choices = asdict(self.options)
        recent = [act for act in history.upto(upto) if act.sequence > state.sequence]
        known = Known(
            Histories(without_copies(history, upto=arrived.gap)), recent, upto, arrived.last,
            self.profile.mysql_resource_name, arrived.source.cut or arrived.gap >= 0, self.options,
            same_options=state.choices == choices, merges=self.tables.merges,
        )  # fmt: skip
        refused: dict[Name, CdcError] = dict(refused_tables(history, upto, arrived.last, self.selects))
        refused |= self._of_one_name(names)
        steps = self._certain(self._steps(known, names, refused), known, arrived, refused)
        append = self._appending(arrived, history.upto(upto), refused)
        steps = [step for step in steps if step.name not in refused]
        self._write(steps, arrived, refused)
        append()
        self._tell(refused, upto)
        done = [step for step in steps if step.name not in refused]
        held = [self._held(step) for step in done if step.what is not What.WAIT]
        behind = [each for each in (*state.tables, *state.behind) if each.name in refused]
        self._remove_all_but([*held, *behind], upto)
        self.passed("removed", "")
        self.state = State(
            upto, arrived.transaction, arrived.offsets, arrived.last, state.topics, choices,
            history_upto(history, upto), tuple(held), tuple(behind), arrived.gap, arrived.read,
        )  # fmt: skip
        self.folder.save(self.state)
        self.passed("saved", "")
        self._clean(done, state)
        counts = {what.value: sum(step.what is what for step in done) for what in What}
        counts["removed"] = len({each.name for each in state.tables} - {each.name for each in (*held, *behind)})
        waiting = tuple(step.name for step in done if step.what is What.WAIT)
        run = Run(upto, arrived.transaction, arrived.ts_us, arrived.records, counts, waiting, refused)
        if refused:
            raise refused_run(run)
        return run

    def _of_one_name(self, names: Iterable[Name]) -> dict[Name, CdcError]:
        """Returns the tables that are refused because they would be one table in the catalog."""
        by_folder = {folder(*name): name for name in names}
        found = self.catalog.one_name(list(by_folder)) if self.catalog is not None else {}
        return {by_folder[each]: error for each, error in found.items()}

    def _steps(self, known: Known, names: Iterable[Name], refused: dict[Name, CdcError]) -> list[Step]:
        """Decides what to do with each table. Adds to ``refused`` the tables that the lake can't contain."""
        held = {each.name: each for each in self.state.tables}
        steps, copying = [], list[Name]()
        for name in names:
            if isinstance(refused.get(name), NotOurs):
                continue
            before = held.get(name)
            try:
                written = self.tables.written(folder(*name), before.version if before else None)
            except NotOurs as error:
                refused[name] = error
                continue
            base = self._base(before, written)
            # If the table's version is not the version in the state, the run that wrote it was killed before it saved
            # its state. The options of that run may differ from the options in the state.
            is_held = before is not None and written is not None and written.version == before.version
            if base is not None and base > known.upto:
                raise UserError(
                    f"table {'.'.join(name)} is already at sequence {base} in the lake, which is after {known.upto}",
                    code="CDC-LAKE-AHEAD",
                    where="option --at",
                    hint="a lake only goes forward: name a later moment, or another folder",
                )
            try:
                of_options = known if is_held else replace(known, same_options=False)
                step = decided(of_options, name, written, base)
                self._require_fit(step)
                steps.append(step)
            except CopyIncomplete:
                copying.append(name)
            except UserError as error:
                refused[name] = error
        if copying:
            raise Copying(
                f"{len(copying)} tables are being copied into the stream: {named(copying)}",
                code="CDC-LAKE-TABLES-COPYING",
                hint="run cdc-lake again once the copy is complete, or leave them out with --without",
            )
        return steps

    def _certain(
        self, steps: Iterable[Step], known: Known, arrived: Arrived, refused: dict[Name, CdcError]
    ) -> list[Step]:
        """Returns the steps for tables whose values are certain. Adds to ``refused`` the tables with values that an
        ALTER may have made uncertain. Called before anything is written.
        """
        certain = []
        for step in steps:
            earlier = self._refused.get(step.name)
            # Whether a table in the catalog belongs to others has been asked again in this run.
            if earlier and not isinstance(earlier.why, NotOurs) and not _came(known, step.name, since=earlier.sequence):
                refused[step.name] = earlier.why
            elif (why := self._uncertain(step, arrived)) is not None:
                refused[step.name] = why
            else:
                certain.append(step)
        return certain

    def _uncertain(self, step: Step, arrived: Arrived) -> CdcError | None:
        if step.what is not What.REPLACE or step.plan is None:
            return None
        if self.options.on_alter != "error" or not has_doubts(step.plan):
            return None
        try:
            messages = arrived.rows_of({each.name for each in step.plan.stretches})
            return uncertain_value(messages, step.plan, upto=arrived.upto)
        except (PySparkException, Py4JError) as error:
            if isinstance(found := of_error(error, step.name), NoValue):
                return found
            raise found from error

    def _write(self, steps: Sequence[Step], arrived: Arrived, refused: dict[Name, CdcError]) -> None:
        for number, step in enumerate(steps):
            if step.what not in (What.KEEP, What.WAIT):
                self.passed("before", f"{'.'.join(step.name)} ({number + 1} of {len(steps)})")
                try:
                    self._do(step, arrived)
                except (NoValue, NotOurs) as error:
                    refused[step.name] = error
                self.passed("after", ".".join(step.name))

    def _tell(self, refused: Mapping[Name, CdcError], upto: int) -> None:
        """Logs the reasons why tables are refused; the same reason is logged only once for a table."""
        for name, why in sorted(refused.items()):
            earlier = self._refused.get(name)
            if earlier is None or str(earlier.why) != str(why):
                event(_LOG, "refused", level=logging.ERROR, table=".".join(name), error=why)
        self._refused = {name: _Refusal(why, upto) for name, why in refused.items()}

    def _require_fit(self, step: Step) -> None:
        """Raises UserError if the lake's format does not support the columns of the table."""
        if step.plan is not None and (why := self.tables.unfit([name for name, _ in step.plan.columns])):
            raise UserError(
                f"the lake's format can't have the columns: {why}",
                code="CDC-LAKE-COLUMNS",
                where=f"table {'.'.join(step.name)}",
                hint="take another --format, or rename a column on the leader",
            )

    def _base(self, held: Held | None, written: Written | None) -> int | None:
        """Returns the sequence up to which the lake's version contains the table's changes; None if the table must be
        written as a whole.
        """
        if written is None or written.note is None:
            return None
        if held is not None and written.version == held.version:
            return self.state.sequence  # no later run had to write the table, so it has not changed
        # If the version's sequence is before the state's sequence, somebody has restored an older version. A run does
        # not read records up to the state's sequence again, so the table must be written as a whole.
        return written.note.sequence if written.note.sequence >= self.state.sequence else None

    def _do(self, step: Step, arrived: Arrived) -> None:
        path = folder(*step.name)
        note = Note(*step.name, arrived.upto, arrived.transaction, step.definition)
        try:
            if step.plan is None:
                self.tables.empty(path, note)
                return
            names = {each.name for each in step.plan.stretches}
            if step.what is What.MERGE and step.base is not None:
                messages = arrived.new_rows_of(names)
                net = net_rows(messages, step.plan, self.options, since=step.base, upto=arrived.upto)
                columns = tuple(name for name, _ in step.plan.columns)
                self.tables.merge(net, path, columns, step.plan.stretches[-1].key, note)
            else:
                rows = all_rows(arrived.rows_of(names), step.plan, self.options, upto=arrived.upto)
                self.tables.replace(rows, path, note)
        except (PySparkException, Py4JError) as error:  # a Py4JError means that a task failed while it wrote
            raise of_error(error, step.name) from error

    def _appending(self, arrived: Arrived, acts: Iterable[Act], refused: dict[Name, CdcError]) -> Callable[[], None]:
        """Returns a function that appends the changes to the tables of changes. If changes can't be appended, raises
        UserError at once, before anything is written; or adds the table to ``refused`` if the catalog has a table of
        others, or another one of this lake, in the place of its table of changes."""
        changes = self.changes
        steps = changes.appends(arrived, self.state, acts, refused) if changes else []

        def append() -> None:
            for step in steps:
                self.passed("before", f"changes of {'.'.join(step.name)}")
                try:
                    assert changes is not None  # without ``changes`` there are no steps
                    changes.append(step, arrived)
                except NotOurs as error:  # made meanwhile, perhaps by this run
                    refused[step.name] = error
                except (PySparkException, Py4JError) as error:
                    raise of_error(error, step.name) from error
                self.passed("after", f"changes of {'.'.join(step.name)}")

        return append

    def _held(self, step: Step) -> Held:
        """Returns the table as it is in the lake after its step. Raises PromiseError if another writer has changed the
        table.
        """
        path = folder(*step.name)
        before = next((each.version for each in self.state.tables if each.name == step.name), None)
        written = self.tables.written(path, before)
        if written is None or written.note is None:
            raise PromiseError(
                f"something else wrote to table {'.'.join(step.name)} meanwhile", code="CDC-LAKE-TABLE-OVERWRITTEN",
                where=self.folder.folder.at(path), hint="run cdc-lake again, which writes the table as a whole",
            )  # fmt: skip
        return Held(step.name, path, written.version)

    def _remove_all_but(self, held: Iterable[Held], sequence: int) -> None:
        kept = {each.name for each in held}
        for each in (*self.state.tables, *self.state.behind):
            if each.name in kept:
                continue
            catalog = self.catalog
            path = self.folder.remove(each, sequence) if catalog is None else catalog.remove(each.folder, sequence)
            if path:
                event(_LOG, "removed", table=".".join(each.name), moved_to=path)

    def _clean(self, steps: Iterable[Step], before: State) -> None:
        """Removes the old versions of the tables that this run has written. The version that each table had in the
        state ``before`` is kept, because readers may still read it.
        """
        listed = {each.name: each.version for each in before.tables}
        for step in steps:
            if step.what not in (What.KEEP, What.WAIT):
                self.tables.clean(folder(*step.name), [listed[step.name]] if step.name in listed else [])


def _came(known: Known, name: Name, *, since: int) -> bool:
    """Whether the topics contain rows of the table after ``since``, or this run has read a statement on the table."""
    return known.last_of(name) > since or any(touches(act, name) for act in known.recent)
