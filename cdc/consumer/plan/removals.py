"""Plans how rows without a key are deleted with few statements, after they were counted on the follower.

If all rows with an image must be deleted, one statement deletes them, together with the rows of other such images. If
only some of the rows must be deleted, either all rows are deleted and the surplus is inserted again, or a separate
statement deletes the required number of rows.

A sum over the artificial keys of the deleted rows proves that a statement for many images has deleted the right rows.
Their number alone would not show that another client has meanwhile removed some rows and added others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc.consumer.literals.image_keys import HEX_DIGITS, ImageKeys, image_keys, narrowing
from cdc.consumer.literals.values import table_name
from cdc.consumer.plan.planner import Change, Step
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Row
from cdc.model.values import Value

__all__ = ["Removal", "removals"]

# If more than _MOST_ALONE images have surplus rows, all rows with these images are deleted and the surplus is inserted
# again, provided that at most _MOST_REWRITTEN rows are inserted for each row to delete. Otherwise each of these images
# has its own statement, which may scan the table.
_MOST_ALONE, _MOST_REWRITTEN = 4, 100
# the number of digits of a key in the sum; the sum stays below 2 ** 64, since a statement can't delete 2 ** 24 rows
_SUMMED = 10
_LONGEST_ITEM = 72  # bytes; the longest value in a list


@dataclass(frozen=True, slots=True)
class Removal:
    """A group of images whose rows must be deleted; ``gone`` maps the artificial key of each image to its changes.

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
        """Writes a query that finds as many of the follower's rows with these images as must be deleted. The query
        returns the artificial key of each row.
        """
        return f"SELECT {self.keys.expression} {self._from(self.gone)} LIMIT {self.rows}"

    def count(self) -> str:
        """Writes the query that counts the follower's rows with each image."""
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
        """Yields the steps; ``present`` maps the key of each image to the number of the follower's rows with this
        image.

        If too few rows with an image are found, a separate statement searches for them, because a column of another
        type may contain an equal value.
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
    """Divides the images of a step Remove into parts whose statements have at most about ``size`` bytes.

    ``documents`` is explained in ``image_keys``. Raises one of ``INCOMPARABLE`` for an image that has no key.
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
