"""The audit's outcome, and report.json: the fields of ``Audit`` and of the dataclasses in it, its verdict and version.

report.schema.json, beside this module, describes and explains all of it. The version goes up when a field goes away or
changes its meaning; fields may come without. Each audit removes what an earlier one left in the folder. drift.parquet
is there only when rows drifted, in a folder that Spark's executors must share with the driver when they run elsewhere.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cdc.private import write_text
from cdc.spark.definitions import SchemaDrift
from cdc.spark.drift import Discontinuity, DriftedRow, Table
from cdc.spark.folder import HTML, JSON
from cdc.spark.integrity import Break
from cdc.spark.lag import Lag
from cdc.spark.skipped import Skip
from cdc.spark.watermark import ForeignWrite

__all__ = ["VERSION", "Audit", "Topic", "to_json", "write"]

VERSION = 1

_STATUS = {"no drift": 0, "drift": 1, "could not judge": 2}


@dataclass(frozen=True, slots=True)
class Topic:
    """One server's records as they were read. ``topic`` is the profile's; ``offsets`` are per topic/partition.

    ``first_us`` and ``last_us`` are the earliest and the latest commit time, in µs since 1970.
    """

    resource: str
    topic: str
    records: int
    first: int | None
    last: int | None
    first_us: int | None
    last_us: int | None
    offsets: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything the reports tell; the fields are explained in report.schema.json."""

    audited_at: str
    leader: Topic
    follower: Topic
    reasons: list[str] = field(default_factory=list)
    sequence: int | None = None
    tables: list[Table] = field(default_factory=list)
    drifted_rows: int = 0
    drifted_by_cause: dict[str, int] = field(default_factory=dict)
    drifted: list[DriftedRow] = field(default_factory=list)
    schema_drift: int = 0
    schema: list[SchemaDrift] = field(default_factory=list)
    foreign_writes: int = 0
    foreign: list[ForeignWrite] = field(default_factory=list)
    foreign_over_time: list[tuple[int, int, int]] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    discontinuities: dict[str, int] = field(default_factory=dict)
    discontinued: list[Discontinuity] = field(default_factory=list)
    lag: Lag | None = None

    @property
    def verdict(self) -> str:
        """``no drift``, ``drift`` or ``could not judge``."""
        if self.reasons:
            return "could not judge"
        return "drift" if self.drifted_rows or self.schema_drift else "no drift"

    @property
    def exit_status(self) -> int:
        """0, 1 or 2, by the verdict."""
        return _STATUS[self.verdict]


def to_json(audit: Audit) -> str:
    """What report.json holds."""
    head = {"version": VERSION, "verdict": audit.verdict, "exit_status": audit.exit_status}
    return json.dumps(head | asdict(audit), ensure_ascii=False, indent=1) + "\n"


def write(audit: Audit, page: str, folder: Path) -> None:
    """Write report.json and report.html."""
    write_text(folder / JSON, to_json(audit))
    write_text(folder / HTML, page)
