"""What a follower's table is like where the records do not say it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["KeyPart", "Shape"]


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a unique key (None: an expression), how many of its characters count (None: all), and NULLs."""

    column: str | None
    length: int | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """``columns`` are the ones that can be written, ``generated`` those that the follower computes itself, ``stored``
    those of them that are stored, ``doubtful`` those of these that may differ by what is not logged; ``unique_keys``
    have the primary key among them; ``related``: a foreign key leads from or to the table; ``functional``: an index is
    of an expression; ``numbered`` is the AUTO_INCREMENT column."""

    columns: frozenset[str] = frozenset()
    generated: frozenset[str] = frozenset()
    unique_keys: Mapping[str, tuple[KeyPart, ...]] = field(default_factory=dict)
    related: bool = False
    stored: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    functional: bool = False
    numbered: str | None = None

    @property
    def computes(self) -> bool:
        """Whether the server makes something of a row's values that depends on the session's sql_mode."""
        return bool(self.generated) or self.functional

    def holds(self, columns: Sequence[str], key: Sequence[str] | None) -> bool:
        """Whether the table has these columns and no other, and this key among its unique ones, without NULLs.

        A key that takes NULL tells rows apart no more, and the server would not refuse that an Upsert takes a row's.
        """
        return self.columns | self.generated == frozenset(columns) and any(
            _is(parts, key) and not any(part.nullable for part in parts) for parts in self.unique_keys.values()
        )

    def secondary(self, key: Sequence[str]) -> frozenset[str]:
        """The columns on which a unique key other than ``key`` rests: all, where that can't be told."""
        parts = [part for parts in self.unique_keys.values() if not _is(parts, key) for part in parts]
        if any(part.column is None or part.column in self.generated for part in parts):
            return self.columns
        return frozenset(part.column for part in parts if part.column is not None)


def _is(parts: Sequence[KeyPart], key: Sequence[str] | None) -> bool:
    return key is not None and {(part.column, part.length) for part in parts} == {(column, None) for column in key}
