"""Writes the steps of a plan as SQL statements for the follower."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cdc.consumer.errors import unreadable
from cdc.consumer.literals.before_images import INCOMPARABLE, as_before, compared, comparison
from cdc.consumer.literals.rounded import NONE_ROUNDED, Rounded
from cdc.consumer.literals.row_sql_mode import STRICT, lax, setting, strict
from cdc.consumer.literals.row_text import row_texts
from cdc.consumer.literals.values import exact, identifier, is_document, key_indexes, literal, matcher, table_name
from cdc.consumer.literals.variables import Variables
from cdc.consumer.plan.copied_numbers import apart, copying_insert, copying_update
from cdc.consumer.plan.inserts import additions, chunks, inserts, written_indexes
from cdc.consumer.plan.packets import PACKET_BYTES, Statement, session_flags, usual_session
from cdc.consumer.plan.planner import Change, Step
from cdc.model.record import Row, Uri
from cdc.model.values import Value

__all__ = ["Columns", "Loadable", "delete_exact", "single", "statements"]

# With longer IN lists the server might exceed range_optimizer_max_mem_size, and would then scan the table.
_DELETE_ROWS = 1000
# The types that may be compared in a list of rows. MySQL compares values of other types differently in such a list, and
# does not find a TIME or an ENUM.
_LISTED = frozenset({"SignedInteger", "UnsignedInteger", "String", "Blob"})

# Maps each operation whose DELETE does not find exactly one row for each key to the number of rows that it finds (None:
# any number). These operations have no before-images to compare.
_FOUND = {"Absent": 0, "Clear": None}

Columns = Callable[[Uri], frozenset[str]]
Loadable = Callable[[Uri], Mapping[str, frozenset[str]]]


def statements(
    steps: Iterable[Step],
    *,
    generated: Columns,
    comparable: Columns | None = None,
    loadable: Loadable = lambda _: {},
    size: int = PACKET_BYTES,
    has_stored: bool = False,
) -> Iterator[Statement]:
    """Yields the statements of a plan in order. A statement has at most ``size`` bytes, unless a single row is larger.

    ``generated`` returns a table's generated columns, which the follower computes itself. ``comparable`` returns the
    columns in which a row must equal its before-image; if it is None, only keys are compared. ``loadable`` maps the
    columns that LOAD DATA may fill to the tags of the values that it may load. ``has_stored`` is true if some BLOBs may
    be StoredBlobs. Raises Unapplicable for a value without a literal.
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
            before, sent, after = _in_parts(step, size) if has_stored else ((), step, ())
            yield from before
            if step.operation == "Add":
                yield from _adds(sent, generated(step.record.uri), size, loadable(step.record.uri))
            else:
                yield from _step(sent, generated(step.record.uri), size, columns)
            yield from after
            if step.verified and step.record.key is not None and step.operation in ("Add", "Upsert", "Update"):
                mode = STRICT
                yield Statement(setting(mode))
                yield from _comparisons(_done(step), step.verified, size)
                yield from comparisons_of_documents(step)
        except ValueError as error:
            raise unreadable(step.record, error) from None
    yield from usual_session(mode, flags)


def _mode(step: Step) -> str:
    """Returns the sql_mode for a step. A deletion stores no values, so it needs no strict mode."""
    if step.modes is None:
        return STRICT
    if step.operation in ("Delete", "Absent", "Clear"):
        return lax(step.modes, adds=False)
    return strict(step.modes, adds=step.operation == "Add")


def _in_parts(step: Step, size: int) -> tuple[Iterable[Statement], Step, Iterable[Statement]]:
    """Prepares a step with stored BLOBs. Returns the statements that send the BLOBs into variables, the step with these
    variables in place of the BLOBs, and the statements that empty the variables.
    """
    if step.operation not in ("Add", "Upsert", "Update"):
        return (), step, ()
    variables = Variables(size)
    changes = [
        Change(record, Row(before, None if after is None else variables.image(after)))
        for record, (before, after) in step.changes
    ]
    sent = replace(step, changes=changes)
    return map(Statement, variables.statements()), sent, map(Statement, variables.emptying())


def _done(step: Step) -> Step:
    """Returns a step that would delete the rows that ``step`` has stored. Its before-images are the rows that must
    exist now.
    """
    return replace(step, changes=[Change(record, Row(row.after, None)) for record, row in step.changes])


