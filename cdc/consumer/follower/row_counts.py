"""Queries the follower's rows: counts the equal rows of a table without a key, and compares the rows in a range with a
chunk.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from cdc.consumer.errors import Refused, Unapplicable, unreadable
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.before_images import INCOMPARABLE
from cdc.consumer.literals.image_keys import ImageKeys, document_literals, document_text, image_keys
from cdc.consumer.literals.values import identifier, quoted, table_name
from cdc.consumer.plan.chunk_plan import ChunkPlan, Found, check_chunk, chunk_plan, in_range
from cdc.consumer.plan.net_effects import Image, row_identity
from cdc.consumer.plan.planner import Change, Step
from cdc.consumer.plan.rendered_rows import RenderedRows
from cdc.consumer.plan.statements import Removal, removals, statements
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.names import Uri
from cdc.model.record import Record, Row
from cdc.service.logs import event
from cdc.sql.key_range import misplaced_rows

__all__ = ["MISPLACED", "RangeRows", "RowCounts", "misplaced"]

_LOG = logging.getLogger("cdc.consumer")
_DOCUMENTS = 500  # the maximum number of documents in one query, since the server limits the number of subqueries


class RowCounts:
    """Counts on the follower the rows that the ``Remove`` steps of a plan (deletions from tables without a key) will
    delete, and replaces these steps by exact ones. Nothing else may change the tables until they are executed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def prepared(self, steps: Sequence[Step], *, schema: Callable[[Uri], TableSchema], size: int) -> list[Step]:
        """Returns the plan with each ``Remove`` step replaced by steps whose statements have about ``size`` bytes.
        Raises Interrupted.

        If the rows of a step can't be counted on the follower, the step stays as it is, and its rows are deleted one by
        one.
        """
        found: list[Step] = []
        for step in steps:
            if step.operation != "Remove":
                found.append(step)
                continue
            try:
                found += list(self._prepared(step, schema(step.record.uri), size))
            except (*INCOMPARABLE, Refused) as error:
                _one_by_one(step, reason=error)
                found.append(step)
        return found

    def _prepared(self, step: Step, schema: TableSchema, size: int) -> Iterator[Step]:
        documents = self.texts([change.row.before or [] for change in step.changes], size=size)
        for removal in removals(step, schema, documents, size=size):
            # The leader has deleted the first rows that it found. Normally both servers store the rows in the same
            # order, so the first rows that this query finds are the rows to delete.
            if removal.ordered and removal.is_all(self._keys(removal)):
                yield from removal.of_first()
                continue
            counted = self._rows(removal.count())
            for made in removal.of_counted({key.hex(): int(count) for key, count in counted}):
                if made.operation == "Delete":
                    _one_by_one(made, reason="there are fewer of them than to delete, or columns have other types")
                yield made

    def _keys(self, removal: Removal) -> list[str]:
        return [key.hex() for (key,) in self._rows(removal.first())]

    def texts(self, images: Sequence[Sequence[object]], *, size: int) -> dict[str, str]:
        """Maps the literal of each JSON document in the images to the text that the server returns for the document."""
        texts: dict[str, str] = {}
        literals = document_literals(images)
        while literals:
            part: list[str] = []
            total = 0
            while literals and len(part) < _DOCUMENTS and (not part or total + len(literals[-1].encode()) < size):
                part.append(literals.pop())
                total += len(part[-1].encode()) + 30
            union = " UNION ALL ".join(f"SELECT {number} AS n,{text} AS d" for number, text in enumerate(part))
            for number, text in self._rows(f"SELECT n,{document_text('d')} FROM ({union}) x"):
                if text is not None:
                    texts[part[number]] = text
        return texts

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        if len(sql.encode()) >= self._session.max_packet:
            # The server would close the connection after a longer query.
            raise ValueError("an image is too large for a query")
        return self._session.rows(sql)


def _one_by_one(step: Step, *, reason: object) -> None:
    event(
        _LOG, "rows without a key are searched one by one",
        uri=step.record.uri, sequence=step.record.sequence, rows=len(step.changes), reason=reason,
    )  # fmt: skip


# Compares the follower's rows with a chunk of a table, and plans the statements that make the rows equal to the chunk.

MISPLACED = 1863  # the server's error if it must delete or update a row that lies in a wrong partition

# If the chunk's range contains more than this many times as many rows on the follower as in the chunk, only those rows
# are read that equal a row of the chunk.
_MOST_OTHERS = 3
# If the chunk has at least this many times as many rows as its range on the follower, these are written again even if
# they are equal: a row costs less to write than to compare. So it is where the leader changes rows while their table is
# copied, because such a change inserts its row before the chunk with the row comes.
_FEW = 4
_INTEGERS = ("SignedInteger", "UnsignedInteger")


