"""Steps of a plan to SQL statements. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from cdc.consumer.errors import unreadable
from cdc.consumer.literals.before_images import UNLIKE, as_before, compared, comparison
from cdc.consumer.literals.row_sql_mode import STRICT, lax, setting, strict
from cdc.consumer.literals.row_text import row_texts
from cdc.consumer.literals.values import equal, exact, identifier, literal, table_name
from cdc.consumer.plan.inserts import chunks, row_lists, written_places
from cdc.consumer.plan.packets import PACKET_BYTES, Statement
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS, Change, Step
from cdc.model.record import Record, Row, Uri
from cdc.model.values import Value

__all__ = [
    "Generated",
    "delete_exact",
    "session_flags",
    "single",
    "statements",
]

# Longer IN lists come near range_optimizer_max_mem_size, past which the server scans the table.
_DELETE_ROWS = 1000
# In a list of rows MySQL compares other types in ways of its own, and misses TIMEs and numbers of ENUMs.
_LISTED = frozenset({"SignedInteger", "UnsignedInteger", "String", "Blob"})

Generated = Callable[[Uri], frozenset[str]]
Writable = Callable[[Uri], frozenset[str]]


def statements(
    steps: Iterable[Step], *, generated: Generated, comparable: Writable | None = None, size: int = PACKET_BYTES
) -> Iterator[Statement]:
    """The statements of a plan, in order, of at most ``size`` bytes where a single row allows.

    ``generated`` names a table's generated columns, which the follower computes itself, ``comparable`` those whose
    before-images must be found; None compares nothing but keys. Raises Unapplicable for a value that is none of a
    record.
    """
    flags, mode = 0, STRICT
    for step in steps:
        if step.flags != flags:
            flags = step.flags
            yield session_flags(flags)
        try:
            if (wanted := _mode(step)) != mode:
                mode = wanted
                yield Statement(setting(mode))
            columns = comparable(step.record.uri) if comparable and step.record.key is not None else frozenset()
            yield from _step(step, generated(step.record.uri), size, columns)
            if step.verified and step.record.key is not None and step.operation in ("Add", "Upsert", "Update"):
                mode = STRICT
                yield Statement(setting(mode))
                yield from _comparisons(_done(step), step.verified, size)
        except ValueError as error:
            raise unreadable(step.record, error) from None
    if mode != STRICT:
        yield Statement(setting(STRICT))
    if flags:
        yield session_flags(0)


def _mode(step: Step) -> str:
    """The sql_mode of a step. What only deletes rows stores nothing that could be wrong."""
    if step.modes is None:
        return STRICT
    if step.operation in ("Delete", "Absent"):
        return lax(step.modes, adds=False)
    return strict(step.modes, adds=step.operation == "Add")


def _done(step: Step) -> Step:
    """The deletion of what the step has stored: its before-images are what must be there now."""
    return replace(step, changes=[Change(record, Row(row.after, None)) for record, row in step.changes])


def single(change: Change, *, generated: Generated) -> Statement:
    """The statement of one change alone."""
    (statement,) = _step(Step(change.record.operation, [change]), generated(change.record.uri), size=0)
    return statement


def delete_exact(change: Change) -> Statement:
    """Delete the row that the change's before-image identifies, if it is there."""
    row, where = _before(change), _matcher(change.record)
    return Statement(f"DELETE FROM {table_name(change.record.uri)} WHERE {where(row)}".encode())


def session_flags(flags: int) -> Statement:
    """Sets the checks as the session had them whose rows event carries ``flags`` (MySQL source, class Rows_event)."""
    foreign = 0 if flags & NO_FOREIGN_KEY_CHECKS else 1
    unique = 0 if flags & RELAXED_UNIQUE_CHECKS else 1
    return Statement(f"SET foreign_key_checks={foreign}, unique_checks={unique}".encode())


def _step(
    step: Step, generated: frozenset[str], size: int, columns: frozenset[str] = frozenset()
) -> Iterator[Statement]:
    """The statements of a step; the before-images in ``columns`` must be found, if there are any."""
    if step.operation == "Add":
        yield from _inserts(step, generated, size)
    elif step.operation == "Update":
        yield from _updates(step, generated, columns)
    elif step.record.key is None:
        yield from _exact_deletes(step)
    else:
        # The rows of such a step are all different ones, so that they can be compared before any of them changes.
        if step.operation != "Absent" and not columns.isdisjoint(step.record.columns):
            yield from _comparisons(step, columns, size)
        yield from _upserts(step, generated, size) if step.operation == "Upsert" else _keyed_deletes(step, size)