def single(change: Change, *, generated: Columns, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> Statement:
    """Writes the statement for a single change. A change that needs two statements must have been split by
    ``apart``."""
    step = Step(change.record.operation, [change], rounded=rounded)
    (statement,) = _step(step, generated(change.record.uri), size=0)
    return statement


def delete_exact(change: Change, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> Statement:
    """Writes the statement that deletes the row with the change's before-image, if that row exists."""
    row, where = _before(change), matcher(change.record, rounded)
    return Statement(f"DELETE FROM {table_name(change.record.uri)} WHERE {where(row)}".encode())


def _step(
    step: Step, generated: frozenset[str], size: int, columns: frozenset[str] = frozenset()
) -> Iterator[Statement]:
    """Yields the statements of a step. The rows must equal their before-images in these ``columns``."""
    if step.operation == "Add":
        yield from _adds(step, generated, size, {})
    elif step.operation == "Update":
        yield from _updates(step, generated, columns)
    elif step.prepared:
        for sql, rows in step.prepared:
            yield Statement(sql, rows, step.changes, scans=sql.startswith(b"DELETE"))
    elif step.record.key is None:
        yield from _exact_deletes(step)
    else:
        # Such a step changes no row twice, so all its rows can be compared before the first of them is changed.
        if step.operation not in _FOUND and not columns.isdisjoint(step.record.columns):
            yield from _comparisons(step, columns, size)
        yield from _upserts(step, generated, size) if step.operation == "Upsert" else _keyed_deletes(step, size)


def _comparisons(step: Step, columns: frozenset[str], size: int) -> Iterator[Statement]:
    """Yields statements that match as many rows as there are changes, provided that each row equals its
    before-image."""
    record, indexes = step.record, compared(step.record, columns)
    how = comparison(record.columns, indexes, [_before(change) for change in step.changes])
    values: dict[int, bytes] = {}
    for change in step.changes:
        try:
            values[id(change)] = how.value(_before(change)).encode()
        except INCOMPARABLE as error:
            if len(step.changes) == 1:
                raise ValueError(f"{type(error).__name__}: {error}") from None
    alike = [change for change in step.changes if id(change) in values]
    for change in step.changes:
        if id(change) not in values:
            # The value of this image has another type than the values of the other images, so a separate statement
            # compares its row.
            yield from _comparisons(replace(step, changes=[change]), columns, size)
    if not alike:
        return
    column, keys = identifier(record.columns[indexes[0]]), _by_key(step)
    # If the server computes values of the table, an UPDATE would compute them again, or fail on the stored values. So
    # SELECT … FOR UPDATE is used.
    verb, end = f"UPDATE {table_name(record.uri)} SET {column}={column}", b")"
    if step.modes is not None:
        verb, end = f"SELECT 1 FROM {table_name(record.uri)}", b") FOR UPDATE"
    head = f"{verb} WHERE ({keys.head}".encode()
    middle = f"{keys.tail}) AND {how.expression} IN (".encode()
    between = len(keys.separator) + 1 + max(map(len, values.values()))
    size -= len(head) + len(middle) + len(end) + between  # leaves room for the text of the last row
    for changes, found in chunks(alike, keys.rows(alike), size=size, count=_DELETE_ROWS, between=between):
        among = b",".join([values[id(change)] for change in changes])
        yield Statement(head + keys.separator.join(found) + middle + among + end, len(changes), changes)


def _adds(
    step: Step, generated: frozenset[str], size: int, loadable: Mapping[str, frozenset[str]]
) -> Iterator[Statement]:
    if step.rounded.keys().isdisjoint(step.record.columns):
        yield from additions(step, generated, size, loadable)
        return
    written = written_indexes(step.record, generated)
    for change in step.changes:
        _after(change)
        yield Statement(copying_insert(change, written, step.rounded), 1, [change])


def _upserts(step: Step, generated: frozenset[str], size: int) -> Iterator[Statement]:
    """Updates many rows in one statement (manual, "INSERT ... ON DUPLICATE KEY UPDATE Statement").

    The server counts an updated row twice, so any other count shows that a row did not exist. If the server finds a row
    with the same secondary unique key but another primary key, the statement sets the row's primary key to NULL, which
    the server refuses.
    """
    record = step.record
    table, key = table_name(record.uri), frozenset(record.key or ())
    new = "`n`" if (record.uri.table or "").lower() != "n" else "`m`"
    changed = []
    for index in written_indexes(record, generated):
        name, sent = _named(step, index)
        old = sent.format(f"{table}.{name}")
        kept = f"IF({table}.{name}={new}.{name},{old},NULL)"
        changed.append(f"{name}={kept if record.columns[index] in key else sent.format(f'{new}.{name}')}")
    changed.sort(key=lambda text: "=IF(" not in text)  # the assignments that check the key come first
    tail = f" AS {new} ON DUPLICATE KEY UPDATE {','.join(changed)}".encode()
    for changes, sql in inserts(step, generated, size, tail=tail):
        yield Statement(sql, 2 * len(changes), changes)


def _named(step: Step, index: int) -> tuple[str, str]:
    """Returns the name of a column, and a format for its value, in which the server stores exactly this value.

    The server assigns an ENUM or SET from its text. The record contains a number if the text would be ambiguous,
    because a SET has the member '' or two members are equal.
    """
    name = identifier(step.record.columns[index])
    values = (_after(change)[index] for change in step.changes)
    for value in values:
        if isinstance(value, dict):
            content = value.get("Enum", value.get("Set"))
            if content is None:
                break
            if isinstance(content, int):
                return name, "CAST({} AS UNSIGNED)"
    return name, "{}"


def _updates(step: Step, generated: frozenset[str], columns: frozenset[str]) -> Iterator[Statement]:
    record = step.record
    # All columns are set. Otherwise the server would change a column with ON UPDATE CURRENT_TIMESTAMP.
    indexes = written_indexes(record, generated)
    written = [(index, identifier(record.columns[index])) for index in indexes]
    table, where = table_name(record.uri), matcher(record, step.rounded)
    looked_at = compared(record, columns)
    copies = not step.rounded.keys().isdisjoint(record.columns)
    for change in step.changes:
        after, before = _after(change), _before(change)
        if copies and record.key is None:
            for part in apart(change, step.rounded):
                yield single(part, generated=lambda _: generated, rounded=step.rounded)
            continue
        condition = where(before)
        if looked_at:
            condition += f" AND {as_before(record, looked_at, before)}"
        if copies:
            yield Statement(copying_update(change, indexes, step.rounded, where=condition), 1, [change])
            continue
        values = ",".join([f"{name}={literal(after[index])}" for index, name in written])
        yield Statement(
            f"UPDATE {table} SET {values} WHERE {condition}".encode(), 1, [change], scans=record.key is None
        )


def _exact_deletes(step: Step) -> Iterator[Statement]:
    for change in step.changes:
        yield Statement(delete_exact(change).sql, 1, [change], scans=True)


def _keyed_deletes(step: Step, size: int) -> Iterator[Statement]:
    keys = _by_key(step)
    head = f"DELETE FROM {table_name(step.record.uri)} WHERE {keys.head}".encode()
    size -= len(head) + len(keys.tail)
    between = len(keys.separator)
    rows = keys.rows(step.changes)
    for changes, found in chunks(step.changes, rows, size=size, count=_DELETE_ROWS, between=between):
        matched = _FOUND.get(step.operation, len(found))
        yield Statement(head + keys.separator.join(found) + keys.tail.encode(), matched, changes)


class _Keys(NamedTuple):
    """A condition that finds rows by their keys. It consists of ``head``, then the texts that ``rows`` returns, joined
    by ``separator``, then ``tail``.
    """

    head: str
    rows: Callable[[Sequence[Change]], list[bytes]]
    separator: bytes
    tail: str


def _by_key(step: Step) -> _Keys:
    record, image = step.record, _before(step.changes[0])
    key = key_indexes(record)
    if not all(isinstance(image[index], dict) and image[index].keys() <= _LISTED for index in key):
        where = matcher(record, step.rounded)
        return _Keys("", lambda changes: [f"({where(_before(each))})".encode() for each in changes], b" OR ", "")

    def rows(changes: Sequence[Change]) -> list[bytes]:
        keys = [[before[index] for index in key] for before in map(_before, changes)]
        return [f"({text})".encode() for text in row_texts(keys, range(len(key)))]

    return _Keys(f"({','.join(identifier(record.columns[index]) for index in key)}) IN (", rows, b",", ")")


def _before(change: Change) -> list[Value]:
    if change.row.before is None:
        raise ValueError("a row without a before-image")
    return change.row.before


def _after(change: Change) -> list[Value]:
    if change.row.after is None:
        raise ValueError("a row without an after-image")
    return change.row.after


def comparisons_of_documents(step: Step) -> Iterator[Statement]:
    """Yields a statement for each row that the step has stored. It finds the row only if the row's verified JSON
    documents equal the leader's.

    Each row needs its own statement, because a comparison of many rows shows only that some row differs. Raises
    ValueError for a value without a literal.
    """
    record, where = step.record, matcher(step.record, step.rounded)
    verified = compared(record, step.verified)
    for change in step.changes:
        image = change.row.after or []
        same = [exact(record.columns[index], image[index]) for index in verified if is_document(image[index])]
        if same:
            found = f"{where(image)} AND {' AND '.join(same)}"
            yield Statement(f"SELECT 1 FROM {table_name(record.uri)} WHERE {found} FOR UPDATE".encode(), 1, [change])