class RangeRows:
    """Plans how chunks are applied, based on the follower's rows. Nothing else may change the table until a plan is
    executed.
    """

    def __init__(self, session: Session, counts: RowCounts) -> None:
        self._session = session
        self._counts = counts
        self._placed: dict[Uri, TableSchema] = {}

    def plan(self, chunk: Record, schema: TableSchema, *, size: int) -> ChunkPlan:
        """Plans how a chunk is applied, with statements of about ``size`` bytes. Raises Unapplicable, Interrupted."""
        try:
            check_chunk(chunk, schema)
            self._require_placed(chunk, schema)
            return chunk_plan(chunk, schema, self._found(chunk, schema, size))
        except ValueError as error:
            raise unreadable(chunk, error) from None

    def _require_placed(self, chunk: Record, schema: TableSchema) -> None:
        """Raises Unapplicable if a row lies in a wrong partition, so that queries for the chunk's range would not find
        it, or would find it and not delete it."""
        assert chunk.range is not None
        begins = chunk.range.after is None and chunk.range.piece is None
        if not begins or self._placed.get(chunk.uri) is schema:
            return
        uri, key = chunk.uri, [*map(identifier, chunk.key or ())]
        # Without a forced index the server may read all rows of the table for each row.
        index = f"FORCE INDEX ({identifier(name)})" if (name := schema.index_of(chunk.key or ())) else ""
        names = f"TABLE_SCHEMA={quoted(uri.database)} AND TABLE_NAME={quoted(uri.table or '')}"
        for (partition,) in self._session.rows(
            "SELECT COALESCE(SUBPARTITION_NAME,PARTITION_NAME) FROM information_schema.PARTITIONS "
            f"WHERE {names} AND PARTITION_NAME IS NOT NULL"
        ):
            if self._session.rows(misplaced_rows(table_name(uri), identifier(partition), key, index=index)):
                raise misplaced(chunk, partition)
        self._placed[uri] = schema

    def lacks(self, chunk: Record, schema: TableSchema, *, size: int) -> int:
        """Returns the number of rows of the chunk whose exact keys do not exist on the follower; called after the rows
        were written."""
        if not len(chunk.rows):
            return 0
        found = self._compared(chunk, schema, 0, size)
        return len(chunk.rows) - len(found.equal) - len(found.others)

    def _found(self, chunk: Record, schema: TableSchema, size: int) -> Found:
        assert chunk.range is not None
        if chunk.range.piece:
            return Found()
        ((count,),) = self._rows(f"SELECT COUNT(*) FROM {table_name(chunk.uri)} WHERE {in_range(chunk)}")
        if not count or not len(chunk.rows) or chunk.range.piece is not None:
            return Found(int(count))
        few = _FEW * count <= len(chunk.rows) and chunk.range.keys is None
        try:
            return (self._counted if few else self._compared)(chunk, schema, int(count), size)
        except (*INCOMPARABLE, Refused):
            return Found(int(count))  # all rows are written again, without a comparison

    def _counted(self, chunk: Record, schema: TableSchema, count: int, size: int) -> Found:
        """Compares the few rows that the follower has in the range with the chunk's rows of the same keys, only to
        count them: all rows of the chunk are written.
        """
        rows = chunk.rows.parsed() if isinstance(chunk.rows, RenderedRows) else chunk.rows
        images = [row.after or [] for row in rows]
        where = f"FROM {table_name(chunk.uri)} WHERE {in_range(chunk)}"
        same = self._known_keys(chunk, images, where)
        if not same:
            return Found(count, few=True)
        hashes, values = self._hashes(chunk, schema, [images[number] for number in same], size)
        stored = {value for (value,) in self._rows(f"SELECT {_shown(hashes)} {where}")}
        equal = frozenset(number for number, value in zip(same, values, strict=True) if value in stored)
        return Found(count, equal, frozenset(same) - equal, few=True)

    def _known_keys(self, chunk: Record, images: Sequence[Image], where: str) -> list[int]:
        """Returns the indexes of the ``images`` whose keys the follower has ``where`` the chunk's range is."""
        places = [chunk.columns.index(column) for column in chunk.key or ()]
        if (numbers := _numbers(images, places)) is not None:
            there = set(self._rows(f"SELECT {','.join(map(identifier, chunk.key or ()))} {where}"))
            return [index for index, key in enumerate(numbers) if key in there]
        known = [[image[place] for place in places] for image in images]
        keys = image_keys(chunk.key or (), known, {})
        shown = {key for (key,) in self._rows(f"SELECT {_shown(keys)} {where}")}
        return [index for index, key in enumerate(map(keys.value, known)) if key in shown]

    def _hashes(
        self, chunk: Record, schema: TableSchema, images: Sequence[Image], size: int
    ) -> tuple[ImageKeys, list[str]]:
        """Returns the artificial keys of rows of the chunk with these ``images``, and how the follower computes them
        for its rows.
        """
        # Virtual columns are not compared, since they have no stored value that could differ.
        compared = [index for index, name in enumerate(chunk.columns) if name in schema.columns | schema.stored]
        names, parts = [chunk.columns[index] for index in compared], [[image[i] for i in compared] for image in images]
        rows = image_keys(names, parts, self._counts.texts(parts, size=size))
        return rows, [*map(rows.value, parts)]

    def _compared(self, chunk: Record, schema: TableSchema, count: int, size: int) -> Found:
        images = [row.after or [] for row in chunk.rows]
        if len(set(map(row_identity(chunk), images))) < len(images):
            raise ValueError("two rows with the same key")
        rows, values = self._hashes(chunk, schema, images, size)
        numbers = {value: number for number, value in enumerate(values)}
        where = f"FROM {table_name(chunk.uri)} WHERE {in_range(chunk)}"
        if count > _MOST_OTHERS * len(images):
            where += f" AND {_among(rows.expression, values)}"
        inside = frozenset(
            numbers[value] for (value,) in self._rows(f"SELECT {_shown(rows)} {where}") if value in numbers
        )
        lacking = [number for number in range(len(images)) if number not in inside]
        found = Found(count, inside, keys=values, expression=rows.expression)
        return self._with_others(chunk, {number: images[number] for number in lacking}, found, rows, size)

    def _with_others(self, chunk: Record, lacking: dict[int, Image], found: Found, rows: ImageKeys, size: int) -> Found:
        """Adds to ``found`` the rows of the chunk whose keys exist on the follower with other values, or outside of the
        range.
        """
        if not lacking:
            return found
        key = [chunk.columns.index(column) for column in chunk.key or ()]
        known = {number: [image[index] for index in key] for number, image in lacking.items()}
        keys = image_keys(chunk.key or (), [*known.values()], {})
        numbers = {keys.value(each): number for number, each in known.items()}
        what = f"SELECT {_shown(keys)},{_shown(rows)} "
        where = f"FROM {table_name(chunk.uri)} WHERE {in_range(chunk)} AND {_among(keys.expression, numbers)}"
        others = {numbers[each] for each, _ in self._rows(what + where)}
        equal: set[int] = set()
        outside: set[int] = set()
        for sql in _by_keys(chunk, [image for number, image in lacking.items() if number not in others], size):
            for each, value in self._rows(what + sql):
                if (number := numbers.get(each)) is not None:
                    outside.add(number)
                    (equal if value == found.keys[number] else others).add(number)
        return replace(
            found, equal=found.equal | equal, others=frozenset(others), outside=frozenset(outside)
        )  # fmt: skip

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        if len(sql.encode()) >= self._session.max_packet:
            raise ValueError("the keys are too long for a query")
        return self._session.rows(sql)


