"""A follower's status as text for people."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from cdc.consumer.literals.values import identifier, quoted, seconds
from cdc.consumer.state.status import Applied, Entry, Settled, Status, lag
from cdc.model.printable import visible
from cdc.sql.redaction import excerpt

__all__ = ["as_text"]

_ACCOUNTS = (
    "accounts     are in no topic: copy them before a promotion (SHOW CREATE USER and SHOW GRANTS on the leader)"
)
_OF_SESSION = {"time_zone": "time_zone", "charset": "character_set_client", "collation": "collation_connection"}


def as_text(status: Status, *, follower: str, resource: str, following: int | None, terminal: bool = False) -> str:
    """A few lines; ``following`` is as for ``lag``.

    The statements of a promotion are exact, for a client to run, but on a ``terminal``, which they must not steer.
    """
    lines = [visible(line) for line in _lines(status, follower=follower, resource=resource, following=following)]
    if status.applied is not None:
        statements = [f"{text};;" for entry in status.missing for text in _creation(entry)]
        if terminal:
            statements = [visible(text.replace("\r\n", "\n"), keep="\n\t") for text in statements]
        lines += ["DELIMITER ;;", *statements, "DELIMITER ;"] if statements else []
        lines.append(_ACCOUNTS)
    return "\n".join(lines)


def _lines(status: Status, *, follower: str, resource: str, following: int | None) -> Iterator[str]:
    yield _line("follower", f"{follower}, of leader {resource}")
    yield _line("consumer", "not running" if status.consumer is None else f"at work, connection {status.consumer}")
    if status.applied is None:
        yield _line("checkpoint", "none: nothing of this leader has been applied here")
        return
    yield from _checkpoint(status.applied)
    yield _line("lag", _lag(status.applied, following))
    counts = ", ".join(f"{count} {state}" for state, count in sorted(status.states.items()))
    yield _line("ledger", counts or "empty")
    yield from (f"  {_entry(entry)}" for entry in reversed(status.newest))
    yield from _section(
        "open intents", status.open, "A statement runs now, or was refused: the consumer's log says why."
    )
    yield from _section("skipped", status.skipped, "Records that the follower does without, by an operator's --skip:")
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
    for place, offset in sorted(applied.offsets.items()):
        yield _line("offset", f"{place.topic}/{place.number}: {offset} is next")


def _lag(applied: Applied, following: int | None) -> str:
    records, late = lag(applied, following)
    if records is None:
        return "not known: the brokers do not answer, or the topic has no commit log yet"
    return f"{records} records, at most {late:.1f} s" if records and late is not None else f"{records} records"


def _entry(entry: Entry) -> str:
    note = f" ({entry.note})" if entry.note else ""
    return f"{entry.sequence}  {entry.at}  {entry.state}{note}: {excerpt(entry.statement)}"


def _section(name: str, entries: Sequence[Entry], what: str) -> Iterator[str]:
    if entries:
        yield _line(name, what)
        yield from (f"  {_entry(entry)}" for entry in entries)


def _conflicts(conflicts: Sequence[Settled]) -> Iterator[str]:
    yield _line("conflicts", str(conflicts[0].number if conflicts else 0))
    for each in reversed(conflicts):
        removed = f"; removed {each.removed}" if each.removed else ""
        yield f"  {each.sequence}  {each.at}  {each.operation} of {each.key} in {each.uri}: {each.reason}{removed}"


def _missing(entries: Sequence[Entry]) -> Iterator[str]:
    if not entries:
        yield _line("not here", "no triggers or events of the leader")
        return
    yield _line("not here", "The leader has these triggers and events, whose effects come as rows. A promotion creates")
    yield "  them in this order, once the consumer has stopped (with the mysql client), with event_scheduler OFF: an"
    yield "  event AT one time that has run and was kept (PRESERVE) would run again. Disable such, then turn it ON."


def _creation(entry: Entry) -> Iterator[str]:
    """The statement as in the leader's session: an event's schedule has the hours of its time zone and its time."""
    database = entry.context.get("database")
    yield "SET NAMES utf8mb4"  # what is printed here
    yield from ([f"USE {identifier(database)}"] if database else [])
    # What is not known must not be that of the statement before.
    wanted = {"sql_mode": quoted(entry.context.get("sql_mode", "")), "time_zone": "DEFAULT", "timestamp": "DEFAULT"}
    for name, variable in _OF_SESSION.items():
        # The client's character set tells how the text is to be read; where that matters, this one's is right.
        if name in entry.context and (name != "charset" or entry.statement.isascii()):
            wanted[variable] = quoted(str(entry.context[name]))
    if "timestamp_us" in entry.context:
        wanted["timestamp"] = seconds(entry.context["timestamp_us"])
    yield f"SET {', '.join(f'{variable} = {value}' for variable, value in wanted.items())}"
    yield entry.statement
