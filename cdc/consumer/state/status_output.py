"""Writes a follower's status as lines of text for an operator, or as one JSON object for programs."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from cdc.consumer.follower.session import NOT_TAKEN, SWITCH_ON
from cdc.consumer.literals.values import identifier, quoted, seconds
from cdc.consumer.state.ledger_table import BYTES
from cdc.consumer.state.status import Applied, Entry, ResolvedConflict, Status, lag
from cdc.model.client_text import UTF8, client_decode
from cdc.model.values import visible
from cdc.sql.text import is_lost
from cdc.sql.tokens import excerpt

__all__ = ["as_json", "as_text"]

_ACCOUNTS = (
    "accounts     are in no topic: copy them before a promotion (SHOW CREATE USER and SHOW GRANTS on the leader)"
)
_INTRODUCED = re.compile(r"""(?<![\w$])(_\w+|n)\s*['"]""", re.IGNORECASE)
_SESSION_VARIABLES = {"time_zone": "time_zone", "charset": "character_set_client", "collation": "collation_connection"}


def as_json(status: Status, *, follower: str, resource: str, following: int | None, silent: float | None = None) -> str:
    """Writes a status as one JSON object. It has the fields of ``Status``, and the fields ``follower``, ``resource``,
    ``lag`` and ``producer``. Times are in ISO 8601, in UTC.

    ``following`` is explained in the function ``lag``; an unknown lag is null. ``silent`` is the number of seconds
    since the producer last wrote to the commit log.
    """
    body = {"follower": follower, "resource": resource} | asdict(status)
    records, seconds = lag(status.applied, following) if status.applied else (None, None)
    body["lag"] = {"records": records, "seconds": seconds}
    body["producer"] = {"silent_seconds": silent}
    if status.applied:
        body["applied"]["offsets"] = [
            {"topic": partition.topic, "partition": partition.number, "next": offset}
            for partition, offset in sorted(status.applied.offsets.items())
        ]
    return json.dumps(body, default=_iso_time, ensure_ascii=False)


def _iso_time(value: Any) -> str:
    """Writes a time in ISO 8601. The times in MySQL's DATETIME columns are in UTC, but their values have no time
    zone."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    raise TypeError(f"not a value of a status: {value!r}")


def as_text(
    status: Status,
    *,
    follower: str,
    resource: str,
    following: int | None,
    silent: float | None = None,
    terminal: bool = False,
) -> str:
    """Writes a status as a few lines of text, followed by the statements for a promotion. ``following`` and ``silent``
    are explained in ``as_json``.

    The statements are exact, so that a client can execute them. Control characters are escaped only if the output is a
    ``terminal``.
    """
    late = _lag(status.applied, following, silent) if status.applied is not None else ""
    lines = [visible(line) for line in _lines(status, follower=follower, resource=resource, late=late)]
    if status.applied is not None:
        statements = [f"{text};;" for entry in status.missing if _is_text(entry) for text in _creation(entry)]
        if terminal:
            statements = [visible(text.replace("\r\n", "\n"), keep="\n\t") for text in statements]
        lines += ["DELIMITER ;;", *statements, "DELIMITER ;"] if statements else []
        lines.append(_ACCOUNTS)
    return "\n".join(lines)


def _lines(status: Status, *, follower: str, resource: str, late: str) -> Iterator[str]:
    yield _line("follower", f"{follower}, of leader {resource}")
    runs = "paused" if status.paused else "running"
    yield _line("consumer", "not running" if status.consumer is None else f"{runs}, connection {status.consumer}")
    if not status.local_infile:
        yield _line("many rows", f"{NOT_TAKEN}; {SWITCH_ON}")
    if status.applied is None:
        yield _line("checkpoint", "none: nothing of this leader has been applied here")
        return
    yield from _checkpoint(status.applied)
    if status.copied:
        yield _line("began from", f"a copy of the leader with the transactions {status.copied}")
    yield _line("lag", late)
    counts = ", ".join(f"{count} {state}" for state, count in sorted(status.states.items()))
    yield _line("ledger", counts or "empty")
    yield from (f"  {_entry(entry)}" for entry in reversed(status.newest))
    yield from _section(
        "open intents", status.open, "A statement is running, or the follower refused it: see the consumer's log."
    )
    yield from _section("skipped", status.skipped, "Records that were not applied, by an operator's --skip:")
    yield from _conflicts(status.conflicts)
    yield from _missing(status.missing)


def _line(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _checkpoint(applied: Applied) -> Iterator[str]:
    if applied.sequence < 0:
        yield _line("checkpoint", "at the beginning: no record has been applied yet")
    else:
        yield _line("checkpoint", f"sequence {applied.sequence}, applied {applied.at} UTC")
    if applied.ts_us is not None:
        committed = f"{datetime.fromtimestamp(applied.ts_us / 1e6, UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
        yield _line("leader", f"{applied.position}, transaction {applied.transaction}, committed {committed}")
    yield _line("topic", f"{applied.topic} (id {applied.topic_id})")
    for partition, offset in sorted(applied.offsets.items()):
        yield _line("offset", f"{partition.topic}/{partition.number}: {offset} is next")


def _lag(applied: Applied, following: int | None, silent: float | None) -> str:
    records, late = lag(applied, following)
    if records is None:
        return "not known: the brokers do not answer, or the topic has no commit log yet"
    found = f"{records} records, at most {late:.1f} s" if records and late is not None else f"{records} records"
    if silent is None:
        return found
    # The lag does not include the changes that the leader has made since then, because the topics do not contain them
    # yet.
    return f"{found}; nothing heard of the producer for {silent:.0f} s (it writes each producer.alive_seconds)"


def _entry(entry: Entry) -> str:
    note = f" ({entry.note})" if entry.note else ""
    return f"{entry.sequence}  {entry.at}  {entry.state}{note}: {excerpt(entry.statement)}"


def _section(name: str, entries: Sequence[Entry], what: str) -> Iterator[str]:
    if entries:
        yield _line(name, what)
        yield from (f"  {_entry(entry)}" for entry in entries)


def _conflicts(conflicts: Sequence[ResolvedConflict]) -> Iterator[str]:
    yield _line("conflicts", str(conflicts[0].number if conflicts else 0))
    for each in reversed(conflicts):
        removed = f"; removed {each.removed}" if each.removed else ""
        yield f"  {each.sequence}  {each.at}  {each.operation} of {each.key} in {each.uri}: {each.reason}{removed}"


def _missing(entries: Sequence[Entry]) -> Iterator[str]:
    if not entries:
        yield _line("not here", "no triggers or events of the leader that the topic tells of; it may have others from")
        yield "  before the stream began: see SHOW TRIGGERS and SHOW EVENTS there"
        return
    yield _line("not here", "These triggers and events run on the leader only; the rows they write are replicated.")
    yield "  To promote this follower, stop the consumer and run these statements in this order with the mysql client,"
    yield "  with event_scheduler OFF: a one-time event that has run and was kept (ON COMPLETION PRESERVE) would run"
    yield "  again. Disable such events, then set event_scheduler ON. Those from before the stream began may be missing"
    yield "  here: see SHOW TRIGGERS and SHOW EVENTS on the leader."
    others = [entry for entry in entries if not _is_text(entry)]
    if others:
        yield "  These have bytes that are no text, or no UTF-8. Create them by hand; the ledger has their bytes:"
        yield from (f"  {_entry(entry)}" for entry in others)


def _is_text(entry: Entry) -> bool:
    """Whether the server reads the entry's text, sent as UTF-8, in the same way as it read the original bytes."""
    charset = entry.context.get("charset", "utf8mb4")
    exact = entry.context.get(BYTES)
    if exact is not None and is_lost(client_decode(b64decode(exact), charset)):
        return False
    # A literal with an introducer contains the bytes as they were typed, and would contain other bytes in UTF-8.
    return entry.statement.isascii() or charset in UTF8 or not _INTRODUCED.search(entry.statement)


def _creation(entry: Entry) -> Iterator[str]:
    """Yields statements that set the leader's session variables, and then the statement of the entry.

    The session variables are needed, for example, because the schedule of an event depends on the time zone and the
    time of the session.
    """
    database = entry.context.get("database")
    yield "SET NAMES utf8mb4"  # this output is UTF-8
    yield from ([f"USE {identifier(database)}"] if database else [])
    # A variable that the record lacks is set to its default. Otherwise it would keep its value from the previous
    # statement.
    wanted = {"sql_mode": quoted(entry.context.get("sql_mode", "")), "time_zone": "DEFAULT", "timestamp": "DEFAULT"}
    for name, variable in _SESSION_VARIABLES.items():
        # The server decodes the text in the client's character set. This output is UTF-8, so if the text is not ASCII,
        # the character set of SET NAMES is kept.
        if name in entry.context and (name != "charset" or entry.statement.isascii()):
            wanted[variable] = quoted(str(entry.context[name]))
    if "timestamp_us" in entry.context:
        wanted["timestamp"] = seconds(entry.context["timestamp_us"])
    yield f"SET {', '.join(f'{variable} = {value}' for variable, value in wanted.items())}"
    yield entry.statement