def _comparisons(step: Step, columns: frozenset[str], size: int) -> Iterator[Statement]:
    """Statements that match as many rows as there are changes, if each row is as in its before-image."""
    record, places = step.record, compared(step.record, columns)
    how = comparison(record.columns, places, [_before(change) for change in step.changes])
    values: dict[int, bytes] = {}
    for change in step.changes:
        try:
            values[id(change)] = how.value(_before(change)).encode()
        except UNLIKE as error:
            if len(step.changes) == 1:
                raise ValueError(f"{type(error).__name__}: {error}") from None
    alike = [change for change in step.changes if id(change) in values]
    for change in step.changes:
        if id(change) not in values:
            # A value is of another type than those above it, and compared in another way.
            yield from _comparisons(replace(step, changes=[change]), columns, size)
    if not alike:
        return
    column, keys = identifier(record.columns[places[0]]), _by_key(step)
    # Where columns are computed an UPDATE would compute them anew, or be refused what it finds.
    verb, end = f"UPDATE {table_name(record.uri)} SET {column}={column}", b")"
    if step.modes is not None:
        verb, end = f"SELECT 1 FROM {table_name(record.uri)}", b") FOR UPDATE"
    head = f"{verb} WHERE ({keys.head}".encode()
    middle = f"{keys.tail}) AND {how.expression} IN (".encode()
    between = len(keys.separator) + 1 + max(map(len, values.values()))
    size -= len(head) + len(middle)
    for changes, found in chunks(alike, keys.rows(alike), size=size, count=_DELETE_ROWS, between=between):
        among = b",".join([values[id(change)] for change in changes])
        yield Statement(head + keys.separator.join(found) + middle + among + end, len(changes), changes)


def _inserts(step: Step, generated: frozenset[str], size: int) -> Iterator[Statement]:
    for changes, sql in row_lists(step, generated, size, tail=b""):
        yield Statement(sql, len(changes), changes)


def _upserts(step: Step, generated: frozenset[str], size: int) -> Iterator[Statement]:
    """Updates of many rows in one statement (manual, "INSERT ... ON DUPLICATE KEY UPDATE Statement").

    A row that is updated counts twice, so any other count tells of one that was not there. A row that another one than
    its own stands in the way of, by a secondary unique key, is set to have no key, which the server refuses.
    """
    record = step.record
    table, key = table_name(record.uri), record.key or ()
    new = "`n`" if (record.uri.table or "").lower() != "n" else "`m`"
    names = [identifier(record.columns[index]) for index in written_places(record, generated)]
    guards = [f"{name}=IF({table}.{name}={new}.{name},{table}.{name},NULL)" for name in map(identifier, key)]
    values = [f"{name}={new}.{name}" for name in names if name not in set(map(identifier, key))]
    tail = f" AS {new} ON DUPLICATE KEY UPDATE {','.join(guards + values)}".encode()
    for changes, sql in row_lists(step, generated, size, tail=tail):
        yield Statement(sql, 2 * len(changes), changes)


def _updates(step: Step, generated: frozenset[str], columns: frozenset[str]) -> Iterator[Statement]:
    record = step.record
    # Every column is set: one left out with ON UPDATE CURRENT_TIMESTAMP would set itself.
    written = [(index, identifier(record.columns[index])) for index in written_places(record, generated)]
    table, where = table_name(record.uri), _matcher(record)
    places = compared(record, columns)
    for change in step.changes:
        after, before = _after(change), _before(change)
        values = ",".join([f"{name}={literal(after[index])}" for index, name in written])
        condition = where(before)
        if places:
            condition += f" AND {as_before(record, places, before)}"
        yield Statement(f"UPDATE {table} SET {values} WHERE {condition}".encode(), 1, [change])


def _exact_deletes(step: Step) -> Iterator[Statement]:
    for change in step.changes:
        yield Statement(delete_exact(change).sql, 1, [change])


def _keyed_deletes(step: Step, size: int) -> Iterator[Statement]:
    keys = _by_key(step)
    head = f"DELETE FROM {table_name(step.record.uri)} WHERE {keys.head}".encode()
    size -= len(head) + len(keys.tail)
    between = len(keys.separator)
    rows = keys.rows(step.changes)
    for changes, found in chunks(step.changes, rows, size=size, count=_DELETE_ROWS, between=between):
        matched = 0 if step.operation == "Absent" else len(found)
        yield Statement(head + keys.separator.join(found) + keys.tail.encode(), matched, changes)


class _Keys(NamedTuple):
    """The condition that finds rows by their keys: ``head``, what ``rows`` says of each, separated, and ``tail``."""

    head: str
    rows: Callable[[Sequence[Change]], list[bytes]]
    separator: bytes
    tail: str


def _by_key(step: Step) -> _Keys:
    record, image = step.record, _before(step.changes[0])
    key = _key(record)
    if not all(isinstance(image[index], dict) and image[index].keys() <= _LISTED for index in key):
        where = _matcher(record)
        return _Keys("", lambda changes: [f"({where(_before(each))})".encode() for each in changes], b" OR ", "")

    def rows(changes: Sequence[Change]) -> list[bytes]:
        keys = [[before[index] for index in key] for before in map(_before, changes)]
        return [f"({text})".encode() for text in row_texts(keys, range(len(key)))]

    return _Keys(f"({','.join(identifier(record.columns[index]) for index in key)}) IN (", rows, b",", ")")


def _matcher(record: Record) -> Callable[[list[Value]], str]:
    """The condition that finds a row by its before-image: by key, or one of those that equal it bit for bit."""
    if record.key is not None:
        key = [(index, record.columns[index]) for index in _key(record)]
        return lambda image: " AND ".join([equal(column, image[index]) for index, column in key])
    columns = record.columns
    return lambda image: " AND ".join(map(exact, columns, image)) + " LIMIT 1"


def _key(record: Record) -> list[int]:
    return [record.columns.index(column) for column in record.key or ()]


def _before(change: Change) -> list[Value]:
    if change.row.before is None:
        raise ValueError("a row without a before-image")
    return change.row.before


def _after(change: Change) -> list[Value]:
    if change.row.after is None:
        raise ValueError("a row without an after-image")
    return change.row.after
