"""Describes a table of the follower for the planner: columns, unique keys and foreign keys. Records do not contain this
description.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cdc.consumer.literals.values import Rounded

__all__ = ["KeyPart", "TableSchema"]


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A part of a unique key. ``column`` is None for an expression. ``length`` is the length of the prefix in
    characters, None for the whole column.
    """

    column: str | None
    length: int | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as it is on the follower.

    ``columns`` are the writable columns. The follower computes the ``generated`` columns. ``stored`` are the generated
    columns that are stored, and ``unpredictable`` are the stored columns whose values depend on something that the
    leader does not log. ``unique_keys`` include the primary key. ``related`` is true if the table has a foreign key or
    a foreign key refers to it; ``functional`` is true if an index contains an expression. ``numbered`` is the
    AUTO_INCREMENT column, ``indexed`` are the columns that are the first column of an index. ``loadable`` contains the
    columns that LOAD DATA can fill, each with the types of the values that it can load (module inserts). ``rounded``
    are the writable columns of the types FLOAT(M,D) and DOUBLE(M,D). ``types`` maps each column to the name of its
    type, without length, and its collation (None for a column without a collation). ``cascading`` is true if a foreign
    key of another table changes that table's rows when rows of this table change. ``definitions`` maps the writable
    columns to their types, written as in records.
    """

    columns: frozenset[str] = frozenset()
    generated: frozenset[str] = frozenset()
    unique_keys: Mapping[str, tuple[KeyPart, ...]] = field(default_factory=dict)
    related: bool = False
    stored: frozenset[str] = frozenset()
    unpredictable: frozenset[str] = frozenset()
    functional: bool = False
    numbered: str | None = None
    indexed: frozenset[str] = frozenset()
    loadable: Mapping[str, frozenset[str]] = field(default_factory=dict)
    rounded: Mapping[str, Rounded] = field(default_factory=dict)
    types: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    cascading: bool = False
    definitions: Mapping[str, str] = field(default_factory=dict)

    @property
    def computes(self) -> bool:
        """Whether the server computes values from the values of a row; such computations depend on the session's
        sql_mode.
        """
        return bool(self.generated) or self.functional

    @property
    def virtual(self) -> frozenset[str]:
        """The generated columns that are not stored."""
        return self.generated - self.stored

    @property
    def unique_expression(self) -> bool:
        """Whether a unique key contains an expression. If so, a record does not show which row clashes in that key."""
        return any(part.column is None for parts in self.unique_keys.values() for part in parts)

    def has(self, columns: Sequence[str]) -> bool:
        """Whether the table has exactly these columns."""
        return self.columns | self.generated == frozenset(columns)

    def matches(self, columns: Sequence[str], key: Sequence[str] | None) -> bool:
        """Whether the table has exactly these columns, and has this key as a unique key without nullable columns.

        A nullable key does not identify rows, because several rows may have NULL in the key, and because an Upsert
        could set it to NULL.
        """
        return self.has(columns) and any(
            _is(parts, key) and not any(part.nullable for part in parts) for parts in self.unique_keys.values()
        )

    def index_of(self, key: Sequence[str]) -> str | None:
        """Returns the name of the unique key with exactly these columns in their whole length; None if there is no such
        key.
        """
        return next((name for name, parts in self.unique_keys.items() if _is(parts, key)), None)

    def is_keyed_by(self, columns: Sequence[str], key: Sequence[str]) -> bool:
        """Whether the table has exactly these columns, and has this key as a unique key without nullable columns.
        Unlike in ``matches``, the unique key may cover only the first characters of its columns.
        """
        return self.has(columns) and any(
            {part.column for part in parts} == set(key) and not any(part.nullable for part in parts)
            for parts in self.unique_keys.values()
        )

    def secondary(self, key: Sequence[str]) -> frozenset[str]:
        """Returns the columns of all unique keys except ``key``; all columns of the table if one of these keys contains
        an expression."""
        parts = [part for parts in self.unique_keys.values() if not _is(parts, key) for part in parts]
        if any(part.column is None or part.column in self.generated for part in parts):
            return self.columns
        return frozenset(part.column for part in parts if part.column is not None)


def _is(parts: Sequence[KeyPart], key: Sequence[str] | None) -> bool:
    return key is not None and {(part.column, part.length) for part in parts} == {(column, None) for column in key}
