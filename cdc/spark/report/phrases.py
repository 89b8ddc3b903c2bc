"""Phrases the outcome of an audit as plain sentences, which the page and the terminal share."""

from collections.abc import Iterator

from cdc.spark.compare.row_drift import DriftedRow
from cdc.spark.compare.tally import Table
from cdc.spark.ddl.definitions import SchemaDrift
from cdc.spark.ddl.table_copies import incomplete_copies
from cdc.spark.report.outcome import AcceptedDrift, Audit, Topic
from cdc.spark.report.printable import duration, moment

__all__ = [
    "accepted_drift",
    "audit_time",
    "backlog",
    "binlog_position",
    "commit_log_age",
    "commit_times",
    "counted",
    "drifted_first",
    "enumerated",
    "has_drift",
    "not_compared",
    "not_found",
    "object_name",
    "row_notes",
    "verdict_sentence",
]


_NAMED = 10  # maximum number of tables or objects that a sentence names


def counted(number: int, one: str, many: str = "") -> str:
    """Returns a number with its noun, such as ``1 row`` or ``1,000 rows``; ``many`` is the plural if it is not the
    singular with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def enumerated(parts: list[str]) -> str:
    """Joins ``parts`` to a list in a sentence, such as ``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def verdict_sentence(audit: Audit) -> str:
    """Writes the sentence that answers whether the follower is a true copy of the leader."""
    follower, leader = audit.follower.resource, audit.leader.resource
    if audit.verdict == "could not judge" and not audit.reasons:
        parked = sum(each.parked is not None for each in audit.under_copy)
        late = sum(each.late is not None for each in audit.under_copy)
        kinds = {"being copied": len(audit.under_copy) - parked - late, "parked": parked,
                 "not in both topics as a whole": late}  # fmt: skip
        states = [f"{counted(count, 'table is', 'tables are')} {kind}" for kind, count in kinds.items() if count]
        others = counted(len(audit.tables), "other table")
        return (
            f"Whether {follower} is a true copy of {leader} can't be known yet: {enumerated(states)}. "
            f"No drift in {others} at the leader's sequence {audit.sequence:,}."
        )
    if audit.verdict == "could not judge":
        reasons = counted(len(audit.reasons), "reason")
        return f"Whether {follower} is a true copy of {leader} could not be judged, for {reasons}."
    tables = counted(len(audit.tables), "table")
    at = f"at the leader's sequence {audit.sequence:,}"
    if audit.verdict == "no drift":
        if audit.accepted_rows or audit.accepted_objects:
            at += f", apart from accepted drift ({_accepted(audit)})"
        rows = f"{counted(sum(table.leader_rows for table in audit.tables), 'row')} in {tables}"
        if audit.captured_at is not None:
            return f"The rows of {follower} are those of {leader} {at}: {rows}."
        if not audit.copy and not any(table.older for table in audit.tables):
            return f"{follower} is a true copy of {leader} {at}: {rows}."
        since = "the copy that it began from" if audit.copy else "the topics begin"
        # The sentence does not call the follower a true copy: that would include rows that were never compared.
        what = f"What has changed since {since} is on {follower} as on {leader}"
        return f"{what} {at}: {rows}. No other row was compared."
    found = []
    if audit.drifted_rows:
        found.append(
            f"{counted(audit.drifted_rows, 'row')} in {sum(map(has_drift, audit.tables)):,} of {tables} drifted"
        )
    if audit.schema_drift:
        objects = counted(audit.schema_drift, "table or other object is", "tables or other objects are")
        found.append(f"{objects} defined differently")
    besides = f"; accepted beside that: {_accepted(audit)}" if audit.accepted_rows or audit.accepted_objects else ""
    return f"{follower} is not a true copy of {leader} {at}: {enumerated(found)}{besides}."


def _accepted(audit: Audit) -> str:
    rows = [counted(audit.accepted_rows, "row")] if audit.accepted_rows else []
    objects = [counted(audit.accepted_objects, "definition")] if audit.accepted_objects else []
    return enumerated([*rows, *objects])


def accepted_drift(entry: AcceptedDrift) -> str:
    """Describes the drift that an entry of ``--accept`` has removed from the verdict."""
    if entry.expired:
        return f"expired on {entry.until}: nothing is accepted by it"
    rows = [f"{counted(rows, 'row')} of {name}" for name, rows in list(entry.rows.items())[:_NAMED]]
    if len(entry.rows) > _NAMED:
        rows.append(f"rows of {counted(len(entry.rows) - _NAMED, 'more table')}")
    objects = entry.objects[:_NAMED]
    if len(entry.objects) > _NAMED:
        objects.append(f"{len(entry.objects) - _NAMED:,} more")
    return enumerated([*rows, *objects]) or "matches nothing: nothing that it names differs (remove it from the file)"


def object_name(each: SchemaDrift) -> str:
    """Returns the kind and the name of an object, such as ``table flvDb.pet`` or ``database flvDb``."""
    return f"{each.kind.lower()} {each.database if each.name is None else f'{each.database}.{each.name}'}"


def audit_time(audit: Audit) -> str:
    """Formats the time of the audit, in UTC."""
    return f"{audit.audited_at[:19].replace('T', ' ')} UTC"


def has_drift(table: Table) -> bool:
    """Whether the table has drifted rows."""
    return bool(table.missing or table.extra or table.different)


def drifted_first(tables: list[Table]) -> list[Table]:
    """Sorts the tables by their number of drifted rows, highest first, then by name."""
    return sorted(tables, key=lambda t: (-(t.missing + t.extra + t.different), t.database, t.table))


