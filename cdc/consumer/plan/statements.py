"""Writes the steps of a plan as SQL statements, and plans how counted rows of tables without a key are deleted."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

from cdc.consumer.errors import unreadable
from cdc.consumer.literals.before_images import INCOMPARABLE, as_before, compared, comparison
from cdc.consumer.literals.image_keys import HEX_DIGITS, ImageKeys, image_keys, narrowing
from cdc.consumer.literals.own_variables import STRICT, lax, setting, strict
from cdc.consumer.literals.row_text import row_texts
from cdc.consumer.literals.scalars import Variables
from cdc.consumer.literals.values import (
    DEFAULT,
    NONE_ROUNDED,
    Rounded,
    exact,
    identifier,
    is_document,
    key_indexes,
    literal,
    matcher,
    number_table,
    table_name,
    to_copy,
)
from cdc.consumer.plan.inserts import additions, chunks, inserts, written_indexes
from cdc.consumer.plan.packets import PACKET_BYTES, Statement, session_flags, usual_session
from cdc.consumer.plan.planner import Change, Step
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Record, Row, Uri
from cdc.model.values import Value

__all__ = [
    "Columns",
    "Loadable",
    "Removal",
    "apart",
    "copying_insert",
    "copying_update",
    "delete_exact",
    "removals",
    "single",
    "statements",
]

# Writes rows of tables with columns FLOAT(M,D) or DOUBLE(M,D). The server would round a literal to D digits, but it
# does not round a number that is copied from another column. So the SQL copies the numbers from a derived table.


def apart(change: Change, rounded: Mapping[str, Rounded]) -> list[Change]:
    """Splits the update of a row without a key into a deletion and an insertion, if the table has columns FLOAT(M,D) or
    DOUBLE(M,D) (``rounded``); returns any other change unchanged.

    The numbers of such columns are copied from a derived table, and an UPDATE with a derived table can't be limited to
    one of several equal rows.
    """
    record, (before, after) = change
    if record.key is not None or record.operation != "Update" or rounded.keys().isdisjoint(record.columns):
        return [change]
    gone, come = replace(record, operation="Delete"), replace(record, operation="Add")
    return [Change(gone, Row(before, None)), Change(come, Row(None, after))]


def copying_insert(change: Change, written: Sequence[int], rounded: Mapping[str, Rounded]) -> bytes:
    """Returns the INSERT of an after-image, in the columns ``written``. Raises ValueError for an invalid value."""
    record, image = change.record, change.row.after or []
    # DEFAULT is left out, since a query can't select it.
    written = [index for index in written if image[index] is not DEFAULT]
    texts, source = _copied(record, image, written, rounded)
    names = ",".join(identifier(record.columns[index]) for index in written)
    return f"INSERT INTO {table_name(record.uri)} ({names}) SELECT {','.join(texts)} FROM {source}".encode()


def copying_update(change: Change, written: Sequence[int], rounded: Mapping[str, Rounded], *, where: str) -> bytes:
    """Returns the UPDATE that changes a row with a key to its after-image, in the columns ``written``."""
    record = change.record
    texts, source = _copied(record, change.row.after or [], written, rounded)
    table = table_name(record.uri)
    values = ",".join(
        f"{table}.{identifier(record.columns[index])}={text}" for index, text in zip(written, texts, strict=True)
    )
    return f"UPDATE {table} JOIN {source} SET {values} WHERE {where}".encode()


def _copied(
    record: Record, image: list[Value], written: Sequence[int], rounded: Mapping[str, Rounded]
) -> tuple[list[str], str]:
    """Returns the SQL expressions of an image's values, and a derived table. Some of the expressions take numbers from
    the derived table.
    """
    alias = "n" if (record.uri.table or "").lower() != "n" else "m"
    # In conditions, column names are not qualified. So the names of the derived table's columns must differ from the
    # table's: no column of the table may begin with the prefix.
    prefix = next(
        text for text in (f"c{number}_" for number in count())
        if not any(name.lower().startswith(text) for name in record.columns)
    )  # fmt: skip
    numbers: list[tuple[Rounded, str]] = []
    texts: list[str] = []
    for index in written:
        column = rounded.get(record.columns[index])
        number = to_copy(image[index]) if column is not None else None
        if column is None or number is None:
            texts.append(literal(image[index]))
        else:
            texts.append(f"{alias}.{prefix}{len(numbers)}")
            numbers.append((column, number))
    source = number_table(numbers, prefix=prefix) if numbers else "(SELECT 1)"
    return texts, f"{source} AS {alias}"


# Plans how rows without a key are deleted with few statements, after they were counted on the follower.
#
# If all rows with an image must be deleted, one statement deletes them, together with the rows of other such images. If
# only some of the rows must be deleted, either all rows are deleted and the surplus is inserted again, or a separate
# statement deletes the required number of rows.
#
# The artificial key of a row is a hash of all its values (module image_keys). A sum over the artificial keys of the
# deleted rows proves that a statement for many images has deleted the right rows. The number of deleted rows alone
# would not show that another client has meanwhile removed some rows and added others.

# If more than _MOST_ALONE images have surplus rows, all rows with these images are deleted and the surplus is inserted
# again, provided that at most _MOST_REWRITTEN rows are inserted for each row to delete. Otherwise each of these images
# has its own statement, which may scan the table.
_MOST_ALONE, _MOST_REWRITTEN = 4, 100
# the number of digits of a key in the sum; the sum stays below 2 ** 64, since a statement can't delete 2 ** 24 rows
_SUMMED = 10
_LONGEST_ITEM = 72  # bytes; the longest value in a list


@dataclass(frozen=True, slots=True)
class Removal:
    """A group of before-images whose rows must be deleted from a table without a key.

    ``gone`` maps the artificial key of each image, which is a hash of all its values, to the changes with that image.
    ``narrowed`` are conditions on single columns that all these images fulfil. ``ordered`` is true if the table has no
    index, so that the server finds rows in the same order in each statement.
    """

    step: Step
    keys: ImageKeys
    gone: Mapping[str, Sequence[Change]]
    indexed: frozenset[str]
    narrowed: Mapping[str, str]
    ordered: bool

    @property
    def rows(self) -> int:
        """The number of rows to delete."""
        return sum(map(len, self.gone.values()))

    def first(self) -> str:
        """Returns the query for the follower's first rows with these images, limited to the number of rows to delete.
        The query returns the artificial key of each row.
        """
        return f"SELECT {self.keys.expression} {self._from(self.gone)} LIMIT {self.rows}"

    def count(self) -> str:
        """Returns the query that counts the follower's rows with each image."""
        # Without NO_MERGE the server would refuse the JSON_TABLE in a GROUP BY.
        found = f"SELECT {self.keys.expression} AS k {self._from(self.gone)}"
        return f"SELECT /*+ NO_MERGE(x) */ k,COUNT(*) FROM ({found}) x GROUP BY k"

    def is_all(self, found: Iterable[str]) -> bool:
        """Whether ``found``, the result of the query ``first``, contains exactly the keys of the rows to delete, each
        as often as required.
        """
        counts: dict[str, int] = {}
        for key in found:
            counts[key] = counts.get(key, 0) + 1
        return counts == {key: len(changes) for key, changes in self.gone.items()}

    def of_first(self) -> Iterator[Step]:
        """Yields the steps for the case that the query ``first`` has found exactly the rows to delete."""
        yield self._whole({key: len(changes) for key, changes in self.gone.items()}, limit=f" LIMIT {self.rows}")

    def of_counted(self, present: Mapping[str, int]) -> Iterator[Step]:
        """Yields the steps that delete the rows after they were counted; ``present`` maps the key of each image to the
        number of the follower's rows with this image.

        If too few rows with an image were counted, a separate statement searches for its rows, because a column of
        another type may contain an equal value.
        """
        few = [key for key, changes in self.gone.items() if present.get(key, 0) < len(changes)]
        many = [key for key, changes in self.gone.items() if present.get(key, 0) > len(changes)]
        alone = many
        if len(many) > _MOST_ALONE:
            alone = [key for key in many if present[key] > _MOST_REWRITTEN * len(self.gone[key])]
        apart = {*few, *alone}
        counts = {key: present[key] for key in self.gone if key not in apart}
        if counts:
            yield self._whole(counts)
        for key in alone:
            yield self._part(self.gone[key], key)
        again = [
            Change(self.gone[key][0].record, Row(None, self.gone[key][0].row.before))
            for key, count in counts.items()
            for _ in range(count - len(self.gone[key]))
        ]
        if again:
            yield replace(self.step, operation="Add", changes=again)
        if few:
            yield replace(self.step, operation="Delete", changes=[each for key in few for each in self.gone[key]])

    def _part(self, changes: Sequence[Change], key: str) -> Step:
        """Plans a DELETE of ``len(changes)`` rows with the image that has this ``key``; the follower has more such
        rows."""
        narrowed = narrowing(self.step.record.columns, [_image(changes[0])], indexed=self.indexed)
        sql = f"DELETE {replace(self, narrowed=narrowed)._from([key])} LIMIT {len(changes)}"
        return replace(self.step, changes=changes, prepared=((sql.encode(), len(changes)),))

    def _whole(self, counts: Mapping[str, int], *, limit: str = "") -> Step:
        """Plans a DELETE of all rows with these images; ``counts`` maps the key of each image to the number of its
        rows."""
        gone = {key: self.gone[key] for key in counts}
        key = self.keys.expression
        total = sum(int(each[:_SUMMED], 16) * count for each, count in counts.items())
        # The sum includes only deleted rows: it is computed in the last condition, and only for rows that fulfil that
        # condition.
        add = f"@cdc_sum:=@cdc_sum+CAST(CONV(LEFT(HEX({key}),{_SUMMED}),16,10) AS UNSIGNED)"
        where = f"CASE WHEN {_among(key, gone)} THEN ({add}) IS NOT NULL ELSE FALSE END"
        statements = (
            ("SET @cdc_sum=0", None),
            (f"DELETE {self._from(gone, where)}{limit}", sum(counts.values())),
            (f"SELECT 1 FROM DUAL WHERE @cdc_sum={total}", 1),
        )
        changes = [change for changes in gone.values() for change in changes]
        prepared = tuple((sql.encode(), rows) for sql, rows in statements)
        return replace(self.step, changes=changes, prepared=prepared)

    def _from(self, gone: Iterable[str], where: str = "") -> str:
        conditions = [*self.narrowed.values(), where or _among(self.keys.expression, gone)]
        return f"FROM {table_name(self.step.record.uri)} WHERE {' AND '.join(conditions)}"


