"""One run of cdc-lake: all tables of the lake become those of the leader after one of its transactions."""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from cdc.config.profile import Profile
from cdc.errors import CdcError, PromiseError, UserError
from cdc.lake.arrived import Arrived, refused_tables, same_topics
from cdc.lake.change_tables import ChangeTables
from cdc.lake.decisions import Known, Step, What, decided
from cdc.lake.folder import Held, LakeFolder, State
from cdc.lake.history_text import upto as history_upto
from cdc.lake.history_text import with_more
from cdc.lake.names import folder
from cdc.lake.note import Note, Written
from cdc.lake.rows import all_rows, net_rows
from cdc.service.logs import event
from cdc.spark.ddl.lineage import Act, Name
from cdc.spark.frames.history import read_history
from cdc.spark.frames.messages import Source
from cdc.spark.frames.moments import Moment, sequence_at
from cdc.spark.frames.told import CopyIncomplete, Histories, existing
from cdc.spark.frames.typed import Options
from cdc.spark.input.one_part import set_tiny
from cdc.spark.job.root_cause import root_cause

__all__ = ["Copying", "Lake", "Refused", "Run", "Tables"]

_LOG = logging.getLogger("cdc.lake")
_PARTS, _A_TASK = 2, 50_000  # tasks at least, and records in one
_NAMED = 5  # tables in a message
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: |\n|$)", re.DOTALL)


class Tables(Protocol):
    """The tables of one format below the lake's folder. Each method that writes is one commit, with the note in it."""

    def written(self, folder: str, since: int | None) -> Written | None: ...

    def unfit(self, columns: Sequence[str]) -> str: ...

    def replace(self, rows: DataFrame, folder: str, note: Note) -> None: ...

    def merge(
        self, net: DataFrame, folder: str, columns: tuple[str, ...], key: tuple[str, ...], note: Note
    ) -> None: ...

    def empty(self, folder: str, note: Note) -> None: ...

    def clean(self, folder: str, versions: Collection[int]) -> None: ...