def not_compared(audit: Audit) -> Iterator[str]:
    """Yields sentences about tables and rows that were not compared, one sentence for each reason."""
    late = [each for each in audit.under_copy if each.late is not None]
    if late and audit.verdict == "drift":
        yield f"Not compared: {'; '.join(incomplete_copies(late, audit.sequence))}."
    under_copy = [each for each in audit.under_copy if each.late is None]
    if under_copy and audit.verdict == "drift":
        names = enumerated([f"{each.database}.{each.table}" for each in under_copy[:_NAMED]])
        more = f" and {len(under_copy) - _NAMED:,} more" if len(under_copy) > _NAMED else ""
        parked = any(each.parked is not None for each in under_copy)
        or_parked = ", or they are parked on the follower" if parked else ""
        yield f"Not compared yet, since their copy into the leader's topic is not complete{or_parked}: {names}{more}."
    if audit.not_replicated:
        tables = [f"{t.database}.{t.table} ({counted(t.rows, 'row')})" for t in audit.not_replicated[:_NAMED]]
        if len(audit.not_replicated) > _NAMED:
            tables.append(f"{counted(len(audit.not_replicated) - _NAMED, 'more table')}")
        yield (
            "Not replicated, so neither compared nor drift: what the follower has of tables that the [filters] of the "
            f"leader's producer leave out: {enumerated(tables)}."
        )
    if unknown := sum(table.not_compared for table in audit.tables):
        of = enumerated([f"{t.database}.{t.table}" for t in audit.tables if t.not_compared][:_NAMED])
        yield (
            f"Not compared: {counted(unknown, 'row')} of copied tables ({of}), for which the follower's log does not "
            "show whether they equal the copy."
        )
    if older := sorted((t for t in audit.tables if t.older), key=lambda t: (-t.leader_rows, t.name)):
        yield _only_what_changed(older)
    if audit.copy:
        yield _began_from_copy(audit.copy)
    if audit.captured_at is not None:
        yield (
            "The follower's capture began with a copy of its tables, when the follower was at the leader's sequence "
            f"{audit.captured_at:,}. Definitions from before that were not compared, and of foreign writes of that "
            "time only the rows that they left are known."
        )


def _only_what_changed(tables: list[Table]) -> str:
    """Returns a sentence with the numbers of rows that were compared in tables older than the topics."""
    compared = [f"{t.database}.{t.table} {counted(t.leader_rows, 'row')}" for t in tables[:_NAMED]]
    if len(tables) > _NAMED:
        compared.append(f"{counted(len(tables) - _NAMED, 'more table')}")
    return (
        "Of tables that may be older than the topics only the rows that have changed since were compared: "
        f"{enumerated(compared)}. Their other rows, however many there are, were never compared."
    )


def _began_from_copy(held: str) -> str:
    return (
        "The follower began from a copy of the leader (consumer.start). What the copy held was never compared: rows "
        "that have not changed since may differ, and so may definitions. It held the transactions "
        f"{held}."
    )


def not_found(audit: Audit) -> str:
    """Writes a sentence that lists the kinds of findings that the audit searched for and did not find. The sentence is
    empty if the audit could not judge.
    """
    if audit.reasons:
        return ""
    looked_for = {
        "foreign writes": audit.foreign_writes,
        "records skipped by an operator": audit.skipped,
        "breaks in the streams": audit.breaks,
        "before images that do not match the row's previous image": any(audit.discontinuities.values()),
    }
    none = [name for name, found in looked_for.items() if not found]
    return f"Looked for and not found: {enumerated(none)}." if none else ""


def commit_times(topic: Topic) -> str:
    """Formats the commit times of the first and the last record of a topic."""
    if topic.first_us is None or topic.last_us is None:
        return "no records"
    return f"{moment(topic.first_us)} to {moment(topic.last_us)}"


def commit_log_age(audit: Audit, side: str) -> str:
    """Formats how long before the audit the producer of a side wrote the newest entry of its commit log."""
    seconds = audit.ages[side]
    return "no commit log" if seconds is None else f"{duration(seconds * 1e6)} before the audit"


def backlog(audit: Audit) -> str:
    """Writes a sentence about the leader's records that the follower has not applied; empty if their number
    is unknown.
    """
    if audit.behind_records is None:
        return ""
    if not audit.behind_records:
        return "The follower has applied all records in the leader's topic."
    waiting = "" if audit.behind_seconds is None else f", the oldest of them for {duration(audit.behind_seconds * 1e6)}"
    records = counted(audit.behind_records, "record is", "records are")
    return f"{records} in the leader's topic that the follower has not applied{waiting}."


def binlog_position(change: dict[str, object] | None) -> str:
    """Formats the binlog position of a change and its record's sequence."""
    return f"{change['file']}:{change['position']} (sequence {change['sequence']})" if change else "none"


def row_notes(row: DriftedRow) -> Iterator[str]:
    """Yields sentences about a drifted row with facts that its images do not show."""
    if not row.keyed:
        side = "leader" if row.kind == "missing" else "follower"
        copies = counted(row.rows, "more copy", "more copies")
        yield f"The table has no key: the {side} has {copies} of this row."
    elif row.leader_image is None and row.follower_image is None:
        sides = ("leader", "follower") if row.kind == "missing" else ("follower", "leader")
        yield (
            "The row is older than the topic, so only its key is known: "
            f"the {sides[1]} deleted it, the {sides[0]} did not."
        )
    if row.since_us is not None:
        yield f"Its last change on either side was at {moment(row.since_us)}: its difference is the same since then."
