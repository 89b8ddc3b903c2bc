"""The audit's outcome in plain sentences, the same on the page and on the terminal."""

from collections.abc import Iterator

from cdc.spark.compare.row_drift import DriftedRow
from cdc.spark.compare.tally import Table
from cdc.spark.report.outcome import Audit, Topic
from cdc.spark.report.units import duration, moment
from cdc.spark.schema.definitions import SchemaDrift

__all__ = [
    "age",
    "audited",
    "behind",
    "committed",
    "counted",
    "drifted_first",
    "drifted_in",
    "joined",
    "none_of",
    "object_name",
    "place",
    "row_note",
    "sentence",
]


def counted(number: int, one: str, many: str = "") -> str:
    """``1 row``, ``2 rows``, ``1,000 rows``; ``many`` where it isn't the singular with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def joined(parts: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def sentence(audit: Audit) -> str:
    """The answer to "is the replica right?"."""
    follower, leader = audit.follower.resource, audit.leader.resource
    if audit.verdict == "could not judge":
        reasons = counted(len(audit.reasons), "reason")
        return f"Whether {follower} is a true copy of {leader} could not be judged, for {reasons}."
    tables = counted(len(audit.tables), "table")
    at = f"at the leader's sequence {audit.sequence:,}"
    if audit.verdict == "no drift":
        rows = counted(sum(table.leader_rows for table in audit.tables), "row")
        return f"{follower} is a true copy of {leader} {at}: {rows} in {tables}."
    found = []
    if audit.drifted_rows:
        found.append(
            f"{counted(audit.drifted_rows, 'row')} in {sum(map(drifted_in, audit.tables)):,} of {tables} drifted"
        )
    if audit.schema_drift:
        objects = counted(audit.schema_drift, "table or other object is", "tables or other objects are")
        found.append(f"{objects} defined otherwise")
    return f"{follower} is not a true copy of {leader} {at}: {joined(found)}."


def object_name(each: SchemaDrift) -> str:
    """``table flvDb.pet``, ``database flvDb``."""
    return f"{each.kind.lower()} {each.database if each.name is None else f'{each.database}.{each.name}'}"


def audited(audit: Audit) -> str:
    """When the audit was done."""
    return f"{audit.audited_at[:19].replace('T', ' ')} UTC"


def drifted_in(table: Table) -> bool:
    """Whether the table has drifted rows."""
    return bool(table.missing or table.extra or table.different)


def drifted_first(tables: list[Table]) -> list[Table]:
    """The tables with most drifted rows first, then by name."""
    return sorted(tables, key=lambda t: (-(t.missing + t.extra + t.different), t.database, t.table))


def none_of(audit: Audit) -> str:
    """What was looked for and not found, as a sentence; empty where nothing is to be said."""
    if audit.reasons:
        return ""
    looked_for = {
        "foreign writes": audit.foreign_writes,
        "records skipped by an operator": audit.skipped,
        "breaks in the streams": audit.breaks,
        "before images that do not continue their row": any(audit.discontinuities.values()),
    }
    none = [name for name, found in looked_for.items() if not found]
    return f"Looked for and not found: {joined(none)}." if none else ""


def committed(topic: Topic) -> str:
    """When the first and the last of a topic's records were committed."""
    if topic.first_us is None or topic.last_us is None:
        return "no records"
    return f"{moment(topic.first_us)} to {moment(topic.last_us)}"


def age(audit: Audit, side: str) -> str:
    """When the producer of a side gave the last sign of life, before the audit."""
    seconds = audit.ages[side]
    return "no commit log" if seconds is None else f"{duration(seconds * 1e6)} before the audit"


def behind(audit: Audit) -> str:
    """How far the follower is behind what is in the leader's topic; empty where that is not known."""
    if audit.behind_records is None:
        return ""
    if not audit.behind_records:
        return "The follower has applied all that is in the leader's topic."
    waiting = "" if audit.behind_seconds is None else f", the oldest of them for {duration(audit.behind_seconds * 1e6)}"
    records = counted(audit.behind_records, "record is", "records are")
    return f"{records} in the leader's topic that the follower has not applied{waiting}."


def place(where: dict[str, object] | None) -> str:
    """A record's place in its server's binlog."""
    return f"{where['file']}:{where['position']} (sequence {where['sequence']})" if where else "none"


def row_note(row: DriftedRow) -> Iterator[str]:
    """What the row's images alone don't tell."""
    if not row.keyed:
        side = "leader" if row.kind == "missing" else "follower"
        yield f"No key: the {side} has this row {counted(row.rows, 'time')} more."
    elif row.leader_image is None and row.follower_image is None:
        sides = ("leader", "follower") if row.kind == "missing" else ("follower", "leader")
        yield f"From before the topic, which shows its key only: the {sides[1]} deleted it, the {sides[0]} did not."
