"""Holds the outcome of an audit and writes it as report.json and report.html.

cdc/spark/report.schema.json describes every field of report.json. The version in report.json is increased when a field
is removed or changes its meaning, not when a field is added.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from cdc.service.private_files import write_text
from cdc.spark.compare.row_drift import Discontinuity, DriftedRow
from cdc.spark.compare.tally import Table
from cdc.spark.ddl.definitions import SchemaDrift
from cdc.spark.ddl.table_copies import UnderCopy, incomplete_copies
from cdc.spark.input.spans import too_old
from cdc.spark.lag import Lag
from cdc.spark.report.files import HTML, JSON
from cdc.spark.streams.consumer_notes import ForeignWrite, Skip
from cdc.spark.streams.integrity import Break

__all__ = ["VERSION", "AcceptedDrift", "Audit", "NotReplicated", "Topic", "to_json", "write"]

VERSION = 1

_STATUS = {"no drift": 0, "drift": 1, "could not judge": 2}


@dataclass(frozen=True, slots=True)
class Topic:
    """The part of one server's records that was read. ``topic`` is the topic in the profile; ``offsets`` maps each
    topic/partition to the first offset and the offset after the last.

    ``first`` and ``last`` are sequences; ``first_us`` and ``last_us`` are the earliest and the latest commit time, in
    µs since 1970; ``newest_us`` is the time at which the newest entry of the commit log was written.
    """

    resource: str
    topic: str
    records: int
    first: int | None
    last: int | None
    first_us: int | None
    last_us: int | None
    offsets: dict[str, tuple[int, int]]
    newest_us: int | None = None


@dataclass(frozen=True, slots=True)
class AcceptedDrift:
    """The drift that an entry of ``--accept`` removes from the verdict: the number of ``rows`` by table, and the
    ``objects`` that are defined differently.

    Both are empty for an ``expired`` entry. The other fields are the same as in the entry
    (``ddl.accepted_drift.Entry``).
    """

    number: int
    what: list[str]
    name: str
    reason: str
    until: str | None
    expired: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    objects: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NotReplicated:
    """A table that the leader's producer leaves out, and the number of ``rows`` that only the follower has."""

    database: str
    table: str
    rows: int


@dataclass(frozen=True, slots=True)
class Audit:
    """The contents of a report; report.schema.json explains the fields."""

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
    waiting_us: int | None = None
    copy: str | None = None
    under_copy: list[UnderCopy] = field(default_factory=list)
    captured_at: int | None = None
    accepted: list[AcceptedDrift] = field(default_factory=list)
    not_replicated: list[NotReplicated] = field(default_factory=list)
    repair: str = ""

    @classmethod
    def of(cls, *sections: Any, reasons: Sequence[str] = ()) -> "Audit":
        """Builds an audit from ``sections``, which are dataclasses with some of the audit's fields."""
        found = {each.name: getattr(section, each.name) for section in sections for each in fields(section)}
        return cls(reasons=list(reasons), **found)

    @property
    def verdict(self) -> str:
        """The verdict: ``no drift``, ``drift`` or ``could not judge``."""
        if self.reasons:
            return "could not judge"
        if self.drifted_rows or self.schema_drift:
            return "drift"
        # "No drift" promises a true copy, which is not certain while the copy of a table is incomplete, or while a late
        # capture does not show the rows of a table.
        return "could not judge" if self.under_copy else "no drift"

    @property
    def why(self) -> list[str]:
        """The reasons why the audit could not judge. If ``reasons`` is empty, all tables were compared except the
        tables ``under_copy``."""
        if self.reasons or self.verdict != "could not judge":
            return self.reasons
        return incomplete_copies(self.under_copy, self.sequence)

    @property
    def accepted_rows(self) -> int:
        """The number of rows that differ and that ``--accept`` accepts."""
        return sum(sum(each.rows.values()) for each in self.accepted)

    @property
    def accepted_objects(self) -> int:
        """The number of objects that are defined differently and that ``--accept`` accepts."""
        return sum(len(each.objects) for each in self.accepted)

    @property
    def behind_records(self) -> int | None:
        """The number of the leader's records that the follower has not applied; None if it is unknown."""
        if self.sequence is None or self.leader.last is None:
            return None
        return self.leader.last - self.sequence

    @property
    def behind_seconds(self) -> float | None:
        """The age, in seconds at the audit, of the oldest leader record that the follower has not applied. The age
        counts from the leader's commit.

        0 if the follower has applied all records; None if the age is unknown.
        """
        return self.seconds_since(self.waiting_us) if self.behind_records else self.behind_records

    @property
    def ages(self) -> dict[str, float | None]:
        """Maps each side to the age in seconds, at the audit, of the newest entry in that side's commit log. The age is
        None if the commit log has no entry.
        """
        return {side: self.seconds_since(each.newest_us)
                for side, each in (("leader", self.leader), ("follower", self.follower))}  # fmt: skip

    def seconds_since(self, us: int | None) -> float | None:
        """Returns the number of seconds from the time ``us`` to the audit. The result is 0 for a time after the audit,
        which another machine's clock may show.
        """
        return None if us is None else max(0.0, datetime.fromisoformat(self.audited_at).timestamp() - us / 1e6)

    def no_older_than(self, seconds: float) -> "Audit":
        """Returns the audit, with the verdict "could not judge" if the newest entry of a commit log is older than
        ``seconds``: newer changes may not be in the topic yet.
        """
        reasons = [
            reason
            for (side, age), topic in zip(self.ages.items(), (self.leader, self.follower), strict=True)
            for reason in too_old(side, topic.topic, age, seconds)
        ]
        return replace(self, reasons=[*self.reasons, *reasons])

    @property
    def exit_status(self) -> int:
        """The exit status for the verdict: 0, 1 or 2."""
        return _STATUS[self.verdict]


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds)


def to_json(audit: Audit) -> str:
    """Formats the text of report.json."""
    head = {"version": VERSION, "verdict": audit.verdict, "exit_status": audit.exit_status}
    derived = {
        "behind_records": audit.behind_records,
        "behind_seconds": _whole(audit.behind_seconds),
        "ages_seconds": {side: _whole(age) for side, age in audit.ages.items()},
    }
    body = asdict(audit)
    for each in body["schema"]:
        del each["statements"]  # the statements are whole texts, which may contain passwords
    return json.dumps(head | derived | body | {"reasons": audit.why}, ensure_ascii=False, indent=1) + "\n"


def write(audit: Audit, page: str, folder: Path) -> None:
    """Writes report.json, and ``page`` as report.html, to ``folder``."""
    write_text(folder / JSON, to_json(audit))
    write_text(folder / HTML, page)
