"""Describes the result of a run of cdc-lake, and defines the error for the tables that a run refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cdc.errors import CdcError, UserError
from cdc.spark.ddl.lineage import Name

__all__ = ["Copying", "Refused", "Run", "named", "refused_run"]

_NAMED = 5  # the number of tables that a message names


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run. The lake equals the leader's tables after ``sequence``. ``counts`` maps "merged", "written"
    and so on to the number of tables.

    ``waiting`` are the tables that have had no rows since their creation; their columns are not known yet. ``refused``
    maps tables to the reason why the lake can't contain their state after ``sequence``. ``ts_us`` is explained in
    ``Arrived``.
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
        f"the lake can't have {len(names)} of the tables at sequence {run.sequence}: {named(names)}",
        run=run,
        hint="the others are written; see the lines before, which say why; or leave these out with --without",
    )


class Copying(UserError):
    """Tables are being copied into the stream; the lake waits until the stream contains all rows of these tables."""


def named(names: Sequence[Name]) -> str:
    """Lists the first few ``names`` as text."""
    text = ", ".join(".".join(name) for name in names[:_NAMED])
    return text + ", …" * (len(names) > _NAMED)
