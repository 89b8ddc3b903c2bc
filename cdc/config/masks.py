"""Finds the masks of columns, which the profile names by globs ``db.table.column``."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import translate
from typing import NamedTuple, Self

from cdc.config.table_globs import unquoted
from cdc.errors import UserError
from cdc.model.masking import HASH, MODES, Mask

__all__ = ["Masks"]

_NAME = r"`(?:[^`]|``)+`|[^`.]+"
_COLUMN = re.compile(rf"({_NAME})\.({_NAME})\.({_NAME})")
_KEY_CHARACTERS = 16


class _Rule(NamedTuple):
    database: re.Pattern[str]
    table: re.Pattern[str]
    column: re.Pattern[str]
    glob: str  # the glob of the column, as in the profile
    mask: Mask
    key: str  # the glob of database, table and column, as in the profile

    def matches(self, database: str, table: str, column: str) -> bool:
        return bool(self.database.match(database) and self.table.match(table) and self.column.match(column))


@dataclass(frozen=True, slots=True)
class Masks:
    """The rules for masks, in the order of the profile; the first rule that matches a column decides. Names of
    databases and tables are compared as in filters. Names of columns are compared regardless of case, as in MySQL.
    """

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, object], key: str) -> Self:
        """Compiles the globs of ``columns``; ``key`` is the key of hashes. Raises UserError."""
        if HASH in columns.values() and len(key) < _KEY_CHARACTERS:
            raise UserError(
                f"a hash needs a secret key of at least {_KEY_CHARACTERS} characters",
                code="CDC-PROFILE-MASK",
                where="profile key filters.mask_key",
                hint='keep it out of the profile: mask_key = "${file:/run/secrets/mask_key}"',
            )
        return cls(tuple(_rule(glob, mode, key.encode()) for glob, mode in columns.items()))

    def __bool__(self) -> bool:
        return bool(self.rules)

    def mask(self, database: str, table: str, column: str) -> Mask | None:
        """Returns the mask of a column; None for a column that is not masked."""
        return next((rule.mask for rule in self.rules if rule.matches(database, table, column)), None)

    def unused(self, columns: Collection[tuple[str, str, str]]) -> list[str]:
        """Returns the globs of the rules that match none of the ``columns`` (database, table, column)."""
        return [rule.key for rule in self.rules if not any(rule.matches(*each) for each in columns)]

    def of_table(self, database: str, table: str) -> tuple[tuple[str, str], ...]:
        """Returns the rules for a table; each rule is a glob of columns and a mode (HASH or NULL)."""
        rules = (rule for rule in self.rules if rule.database.match(database) and rule.table.match(table))
        return tuple((rule.glob, rule.mask.mode) for rule in rules)


def _rule(glob: str, mode: object, key: bytes) -> _Rule:
    found = _COLUMN.fullmatch(glob)
    if found is None:
        raise UserError(
            f"{glob!r} names no column",
            code="CDC-PROFILE-MASK",
            where="profile key filters.mask_columns",
            hint='write database, table and column, as in "shop.users.email" = "hash"; a name with a dot in backquotes',
        )
    if mode not in MODES:
        raise UserError(
            "a column is masked in another way",
            code="CDC-PROFILE-MASK",
            where=f"profile key filters.mask_columns, {glob!r}",
            hint=f"one of {', '.join(MODES)}",
        )
    database, table, column = map(unquoted, found.groups())
    patterns = re.compile(translate(database)), re.compile(translate(table)), re.compile(translate(column), re.I)
    return _Rule(*patterns, column.lower(), Mask(str(mode), key if mode == HASH else b""), glob)