def _numbers(images: Sequence[Image], places: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Returns the values of the key in each image; None if some of them are no integers. Hashes of the keys, which all
    types have, cost several times as much.
    """
    columns = []
    for place in places:
        values: list[Any] = [image[place] for image in images]
        tag = next(iter(values[0]), "") if values and isinstance(values[0], dict) else ""
        if tag not in _INTEGERS:
            return None
        try:
            columns.append([value[tag] for value in values])
        except (KeyError, TypeError):
            return None
    return list(zip(*columns, strict=True))


def misplaced(chunk: Record, partition: str = "") -> Unapplicable:
    """Returns the error for rows of the follower that lie in a wrong partition, so that a copy can't find or delete
    them. ``partition`` is empty if it is unknown.
    """
    uri, which = chunk.uri, f"partition {partition}" if partition else "a partition"
    return Unapplicable(
        f"{which} of the follower's table {uri.database}.{uri.table} has rows that belong in another partition, so "
        "that a copy does not find them",
        code="CDC-COPY-MISPLACED-ROWS",
        record=chunk,
        hint=f"ALTER TABLE {table_name(uri)} REPAIR PARTITION ALL on the follower, and start again",
    )


def _shown(keys: ImageKeys) -> str:
    return f"LOWER(HEX({keys.expression}))"


def _among(expression: str, values: Iterable[str]) -> str:
    listed = ",".join([f"x'{value}'" for value in values])
    return f"{expression} IN ({listed})"


def _by_keys(chunk: Record, images: Sequence[Image], size: int) -> Iterator[str]:
    """Yields the ends of queries, from FROM on, for the follower's rows that have the same keys as these rows of the
    chunk.
    """
    if not images:
        return
    changes = [Change(chunk, Row(image, None)) for image in images]
    for statement in statements([Step("Clear", changes)], generated=lambda _: frozenset(), size=size):
        yield statement.sql.decode().removeprefix("DELETE ")