def removals(step: Step, schema: TableSchema, documents: Mapping[str, str], *, size: int) -> Iterator[Removal]:
    """Divides the before-images of a step Remove, which deletes rows of a table without a key, into parts whose
    statements have at most about ``size`` bytes.

    ``documents`` maps the literal of each JSON document to the text that the server returns for it. Raises one of
    ``INCOMPARABLE`` for an image from which no artificial key (a hash of all values) can be computed.
    """
    record = step.record
    images = [_image(change) for change in step.changes]
    keys = image_keys(record.columns, images, documents)
    gone: dict[str, list[Change]] = {}
    for change, image in zip(step.changes, images, strict=True):
        gone.setdefault(keys.value(image), []).append(change)
    narrowed = narrowing(record.columns, images, indexed=schema.indexed)
    most = max((size - 4 * len(keys.expression)) // (HEX_DIGITS + 4 + _LONGEST_ITEM * len(narrowed)), 1)
    items = list(gone.items())
    for first in range(0, len(items), most):
        part = dict(items[first : first + most])
        if len(items) > most:
            some = [_image(changes[0]) for changes in part.values()]
            narrowed = narrowing(record.columns, some, indexed=schema.indexed)
        yield Removal(step, keys, part, schema.indexed, narrowed, ordered=not schema.indexed)


def _image(change: Change) -> list[Value]:
    if change.row.before is None:
        raise ValueError("a row without a before-image")
    return change.row.before


def _among(expression: str, keys: Iterable[str]) -> str:
    listed = ",".join([f"x'{key}'" for key in keys])
    return f"{expression} IN ({listed})"


# With longer IN lists the server might exceed range_optimizer_max_mem_size, and would then scan the table.
_DELETE_ROWS = 1000
# The types that may be compared in a list of rows. MySQL compares values of other types differently in such a list, and
# does not find a TIME or an ENUM.
_LISTED = frozenset({"SignedInteger", "UnsignedInteger", "String", "Blob"})

# The DELETE of most operations must find exactly one row for each key. These are the exceptions, each with the number
# of rows that it must find (None: any number). They have no before-images to compare.
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
    columns in which a row must equal its before-image; if it is None, only keys are compared. ``loadable`` returns the
    columns that LOAD DATA may fill, each with the types of the values that it may load. ``has_stored`` is true if large
    BLOBs may be in a file instead of in memory (``StoredBlob``). Raises Unapplicable for a value without a literal.
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
                yield from _verifications(step, size)
        except ValueError as error:
            raise unreadable(step.record, error) from None
    yield from usual_session(mode, flags)


def _verifications(step: Step, size: int) -> Iterator[Statement]:
    """Yields the statements that compare, in strict mode, the values that the server has computed in the step's rows
    with the leader's values.
    """
    yield Statement(setting(STRICT))
    yield from _comparisons(_done(step), step.verified, size)
    yield from comparisons_of_documents(step)


def _mode(step: Step) -> str:
    """Returns the sql_mode for a step. A deletion stores no values, so it needs no strict mode."""
    if step.modes is None:
        return STRICT
    if step.operation in ("Delete", "Absent", "Clear"):
        return lax(step.modes, adds=False)
    return strict(step.modes, adds=step.operation == "Add")


def _in_parts(step: Step, size: int) -> tuple[Iterable[Statement], Step, Iterable[Statement]]:
    """Replaces the large BLOBs of a step, which are in a file (``StoredBlob``), by user variables, so that no statement
    contains a whole BLOB. Returns the statements that set the variables, the step with the variables in place of the
    BLOBs, and the statements that empty the variables.
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
    """Returns a step whose before-images are the rows that ``step`` has stored, so that the follower's rows can be
    compared with them. The result, a deletion of these rows, is never executed.
    """
    return replace(step, changes=[Change(record, Row(row.after, None)) for record, row in step.changes])


def single(change: Change, *, generated: Columns, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> Statement:
    """Returns the statement for a single change; ``apart`` must have split a change that needs two statements."""
    step = Step(change.record.operation, [change], rounded=rounded)
    (statement,) = _step(step, generated(change.record.uri), size=0)
    return statement


def delete_exact(change: Change, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> Statement:
    """Returns the statement that deletes the row with the change's before-image, if that row exists."""
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
    """Yields statements that compare the rows with their before-images. Together they match one row for each change
    only if all rows are equal."""
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
    """Returns the quoted name of a column, and a format for the literals of its values: a CAST if the step's values of
    an ENUM or SET are numbers, otherwise the literal alone.

    A record contains the text of an ENUM or SET, or its number if the text would be ambiguous, because a SET has the
    member '' or two members are equal.
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
    # All columns are set, since the server would change a column with ON UPDATE CURRENT_TIMESTAMP that is not set.
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