class Refused(UserError):
    """The lake can't have the tables ``names``: something has to be changed first, or they have to be left out."""

    def __init__(self, what: str, *, names: Sequence[Name], where: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.names = names


class Copying(UserError):
    """Tables are being copied into the stream: the lake waits until it has all of their rows."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run did: the lake is as of ``sequence``, ``counts`` tables were merged, written, …, and ``waiting`` are
    tables that have no rows since they were created, of which no columns are known. ``ts_us`` as in Arrived."""

    sequence: int
    transaction: str
    ts_us: int | None
    records: int
    counts: Mapping[str, int]
    waiting: tuple[Name, ...]

    def line(self, seconds: float) -> str:
        """What it did, and which tables are not there yet."""
        done = ", ".join(f"{count} {what}" for what, count in self.counts.items() if count) or "no tables"
        text = f"sequence {self.sequence} ({self.transaction or 'no transaction'}): {done}"
        text += f"; {self.records} records in {seconds:.1f} s"
        return text + (f"; without columns yet: {_named(list(self.waiting))}" if self.waiting else "")


@dataclass(slots=True)
class Lake:
    """A lake in ``folder``, of the tables that ``selects`` says, and its ``state``. ``passed`` is called with the
    points that a run passes, and the table. With ``changes`` each table has one of its changes."""

    folder: LakeFolder
    tables: Tables
    profile: Profile
    options: Options
    selects: Callable[[Name], bool]
    state: State
    passed: Callable[[str, str], None] = lambda point, table: None
    changes: ChangeTables | None = None

    def advance(self, source: Source, at: Moment = None) -> Run:
        """Make the lake that of the newest transaction of ``source``, or that of the moment ``at``.

        Raises UserError where a table is not told for certain or ``at`` is before the lake, Copying where a copy is not
        complete, PromiseError where the topics are damaged. Tables written until then stay as they are: the next run
        goes on with them.
        """
        upto = sequence_at(source, at)
        if upto < self.state.sequence:
            raise UserError(
                f"the lake is as of sequence {self.state.sequence} already, after {upto}",
                where="option --at" if at is not None else f"topic {source.kafka.topic}",
                hint="a lake only goes forward: name another folder with --to",
            )
        topics = same_topics(source, self.state, lake=self.folder.folder.address)
        if topics != self.state.topics:
            # Before anything is written: a run that is killed leaves tables, and the next one goes on with them.
            self.state = replace(self.state, topics=topics)
            self.folder.save(self.state)
        source.spark.conf.set("spark.sql.shuffle.partitions", str(max(_PARTS, source.span.size // _A_TASK)))
        set_tiny(source.spark, records=source.span.size)
        arrived = Arrived.since(self.state, source, upto)
        try:
            return self._advance(arrived)
        finally:
            arrived.close()

    def _advance(self, arrived: Arrived) -> Run:
        upto, state = arrived.upto, self.state
        history = with_more(state.history, read_history(arrived.new))
        names = sorted(name for name in existing(history, upto) if self.selects(name))
        choices = asdict(self.options)
        recent = [act for act in history.upto(upto) if act.sequence > state.sequence]
        known = Known(
            Histories(history), recent, upto, arrived.last, self.profile.mysql_resource_name, arrived.source.cut,
            self.options, same_options=state.choices == choices,
        )  # fmt: skip
        untold = dict(refused_tables(history, upto, arrived.last, self.selects))
        steps = self._steps(known, names, untold)
        append = self._appending(arrived, history.upto(upto))
        for number, step in enumerate(steps):
            if step.what not in (What.KEEP, What.WAIT):
                self.passed("before", f"{'.'.join(step.name)} ({number + 1} of {len(steps)})")
                self._do(step, arrived)
                self.passed("after", ".".join(step.name))
        append()
        held = [self._held(step) for step in steps if step.what is not What.WAIT]
        self._remove_all_but(held, upto)
        self.passed("removed", "")
        self.state = State(
            upto, arrived.transaction, arrived.offsets, arrived.last, state.topics, choices,
            history_upto(history, upto), tuple(held),
        )  # fmt: skip
        self.folder.save(self.state)
        self.passed("saved", "")
        self._clean(steps, state)
        counts = {what.value: sum(step.what is what for step in steps) for what in What}
        counts["removed"] = len({each.name for each in state.tables} - {each.name for each in held})
        waiting = tuple(step.name for step in steps if step.what is What.WAIT)
        return Run(upto, arrived.transaction, arrived.ts_us, arrived.records, counts, waiting)

    def _steps(self, known: Known, names: Iterable[Name], untold: Mapping[Name, UserError]) -> list[Step]:
        """What to do with each table. Raises UserError, which names tables, where one can't be had, as ``untold``."""
        held = {each.name: each for each in self.state.tables}
        steps, refused, copying = [], dict(untold), list[Name]()
        for name in names:
            before = held.get(name)
            written = self.tables.written(folder(*name), before.version if before else None)
            base = self._base(before, written)
            # A run that was killed may have written it with other options than those of the state.
            is_held = before is not None and written is not None and written.version == before.version
            if base is not None and base > known.upto:
                raise UserError(
                    f"table {'.'.join(name)} is as of sequence {base} in the lake already, after {known.upto}",
                    where="option --at", hint="a lake only goes forward: name a later moment, or another folder",
                )  # fmt: skip
            try:
                of_options = known if is_held else replace(known, same_options=False)
                step = decided(of_options, name, written, base)
                self._require_fit(step)
                steps.append(step)
            except CopyIncomplete:
                copying.append(name)
            except UserError as error:
                refused[name] = error
        for name in sorted(refused):
            event(_LOG, "refused", level=logging.ERROR, table=".".join(name), error=refused[name])
        if refused:
            raise Refused(
                f"the lake can't have {len(refused)} of the tables at sequence {known.upto}: {_named(sorted(refused))}",
                names=sorted(refused),
                hint="see the lines before, which say why; or leave these tables out with --without",
            )
        if copying:
            raise Copying(
                f"{len(copying)} tables are being copied into the stream: {_named(copying)}",
                hint="run cdc-lake again once the copy is complete, or leave them out with --without",
            )
        return steps

    def _require_fit(self, step: Step) -> None:
        """Raises UserError where the format can't have the columns of a table that is written."""
        if step.plan is not None and (why := self.tables.unfit([name for name, _ in step.plan.columns])):
            raise UserError(
                f"the lake's format can't have the columns: {why}", where=f"table {'.'.join(step.name)}",
                hint="take another --format, or rename a column on the leader",
            )  # fmt: skip

    def _base(self, held: Held | None, written: Written | None) -> int | None:
        """As of which sequence the table is in the lake; None where it has to be written as a whole."""
        if written is None or written.note is None:
            return None
        if held is not None and written.version == held.version:
            return self.state.sequence  # nothing changed in it since it was written
        # An older version was put back: what came until the state's sequence is not read again.
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
        except (PySparkException, Py4JError) as error:  # the latter where a task failed while it wrote
            raise _in_one_line(error, step.name) from error

    def _appending(self, arrived: Arrived, acts: Iterable[Act]) -> Callable[[], None]:
        """What appends to the tables of changes. Raises UserError, before anything is written, where that can't be."""
        changes = self.changes
        steps = changes.appends(arrived, self.state, acts) if changes else []

        def append() -> None:
            for step in steps:
                self.passed("before", f"changes of {'.'.join(step.name)}")
                try:
                    assert changes is not None  # else there are no steps
                    changes.append(step, arrived)
                except (PySparkException, Py4JError) as error:
                    raise _in_one_line(error, step.name) from error
                self.passed("after", f"changes of {'.'.join(step.name)}")

        return append

    def _held(self, step: Step) -> Held:
        """The table as it is in the lake after its step. Raises PromiseError where another writer changed it."""
        path = folder(*step.name)
        before = next((each.version for each in self.state.tables if each.name == step.name), None)
        written = self.tables.written(path, before)
        if written is None or written.note is None:
            raise PromiseError(
                f"something else wrote to table {'.'.join(step.name)} meanwhile",
                where=self.folder.folder.at(path), hint="run cdc-lake again, which writes the table as a whole",
            )  # fmt: skip
        return Held(step.name, path, written.version)

    def _remove_all_but(self, held: Iterable[Held], sequence: int) -> None:
        kept = {each.name for each in held}
        for each in self.state.tables:
            if each.name not in kept and (path := self.folder.remove(each, sequence)):
                event(_LOG, "removed", table=".".join(each.name), moved_to=path)

    def _clean(self, steps: Iterable[Step], before: State) -> None:
        """Remove old versions of what was written, but those that lake.json listed when its readers began."""
        listed = {each.name: each.version for each in before.tables}
        for step in steps:
            if step.what not in (What.KEEP, What.WAIT):
                self.tables.clean(folder(*step.name), [listed[step.name]] if step.name in listed else [])


def _named(names: list[Name]) -> str:
    text = ", ".join(".".join(name) for name in names[:_NAMED])
    return text + ", …" * (len(names) > _NAMED)


def _in_one_line(error: Exception, name: Name) -> CdcError:
    """What Spark says of a value or a record that can't be had, without its trace."""
    found = _RAISED.search(str(error))
    if found is None:
        where, hint = f"table {'.'.join(name)}", "run cdc-lake again once its cause is gone"
        return UserError(f"Spark failed: {root_cause(error)[:500]}", where=where, hint=hint)
    return Refused(
        f"the lake can't have a value: {found[1]}",
        names=[name],
        where=f"table {'.'.join(name)}",
        hint="see --zero-dates, --typed-json and --on-alter, or leave the table out with --without",
    )
